//! Layout, verdicts and warnings by example, and error rates by simulation. Not for the statistics of one cell; see `sample`.

use super::*;
use crate::benchmarks::go;
use crate::stats::random::Random;

fn sides(texts: &[&str]) -> Vec<(String, Results)> {
    texts.iter().zip('a'..).map(|(t, name)| (name.to_string(), go::read(t).unwrap())).collect()
}

fn laid(texts: &[&str]) -> Tables {
    lay_out(&sides(texts), &Layout::default()).unwrap()
}

fn series(name: &str, base: f64, count: u32) -> String {
    let line = |i: u32| format!("Benchmark{name} 9 {} ns/op\n", base * (1.0 + f64::from(i) * 1e-3));
    (0..count).map(line).collect()
}

fn verdicts(tables: &Tables) -> Vec<Verdict> {
    tables.changes().map(|(_, change)| change.verdict).collect()
}

#[test]
fn a_difference_is_shown_if_significant_and_material() {
    let old = [series("Up", 100.0, 10), series("Down", 100.0, 10), series("Bit", 100.0, 10)];
    let new = [series("Up", 200.0, 10), series("Down", 50.0, 10), series("Bit", 100.9, 10)];
    let tables = laid(&[&old.concat(), &new.concat()]);
    // A difference of 0.9 % is sure enough for benchstat, and too small for deadweight.
    let expected = [Verdict::Worse, Verdict::Better, Verdict::NoDifference];
    assert_eq!(verdicts(&tables), expected);
    let printed: Vec<_> = tables.changes().map(|(_, c)| c.printed.as_str()).collect();
    assert_eq!(printed, ["+100.00%", "-50.00%", "+0.90%"]);
}

#[test]
fn the_more_rows_the_more_measurements_are_needed() {
    let two = |base| -> String { series("A", base, 5) + &series("B", base, 5) };
    let alone = laid(&[&series("A", 100.0, 5), &series("A", 200.0, 5)]);
    assert_eq!(verdicts(&alone), [Verdict::Worse]);
    assert_eq!(alone.measurements_needed(), None);
    let both = laid(&[&two(100.0), &two(200.0)]);
    assert_eq!(verdicts(&both), [Verdict::CannotTell; 2]);
    assert_eq!(both.measurements_needed(), Some(6));
    // More values of an unmeasured time do not help.
    let nothing = laid(&[&series("A", 100.0, 9), &"BenchmarkA 1 0 ns/op\n".repeat(9)]);
    assert_eq!(verdicts(&nothing), [Verdict::CannotTell]);
    assert_eq!(nothing.measurements_needed(), None);
}

#[test]
fn kinds_of_run_and_units_have_tables_of_their_own() {
    let old = "pkg: p\nBenchmarkX 1 5 ns/op 7 B/op\npkg: q\nBenchmarkX 1 5 ns/op\n";
    let tables = laid(&[old, old]);
    let kinds: Vec<_> =
        tables.tables.iter().map(|t| (t.config[0].1.as_str(), t.unit.as_str())).collect();
    assert_eq!(kinds, [("p", "sec/op"), ("p", "B/op"), ("q", "sec/op")]);
    let together = Layout { ignore: vec![Key::Config("pkg".into())], ..Layout::default() };
    let tables = lay_out(&sides(&[old, old]), &together).unwrap();
    assert_eq!(tables.tables.len(), 2);
}

#[test]
fn exact_units_need_one_measurement() {
    let unit = "Unit text-bytes assume=exact\n";
    let [old, new] = [100, 90].map(|v| format!("{unit}BenchmarkX 1 {v} text-bytes\n"));
    let tables = laid(&[&old, &new]);
    assert_eq!(verdicts(&tables), [Verdict::Better]);
    assert_eq!(tables.changes().next().unwrap().1.printed, "-10.00%");
}

#[test]
fn the_only_benchmarks_of_two_files_are_compared_whatever_they_are_called() {
    let tables = laid(&[&series("Old", 100.0, 8), &series("New", 50.0, 8)]);
    assert_eq!(verdicts(&tables), [Verdict::Better]);
    assert_eq!(tables.tables[0].rows[0].name, SOLE);
}

#[test]
fn sides_with_nothing_in_common_are_refused() {
    let refused = |a: &str, b: &str| lay_out(&sides(&[a, b]), &Layout::default()).unwrap_err().0;
    let two = "BenchmarkX 1 5 ns/op\nBenchmarkY 1 5 ns/op\n";
    let units = refused(two, &two.replace("ns/op", "MB/s"));
    assert_eq!(units, "a measures sec/op, b measures B/s: there is nothing to compare");
    let names = refused(two, "BenchmarkU 1 5 ns/op\nBenchmarkV 1 5 ns/op\n");
    assert!(names.contains("no benchmark of b is in a"), "{names}");
}

#[test]
fn runs_of_different_kinds_are_not_compared_and_a_warning_says_so() {
    let two = |note: &str| format!("note: {note}\n{}", series("X", 5.0, 6) + &series("Y", 5.0, 6));
    let tables = laid(&[&two("on"), &two("off")]);
    assert_eq!(tables.changes().count(), 0);
    assert!(tables.warnings[0].contains("`note`"), "{:?}", tables.warnings);
}

#[test]
fn drift_is_a_warning() {
    let mut text = String::new();
    for i in 0..20 {
        text += &format!("BenchmarkX 1 {} ns/op\n", if i < 10 { 100 + i } else { 150 + i });
    }
    let tables = laid(&[&text, &series("X", 100.0, 20)]);
    assert!(tables.warnings.iter().any(|w| w.contains("a, X: ")), "{:?}", tables.warnings);
}

#[test]
fn a_table_of_alike_benchmarks_raises_alarms_at_the_significance_level() {
    let mut random = Random::new(19);
    let (mut plain, mut alarms) = (0, 0);
    for _ in 0..300 {
        let mut side = || -> String {
            let line = |i: u32| {
                // Noise of 5 %: differences by chance are large enough to be spoken of.
                let value = 100.0 * (1.0 + 0.05 * -random.uniform().ln());
                format!("BenchmarkB{} 9 {value} ns/op\n", i % 10)
            };
            (0..80).map(line).collect()
        };
        let tables = laid(&[&side(), &side()]);
        plain += i32::from(tables.changes().any(|(_, change)| change.p < ALPHA));
        alarms += i32::from(verdicts(&tables).iter().any(|v| *v != Verdict::NoDifference));
    }
    assert!(alarms <= 3, "{alarms} of 300 tables");
    assert!(plain > 10, "without the correction there would be many: {plain}");
}
