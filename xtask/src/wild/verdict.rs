//! Judges a report by what is known about its program, and by what no report may say.
//!
//! - In: a report as JSON, truths, and numbers that other tools counted.
//! - Out: complaints. Nothing is run.

use super::file::Truths;
use super::json::{each, list, number, text};
use serde_json::Value;
use std::fmt;

/// What is wrong with a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A finding that the program does not deserve.
    WrongAccusation,
    /// A number that cannot be true of any program.
    Impossible,
    /// A number that differs from what another tool counted.
    WrongCount,
    /// A known bottleneck that is not the first finding, or a condition that does not hold. A busy minute may do
    /// that, so it is tried again.
    Missed,
}

impl Kind {
    /// The word in the table.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::WrongAccusation => "ACCUSED",
            Self::Impossible => "IMPOSSIBLE",
            Self::WrongCount => "MISCOUNTED",
            Self::Missed => "MISSED",
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.word(), self.text)
    }
}

fn complain(kind: Kind, text: impl Into<String>) -> Complaint {
    Complaint { kind, text: text.into() }
}

/// All complaints about a report. `counted`: what strace counted, in the order of the truth's `counts`.
pub(crate) fn judge(report: &Value, truths: &Truths, counted: &[u64]) -> Vec<Complaint> {
    let mut complaints = impossible(report);
    complaints.extend(accusations(report, truths));
    complaints.extend(missed(report, truths));
    for ((call, tolerance), real) in truths.counts.iter().zip(counted) {
        let shown = calls(report, call);
        let holds = shown.is_some_and(|shown| tolerance.holds(shown as f64, *real as f64));
        if !holds {
            let shown = shown.map_or("does not count it".into(), |n| format!("counts {n}"));
            let text = format!("{call}: strace counts {real}, the report {shown}");
            complaints.push(complain(Kind::WrongCount, text));
        }
    }
    complaints
}

/// The first finding's class and place, as people write it; none without findings.
pub(crate) fn first(report: &Value) -> Option<String> {
    list(report, "findings").first().map(described)
}

fn described(finding: &Value) -> String {
    let class = text(finding, "class");
    let Some(site) = list(finding, "sites").first() else { return class.to_owned() };
    let file = text(site, "file").rsplit('/').next().unwrap_or_default();
    match (file, text(site, "function")) {
        ("", "") => class.to_owned(),
        ("", function) => format!("{class} @ {function}"),
        (file, _) => format!("{class} @ {file}:{}", number(site, "line")),
    }
}

fn accusations(report: &Value, truths: &Truths) -> Vec<Complaint> {
    let first = truths.first.as_deref().map(|wanted| split(wanted).0);
    let wrong = |class: &str| {
        let unlisted =
            |only: &Vec<String>| !only.iter().any(|c| c == class) && first != Some(class);
        truths.silent
            || truths.never.iter().any(|never| never == class)
            || truths.only.as_ref().is_some_and(unlisted)
    };
    let findings = list(report, "findings").iter().filter(|finding| wrong(text(finding, "class")));
    let text = |finding: &Value| {
        let saving = number(finding, "saving_share") * 100.0;
        format!("{}, saving {saving:.1} %: {}", described(finding), text(finding, "text"))
    };
    findings.map(|finding| complain(Kind::WrongAccusation, text(finding))).collect()
}

/// A class and a place.
fn split(wanted: &str) -> (&str, Option<&str>) {
    match wanted.split_once('@') {
        Some((class, place)) => (class.trim(), Some(place.trim())),
        None => (wanted.trim(), None),
    }
}

fn missed(report: &Value, truths: &Truths) -> Option<Complaint> {
    let wanted = truths.first.as_deref()?;
    let (class, place) = split(wanted);
    let at = |site: &Value| {
        let file = text(site, "file");
        place.is_none_or(|place| text(site, "function") == place || file.ends_with(place))
    };
    let matches = |finding: &Value| {
        text(finding, "class") == class
            && (place.is_none() || list(finding, "sites").iter().any(at))
    };
    let found = list(report, "findings").first();
    let text = format!("first finding: {}, not {wanted}", found.map_or("none".into(), described));
    (!found.is_some_and(matches)).then(|| complain(Kind::Missed, text))
}

/// Classes of the truths that this report does not know: they could never be found.
pub(crate) fn unknown_classes(report: &Value, truths: &Truths) -> Vec<String> {
    let known: Vec<&str> =
        list(report, "checks").iter().map(|check| text(check, "class")).collect();
    let first = truths.first.iter().map(|wanted| split(wanted).0);
    let named = truths.never.iter().chain(truths.only.iter().flatten()).map(String::as_str);
    named.chain(first).filter(|class| !known.contains(class)).map(str::to_owned).collect()
}

/// Texts that show a number that was never computed.
const NONSENSE: [&str; 4] = ["0 bytes in all", "18 446 744", "18446744073709", "NaN"];

/// More ns or bytes than any recording has: 30 years.
const HUGE: f64 = 1e18;

/// What cannot be true of any program.
fn impossible(report: &Value) -> Vec<Complaint> {
    let mut found = Vec::new();
    let wall = number(report, "wall_ns");
    let rows: f64 = list(report, "ledger").iter().map(|row| number(row, "ns")).sum();
    if (rows - wall).abs() > 1.0 {
        found.push(format!("the rows sum to {rows} ns, the wall time is {wall} ns"));
    }
    for row in list(report, "ledger") {
        let [low, ns, high] = ["low_ns", "ns", "high_ns"].map(|key| number(row, key));
        if low > ns || ns > high {
            let account = text(row, "account");
            found.push(format!("the row {account}: {ns} ns is not within {low} to {high}"));
        }
    }
    for finding in list(report, "findings") {
        found.extend(impossible_saving(finding, wall, number(report, "net_ns")));
    }
    each(report, "", &mut |path, leaf| match leaf {
        Value::Number(digits) => {
            let number = digits.as_f64().unwrap_or(f64::NAN);
            if !(0.0..HUGE).contains(&number) && path != "exit.code" {
                found.push(format!("{path} is {digits}"));
            }
        }
        Value::String(text) if says(path) => {
            let nonsense = NONSENSE.iter().filter(|words| has(text, words));
            found.extend(nonsense.map(|words| format!("{path} says `{words}`: {text}")));
        }
        _ => {}
    });
    found.into_iter().map(|text| complain(Kind::Impossible, text)).collect()
}

/// Whether a text is deadweight's own, and not the name of a function or a line of source.
fn says(path: &str) -> bool {
    ["text", "note", "evidence", "remedy", "why", "warnings"]
        .iter()
        .any(|end| path.rsplit('.').next() == Some(end))
}

/// Whether a text has these words, not as the end of a longer number or the beginning of a longer word.
fn has(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].trim_end_matches(' ').chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_digit() || c == '.' || c == '-')
            && (words.starts_with("18") || !after.is_some_and(|c| c.is_alphanumeric() || c == '.'))
    })
}

fn impossible_saving(finding: &Value, wall: f64, undisturbed: f64) -> Vec<String> {
    let class = text(finding, "class");
    let [saving, amount] = ["saving_ns", "amount_ns"].map(|key| number(finding, key));
    let [low, share, high] = ["low", "saving_share", "high"].map(|key| number(finding, key));
    let mut found = Vec::new();
    // A server's busy time is in the same field.
    if undisturbed > 0.0 && saving > undisturbed * 1.001 {
        found.push(format!("{class} saves {saving} ns of {undisturbed} undisturbed ns"));
    }
    if amount > wall * 1.001 {
        found.push(format!("{class} is {amount} ns of {wall} ns"));
    }
    let near = 1e-6;
    if low > share + near || share > high + near || high > 1.0 + near {
        found.push(format!(
            "{class} saves {share}, which is not within {low} to {high}, or above 1"
        ));
    }
    found
}

/// How often a call is in the notes of the ledger; none if it is in no note.
fn calls(report: &Value, call: &str) -> Option<u64> {
    let notes = list(report, "ledger").iter().map(|row| text(row, "note"));
    let counts: Vec<u64> = notes.flat_map(|note| times(note, call)).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// The numbers of calls in a note: `CALL ×1 215`, or `CALL ×1 215 of 2 000` where only so many were on the path. Their
/// thousands are separated by spaces.
fn times(note: &str, call: &str) -> Vec<u64> {
    let sign = format!("{call} ×");
    let starts = note
        .match_indices(&sign)
        .filter(|(at, _)| !note[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let counts = starts.filter_map(|(at, _)| {
        let rest = &note[at + sign.len()..];
        let (on_path, after) = leading(rest);
        after.strip_prefix("of ").and_then(|all| leading(all).0).or(on_path)
    });
    counts.collect()
}

/// The number that a text begins with, and the rest.
fn leading(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && !c.is_whitespace()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.split_whitespace().collect::<String>().parse().ok(), rest)
}

#[cfg(test)]
mod tests;
