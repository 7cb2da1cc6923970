//! Files of benchmark programs as sides: of all kinds, and what cannot be compared.

use crate::support::{Bench, Said, deadweight, said};
use std::path::Path;

fn compare(directory: &Path, words: &str) -> Said {
    let words = words.split_whitespace();
    said(&deadweight().current_dir(directory).arg("compare").args(words).output().unwrap())
}

/// Ten lines of Go's output for one benchmark.
fn go(name: &str, base: u32) -> String {
    (0..10).map(|i| format!("Benchmark{name} 9 {} ns/op\n", base + i % 5)).collect()
}

fn hyperfine(command: &str, base: f64) -> String {
    let times: Vec<f64> = (0..10).map(|i| base * (1.0 + f64::from(i) * 1e-3)).collect();
    format!("{{\"results\": [{{\"command\": \"{command}\", \"mean\": 0, \"times\": {times:?}}}]}}")
}

fn criterion(base: f64) -> String {
    let iters: Vec<f64> = (1..=20).map(f64::from).collect();
    let times: Vec<f64> = iters.iter().map(|i| i * (base + i % 3.0)).collect();
    format!("{{\"sampling_mode\": \"Linear\", \"iters\": {iters:?}, \"times\": {times:?}}}")
}

fn google(base: f64) -> String {
    let run = |i: u32| {
        let (time, cpu) = (base + f64::from(i), base / 2.0 + f64::from(i));
        format!(
            "{{\"name\": \"BM_sort/8\", \"run_type\": \"iteration\", \"iterations\": 10, \
             \"real_time\": {time}, \"cpu_time\": {cpu}, \"time_unit\": \"ns\"}}"
        )
    };
    let runs: Vec<String> = (0..10).map(run).collect();
    format!("{{\"context\": {{}}, \"benchmarks\": [{}]}}", runs.join(", "))
}

#[test]
fn all_kinds_of_files_are_compared_with_their_like() {
    let bench = Bench::new();
    for (name, factor) in [("a", 1.0), ("b", 2.0)] {
        bench.file(&format!("h-{name}.json"), hyperfine("ls", 0.01 * factor));
        bench.file(&format!("c-{name}.json"), criterion(100.0 * factor));
        bench.file(&format!("g-{name}.json"), google(1000.0 * factor));
    }
    bench.file("o-a.txt", go("X", 100));
    bench.file("o-b.txt", go("X", 200));
    let dir = bench.path("");
    for (kind, row) in [("h", "ls"), ("c", "sec/op"), ("g", "BM_sort/8")] {
        let slower = compare(&dir, &format!("{kind}-a.json {kind}-b.json"));
        assert_eq!(slower.code, 1, "{kind}: {}{}", slower.out, slower.err);
        assert!(slower.out.contains(row) && slower.out.contains("slower"), "{}", slower.out);
        assert!(slower.out.contains("p=0.000 n="), "{}", slower.out);
        let faster = compare(&dir, &format!("{kind}-b.json {kind}-a.json"));
        assert!(faster.code == 0 && faster.out.contains("faster"), "{}", faster.out);
        let same = compare(&dir, &format!("-n old -n new {kind}-a.json {kind}-a.json"));
        assert_eq!(same.code, 0, "{}{}", same.out, same.err);
        assert!(
            same.out.contains("│ old") && same.out.contains("~ no significant"),
            "{}",
            same.out
        );
    }
    assert_eq!(compare(&dir, "o-a.txt o-b.txt").code, 1);
    // Times per operation are comparable across benchmark programs.
    assert_eq!(compare(&dir, "o-a.txt c-b.json").code, 1);
}

#[test]
fn criterions_directory_is_searched_and_its_benchmarks_named() {
    let bench = Bench::new();
    let write = |place: &str, base: f64, id: &str| {
        let dir = bench.path(place);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("sample.json"), criterion(base)).unwrap();
        let name = format!("{{\"full_id\": \"{id}\"}}");
        std::fs::write(dir.join("benchmark.json"), name).unwrap();
    };
    for (top, base) in [("old", 100.0), ("now", 50.0)] {
        write(&format!("{top}/group/fib/new"), base, "group/fib 20");
        write(&format!("{top}/group/fib/base"), 7.0, "group/fib 20");
        write(&format!("{top}/sum/new"), 300.0, "sum");
    }
    let dir = bench.path("");
    let both = compare(&dir, "old now");
    assert_eq!(both.code, 0, "{}{}", both.out, both.err);
    assert!(both.out.contains("group/fib 20") && both.out.contains("n=20"), "{}", both.out);
    assert!(both.out.contains("1 better of 2 shown"), "{}", both.out);
    let one = compare(&dir, "old/group/fib/base old/group/fib/new");
    assert!(one.code == 1 && one.out.contains("slower"), "{}{}", one.out, one.err);
    let empty = compare(&dir, ". empty");
    assert_eq!(empty.code, 2, "{}", empty.err);
}

#[test]
fn operations_per_second_of_one_file() {
    let bench = Bench::new();
    bench.file("all.txt", go("Slow", 3000) + &go("Fast", 1000) + &go("Twin", 1000));
    let said = compare(&bench.path(""), "--ips all.txt");
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().map(str::trim).collect();
    assert!(lines[1].starts_with("Fast") && lines[1].ends_with("fastest"), "{lines:?}");
    assert!(lines[1].contains("998.0 k op/s   1.002 µs/op"), "{lines:?}");
    assert!(lines[2].starts_with("Twin") && lines[2].contains("~"), "{lines:?}");
    assert!(lines[3].starts_with("Slow") && lines[3].ends_with("3.00 × slower"), "{lines:?}");
}

/// One sentence, exit code 2 and no result.
fn refused(directory: &Path, words: &str, sentence: &str) {
    let said = compare(directory, words);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{words}: {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{words}: {}", said.err);
    assert!(said.err.contains(sentence), "{words}: {}", said.err);
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_sentence() {
    let bench = Bench::new();
    bench.file("go.txt", go("X", 100) + &go("Y", 100));
    bench.file("other.txt", go("U", 100) + &go("V", 100));
    bench.file("bytes.txt", go("X", 100).replace("ns/op", "MB/s"));
    bench.file("nan.txt", "BenchmarkX 1 NaN ns/op\n");
    bench.file("empty.txt", "");
    bench.file("fine.json", hyperfine("ls", 1.0));
    bench.file("nan.json", "{\"results\": [{\"command\": \"ls\", \"times\": [NaN]}]}");
    bench.file("empty.json", "{\"results\": []}");
    bench.file("means.json", "{\"results\": [{\"command\": \"ls\", \"mean\": 1}]}");
    bench.file("estimates.json", "{\"mean\": {\"point_estimate\": 1}}");
    let dir = bench.path("");
    refused(&dir, "go.txt bytes.txt", "there is nothing to compare");
    refused(&dir, "go.txt other.txt", "no benchmark of other.txt is in go.txt");
    refused(&dir, "go.txt fine.json", "go.txt measures sec/op, fine.json measures sec");
    refused(&dir, "go.txt nan.txt", "line 1 is left out: ns/op of X is NaN");
    refused(&dir, "go.txt empty.txt", "empty.txt holds no measurements");
    refused(&dir, "empty.txt empty.txt", "holds no measurements");
    refused(&dir, "go.txt absent.txt", "cannot read absent.txt");
    refused(&dir, "fine.json nan.json", "NaN");
    refused(&dir, "fine.json empty.json", "no measurements");
    refused(&dir, "fine.json means.json", "no times");
    refused(&dir, "fine.json estimates.json", "sample.json");
    refused(
        &dir,
        "go.txt true",
        "go.txt holds results of a benchmark program, but `true` does not",
    );
    refused(&dir, "--ips true true", "--ips is only for result files");
    refused(&dir, "--fail-if B>3% go.txt go.txt", "compared with a share");
    refused(&dir, "--fail-if C>A go.txt go.txt", "no report is called `C`");
    refused(&dir, "--fail-if B.gc>3% go.txt go.txt", "have no ledger");
    refused(&dir, "--fail-if B.allocs/op>A true true", "is a unit of benchmark programs");
}

#[test]
fn what_took_no_time_is_compared_with_nothing() {
    let bench = Bench::new();
    bench.file("zero.txt", "BenchmarkX 1 0 ns/op\n".repeat(9));
    bench.file("go.txt", "BenchmarkX 1 900 ns/op\n".repeat(9));
    let said = compare(&bench.path(""), "zero.txt go.txt");
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    assert!(said.out.contains("was not measured"), "{}", said.out);
    let failing = compare(&bench.path(""), "--fail-if B>A*0.5 go.txt go.txt");
    assert_eq!(failing.code, 0, "{}", failing.err);
}

#[test]
fn one_run_each_shows_nothing() {
    let bench = Bench::new();
    bench.file("a.txt", "BenchmarkX 1 100 ns/op\n");
    bench.file("b.txt", "BenchmarkX 1 900 ns/op\n");
    let said = compare(&bench.path(""), "a.txt b.txt");
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    assert!(said.out.contains("cannot tell") && said.out.contains("-count 5"), "{}", said.out);
    assert!(!said.out.contains("% ("), "no difference in numbers: {}", said.out);
}
