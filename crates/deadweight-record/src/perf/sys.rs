//! Opening perf events: one file descriptor per event and CPU, all of a CPU writing to one ring.
//!
//! `session` decides what is opened and why; this knows only the rules of the interface.

use super::registers;
use super::schema::{Layout, fields};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as abi;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What an event counts.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Nothing: it carries records about tasks and mappings.
    Dummy,
    /// Nothing: it carries records about switches.
    Switches,
    /// Nothing: it carries records about tasks, mappings and switches.
    TasksAndSwitches,
    /// One of the kernel's software events (`PERF_COUNT_SW_*`).
    Software(u32),
    /// Records that a BPF program writes.
    BpfOutput,
    /// A tracepoint, by number.
    Tracepoint(u64),
    /// A uprobe: the type number of the kernel's uprobe unit, file, offset.
    Uprobe(u32, CString, u64),
    /// An execution breakpoint, by its address in memory. A CPU has four, and each hit costs 6 µs.
    Breakpoint(u64),
}

/// How often an event makes a record.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Every {
    /// Every so many occurrences.
    Count(u64),
    /// A frequency per second; the first occurrences are always recorded.
    PerSecond(u64),
}

/// An event before it is opened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// What it counts.
    pub(crate) source: Source,
    /// How often it makes a record.
    pub(crate) every: Every,
    /// What its records contain.
    pub(crate) layout: Layout,
    /// Bytes of the user stack, if its records contain one.
    pub(crate) dump: u32,
    /// Count only in user mode: all that an ordinary user may.
    pub(crate) no_kernel: bool,
    /// Omit the kernel's part of the call chain.
    pub(crate) no_kernel_chain: bool,
    /// Omit the user's part of the call chain.
    pub(crate) no_user_chain: bool,
    /// Each record wakes who polls its ring.
    pub(crate) wakes: bool,
}

/// The tasks that an event follows.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Scope {
    /// Every task on the CPU, once enabled.
    AllTasks,
    /// This task and its descendants, from its exec on.
    FromExec(i32),
    /// This task and its descendants, once enabled.
    TaskTree(i32),
    /// This task alone, once enabled.
    OneTask(i32),
}

/// An open event.
#[derive(Debug)]
pub(crate) struct Open {
    fd: OwnedFd,
    /// The id in its records.
    pub(crate) id: u64,
}

/// Bytes of the user stack in a record. Must be a multiple of 8; the dump of 8 KiB reaches
/// far enough for nearly all stacks and costs about 1 µs.
pub(crate) const STACK_BYTES: u32 = 8192;
/// The same where samples have rings of their own: large buffers on the stack separate a function from its callers.
/// Boehm's collector alone zeroes up to 21 KiB of its own. Only what exists is copied.
pub(crate) const DEEP_STACK_BYTES: u32 = 32768;
/// `HW_BREAKPOINT_X`.
const EXECUTE: u32 = 4;
/// Kernel frames: the reason of a wait shows within the first dozen.
const KERNEL_FRAMES: u16 = 24;

impl Source {
    /// Fills in the attributes of the source.
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
                // The length that the kernel requires for execution breakpoints.
                attr.__bindgen_anon_4.bp_len = size_of::<libc::c_long>() as u64;
            }
        }
    }
}

impl Event {
    /// An event that records each occurrence, with these fields.
    pub(crate) fn of_each(source: Source, fields: u64) -> Self {
        let registers = if fields & fields::REGISTERS == 0 { 0 } else { registers::ALL };
        Self {
            source,
            every: Every::Count(1),
            layout: Layout { fields, registers },
            dump: STACK_BYTES,
            no_kernel: false,
            no_kernel_chain: false,
            no_user_chain: false,
            wakes: false,
        }
    }

    fn attr(&self, scope: Scope) -> abi::perf_event_attr {
        let mut attr = abi::perf_event_attr::default();
        attr.size = u32::try_from(size_of::<abi::perf_event_attr>()).unwrap_or(0);
        attr.sample_type = self.layout.fields;
        // The only clock of BPF programs that goes on steadily.
        attr.clockid = libc::CLOCK_MONOTONIC;
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
        // No wake-ups: the recorder looks at the rings now and then. (The default would be a wake-up at every record; a
        // reader that waits for the ring of a task's event is woken by each exit of a task.)
        attr.set_watermark((!self.wakes).into());
        attr.__bindgen_anon_2.wakeup_watermark = if self.wakes { 1 } else { u32::MAX };
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
        // SAFETY: a new descriptor.
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

    /// Counts only occurrences that match this expression over the tracepoint's fields.
    pub(crate) fn filter(&self, expression: &CStr) -> io::Result<()> {
        // SAFETY: the kernel copies the string.
        check(unsafe {
            perf::ioctls::SET_FILTER(self.fd.as_raw_fd(), expression.as_ptr().cast_mut())
        })
    }

    /// Each occurrence calls this BPF program, which decides whether there is a record.
    pub(crate) fn set_program(&self, program: RawFd) -> io::Result<()> {
        // SAFETY: an ioctl with two descriptors.
        check(unsafe { perf::ioctls::SET_BPF(self.fd.as_raw_fd(), program.cast_unsigned()) })
    }

    /// Starts it now.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without argument.
        check(unsafe { perf::ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// How often it has happened, including in tasks that inherited it.
    pub(crate) fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        let len = size_of::<u64>();
        // SAFETY: reads eight bytes.
        match unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), len) } {
            8 => Ok(count),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Whether the one task that it follows is gone.
    pub(crate) fn is_over(&self) -> bool {
        let mut polled = libc::pollfd { fd: self.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one open descriptor.
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
