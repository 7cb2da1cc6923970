//! `ci`: its verdicts on real programs, its exit status, and what it writes for those who read it in a job.

use crate::support::{Bench, Said, deadweight, live, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations that allocate and compute; `PLANT`: one more allocation of each.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noipa)) static unsigned long operation(int i) {
    char *a = malloc(64); __asm__ volatile("" : : "r"(a) : "memory");
    memset(a, i, 64);
#ifdef PLANT
    char *b = malloc(32); /* planted */
    __asm__ volatile("" : : "r"(b) : "memory");
    free(b);
#endif
    unsigned long s = a[7];
    for (int k = 0; k < 20000; k++) s = s * 6364136223846793005ul + k;
    free(a);
    return s;
}
int main(void) {
    unsigned long s = 0;
    for (int i = 0; i < 400; i++) s += operation(i);
    return s == 1;
}
#ifdef VERSION
__attribute__((used)) static const char version[] = VERSION;
#endif
"#;

/// Builds it; each version and build-id is another.
fn build(bench: &Bench, name: &str, more: &[&str]) -> PathBuf {
    let source = bench.file("work.c", PROGRAM);
    let out = bench.path(name);
    let id = format!(
        "-Wl,--build-id=0x{}",
        name.bytes().map(|b| format!("{b:02x}")).collect::<String>()
    );
    let version = format!("-DVERSION=\"{name}\"");
    let done = Command::new("gcc")
        .args(["-O2", "-g", &version, &id, "-o"])
        .arg(&out)
        .arg(source)
        .args(more)
        .status();
    assert!(done.unwrap().success());
    out
}

fn ci(bench: &Bench, words: &[&str]) -> Said {
    let mut command = deadweight();
    command.args(["ci", "--width", "200"]).args(words).current_dir(bench.path("."));
    said(&command.env_remove("GITHUB_ACTIONS").output().unwrap())
}

fn judgements(json: &Path) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

#[test]
fn one_more_allocation_per_operation_is_red_at_its_line_and_can_be_accepted() {
    live!();
    let bench = Bench::new();
    build(&bench, "base", &[]);
    build(&bench, "head", &["-DPLANT"]);
    let words = ["--base", "./base", "--head", "./head", "--budget", "2s"];
    let files = ["--export-json", "j.json", "--comment", "c.md", "--sarif", "s.sarif"];
    let red = ci(&bench, &[&words[..], &files].concat());
    assert_eq!(red.code, 1, "{}{}", red.out, red.err);
    assert!(red.out.contains("WORSE  head: allocations grew by 100 %"), "{}", red.out);
    let found = &judgements(&bench.path("j.json"))[0];
    let change = &found["changes"][0];
    assert_eq!(
        (change["name"].as_str(), change["row"].as_str()),
        (Some("allocations"), Some("allocation"))
    );
    assert_eq!(
        (change["head"].as_f64(), change["sites"][0]["line"].as_u64()),
        (Some(800.0), Some(8)),
        "{change}"
    );
    assert_eq!(found["confirmed"], true);
    let comment = std::fs::read_to_string(bench.path("c.md")).unwrap();
    assert!(comment.contains("## 🔴 head: allocations grew by 100 %"), "{comment}");
    let sarif: Value =
        serde_json::from_slice(&std::fs::read(bench.path("s.sarif")).unwrap()).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 8, "{sarif}");
    // As the text itself says.
    let rule = red.out.lines().skip_while(|line| !line.contains("[[accepted]]")).map(str::trim);
    let rule = rule
        .collect::<Vec<_>>()
        .join("\n")
        .replace("...", "names are kept")
        .replace("20YY-MM-DD", "2999-01-01");
    assert!(rule.contains("count = \"allocated-bytes\""), "of each change: {rule}");
    bench.file("deadweight.toml", rule);
    let accepted = ci(&bench, &words);
    assert_eq!(accepted.code, 0, "{}{}", accepted.out, accepted.err);
    assert!(accepted.out.contains("accepted until 2999-01-01: names are kept"), "{}", accepted.out);
}

#[test]
fn another_build_of_the_same_source_is_green_and_the_same_build_is_not_run() {
    live!();
    let bench = Bench::new();
    let base = build(&bench, "base", &[]);
    build(&bench, "next", &[]);
    let green = ci(
        &bench,
        &["--base", "./base", "--head", "./next", "--budget", "2s", "--export-json", "j.json"],
    );
    assert_eq!(green.code, 0, "{}{}", green.out, green.err);
    let found = judgements(&bench.path("j.json"));
    let steady = found[0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c["name"] == "allocations" && c["base"] == 400.0);
    assert!(steady, "allocations were judged: {found:?}");
    std::fs::copy(base, bench.path("copy")).unwrap();
    // The note with a longer build-id moves what comes after it.
    build(&bench, "moved", &["-DVERSION=\"base\"", "-Wl,--build-id=sha1", "-w"]);
    for head in ["./copy", "./moved"] {
        let words = ["--base", "./base", "--head", head, "--export-json", "j.json", "--", "x"];
        let same = ci(&bench, &words);
        assert_eq!(same.code, 0);
        assert!(same.out.contains("no verdict can come of this"), "{head}: {}", same.out);
        assert_eq!(judgements(&bench.path("j.json"))[0]["state"], "same-program");
    }
}

/// What comes through a pipe is there for both measurements, and for each workload.
#[test]
fn piped_input_is_read_by_every_measurement() {
    live!();
    let bench = Bench::new();
    bench.file("once", "#!/bin/sh\nwhile read n; do :; done\n");
    bench.file("thrice", "#!/bin/sh\nwhile read n; do for i in 1 2 3 4 5 6; do :; done; done\n");
    let rules = "base = \"sh once\"\nhead = \"sh thrice\"\n";
    bench.file("deadweight.toml", format!("[workload.a]\n{rules}[workload.b]\n{rules}"));
    let line = format!(
        "seq 3000 | '{}' ci --budget 1s --export-json j.json >said",
        env!("CARGO_BIN_EXE_deadweight")
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(bench.path(".")).env_remove("GITHUB_ACTIONS");
    let status = command.status().unwrap();
    let text = std::fs::read_to_string(bench.path("said")).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    for found in judgements(&bench.path("j.json")) {
        assert_eq!(found["state"], "regressed", "{text}");
        assert_eq!(found["confirmed"], true);
    }
}

/// Two link orders by the parity of the seed, then the usual one: the base is as it was.
#[test]
fn link_orders_are_tried_and_the_last_one_is_the_usual() {
    live!();
    let bench = Bench::new();
    bench.file("a.c", "int a(int n) { volatile int s = 0; while (n--) s += n; return s; }\n");
    bench.file("main.c", "int a(int); int main(void) { return a(N) == 1; }\n");
    bench.file(
        "link",
        "echo \"seed=$DEADWEIGHT_SEED\" >> seeds\n\
         case $DEADWEIGHT_SEED in *[13579]) files='a.o main.o';; *) files='main.o a.o';; esac\n\
         gcc -O2 -DN=${N:-3000000} -c a.c main.c && gcc -Wl,--build-id=${ID:-0x01} -o base $files\n",
    );
    let link = |line: &str| {
        let done = Command::new("sh").args(["-c", line]).current_dir(bench.path(".")).status();
        assert!(done.unwrap().success());
    };
    link("N=3000001 ID=0x02 sh ./link && mv base head && sh ./link && cp base kept && rm seeds");
    let words = ["--base", "./base", "--head", "./head", "--budget", "2s", "--layout", "4"];
    let more = ["--relink", "sh ./link", "--export-json", "j.json"];
    let green = ci(&bench, &[&words[..], &more].concat());
    assert_eq!(green.code, 0, "{}{}", green.out, green.err);
    let seeds = std::fs::read_to_string(bench.path("seeds")).unwrap();
    let seeds: Vec<_> = seeds.lines().collect();
    assert_eq!(seeds[..4], ["seed=1", "seed=2", "seed=3", "seed=4"]);
    assert_eq!(seeds.last(), Some(&"seed="));
    link("cmp base kept");
    let noise = judgements(&bench.path("j.json"))[0]["layout"].as_f64();
    assert!(noise.is_some_and(|noise| noise > 0.0 && noise < 1.0), "{noise:?}");
    let failed = ci(&bench, &[&words[..], &["--relink", "echo no linker >&2; false"]].concat());
    assert_eq!(failed.code, 2, "{}{}", failed.out, failed.err);
    let said = "the command of --relink failed: exit status: 1 no linker";
    assert!(failed.err.contains(said), "{}", failed.err);
}

#[test]
fn what_cannot_be_judged_is_an_error_that_says_what_to_do() {
    live!();
    let bench = Bench::new();
    let nothing = ci(&bench, &["--base", "./nope", "--head", "./nope"]);
    assert_eq!(nothing.code, 2, "{}{}", nothing.out, nothing.err);
    for (words, text) in [
        (vec![], "give --base COMMAND --head COMMAND, or workloads in deadweight.toml"),
        (vec!["--base", "true", "--head", "./no-such"], "no-such"),
        (
            vec!["--base", "true", "--head", "false", "--budget", "1s"],
            "use -i to compare it anyway",
        ),
        (vec!["--base", "true"], "--head"),
        (vec!["--config", "none.toml"], "none.toml"),
    ] {
        let refused = ci(&bench, &words);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{words:?}: {}", refused.err);
        assert!(refused.err.contains(text), "{words:?}: {}", refused.err);
    }
    bench.file("deadweight.toml", "[workload.parse]\nbase = 'true'\nlimit = '2 %'\n");
    let refused = ci(&bench, &[]);
    assert!(refused.err.contains("unknown key `limit`"), "{}", refused.err);
    bench.file("deadweight.toml", "[workload.parse]\nbase = 'true'\n");
    let refused = ci(&bench, &["--workload", "pars"]);
    assert!(refused.err.contains("did you mean `parse`?"), "{}", refused.err);
}

/// A repository with the program in two commits, of which the second has more to do.
fn repository(bench: &Bench) {
    bench.file("work.c", PROGRAM);
    let script = "set -e; git init -q .; git add work.c; git -c user.name=a -c user.email=a@b commit -qm one; \
                  sed -i 's/#ifdef PLANT/#if 1/' work.c; git -c user.name=a -c user.email=a@b commit -qam two";
    let done =
        Command::new("sh").args(["-c", script]).current_dir(bench.path(".")).status().unwrap();
    assert!(done.success());
}

#[test]
fn the_action_builds_both_commits_and_annotates_the_line() {
    live!();
    let bench = Bench::new();
    repository(&bench);
    let here = bench.path(".").canonicalize().unwrap();
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci/judge");
    let folder = Path::new(env!("CARGO_BIN_EXE_deadweight")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let run = |build: &str| {
        let mut command = Command::new(&judge);
        command.current_dir(&here).env("PATH", &path).env("GITHUB_ACTIONS", "true");
        command.env("GITHUB_WORKSPACE", &here).env("GITHUB_STEP_SUMMARY", here.join("summary.md"));
        command
            .env("GITHUB_OUTPUT", here.join("output"))
            .env("DEADWEIGHT_COMMENT", here.join("comment.md"));
        command.env("DEADWEIGHT_SARIF", here.join("d.sarif")).env("INPUT_ARGUMENTS", "--budget 2s");
        said(&command.env("INPUT_BUILD", build).env("INPUT_RUN", "./work 1").output().unwrap())
    };
    let red = run("gcc -O2 -g -o work work.c");
    assert_eq!(red.code, 1, "{}{}", red.out, red.err);
    let annotation = red.out.lines().find(|line| line.starts_with("::error ")).unwrap_or_default();
    assert!(annotation.contains("file=work.c,line=8,title=work%3A allocations"), "{}", red.out);
    let read = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("output"), "verdict=regressed\n");
    assert_eq!(read("summary.md"), read("comment.md"));
    let left = Command::new("git").args(["worktree", "list"]).current_dir(&here).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&left.stdout).lines().count(),
        1,
        "the base's worktree is gone"
    );
    let broken = run("false");
    assert!(broken.code == 2 && broken.err.contains("does not build"), "{}", broken.err);
}
