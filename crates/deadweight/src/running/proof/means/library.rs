//! A library that is loaded before the program's others, with other versions of some functions (`deadweight-preload`).

use super::{About, Effect, Folder, Sides};
use crate::running::series::RunOptions;
use deadweight_preload::{LOADED, Library};
use deadweight_report::report::{Means, Preloaded};
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(super) const ABOUT: About = About {
    means: Means::Library,
    classes: &[
        "allocation",
        "memory-churn",
        "network-turns",
        "repeated-syscalls",
        "tiny-reads",
        "tiny-writes",
        "wait-cpu",
        "wait-disk",
        "wait-sleep",
    ],
    how: "LD_PRELOAD of a small library: an allocator that never gives memory back, buffers for small reads and writes, the first answer for each later stat or access of the same path, unmapped memory for the next mapping, TCP_NODELAY \
          and TCP_QUICKACK, short sleeps in place of sched_yield, files opened without O_SYNC, or waits whose \
          time-out comes at once, with clocks that run ahead by as much; the other side loads an empty one",
    besides: "where memory lies, when writes reach their file and whether they are durable, which clocks and changes of files a program sees; not for \
              static programs, Go's, and calls inside the C library",
    noticed: "output, exit status, CPU time, memory; a program that does not load it is not judged",
};

const PRELOAD: &str = "LD_PRELOAD";
const NOT_LOADED: &str = "the program does not load it: it is static, or has privileges of its own";
const NOTHING_WAITED: &str = "none of them could wait: between any two of its small calls the program makes others that may depend on them";

/// The sides: an empty library, or the one that leaves the cost out.
pub(super) fn sides(
    library: Preloaded,
    options: &RunOptions,
    folder: &Folder,
) -> Result<Sides, String> {
    let library = match library {
        Preloaded::Allocator => Library::Allocator,
        Preloaded::Answers => Library::Answers,
        Preloaded::Buffers => Library::Buffers,
        Preloaded::Durable => Library::Durable,
        Preloaded::Maps => Library::Maps,
        Preloaded::Sockets => Library::Sockets,
        Preloaded::TimeOuts => Library::TimeOuts,
        Preloaded::Yields => Library::Yields,
    };
    let with = loading(Library::Nothing, options, folder, None)?;
    let file = folder.path().join("loaded");
    let without = loading(library, options, folder, Some(&file))?;
    let idle = (library == Library::Buffers).then_some(NOTHING_WAITED);
    let effect = Some(Effect { file, otherwise: NOT_LOADED, idle });
    Ok(Sides { effect, ..Sides::new(with, without) })
}

/// The command with this library; it writes a byte to `loaded` when it is loaded.
pub(super) fn loading(
    library: Library,
    options: &RunOptions,
    folder: &Folder,
    loaded: Option<&Path>,
) -> Result<RunOptions, String> {
    if library.bytes().is_empty() && library != Library::Nothing {
        return Err("there is no such library for this processor".into());
    }
    let path = folder
        .file(library.file_name(), library.bytes())
        .map_err(|error| format!("cannot write a library to load: {error}"))?;
    let mut side = options.clone();
    side.changes.environment.push((PRELOAD.into(), first(path.as_os_str())));
    if let Some(loaded) = loaded {
        side.changes.environment.push((LOADED.into(), loaded.into()));
    }
    Ok(side)
}

/// The libraries to load first: this one, and those of the user.
fn first(path: &OsStr) -> OsString {
    let mut all = path.to_owned();
    if let Some(before) = std::env::var_os(PRELOAD).filter(|before| !before.is_empty()) {
        all.push(":");
        all.push(before);
    }
    all
}
