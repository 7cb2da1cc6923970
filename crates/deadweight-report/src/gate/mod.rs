//! Conditions on reports: a small language for people and scripts.
//!
//! - In: a condition as text, and reports by name.
//! - Out: whether it holds, and the values that were compared.
//! - Must not know: how reports are made, or exit codes.
//!
//! | condition | holds if |
//! |---|---|
//! | `slow.tiny-reads > 60 %` | that row has more than this share of the wall time |
//! | `fast.wall < 3 ms` | the wall time is below this |
//! | `B > A * 1.05` | B's wall time is above A's by more than this factor |
//! | `B.allocs/op > A.allocs/op` | of benchmark files: one row has more of this |
//! | `slow.finding = "tiny-reads @ main.zig:14"` | the best finding is of this class, at this place |
//! | `fast.finding = none` | there is no finding |
//! | `piped.hazard = "timed-the-producer"` | the measurement has this hazard |
//! | `blame(slow, fast) = "tiny-reads" > 70 %` | this row makes more than this part of the difference |
//! | `blame(slow, fast) = "allocation + gc" > 70 %` | these rows together do |
//! | `saving(slow, fast) within 10 points` | the best finding's predicted saving differs from the measured saving by at most 10 percentage points |
//!
//! `slow` and `fast` are names that the caller gave to the reports. Ids of hazards are in core `sections/hazards`.
//! Accounts that are not in a ledger are 0.

mod parse;

use crate::compare::compare;
use crate::report::{Finding, Report};
use std::collections::BTreeMap;

/// A condition, parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// One amount beside another.
    Amounts(Amount, Order, Amount),
    /// The best finding of a report matches; none: the report has no finding.
    Finding(String, Option<FindingPattern>),
    /// A report has this hazard.
    Hazard(String, String),
    /// The share that the rows of these accounts have of the difference between two reports.
    Blame([String; 2], Vec<String>, Order, f64),
    /// The first report's predicted saving is within this many points of the real one, which the second report shows.
    Saving([String; 2], f64),
}

/// An amount of time or a share, perhaps times a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Amount {
    /// The quantity.
    pub of: Quantity,
    /// Times this.
    pub factor: f64,
}

/// A quantity that conditions compare.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A report's wall time, in ns; of benchmarks, their times.
    Wall(String),
    /// Of benchmarks, their values in this unit (`B.allocs/op`).
    Metric(String, String),
    /// An account's share of a report's wall time, 0 to 1.
    Share(String, String),
    /// A time in ns.
    Time(f64),
    /// A share, 0 to 1.
    Part(f64),
}

/// Which way an amount has to differ.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The left one is smaller.
    Below,
    /// The left one is larger.
    Above,
}

/// A description that a finding may match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingPattern {
    /// Its class.
    pub class: String,
    /// The end of its file's path, or its function.
    pub place: Option<String>,
    /// Its line.
    pub line: Option<u32>,
}

/// Whether a condition holds, and the values compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it holds.
    pub holds: bool,
    /// The values compared, in words.
    pub seen: String,
}

/// Why a condition cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// It cannot be parsed.
    #[error("cannot read the condition `{condition}`: {why}")]
    Syntax {
        /// The condition.
        condition: String,
        /// What is wrong with it.
        why: String,
    },
    /// It names an unknown report.
    #[error("no report is called `{0}`")]
    Unknown(String),
    /// It compares amounts of different kinds.
    #[error("a time cannot be compared with a share, nor either with another unit")]
    Units,
    /// It uses a benchmark's unit on a report.
    #[error("`{0}` is a unit of benchmark programs, and none of the sides is a file of one")]
    NoMetric(String),
    /// It needs a ledger, which benchmarks don't have.
    #[error(
        "results of benchmark programs have no ledger: ask `B > A * 1.05`, `B.allocs/op > A.allocs/op`"
    )]
    NoLedger,
    /// No benchmark has all the quantities that it uses.
    #[error("no benchmark has all that the condition asks for")]
    NoRow,
}

/// The reports that conditions name.
pub type Reports<'r> = BTreeMap<&'r str, &'r Report>;

impl Condition {
    /// The reports that it names.
    #[must_use]
    pub fn reports(&self) -> Vec<&str> {
        match self {
            Self::Amounts(left, _, right) => {
                [left, right].into_iter().filter_map(Amount::report).collect()
            }
            Self::Finding(name, _) | Self::Hazard(name, _) => vec![name],
            Self::Blame(pair, ..) | Self::Saving(pair, _) => {
                pair.iter().map(String::as_str).collect()
            }
        }
    }

    /// Whether it needs more than wall times.
    #[must_use]
    pub fn needs_ledger(&self) -> bool {
        let share = |amount: &Amount| matches!(amount.of, Quantity::Share(..));
        match self {
            Self::Amounts(left, _, right) => share(left) || share(right),
            _ => true,
        }
    }

    /// The unit of benchmark programs that it uses, which no report has.
    #[must_use]
    pub fn benchmark_unit(&self) -> Option<&str> {
        let Self::Amounts(left, _, right) = self else { return None };
        [left, right].into_iter().find_map(|amount| match &amount.of {
            Quantity::Metric(_, unit) => Some(unit.as_str()),
            _ => None,
        })
    }

    /// Evaluates it on `reports`.
    ///
    /// # Errors
    /// If it names an unknown report, or compares a time with a share.
    pub fn evaluate(&self, reports: &Reports<'_>) -> Result<Outcome, GateError> {
        match self {
            Self::Amounts(left, order, right) => amounts(reports, left, *order, right),
            Self::Finding(name, wanted) => {
                let best = of(reports, name)?.findings.first();
                let holds = match (best, wanted) {
                    (None, None) => true,
                    (Some(best), Some(wanted)) => wanted.matches(best),
                    _ => false,
                };
                Ok(Outcome { holds, seen: best.map_or("none".into(), described) })
            }
            Self::Hazard(name, id) => {
                let ids: Vec<&str> =
                    of(reports, name)?.hazards.iter().map(|hazard| hazard.id.as_str()).collect();
                let holds = ids.contains(&id.as_str());
                Ok(Outcome {
                    holds,
                    seen: if ids.is_empty() { "none".into() } else { ids.join(", ") },
                })
            }
            Self::Blame([a, b], accounts, order, part) => {
                let found = compare((a, of(reports, a)?), (b, of(reports, b)?), false);
                let rows = found.rows.iter().filter(|row| accounts.contains(&row.account));
                let share: f64 = rows.map(|row| row.share).sum();
                let seen = format!("{} makes {:.1} % of it", accounts.join(" + "), share * 100.0);
                Ok(Outcome { holds: order.holds(share, *part), seen })
            }
            Self::Saving([a, b], points) => {
                let [slow, fast] = [of(reports, a)?, of(reports, b)?];
                let predicted = slow.findings.first().map_or(0.0, |f| f.saving_share);
                let real = 1.0 - fast.wall_ns as f64 / slow.wall_ns.max(1) as f64;
                let apart = (predicted - real) * 100.0;
                let seen = format!(
                    "predicted {:.1} %, real {:.1} %: {apart:+.1} points",
                    predicted * 100.0,
                    real * 100.0
                );
                Ok(Outcome { holds: apart.abs() <= *points, seen })
            }
        }
    }
}

fn of<'r>(reports: &Reports<'r>, name: &str) -> Result<&'r Report, GateError> {
    reports.get(name).copied().ok_or_else(|| GateError::Unknown(name.to_owned()))
}

fn amounts(
    reports: &Reports<'_>,
    left: &Amount,
    order: Order,
    right: &Amount,
) -> Result<Outcome, GateError> {
    if left.is_time() != right.is_time() {
        return Err(GateError::Units);
    }
    let (l, r) = (left.value(reports)?, right.value(reports)?);
    let shown = |value: f64| match left.is_time() {
        true => format!("{:.3} ms", value / 1e6),
        false => format!("{:.1} %", value * 100.0),
    };
    Ok(Outcome {
        holds: order.holds(l, r),
        seen: format!("{}, compared with {}", shown(l), shown(r)),
    })
}

impl Amount {
    pub(crate) fn report(&self) -> Option<&str> {
        match &self.of {
            Quantity::Wall(name) | Quantity::Share(name, _) | Quantity::Metric(name, _) => {
                Some(name)
            }
            Quantity::Time(_) | Quantity::Part(_) => None,
        }
    }

    fn is_time(&self) -> bool {
        matches!(self.of, Quantity::Wall(_) | Quantity::Time(_))
    }

    fn value(&self, reports: &Reports<'_>) -> Result<f64, GateError> {
        let value = match &self.of {
            Quantity::Time(value) | Quantity::Part(value) => *value,
            Quantity::Metric(_, unit) => return Err(GateError::NoMetric(unit.clone())),
            Quantity::Wall(name) => of(reports, name)?.wall_ns as f64,
            Quantity::Share(name, account) => {
                let report = of(reports, name)?;
                let rows = report.ledger.iter().filter(|row| row.account == *account);
                let ns: u128 = rows.map(|row| u128::from(row.ns)).sum();
                ns as f64 / report.wall_ns.max(1) as f64
            }
        };
        Ok(value * self.factor)
    }
}

impl Order {
    pub(crate) fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Below => left < right,
            Self::Above => left > right,
        }
    }
}

impl FindingPattern {
    /// Whether a finding matches, by any of its call sites.
    fn matches(&self, finding: &Finding) -> bool {
        let at = |site: &crate::report::Site| {
            let named = self.place.as_ref().is_none_or(|place| {
                let file = site.file == *place || site.file.ends_with(&format!("/{place}"));
                file || site.function == *place
            });
            named && self.line.is_none_or(|line| line == site.line)
        };
        let anywhere = self.place.is_none() && self.line.is_none();
        finding.class == self.class && (anywhere || finding.sites.iter().any(at))
    }
}

fn described(finding: &Finding) -> String {
    let places: Vec<String> = finding
        .sites
        .iter()
        .map(|site| {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            if file.is_empty() { site.function.clone() } else { format!("{file}:{}", site.line) }
        })
        .collect();
    format!("{} @ {}", finding.class, places.join(", "))
}

#[cfg(test)]
mod tests;
