//! `bpf(2)`: maps, loading programs, and attaching them. Everything ends with its descriptor.
//!
//! Does not know what the programs do; see `bpf/recorder.bpf.c`.

use super::object::Instruction;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// `BPF_MAP_TYPE_*`.
const PERF_EVENT_ARRAY: u32 = 4;
const ARRAY: u32 = 2;
/// `BPF_F_MMAPABLE`.
const MMAPABLE: u32 = 1 << 10;
/// `BPF_PROG_TYPE_*`.
const KPROBE: u32 = 2;
const PERF_EVENT: u32 = 7;
const TRACING: u32 = 26;
/// `BPF_TRACE_RAW_TP`: a tracepoint whose arguments have types.
const BTF_TRACEPOINT: u32 = 23;
/// `BPF_TRACE_UPROBE_MULTI`.
const UPROBES: u32 = 48;

/// Bytes for the verifier's log, if it refuses a program.
const VERIFIER_LOG: usize = 1 << 20;

/// Commands of `bpf(2)`.
#[derive(Copy, Clone)]
enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    RawTracepointOpen = 17,
    LinkCreate = 28,
}

/// A BPF map.
#[derive(Debug)]
pub(super) struct Map(OwnedFd);

/// A map in shared memory: reading or changing it needs no system call. Such a call would keep the
/// BPF programs from running on that CPU for its time, and their records would be lost.
#[derive(Debug)]
pub(crate) struct SharedMap {
    map: Map,
    base: *mut u8,
    size: usize,
    stride: usize,
}

// SAFETY: the mapping belongs to this value alone; the kernel's side of it is accessed by atomics.
unsafe impl Send for SharedMap {}
// SAFETY: other accesses are volatile, to an entry that no program uses, or to call filters, which
// are the same whichever thread writes them.
unsafe impl Sync for SharedMap {}

/// A program that the verifier accepted.
#[derive(Debug)]
pub(super) struct LoadedProgram(OwnedFd);

/// A program attached to a tracepoint or a uprobe while this value lives.
#[derive(Debug)]
pub(crate) struct Attachment(OwnedFd);

/// Calls `bpf(2)` with these 64-bit words as its attributes.
fn bpf(command: Command, attributes: &[u64]) -> io::Result<i64> {
    // SAFETY: each caller says what the words are; what they point to outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            attributes.as_ptr(),
            size_of_val(attributes),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned_fd(result: i64) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(result).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: a new descriptor, owned by this value.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Two consecutive 32-bit fields of the attributes.
fn pair(first: u32, second: u32) -> u64 {
    let (first, second) = (first.to_ne_bytes(), second.to_ne_bytes());
    let mut both = [0; 8];
    both[..4].copy_from_slice(&first);
    both[4..].copy_from_slice(&second);
    u64::from_ne_bytes(both)
}

fn as_u32(size: usize) -> io::Result<u32> {
    u32::try_from(size).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Map {
    fn new(kind: u32, value: usize, entries: usize, flags: u32) -> io::Result<Self> {
        let (value, entries) = (as_u32(value)?, as_u32(entries)?);
        // map_type, key_size; value_size, max_entries; map_flags, inner_map_fd.
        let words = [pair(kind, 4), pair(value, entries), pair(flags, 0)];
        Ok(Self(owned_fd(bpf(Command::MapCreate, &words)?)?))
    }

    /// One perf event for each CPU up to this many. A program's output becomes its record.
    pub(super) fn perf_event_array(cpus: usize) -> io::Result<Self> {
        Self::new(PERF_EVENT_ARRAY, 4, cpus, 0)
    }

    /// An array of entries of `value` bytes, zero. Only programs use it.
    pub(super) fn array(value: usize, entries: usize) -> io::Result<Self> {
        Self::new(ARRAY, value, entries, 0)
    }

    /// Output on this CPU becomes a record of this event.
    pub(super) fn set_event(&self, cpu: u32, event: RawFd) -> io::Result<()> {
        // map_fd; addresses of key and value; flags: any.
        let words = [
            pair(self.fd().cast_unsigned(), 0),
            (&raw const cpu) as u64,
            (&raw const event) as u64,
            0,
        ];
        bpf(Command::MapUpdate, &words).map(drop)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl SharedMap {
    /// `entries` of `value` bytes (a multiple of 8), all zero.
    pub(super) fn new(value: usize, entries: usize) -> io::Result<Self> {
        let map = Map::new(ARRAY, value, entries, MMAPABLE)?;
        let size = (value * entries).next_multiple_of(4096);
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // A child that outlives this process must not keep the memory. SAFETY: the new mapping.
        unsafe { libc::madvise(base, size, libc::MADV_DONTFORK) };
        Ok(Self { map, base: base.cast(), size, stride: value })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.map.fd()
    }

    /// Bytes from one entry to the next.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// How many entries there are.
    pub(super) fn entries(&self) -> usize {
        self.size / self.stride.max(1)
    }

    /// Appends bytes that no program changes now.
    pub(super) fn copy(&self, offset: usize, length: usize, to: &mut Vec<u8>) {
        if offset.checked_add(length).is_some_and(|end| end <= self.size) {
            // SAFETY: within the mapping; the caller knows that no program writes there now.
            to.extend_from_slice(unsafe {
                std::slice::from_raw_parts(self.base.add(offset), length)
            });
        }
    }

    /// Writes a word at this offset, of an entry that no program uses yet.
    pub(crate) fn write(&self, offset: usize, value: u64) {
        if offset + 8 <= self.size && offset.is_multiple_of(8) {
            // SAFETY: within the mapping, and aligned as it is.
            unsafe { self.base.add(offset).cast::<u64>().write_volatile(value) };
        }
    }

    /// Reads a word at this offset, of an entry that no program changes now; 0 beyond the end.
    pub(crate) fn read(&self, offset: usize) -> u64 {
        if offset + 8 > self.size {
            return 0;
        }
        // SAFETY: within the mapping.
        unsafe { self.base.add(offset).cast::<u64>().read_volatile() }
    }

    /// The 64-bit word at this offset, which a program may change at any time.
    pub(super) fn shared_word(&self, offset: usize) -> Option<&AtomicU64> {
        let inside = offset + 8 <= self.size && offset.is_multiple_of(8);
        // SAFETY: as below.
        inside.then(|| unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) })
    }

    /// The 32-bit word at this offset, likewise.
    pub(crate) fn shared(&self, offset: usize) -> Option<&AtomicU32> {
        let inside = offset + 4 <= self.size && offset.is_multiple_of(4);
        // SAFETY: within the mapping, which is aligned to a page and lives as long as `self`.
        inside.then(|| unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) })
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}

impl LoadedProgram {
    /// For an event of perf.
    pub(super) fn perf_event(code: &[Instruction]) -> io::Result<Self> {
        Self::new(PERF_EVENT, code, [0, 0])
    }

    /// For a tracepoint with BTF, by the id of its type. What its arguments point to may be read.
    pub(super) fn typed_tracepoint(code: &[Instruction], btf_id: u32) -> io::Result<Self> {
        Self::new(TRACING, code, [BTF_TRACEPOINT, btf_id])
    }

    /// For uprobes.
    pub(super) fn uprobes(code: &[Instruction]) -> io::Result<Self> {
        Self::new(KPROBE, code, [UPROBES, 0])
    }

    fn new(
        kind: u32,
        code: &[Instruction],
        [expected_attach_type, btf_id]: [u32; 2],
    ) -> io::Result<Self> {
        // `bpf_perf_event_output` is only for programs with such a licence.
        const LICENSE: &CStr = c"Dual MIT/GPL";
        let length = as_u32(code.len())?;
        let load = |log: &mut [u8]| {
            let (level, size) = (u32::from(!log.is_empty()), as_u32(log.len())?);
            let buffer = if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 };
            // prog_type, insn_cnt; insns; license; log_level, log_size; log_buf; kern_version,
            // prog_flags; prog_name, two; prog_ifindex, expected_attach_type; four for line
            // information; line_info_cnt, attach_btf_id; attach_prog_fd.
            let words = [
                pair(kind, length),
                code.as_ptr() as u64,
                LICENSE.as_ptr() as u64,
                pair(level, size),
                buffer,
                0,
                0,
                0,
                pair(0, expected_attach_type),
                0,
                0,
                0,
                0,
                pair(0, btf_id),
                0,
            ];
            bpf(Command::ProgramLoad, &words)
        };
        match load(&mut []) {
            Ok(program) => Ok(Self(owned_fd(program)?)),
            Err(error) => {
                let mut log = vec![0; VERIFIER_LOG];
                _ = load(&mut log);
                Err(with_reason(error, &log))
            }
        }
    }

    /// Attaches it to the tracepoint of its type.
    pub(super) fn attach(&self) -> io::Result<Attachment> {
        let words = [0, pair(self.0.as_raw_fd().cast_unsigned(), 0)];
        Ok(Attachment(owned_fd(bpf(Command::RawTracepointOpen, &words)?)?))
    }

    /// Attaches it to a uprobe at this offset in a file, for all processes. The program finds the cookie there.
    pub(super) fn attach_to_uprobe(
        &self,
        path: &CStr,
        offset: u64,
        cookie: u64,
    ) -> io::Result<Attachment> {
        // prog_fd, target_fd; attach_type, flags; path; offsets; ref_ctr_offsets; cookies; cnt, flags; pid.
        let words = [
            pair(self.0.as_raw_fd().cast_unsigned(), 0),
            pair(UPROBES, 0),
            path.as_ptr() as u64,
            (&raw const offset) as u64,
            0,
            (&raw const cookie) as u64,
            pair(1, 0),
            0,
        ];
        Ok(Attachment(owned_fd(bpf(Command::LinkCreate, &words)?)?))
    }
}

impl AsRawFd for Attachment {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsRawFd for LoadedProgram {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// The error, with the end of the verifier's log.
fn with_reason(error: io::Error, log: &[u8]) -> io::Error {
    let log = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
    let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with("processed ")).collect();
    match lines.last() {
        Some(reason) => io::Error::new(error.kind(), format!("{error}: {reason}")),
        None => error,
    }
}
