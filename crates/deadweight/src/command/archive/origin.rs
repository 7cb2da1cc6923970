//! Where a run comes from: commit and branch of the current directory, as `git` or the CI says. Never fails: what is
//! not known stays empty.

use super::super::say;
use deadweight_report::tables::{OURS, Origin};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long git may take. On a network's disk it could take minutes, and nothing was measured yet.
const LIMIT: Duration = Duration::from_secs(5);
/// Between looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(2);
/// Commits of GitHub, GitLab, Buildkite, CircleCI, Azure and Jenkins.
const COMMITS: [&str; 6] = [
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "BUILDKITE_COMMIT",
    "CIRCLE_SHA1",
    "BUILD_SOURCEVERSION",
    "GIT_COMMIT",
];
/// Their branches. GitHub's first variable is set for pull requests only, where the second is a number.
const BRANCHES: [&str; 7] = [
    "GITHUB_HEAD_REF",
    "GITHUB_REF_NAME",
    "CI_COMMIT_REF_NAME",
    "BUILDKITE_BRANCH",
    "CIRCLE_BRANCH",
    "BUILD_SOURCEBRANCHNAME",
    "GIT_BRANCH",
];

/// The origin of what is measured now; `commit` is the one that the user names.
pub(super) fn here(commit: Option<&str>) -> Origin {
    let found = match commit {
        Some(commit) => named(commit),
        None => checked_out(),
    };
    Origin { time: now(), kind: OURS.into(), ..found }
}

/// The time, in seconds since 1970.
pub(crate) fn now() -> i64 {
    seconds(SystemTime::now())
}

/// A moment, in seconds since 1970.
pub(super) fn seconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(0)
}

/// The commit that is named, in full if git knows it.
fn named(commit: &str) -> Origin {
    let known = git(&["log", "-1", "--format=%H %ct", "--end-of-options", commit, "--"]);
    let known = known.as_deref().and_then(commit_and_time);
    // Outside of a repository, and for a commit that a shallow clone has not, there is nothing to compare with.
    let is_id = commit.len() >= 4 && commit.chars().all(|c| c.is_ascii_hexdigit());
    if known.is_none() && !is_id && git(&["rev-parse", "--git-dir"]).is_some() {
        say(&format!("deadweight: git knows no commit `{commit}` here; it is kept by this name"));
    }
    let (commit, commit_time) = known.unwrap_or_else(|| (commit.to_owned(), 0));
    Origin { commit, commit_time, ..Origin::default() }
}

fn checked_out() -> Origin {
    let variable = |names: &[&str]| {
        let given = names.iter().filter_map(|name| std::env::var(name).ok());
        given.map(|value| value.trim().to_owned()).find(|value| !value.is_empty())
    };
    let head = git(&["log", "-1", "--format=%H %ct"]);
    let Some((commit, commit_time)) = head.as_deref().and_then(commit_and_time) else {
        if let Some(todo) = trust() {
            say(&format!(
                "deadweight: git does not read this repository, because it is another user's; of its commit, at most the \
                 name that a CI gives is kept; to trust it: {todo}"
            ));
        }
        let commit = variable(&COMMITS).unwrap_or_default();
        return Origin {
            commit,
            branch: variable(&BRANCHES).unwrap_or_default(),
            ..Origin::default()
        };
    };
    // CI checks out a commit and no branch.
    let branch = git(&["symbolic-ref", "--short", "--quiet", "HEAD"]);
    let branch = branch.map(|name| name.trim().to_owned()).or_else(|| variable(&BRANCHES));
    // New files are mostly results and builds.
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    let dirty = changes.is_some_and(|changes| !changes.is_empty());
    Origin { commit, commit_time, branch: branch.unwrap_or_default(), dirty, ..Origin::default() }
}

fn commit_and_time(line: &str) -> Option<(String, i64)> {
    let (commit, time) = line.trim().split_once(' ')?;
    Some((commit.to_owned(), time.parse().ok()?))
}

/// If git refuses the repository here because of its owner: the command that it names.
fn trust() -> Option<String> {
    let mut child = asked(&["rev-parse", "--git-dir"]).stderr(Stdio::piped()).spawn().ok()?;
    let (succeeded, text) = answer(child.stderr.take()?, child, LIMIT)?;
    // The command is the same in every language.
    let todo = text.lines().map(str::trim).find(|line| line.starts_with("git config "));
    todo.filter(|line| !succeeded && line.contains("safe.directory")).map(str::to_owned)
}

/// What git prints, if it succeeds in time.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    let mut child = asked(arguments).stdout(Stdio::piped()).spawn().ok()?;
    let (succeeded, text) = answer(child.stdout.take()?, child, LIMIT)?;
    succeeded.then_some(text)
}

fn asked(arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    // It must neither write (`status` refreshes the index) nor ask.
    git.args(arguments).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    git
}

/// Whether a process that ends in time succeeded, and its output; otherwise it is killed.
fn answer(
    mut out: impl Read + Send + 'static,
    mut child: Child,
    limit: Duration,
) -> Option<(bool, String)> {
    // A full pipe would stop it.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        out.read_to_end(&mut bytes).map(|_| bytes)
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(PAUSE),
            _ => {
                // The reader ends with the last process that has the pipe.
                _ = child.kill();
                _ = child.wait();
                return None;
            }
        }
    };
    let bytes = reader.join().ok()?.ok()?;
    Some((status.success(), String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Option<(bool, String)> {
        let mut shell = Command::new("sh");
        let mut child = shell.args(["-c", line]).stdout(Stdio::piped()).spawn().unwrap();
        answer(child.stdout.take().unwrap(), child, Duration::from_millis(500))
    }

    #[test]
    fn a_process_has_a_time_limit_and_may_fail() {
        assert_eq!(shell("echo a"), Some((true, "a\n".into())));
        assert_eq!(shell("echo a; exit 1"), Some((false, "a\n".into())));
        let begun = Instant::now();
        assert_eq!(shell("exec sleep 60"), None);
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(shell("yes | head -c 1000000").map(|(_, text)| text.len()), Some(1_000_000));
    }
}
