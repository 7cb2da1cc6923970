//! Reads `case.toml`, in a small subset of TOML, so that xtask needs no dependencies.
//!
//! Reads keys with a string or a list of strings, in quotes of either kind, and tables of such keys.
//! Anything else is refused with its line.

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
    let mut table = String::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = name.to_owned();
            continue;
        }
        let refused = |why: &str| format!("line {number}: {why}");
        let (key, value) = line.split_once('=').ok_or_else(|| refused("no `=`"))?;
        let mut value = value.trim().to_owned();
        while value.starts_with('[') && !value.ends_with(']') {
            let (more, _) = lines.next().ok_or_else(|| refused("the list has no end"))?;
            let more = more.trim();
            if !more.starts_with('#') {
                value.push_str(more);
            }
        }
        let values = strings(&value).map_err(|why| refused(&why))?;
        let one = || values.first().cloned().ok_or_else(|| refused("one string is wanted"));
        match (table.as_str(), key.trim()) {
            ("", "needs") => case.needs = values,
            ("", "build") => case.build = values,
            ("", "serve") => case.serve = one()?,
            ("", "test") => case.test = values,
            ("", "bench") => case.bench = values,
            ("", "truths") => case.truths = values,
            ("", "quiet") => case.quiet = values,
            ("", "runs") => case.runs = one()?,
            ("", "options") => case.options = values,
            ("", "shown") => case.shown = values,
            ("", "story") => {}
            ("variants", name) => case.variants.push((name.to_owned(), one()?)),
            ("of", name) => case.of.push((name.to_owned(), one()?)),
            (_, key) => return Err(refused(&format!("`{key}` means nothing here"))),
        }
    }
    Ok(case)
}

/// The strings of a value.
fn strings(value: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut rest = value.trim_start_matches('[').trim_end_matches(']').trim();
    while let Some(quote) = rest.chars().next() {
        if quote != '"' && quote != '\'' {
            return Err(format!("a string in quotes is wanted, not `{rest}`"));
        }
        let end = rest[1..].find(quote).ok_or("a quotation has no end")?;
        found.push(rest[1..=end].to_owned());
        rest = rest[end + 2..].trim_start().trim_start_matches(',').trim_start();
    }
    Ok(found)
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
        for (text, line) in [("x = \"1\"", 1), ("\nneeds = go", 2), ("build = [\"a\"", 1), ("?", 1)]
        {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(&format!("line {line}:")), "{why}");
        }
    }
}
