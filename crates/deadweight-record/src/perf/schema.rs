//! The purpose of the recorder's events and the layout of their records: everything needed to read them.
//!
//! `sys` and `session` open events; `decode` reads records.

/// The `PERF_SAMPLE_*` bits that the recorder's events use, in the order of the fields.
pub mod fields {
    /// Instruction pointer.
    pub const IP: u64 = 1;
    /// Process and task.
    pub const TASK: u64 = 1 << 1;
    /// Time.
    pub const TIME: u64 = 1 << 2;
    /// Address.
    pub const ADDR: u64 = 1 << 3;
    /// Call chain.
    pub const CHAIN: u64 = 1 << 5;
    /// CPU.
    pub const CPU: u64 = 1 << 7;
    /// A tracepoint's own data.
    pub const RAW: u64 = 1 << 10;
    /// User registers.
    pub const REGISTERS: u64 = 1 << 12;
    /// User stack.
    pub const STACK: u64 = 1 << 13;
    /// The event's id, first of all.
    pub const ID: u64 = 1 << 16;
    /// The fields of every record.
    pub const BASE: u64 = ID | TASK | TIME | CPU;
}

/// Which of the recorder's events made a record.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Carries no samples.
    Dummy,
    /// `sched_switch`.
    Switch,
    /// `sched_waking`.
    Waking,
    /// `sched_process_exec`.
    Exec,
    /// `sys_enter`.
    Enter,
    /// `sys_exit`.
    Leave,
    /// A page fault begins.
    Fault,
    /// A page fault was served from memory.
    MinorEnd,
    /// A page fault was served from storage.
    MajorEnd,
    /// The timer interrupt begins.
    Timer,
    /// The timer interrupt ends.
    TimerEnd,
    /// The sampling clock.
    Clock,
    /// User registers and stack at some system calls.
    CallSite,
    /// User registers and stack at some page faults of user code.
    FaultSite,
    /// User registers and stack at some switches.
    WaitSite,
    /// The command's own `main` was reached.
    Main,
    /// The C library is about to call `main` of any program.
    CommonMain,
    /// A probe, by its number in the request.
    Probe(u16),
    /// A call of a counted function, by its number in the request.
    Count(u16),
    /// User registers and stack at some of them.
    CountStack(u16),
    /// System calls at a high rate that a BPF program counted instead of recording each.
    CallCounts,
    /// 1 in N entries of a task's system call at a high rate, see `session::decimate`.
    EnterNth,
    /// 1 in N of its returns.
    LeaveNth,
}

impl Role {
    /// Whether BPF programs record it, or have perf record it, where they are allowed.
    pub(crate) fn is_by_programs(self) -> bool {
        matches!(
            self,
            Self::Enter
                | Self::Leave
                | Self::CallCounts
                | Self::Switch
                | Self::Waking
                | Self::Exec
                | Self::Timer
                | Self::TimerEnd
                | Self::CallSite
                | Self::FaultSite
                | Self::WaitSite
        ) || self.counts_faults()
    }

    /// Whether it is one of the kernel's counts of page faults.
    fn counts_faults(self) -> bool {
        matches!(self, Self::Fault | Self::MinorEnd | Self::MajorEnd)
    }
}

/// What the records of an event hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bits of [`fields`].
    pub fields: u64,
    /// User registers, one bit for each, as the architecture numbers them.
    pub registers: u64,
}

impl Layout {
    /// The length of the records, unless it varies.
    fn fixed_length(self) -> Option<usize> {
        const VARYING: u64 = fields::CHAIN | fields::RAW | fields::REGISTERS | fields::STACK;
        (self.fields & VARYING == 0).then_some(8 + 8 * self.fields.count_ones() as usize)
    }
}

/// Where tracepoints keep their fields, in bytes from the start of their data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Offsets {
    /// `sched_switch`: the previous task, its state, the next task and its name.
    pub prev_pid: usize,
    /// See `prev_pid`.
    pub prev_state: usize,
    /// See `prev_pid`.
    pub next_comm: usize,
    /// See `prev_pid`.
    pub next_pid: usize,
    /// `sched_waking`: the wakee.
    pub woken: usize,
    /// `sched_process_exec`: where the file name is, and the tid that called exec.
    pub filename: usize,
    /// See `filename`.
    pub old_pid: usize,
    /// `sys_enter`: number and arguments.
    pub enter_nr: usize,
    /// See `enter_nr`.
    pub enter_args: usize,
    /// `sys_exit`: the result.
    pub leave_ret: usize,
}

impl Offsets {
    /// Those of records of BPF programs, as in `bpf/recorder.bpf.c`.
    pub(crate) const OF_PROGRAMS: Self = Self {
        prev_pid: 0,
        next_pid: 4,
        prev_state: 8,
        next_comm: 16,
        woken: 8,
        old_pid: 0,
        filename: 4,
        enter_nr: 0,
        enter_args: 8,
        leave_ret: 0,
    };
}

impl Default for Offsets {
    /// The offsets of 64-bit kernels for years.
    fn default() -> Self {
        Self {
            prev_pid: 24,
            prev_state: 32,
            next_comm: 40,
            next_pid: 56,
            woken: 24,
            filename: 8,
            old_pid: 16,
            enter_nr: 8,
            enter_args: 16,
            leave_ret: 16,
        }
    }
}

/// Offsets in a record of counted calls, in bytes: when it was made, and when counting began.
pub(crate) mod counted {
    pub(crate) const NOW: usize = 8;
    pub(crate) const SINCE: usize = 16;
}

/// What is needed to read records.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// All open events: id, role and layout; sorted by id by [`Schema::add`].
    events: Vec<(u64, Role, Layout)>,
    /// The events that count page faults, by the length of their records.
    faults: Vec<(usize, Role, Layout)>,
    /// The event that records stacks at some page faults, if it is a software event like those.
    fault_site: Option<Layout>,
    /// Whether the sampling clock has ring buffers of its own.
    clock_apart: bool,
    /// Whether BPF programs record what they can.
    by_programs: bool,
    /// The offsets in tracepoints' data.
    pub offsets: Offsets,
}

impl Schema {
    /// No event yet, and these offsets for tracepoints.
    #[must_use]
    pub fn new(offsets: Offsets) -> Self {
        Self { offsets, ..Self::default() }
    }

    /// Adds an event with this id.
    pub fn add(&mut self, id: u64, role: Role, layout: Layout) {
        let at = self.events.partition_point(|(known, ..)| *known < id);
        self.events.insert(at, (id, role, layout));
        if let Some(length) = layout.fixed_length().filter(|_| role.counts_faults())
            && self.faults.iter().all(|(known, ..)| *known != length)
        {
            self.faults.push((length, role, layout));
        }
    }

    /// The same for the event that records stacks at some page faults, where it is a software event and not a
    /// tracepoint: the ids of such events are mixed up, see [`Schema::sampled`].
    pub(crate) fn add_fault_site(&mut self, id: u64, layout: Layout) {
        self.add(id, Role::FaultSite, layout);
        self.fault_site = Some(layout);
    }

    /// The sampling clock has ring buffers of its own from now on: losses there do not lose time.
    pub fn set_clock_apart(&mut self) {
        self.clock_apart = true;
    }

    /// BPF programs record what they can, with their own offsets.
    pub(crate) fn set_programs(&mut self) {
        (self.by_programs, self.offsets) = (true, Offsets::OF_PROGRAMS);
    }

    /// Whether records that were dropped under this event's id can only be samples of the clock.
    pub(super) fn drops_samples_only(&self, id: u64) -> bool {
        self.clock_apart && self.role(id) == Some(Role::Clock)
    }

    /// How many events are known.
    pub(crate) fn events(&self) -> usize {
        self.events.len()
    }

    /// Whether there is an event for this.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        let by_programs = self.by_programs && role.is_by_programs();
        by_programs || self.events.iter().any(|(_, known, _)| *known == role)
    }

    /// Which event makes the records with this id.
    #[must_use]
    pub fn role(&self, id: u64) -> Option<Role> {
        self.find(id).map(|(role, _)| role)
    }

    /// The event that made a sample of this length.
    ///
    /// Where several events count the same page fault, even those of other processes, the kernel marks all records
    /// with the id of one (`do_perf_sw_event` fills in the id once). Then the length decides: no two of the
    /// recorder's fault events have the same.
    pub(super) fn sampled(&self, id: u64, length: usize) -> Option<(Role, Layout)> {
        let mixed = |role: Role| {
            role.counts_faults() || role == Role::FaultSite && self.fault_site.is_some()
        };
        self.find(id).filter(|(role, _)| !mixed(*role)).or_else(|| {
            let found = self.faults.iter().find(|(known, ..)| *known == length);
            let fixed = found.map(|(_, role, layout)| (*role, *layout));
            fixed.or(self.fault_site.map(|layout| (Role::FaultSite, layout)))
        })
    }

    fn find(&self, id: u64) -> Option<(Role, Layout)> {
        let at = self.events.binary_search_by_key(&id, |(known, ..)| *known).ok()?;
        self.events.get(at).map(|(_, role, layout)| (*role, *layout))
    }
}
