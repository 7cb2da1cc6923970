//! Commands that build a program and then run it (`go test`): choice of the process that is meant.
//!
//! `go test -bench .` compiles and links for seconds and then runs the benchmark. The user asks about the
//! process that was built, not the build. The command is known by name; the process by where its file lies:
//! tools are installed, a new build is not. Wrappers in general are a hazard and have `--of`.

use crate::path::Subject;
use crate::timeline::Timeline;
use deadweight_report::wording::time;
use deadweight_trace::Trace;

/// What was built and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// As [`Weighing::of`](crate::Weighing::of) takes it.
    pub of: String,
    /// A note for the reader: whose time it is, and how to choose otherwise.
    pub said: String,
}

/// Tools that build and run, with their verbs; without verbs: they run any program given to them.
const RUNNERS: &[(&str, &[&str])] = &[
    ("go", &["test", "run"]),
    ("cargo", &["bench", "run", "r", "test", "t", "nextest", "criterion"]),
    ("zig", &["build", "run", "test"]),
    ("crystal", &["run", "spec"]),
    ("shards", &["run"]),
    ("swift", &["run", "test"]),
    ("dub", &["run", "test"]),
    ("bazel", &["run", "test"]),
    ("cabal", &["run", "bench", "test"]),
    ("stack", &["run", "bench", "test"]),
    ("dune", &["exec", "test"]),
    ("nim", &["r"]),
    ("make", &[]),
    ("gmake", &[]),
    ("ninja", &[]),
    ("just", &[]),
    ("ctest", &[]),
];

/// Where tools are installed; a new build lies elsewhere.
const INSTALLED: &[&str] = &["/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/", "/snap/"];

/// Where users install them.
const INSTALLED_IN: &[&str] = &[
    "/.rustup/",
    "/.cargo/bin/",
    "/.local/",
    "/.pyenv/",
    "/.rbenv/",
    "/.asdf/",
    "/.nvm/",
    "/.sdkman/",
    "/mise/",
    "/pkg/tool/",
    "/toolchain",
    "ziglang",
    "/go/bin/",
];

/// Programs that are built in order to build another, and tools in caches.
const ON_THE_WAY: &[&str] = &[
    "build-script-build",
    "build-script-main",
    "rustc",
    "cargo",
    "go",
    "zig",
    "compile",
    "link",
    "asm",
    "cgo",
    "vet",
    "buildid",
    "cover",
    "pack",
    "test2json",
    "sh",
    "bash",
    "dash",
    "env",
    "cc",
    "gcc",
    "clang",
    "ld",
    "python3",
];

/// The process that the command built and ran, if it is such a command and there was one.
#[must_use]
pub fn built(trace: &Trace) -> Option<Built> {
    let runner = runner(&trace.meta.command)?;
    let timeline = Timeline::build(trace);
    // By the file's name: its directory may change in every run.
    let mut names: Vec<&str> = timeline
        .tasks
        .iter()
        .filter(|task| task.own && task.tid == task.process)
        .flat_map(|task| task.execs.iter().map(|(_, path)| trace.symbols.name(*path)))
        .filter(|path| is_built(path))
        .map(|path| path.rsplit('/').next().unwrap_or(path))
        .collect();
    names.sort_unstable();
    names.dedup();
    let subjects = names.iter().filter_map(|name| {
        let subject = Subject::choose(trace, &timeline, Some(name)).ok()?;
        let cpu = subject.candidates.iter().find(|c| c.taken)?.cpu;
        Some((cpu, *name, subject))
    });
    let (_, name, subject) = subjects.max_by_key(|(cpu, ..)| *cpu)?;
    let whole = Subject::choose(trace, &timeline, None).ok()?;
    let others = match names.len() {
        1 => String::new(),
        n => format!(", of {n} programs the one with most CPU time"),
    };
    let root = timeline.task(timeline.root);
    let first = root.execs.first().map_or("", |(_, path)| trace.symbols.name(*path));
    Some(Built {
        of: name.to_owned(),
        said: format!(
            "the wall time is that of {name}{others}, which `{runner}` built and ran: it lived {} of the {}. \
             --of {} weighs all of it, --of NAME another process",
            time(subject.end - subject.start),
            time(whole.end - whole.start),
            first.rsplit('/').next().unwrap_or(first),
        ),
    })
}

/// The name of a command that builds and runs: `go test`; none for any other.
fn runner(command: &[String]) -> Option<String> {
    let words: Vec<&str> = match command {
        [shell, flag, line] if shell.ends_with("sh") && flag == "-c" => {
            // Stages of a pipeline each have their own clock.
            if line.contains(['|', ';', '&', '\n']) {
                return None;
            }
            line.split_whitespace().skip_while(|word| *word == "exec").collect()
        }
        words => words.iter().map(String::as_str).collect(),
    };
    let mut words = words.into_iter().skip_while(|word| word.contains('='));
    let first = words.next()?;
    let mut tool = first.rsplit('/').next().unwrap_or(first);
    if tool.starts_with("python") {
        tool = words.find(|word| *word == "ziglang").map(|_| "zig")?;
    }
    let (tool, verbs) = RUNNERS.iter().find(|(name, _)| *name == tool)?;
    if verbs.is_empty() {
        return Some((*tool).to_owned());
    }
    let verb = words.find(|word| !word.starts_with(['-', '+']))?;
    let source = *tool == "crystal" && verb.ends_with(".cr");
    (source || verbs.contains(&verb)).then(|| format!("{tool} {verb}"))
}

fn is_built(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let installed = INSTALLED.iter().any(|dir| path.starts_with(dir))
        || INSTALLED_IN.iter().any(|dir| path.contains(dir));
    // Zig compiles the build script.
    let script = name == "build" && path.contains("zig-cache");
    path.contains('/') && !installed && !script && !ON_THE_WAY.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(line: &str) -> Option<String> {
        runner(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_that_build_and_run_are_known_by_tool_and_verb() {
        assert_eq!(called("go test -bench . ./...").as_deref(), Some("go test"));
        assert_eq!(called("/usr/bin/cargo +nightly bench").as_deref(), Some("cargo bench"));
        assert_eq!(called("RUSTFLAGS=-g cargo run --release").as_deref(), Some("cargo run"));
        assert_eq!(called("python3 -m ziglang build run").as_deref(), Some("zig build"));
        assert_eq!(called("crystal --release fib.cr").as_deref(), Some("crystal fib.cr"));
        for other in ["go build ./...", "cargo build", "./evm", "python3 x.py", "zig fmt ."] {
            assert_eq!(called(other), None, "{other}");
        }
        let shell = |line: &str| runner(&["/bin/sh".into(), "-c".into(), line.into()]);
        assert_eq!(shell("exec go run . < in").as_deref(), Some("go run"));
        assert_eq!(shell("xxd -r -p | zig build run"), None);
    }

    #[test]
    fn a_built_program_is_distinguished_from_tools_by_its_folder() {
        for path in [
            "/tmp/go-build12/b001/fib.test",
            "u/p/target/release/deps/fib-0f",
            "u/.cache/crystal/crystal-run-fib.tmp",
            "./zig-out/bin/evm",
            "u/p/.zig-cache/o/12ab/evm",
        ] {
            assert!(is_built(path), "{path}");
        }
        for path in [
            "/usr/local/go/pkg/tool/linux_amd64/compile",
            "u/.rustup/toolchains/stable/bin/rustc",
            "u/p/target/release/build/libc-0f/build-script-build",
            "u/p/.zig-cache/o/12ab/build",
            "/usr/lib/python3/dist-packages/ziglang/zig",
            "u/.pyenv/libexec/pyenv-exec",
            "gcc",
        ] {
            assert!(!is_built(path), "{path}");
        }
    }

    #[test]
    fn the_benchmark_is_the_subject_and_not_the_build() {
        let text = "command go test -bench .
            task 1 go
                 0 on
                10 fork 2
                20 fork 3
                30 off blocked wait4
               990 on woken-by 3
               995 exit
              1000 off dead
            task 2 go
                12 on
                14 exec /usr/local/go/pkg/tool/linux_amd64/compile
               600 exit
               601 off dead
            task 3 go
               610 on
               612 exec /tmp/go-build1/b001/fib.test
               900 exit
               901 off dead";
        let trace = Trace::from_text(text).unwrap();
        let built = built(&trace).unwrap();
        assert_eq!(built.of, "fib.test");
        assert!(
            built.said.contains("`go test` built and ran: it lived 289 ns of"),
            "{}",
            built.said
        );
    }
}
