//! The comparison of two reports: whether the second is faster, by which factor, and which row explains it.
//!
//! - In: two reports, A and B.
//! - Out: a [`Comparison`]: factor, verdict, and the difference of each row.
//! - Must not know: how commands are run or how a comparison is printed.
//!
//! The rows of each ledger add up to its wall time: so the rows' differences add up exactly to the difference of the wall
//! times. The verdict comes from clean runs alone.

mod inlining_effect;
pub mod rows;

use crate::report::{Interval, Report};
use crate::stats::normal::quantile;
use crate::stats::rank_tests;
use crate::stats::ratio::{self, Factor};
use deadweight_trace::units::Ns;
pub use rows::RowDifference;
use serde::{Deserialize, Serialize};

/// The version of [`Comparison`]'s JSON form.
pub const SCHEMA: u32 = 1;
/// The significance level: a difference counts as shown if its p value is below this.
pub const ALPHA: f64 = 0.01;
/// Factors closer to 1 than this are immaterial, however significant.
pub const MATERIAL: f64 = 0.01;
/// The confidence of printed intervals.
const CONFIDENCE: f64 = 0.95;
/// Alternating runs may stop when half the width of the factor's interval is at most this.
pub const PRECISION: f64 = 0.005;
/// The least number of pairs that are run if the user gives none: enough for a significant test.
pub const FEWEST_PAIRS: usize = 10;
/// The smallest difference that [`Comparison::runs_needed`] is computed for.
pub const SMALLEST_DIFFERENCE: f64 = 0.02;

/// How one command compares with the reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The reference, A.
    pub a: Side,
    /// What is compared with it, B.
    pub b: Side,
    /// B's wall time over A's: below 1, B is faster.
    pub ratio: Ratio,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether all pairs of runs, or all runs where they do not alternate, show the same side as faster. With few runs
    /// that is no proof.
    #[serde(default)]
    pub unanimous: bool,
    /// B's median minus A's, in ns. The rows add up to it.
    pub difference_ns: i64,
    /// The difference of each row, largest first.
    pub rows: Vec<RowDifference>,
    /// The approximate number of runs of each that would show a difference of 2 %, if none was shown.
    pub runs_needed: Option<u32>,
    /// Why the two may not do the same work, in sentences. To be printed before anything else.
    #[serde(default)]
    pub unlike: Vec<String>,
    /// What the reader must know before relying on it, in sentences.
    pub warnings: Vec<String>,
}

/// One of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The command, or the name that the user gave it.
    pub name: String,
    /// Clean runs; 0 if there is only a traced run.
    pub runs: u32,
    /// Traced runs; 0 if there was none, and therefore no ledger.
    #[serde(default)]
    pub traced: u32,
    /// Median wall time with its interval.
    pub wall_ns: Interval,
    /// Median CPU time in user mode.
    pub user_ns: u64,
    /// Median CPU time in the kernel.
    pub sys_ns: u64,
}

/// A factor with its interval and its p value.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate (Hodges and Lehmann's, on logarithms).
    pub value: f64,
    /// Lower end at 95 % confidence.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability of so large a difference if there were none.
    pub p: f64,
    /// Whether runs are paired: A and B alternated.
    pub paired: bool,
}

/// The verdict on B.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Shown to be faster.
    Faster,
    /// Shown to be slower.
    Slower,
    /// No difference was shown that is both significant and material.
    NoDifference,
    /// Too few runs to show anything.
    #[default]
    CannotTell,
}

/// Compares `b` with `a`. `paired`: the n-th clean runs of both belong together, because the runs alternated.
#[must_use]
pub fn compare(a: (&str, &Report), b: (&str, &Report), paired: bool) -> Comparison {
    let sides = [side(a.0, a.1), side(b.0, b.1)];
    let series = [a.1, b.1].map(each_run);
    let (ratio, verdict) = judge(&series, paired, sides[1].wall_ns.median, sides[0].wall_ns.median);
    let difference_ns = difference(a.1.wall_ns, b.1.wall_ns);
    let [side_a, side_b] = sides;
    let runs = side_a.runs.min(side_b.runs);
    let unanimous = unanimous(&series, ratio.paired);
    // Then the headline says what few runs show.
    let few = verdict == Verdict::CannotTell && !unanimous;
    Comparison {
        schema: SCHEMA,
        runs_needed: (verdict == Verdict::NoDifference).then(|| needed(&ratio, runs)).flatten(),
        rows: rows::differences(a.1, b.1, difference_ns),
        unanimous,
        unlike: ends(a, b).into_iter().chain(parts(a, b)).collect(),
        warnings: warnings(a, b, few.then(|| fewest(ratio.paired))),
        a: side_a,
        b: side_b,
        ratio,
        verdict,
        difference_ns,
    }
}

impl Comparison {
    /// The row that explains most of the difference, in the same direction, and whose own difference is significant.
    #[must_use]
    pub fn reason(&self) -> Option<&RowDifference> {
        let towards = |row: &&RowDifference| row.share > 0.0 && !row.is_chance();
        self.rows.iter().filter(towards).max_by(|x, y| x.share.total_cmp(&y.share))
    }
}

/// A report as one of the sides of a comparison.
#[must_use]
pub fn side(name: &str, report: &Report) -> Side {
    let clean = &report.runs.clean;
    let wall_ns = if clean.count > 0 {
        let Interval { median, low, high } = clean.wall_ns;
        let [median, low, high] = [median, low, high].map(|ns| part_of(report, ns));
        Interval { median, low, high }
    } else {
        Interval { median: report.wall_ns, low: report.wall_ns, high: report.wall_ns }
    };
    Side {
        name: name.to_owned(),
        runs: clean.count,
        traced: report.runs.traced.count,
        wall_ns,
        user_ns: clean.user_ns,
        sys_ns: clean.sys_ns,
    }
}

/// The part of a clean run's time that the ledger divides: not all of it under `--of` and `--in`.
fn part_of(report: &Report, ns: u64) -> u64 {
    report.part.map_or(ns, |part| Ns(ns).part(part).0)
}

/// That part of each clean run in ns, at least 1.
fn each_run(report: &Report) -> Vec<f64> {
    let each = report.runs.clean.each_ns.iter();
    each.map(|ns| part_of(report, *ns).max(1) as f64).collect()
}

/// Whether B differs, by the clean runs.
pub fn judge(
    [a, b]: &[Vec<f64>; 2],
    paired: bool,
    b_median: u64,
    a_median: u64,
) -> (Ratio, Verdict) {
    let paired = paired && a.len() == b.len();
    let (p, found) = if paired {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
        (rank_tests::paired(&logs), ratio::of_pairs(a, b, CONFIDENCE))
    } else {
        (rank_tests::independent(a, b), ratio::of_independent(a, b, CONFIDENCE))
    };
    let plain = b_median.max(1) as f64 / a_median.max(1) as f64;
    let Factor { value, low, high } =
        found.unwrap_or(Factor { value: plain, low: plain, high: plain });
    let ratio = Ratio { value, low, high, p, paired };
    let verdict = if a.len().min(b.len()) < fewest(paired) {
        Verdict::CannotTell
    } else if p >= ALPHA || (value - 1.0).abs() < MATERIAL {
        Verdict::NoDifference
    } else if value < 1.0 {
        Verdict::Faster
    } else {
        Verdict::Slower
    };
    (ratio, verdict)
}

/// Whether one side is faster in each pair, or in all runs of both sides.
fn unanimous([a, b]: &[Vec<f64>; 2], paired: bool) -> bool {
    let all = |faster: fn(f64, f64) -> bool| match paired {
        true => a.iter().zip(b).all(|(a, b)| faster(*a, *b)),
        false => a.iter().all(|a| b.iter().all(|b| faster(*a, *b))),
    };
    a.len().min(b.len()) > 1 && (all(|a, b| a < b) || all(|a, b| a > b))
}

/// The smallest p value that so many runs of each can give.
#[must_use]
pub fn smallest_p(runs: u32, paired: bool) -> f64 {
    let n = f64::from(runs);
    let ways = match paired {
        true => 2_f64.powf(n),
        false => (1..=runs).map(f64::from).map(|k| (n + k) / k).product(),
    };
    (2.0 / ways).min(1.0)
}

/// The least number of runs of each with which the test can be significant at [`ALPHA`]: with n pairs of one sign p is
/// 2 / 2^n, with n against n values without overlap 2 / C(2n, n).
#[must_use]
pub fn fewest(paired: bool) -> usize {
    if paired { 8 } else { 5 }
}

/// Whether wall times show a difference: then the ledgers are needed to explain it.
#[must_use]
pub fn shows_difference(a: &[f64], b: &[f64], paired: bool) -> bool {
    let verdict = judge(&[a.to_vec(), b.to_vec()], paired, 1, 1).1;
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

/// Whether paired wall times give their factor with [`PRECISION`]: enough to find a difference of 2 % (simulated in the
/// tests). It does not depend on the factor itself, so that stopping by it causes no false alarms.
#[must_use]
pub fn is_precise(a: &[f64], b: &[f64]) -> bool {
    ratio::of_pairs(a, b, CONFIDENCE).is_some_and(|f| (f.high / f.low).ln() / 2.0 <= PRECISION)
}

/// The number of runs that narrows half the interval's width to the estimated difference, or to
/// [`SMALLEST_DIFFERENCE`] if that is larger. The width shrinks with the root of the number; the test uses [`ALPHA`]
/// rather than the printed confidence.
fn needed(ratio: &Ratio, runs: u32) -> Option<u32> {
    let half = (ratio.high / ratio.low).ln() / 2.0;
    let stricter = quantile(1.0 - ALPHA / 2.0) / quantile(0.5 + CONFIDENCE / 2.0);
    let wanted = SMALLEST_DIFFERENCE.ln_1p().max(ratio.value.ln().abs());
    let factor = (half * stricter / wanted).powi(2);
    let needed = (factor * f64::from(runs)).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let needed = needed.clamp(0.0, 1e6) as u32;
    (needed > runs).then_some(needed)
}

/// B's minus A's.
fn difference(a: u64, b: u64) -> i64 {
    let size = i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX);
    if b < a { -size } else { size }
}

/// A sentence if the two commands end differently.
fn ends(a: (&str, &Report), b: (&str, &Report)) -> Option<String> {
    (a.1.exit != b.1.exit).then(|| {
        format!(
            "the two end differently ({} with {}, {} with {}): they may not do the same work",
            a.0,
            ending(a.1),
            b.0,
            ending(b.1)
        )
    })
}

/// A sentence if one is about a part of its command, and the other is not about the same.
fn parts(a: (&str, &Report), b: (&str, &Report)) -> Option<String> {
    /// A process with so much of its command's time is the whole: a shell's start, or an instant at its end, is not.
    const NEARLY_ALL: f64 = 0.95;
    let part = |report: &Report| match &report.inside {
        Some(inside) => format!("what is under {}", inside.function),
        None if report.part.is_some_and(|part| part < NEARLY_ALL) => {
            format!("the process {}", report.subject.name)
        }
        None => "the whole command".into(),
    };
    let (of_a, of_b) = (part(a.1), part(b.1));
    (of_a != of_b).then(|| {
        format!("{} is about {of_a}, and {} about {of_b}: they do not do the same work", a.0, b.0)
    })
}

/// What limits the result, in sentences. `fewest`: the runs that are needed, if there are fewer.
fn warnings(a: (&str, &Report), b: (&str, &Report), fewest: Option<usize>) -> Vec<String> {
    let mut warnings = Vec::new();
    let of_a = a.1.hazards.iter().map(|hazard| (a.0, hazard));
    for (name, hazard) in of_a.chain(b.1.hazards.iter().map(|hazard| (b.0, hazard))) {
        let line = format!("{name}: {}", hazard.text);
        if !warnings.contains(&line) {
            warnings.push(line);
        }
    }
    if let Some(fewest) = fewest {
        let few = match a.1.runs.clean.count.min(b.1.runs.clean.count) {
            0 => {
                let both = a.1.runs.clean.count == b.1.runs.clean.count;
                let none = if both { "neither of them has a" } else { "one of them has no" };
                format!("{none} clean run, too few to tell a difference from chance")
            }
            1 => "one clean run of each is too few to tell a difference from chance".to_owned(),
            runs => {
                format!("{runs} clean runs of each are too few to tell a difference from chance")
            }
        };
        // First: no other warning matters as much.
        warnings.insert(0, format!("{few}: compare the commands with `-r {fewest}` or more"));
    }
    warnings
}

fn ending(report: &Report) -> String {
    match report.exit.signal {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", report.exit.code),
    }
}

#[cfg(test)]
mod tests;
