//! `bpf(2)`: maps, loading programs, and attaching them. Everything ends with its descriptor.
//!
//! Does not know what the programs do; see `calls` and `sched`.

use super::assembler::Instruction;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// `BPF_MAP_TYPE_*`.
const PERF_EVENT_ARRAY: u32 = 4;
const ARRAY: u32 = 2;
const ARRAY_PER_CPU: u32 = 6;
/// `BPF_F_MMAPABLE`.
const MMAPABLE: u32 = 1 << 10;
/// `BPF_PROG_TYPE_*`.
const RAW_TRACEPOINT: u32 = 17;
const TRACING: u32 = 26;
/// `BPF_TRACE_RAW_TP`: a tracepoint whose arguments have types.
const BTF_TRACEPOINT: u32 = 23;

/// Commands of `bpf(2)`.
#[derive(Copy, Clone)]
enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    RawTracepointOpen = 17,
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
}

// SAFETY: the mapping belongs to this value alone; the kernel's side of it is accessed by atomics.
unsafe impl Send for SharedMap {}
// SAFETY: other accesses are volatile, to an entry that no program uses, or to call filters, which
// are the same whichever thread writes them.
unsafe impl Sync for SharedMap {}

/// A program that the verifier accepted.
#[derive(Debug)]
pub(super) struct LoadedProgram(OwnedFd);

/// A program attached to a tracepoint while this value lives.
#[derive(Debug)]
pub(super) struct Attachment(#[expect(dead_code, reason = "closed at its end")] OwnedFd);

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

    /// One word for each CPU, zero. Only programs use it.
    pub(super) fn per_cpu_words() -> io::Result<Self> {
        Self::new(ARRAY_PER_CPU, 8, 1, 0)
    }

    /// An array of words, zero. Only programs use it.
    pub(super) fn array(words: usize) -> io::Result<Self> {
        Self::new(ARRAY, 8, words, 0)
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
        Ok(Self { map, base: base.cast(), size })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.map.fd()
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
    /// For a raw tracepoint. Its arguments are plain numbers.
    pub(super) fn raw_tracepoint(code: &[Instruction]) -> io::Result<Self> {
        Self::new(RAW_TRACEPOINT, code, [0, 0])
    }

    /// For a tracepoint with BTF, by the id of its type. What its arguments point to may be read.
    pub(super) fn typed_tracepoint(code: &[Instruction], btf_id: u32) -> io::Result<Self> {
        Self::new(TRACING, code, [BTF_TRACEPOINT, btf_id])
    }

    fn new(
        kind: u32,
        code: &[Instruction],
        [expected_attach_type, btf_id]: [u32; 2],
    ) -> io::Result<Self> {
        // `bpf_perf_event_output` is only for programs with such a licence.
        const LICENSE: &CStr = c"Dual MIT/GPL";
        // prog_type, insn_cnt; insns; license; log_level, log_size; log_buf; kern_version,
        // prog_flags; prog_name, two; prog_ifindex, expected_attach_type; four for line
        // information; line_info_cnt, attach_btf_id; attach_prog_fd.
        let words = [
            pair(kind, as_u32(code.len())?),
            code.as_ptr() as u64,
            LICENSE.as_ptr() as u64,
            0,
            0,
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
        Ok(Self(owned_fd(bpf(Command::ProgramLoad, &words)?)?))
    }

    /// Attaches it to the tracepoint with this name; without a name, to that of its type.
    pub(super) fn attach(&self, tracepoint: Option<&CStr>) -> io::Result<Attachment> {
        let name = tracepoint.map_or(0, |name| name.as_ptr() as u64);
        let words = [name, pair(self.0.as_raw_fd().cast_unsigned(), 0)];
        Ok(Attachment(owned_fd(bpf(Command::RawTracepointOpen, &words)?)?))
    }
}
