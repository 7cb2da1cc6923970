//! Usual targets, on each rung: a build with several jobs, and programs with a JIT compiler. They must end as
//! without deadweight, and their functions must have names.

use crate::each_rung::{on_each_rung, text};
use crate::program;
use crate::rungs::Home;
use deadweight_report::report::Report;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit code, output and report of these words, run in the folder of `home`.
fn weighed(home: &Home, wrapper: &[&str], words: &[&str]) -> ((Option<i32>, String), Report) {
    let out = home.run(wrapper, &[&["-q", "--export-json", "r.json", "--"], words].concat());
    let report = std::fs::read_to_string(home.path().join("r.json"))
        .unwrap_or_else(|e| panic!("{e}: {}", text(&out.stderr)));
    let report = Report::from_json(&report).unwrap();
    assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), report.wall_ns);
    std::fs::remove_file(home.path().join("r.json")).unwrap();
    ((out.status.code(), text(&out.stdout)), report)
}

/// The share of the wall time that is in functions with this in their name.
fn share_of(report: &Report, name: &str) -> f64 {
    report.top.iter().filter(|f| f.function.contains(name)).map(|f| f.share).sum()
}

/// The perf maps that programs leave behind; new ones are removed when the value is dropped.
struct Lists(Vec<PathBuf>);

impl Lists {
    fn there() -> Vec<PathBuf> {
        let files = std::fs::read_dir("/tmp").unwrap().flatten().map(|file| file.path());
        let is_list = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("perf-") && name.ends_with(".map")
        };
        files.filter(is_list).collect()
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for list in Self::there().iter().filter(|list| !self.0.contains(list)) {
            let _ = std::fs::remove_file(list);
        }
    }
}

const MAKEFILE: &str = "
OBJECTS = $(foreach n,$(shell seq 12),part$(n).o)
whole: main.c $(OBJECTS)
\t@gcc -o whole main.c $(OBJECTS)
part%.o:
\t@echo 'int part$*(void) { return $*; }' | gcc -x c -O2 -c -o part$*.o -
";

/// Prints the sum of all parts.
fn main_of_parts() -> String {
    let declared: String = (1..13).map(|n| format!("int part{n}(void);\n")).collect();
    let sum: Vec<_> = (1..13).map(|n| format!("part{n}()")).collect();
    let sum = sum.join(" + ");
    format!(
        "#include <stdio.h>\n{declared}int main(void) {{ printf(\"%d\\n\", {sum}); return 6; }}\n"
    )
}

#[test]
fn a_build_with_two_jobs_is_its_compilers_work() {
    let missing = ["make", "gcc"].iter().find_map(|tool| program::tool(tool).err());
    on_each_rung("build", missing, |rung, home, wrapper| {
        std::fs::write(home.path().join("Makefile"), MAKEFILE).unwrap();
        std::fs::write(home.path().join("main.c"), main_of_parts()).unwrap();
        let build = "make -s -j2; ./whole; code=$?; rm -f whole *.o; exit $code";
        let (ended, report) = weighed(home, wrapper, &["sh", "-c", build]);
        assert_eq!(ended, (Some(6), "78".to_owned()), "{rung}");
        // make waits for a turn in a pipe, and for its compilers: no input is late.
        let late = |class: &str| ["wait-input", "wait-lock", "wait-io"].contains(&class);
        let late = report.findings.iter().find(|f| late(&f.class));
        assert!(late.is_none(), "{rung}: {late:?}");
    });
}

const JAVA: &str = "public class Hot {
  static long sum(int[] of) { long s = 0; for (int x : of) s += x * 31L ^ (s >>> 3); return s; }
  public static void main(String[] none) {
    int[] of = new int[1 << 20]; for (int i = 0; i < of.length; i++) of[i] = i * 7;
    long s = 0; for (int r = 0; r < 600; r++) s += sum(of);
    System.out.println(s);
    System.exit(4);
  }
}
";

#[test]
fn methods_of_java_have_the_names_that_it_lists() {
    if let Err(reason) = program::tool("javac") {
        eprintln!("SKIPPED the names of Java's methods: {reason}");
        return;
    }
    on_each_rung("java", None, |rung, home, wrapper| {
        let _lists = Lists(Lists::there());
        std::fs::write(home.path().join("Hot.java"), JAVA).unwrap();
        let compiled = Command::new("javac").arg("Hot.java").current_dir(home.path()).status();
        assert!(compiled.unwrap().success());
        let lists = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit"];
        let java = [&["java"], &lists[..], &["-cp", ".", "Hot"]].concat();
        let plain = Command::new("java").args(&java[1..]).current_dir(home.path()).output();
        let plain = plain.unwrap();
        let attempt = || {
            let (ended, report) = weighed(home, wrapper, &java);
            assert_eq!(ended, (plain.status.code(), text(&plain.stdout)), "{rung}");
            assert_eq!(ended.0, Some(4));
            report
        };
        // Code that it discarded before its end is not in its perf map.
        let is_named = |report: &Report| share_of(report, "Hot.sum") > 0.3;
        let (mut report, mut tries) = (attempt(), 1);
        while !is_named(&report) && tries < 3 {
            (report, tries) = (attempt(), tries + 1);
        }
        let rows = &report.ledger;
        assert!(is_named(&report), "{rung}: {rows:?} {:?} {:?}", report.top, report.warnings);
    });
}

/// A Python that lists its functions while it runs: 3.12 or later.
fn python() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let versions = std::fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let own = versions.map(|version| version.path().join("bin/python3"));
    let common = ["python3.14", "python3.13", "python3.12", "python3"].map(PathBuf::from);
    let lists = |python: &PathBuf| {
        let ask = "import sys; sys.activate_stack_trampoline";
        let asked = Command::new(python).args(["-c", ask]).stderr(Stdio::null()).output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    common.into_iter().chain(own).find(lists)
}

const PYTHON: &str = "def inner(n):
    t = 0
    for i in range(n): t += i * i % 7
    return t
print(sum(inner(2000) for _ in range(2500)))
raise SystemExit(3)
";

#[test]
fn functions_of_python_have_the_names_that_it_lists() {
    let Some(python) = python() else {
        eprintln!("SKIPPED the names of Python's functions: no Python of 3.12 or later is here");
        return;
    };
    on_each_rung("python", None, |rung, home, wrapper| {
        let _lists = Lists(Lists::there());
        let python = python.to_str().unwrap();
        // What lies in a folder of root's cannot be run by a user.
        if rung == "user" && Path::new(python).is_absolute() {
            return;
        }
        std::fs::write(home.path().join("hot.py"), PYTHON).unwrap();
        let words = ["record", "-q", "-o", "t.dwt", "--", python, "-X", "perf", "hot.py"];
        let out = home.run(wrapper, &words);
        let ended = (out.status.code(), text(&out.stdout));
        assert_eq!(ended, (Some(3), "9997500".to_owned()), "{rung}: {}", text(&out.stderr));
        let dump = home.run(&["env"], &["dump", "--text", "t.dwt"]);
        let dump = String::from_utf8_lossy(&dump.stdout);
        let samples = || dump.lines().filter(|line| line.contains(" sample "));
        // Its interpreter is the innermost function, below those that it interprets.
        let named = samples().filter(|line| line.contains("py::inner ")).count();
        assert!(named * 2 > samples().count(), "{rung}: {named} of {}", samples().count());
    });
}
