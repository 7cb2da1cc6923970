//! Asks Go's compiler why it did not inline a function, when the user wants it: its sources are
//! compiled again, with `-m=2`, and what it says is put into the trace as data.
//!
//! Nothing that a binary names is run or built unless it lies under the current directory and is
//! the user's own (`docs/adr/0008`). Not for judging whether inlining would help: that is the
//! class `missed-inlining`.

mod says;

use deadweight_trace::Trace;
use deadweight_trace::ids::ImageId;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// All of the compiler's runs together may take so long.
const PATIENCE: Duration = Duration::from_secs(60);
/// So many packages are compiled at most.
const MOST_PACKAGES: usize = 16;
/// What the compiler says about one package is read so far.
const LONGEST: u64 = 64 << 20;

/// Puts into the traces of a command why functions of its Go programs were not inlined, and a
/// warning where that could not be found out.
pub(crate) fn ask(traces: &mut [Trace]) {
    let Some(trace) = traces.first() else { return };
    let until = Instant::now() + PATIENCE;
    let mut warnings = Vec::new();
    let packages = packages(trace, &mut warnings);
    let mut said = Vec::new();
    for package in packages.iter().take(MOST_PACKAGES) {
        match compile(package, until) {
            Ok(reasons) => said.extend(reasons),
            Err(why) => warnings.push(format!(
                "why functions of {} are not inlined is not known: {why}",
                package.folder.display()
            )),
        }
    }
    if packages.is_empty() && warnings.is_empty() {
        warnings.push(
            "--explain-inlining: no function of a Go program whose source is under this directory was seen".into(),
        );
    }
    warnings.dedup();
    for trace in traces {
        trace.meta.warnings.extend(warnings.iter().cloned());
        trace.symbols.not_inlined.extend(said.iter().cloned());
    }
}

/// A package that the program was built from.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    /// Its name in symbols: `example.org/m/sums`, `main`.
    name: String,
    folder: PathBuf,
    /// The binary.
    image: PathBuf,
}

/// The packages whose functions samples hit, as far as their sources may be compiled.
fn packages(trace: &Trace, warnings: &mut Vec<String>) -> Vec<Package> {
    let symbols = &trace.symbols;
    let mut folders: BTreeMap<(ImageId, PathBuf), (String, Vec<PathBuf>)> = BTreeMap::new();
    for location in &symbols.locations {
        let image = symbols.images.get(location.image.index());
        if image.is_none_or(|image| symbols.name(image.language) != "Go") {
            continue;
        }
        for frame in &location.frames {
            let file = PathBuf::from(symbols.name(frame.file));
            let (Some(folder), Some(package)) =
                (file.parent(), says::package(symbols.name(frame.function)))
            else {
                continue;
            };
            // Generated code has names that are no files.
            if !file.is_absolute() {
                continue;
            }
            let place = (location.image, folder.to_owned());
            let (_, files) = folders.entry(place).or_insert((package.to_owned(), Vec::new()));
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    let mut found = Vec::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((image, folder), (name, files)) in folders {
        let image = PathBuf::from(symbols.name(symbols.images[image.index()].path));
        match allowed(&folder, &files, &image) {
            Ok(true) => found.push(Package { name, folder, image }),
            Ok(false) => {}
            Err(why) => refused.entry(why).or_default().push(folder.display().to_string()),
        }
    }
    warnings.extend(refused.into_iter().map(|(why, folders)| {
        format!("why functions of {} are not inlined was not asked: {why}", folders.join(", "))
    }));
    found
}

/// Whether a folder may be compiled: below the current directory, the user's own, and not newer
/// than the binary. Elsewhere is none of our business, and no reason for words.
fn allowed(folder: &Path, files: &[PathBuf], image: &Path) -> Result<bool, String> {
    let here = std::env::current_dir().and_then(fs::canonicalize).map_err(|e| e.to_string())?;
    let Ok(real) = fs::canonicalize(folder) else { return Ok(false) };
    let Ok(below) = real.strip_prefix(&here) else { return Ok(false) };
    let us = fs::metadata("/proc/self").map_err(|e| e.to_string())?.uid();
    let theirs = |found: &Metadata| found.uid() != us || found.mode() & 0o022 != 0;
    let mut inner = here.clone();
    let ways = std::iter::once(here.clone()).chain(below.components().map(|part| {
        inner.push(part);
        inner.clone()
    }));
    let made =
        |path: &Path| fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()));
    for path in ways.chain(files.iter().cloned()) {
        if theirs(&made(&path)?) {
            return Err(format!("others own {} or can change it", path.display()));
        }
    }
    let built = fs::metadata(image).and_then(|m| m.modified());
    let built = built.map_err(|e| format!("{}: {e}", image.display()))?;
    for file in files {
        if made(file)?.modified().is_ok_and(|changed| changed > built) {
            return Err(format!("{} has changed since the program was built", file.display()));
        }
    }
    Ok(true)
}

/// What the compiler says about a package's functions: their names in symbols, and why they were
/// not inlined, with the command that was run.
fn compile(package: &Package, until: Instant) -> Result<Vec<(String, String)>, String> {
    let read = |command: &mut Command| run(command, until);
    let made = read(Command::new("go").args(["version", "-m"]).arg(&package.image))?;
    let made = says::Build::read(&made).ok_or("its binary does not say how it was built")?;
    let here = read(Command::new("go").args(["env", "GOVERSION"]).current_dir(&package.folder))?;
    if here.trim() != made.version {
        return Err(format!("it was built by {}, and here is {}", made.version, here.trim()));
    }
    let mut arguments = vec!["build", "-gcflags=-m=2"];
    let tags = format!("-tags={}", made.tags);
    if !made.tags.is_empty() {
        arguments.push(&tags);
    }
    let mut command = Command::new("go");
    command.args(&arguments).args(["-buildvcs=false", "-o", "/dev/null", "."]);
    command.current_dir(&package.folder);
    if !made.experiments.is_empty() {
        command.env("GOEXPERIMENT", &made.experiments);
    }
    let words = read(&mut command)?;
    let here = std::env::current_dir().and_then(fs::canonicalize).unwrap_or_default();
    let folder = package.folder.strip_prefix(here).unwrap_or(&package.folder);
    let asked = format!("{}: go {} ./{}", made.version, arguments.join(" "), folder.display());
    let reasons = says::reasons(&words, &package.name);
    Ok(reasons.into_iter().map(|(name, why)| (name, format!("{why} ({asked})"))).collect())
}

/// Runs a command of `go`'s that fetches nothing, runs no other compiler and writes to its own
/// cache only. Gives what it says on both streams.
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
        // Nobody listens any more if it took too long.
        let _ = send.send(all);
    });
    let said = receive.recv_timeout(until.saturating_duration_since(Instant::now()));
    if said.is_err() {
        // It may have ended by itself just now.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| format!("go: {e}"))?;
    let (out, err) = said.map_err(|_| format!("go took more than {} s", PATIENCE.as_secs()))?;
    if status.success() {
        return Ok(out + &err);
    }
    let first = err.lines().find(|line| !line.starts_with('#')).unwrap_or("it says nothing");
    let words = command.get_args().filter_map(OsStr::to_str).collect::<Vec<_>>().join(" ");
    Err(format!("go {words}: {first}"))
}

fn drain(from: impl Read) -> String {
    let mut bytes = Vec::new();
    // What cannot be read any more was not said.
    let _ = from.take(LONGEST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_what_is_ours_and_below_this_directory_may_be_compiled() {
        let binary = std::env::current_exe().unwrap();
        // Not below it, and not there at all: none of our business.
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
