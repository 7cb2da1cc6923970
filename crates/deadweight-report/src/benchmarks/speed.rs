//! The benchmarks of one side compared with each other: operations per second, and how many times slower than the
//! fastest. Not for comparing sides; see `table`.

use super::sample::least_p;
use super::table::{Cell, Table, Tables};
use super::units::is_time;
use crate::compare::{ALPHA, MATERIAL};
use crate::stats::rank_tests::independent;

/// The benchmarks of one side, fastest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking<'t> {
    /// The side.
    pub column: &'t str,
    /// The unit of work of the times: `op`, or empty for whole runs.
    pub per: &'t str,
    /// The benchmarks.
    pub entries: Vec<Entry<'t>>,
}

/// A benchmark in a ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'t> {
    /// Its name.
    pub name: &'t str,
    /// Operations in a second.
    pub per_second: f64,
    /// Its time.
    pub time: &'t Cell,
    /// Bytes allocated per operation, if that was measured.
    pub bytes: Option<f64>,
    /// Its verdict against the fastest.
    pub standing: Standing,
}

/// The verdict on a benchmark against the fastest.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Standing {
    /// It is the fastest.
    Fastest,
    /// It is shown to take this many times as long.
    Slower(f64),
    /// It was not shown to be slower.
    Alike,
    /// There are too few measurements for a test.
    Unknown,
}

/// Ranks every column of every table of times.
#[must_use]
pub fn rank(tables: &Tables) -> Vec<Ranking<'_>> {
    let of_times = tables.tables.iter().filter(|table| is_time(&table.unit));
    of_times
        .flat_map(|table| {
            let memory = tables
                .tables
                .iter()
                .find(|other| other.unit == "B/op" && other.config == table.config);
            (0..table.columns.len()).map(move |column| ranking(table, memory, column))
        })
        .filter(|ranking| !ranking.entries.is_empty())
        .collect()
}

fn ranking<'t>(table: &'t Table, memory: Option<&'t Table>, column: usize) -> Ranking<'t> {
    let name = table.columns[column].as_str();
    let bytes = |benchmark: &str| {
        let memory = memory?;
        let at = memory.columns.iter().position(|other| other == name)?;
        let row = memory.rows.iter().find(|row| row.name == benchmark)?;
        Some(row.cells.get(at)?.as_ref()?.value)
    };
    let mut cells: Vec<(&str, &Cell)> = table
        .rows
        .iter()
        .filter_map(|row| Some((row.name.as_str(), row.cells.get(column)?.as_ref()?)))
        .filter(|(_, cell)| cell.value > 0.0)
        .collect();
    cells.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    let fastest = cells.first().map(|(_, cell)| *cell);
    let others = cells.len().saturating_sub(1);
    let entries = cells
        .iter()
        .enumerate()
        .map(|(at, (benchmark, cell))| Entry {
            name: benchmark,
            per_second: 1.0 / cell.value,
            time: cell,
            bytes: bytes(benchmark),
            standing: match fastest {
                Some(fastest) if at > 0 => standing(fastest, cell, others),
                _ => Standing::Fastest,
            },
        })
        .collect();
    Ranking { column: name, per: table.unit.strip_prefix("sec/").unwrap_or(""), entries }
}

/// Tested as one of `family` tests, with Bonferroni's correction.
fn standing(fastest: &Cell, cell: &Cell, family: usize) -> Standing {
    let (a, b) = (&fastest.measured, &cell.measured);
    let family = family as f64;
    if least_p(a.len(), b.len()) * family >= ALPHA {
        return Standing::Unknown;
    }
    let factor = cell.value / fastest.value;
    if independent(a, b) * family >= ALPHA || factor - 1.0 < MATERIAL {
        return Standing::Alike;
    }
    Standing::Slower(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::go;
    use crate::benchmarks::table::{Layout, lay_out};

    #[test]
    fn the_fastest_comes_first_and_the_others_have_factors() {
        let lines = |name: &str, base: u32| -> String {
            let line =
                |i: u32| format!("Benchmark{name} 9 {} ns/op {} B/op\n", base + i % 3, base * 2);
            (0..10).map(line).collect()
        };
        let text = [lines("Slow", 400), lines("Fast", 100), lines("Twin", 100)].concat();
        let sides = [("f".to_owned(), go::read(&text).unwrap())];
        let tables = lay_out(&sides, &Layout::default()).unwrap();
        let ranked = rank(&tables);
        let [ranking] = ranked.as_slice() else { panic!("{ranked:?}") };
        assert_eq!((ranking.column, ranking.per), ("f", "op"));
        let stands: Vec<_> = ranking.entries.iter().map(|p| (p.name, p.bytes)).collect();
        assert_eq!(stands, [("Fast", Some(200.0)), ("Twin", Some(200.0)), ("Slow", Some(800.0))]);
        assert_eq!(ranking.entries[0].standing, Standing::Fastest);
        assert_eq!(ranking.entries[1].standing, Standing::Alike);
        assert!(
            matches!(ranking.entries[2].standing, Standing::Slower(f) if (3.9..4.0).contains(&f))
        );
        assert!((ranking.entries[0].per_second - 1.0 / 101e-9).abs() < 1.0);
    }

    #[test]
    fn one_measurement_each_gives_no_ranking() {
        let text = "BenchmarkA 1 100 ns/op\nBenchmarkB 1 300 ns/op\n";
        let sides = [("f".to_owned(), go::read(text).unwrap())];
        let tables = lay_out(&sides, &Layout::default()).unwrap();
        assert_eq!(rank(&tables)[0].entries[1].standing, Standing::Unknown);
    }
}
