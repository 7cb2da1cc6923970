//! The runs of a workload in order of time, with their rows and counts: what statistics over versions need.
//!
//! Reads one table, see `packed`. Judges nothing.

use crate::archive::Archive;
use crate::database::{Row, Value};
use crate::error::ArchiveError;
use crate::packed::Shape;
use crate::read::unpacked;
use deadweight_report::benchmarks::units::DURATIONS;
use deadweight_report::stats::median::interval_of;
use deadweight_report::tables::OURS;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Times in ns below which a whole number says too little: 0.01 % of it is a nanosecond.
const SHORT: f64 = 10_000.0;

/// A workload's runs, oldest first: in order of the times of their commits, or of when they were measured where that
/// is not known.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// One for each run.
    pub points: Vec<Point>,
    /// Runs that ended otherwise than most: they did other work, so their times say nothing of these.
    pub ended_otherwise: usize,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its id.
    pub id: String,
    /// The commit, or empty.
    pub commit: String,
    /// When the commit was made, in seconds since 1970; 0 if unknown.
    pub commit_time: i64,
    /// The branch, or empty.
    pub branch: String,
    /// Whether the source had changes that are in no commit.
    pub dirty: bool,
    /// When it was measured, in seconds since 1970.
    pub time: i64,
    /// What made it, see [`deadweight_report::tables::Origin`].
    pub kind: String,
    /// The machine: only times of the same can be compared.
    pub machine: String,
    /// The method of the ledger: only rows of the same can be compared.
    pub method: u32,
    /// Its time in ns: the median of clean runs, or the undisturbed time if there are none. Short ones of benchmarks have
    /// decimals.
    pub ns: f64,
    /// How many clean runs; 0 if `ns` is of a traced run.
    pub clean_runs: u32,
    /// The 95 % interval of the median; twice `ns` if there were no clean runs.
    pub interval: (f64, f64),
    /// The times of its clean runs in ns, as a JSON list: only a reader that pools runs needs them.
    pub clean_each: String,
    shape: Arc<Shape>,
    values: Vec<u8>,
}

impl Point {
    /// The rows of its ledger of wall time: account and nanoseconds, in order of accounts.
    pub fn rows(&self) -> impl Iterator<Item = (&str, u64)> {
        self.shape.rows(&self.values)
    }

    /// Its counts, in order of names.
    pub fn counts(&self) -> impl Iterator<Item = (&str, f64)> {
        self.shape.counts(&self.values)
    }

    /// When it stands in the series.
    #[must_use]
    pub fn moment(&self) -> i64 {
        if self.commit_time > 0 { self.commit_time } else { self.time }
    }
}

impl Archive {
    /// The runs of a workload that ended as most of its runs did, mostly with exit code 0; empty if there are none.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn series(&mut self, workload: &str) -> Result<Series, ArchiveError> {
        let shapes = self.shapes()?;
        let mut points = Vec::new();
        let mut ends: BTreeMap<i64, usize> = BTreeMap::new();
        let sql = "SELECT run, \"commit\", commit_time, branch, dirty, time, kind, machine, method, clean_runs, \
                   clean_ns, clean_low_ns, clean_high_ns, net_ns, shape, packed, clean_each_ns, exit_code \
                   FROM runs WHERE workload = $1 AND error = ''";
        self.database.each(sql, &[workload.into()], &mut |row| {
            let end = row[17].int();
            *ends.entry(end).or_default() += 1;
            points.push((end, point(row, &shapes)));
            Ok(())
        })?;
        self.refine(workload, &mut points)?;
        // Of as many, the lower code.
        let usual = ends.iter().rev().max_by_key(|(_, runs)| **runs).map(|(end, _)| *end);
        let ended_otherwise = points.iter().filter(|(end, _)| Some(*end) != usual).count();
        let usual = points.into_iter().filter(|(end, _)| Some(*end) == usual);
        let mut points: Vec<Point> = usual.map(|(_, point)| point).collect();
        // Faster than by the database, which would sort whole rows.
        points
            .sort_by(|a: &Point, b| (a.moment(), a.time, &a.id).cmp(&(b.moment(), b.time, &b.id)));
        Ok(Series { points, ended_otherwise })
    }

    /// Gives short times of benchmarks their decimals, which are in the reports alone.
    fn refine(&mut self, workload: &str, points: &mut [(i64, Point)]) -> Result<(), ArchiveError> {
        let is_short =
            |point: &Point| point.kind != OURS && point.clean_runs > 0 && point.ns < SHORT;
        let short = points.iter_mut().map(|(_, point)| point).filter(|point| is_short(point));
        let mut short: BTreeMap<String, &mut Point> =
            short.map(|point| (point.id.clone(), point)).collect();
        if short.is_empty() {
            return Ok(());
        }
        let sql = "SELECT runs.run, json FROM runs JOIN reports ON reports.run = runs.run \
                   WHERE workload = $1 AND kind <> $2 AND clean_ns < $3";
        #[expect(clippy::cast_possible_truncation, reason = "a small constant")]
        let limit = SHORT as i64;
        self.database.each(sql, &[workload.into(), OURS.into(), limit.into()], &mut |row| {
            // A damaged report leaves the time as it is: `check` finds it.
            let figures = unpacked(row[1].bytes(), "").ok().and_then(|json| figures(&json));
            if let (Some(point), Some(each)) = (short.get_mut(row[0].text()), figures) {
                let [median, low, high] = interval_of(&each);
                point.ns = median;
                point.interval = (low, high);
                point.clean_each = serde_json::to_string(&each).unwrap_or_default();
            }
            Ok(())
        })
    }

    fn shapes(&mut self) -> Result<BTreeMap<String, Arc<Shape>>, ArchiveError> {
        let rows = self.database.rows("SELECT shape, names FROM shapes", &[])?;
        let shape = |row: &Row| (row[0].text().to_owned(), Arc::new(Shape::read(row[1].text())));
        Ok(rows.iter().map(shape).collect())
    }
}

/// The times in ns that a benchmark's report has in full, if it has any.
fn figures(report_json: &[u8]) -> Option<Vec<f64>> {
    #[derive(Deserialize)]
    struct Figures {
        benchmark: BTreeMap<String, Vec<f64>>,
    }
    let mut figures: Figures = serde_json::from_slice(report_json).ok()?;
    let mut seconds = DURATIONS.iter().find_map(|unit| figures.benchmark.remove(*unit))?;
    seconds.iter_mut().for_each(|value| *value *= 1e9);
    (!seconds.is_empty()).then_some(seconds)
}

/// The run of these values, in the order of the statement.
fn point(mut row: Row, shapes: &BTreeMap<String, Arc<Shape>>) -> Point {
    let mut text = |at: usize| match std::mem::replace(&mut row[at], Value::Null) {
        Value::Text(text) => text,
        _ => String::new(),
    };
    let (id, commit, branch) = (text(0), text(1), text(3));
    let (kind, machine, shape, clean_each) = (text(6), text(7), text(14), text(16));
    let values = match std::mem::replace(&mut row[15], Value::Null) {
        Value::Bytes(bytes) => bytes,
        _ => Vec::new(),
    };
    let whole = |at: usize| row[at].int().max(0) as f64;
    let small = |at: usize| u32::try_from(row[at].int()).unwrap_or(0);
    let clean_runs = small(9);
    let (ns, interval) = match clean_runs {
        0 => (whole(13), (whole(13), whole(13))),
        _ => (whole(10), (whole(11), whole(12))),
    };
    Point {
        id,
        commit,
        commit_time: row[2].int(),
        branch,
        dirty: row[4].int() != 0,
        time: row[5].int(),
        kind,
        machine,
        method: small(8),
        ns,
        clean_runs,
        interval,
        clean_each,
        shape: shapes.get(&shape).cloned().unwrap_or_default(),
        values,
    }
}
