//! `--explain-inlining`: Go's compiler says why it did not inline a function.
//!
//! - In: functions of a Go program, of a trace or of a scan.
//! - Out: the compiler's reasons, by function; in traces as data.
//! - Must not know: whether inlining would help; see the cost class `missed-inlining`.
//!
//! The sources are compiled again with `-m=2`; `go_output` reads the output. Nothing that a binary names is run or built
//! unless it is under the current directory and belongs to the user (`docs/adr/0008`).

mod go_output;

use deadweight_trace::Trace;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time limit of all compiler runs together.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The most packages that are compiled.
const MOST_PACKAGES: usize = 16;
/// Bytes of compiler output that are read per package.
const LONGEST: u64 = 64 << 20;

/// Adds to the traces of a command why functions of its Go programs were not inlined, and a warning where the reason
/// could not be found.
pub(crate) fn explain(traces: &mut [Trace]) {
    let Some(trace) = traces.first() else { return };
    let (reasons, mut warnings) = reasons(sampled(trace));
    if reasons.is_empty() && warnings.is_empty() {
        warnings.push(
            "--explain-inlining: samples hit no function of a Go program whose source is under this directory".into(),
        );
    }
    for trace in traces {
        trace.meta.warnings.extend(warnings.iter().cloned());
        trace.symbols.not_inlined.extend(reasons.iter().cloned());
    }
}

/// A function of a Go program.
#[derive(Copy, Clone, Debug)]
pub(crate) struct GoFunction<'a> {
    /// Its symbol.
    pub(crate) name: &'a str,
    /// The path of its source file.
    pub(crate) file: &'a str,
    /// The path of the binary that it is in.
    pub(crate) image: &'a str,
}

/// The functions of Go programs that samples hit.
fn sampled(trace: &Trace) -> impl Iterator<Item = GoFunction<'_>> {
    let symbols = &trace.symbols;
    symbols.locations.iter().flat_map(move |location| {
        let image = symbols.images.get(location.image.index());
        let image = image.filter(|image| symbols.name(image.language) == "Go");
        image.into_iter().flat_map(move |image| {
            location.frames.iter().map(move |frame| GoFunction {
                name: symbols.name(frame.function),
                file: symbols.name(frame.file),
                image: symbols.name(image.path),
            })
        })
    })
}

/// Why functions of the packages of these were not inlined, by symbol; and warnings where the reason could not be found.
pub(crate) fn reasons<'a>(
    functions: impl Iterator<Item = GoFunction<'a>>,
) -> (Vec<(String, String)>, Vec<String>) {
    let until = Instant::now() + TIME_LIMIT;
    let mut warnings = Vec::new();
    let packages = packages(functions, &mut warnings);
    let mut all_reasons = Vec::new();
    for package in packages.iter().take(MOST_PACKAGES) {
        match compile(package, until) {
            Ok(reasons) => all_reasons.extend(reasons),
            Err(why) => warnings.push(format!(
                "the reason why functions of {} are not inlined is not known: {why}",
                package.folder.display()
            )),
        }
    }
    warnings.dedup();
    (all_reasons, warnings)
}

/// A package of the program.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    /// Its name in symbols: `example.org/m/sums`, `main`.
    name: String,
    folder: PathBuf,
    /// The binary.
    image: PathBuf,
}

/// The packages of these functions, if their sources may be compiled.
fn packages<'a>(
    functions: impl Iterator<Item = GoFunction<'a>>,
    warnings: &mut Vec<String>,
) -> Vec<Package> {
    let mut folders: BTreeMap<(PathBuf, PathBuf), (String, Vec<PathBuf>)> = BTreeMap::new();
    for function in functions {
        let file = PathBuf::from(function.file);
        let package = go_output::package(function.name);
        // Generated code has file names without a file.
        let (Some(folder), Some(package), true) = (file.parent(), package, file.is_absolute())
        else {
            continue;
        };
        let place = (PathBuf::from(function.image), folder.to_owned());
        let (_, files) = folders.entry(place).or_insert((package.to_owned(), Vec::new()));
        if !files.contains(&file) {
            files.push(file);
        }
    }
    let mut found = Vec::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((image, folder), (name, files)) in folders {
        match allowed(&folder, &files, &image) {
            Ok(true) => found.push(Package { name, folder, image }),
            Ok(false) => {}
            Err(why) => refused.entry(why).or_default().push(folder.display().to_string()),
        }
    }
    warnings.extend(refused.into_iter().map(|(why, folders)| {
        format!(
            "the reason why functions of {} are not inlined was not looked for: {why}",
            folders.join(", ")
        )
    }));
    found
}

/// Whether a folder may be compiled: below the current directory, owned by the user, and not newer than the binary. A
/// folder elsewhere is skipped without a warning.
fn allowed(folder: &Path, files: &[PathBuf], image: &Path) -> Result<bool, String> {
    let here = std::env::current_dir().and_then(fs::canonicalize).map_err(|e| e.to_string())?;
    let Ok(real) = fs::canonicalize(folder) else { return Ok(false) };
    let Ok(below) = real.strip_prefix(&here) else { return Ok(false) };
    let us = fs::metadata("/proc/self").map_err(|e| e.to_string())?.uid();
    let is_foreign = |found: &Metadata| found.uid() != us || found.mode() & 0o022 != 0;
    let mut path = here.clone();
    let folders = std::iter::once(here.clone()).chain(below.components().map(|part| {
        path.push(part);
        path.clone()
    }));
    let metadata =
        |path: &Path| fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()));
    for path in folders.chain(files.iter().cloned()) {
        if is_foreign(&metadata(&path)?) {
            return Err(format!("others own {} or can change it", path.display()));
        }
    }
    let built = fs::metadata(image).and_then(|m| m.modified());
    let built = built.map_err(|e| format!("{}: {e}", image.display()))?;
    for file in files {
        if metadata(file)?.modified().is_ok_and(|changed| changed > built) {
            return Err(format!("{} has changed since the program was built", file.display()));
        }
    }
    Ok(true)
}

/// The compiler's reasons for a package: names of functions as in symbols, and why each was not inlined, with the
/// command that was run.
fn compile(package: &Package, until: Instant) -> Result<Vec<(String, String)>, String> {
    let read = |command: &mut Command| run(command, until);
    let version = read(Command::new("go").args(["version", "-m"]).arg(&package.image))?;
    let build =
        go_output::Build::read(&version).ok_or("its binary does not say how it was built")?;
    let here = read(Command::new("go").args(["env", "GOVERSION"]).current_dir(&package.folder))?;
    if here.trim() != build.version {
        return Err(format!(
            "it was built by {}, but {} is installed here",
            build.version,
            here.trim()
        ));
    }
    let mut arguments = vec!["build", "-gcflags=-m=2"];
    let tags = format!("-tags={}", build.tags);
    if !build.tags.is_empty() {
        arguments.push(&tags);
    }
    let mut command = Command::new("go");
    command.args(&arguments).args(["-buildvcs=false", "-o", "/dev/null", "."]);
    command.current_dir(&package.folder);
    if !build.experiments.is_empty() {
        command.env("GOEXPERIMENT", &build.experiments);
    }
    let output = read(&mut command)?;
    let here = std::env::current_dir().and_then(fs::canonicalize).unwrap_or_default();
    let folder = package.folder.strip_prefix(here).unwrap_or(&package.folder);
    let command_line =
        format!("{}: go {} ./{}", build.version, arguments.join(" "), folder.display());
    let reasons = go_output::reasons(&output, &package.name);
    Ok(reasons.into_iter().map(|(name, why)| (name, format!("{why} ({command_line})"))).collect())
}

/// Runs a `go` command that fetches nothing, runs no other compiler and writes only to its own cache. Returns its output
/// on both streams.
fn run(command: &mut Command, until: Instant) -> Result<String, String> {
    command
        .envs([("GOPROXY", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("go: {e}"))?;
    let (send, receive) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || {
        let all = std::thread::scope(|scope| {
            let err = scope.spawn(|| err.map(drain));
            let out = out.map(drain).unwrap_or_default();
            (out, err.join().ok().flatten().unwrap_or_default())
        });
        // The receiver is gone if it took too long.
        let _ = send.send(all);
    });
    let output = receive.recv_timeout(until.saturating_duration_since(Instant::now()));
    if output.is_err() {
        // Fails if the process has just ended.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| format!("go: {e}"))?;
    let (out, err) = output.map_err(|_| format!("go took more than {} s", TIME_LIMIT.as_secs()))?;
    if status.success() {
        return Ok(out + &err);
    }
    let first = err.lines().find(|line| !line.starts_with('#')).unwrap_or("no message");
    let words = command.get_args().filter_map(OsStr::to_str).collect::<Vec<_>>().join(" ");
    Err(format!("go {words}: {first}"))
}

fn drain(from: impl Read) -> String {
    let mut bytes = Vec::new();
    // After a read error the output ends there.
    let _ = from.take(LONGEST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_users_own_folders_below_this_directory_may_be_compiled() {
        let binary = std::env::current_exe().unwrap();
        // Elsewhere, and missing.
        assert_eq!(allowed(Path::new("/"), &[], &binary), Ok(false));
        assert_eq!(allowed(Path::new("/nowhere/at/all"), &[], &binary), Ok(false));
        let here = std::env::current_dir().unwrap();
        let folder = here.join(format!("target-inlining-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let of_mode = |mode: u32| {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            allowed(&folder, &[], &binary)
        };
        let (open, ours) = (of_mode(0o777), of_mode(0o755));
        let source = folder.join("a.go");
        fs::write(&source, "package a\n").unwrap();
        let newer = allowed(&folder, &[source], &binary);
        fs::remove_dir_all(&folder).unwrap();
        assert!(open.unwrap_err().contains("can change it"));
        assert_eq!(ours, Ok(true));
        assert!(newer.unwrap_err().contains("has changed since"));
    }
}
