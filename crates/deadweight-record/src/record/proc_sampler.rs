//! Samples `/proc` while the program runs: descriptors, long waits, memory pages.

use super::Shared;
use super::priority::{Lowered, set_nice};
use crate::clock::{self, now};
use crate::perf::sys::STACK_BYTES;
use crate::procfs::executables::Executables;
use crate::procfs::memory::Memory;
use crate::procfs::waits::Waits;
use crate::procfs::{self, Descriptor, ProcSample};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

/// The shortest time between two samples, at first and later: a short program's descriptors would not be seen
/// otherwise. Until then it doubles. A sample may take a twentieth of it.
const SHORTEST_PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(25)];

/// After so many samples pages of memory are looked at in one of four only: half of the work, and they are thousands then.
const MANY: u32 = 64;

pub(super) fn sample_proc(root: u32, shared: &Shared, decoder: &Lowered) {
    shared.this_thread_records();
    // Little work, but it should be done while the wait lasts.
    set_nice(-10);
    let mut descriptors = procfs::Descriptors::default();
    let mut waits = Waits::new(STACK_BYTES as usize);
    let mut memory = Memory::default();
    let mut executables = Executables::default();
    let [mut shortest, longest] = SHORTEST_PAUSES;
    let mut pause = shortest;
    for sample in 0_u32.. {
        thread::park_timeout(pause);
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        let in_tables = descriptors.in_tables;
        let before = clock::read(libc::CLOCK_THREAD_CPUTIME_ID);
        // The decoder may hold the lock on the address space, see `run_threads`, and must not keep it.
        let was_low = decoder.lift();
        let processes = procfs::tree(root);
        shared.keep(executables.open_new(&processes));
        // The instant before: changes to a descriptor during the sample come after it.
        let at = now();
        let new = descriptors.changes(&processes);
        let waits = waits.long_waits(&processes);
        let looks = sample < MANY || sample.is_multiple_of(4);
        let pages = if looks { memory.sample(&processes) } else { Vec::new() };
        let descriptor = |(process, fd, what)| Descriptor { at, process, fd, what };
        shared.add_proc_samples(new.into_iter().map(descriptor).map(ProcSample::Descriptor));
        shared.add_proc_samples(waits.into_iter().map(ProcSample::Wait));
        shared.add_proc_samples(pages.into_iter().map(ProcSample::Page));
        if was_low {
            decoder.lower();
        }
        shortest = longest.min(2 * shortest);
        let took = clock::read(libc::CLOCK_THREAD_CPUTIME_ID) - before;
        // The tables of sockets have a limit of their own.
        let took = took - (descriptors.in_tables - in_tables);
        pause = shortest.max(20 * Duration::from_nanos(took.0));
    }
}
