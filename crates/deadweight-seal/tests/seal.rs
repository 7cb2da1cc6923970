//! Sealing real recordings: how many stacks reach the root, and how call sites are named.
//!
//! Builds its programs with the toolchains that are there; a missing toolchain, or a machine that does
//! not allow recording, is reported and skipped. Damaged files: see `hostile.rs`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what was measured, what is missing"
)]

use deadweight_record::{Plan, Request, Stream, record};
use deadweight_report::stats::proportion::proportion;
use deadweight_seal::{Detail, Files, Host, Sealer, resolve};
use deadweight_trace::ids::StackId;
use deadweight_trace::symbols::{FunctionCode, Symbols};
use deadweight_trace::{Kind, Trace};
use object::{Object, ObjectSymbol};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The share of stacks that must reach a root.
const REACHED: f64 = 0.98;

/// Fewer stacks are too few to judge.
const FEWEST: usize = 100;

/// Functions without a caller, or at the bottom of a separate stack (Go's scheduler).
const ROOTS: [&str; 16] = [
    "_start",
    "main",
    "_dl_start_user",
    "clone",
    "clone3",
    "start_thread",
    "start._start",
    "start.posixCallMainAndExit",
    "runtime.goexit",
    "runtime.rt0_go",
    "_rt0_amd64_linux",
    "_rt0_amd64",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.morestack",
    "runtime.clone",
];

/// A folder for what a test builds, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("deadweight-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    /// Builds a program of `tests/seal` with a command line in which `SOURCE` and `OUT` stand
    /// for the files; none if the toolchain is missing.
    fn build(&self, source: &str, command: &str) -> Option<PathBuf> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seal").join(source);
        let out = self.0.join("program");
        let mut words = command.split(' ').map(|word| match word {
            "SOURCE" => source.display().to_string(),
            "OUT" => out.display().to_string(),
            "-femit-bin=OUT" => format!("-femit-bin={}", out.display()),
            word => word.to_owned(),
        });
        let program = words.next().expect("a command has a name");
        let built = Command::new(&program).args(words).current_dir(&self.0).output();
        match built {
            Ok(built) if built.status.success() => Some(out),
            Ok(built) => {
                eprintln!("SKIPPED: {command}: {}", String::from_utf8_lossy(&built.stderr));
                None
            }
            Err(error) => {
                eprintln!("SKIPPED: no {program} ({error})");
                None
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Records a program; none if this machine does not allow it.
fn recorded(program: &Path, stdin: &Path) -> Option<Trace> {
    let plan = Plan::detect();
    if let Err(error) = plan.allows_recording() {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    let null = || File::options().write(true).open("/dev/null").expect("there is one");
    let request = Request {
        argv: vec![program.into()],
        stdin: Stream::File(File::open(stdin).expect("an input")),
        stdout: Stream::File(null()),
        stderr: Stream::File(null()),
        ..Request::default()
    };
    let mut sealer = Sealer::to_memory(Host::default());
    record(&request, &plan, &mut sealer).expect("the plan allows it");
    Some(sealer.into_trace())
}

/// All user stacks from the program's first instruction on.
fn user_stacks(trace: &Trace) -> Vec<StackId> {
    trace
        .events()
        .skip_while(|event| !matches!(event.kind, Kind::Exec { .. }))
        .filter_map(|event| match event.kind {
            Kind::Sample { stack, .. } | Kind::Site(stack) => Some(stack),
            _ => None,
        })
        .filter(|stack| *stack != StackId(0))
        .collect()
}

/// Whether a stack ends where one must: in a root, or just beyond a switch to a stack of the
/// scheduler's own. Of the other stack only the switch is recorded.
fn reaches_a_root(symbols: &Symbols, stack: StackId) -> bool {
    let functions: Vec<&str> = symbols.functions(stack).collect();
    let switched = functions.iter().rev().nth(1).is_some_and(|f| *f == "runtime.morestack");
    switched || functions.last().is_some_and(|f| ROOTS.contains(f))
}

/// Records `source` built by `command`; its stacks must reach a root.
fn stacks_reach_the_root(name: &str, source: &str, command: &str) {
    let folder = Folder::new(name);
    let Some(program) = folder.build(source, command) else { return };
    let Some(trace) = recorded(&program, Path::new("/dev/null")) else { return };
    let stacks = user_stacks(&trace);
    let lost: Vec<StackId> =
        stacks.iter().copied().filter(|stack| !reaches_a_root(&trace.symbols, *stack)).collect();
    let share = 1.0 - lost.len() as f64 / stacks.len() as f64;
    let examples: Vec<Vec<&str>> =
        lost.iter().take(5).map(|stack| trace.symbols.functions(*stack).collect()).collect();
    println!("{name}: {:.1} % of {}; not: {examples:?}", share * 100.0, stacks.len());
    assert!(stacks.len() >= FEWEST, "only {} stacks", stacks.len());
    // Some hundred samples give the share to about one point: the upper bound must reach the limit.
    let (_, at_most) = proportion(share, stacks.len() as u64);
    assert!(at_most >= REACHED, "only {share:.3} reach a root");
}

#[test]
fn cpp_without_frame_pointers() {
    stacks_reach_the_root("cpp", "stacks.cc", "g++ -O2 -g -fomit-frame-pointer -o OUT SOURCE");
}

#[test]
fn cpp_static_and_at_a_fixed_address() {
    let command = "g++ -O2 -fomit-frame-pointer -static -no-pie -o OUT SOURCE";
    stacks_reach_the_root("cpp-static", "stacks.cc", command);
}

#[test]
fn cpp_static_and_position_independent() {
    let command = "g++ -O2 -fomit-frame-pointer -static-pie -o OUT SOURCE";
    stacks_reach_the_root("cpp-static-pie", "stacks.cc", command);
}

#[test]
fn rust_release() {
    stacks_reach_the_root("rust", "stacks.rs", "rustc --edition 2021 -O -o OUT SOURCE");
}

#[test]
fn go() {
    stacks_reach_the_root("go", "stacks.go", "go build -o OUT SOURCE");
}

#[test]
fn go_stripped() {
    stacks_reach_the_root("go-stripped", "stacks.go", "go build -ldflags=-s -o OUT SOURCE");
}

#[test]
fn zig_release() {
    let command = "python3 -m ziglang build-exe SOURCE -O ReleaseFast -femit-bin=OUT";
    stacks_reach_the_root("zig", "stacks.zig", command);
}

#[test]
fn crystal_release() {
    let command = "crystal build --release -o OUT SOURCE";
    stacks_reach_the_root("crystal", "stacks.cr", command);
}

#[test]
fn zig_debug() {
    let command = "python3 -m ziglang build-exe SOURCE -O Debug -femit-bin=OUT";
    stacks_reach_the_root("zig-debug", "stacks.zig", command);
}

/// Records `source` built by `command`: functions that samples hit must be there as machine code,
/// and those whose names begin with the first of each pair must call the second.
fn code_is_kept(name: &str, source: &str, command: &str, calls: &[(&str, &str)]) {
    let folder = Folder::new(name);
    let Some(program) = folder.build(source, command) else { return };
    let Some(trace) = recorded(&program, Path::new("/dev/null")) else { return };
    let symbols = &trace.symbols;
    let (mut samples, mut held) = (0, 0);
    for event in trace.events() {
        let Kind::Sample { kernel: false, stack, .. } = event.kind else { continue };
        let Some(leaf) = symbols.stack(stack).first() else { continue };
        let leaf = &symbols.locations[leaf.index()];
        let path = symbols.name(symbols.images[leaf.image.index()].path);
        if path.ends_with("/program") {
            let code = symbols.code.iter().rfind(|c| c.image == leaf.image && c.addr <= leaf.addr);
            let kept = |code: &FunctionCode| leaf.addr.0 - code.addr.0 < code.bytes.len() as u64;
            samples += 1;
            held += usize::from(code.is_some_and(kept));
        }
    }
    assert!(samples >= FEWEST, "only {samples} samples");
    assert!(held as f64 / samples as f64 >= REACHED, "{command}: {held} of {samples}");
    for (function, called) in calls {
        let code = symbols.code.iter().filter(|c| symbols.name(c.name).starts_with(function));
        let targets = code.flat_map(|code| &code.targets).map(|(_, name)| symbols.name(*name));
        let targets: Vec<_> = targets.collect();
        assert!(targets.contains(called), "{command}: {function} calls {targets:?}");
    }
}

#[test]
fn code_is_kept_with_what_it_calls() {
    // A caller of what fills memory is there too: it knows how much.
    let calls = [("Leaf::work", "operator new"), ("fill", "memset")];
    for options in ["", " -static", " -no-pie -fno-plt -Wl,-z,now"] {
        let command = format!("g++ -O2{options} -o OUT SOURCE");
        code_is_kept("code", "stacks.cc", &command, &calls);
    }
}

#[test]
fn code_is_kept_of_stripped_programs() {
    code_is_kept("code-stripped", "stacks.cc", "g++ -O2 -s -o OUT SOURCE", &[("", "memset")]);
    let go = "go build -ldflags=-s -o OUT SOURCE";
    code_is_kept("code-go", "stacks.go", go, &[("", "runtime.panicBounds")]);
}

#[test]
fn code_is_kept_of_rust_and_zig() {
    let rust = "rustc --edition 2021 -O -o OUT SOURCE";
    code_is_kept("code-rust", "stacks.rs", rust, &[("", "memcpy")]);
    let zig = "python3 -m ziglang build-exe SOURCE -O ReleaseSafe -femit-bin=OUT";
    let panics = "debug.FullPanic((function 'defaultPanic')).outOfBounds";
    code_is_kept("code-zig", "stacks.zig", zig, &[("", panics)]);
}

#[test]
fn a_system_call_is_under_the_line_that_makes_it() {
    let folder = Folder::new("reader");
    let Some(program) = folder.build("reader.c", "gcc -O2 -g -o OUT SOURCE") else { return };
    let input = folder.0.join("input");
    fs::write(&input, vec![1; 20_000]).expect("a temporary file");
    let Some(trace) = recorded(&program, &input) else { return };
    let symbols = &trace.symbols;
    let mut seen = 0;
    for stack in user_stacks(&trace) {
        let frames: Vec<_> = symbols.frames(stack).map(|(_, frame)| frame).collect();
        let names: Vec<_> = frames.iter().map(|frame| symbols.name(frame.function)).collect();
        if let Some(at) = names.iter().position(|name| *name == "next_byte") {
            assert_eq!(names.get(at + 1), Some(&"main"), "{names:?}");
            if at == 1 && names[0] == "read" {
                assert!(symbols.name(frames[1].file).ends_with("tests/seal/reader.c"));
                assert_eq!(frames[1].line, 5);
                assert_eq!(symbols.source_line(frames[1]), "return (int)read(fd, byte, 1);");
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no stack shows read called by next_byte");
    let image = symbols.images.iter().find(|image| symbols.name(image.path).ends_with("/program"));
    let image = image.expect("the program was mapped");
    assert_eq!((symbols.name(image.language), image.optimised), ("C", Some(true)));
    assert!(image.has_symbols && image.has_lines && !symbols.name(image.build_id).is_empty());
}

/// The function and line that a binary gives for the address of its `next_byte`, as a text.
fn place_of_next_byte(binary: &[u8], debug: Option<&[u8]>) -> String {
    let symbols = object::File::parse(debug.unwrap_or(binary)).expect("the compiler made it");
    let address = symbols
        .symbols()
        .find(|symbol| symbol.name() == Ok("next_byte"))
        .map(|symbol| symbol.address())
        .expect("it was not inlined");
    let resolved =
        resolve(Files { binary, debug, shared: None, path: None }, &[address], Detail::Lines);
    let frame = &resolved.frames[0][0];
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    format!("{} {file}:{} {}", frame.function, frame.line, resolved.info.language)
}

#[test]
fn debug_information_is_read_in_every_form() {
    let folder = Folder::new("forms");
    for form in ["-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gz=zlib", "-gz=zlib-gnu", "-gz=zstd"] {
        let command = format!("gcc -O1 -fno-inline -g {form} -o OUT SOURCE");
        let Some(program) = folder.build("reader.c", &command) else { continue };
        let binary = fs::read(program).expect("it was built");
        assert_eq!(place_of_next_byte(&binary, None), "next_byte reader.c:4 C", "{form}");
    }
    let split = "gcc -O1 -fno-inline -g -gsplit-dwarf -o OUT SOURCE";
    let Some(program) = folder.build("reader.c", split) else { return };
    let binary = fs::read(program).expect("it was built");
    assert_eq!(place_of_next_byte(&binary, None), "next_byte reader.c:4 C", "split");
}

#[test]
fn debug_information_beside_the_binary_is_found_by_its_build_id() {
    let folder = Folder::new("beside");
    let command = "gcc -O1 -fno-inline -g -Wl,--build-id -o OUT SOURCE";
    let Some(program) = folder.build("reader.c", command) else { return };
    let debug = folder.0.join("program.debug");
    let run = |words: &[&str]| {
        let done = Command::new("objcopy").args(words).arg(&program).arg(&debug).status();
        done.is_ok_and(|status| status.success())
    };
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let split = run(&["--only-keep-debug"])
        && Command::new("objcopy")
            .args(["--strip-all", &link])
            .arg(&program)
            .status()
            .is_ok_and(|status| status.success());
    if !split {
        eprintln!("SKIPPED: no objcopy");
        return;
    }
    let (binary, separate) = (fs::read(&program), fs::read(&debug));
    let (binary, separate) = (binary.expect("it was built"), separate.expect("it was split off"));
    assert_eq!(place_of_next_byte(&binary, Some(&separate)), "next_byte reader.c:4 C");
    let input = folder.0.join("input");
    fs::write(&input, vec![1; 20_000]).expect("a temporary file");
    let Some(trace) = recorded(&program, &input) else { return };
    let seen = user_stacks(&trace).into_iter().any(|stack| {
        trace
            .symbols
            .frames(stack)
            .any(|(_, frame)| trace.symbols.name(frame.function) == "next_byte" && frame.line == 5)
    });
    assert!(seen, "the debug file beside the program was not used");
}

#[test]
fn debug_information_that_files_share_is_read() {
    let folder = Folder::new("shared");
    let command = "gcc -O1 -fno-inline -g -Wl,--build-id -o OUT SOURCE";
    let Some(program) = folder.build("reader.c", command) else { return };
    let (other, shared) = (folder.0.join("other"), folder.0.join("shared.debug"));
    fs::copy(&program, &other).expect("our own folder");
    let done = Command::new("dwz").arg("-m").args([&shared, &program, &other]).status();
    if !done.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no dwz");
        return;
    }
    let (binary, shared) = (fs::read(&program), fs::read(&shared));
    let (binary, shared) = (binary.expect("it was built"), shared.expect("dwz made it"));
    let file = object::File::parse(binary.as_slice()).expect("dwz wrote it");
    assert!(file.gnu_debugaltlink().is_ok_and(|link| link.is_some()), "nothing is shared");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok("next_byte"));
    let address = symbol.map(|symbol| symbol.address()).expect("it was not inlined");
    let files = Files { shared: Some(shared.as_slice()), ..Files::of(binary.as_slice()) };
    let resolved = resolve(files, &[address], Detail::Lines);
    let frame = &resolved.frames[0][0];
    assert_eq!((frame.function.as_str(), frame.line), ("next_byte", 4));
    assert_eq!(resolved.info.language, "C");
    let input = folder.0.join("input");
    fs::write(&input, vec![1; 20_000]).expect("a temporary file");
    let Some(trace) = recorded(&program, &input) else { return };
    let mut images = trace.symbols.images.iter();
    let image = images.rfind(|i| trace.symbols.name(i.path).ends_with("/program"));
    let language = image.map(|image| trace.symbols.name(image.language));
    assert_eq!(language, Some("C"), "what is shared was not found");
}
