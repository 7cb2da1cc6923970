//! Reads `case.toml`: what each of its keys means.
//!
//! Does not know the form of the file; see `toml`.

use crate::toml;
use std::path::Path;

/// The content of `case.toml`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    /// Tools that must be installed.
    pub(crate) needs: Vec<String>,
    /// Shell commands that build it into `$OUT`.
    pub(crate) build: Vec<String>,
    /// A shell command that serves on `$PORT` during tests and measurements; empty for none.
    pub(crate) serve: String,
    /// Shell commands that test it: formatting, lints, its own tests.
    pub(crate) test: Vec<String>,
    /// Shell commands that print tables of this case and its alternatives.
    pub(crate) bench: Vec<String>,
    /// The number of clean runs of each variant.
    pub(crate) runs: String,
    /// More options of deadweight.
    pub(crate) options: Vec<String>,
    /// Shell commands that check the reports, `$OUT/VARIANT.json`, beyond what conditions can say.
    pub(crate) shown: Vec<String>,
    /// Names and commands of the measured variants.
    pub(crate) variants: Vec<(String, String)>,
    /// For some variants, the name of the process that is reported on instead of the whole command.
    pub(crate) of: Vec<(String, String)>,
    /// Conditions on the reports, as for `deadweight gate`.
    pub(crate) truths: Vec<String>,
    /// Conditions that may fail on a busy machine: `--quick` leaves them out.
    pub(crate) quiet: Vec<String>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let case = parse(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        if case.variants.is_empty() || case.truths.is_empty() {
            return Err(format!("{}: no variants or no truths", path.display()));
        }
        Ok(case)
    }
}

fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case { runs: "5".to_owned(), ..Case::default() };
    for entry in toml::parse(text)? {
        let key = entry.key.clone();
        match (entry.table.as_str(), key.as_str()) {
            ("", "needs") => case.needs = entry.strings()?,
            ("", "build") => case.build = entry.strings()?,
            ("", "serve") => case.serve = entry.string()?,
            ("", "test") => case.test = entry.strings()?,
            ("", "bench") => case.bench = entry.strings()?,
            ("", "truths") => case.truths = entry.strings()?,
            ("", "quiet") => case.quiet = entry.strings()?,
            ("", "runs") => case.runs = entry.string()?,
            ("", "options") => case.options = entry.strings()?,
            ("", "shown") => case.shown = entry.strings()?,
            ("", "story") => {}
            ("variants", _) => case.variants.push((key, entry.string()?)),
            ("of", _) => case.of.push((key, entry.string()?)),
            _ => return Err(entry.refused("means nothing here")),
        }
    }
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_with_its_lists_and_tables() {
        let text = "# a case\nneeds = [\"go\"]\nruns = \"7\"\ntruths = [\n  'a.finding = \"x\"',\n  # why\n  \
                    'a < 3 s',\n]\n\n[variants]\nslow = \"$OUT/slow 3\"\nfast = \"$OUT/fast 3\"\n\
                    [of]\nfast = \"inner\"\n";
        let case = parse(text).unwrap();
        assert_eq!(case.truths, ["a.finding = \"x\"", "a < 3 s"]);
        assert_eq!(case.variants[1], ("fast".to_owned(), "$OUT/fast 3".to_owned()));
        assert_eq!(case.of, [("fast".to_owned(), "inner".to_owned())]);
        assert_eq!((case.needs, case.runs.as_str()), (vec!["go".to_owned()], "7"));
    }

    #[test]
    fn what_it_does_not_know_is_refused_with_its_line() {
        for (text, line) in [("x = \"1\"", 1), ("\nneeds = true", 2), ("runs = []", 1), ("?", 1)] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(&format!("line {line}:")), "{why}");
        }
    }
}
