//! `scan`: planted costs are found in the slow form of a program and not in the fast one; damaged files end in a sentence.

use crate::support::{Bench, run, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a source with these words; none if the compiler is missing, with a message.
fn built(bench: &Bench, name: &str, source: &str, words: &[&str]) -> Option<PathBuf> {
    let (source, program) = (bench.file(name, source), bench.path("built"));
    let program = program.with_extension(words.join("").replace(['/', ' '], ""));
    let mut compile = Command::new(words[0]);
    compile.args(&words[1..]).arg("-o").arg(&program).arg(&source).env("GOFLAGS", "-mod=mod");
    match compile.output() {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(program)
        }
        Err(why) => {
            eprintln!("SKIPPED {name}: {} is not here ({why})", words[0]);
            None
        }
    }
}

fn scanned(words: &[&Path]) -> Value {
    let words = ["scan", "--json"].iter().map(Path::new).chain(words.iter().copied());
    let said = run(&words.collect::<Vec<_>>());
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// The candidates of a kind in a function whose name ends like this, as (line, loops, amount).
fn of(json: &Value, kind: &str, function: &str) -> Vec<[u64; 3]> {
    let candidates = json["candidates"].as_array().unwrap().iter();
    let wanted = candidates.filter(|c| {
        c["kind"] == kind && c["function"].as_str().is_some_and(|name| name.ends_with(function))
    });
    wanted.map(|c| ["line", "loops", "amount"].map(|field| c[field].as_u64().unwrap())).collect()
}

const IN_C: &str = r#"#include <string.h>
struct big { long v[40]; };
#define APART __attribute__((noinline, noclone))
APART long use(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); return 1; }
#ifdef SLOW
APART long taken(struct big b) { return b.v[3] + b.v[30]; }
APART long copies(struct big *all, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += taken(all[i]);
    return sum;
}
APART long clears(int n) {
    char line[8192];
    long sum = 0;
    for (int i = 0; i < n; i++) { memset(line, 0, sizeof line); sum += use(line); }
    return sum;
}
APART void counts(long *count, int n) { for (int i = 0; i < n; i++) __atomic_fetch_add(count, 1, 0); }
APART long get(const long *v, long i) { return v[i]; }
APART long divides(const long *v, long n, long by) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += v[i] % by;
    return sum;
}
__attribute__((optimize("O0"))) long slowly(long a, long b) {
    long sum = 0;
    for (long i = 0; i < b; i++) { sum += a * i; sum ^= b; sum += a - b; sum |= i; }
    return sum;
}
#else
APART long taken(const struct big *b) { return b->v[3] + b->v[30]; }
APART long copies(struct big *all, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += taken(all + i);
    return sum;
}
APART long clears(int n) {
    char line[8192];
    long sum = 0;
    for (int i = 0; i < n; i++) { line[0] = 0; sum += use(line); }
    return sum;
}
APART void counts(long *count, int n) { for (int i = 0; i < n; i++) { *count += 1; use(count); } }
static long get(const long *v, long i) { return v[i]; }
APART long divides(const long *v, long n, long by) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += v[i] & (by - 1);
    return sum;
}
APART long slowly(long a, long b) {
    long sum = 0;
    for (long i = 0; i < b; i++) { sum += a * i; sum ^= b; sum += a - b; sum |= i; }
    return sum;
}
#endif
APART long gets(const long *v, int rows, int n) {
    long sum = 0;
    for (int i = 0; i < rows; i++) for (int j = 0; j < n; j++) sum += get(v, i * n + j) * j;
    return sum;
}
int main(int n, char **a) {
    static struct big all[100];
    long count = 0;
    counts(&count, n);
    return copies(all, n) + clears(n) + count + gets(all[0].v, n, n) + divides(all[0].v, n, n) + slowly(n, count);
}
"#;

#[test]
fn what_is_planted_in_c_is_found_in_the_slow_form_only() {
    let bench = Bench::new();
    let words = ["gcc", "-O2", "-g", "-fno-ipa-sra"];
    let Some(fast) = built(&bench, "fast.c", IN_C, &words) else { return };
    let Some(slow) = built(&bench, "slow.c", IN_C, &[&words[..], &["-DSLOW"]].concat()) else {
        return;
    };
    let [slow_json, fast_json] = [&slow, &fast].map(|program| scanned(&[program]));
    for (kind, function, line, loops, amount) in [
        ("struct-copies", "copies", 9, 1, 320),
        ("zeroing", "clears", 15, 1, 8192),
        ("atomics", "counts", 18, 1, 1),
        ("missed-inlining", "gets", 58, 2, 2),
        ("division", "divides", 22, 1, 1),
    ] {
        assert_eq!(
            of(&slow_json, kind, function),
            [[line, loops, amount]],
            "{kind}: {slow_json:#}"
        );
        assert!(of(&fast_json, kind, function).is_empty(), "{kind}: {fast_json:#}");
    }
    let build = |json| of(json, "unoptimised-build", "slowly").len();
    assert_eq!([build(&slow_json), build(&fast_json)], [1, 0]);
    // Side by side: all of it went.
    let both = scanned(&[&slow, &fast]);
    let went: Vec<&str> =
        both["went"].as_array().unwrap().iter().filter_map(|c| c["kind"].as_str()).collect();
    for kind in
        ["struct-copies", "zeroing", "atomics", "missed-inlining", "division", "unoptimised-build"]
    {
        assert!(went.contains(&kind), "{kind}: {both:#}");
    }
}

const IN_RUST: &str = r#"
#[inline(never)]
fn smooth(from: &[f64], to: &mut [f64], n: usize) {
    for i in 1..n {
        to[i] = if SLOW { from[i - 1] + from[i] } else { 0.0 };
    }
    let n = n.min(from.len()).min(to.len());
    for (a, b) in from[..n].iter().zip(&mut to[..n]) {
        *b += a;
    }
}
fn main() {
    let n = std::env::args().count();
    let (from, mut to) = (vec![1.0; n], vec![0.0; n]);
    smooth(&from, &mut to, n);
    println!("{}", to[0]);
}
"#;

#[test]
fn checks_that_a_loop_makes_are_found_in_rust() {
    let bench = Bench::new();
    let words = ["rustc", "-O", "-g", "--edition", "2021"];
    let slow = format!("const SLOW: bool = true;{IN_RUST}");
    let fast =
        slow.replace("true", "false").replace("for i in 1..n", "for i in 1..n.min(to.len())");
    let Some(slow) = built(&bench, "slow.rs", &slow, &words) else { return };
    let json = scanned(&[&slow]);
    let found = of(&json, "bounds-checks", "smooth");
    assert!(
        !found.is_empty() && found.iter().all(|[line, loops, _]| (*line, *loops) == (5, 1)),
        "{json:#}"
    );
    let Some(fast) = built(&bench, "fast.rs", &fast, &words) else { return };
    let json = scanned(&[&fast]);
    assert!(of(&json, "bounds-checks", "smooth").is_empty(), "{json:#}");
}

const IN_GO: &str = r#"package main

type item struct {
	id  int
	log [40]int
}

var kept *item

//go:noinline
func escapes(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		one := &item{id: i}
		kept = one // the line before allocates
		sum += one.id
	}
	return sum
}

//go:noinline
func stays(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		one := &item{id: i}
		sum += one.id
	}
	return sum
}

//go:noinline
func ranges(all []item) int {
	sum := 0
	for _, one := range all {
		if one.id > 3 {
			sum += one.log[one.id&31]
		}
	}
	return sum
}

//go:noinline
func indexes(all []item) int {
	sum := 0
	for i := range all {
		if one := &all[i]; one.id > 3 {
			sum += one.log[one.id&31]
		}
	}
	return sum
}

func main() {
	all := make([]item, 9)
	println(escapes(9), stays(9), ranges(all), indexes(all), kept.id)
}
"#;

#[test]
fn escapes_and_copies_are_found_in_go() {
    let bench = Bench::new();
    let Some(program) = built(&bench, "main.go", IN_GO, &["go", "build"]) else { return };
    let json = scanned(&[&program]);
    assert_eq!(of(&json, "allocation", "main.escapes"), [[14, 1, 1]], "{json:#}");
    assert!(of(&json, "allocation", "main.stays").is_empty());
    // A loop of its own in newer versions of Go, which leaves a rest of less than 16 bytes.
    let copies = of(&json, "struct-copies", "main.ranges");
    assert!(matches!(copies[..], [[34, 1 | 2, 320..=328]]), "{json:#}");
    assert!(of(&json, "struct-copies", "main.indexes").is_empty());
    // The runtime is left out, and is there when asked for.
    assert!(json["binary"]["left_out"].as_u64().unwrap() > 100);
    let all = run(&[Path::new("scan"), Path::new("--libraries"), Path::new("--all"), &program]);
    assert!(all.out.contains("runtime.mallocgc"), "{}", all.out);
}

#[test]
fn every_form_says_that_candidates_are_no_findings() {
    let bench = Bench::new();
    let words = ["gcc", "-O2", "-g", "-fno-ipa-sra", "-DSLOW"];
    let Some(program) = built(&bench, "slow.c", IN_C, &words) else { return };
    let table = run(&[Path::new("scan"), &program]);
    assert!(table.out.contains("a run shows"), "{}", table.out);
    assert!(table.out.contains("slow.c:22  divides"), "{}", table.out);
    let sarif = run(&[Path::new("scan"), Path::new("--sarif"), &program]);
    let sarif: Value = serde_json::from_str(&sarif.out).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["level"] == "note"));
    let rules: Vec<&Value> = results.iter().map(|result| &result["ruleId"]).collect();
    assert!(rules.contains(&&Value::from("division")) && rules.contains(&&Value::from("atomics")));
}

const FLOATS: &str = r"#define APART __attribute__((noinline))
APART void adds(float *y, const float *x, float a, int n) {
    for (int i = 0; i < n; i++) y[i] += a * x[i];
}
APART double sums(const double *x, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i];
    return sum;
}
APART double gathers(const double *x, const int *at, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[at[i]];
    return sum;
}
APART double column(const double *x, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i * 40];
    return sum;
}
int main(int n, char **a) {
    static float x[100], y[100];
    static double z[4000];
    static int at[100];
    adds(y, x, 2, n);
    return sums(z, n) + gathers(z, at, n) + column(z, n) + y[0];
}
";

#[test]
fn floats_one_by_one_are_found_unless_the_compiler_takes_several() {
    let bench = Bench::new();
    let sum = [7, 1, 1];
    for (words, elements, sums) in [
        (&["-O1"][..], vec![[3, 1, 2]], vec![sum]),
        (&["-O2", "-fno-tree-vectorize", "-mavx2", "-mfma"], vec![[3, 1, 2]], vec![sum]),
        (&["-O3", "-mavx2"], vec![], vec![sum]),
        (&["-O3", "-mavx2", "-ffast-math"], vec![], vec![]),
        (&["-O0"], vec![], vec![]),
    ] {
        let words = [&["gcc", "-g"], words].concat();
        let Some(program) = built(&bench, "floats.c", FLOATS, &words) else { return };
        let json = scanned(&[&program]);
        let of = |function| of(&json, "scalar-floats", function);
        assert_eq!(of("adds"), elements, "{words:?} {json:#}");
        // GCC may unroll the sum.
        let alike = |found: Vec<[u64; 3]>| found.iter().map(|[line, ..]| *line).collect::<Vec<_>>();
        assert_eq!(alike(of("sums")), alike(sums), "{words:?} {json:#}");
        assert!(of("gathers").is_empty() && of("column").is_empty(), "{words:?} {json:#}");
    }
    let Some(program) = built(&bench, "floats.c", FLOATS, &["gcc", "-g", "-O1"]) else { return };
    let json = scanned(&[&program]);
    let all = json["candidates"].as_array().unwrap().iter();
    let texts: Vec<&str> = all
        .filter(|c| c["kind"] == "scalar-floats" && c["floats"]["fit"].is_u64())
        .filter_map(|c| c["text"].as_str())
        .collect();
    assert_eq!(texts, ["1 float at a time, 8 fit", "1 double at a time, 4 fit: a sum"]);
    let said = run(&["explain", "scalar-floats"]);
    assert!(said.out.contains("Go never vectorises"), "{}", said.out);
}

const FLOATS_IN_GO: &str = r#"package main

import "os"

//go:noinline
func dot(x, y []float32) float32 {
	var sum float32
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

//go:noinline
func gather(x []float64, at []int) float64 {
	sum := 0.0
	for _, i := range at {
		sum += x[i]
	}
	return sum
}

func main() {
	x := make([]float32, len(os.Args))
	println(dot(x, x), gather(make([]float64, 9), make([]int, 9)))
}
"#;

#[test]
fn floats_one_by_one_are_found_in_go() {
    let bench = Bench::new();
    let Some(program) = built(&bench, "main.go", FLOATS_IN_GO, &["go", "build"]) else { return };
    let json = scanned(&[&program]);
    assert_eq!(of(&json, "scalar-floats", "main.dot"), [[9, 1, 2]], "{json:#}");
    assert!(of(&json, "scalar-floats", "main.gather").is_empty());
}

/// The end of deadweight with this file: 0 or 2, and with 2 one sentence.
fn survives(file: &Path) -> i32 {
    let mut command = crate::support::deadweight();
    let said = said(&command.args([Path::new("scan"), file]).output().unwrap());
    assert!([0, 2].contains(&said.code), "{}: {said:?}", file.display());
    if said.code == 2 {
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.out.is_empty() && said.err.starts_with("deadweight: "), "{said:?}");
    }
    said.code
}

#[test]
fn damaged_and_foreign_files_end_in_a_sentence() {
    let bench = Bench::new();
    for (name, content, why) in [
        ("text", b"#!/bin/sh\necho\n".as_slice(), "is not an ELF file"),
        ("empty", b"", "is not an ELF file"),
        ("short", b"\x7fELF\x02\x01\x01", "ELF file"),
    ] {
        let said = run(&[Path::new("scan"), &bench.file(name, content)]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(why), "{}", said.err);
    }
    assert!(run(&["scan", "/nowhere/prog"]).err.contains("cannot read /nowhere/prog"));
    assert!(run(&["scan", "/"]).code == 2);
    let words = ["gcc", "-O2", "-g"];
    let Some(program) = built(&bench, "fast.c", IN_C, &words) else { return };
    let sound = std::fs::read(&program).unwrap();
    let refused = (0..50).filter(|n| {
        let part = &sound[..sound.len() * n / 50];
        survives(&bench.file("cut", part)) == 2
    });
    assert!(refused.count() > 40);
    let mut number = 7_usize;
    for _ in 0..100 {
        let mut damaged = sound.clone();
        for _ in 0..8 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Half of the damage is in the headers, where it has most effect.
            let places = if number & 1 << 40 == 0 { 64 + 13 * 56 } else { damaged.len() };
            damaged[(number >> 16) % places] = u8::try_from(number >> 41 & 255).unwrap();
        }
        survives(&bench.file("flipped", &damaged));
    }
}
