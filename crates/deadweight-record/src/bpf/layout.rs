//! Layout of the maps that the programs share with the recorder, and of their records.
//!
//! Does not access them; see `sys`.

/// Record of a single call: offsets in bytes, as in `raw_syscalls` on 64-bit kernels.
pub(crate) mod call_record {
    /// An entry: the call's number, six arguments.
    pub(crate) const NR: usize = 8;
    pub(crate) const ARGS: usize = 16;
    pub(crate) const ENTRY_SIZE: usize = 64;
    /// A return.
    pub(crate) const RESULT: usize = 16;
    pub(crate) const EXIT_SIZE: usize = 24;
    /// Slots of the map of stack times. A task uses the slot of its id modulo this.
    pub(crate) const STACK_SLOTS: usize = 1024;
}

/// Words of 64 tasks in the map of followed tasks: up to the kernel's `PID_MAX_LIMIT`.
pub(super) const FOLLOWED_WORDS: usize = (4 << 20) / 64;

/// A task that waits or wakes more often than once in this many calls is no longer counted.
pub(super) const MIN_CALLS_PER_WAIT: i32 = 256;

/// A task's entry in the task map: offsets in bytes. A count record is a copy of it.
pub(crate) mod task_entry {
    use crate::perf::schema::counted;

    /// The task's id; 0 for a free entry. 32 bits.
    pub(crate) const TASK: usize = 0;
    /// Kind of the record: [`COUNTED`] or [`OPEN_CALL`]. 32 bits.
    pub(crate) const RECORD_KIND: usize = 4;
    /// Time of the output. All times are of `bpf_ktime_get_ns`.
    pub(crate) const NOW: usize = counted::NOW;
    /// Begin and end of the counted period. Entry of the open call.
    pub(crate) const SINCE: usize = counted::SINCE;
    pub(crate) const UNTIL: usize = 24;
    pub(crate) const ENTERED: usize = 32;
    /// The latest call: number, arguments.
    pub(crate) const NR: usize = 40;
    pub(crate) const ARGS: usize = 48;
    /// Calls counted and not output yet.
    pub(crate) const PENDING: usize = 80;
    /// When the latest call returned.
    pub(crate) const LAST: usize = 88;
    /// Whether a call that will be counted is open, and whether it was output as a single call.
    pub(crate) const OPEN: usize = 96;
    pub(crate) const OPEN_REPORTED: usize = 104;
    /// Calls since the latest wait or wake-up, plus half of the sum at that time.
    pub(crate) const CALLS_PER_WAIT: usize = 112;
    /// Its initial value: one or two wake-ups by interrupts do not stop the counting.
    pub(crate) const CREDIT: u64 = 16 * super::MIN_CALLS_PER_WAIT as u64;
    /// When a call was last recorded.
    pub(crate) const RECORDED: usize = 120;
    /// Calls that fit into no kind: none, unless the output failed.
    pub(crate) const MISSED: usize = 128;
    /// Calls until the next timed one, and how many consecutive calls are timed.
    pub(crate) const UNTIMED: usize = 136;
    pub(crate) const TIME_EACH: usize = 144;
    /// Whether the latest entry was timed, and the interval from the latest timed return to the
    /// entry after it.
    pub(crate) const ENTRY_TIMED: usize = 152;
    pub(crate) const RETURN_TO_ENTRY: usize = 160;
    /// Offset of the latest call's kind in this entry, 0 if it was not counted; and the masks of
    /// its arguments.
    pub(crate) const LATEST_KIND: usize = 168;
    pub(crate) const MASKS: usize = 176;
    /// Kinds of calls that are counted at the same time.
    pub(crate) const KINDS: usize = 5;
    pub(crate) const FIRST_KIND: usize = 208;
    pub(crate) const KIND_SIZE: usize = 96;
    /// A kind: number, four arguments, result, count; count and sum of times of its timed short
    /// calls, and the latest time; count and sum of times of its timed long calls.
    pub(crate) const KIND_ARGS: usize = 8;
    pub(crate) const KIND_RESULT: usize = 40;
    pub(crate) const KIND_COUNT: usize = 48;
    pub(crate) const KIND_TIMED: usize = 56;
    pub(crate) const KIND_INSIDE: usize = 64;
    pub(crate) const KIND_LATEST: usize = 72;
    pub(crate) const KIND_LONG: usize = 80;
    pub(crate) const KIND_INSIDE_LONG: usize = 88;
    /// Size of the entry.
    pub(crate) const SIZE: usize = FIRST_KIND + KINDS * KIND_SIZE;
    /// Entries of the map. A task uses the entry of its id modulo this.
    pub(crate) const TASKS: usize = 1024;
    /// The record has counts of calls.
    pub(crate) const COUNTED: u32 = 1;
    /// The record has an open call.
    pub(crate) const OPEN_CALL: u32 = 2;
}

/// An entry of the map of call filters, by call number: offsets in bytes.
pub(crate) mod call_filter {
    /// Whether such calls may be counted.
    pub(crate) const COUNTABLE: usize = 0;
    /// Masks of the first four arguments: the bits that distinguish calls.
    pub(crate) const MASK: usize = 8;
    /// Bits that no argument may have: a call with a large size is recorded alone.
    pub(crate) const LIMIT: usize = 40;
    pub(crate) const SIZE: usize = 72;
    pub(crate) const CALLS: usize = 512;
}
