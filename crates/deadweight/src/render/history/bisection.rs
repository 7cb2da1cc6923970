//! The commands that find the commit of a change, as lines for a shell.
//!
//! They compare each build with one of the last commit before the change, alternately: a limit in milliseconds would hold
//! on one machine and on one day only. Asks git nothing; the caller has done so.

use super::{day, place, sentence};
use crate::render::archive::{COMMIT, short};
use crate::render::page::printable;
use deadweight_report::history::{Change, History, Point};
use deadweight_report::wording::{shell_word, things};

/// A bisection.
#[derive(Clone, Debug)]
pub struct Bisection<'a> {
    /// The last commit that is known to be before the change.
    pub good: &'a str,
    /// The first that is known to be after it.
    pub bad: &'a str,
    /// How many commits may be it; None if git was not asked.
    pub commits: Option<u64>,
    /// The measured command: words, or one line for a shell.
    pub command: Vec<String>,
    /// What builds the program.
    pub build: &'a str,
    /// The repository's folder; empty if unknown.
    pub top: &'a str,
}

/// The commits between which a change is; None if they are not known. Not every run has a commit.
#[must_use]
pub fn ends<'h>(history: &'h History, change: &Change) -> Option<(&'h str, &'h str)> {
    let event = &change.event;
    let method = history.points.get(event.index)?.method;
    // A foreign archive may hold anything, and this is for a shell.
    let plain =
        |commit: &str| !commit.is_empty() && commit.chars().all(|c| c.is_ascii_alphanumeric());
    let known = |point: &&Point| point.method == method && plain(&point.commit);
    let good = history.points.get(..event.earliest)?.iter().rev().find(known)?;
    let bad = history.points.get(event.latest..)?.iter().find(known)?;
    (good.commit != bad.commit).then_some((&*good.commit, &*bad.commit))
}

/// The lines.
#[must_use]
pub fn render(history: &History, change: &Change, bisection: &Bisection<'_>) -> String {
    let Bisection { good, bad, commits, build, .. } = bisection;
    let mut text = String::new();
    let mut remark = |said: &str| text.push_str(&format!("# {}\n", printable(said)));
    let at = short(&change.commit, COMMIT);
    remark(&format!(
        "{}, at {at} ({}): {}",
        history.workload,
        day(change.moment),
        sentence(change)
    ));
    let uncertain = place(change, history);
    if !uncertain.is_empty() {
        remark(&uncertain);
    }
    if *commits == Some(1) {
        remark("the commit before it was measured too, so there is nothing to search:");
        text.push_str(&format!("git show {bad}\n"));
        return text;
    }
    match commits {
        Some(n) => {
            let steps = u64::from(n.next_power_of_two().trailing_zeros());
            remark(&format!("one of {n} commits, found in about {}", things(steps, "step")));
        }
        None => remark("run this in the program's repository"),
    }
    let folder = bisection.folder();
    let shown = shell_word(&folder);
    text.push_str(&format!(
        "git worktree add --detach {shown} {good} && (cd {shown} && {build}) &&\ngit bisect start {bad} {good} &&\n\
         git bisect run sh -c {}\n",
        quoted(&bisection.check(change, history))
    ));
    let mut remark = |said: &str| text.push_str(&format!("# {}\n", printable(said)));
    if !matches!(bisection.sides(&folder), Sides::Program(..)) {
        remark(&format!(
            "the command reads its files in {folder}: copy there what git does not have"
        ));
    }
    remark(&format!("afterwards: git bisect reset; git worktree remove --force {shown}"));
    text
}

/// How the build of the good commit is run beside the one that is checked out.
enum Sides {
    /// The command begins with a program of the repository: only that is another one.
    Program(String),
    /// Everything else runs in the other folder.
    Folder(String),
}

impl Bisection<'_> {
    /// Where the good commit is built: beside the repository, so that it is in no status.
    fn folder(&self) -> String {
        let top = if self.top.is_empty() { "/tmp/bisect" } else { self.top };
        format!("{top}-{}", short(self.good, COMMIT))
    }

    /// The script that judges a commit: 0 is good, 1 bad, and 125 cannot be said.
    fn check(&self, change: &Change, history: &History) -> String {
        let (condition, why) = condition(change, history);
        let command = line(&self.command);
        let good = match self.sides(&self.folder()) {
            Sides::Program(good) | Sides::Folder(good) => good,
        };
        format!(
            "{build} || exit 125; deadweight compare -q{why} --fail-if {condition} {good} {command}; s=$?; \
             [ $s -lt 2 ] || s=125; exit $s",
            build = grouped(self.build),
            condition = double(&condition),
            good = double(&good),
            command = double(&command),
        )
    }

    fn sides(&self, folder: &str) -> Sides {
        let line = line(&self.command);
        let (program, rest) = match &self.command[..] {
            [alone] => alone.split_once(' ').unwrap_or((alone, "")),
            _ => (self.command.first().map_or("", String::as_str), ""),
        };
        let several = self.command.len() == 1 && rest.contains(['|', ';', '&']);
        let inside = match program.strip_prefix(self.top).and_then(|path| path.strip_prefix('/')) {
            Some(path) if !self.top.is_empty() => Some(path),
            _ => program.contains('/').then_some(program).filter(|path| !path.starts_with('/')),
        };
        match inside.filter(|_| !several) {
            Some(path) => {
                let path = path.strip_prefix("./").unwrap_or(path);
                let other = shell_word(&format!("{folder}/{path}"));
                let rest =
                    line.strip_prefix(&shell_word(program)).or_else(|| line.strip_prefix(program));
                Sides::Program(format!("{other}{}", rest.unwrap_or_default()))
            }
            None => Sides::Folder(format!("cd {} && {line}", shell_word(folder))),
        }
    }
}

/// When a commit is bad, half of the change away from the good one; and the option with which only that is measured.
fn condition(change: &Change, history: &History) -> (String, &'static str) {
    let event = &change.event;
    let sign = |grown: bool| if grown { '>' } else { '<' };
    if let Some(total) = event.total {
        let half = 1.0 + total.relative_change() / 2.0;
        return (format!("B {} A * {half:.4}", sign(half > 1.0)), " --no-why");
    }
    let row =
        event.reason.as_ref().and_then(|reason| event.rows.iter().find(|r| r.row == reason.row));
    let Some(row) = row.or(event.rows.first()) else { return ("B > A * 1.02".into(), " --no-why") };
    // One commit may be disturbed.
    let total: f64 = history.points.iter().map(|point| point.ns).sum();
    let mean = (total / history.points.len().max(1) as f64).max(1.0);
    let middle = f64::midpoint(row.point.before.mean, row.point.after.mean) / mean * 100.0;
    (format!("B.{} {} {middle:.2} %", row.row, sign(row.difference_ns > 0.0)), "")
}

/// The command as a line for a shell.
fn line(words: &[String]) -> String {
    match words {
        [alone] => alone.clone(),
        _ => words.iter().map(|each| shell_word(each)).collect::<Vec<_>>().join(" "),
    }
}

/// A build command that ends as its last part does.
fn grouped(build: &str) -> String {
    if build.contains([';', '&', '|']) { format!("{{ {build}; }}") } else { build.to_owned() }
}

/// A text in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A text in double quotes.
fn double(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if ['\\', '"', '$', '`'].contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(command: &[&str]) -> String {
        let bisection = Bisection {
            good: "0123456789abcdef",
            bad: "b",
            commits: None,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            build: "make",
            top: "/src/my app",
        };
        match bisection.sides("/o") {
            Sides::Program(side) => side,
            Sides::Folder(side) => format!("folder: {side}"),
        }
    }

    #[test]
    fn the_good_build_runs_where_the_inputs_are_if_its_program_is_in_the_repository() {
        assert_eq!(sides(&["./prog", "a b"]), "/o/prog 'a b'");
        assert_eq!(sides(&["target/release/prog"]), "/o/target/release/prog");
        assert_eq!(sides(&["/src/my app/prog", "x"]), "/o/prog x");
        assert_eq!(sides(&["./prog < in"]), "/o/prog < in");
        assert_eq!(sides(&["./prog < in | sort"]), "folder: cd /o && ./prog < in | sort");
        assert_eq!(sides(&["python3", "x.py"]), "folder: cd /o && python3 x.py");
        assert_eq!(sides(&["/usr/bin/prog"]), "folder: cd /o && /usr/bin/prog");
    }

    #[test]
    fn texts_survive_the_shell() {
        let said = |script: &str| {
            let shell = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
            String::from_utf8(shell.stdout).unwrap()
        };
        for text in ["a b", "it's", "$HOME `x` \\ \"q\"", "ä"] {
            let inner = format!("printf %s {}", double(text));
            assert_eq!(said(&format!("sh -c {}", quoted(&inner))), text);
            assert_eq!(said(&format!("printf %s {}", shell_word(text))), text);
        }
    }
}
