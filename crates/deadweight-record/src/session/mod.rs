//! A session: the set of events of a recording, opened and writing to one ring buffer per CPU.
//!
//! - In: the program, probes, permissions.
//! - Out: open events, rings, and the schema to read them.
//! - Must not know: what records mean.
//!
//! *Wide* events follow every task: wake-ups come from interrupts and other programs, and switches
//! are needed after a task's own last event (its exit). *Task* events follow the program and its
//! descendants only, because calls and faults of other programs must not be slowed. Records of BPF
//! programs are wide, but the programs select the tasks: see `crate::bpf`.
//!
//! Every task event costs each fork and each switch, so events that do not slow other programs are
//! wide: the timer interrupt, faults served from storage, and the sampling clock. As a task event,
//! the clock would set a hardware timer at every switch (it doubled the cost of one) and would miss
//! a process that lives shorter than its period. On machines with many CPUs the clock is a task
//! event all the same: there the stacks of busy other programs would fill the rings. Uprobes are
//! wide too: the kernel cannot inherit them (it looks for the path's text in the memory of the
//! forking task, and fails the fork). The one in the C library is hit once by each program that
//! starts; setting it took 1 ms with 130 processes that map it.

mod attached;
mod bpf_events;
mod breakpoints;
pub(crate) mod calibrate;
mod calibrated_actions;
mod call_events;
pub(crate) mod counting;
pub(crate) mod decimate;
mod decimated_call;
pub(crate) mod known_overhead;
mod named;
pub(crate) mod probes;
mod root_rung;
mod sampling_clock;
pub(crate) mod self_test;
mod uprobes;
mod user_rung;

use crate::bpf::high_rate::Cost;
use crate::bpf::{Attachment, Programs, RecordRing};
use crate::error::Error;
use crate::launch::Probe;
use crate::perf::deferred_close::EventFiles;
use crate::perf::ring::Ring;
use crate::perf::schema::{Offsets, Role, Schema, fields};
use crate::perf::sys::{Event, Open, Scope, Source};
use crate::perf::tracefs::Tracefs;
use crate::procfs::memory_budget::memory_left;
use crate::timing::Unrecorded;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

pub(crate) use breakpoints::Breakpoints;
pub(crate) use call_events::RetiredEvents;
use counting::Counting;
pub(crate) use decimated_call::NTH;
pub(crate) use uprobes::attach_to_mains;
pub(crate) use user_rung::{BreakpointSet, UserAccess, UserView};

/// User stacks per second, task and CPU, at calls and at faults. The first ones are always recorded; later, frequent
/// call sites are sampled often enough.
const SITES_PER_SECOND: u64 = 1000;
/// Switches of tasks that block: preempted tasks have state 0 or, on newer kernels, a bit above all states. Without
/// this filter their number would displace the waits.
const BLOCKS: &CStr = c"prev_state > 0 && prev_state < 256";
/// The rank of events that cost nothing while they are disabled.
const HARMLESS: u8 = 3;
/// Sizes of a ring in bytes, tried in this order. A busy CPU fills 16 MiB in about 100 ms. An ordinary user may lock
/// less, and where BPF programs record, the rings hold stacks and little else.
pub(crate) const RING_SIZES: [usize; 7] =
    [16 << 20, 8 << 20, 4 << 20, 2 << 20, 1 << 20, 512 << 10, 256 << 10];

/// The largest ring for each of this many CPUs, given the memory budget: the copies of all rings take a sixteenth of
/// it, twice, and so do the rings for samples.
fn fitting(cpus: usize, left: u64) -> usize {
    let each = usize::try_from(left / 16).unwrap_or(usize::MAX) / cpus.max(1);
    RING_SIZES.into_iter().find(|size| *size <= each).unwrap_or(RING_SIZES[RING_SIZES.len() - 1])
}

/// In place of a program: no task is followed yet, see `attached`.
pub(crate) const NO_PROGRAM: i32 = 0;

/// Open events and their rings.
pub(crate) struct Session {
    /// How to read their records.
    pub(crate) schema: Schema,
    /// One per CPU, then those of the sampling clock, if it has its own.
    pub(crate) rings: Vec<Ring>,
    /// Those of the BPF programs, one per CPU; none where events of perf record everything.
    pub(crate) record_rings: Vec<RecordRing>,
    /// Warnings about events that are not available.
    pub(crate) warnings: Vec<String>,
    /// The CPUs that are recorded.
    pub(crate) cpus: Vec<i32>,
    /// Counted functions; most recordings have none.
    pub(crate) counting: Counting,
    /// The events that own the rings, one per CPU.
    leaders: Vec<Open>,
    /// The events that own the sampling clock's rings.
    samplers: Vec<Open>,
    wide: Vec<Open>,
    task: Vec<Open>,
    /// The clocks of the CPUs, and their period, where they follow all tasks.
    clocks: sampling_clock::Clocks,
    /// Events for the records of BPF programs; none where perf's own events record calls.
    bpf_events: Option<bpf_events::BpfEvents>,
    /// Events at single calls, and one for each of their tracepoints that keeps it in use.
    call_events: Vec<call_events::CallEvent>,
    keep_open: Vec<Open>,
    /// A program at each start of `main`; none where events of perf record them.
    mains: Vec<Attachment>,
    /// In place of uprobes, on the user rung.
    pub(crate) breakpoints: BreakpointSet,
    /// Durations of unrecorded calls.
    pub(crate) unrecorded: Unrecorded,
    /// What a counted one costs.
    counted_call: Cost,
    /// How much longer a recorded one takes, in ns; 0 if not measured.
    recording_call: u64,
    /// What an ordinary user may record, on the user rung; none on the root rung.
    pub(crate) user_access: Option<UserAccess>,
}

/// The start of the program's own code, in a binary.
pub(crate) struct Entry {
    /// The binary.
    pub(crate) path: std::path::PathBuf,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Its address in memory, where that is the same in each run.
    pub(crate) fixed: Option<u64>,
    /// Whether it is the C library's common entry rather than the command's own `main`.
    pub(crate) common: bool,
}

impl Session {
    /// Opens everything for the process behind the barrier. BPF programs come with their attachments to starts of
    /// `main`, see [`attach_to_mains`].
    /// Wide events still need [`Session::enable`]; the others start at its exec.
    pub(crate) fn open(
        program: i32,
        cpus: &[i32],
        entries: &[Entry],
        probes: &[Probe],
        programs: Option<(Arc<Programs>, Vec<Attachment>)>,
        user_access: Option<UserAccess>,
    ) -> Result<Self, Error> {
        let mut session = Self {
            schema: Schema::new(Offsets::default()),
            rings: Vec::new(),
            record_rings: Vec::new(),
            warnings: Vec::new(),
            cpus: cpus.to_vec(),
            counting: Counting::default(),
            leaders: Vec::new(),
            samplers: Vec::new(),
            wide: Vec::new(),
            clocks: sampling_clock::Clocks::default(),
            task: Vec::new(),
            bpf_events: None,
            call_events: Vec::new(),
            keep_open: Vec::new(),
            mains: Vec::new(),
            breakpoints: BreakpointSet::default(),
            unrecorded: Unrecorded::default(),
            counted_call: Cost::default(),
            recording_call: 0,
            user_access,
        };
        match session.user_access.clone() {
            None => session.open_root_events(program, entries, probes, programs)?,
            Some(user_access) => {
                session.open_user_events(program, &user_access, entries, probes)?
            }
        }
        Ok(session)
    }

    fn open_root_events(
        &mut self,
        program: i32,
        entries: &[Entry],
        probes: &[Probe],
        programs: Option<(Arc<Programs>, Vec<Attachment>)>,
    ) -> Result<(), Error> {
        let leader = Event::of_each(Source::Dummy, fields::BASE);
        let largest = RING_SIZES[if programs.is_some() { 2 } else { 0 }];
        self.map_rings((&leader, Scope::AllTasks), largest)?;
        match programs {
            Some((programs, mains)) if self.open_bpf_events(programs.clone()).is_ok() => {
                self.mains = mains;
            }
            _ => self.open_tracepoints(program)?,
        }
        self.follow_by_programs(program);
        self.open_uprobes(entries, probes)
    }

    /// Opens events of perf that record what BPF programs would.
    fn open_tracepoints(&mut self, program: i32) -> Result<(), Error> {
        let tracefs = Tracefs::open()?;
        self.schema.offsets = root_rung::offsets(&tracefs)?;
        for (role, event, needed) in root_rung::wide_events(&tracefs) {
            let opened = self.open_everywhere(role, event.as_ref(), Scope::AllTasks);
            let opened = self.tolerate(role, opened, needed)?;
            self.wide.extend(opened);
        }
        if program == NO_PROGRAM {
            return Ok(());
        }
        for (role, event) in root_rung::task_events(&tracefs) {
            let opened = self.open_everywhere(role, event.as_ref(), Scope::FromExec(program));
            // Not every architecture has the tracepoint.
            let opened = self.tolerate(role, opened, role != Role::FaultSite)?;
            self.task.extend(opened);
        }
        Ok(())
    }

    fn open_user_events(
        &mut self,
        program: i32,
        user_access: &UserAccess,
        entries: &[Entry],
        probes: &[Probe],
    ) -> Result<(), Error> {
        let (leader, scope) = user_access.leader(program);
        self.map_rings((&leader, scope), RING_SIZES[0])?;
        for (role, event) in user_access.events() {
            if let Source::Tracepoint(tracepoint) = event.source {
                self.open_call_event(role, (&event, tracepoint), Scope::FromExec(program))?;
                continue;
            }
            let opened = self.open_everywhere(role, Ok(&event), Scope::FromExec(program));
            let opened = self.tolerate(role, opened, false)?;
            self.task.extend(opened);
        }
        self.keep_tracepoints_in_use();
        self.set_breakpoints(program, entries, probes);
        Ok(())
    }

    /// Maps a ring per CPU, owned by an event like this.
    fn map_rings(&mut self, (event, scope): (&Event, Scope), largest: usize) -> Result<(), Error> {
        // With programs, their rings take as much again.
        let rings = if largest < RING_SIZES[0] { 2 } else { 1 } * self.cpus.len();
        let fitting = fitting(rings, memory_left()).min(largest);
        let usual = if self.user_access.is_some() { RING_SIZES[2] } else { largest };
        'sizes: for size in RING_SIZES.into_iter().filter(|size| *size <= fitting) {
            self.leaders.clear();
            self.rings.clear();
            for cpu in &self.cpus {
                let system =
                    |source| Error::System { what: "cannot open perf events".into(), source };
                let leader = event.open(scope, *cpu).map_err(system)?;
                match Ring::map(&leader, size) {
                    Ok(ring) => self.rings.push(ring),
                    Err(_) if size > RING_SIZES[RING_SIZES.len() - 1] => continue 'sizes,
                    Err(source) => {
                        let what = "cannot map memory for the kernel's records".into();
                        return Err(Error::System { what, source });
                    }
                }
                self.schema.add(leader.id, Role::Dummy, event.layout);
                self.leaders.push(leader);
            }
            let kib = size >> 10;
            if size < usual.min(fitting) {
                self.warnings.push(format!(
                    "the kernel granted only {kib} KiB per CPU for its records: more may be lost"
                ));
            } else if size < usual {
                self.warnings.push(format!(
                    "little memory was left: records had only {kib} KiB per CPU, more may be lost"
                ));
            }
            break;
        }
        Ok(())
    }

    /// Opens an event on every CPU, its records going to that CPU's ring.
    pub(crate) fn open_everywhere(
        &mut self,
        role: Role,
        event: Result<&Event, &std::io::Error>,
        scope: Scope,
    ) -> std::io::Result<Vec<Open>> {
        let event = event.map_err(|e| e.kind())?;
        let mut opened = Vec::new();
        let apart = role == Role::Clock && !self.samplers.is_empty();
        let leaders = if apart { &self.samplers } else { &self.leaders };
        for (cpu, leader) in self.cpus.iter().zip(leaders) {
            let open = event.open(scope, *cpu)?;
            open.write_to(leader)?;
            if role == Role::WaitSite && matches!(event.source, Source::Tracepoint(_)) {
                open.filter(BLOCKS)?;
            }
            if role == Role::FaultSite && self.user_access.is_some() {
                self.schema.add_fault_site(open.id, event.layout);
            } else {
                self.schema.add(open.id, role, event.layout);
            }
            opened.push(open);
        }
        Ok(opened)
    }

    /// A missing event is a warning, or an error if the recording is useless without it.
    fn tolerate(
        &mut self,
        role: Role,
        opened: std::io::Result<Vec<Open>>,
        needed: bool,
    ) -> Result<Vec<Open>, Error> {
        match opened {
            Ok(opened) => Ok(opened),
            Err(source) if needed => {
                Err(Error::System { what: format!("cannot record {}", role.words()), source })
            }
            Err(source) => {
                let why = match source.kind() {
                    std::io::ErrorKind::NotFound => "this kernel has no such tracepoint".into(),
                    _ => source.to_string(),
                };
                self.warnings.push(format!("{} not recorded: {why}", role.words()));
                Ok(Vec::new())
            }
        }
    }

    /// A second set of task events for another process, to measure their cost.
    pub(crate) fn open_task_events(&mut self, task: i32) -> Result<Vec<Open>, Error> {
        let events = match &self.user_access {
            Some(user_access) => {
                user_access.events().into_iter().map(|(role, event)| (role, Ok(event))).collect()
            }
            None if self.has_programs() => Vec::new(),
            None => root_rung::task_events(&Tracefs::open()?),
        };
        self.follow_by_programs(task);
        let mut all = Vec::new();
        for (role, event) in events {
            let opened = self.open_everywhere(role, event.as_ref(), Scope::TaskTree(task));
            // A failure was already reported for the program.
            all.extend(opened.unwrap_or_default());
        }
        Ok(all)
    }

    /// Opens the records of switches on these CPUs. They contain less than the tracepoint and cost as much, so they
    /// are only for CPUs where the tracepoint is not always delivered.
    pub(crate) fn open_switches(&mut self, cpus: &[i32]) -> Result<(), Error> {
        let event = Event::of_each(Source::Switches, fields::BASE);
        for (cpu, leader) in self.cpus.iter().zip(&self.leaders).filter(|(c, _)| cpus.contains(c)) {
            let opened = event.open(Scope::AllTasks, *cpu).and_then(|open| {
                open.write_to(leader)?;
                Ok(open)
            });
            let opened = opened.map_err(|source| Error::System {
                what: format!("cannot record {}", Role::Dummy.words()),
                source,
            })?;
            self.schema.add(opened.id, Role::Dummy, event.layout);
            self.wide.push(opened);
        }
        Ok(())
    }

    /// Takes all records out of the rings, in no particular order, and forgets what was lost until now.
    fn take_records(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for ring in &self.record_rings {
            let before = bytes.len();
            ring.copy_to(&mut bytes);
            RecordRing::as_perf_does(&mut bytes[before..], ring.cpu());
            ring.skip_old_losses();
        }
        for ring in &mut self.rings {
            ring.copy_to(&mut bytes);
            ring.skip_old_losses();
        }
        bytes
    }

    /// All descriptors that must be closed at the end, and their order.
    pub(crate) fn event_files(&self) -> EventFiles {
        let owners = self.leaders.iter().chain(&self.samplers);
        let all = owners
            .chain(&self.wide)
            .chain(&self.clocks.events)
            .chain(&self.task)
            .chain(self.bpf_events.iter().flat_map(|bpf| &bpf.events))
            .chain(self.events_at_calls());
        let all = all.chain(self.breakpoints.all());
        let ranked = |open: &Open| {
            let rank = match self.schema.role(open.id) {
                // They slow every system call as long as one of them is open. Those without a ring keep the
                // tracepoints in use.
                Some(Role::Enter | Role::Leave | Role::CallSite) | None => 0,
                Some(Role::Main | Role::CommonMain | Role::Probe(_)) => 1,
                Some(Role::Switch | Role::Waking | Role::Exec | Role::Timer | Role::TimerEnd) => {
                    HARMLESS
                }
                _ => 2,
            };
            (rank, open.as_raw_fd())
        };
        let mut files: Vec<_> = all.map(ranked).collect();
        files.sort_unstable();
        let harmless = files.split_off(files.partition_point(|(rank, _)| *rank < HARMLESS));
        let bare = |files: Vec<(u8, RawFd)>| files.into_iter().map(|(_, fd)| fd).collect();
        let mut slowing: Vec<_> = bare(files);
        slowing.extend(self.mains.iter().map(AsRawFd::as_raw_fd));
        EventFiles { slowing, harmless: bare(harmless) }
    }

    /// Enables the wide events.
    pub(crate) fn enable(&self) -> Result<(), Error> {
        self.let_programs_record(true);
        self.each_wide(Open::enable, "cannot start recording")?;
        self.clocks.start()
    }

    /// Disables the wide events; the others have ended with the program, or are left to the deferred close.
    pub(crate) fn disable(&self) -> Result<(), Error> {
        self.let_programs_record(false);
        self.each_wide(Open::disable, "cannot stop recording")?;
        self.clocks.stop()
    }

    fn each_wide(
        &self,
        act: impl Fn(&Open) -> std::io::Result<()>,
        what: &str,
    ) -> Result<(), Error> {
        for event in self.leaders.iter().chain(&self.wide) {
            act(event).map_err(|source| Error::System { what: what.into(), source })?;
        }
        Ok(())
    }
}

impl Role {
    /// What is missing without this event.
    fn words(self) -> &'static str {
        match self {
            Self::Dummy | Self::Switch => "context switches",
            Self::Waking => "wake-ups",
            Self::Exec => "programs' paths",
            Self::Enter | Self::Leave | Self::CallSite => "system calls",
            Self::Fault | Self::MinorEnd | Self::MajorEnd => "page faults",
            Self::FaultSite => "stacks of page faults",
            Self::Timer | Self::TimerEnd => "timer interrupts",
            Self::Clock => "clock samples",
            Self::WaitSite => "stacks of waits",
            Self::Main | Self::CommonMain => "the start of main",
            Self::Probe(_) => "a probe",
            Self::Count(_) | Self::CountStack(_) => "calls",
            Self::CallCounts => "counts of system calls at a high rate",
            Self::EnterNth | Self::LeaveNth => "system calls at a high rate",
        }
    }
}
