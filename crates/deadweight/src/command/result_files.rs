//! Files of benchmark programs as results: Go's text, JSON of Google Benchmark, criterion and hyperfine, directories of
//! criterion. Their formats are in `deadweight_report::benchmarks`.

use crate::failure::Failure;
use deadweight_report::benchmarks::{Results, Unusable, encoding, go, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// Larger files, in bytes, are not read as results: ten million measurements fit into it.
const LARGEST: u64 = 64 << 20;
/// Levels of criterion's directories that are searched.
const DEEPEST: u32 = 8;

/// The results in a file or directory of a benchmark program; `None` if it is something else.
pub(super) fn results(path: &Path) -> Result<Option<Results>, Failure> {
    let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // No program has such a name.
        Err(source) if kind == "txt" && !path.to_string_lossy().contains(' ') => {
            return Err(Failure::Read { path: path.to_owned(), source });
        }
        Err(_) => return Ok(None),
    };
    let said = |Unusable(why)| Failure::Unknown(format!("{} {why}", path.display()));
    if path.starts_with("/dev/fd") && meta.file_type().is_fifo() {
        return piped(path).map(Some);
    }
    let readable = ["json", "txt", "dwt"].contains(&kind);
    if meta.file_type().is_fifo() || readable && !meta.is_dir() && !meta.is_file() {
        let why = "is a pipe or a device: save it as a file first";
        return Err(Failure::Unknown(format!("{} {why}", path.display())));
    }
    if kind != "dwt"
        && meta.is_file()
        && meta.len() > LARGEST
        && meta.permissions().mode() & 0o111 == 0
    {
        return Err(Failure::Unknown(format!(
            "{} is {} MB large: results of benchmarks and reports are read up to {} MB",
            path.display(),
            meta.len() >> 20,
            LARGEST >> 20
        )));
    }
    match kind {
        _ if meta.is_dir() => directory(path).map(Some),
        "dwt" => Ok(None),
        "json" => json::read(&text(path)?, &criterion_name(path)).map_err(said),
        _ if !meta.is_file() || meta.permissions().mode() & 0o111 != 0 => Ok(None),
        _ => {
            let bytes =
                fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
            let text = encoding::text(&bytes);
            let benchmarks = text.lines().any(|line| line.starts_with("Benchmark"));
            if !benchmarks && kind != "txt" {
                return Ok(None);
            }
            go::read(&text).map(Some).map_err(said)
        }
    }
}

/// Reads the pipe of a shell's `<(...)`, which can be read only once.
fn piped(path: &Path) -> Result<Results, Failure> {
    let failure = |source| Failure::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failure)?;
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failure)?;
    let text = encoding::text(&bytes);
    let read = match text.trim_start().starts_with('{') {
        true => json::read(&text, "").map(Option::unwrap_or_default),
        false => go::read(&text),
    };
    read.map_err(|Unusable(why)| Failure::Unknown(format!("{} {why}", path.display())))
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    Ok(encoding::text(&bytes))
}

/// All samples of criterion under a directory. If a benchmark has several (`base`, `new`, ...), only
/// the newest one is read, unless the directory is one of these itself.
fn directory(path: &Path) -> Result<Results, Failure> {
    let mut results = Results { kind: "criterion", ..Results::default() };
    search(path, DEEPEST, true, &mut results)?;
    if results.measured.is_empty() {
        return Err(Failure::Unknown(format!(
            "{} is a directory without results of criterion (sample.json)",
            path.display()
        )));
    }
    Ok(results)
}

fn search(dir: &Path, deep: u32, top: bool, results: &mut Results) -> Result<(), Failure> {
    let failure = |source| Failure::Read { path: dir.to_owned(), source };
    let sample = dir.join("sample.json");
    if sample.is_file() {
        let newest = dir.file_name().is_some_and(|name| name == "new");
        let newer = dir.with_file_name("new").join("sample.json").is_file();
        if top || newest || !newer {
            let read = json::read(&text(&sample)?, &criterion_name(&sample));
            let said = |Unusable(why)| Failure::Unknown(format!("{} {why}", sample.display()));
            results.measured.extend(read.map_err(said)?.unwrap_or_default().measured);
        }
    }
    let mut dirs: Vec<_> = fs::read_dir(dir)
        .map_err(failure)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    dirs.sort();
    if deep > 0 {
        dirs.iter().try_for_each(|dir| search(dir, deep - 1, false, results))?;
    }
    Ok(())
}

/// criterion's name of the benchmark with this sample: from the file beside it, or the directory
/// above.
fn criterion_name(sample: &Path) -> String {
    let recorded = || -> Option<String> {
        let beside = fs::read_to_string(sample.with_file_name("benchmark.json")).ok()?;
        let value: serde_json::Value = serde_json::from_str(&beside).ok()?;
        Some(value.get("full_id")?.as_str()?.to_owned())
    };
    let above = || Some(sample.parent()?.parent()?.file_name()?.to_string_lossy().into_owned());
    recorded().or_else(above).unwrap_or_default()
}
