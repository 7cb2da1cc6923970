//! Calls that are made twice: a cost that cannot be left out is added once more. The library does it (`deadweight-preload`).

use super::library::loading;
use super::{About, Effect, Folder, Sides};
use crate::running::series::RunOptions;
use deadweight_preload::{Library, TWICE};
use deadweight_report::report::Means;
use deadweight_trace::units::FileAddr;
use std::ffi::OsString;
use std::path::Path;

/// A static program, a library that is opened later, or copies that overlap.
const NEVER: &str = "none of these calls could be made twice";

pub(super) const ABOUT: About = About {
    means: Means::Twice,
    classes: &["buffer-copies", "rescans"],
    how: "LD_PRELOAD of a small library: calls from these places of the binary that copy, or look for the end of a text, are made \
          twice; the other side loads it too, and makes them once",
    besides: "the second call finds its data in the cache: what it takes is the least that one takes; not for static programs, Go's, and \
              calls inside of libraries",
    noticed: "output, exit status, CPU time, memory; a program in which no call is made twice is not judged",
};

/// The sides: each call once, or twice.
pub(super) fn sides(
    binary: &str,
    calls: &[FileAddr],
    options: &RunOptions,
    folder: &Folder,
) -> Result<Sides, String> {
    let file = folder.path().join("twice");
    let list: Vec<String> = calls.iter().map(|call| format!("{:x}", call.0)).collect();
    let side = |count: u8, loaded: Option<&Path>| {
        let mut side = loading(Library::Twice, options, folder, loaded)?;
        let value = OsString::from(format!("{count}:{binary}:{}", list.join(",")));
        side.changes.environment.push((TWICE.into(), value));
        Ok::<_, String>(side)
    };
    let with = side(1, None)?;
    let without = side(2, Some(&file))?;
    let effect = Some(Effect { file, otherwise: NEVER, idle: None });
    Ok(Sides { effect, ..Sides::new(with, without) })
}
