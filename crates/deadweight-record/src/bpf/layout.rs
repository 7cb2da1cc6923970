//! How the tables that the programs in the kernel share with us, and what they tell, are laid out. Not for what the
//! programs do with them.

/// What is told of a single call: offsets in bytes, as `raw_syscalls` has them on 64-bit kernels.
pub(crate) mod call_record {
    /// Of an entry: the call's number, six arguments.
    pub(crate) const NR: usize = 8;
    pub(crate) const ARGS: usize = 16;
    pub(crate) const ENTRY_SIZE: usize = 64;
    /// Of a return.
    pub(crate) const RESULT: usize = 16;
    pub(crate) const EXIT_SIZE: usize = 24;
    /// Places in the table of stacks; a task's is its number modulo that.
    pub(crate) const STACK_SLOTS: usize = 1024;
}

/// Words of 64 tasks in the table of those that are followed: up to the kernel's `PID_MAX_LIMIT`.
pub(super) const FOLLOWED_WORDS: usize = (4 << 20) / 64;

/// Who waits or wakes more often than once in so many calls is counted no more.
pub(super) const MIN_CALLS_PER_WAIT: i32 = 256;

/// A task's entry in the table of tasks: offsets in bytes. What is told is a copy of it.
pub(crate) mod task_entry {
    use crate::perf::schema::counted;

    /// The task that it belongs to, 0: nobody. 32 bits.
    pub(crate) const TASK: usize = 0;
    /// What is told: [`COUNTED`] or [`OPEN_CALL`]. 32 bits.
    pub(crate) const RECORD_KIND: usize = 4;
    /// The clock when it is told. All times are of `bpf_ktime_get_ns`.
    pub(crate) const NOW: usize = counted::NOW;
    /// Since when it is counted, and until when; of an open call, when it was entered.
    pub(crate) const SINCE: usize = counted::SINCE;
    pub(crate) const UNTIL: usize = 24;
    pub(crate) const ENTERED: usize = 32;
    /// The latest call: number, arguments.
    pub(crate) const NR: usize = 40;
    pub(crate) const ARGS: usize = 48;
    /// Calls counted and not told yet.
    pub(crate) const PENDING: usize = 80;
    /// When the latest call returned.
    pub(crate) const LAST: usize = 88;
    /// Whether a call that will be counted is under way, and whether it was told after all.
    pub(crate) const OPEN: usize = 96;
    pub(crate) const OPEN_REPORTED: usize = 104;
    /// Calls since the latest that waited or woke somebody, and half of what this was then.
    pub(crate) const CALLS_PER_WAIT: usize = 112;
    /// What it begins with: an interrupt or two that wake somebody just then are no habit.
    pub(crate) const CREDIT: u64 = 16 * super::MIN_CALLS_PER_WAIT as u64;
    /// When a call was last recorded.
    pub(crate) const RECORDED: usize = 120;
    /// Calls that had no room: none, unless records could not be written.
    pub(crate) const MISSED: usize = 128;
    /// Calls until the next one that is timed, and how many are timed one after the other.
    pub(crate) const UNTIMED: usize = 136;
    pub(crate) const TIME_EACH: usize = 144;
    /// Whether the clock was read when the latest call was entered; what was between the latest timed return and the
    /// entry after it.
    pub(crate) const ENTRY_TIMED: usize = 152;
    pub(crate) const RETURN_TO_ENTRY: usize = 160;
    /// Where in this entry the kind of the latest call is, if that was counted, otherwise 0; and the bits of its
    /// arguments that tell it apart.
    pub(crate) const LATEST_KIND: usize = 168;
    pub(crate) const MASKS: usize = 176;
    /// Kinds of calls that are counted side by side.
    pub(crate) const KINDS: usize = 5;
    pub(crate) const FIRST_KIND: usize = 208;
    pub(crate) const KIND_SIZE: usize = 96;
    /// Of a kind: number, four arguments, result, how many, how many of them were timed and short, time inside of
    /// those, and of the latest. How many were timed and long, time inside of those.
    pub(crate) const KIND_ARGS: usize = 8;
    pub(crate) const KIND_RESULT: usize = 40;
    pub(crate) const KIND_COUNT: usize = 48;
    pub(crate) const KIND_TIMED: usize = 56;
    pub(crate) const KIND_INSIDE: usize = 64;
    pub(crate) const KIND_LATEST: usize = 72;
    pub(crate) const KIND_LONG: usize = 80;
    pub(crate) const KIND_INSIDE_LONG: usize = 88;
    /// All of it.
    pub(crate) const SIZE: usize = FIRST_KIND + KINDS * KIND_SIZE;
    /// Entries of the table; a task's is its number modulo that.
    pub(crate) const TASKS: usize = 1024;
    /// Calls that were counted are told.
    pub(crate) const COUNTED: u32 = 1;
    /// A call that is under way is told.
    pub(crate) const OPEN_CALL: u32 = 2;
}

/// An entry of the table of kinds, by the call's number: offsets in bytes.
pub(crate) mod call_filter {
    /// Whether such calls may be counted.
    pub(crate) const COUNTABLE: usize = 0;
    /// The bits of the first four arguments that tell calls apart.
    pub(crate) const MASK: usize = 8;
    /// Bits that no argument may have: a call that is asked for much is told by itself.
    pub(crate) const LIMIT: usize = 40;
    pub(crate) const SIZE: usize = 72;
    pub(crate) const CALLS: usize = 512;
}
