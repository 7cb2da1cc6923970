//! The table of `cargo xtask wild`: a line for each program.
//!
//! Pure: from a report and its complaints to text. Does not judge; see `verdict`.

use super::json::{list, number};
use super::verdict::{Complaint, first};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The head of the table.
pub(crate) const HEAD: &str = "\
program              verdict     wall ms  undisturbed  clean  CPU/rusage  lost  saving  first finding";

/// A line.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Line {
    name: String,
    verdict: String,
    /// The numbers; none if there is no report.
    numbers: Option<Numbers>,
    /// The first finding, or why there is no report.
    words: String,
}

#[derive(Debug, PartialEq)]
struct Numbers {
    wall: f64,
    undisturbed: f64,
    /// The median of five clean runs; a server has none.
    clean: Option<f64>,
    /// The recorded CPU time without that of recording, beside what the kernel accounted to the command.
    cpu: Option<f64>,
    lost: f64,
    saving: f64,
}

impl Line {
    /// A program with a report.
    pub(crate) fn judged(
        name: &str,
        report: &Value,
        complaints: &[Complaint],
        clean: Option<Duration>,
    ) -> Self {
        let traced = |key: &str| number(report, &format!("runs.traced.{key}"));
        let cpu = traced("on_cpu_ns") / traced("rusage_ns");
        let numbers = Numbers {
            wall: number(report, "wall_ns") / 1e6,
            undisturbed: number(report, "net_ns") / 1e6,
            clean: clean.map(|time| time.as_secs_f64() * 1e3),
            cpu: cpu.is_finite().then_some(cpu),
            lost: traced("lost"),
            saving: list(report, "findings").first().map_or(0.0, |f| number(f, "saving_share")),
        };
        let worst = complaints.iter().map(|complaint| complaint.kind).min();
        Self {
            name: name.to_owned(),
            verdict: worst.map_or("ok", |kind| kind.word()).to_owned(),
            numbers: Some(numbers),
            words: first(report).unwrap_or_else(|| "none".to_owned()),
        }
    }

    /// A program that could not be recorded.
    pub(crate) fn broken(name: &str, why: &str) -> Self {
        Self { name: name.into(), verdict: "BROKEN".into(), numbers: None, words: why.into() }
    }

    /// A program whose packages are missing.
    pub(crate) fn skipped(name: &str) -> Self {
        let words = "its packages are not installed".to_owned();
        Self { name: name.into(), verdict: "SKIPPED".into(), numbers: None, words }
    }

    /// Whether it lets the suite fail.
    pub(crate) fn failed(&self) -> bool {
        !["ok", "SKIPPED"].contains(&self.verdict.as_str())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, verdict, words, .. } = self;
        write!(f, "{name:<20} {verdict:<10} ")?;
        let Some(numbers) = &self.numbers else { return write!(f, "{words}") };
        let Numbers { wall, undisturbed, clean, cpu, lost, saving } = numbers;
        let clean = clean.map_or("-".to_owned(), |clean| format!("{clean:.1}"));
        let cpu = cpu.map_or("-".to_owned(), |cpu| format!("{cpu:.2}"));
        let saving = format!("{:.1} %", saving * 100.0);
        write!(
            f,
            "{wall:>8.1} {undisturbed:>12.1} {clean:>6} {cpu:>11} {lost:>5} {saving:>7}  {words}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Kind;
    use super::*;

    const REPORT: &str = r#"{"wall_ns":20000000,"net_ns":15000000,
        "runs":{"traced":{"on_cpu_ns":11,"rusage_ns":10,"lost":0}},
        "findings":[{"class":"gc","saving_share":0.25,"sites":[]}]}"#;

    #[test]
    fn a_line_has_the_worst_complaint_and_the_numbers() {
        let report = serde_json::from_str::<Value>(REPORT).unwrap();
        let complaint = |kind| Complaint { kind, text: String::new() };
        let complaints = [complaint(Kind::Missed), complaint(Kind::WrongAccusation)];
        let clean = Some(Duration::from_millis(16));
        let line = Line::judged("node", &report, &complaints, clean);
        assert!(line.failed());
        let expected = "node                 ACCUSED        20.0         15.0   16.0        1.10     0  25.0 %  gc";
        assert_eq!(line.to_string(), expected);
        assert!(!Line::judged("node", &report, &[], None).failed());
    }

    #[test]
    fn a_broken_program_fails_and_a_skipped_one_does_not() {
        assert!(Line::broken("x", "why").failed() && !Line::skipped("x").failed());
        assert_eq!(Line::broken("x", "why").to_string(), "x                    BROKEN     why");
    }
}
