//! What a calibration's child does: calls, first touches, round trips between processes, births, work on memory.
//!
//! Does not know whether it is recorded; see `calibrate`.

use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::timing::best;
use std::ffi::{CStr, c_int, c_void};
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

/// Number of descriptors that are opened and closed per try.
pub(super) const OPENED: u64 = 40;
/// A file that is everywhere, with a path of a usual length.
const PATH: &CStr = c"/dev/../dev/../dev/null";

/// A descriptor of the root folder, opened in three ways and closed: without a path, by an absolute one, and by one below the
/// folder. Mean times in ns.
pub(super) fn open_times() -> [f64; 3] {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    let root = unsafe { libc::open(c"/".as_ptr(), flags) };
    let each = |open: &dyn Fn() -> i32| {
        let open_and_close = || {
            for _ in 0..OPENED {
                // SAFETY: closes what was opened here, or nothing.
                unsafe { libc::close(open()) };
            }
        };
        best(OPENED, open_and_close)
    };
    // SAFETY: the path ends with a zero, with and without its first character.
    let times = unsafe {
        [
            each(&|| libc::dup(root)),
            each(&|| libc::openat(libc::AT_FDCWD, PATH.as_ptr(), flags)),
            each(&|| libc::openat(root, PATH.as_ptr().add(1), flags)),
        ]
    };
    // SAFETY: the descriptor opened above.
    unsafe { libc::close(root) };
    times
}

/// How many times a process is started, and a program run.
pub(super) const PROGRAMS: usize = 7;
/// Small programs, of which the first that exists is run: like most programs, they are linked with the C library when they start.
const SMALL: [&CStr; 2] = [c"/bin/true", c"/usr/bin/true"];
/// Bytes of a process's stack.
const STACK: usize = 64 << 10;

/// Processes that are started as `vfork` does it: without a copy of the memory, which takes as long as there is memory.
pub(super) struct Children(Vec<u8>);

impl Children {
    pub(super) fn new() -> Self {
        Self(vec![0; STACK])
    }

    /// The shortest times in ns of a process that ends at once: until it runs, and until it is reaped.
    ///
    /// # Safety
    /// Only in a forked child.
    pub(super) unsafe fn lives(&mut self) -> [f64; 2] {
        extern "C" fn ends(began: *mut c_void) -> c_int {
            // SAFETY: a number of the parent, which waits.
            unsafe { began.cast::<u64>().write(now()) };
            0
        }
        let mut shortest = [u64::MAX; 2];
        for _ in 0..PROGRAMS {
            let mut began = 0_u64;
            let start = now();
            // SAFETY: the child only notes the time.
            if unsafe { self.run(ends, (&raw mut began).cast()) } {
                shortest[0] = shortest[0].min(began.saturating_sub(start));
                shortest[1] = shortest[1].min(now() - start);
            }
        }
        shortest.map(|time| if time == u64::MAX { 0.0 } else { time as f64 })
    }

    /// The shortest time in ns of a process that runs a small program until it is reaped. 0 without such a program, and for
    /// ordinary users: only BPF programs are calibrated with it.
    ///
    /// # Safety
    /// Only in a forked child.
    pub(super) unsafe fn program(&mut self) -> f64 {
        extern "C" fn runs(_: *mut c_void) -> c_int {
            for program in SMALL {
                let arguments = [program.as_ptr(), ptr::null()];
                // SAFETY: the arguments are static, and end with a null.
                unsafe {
                    libc::execve(program.as_ptr(), arguments.as_ptr(), [ptr::null()].as_ptr())
                };
            }
            1
        }
        // SAFETY: no memory is involved.
        if unsafe { libc::geteuid() } != 0 {
            return 0.0;
        }
        let mut shortest = u64::MAX;
        for _ in 0..PROGRAMS {
            let start = now();
            // SAFETY: the child only calls exec, or ends.
            if !unsafe { self.run(runs, ptr::null_mut()) } {
                return 0.0;
            }
            shortest = shortest.min(now() - start);
        }
        shortest as f64
    }

    /// Whether a process with this function ended well.
    unsafe fn run(&mut self, act: extern "C" fn(*mut c_void) -> c_int, with: *mut c_void) -> bool {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut status = 1;
        // SAFETY: the stack is the child's alone while this process waits; its end is aligned.
        unsafe {
            let end = self.0.as_mut_ptr_range().end;
            let top = end.sub(end.addr() % 16);
            let child = libc::clone(act, top.cast(), flags, with);
            child > 0 && libc::waitpid(child, &mut status, 0) == child && status == 0
        }
    }
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
