//! Opening perf events: one file descriptor per event and CPU, all of a CPU writing to one ring.
//!
//! What is opened and why is `session`'s business; this knows the interface's rules only.

use super::schema::{Layout, fields};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as abi;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// What an event counts.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Nothing: it carries the records about tasks and mappings.
    Dummy,
    /// Nothing: it carries the records about switches.
    Switches,
    /// Nothing: it carries the records about tasks, mappings and switches.
    TasksAndSwitches,
    /// One of the kernel's software events (`PERF_COUNT_SW_*`).
    Software(u32),
    /// What a program in the kernel tells.
    BpfOutput,
    /// A tracepoint, by number.
    Tracepoint(u64),
    /// A place in a binary: the type number of the kernel's uprobe unit, file, offset.
    Uprobe(u32, CString, u64),
    /// An instruction, by its address in memory. A CPU has four such, and 6 µs are lost at each hit.
    Breakpoint(u64),
}

/// How often an event makes a record.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Every {
    /// Every so many.
    Count(u64),
    /// As often as gives so many per second, starting with each one.
    PerSecond(u64),
}

/// An event before it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// What it counts.
    pub(crate) source: Source,
    /// How often it makes a record.
    pub(crate) every: Every,
    /// What its records hold.
    pub(crate) layout: Layout,
    /// Bytes of the user stack, if its records hold one.
    pub(crate) dump: u32,
    /// Count only what happens in user mode: all that an ordinary user may.
    pub(crate) no_kernel: bool,
    /// Leave out the kernel's part of the call chain.
    pub(crate) no_kernel_chain: bool,
    /// Leave out the user's part of the call chain.
    pub(crate) no_user_chain: bool,
}

/// Scope an event watches.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Scope {
    /// Every task on the CPU, from now on.
    AllTasks,
    /// This task and its descendants, from its exec on.
    FromExec(i32),
    /// This task and its descendants, once enabled.
    TaskTree(i32),
    /// This task and nobody else, once enabled.
    OneTask(i32),
}

/// An open event.
#[derive(Debug)]
pub(crate) struct Open {
    fd: OwnedFd,
    /// What its records are marked with.
    pub(crate) id: u64,
}

/// Bytes of the user stack in a record. Must be a multiple of 8; the dump of 8 KiB reaches
/// far enough for nearly all stacks and costs about 1 µs.
pub(crate) const STACK_BYTES: u32 = 8192;
/// The same where samples have rings of their own: buffers on the stack lie between a function and its callers.
/// Boehm's collector alone clears up to 21 KiB of its own. What is not there is not copied.
pub(crate) const DEEP_STACK_BYTES: u32 = 32768;
/// `HW_BREAKPOINT_X`.
const EXECUTE: u32 = 4;
/// Kernel frames: what is waited for shows within the first dozen.
const KERNEL_FRAMES: u16 = 24;

impl Source {
    /// Fills in what is counted.
    fn describe(&self, attr: &mut abi::perf_event_attr) {
        match self {
            Self::Dummy | Self::TasksAndSwitches => {
                attr.type_ = abi::PERF_TYPE_SOFTWARE;
                attr.config = u64::from(abi::PERF_COUNT_SW_DUMMY);
                attr.set_task(1);
                attr.set_comm(1);
                attr.set_comm_exec(1);
                // Executable mappings only: `mmap_data` stays 0.
                attr.set_mmap(1);
                attr.set_mmap2(1);
                attr.set_context_switch(matches!(self, Self::TasksAndSwitches).into());
            }
            Self::Switches => {
                attr.type_ = abi::PERF_TYPE_SOFTWARE;
                attr.config = u64::from(abi::PERF_COUNT_SW_DUMMY);
                attr.set_context_switch(1);
            }
            Self::BpfOutput => {
                attr.type_ = abi::PERF_TYPE_SOFTWARE;
                attr.config = u64::from(abi::PERF_COUNT_SW_BPF_OUTPUT);
            }
            Self::Software(which) => {
                attr.type_ = abi::PERF_TYPE_SOFTWARE;
                attr.config = u64::from(*which);
            }
            Self::Tracepoint(id) => {
                attr.type_ = abi::PERF_TYPE_TRACEPOINT;
                attr.config = *id;
            }
            Self::Uprobe(kind, path, offset) => {
                attr.type_ = *kind;
                attr.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
                attr.__bindgen_anon_4.probe_offset = *offset;
            }
            Self::Breakpoint(address) => {
                attr.type_ = abi::PERF_TYPE_BREAKPOINT;
                attr.bp_type = EXECUTE;
                attr.__bindgen_anon_3.bp_addr = *address;
                // What the kernel asks for of those on execution.
                attr.__bindgen_anon_4.bp_len = size_of::<libc::c_long>() as u64;
            }
        }
    }
}

impl Event {
    fn attr(&self, scope: Scope) -> abi::perf_event_attr {
        let mut attr = abi::perf_event_attr::default();
        attr.size = u32::try_from(size_of::<abi::perf_event_attr>()).unwrap_or(0);
        attr.sample_type = self.layout.fields;
        attr.clockid = libc::CLOCK_MONOTONIC_RAW;
        self.source.describe(&mut attr);
        match self.every {
            Every::Count(period) => attr.__bindgen_anon_1.sample_period = period,
            Every::PerSecond(rate) => {
                attr.set_freq(1);
                attr.__bindgen_anon_1.sample_freq = rate;
            }
        }
        attr.set_disabled(1);
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        // Nobody is to be woken: the rings are looked at by the clock. (The default would be at
        // every record; a reader that waits for the rings is woken by each exit of a task.)
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = u32::MAX;
        attr.set_exclude_kernel(self.no_kernel.into());
        attr.set_exclude_hv(self.no_kernel.into());
        attr.set_exclude_callchain_kernel(self.no_kernel_chain.into());
        attr.set_exclude_callchain_user(self.no_user_chain.into());
        if self.no_user_chain {
            attr.sample_max_stack = KERNEL_FRAMES;
        }
        attr.sample_regs_user = self.layout.registers;
        if self.layout.fields & fields::STACK != 0 {
            attr.sample_stack_user = self.dump;
        }
        match scope {
            Scope::AllTasks | Scope::OneTask(_) => {}
            Scope::FromExec(_) => {
                attr.set_inherit(1);
                attr.set_enable_on_exec(1);
            }
            Scope::TaskTree(_) => attr.set_inherit(1),
        }
        attr
    }

    /// Opens it on one CPU, still disabled.
    pub(crate) fn open(&self, scope: Scope, cpu: i32) -> io::Result<Open> {
        let mut attr = self.attr(scope);
        let pid = match scope {
            Scope::AllTasks => -1,
            Scope::FromExec(pid) | Scope::TaskTree(pid) | Scope::OneTask(pid) => pid,
        };
        // SAFETY: `attr` is complete and `self` keeps the path it points to alive.
        let fd = unsafe {
            perf::perf_event_open(&mut attr, pid, cpu, -1, abi::PERF_FLAG_FD_CLOEXEC.into())
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor of ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut id = 0;
        // SAFETY: writes the event's id to `id`.
        check(unsafe { perf::ioctls::ID(fd.as_raw_fd(), &mut id) })?;
        Ok(Open { fd, id })
    }
}

impl Open {
    /// Its records go to `other`'s ring. Both must be on the same CPU.
    pub(crate) fn write_to(&self, other: &Self) -> io::Result<()> {
        // SAFETY: an ioctl on two descriptors.
        check(unsafe { perf::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd()) })
    }

    /// Only occurrences that satisfy this expression over the tracepoint's fields count.
    pub(crate) fn filter(&self, expression: &CStr) -> io::Result<()> {
        // SAFETY: the kernel copies the string.
        check(unsafe {
            perf::ioctls::SET_FILTER(self.fd.as_raw_fd(), expression.as_ptr().cast_mut())
        })
    }

    /// Starts it now.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without argument.
        check(unsafe { perf::ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// How often it has happened, to the tasks that it is inherited by too.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        let len = size_of::<u64>();
        // SAFETY: reads into eight bytes of ours.
        match unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), len) } {
            8 => Ok(count),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether the task that it watches, and nobody else, is gone.
    pub(crate) fn is_over(&self) -> bool {
        let mut polled = libc::pollfd { fd: self.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one descriptor of ours.
        unsafe { libc::poll(&mut polled, 1, 0) > 0 && polled.revents & libc::POLLHUP != 0 }
    }

    /// Stops it.
    pub(crate) fn disable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without argument.
        check(unsafe { perf::ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }
}

impl AsRawFd for Open {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
