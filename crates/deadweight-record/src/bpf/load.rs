//! Loads the compiled programs, several at a time: the kernel's check of the longest takes some milliseconds.
//!
//! Does not know what the programs do; see `bpf`.

use super::object::{Object, Value};
use super::sys::LoadedProgram;
use crate::procfs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// No more threads than this: the longest program takes a third of the time of all.
const MOST_THREADS: usize = 3;

/// What a program is attached to.
#[derive(Copy, Clone, Debug)]
pub(super) enum Target {
    /// A tracepoint, by the id of its type.
    Tracepoint(u32),
    /// An event of perf.
    Event,
}

/// Loads the program of each section. `value` gives what stands for a name.
///
/// # Errors
///
/// The first of the kernel's refusals.
pub(super) fn load(
    object: &Object<'_>,
    wanted: &[(String, Target)],
    value: impl Fn(&str) -> Option<Value> + Sync,
) -> io::Result<Vec<LoadedProgram>> {
    let load_one = |(section, target): &(String, Target)| {
        let code = object.program(section, &value)?;
        match target {
            Target::Tracepoint(id) => LoadedProgram::typed_tracepoint(&code, *id),
            Target::Event => LoadedProgram::perf_event(&code),
        }
    };
    let next = AtomicUsize::new(0);
    let load_some = || {
        let mut loaded = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = wanted.get(at) else { return loaded };
            loaded.push((at, load_one(one)));
        }
    };
    let others = procfs::allowed_cpus().clamp(1, MOST_THREADS) - 1;
    let mut loaded = thread::scope(|scope| {
        let others: Vec<_> = (0..others).map(|_| scope.spawn(load_some)).collect();
        let mut loaded = load_some();
        loaded.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
        loaded
    });
    loaded.sort_by_key(|(at, _)| *at);
    loaded.into_iter().map(|(_, program)| program).collect()
}
