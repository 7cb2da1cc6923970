//! Reads `wild/NAME.toml`: what each of its keys means.
//!
//! Does not know the form of the file; see `toml`. Runs nothing.

use crate::toml;
use std::path::Path;

/// A program that nobody here wrote, and what is known about it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Program {
    /// What it is, in one line.
    pub(crate) about: String,
    /// Debian packages that must be installed.
    pub(crate) packages: Vec<String>,
    /// Whether it belongs to the quick dozen.
    pub(crate) quick: bool,
    /// Shell lines that make its input, in a fresh folder.
    pub(crate) setup: Vec<String>,
    /// Shell lines that undo what a run left, before each run.
    pub(crate) reset: Vec<String>,
    /// How often it is recorded, and each time judged: more than once where a wrong accusation comes and goes.
    pub(crate) recordings: usize,
    /// What is recorded.
    pub(crate) recorded: Recorded,
    /// The evidence for its truths, from other tools than deadweight.
    pub(crate) why: String,
    pub(crate) truths: Truths,
}

/// What is recorded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// A command, from its start to its end.
    Command(String),
    /// A server that already runs.
    Server(Served),
}

impl Default for Recorded {
    fn default() -> Self {
        Self::Command(String::new())
    }
}

/// A server with a load. Each is a shell line in the scratch folder; `$PORT` is a free port.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Starts it, in the foreground.
    pub(crate) start: String,
    /// Succeeds when it is ready.
    pub(crate) ready: String,
    /// Prints the id of the process that is recorded; empty: that of `start`.
    pub(crate) pid: String,
    /// Runs during the recording.
    pub(crate) load: String,
}

/// What a report must say, and what it must not say.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Truths {
    /// `class` or `class @ place` of the first finding.
    pub(crate) first: Option<String>,
    /// Classes that must not be found.
    pub(crate) never: Vec<String>,
    /// Classes that may be found beside the first one. If given, any other is a wrong accusation.
    pub(crate) only: Option<Vec<String>>,
    /// Whether there must be no finding.
    pub(crate) silent: bool,
    /// Conditions for `deadweight gate`; the report is called `r`.
    pub(crate) conditions: Vec<String>,
    /// System calls whose number in the ledger must be that of strace.
    pub(crate) counts: Vec<(String, Tolerance)>,
}

/// How far a number may be from the real one.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// By so many.
    Calls(f64),
    /// By this part.
    Part(f64),
}

impl Tolerance {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => Some(Self::Part(percent.trim().parse::<f64>().ok()? / 100.0)),
            None => Some(Self::Calls(text.trim().parse().ok()?)),
        }
    }

    /// Whether `seen` is near enough to `real`.
    pub(crate) fn holds(self, seen: f64, real: f64) -> bool {
        let most = match self {
            Self::Calls(calls) => calls,
            Self::Part(part) => real * part,
        };
        (seen - real).abs() <= most
    }
}

impl Program {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let program = parse(&text).and_then(complete);
        program.map_err(|why| format!("{}: {why}", path.display()))
    }
}

fn parse(text: &str) -> Result<Program, String> {
    let mut program = Program { recordings: 1, ..Program::default() };
    let (mut command, mut served) = (String::new(), Served::default());
    for entry in toml::parse(text)? {
        let key = entry.key.clone();
        let truths = &mut program.truths;
        match (entry.table.as_str(), key.as_str()) {
            ("", "about") => program.about = entry.string()?,
            ("", "packages") => program.packages = entry.strings()?,
            ("", "quick") => program.quick = entry.flag()?,
            ("", "setup") => program.setup = entry.strings()?,
            ("", "recordings") => {
                let refused = entry.refused("a number above 0 is wanted, in quotes");
                let number: usize = entry.string()?.parse().unwrap_or(0);
                program.recordings = Some(number).filter(|n| *n > 0).ok_or(refused)?;
            }
            ("", "reset") => program.reset = entry.strings()?,
            ("", "command") => command = entry.string()?,
            ("", "start") => served.start = entry.string()?,
            ("", "ready") => served.ready = entry.string()?,
            ("", "pid") => served.pid = entry.string()?,
            ("", "load") => served.load = entry.string()?,
            ("", "why") => program.why = entry.string()?,
            ("", "first") => truths.first = Some(entry.string()?),
            ("", "never") => truths.never = entry.strings()?,
            ("", "only") => truths.only = Some(entry.strings()?),
            ("", "silent") => truths.silent = entry.flag()?,
            ("", "truths") => truths.conditions = entry.strings()?,
            ("counts", _) => {
                let refused = entry.refused("write `\"3\"` or `\"5 %\"`");
                let tolerance = Tolerance::parse(&entry.string()?).ok_or(refused)?;
                truths.counts.push((key, tolerance));
            }
            _ => return Err(entry.refused("means nothing here")),
        }
    }
    program.recorded = match (command.is_empty(), served.start.is_empty()) {
        (false, true) => Recorded::Command(command),
        (true, false) => Recorded::Server(served),
        _ => return Err("give either `command` or `start`".to_owned()),
    };
    Ok(program)
}

/// Refuses a program that would prove nothing.
fn complete(program: Program) -> Result<Program, String> {
    let truths = &program.truths;
    let none = truths.first.is_none()
        && !truths.silent
        && truths.only.is_none()
        && truths.never.is_empty()
        && truths.conditions.is_empty()
        && truths.counts.is_empty();
    let lacks = |what: &str| Err(format!("no `{what}`"));
    if let Recorded::Server(served) = &program.recorded {
        for (name, line) in [("ready", &served.ready), ("load", &served.load)] {
            if line.is_empty() {
                return lacks(name);
            }
        }
        if !truths.counts.is_empty() {
            return Err("a server has no `counts`: two loads are never the same".to_owned());
        }
    }
    match () {
        () if program.about.is_empty() => lacks("about"),
        () if program.packages.is_empty() => lacks("packages"),
        () if program.why.is_empty() => lacks("why"),
        () if none => Err("no truth".to_owned()),
        () if truths.silent && (truths.first.is_some() || truths.only.is_some()) => {
            Err("`silent` leaves no place for `first` or `only`".to_owned())
        }
        () => Ok(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "about = 'a'\npackages = ['p']\nwhy = 'w'\n";

    fn read(more: &str) -> Result<Program, String> {
        parse(&format!("{LEAST}{more}")).and_then(complete)
    }

    #[test]
    fn a_program_is_read_with_its_truths() {
        let program = read(
            "quick = true\nrecordings = '3'\ncommand = 'x'\nfirst = 'tiny-reads @ y'\nnever = ['gc']\nonly = []\n\
             [counts]\nread = '5 %'\nopenat = '3'\n",
        );
        let program = program.unwrap();
        assert!(program.quick && program.recordings == 3);
        assert_eq!(program.recorded, Recorded::Command("x".to_owned()));
        let counts = [
            ("read".to_owned(), Tolerance::Part(0.05)),
            ("openat".to_owned(), Tolerance::Calls(3.0)),
        ];
        let expected = Truths {
            first: Some("tiny-reads @ y".to_owned()),
            never: vec!["gc".to_owned()],
            only: Some(Vec::new()),
            counts: counts.to_vec(),
            ..Truths::default()
        };
        assert_eq!(program.truths, expected);
    }

    #[test]
    fn a_server_is_read() {
        let program = read("start = 's'\nready = 'r'\nload = 'l'\nsilent = true\n").unwrap();
        let served =
            Served { start: "s".into(), ready: "r".into(), load: "l".into(), pid: "".into() };
        assert_eq!(program.recorded, Recorded::Server(served));
    }

    #[test]
    fn a_program_that_proves_nothing_is_refused() {
        for (more, why) in [
            ("silent = true\n", "give either `command` or `start`"),
            ("command = 'x'\nstart = 's'\nsilent = true\n", "give either `command` or `start`"),
            ("command = 'x'\n", "no truth"),
            ("command = 'x'\nsilent = true\nfirst = 'gc'\n", "no place for `first`"),
            ("start = 's'\nready = 'r'\nsilent = true\n", "no `load`"),
            ("command = 'x'\n[counts]\nread = 'few'\n", "line 6: `read`: write"),
            ("command = 'x'\nrecordings = '0'\n", "line 5: `recordings`: a number above 0"),
            ("command = 'x'\nsilents = true\n", "line 5: `silents`: means nothing here"),
        ] {
            let refused = read(more).unwrap_err();
            assert!(refused.contains(why), "{more}: {refused}");
        }
    }

    #[test]
    fn a_tolerance_holds_up_to_its_end() {
        assert!(
            Tolerance::Calls(3.0).holds(103.0, 100.0) && !Tolerance::Calls(3.0).holds(96.0, 100.0)
        );
        assert!(
            Tolerance::Part(0.1).holds(90.0, 100.0) && !Tolerance::Part(0.1).holds(111.0, 100.0)
        );
    }
}
