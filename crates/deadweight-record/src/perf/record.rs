//! A decoded record, of perf or of a BPF program.
//!
//! Does not read ring buffers; see `decode` and `program_records`.

use super::schema::Role;

/// A record.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The clock's reading in ns.
    pub at: u64,
    /// Process, -1 as `u32` for a task that is already reaped.
    pub process: u32,
    /// Task, likewise.
    pub task: u32,
    /// CPU.
    pub cpu: u32,
    /// The content.
    pub body: Body<'a>,
}

/// The content of a record.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// A sample of one of the recorder's events.
    Sample(Sample<'a>),
    /// The task got the CPU, or left it.
    Switched {
        /// Whether it left.
        out: bool,
        /// Whether it was still runnable.
        runnable: bool,
    },
    /// A task was born.
    Fork {
        /// Its process.
        process: u32,
        /// Its tid.
        task: u32,
        /// Its parent's tid.
        parent: u32,
    },
    /// A task begins to exit.
    Exit {
        /// Its tid.
        task: u32,
    },
    /// A task's name changed.
    Comm {
        /// Its tid.
        task: u32,
        /// Whether an exec changed it.
        exec: bool,
        /// The name.
        name: &'a [u8],
    },
    /// An executable mapping was made.
    Map {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Offset in the file.
        offset: u64,
        /// The file's inode, 0 for none.
        inode: u64,
        /// Whether it can be executed.
        executable: bool,
        /// The file.
        path: &'a [u8],
    },
    /// This number of records was dropped because the ring buffer was full.
    Lost(u64),
    /// The same, and all of them were samples of the clock.
    LostSamples(u64),
    /// The kernel throttled an event of the recorder, or stopped doing so.
    Throttled,
    /// A record that is not used.
    Other,
}

/// A sample of one of the recorder's events.
#[derive(Copy, Clone, Debug)]
pub struct Sample<'a> {
    /// The event.
    pub role: Role,
    /// Whether it interrupted the kernel.
    pub kernel: bool,
    /// Instruction pointer.
    pub ip: u64,
    /// Address.
    pub addr: u64,
    /// Call chain: eight bytes each, with the kernel's context marks.
    pub chain: &'a [u8],
    /// A tracepoint's own data.
    pub raw: &'a [u8],
    /// The user registers that are present; 0 for a task without user registers.
    pub mask: u64,
    /// The user registers of `mask`, eight bytes each.
    pub registers: &'a [u8],
    /// Bytes of the user stack.
    pub stack: &'a [u8],
}

impl Sample<'_> {
    /// The user register with this number.
    #[must_use]
    pub fn register(&self, number: u8) -> Option<u64> {
        let bit = 1_u64.checked_shl(number.into())?;
        if self.mask & bit == 0 {
            return None;
        }
        let before = (self.mask & (bit - 1)).count_ones() as usize;
        u64_at(self.registers, before * 8)
    }

    /// The four bytes at `offset` of the tracepoint's data.
    #[must_use]
    pub fn raw_u32(&self, offset: usize) -> Option<u32> {
        self.raw.get(offset..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// The eight bytes at `offset` of the tracepoint's data.
    #[must_use]
    pub fn raw_u64(&self, offset: usize) -> Option<u64> {
        u64_at(self.raw, offset)
    }

    /// The string whose place is stored at `offset` of the tracepoint's data (`__data_loc`).
    #[must_use]
    pub fn raw_string(&self, offset: usize) -> Option<&[u8]> {
        let place = self.raw_u32(offset)?;
        let (len, start) = ((place >> 16) as usize, (place & 0xffff) as usize);
        self.raw.get(start..start.checked_add(len)?).map(until_zero)
    }

    /// Splits the call chain into the kernel's part and the user's, both leaf first.
    pub fn split_chain(&self, kernel: &mut Vec<u64>, user: &mut Vec<u64>) {
        /// Values from here up are marks, not addresses.
        const MARKS: u64 = (-4095_i64).cast_unsigned();
        const KERNEL: u64 = (-128_i64).cast_unsigned();
        const USER: u64 = (-512_i64).cast_unsigned();
        kernel.clear();
        user.clear();
        let mut part = if self.kernel { KERNEL } else { USER };
        for address in self.chain.as_chunks().0.iter().map(|b| u64::from_ne_bytes(*b)) {
            match (address, part) {
                (MARKS.., _) => part = address,
                (_, KERNEL) => kernel.push(address),
                (_, USER) => user.push(address),
                _ => {}
            }
        }
    }
}

/// The eight bytes at `offset`.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
}

/// A string that the kernel ends with a zero byte and pads with more.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}
