//! What a calibration's child does: calls, first touches, round trips between processes, births, work on memory.
//!
//! Does not know whether it is recorded; see `calibrate`.

use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::timing::{TRIES, best};
use std::hint::black_box;
use std::ptr;

pub(super) const PAGES: u64 = 60;
/// Bytes of a page, at least.
const PAGE: usize = 4096;
const ROUNDS: u64 = 16;
/// Bytes of memory that the child walks through before an event: more than any of its CPU's caches holds but the last.
const WALK: usize = 4 << 20;
/// Bytes of which it uses a part while it is sampled.
const SPIN_WALK: usize = 1 << 20;

pub(super) fn one_call(_: usize) {
    // SAFETY: there is no such descriptor.
    unsafe { libc::syscall(libc::SYS_lseek, -1, 0, 0) };
}

/// Memory that takes the place of the recorder's in the caches.
pub(super) struct Walk(Vec<u64>);

impl Walk {
    pub(super) fn new() -> Self {
        // Each page has memory of its own, and does not fault later.
        Self((0..WALK as u64 / 8).collect())
    }

    /// The median time in ns of an action that comes after a walk.
    pub(super) fn median_after_walks(&self, walks: usize, mut act: impl FnMut(usize)) -> f64 {
        let mut each = vec![0; walks];
        for (walk, time) in each.iter_mut().enumerate() {
            black_box(self.0.iter().step_by(8).fold(0, |sum, word| sum ^ word));
            let start = now();
            act(walk);
            *time = now() - start;
        }
        each.sort_unstable();
        each[walks / 2] as f64
    }

    /// Computes, and looks here and there into a part of the memory.
    pub(super) fn spin(&self, steps: u64) {
        let mask = SPIN_WALK / 8 - 1;
        let mut value = 1_u64;
        for step in 0..steps {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
            value ^= self.0[(value >> 40) as usize & mask];
        }
        black_box(value);
    }
}

/// Untouched pages.
pub(super) struct UntouchedPages(*mut u8, usize);

impl UntouchedPages {
    pub(super) fn new(pages: usize) -> Self {
        let (size, access) = (pages * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(ptr::null_mut(), size, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Self(ptr::null_mut(), 0);
        }
        // SAFETY: the new mapping.
        unsafe { libc::madvise(at, size, libc::MADV_NOHUGEPAGE) };
        Self(at.cast(), pages)
    }

    pub(super) fn touch(&self, page: usize) {
        if page < self.1 {
            // SAFETY: within the mapping.
            unsafe { self.0.add(page * PAGE).write_volatile(1) };
        }
    }
}

impl Drop for UntouchedPages {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once; nothing if that failed.
        unsafe { libc::munmap(self.0.cast(), self.1 * PAGE) };
    }
}

pub(super) fn touch_pages() {
    let pages = UntouchedPages::new(usize::try_from(PAGES).unwrap_or(0));
    (0..pages.1).for_each(|page| pages.touch(page));
}

/// Mean time of a round trip of one byte between this process and a child on the same CPU.
///
/// # Safety
/// Only in a forked child.
pub(super) unsafe fn round_trip_time() -> f64 {
    let (mut there, mut back) = ([0; 2], [0; 2]);
    let mut byte = 0_u8;
    let byte = (&raw mut byte).cast::<libc::c_void>();
    // SAFETY: own pipes and an own child; one byte on the stack.
    unsafe {
        if libc::pipe(there.as_mut_ptr()) != 0 || libc::pipe(back.as_mut_ptr()) != 0 {
            return 0.0;
        }
        let peer = libc::fork();
        if peer == 0 {
            libc::close(there[1]);
            while libc::read(there[0], byte, 1) == 1 {
                libc::write(back[1], byte, 1);
            }
            libc::_exit(0);
        }
        let best = best(ROUNDS, || {
            for _ in 0..ROUNDS {
                libc::write(there[1], byte, 1);
                libc::read(back[0], byte, 1);
            }
        });
        libc::close(there[1]);
        let mut status = 0;
        libc::waitpid(peer, &mut status, 0);
        best
    }
}

/// The shortest times of a fork, and from the fork until the child is reaped.
///
/// # Safety
/// Only in a forked child.
pub(super) unsafe fn fork_times() -> (f64, f64) {
    let (mut birth, mut life) = (f64::MAX, f64::MAX);
    for _ in 0..TRIES {
        let start = now();
        // SAFETY: the child ends at once, and is reaped.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(0);
            }
            birth = birth.min((now() - start) as f64);
            libc::waitpid(child, ptr::null_mut(), 0);
        }
        life = life.min((now() - start) as f64);
    }
    (birth, life)
}

/// For some 10 ms: other tasks must not disturb the measurement.
pub(super) unsafe fn pin_to_this_cpu() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: the parameter is on the stack; if the kernel refuses, the result is only less steady.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &first);
        let cpu = usize::try_from(libc::sched_getcpu()).ok();
        if let Some(here) = cpu.and_then(Affinity::only) {
            here.apply_to(0);
        }
    }
}
