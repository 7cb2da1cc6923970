//! The doctor's check of a machine: tries everything that recording may use.
//!
//! Slower than [`Plan::detect`], which runs before every recording and checks only what decides how to record.
//! Nothing that is tried here stays.

use super::hazards::{self, MachineHazard};
use super::{Capability, Plan};
use crate::bpf;
use crate::launch::descriptor_limit;
use crate::perf::ring::Ring;
use crate::perf::schema::fields;
use crate::perf::sys::{Event, Scope, Source};
use crate::perf::tracefs::Tracefs;
use crate::permissions::{self, Need};
use crate::procfs;
use perf_event_open_sys::bindings as abi;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Open files that a recording needs for each CPU, and in addition.
const FILES: [usize; 2] = [24, 64];

/// What can be recorded on this machine, what cannot, and what misleads.
#[derive(Clone, Debug)]
pub struct Checkup {
    /// How a recording would be done here.
    pub plan: Plan,
    /// All capabilities, those that the plan depends on first.
    pub capabilities: Vec<Capability>,
    /// Properties of the machine that make measurements misleading.
    pub hazards: Vec<MachineHazard>,
    /// The one command that grants everything that is missing, where there is one.
    pub everything: Option<String>,
}

/// Tries everything. Takes some tenths of a second, because the kernel is slow to close
/// tracepoints.
#[must_use]
pub fn doctor() -> Checkup {
    // First: later the check itself would keep a CPU busy.
    let hazards = hazards::all();
    let plan = Plan::detect();
    let mut capabilities = plan.capabilities.clone();
    // The plan only checks whether uprobes exist; here one is set.
    capabilities.retain(|c| c.name != UPROBES);
    capabilities.extend([
        uprobes(),
        faults(),
        counting_probes(),
        recording_in_the_kernel(),
        stacks_of_waits(),
        ring_size(),
        open_files(),
        priority(),
    ]);
    for missing in capabilities.iter_mut().filter(|c| !c.available) {
        missing.instead = plan.rung.level.instead(missing.name);
    }
    capabilities.sort_by_key(|c| (!c.available, c.instead.is_none()));
    let missing = capabilities.iter().any(|c| !c.available);
    let everything = if missing { permissions::everything() } else { None };
    Checkup { plan, capabilities, hazards, everything }
}

/// The plan's name for uprobes.
const UPROBES: &str = "probes";

fn uprobes() -> Capability {
    let gives = "start-up separate from main, locks of Go programs";
    Capability::tried(UPROBES, gives, set_uprobe(), Need::Uprobes)
}

/// Sets a uprobe at the start of this program's file: the ELF header, which is never executed.
fn set_uprobe() -> io::Result<()> {
    let kind = procfs::line("/sys/bus/event_source/devices/uprobe/type");
    let kind = kind.and_then(|text| text.parse().ok());
    let kind = kind.ok_or_else(|| io::Error::other("this kernel has no uprobes"))?;
    let ourselves = CString::new("/proc/self/exe")?;
    Event::of_each(Source::Uprobe(kind, ourselves, 0), fields::BASE)
        .open(Scope::TaskTree(0), -1)
        .map(drop)
}

fn faults() -> Capability {
    let gives = "page faults, first touches, memory churn";
    let source = Source::Software(abi::PERF_COUNT_SW_PAGE_FAULTS);
    let tried = Event::of_each(source, fields::BASE | fields::IP | fields::ADDR)
        .open(Scope::TaskTree(0), 0);
    Capability::tried("page faults", gives, tried, Need::Perf)
}

fn counting_probes() -> Capability {
    let gives = "calls, bytes and allocations counted: --in, the allocation finding";
    let opened = Tracefs::open().map_err(|error| match error {
        crate::Error::System { source, .. } => source,
        other => io::Error::other(other.to_string()),
    });
    let tried = opened.and_then(|tracefs| tracefs.uprobe_events());
    Capability::tried("counted places", gives, tried, Need::Uprobes)
}

fn recording_in_the_kernel() -> Capability {
    let gives =
        "calls, faults and switches by BPF programs: less tracing overhead than perf's events";
    Capability::tried("recording in the kernel", gives, bpf::is_allowed(), Need::Bpf)
}

fn stacks_of_waits() -> Capability {
    let gives = "the waiting line of long waits; attaching (--pid)";
    Capability::tried("looking into processes", gives, read_an_unrelated_process(), Need::Ptrace)
}

/// Lets one child read the other's memory: a parent may always read its own child's.
fn read_an_unrelated_process() -> io::Result<()> {
    let other = Child::start(|| {
        loop {
            // SAFETY: sleeps until it is killed.
            unsafe { libc::pause() };
        }
    })?;
    let read_from = other.0;
    let reader = Child::start(move || {
        let mut value = 0_u64;
        let target = (&raw mut value).cast::<libc::c_void>();
        let there = libc::iovec { iov_base: target, iov_len: size_of::<u64>() };
        // SAFETY: the same address is mapped in both, which are copies of one process.
        let got = unsafe { libc::process_vm_readv(read_from, &there, 1, &there, 1, 0) };
        // SAFETY: the C library's own thread-local.
        if got == 8 { 0 } else { unsafe { *libc::__errno_location() } }
    })?;
    match reader.status() {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A child process whose exit code is a result.
struct Child(libc::pid_t);

impl Child {
    /// Forks. The child runs `act`, which makes plain system calls only, and exits with its result.
    fn start(act: impl FnOnce() -> i32) -> io::Result<Self> {
        // SAFETY: the child makes plain system calls and ends.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: ends the child.
            0 => unsafe { libc::_exit(act()) },
            pid => Ok(Self(pid)),
        }
    }

    /// Waits for its end: the exit code.
    fn status(self) -> i32 {
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(self.0, &mut status, 0) };
        std::mem::forget(self);
        libc::WEXITSTATUS(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: ends and reaps the own child, which has not been reaped.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

fn ring_size() -> Capability {
    let gives = "no holes (not recorded) where many events happen";
    let tried = || {
        // A ring buffer is allowed even to users who cannot record the kernel.
        let dummy = Event { no_kernel: true, ..Event::of_each(Source::Dummy, fields::BASE) };
        let dummy = dummy.open(Scope::TaskTree(0), 0)?;
        let size = crate::session::RING_SIZES[0];
        let map = Ring::map(&dummy, size).map(drop);
        map.map_err(|error| match error.raw_os_error() {
            // The kernel's errors when locked memory is scarce.
            Some(libc::EAGAIN | libc::ENOMEM) => io::Error::from_raw_os_error(libc::EPERM),
            _ => error,
        })
    };
    Capability::tried("room for records", gives, tried(), Need::LockedMemory)
}

fn open_files() -> Capability {
    descriptor_limit::raise();
    let wanted = FILES[0] * procfs::online_cpus().len() + FILES[1];
    let tried = || -> io::Result<()> {
        let null = File::open("/dev/null")?;
        let mut copies = Vec::new();
        for _ in 0..wanted {
            // SAFETY: a copy of a descriptor that is owned here.
            match unsafe { libc::fcntl(null.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) } {
                -1 => return Err(io::Error::last_os_error()),
                // SAFETY: a new descriptor.
                copy => copies.push(unsafe { OwnedFd::from_raw_fd(copy) }),
            }
        }
        Ok(())
    };
    Capability::tried("open files", "recording on all CPUs at once", tried(), Need::OpenFiles)
}

fn priority() -> Capability {
    let gives = "no holes (not recorded) on a busy machine";
    let tried = std::thread::spawn(|| {
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: 0 is the calling thread, which ends right after.
        match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    });
    let tried = tried.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")));
    Capability::tried("priority", gives, tried, Need::Priority)
}
