//! Layout of the maps that the programs share with the recorder, and of their records.
//!
//! Does not access them; see `sys`.

/// The state of a CPU: offsets in bytes, as in `bpf/state.h`.
pub(crate) mod cpu_state {
    /// The ring's end, in bytes since the start; records that did not fit.
    pub(crate) const HEAD: usize = 0;
    pub(crate) const LOST: usize = 8;
    /// Whether records are output.
    pub(crate) const RECORDS: usize = 24;
    /// Up to when stacks were given; how many is behind it.
    pub(crate) const STACKS_UNTIL: usize = 64;
    /// How many bytes more than usual may wait before the recorder is woken.
    pub(crate) const PATIENCE: usize = 96;
    /// What the recorder has read.
    pub(crate) const TAIL: usize = 128;
    pub(crate) const SIZE: usize = 448;
}

/// Records in the rings.
pub(super) mod record {
    /// More than the longest, which has a path.
    pub(crate) const LONGEST: usize = 8192;
}

/// Slots of the map of stack times, and their size: `struct stack_times`.
pub(super) const STACK_SLOTS: usize = 1024;
pub(super) const STACK_TIMES_SIZE: usize = 56;

/// Words of 64 tasks in the map of followed tasks: up to the kernel's `PID_MAX_LIMIT`.
pub(super) const FOLLOWED_WORDS: usize = (4 << 20) / 64;

/// A task's entry in the task map: offsets in bytes, as in `bpf/state.h`. A count record is a copy of it.
pub(crate) mod task_entry {
    /// The task's id; 0 for a free entry. 32 bits.
    pub(crate) const TASK: usize = 0;
    /// Kind of the record: [`COUNTED`] or [`OPEN_CALL`]. 32 bits.
    pub(crate) const RECORD_KIND: usize = 4;
    /// Time of the output. All times are of `bpf_ktime_get_ns`.
    pub(crate) const NOW: usize = 8;
    /// Begin and end of the counted period.
    pub(crate) const SINCE: usize = 16;
    pub(crate) const UNTIL: usize = 24;
    /// The latest call: number, arguments.
    pub(crate) const NR: usize = 40;
    pub(crate) const ARGS: usize = 48;
    /// Calls since the latest wait or wake-up, plus half of the sum at that time.
    pub(crate) const CALLS_PER_WAIT: usize = 112;
    /// Its initial value, 16 times the least that goes on being counted: one or two wake-ups by interrupts do not
    /// stop the counting.
    pub(crate) const CREDIT: u64 = 16 * 256;
    /// Mean number of calls before an output, and its initial value: eight times the least that goes on being counted.
    pub(crate) const CALLS_PER_OUTPUT: usize = 208;
    pub(crate) const OUTPUT_CREDIT: u64 = 8 * 8;
    /// When a call was last recorded.
    pub(crate) const RECORDED: usize = 120;
    /// Calls that fit into no kind: none, unless the output failed.
    pub(crate) const MISSED: usize = 128;
    /// Kinds of calls that are counted at the same time.
    pub(crate) const KINDS: usize = 5;
    pub(crate) const FIRST_KIND: usize = 216;
    pub(crate) const KIND_SIZE: usize = 96;
    /// A kind: number, four arguments, result, count; count and sum of times of its timed short
    /// calls; count and sum of times of its timed long calls.
    pub(crate) const KIND_ARGS: usize = 8;
    pub(crate) const KIND_RESULT: usize = 40;
    pub(crate) const KIND_COUNT: usize = 48;
    pub(crate) const KIND_TIMED: usize = 56;
    pub(crate) const KIND_INSIDE: usize = 64;
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
