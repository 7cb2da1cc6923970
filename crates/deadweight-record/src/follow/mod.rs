//! Follows the program and its descendants through the records of the whole machine, and turns them
//! into raw events.
//!
//! - In: decoded records in order of time.
//! - Out: raw events to the sink.
//! - Must not know: causes or costs.
//!
//! Other programs' tasks appear only where they hold a CPU, or wake a followed task. Tids are
//! reused, so births, in order of time, decide which tasks belong to the program.

mod attached;
mod cold_events;
mod counted_places;
mod decimated;
mod elevated;
mod forget;
mod fork_burst;
mod full_buffers;
mod high_rate;
mod lost_births;
pub(crate) mod merge;
mod missed_switches;
mod missing_ticks;
mod pid_namespace;
mod sites;
mod stats;
mod switches;
mod user_rung;
mod user_stack;
mod waking;

use crate::launch::Probe;
use crate::perf::decode::{Body, Record, Sample};
use crate::perf::schema::{Offsets, Role};
use crate::procfs::memory::Page;
use crate::procfs::waits::Wait;
use crate::procfs::{Descriptor, ProcSample};
use cold_events::{WARM_CALL, WARM_FAULT};
use deadweight_trace::raw::{RawEvent, RawKind, Sink, UserState};

use deadweight_trace::hash::ByFast;
use deadweight_trace::ids::{Cpu, Tid};
use merge::UnrecordedCalls;
pub(crate) use stats::RecordingStats;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use user_stack::UserStack;

/// The id that perf writes for a task that is already reaped.
const REAPED: u32 = u32::MAX;

/// Turns records into raw events.
pub(crate) struct Follow<'s> {
    pub(crate) sink: &'s mut dyn Sink,
    offsets: Offsets,
    probes: &'s [Probe],
    start: Start,
    tasks: HashMap<u32, Task, ByFast>,
    /// Above this number, tasks that are gone are forgotten.
    forget_at: usize,
    cpus: Vec<CpuHolder>,
    kernel_chain: Vec<u64>,
    user_chain: Vec<u64>,
    user_rung: Option<user_rung::UserRung>,
    decimation: decimated::Decimation,
    fork_burst: fork_burst::ForkBurst,
    pids: pid_namespace::PidMap,
    /// The unrecorded calls that the current record stands for.
    pub(crate) unrecorded: Option<UnrecordedCalls>,
    /// Samples from `/proc` whose time has not come yet.
    proc_samples: VecDeque<ProcSample>,
    /// Time of the latest emitted event: later ones are never earlier.
    last: u64,
    /// When the program's end was known; `u64::MAX` while it runs. Later, only the root's own last steps count: tasks
    /// that outlive the program do not belong to the recording.
    pub(crate) end: u64,
    /// Counts and warnings of the recording.
    pub(crate) stats: RecordingStats,
}

/// The program as it stands behind its barrier.
#[derive(Default)]
pub(crate) struct Start {
    /// Its process id.
    pub(crate) root: u32,
    /// The descriptors that survive its exec, as `/proc` names them.
    pub(crate) descriptors: Vec<(i32, String)>,
    /// Whether its own `main` is probed; then the C library's entry is redundant.
    pub(crate) main_is_probed: bool,
    /// What the user rung records; none where the whole machine is recorded.
    pub(crate) user_view: Option<crate::session::UserView>,
    /// The calls with events of their own.
    pub(crate) single_calls: Vec<u16>,
    /// Whether process ids here differ from the machine's.
    pub(crate) in_pid_namespace: bool,
    /// Whether calls and faults are recorded by BPF programs.
    pub(crate) by_programs: bool,
    /// The counted functions.
    pub(crate) counts: Vec<crate::session::counting::Reading>,
}

#[derive(Default)]
struct Task {
    followed: bool,
    process: u32,
    name: [u8; 16],
    /// In `sched_yield`: a switch-out while runnable is then voluntary.
    yielding: bool,
    /// In a call that waits for children.
    waits_for_children: bool,
    /// Its latest call with a record, and its entry time if it is still in it.
    called: Option<(u16, [u64; 6])>,
    entered: Option<u64>,
    /// In the call that makes it another program.
    in_exec: bool,
    /// Its exec is reported, and that call has not returned.
    after_exec: bool,
    /// The kernel gave it elevated privileges.
    elevated: bool,
    /// Process of the task that created it.
    parent: u32,
    /// Its execs; only kept for process leaders.
    execs: u32,
    /// Its process runs another program than the command; only kept for process leaders.
    other_program: bool,
    /// The latest event that waits for user registers and stack.
    expected_user_stack: Option<Role>,
    /// User registers and stack that came before their event.
    early_user_stack: Option<UserStack>,
    /// When it was last on a CPU, as dead.
    gone: Option<u64>,
    /// It was switched out, and not in again.
    off: bool,
}

#[derive(Copy, Clone, Default)]
struct CpuHolder {
    task: u32,
    /// When an event of a followed task was last recorded here, in ns.
    latest: u64,
    /// Switches from the idle task with a tracepoint; without one (known from a switch record only).
    idle_seen: u32,
    idle_unseen: u32,
}

/// The kernel's description of an exec, which comes later.
pub(crate) struct Exec<'a> {
    /// The tid that called exec.
    pub(crate) former: u32,
    /// The file, as requested.
    pub(crate) path: &'a [u8],
}

impl<'s> Follow<'s> {
    pub(crate) fn new(
        sink: &'s mut dyn Sink,
        offsets: Offsets,
        probes: &'s [Probe],
        start: Start,
        cpus: usize,
    ) -> Self {
        let mut tasks = HashMap::default();
        let root = start.root;
        tasks.insert(root, Task { followed: true, process: root, ..Task::default() });
        Self {
            sink,
            decimation: decimated::Decimation::new(
                start.user_view.map_or(0, |view| view.recording),
            ),
            fork_burst: fork_burst::ForkBurst::new(start.user_view.is_some()),
            unrecorded: None,
            pids: pid_namespace::PidMap::new(start.in_pid_namespace),
            user_rung: start.user_view.map(|view| user_rung::UserRung::new(view, cpus)),
            offsets,
            probes,
            start,
            tasks,
            forget_at: forget::FEW,
            cpus: vec![CpuHolder::default(); cpus],
            kernel_chain: Vec::new(),
            user_chain: Vec::new(),
            proc_samples: VecDeque::new(),
            last: 0,
            end: u64::MAX,
            stats: RecordingStats::default(),
        }
    }

    /// CPUs whose idle task was switched out, but never with a tracepoint.
    pub(crate) fn blind_cpus(&self) -> Vec<Cpu> {
        let blind = |held: &CpuHolder| held.idle_unseen > 0 && held.idle_seen == 0;
        (0..).zip(&self.cpus).filter(|(_, held)| blind(held)).map(|(cpu, _)| Cpu(cpu)).collect()
    }

    /// Takes one record, in order of time. `exec` belongs to the record that announces an exec.
    pub(crate) fn take(&mut self, record: &Record<'_>, exec: Option<&Exec<'_>>) {
        self.stats.records += 1;
        self.catch_up(record);
        while self.proc_samples.front().is_some_and(|found| found.at() <= record.at) {
            match self.proc_samples.pop_front() {
                Some(ProcSample::Descriptor(found)) => self.descriptor(&found),
                Some(ProcSample::Wait(found)) => self.wait(&found),
                Some(ProcSample::Page(found)) => self.page(found),
                Some(ProcSample::CountingStopped(at)) => self.counting_stopped(at),
                None => {}
            }
        }
        match &record.body {
            Body::Sample(sample) => self.sample(record, sample),
            Body::Switched { out, runnable } if self.user_rung.is_some() => {
                self.user_rung_switched(record, *out, *runnable);
            }
            Body::Switched { out, .. } => self.switched(record, *out),
            Body::Fork { process, task, parent } => self.fork(record, *parent, *task, *process),
            Body::Exit { task } if !self.follows(*task) => {}
            Body::Exit { task } if self.user_rung.is_some() => self.user_rung_exits(record, *task),
            Body::Exit { task } => self.exits(record, *task),
            Body::Comm { task, exec: true, name } if self.user_rung.is_some() => {
                if self.follows(*task) {
                    self.user_rung_execs(record, *task, name);
                }
            }
            Body::Comm { task, exec: became, name } => {
                if *became && self.follows(*task) {
                    self.exec(record, *task, exec);
                }
                self.named(record, *task, name);
            }
            Body::Map { start, len, offset, inode, executable, path } => {
                if self.follows(record.task) {
                    let path = &*String::from_utf8_lossy(path);
                    let (start, len, offset) = (*start, *len, *offset);
                    let (inode, executable) = (*inode, *executable);
                    let map = RawKind::Map { start, len, offset, inode, path, executable };
                    self.emit(record, record.task, map);
                }
            }
            Body::Lost(count) => {
                self.stats.lost += count;
                self.emit(record, 0, RawKind::Lost { count: *count });
            }
            Body::LostSamples(count) => self.stats.samples_lost += count,
            Body::Throttled => self.stats.throttled += 1,
            Body::Other => {}
        }
    }

    /// Adds a sample from `/proc`, in order of time.
    pub(crate) fn add_proc_sample(&mut self, found: ProcSample) {
        self.proc_samples.push_back(found);
    }

    /// The stack of a wait that still lasts, unless it had one from the start.
    fn wait(&mut self, found: &Wait) {
        let Wait { at, task, ip, sp, ref stack } = *found;
        let known = self
            .tasks
            .get_mut(&task)
            .filter(|t| t.followed && t.expected_user_stack == Some(Role::WaitSite));
        if let Some(known) = known {
            known.expected_user_stack = None;
            let record = Record { at, process: known.process, task, cpu: 0, body: Body::Other };
            let user = UserState { ip, sp, fp: 0, lr: 0, stack, chain: &[], general: &[] };
            self.emit(&record, task, RawKind::Site(user));
        }
    }

    fn page(&mut self, found: Page) {
        let Page { at, process, addr, zero } = found;
        if self.is_after_exec(process) {
            let record = Record { at, process, task: process, cpu: 0, body: Body::Other };
            self.emit(&record, process, RawKind::Page { addr, zero });
        }
    }

    /// Whether it is one of the program's processes: before its exec the root still has descriptors and memory of the
    /// recorder.
    fn is_after_exec(&self, process: u32) -> bool {
        let became = |task: &Task| task.followed && (process != self.start.root || task.execs > 0);
        self.tasks.get(&process).is_some_and(became)
    }

    /// Whether it is the root before its exec.
    fn is_before_exec(&self, task: u32) -> bool {
        task == self.start.root && self.user_rung.is_none() && !self.is_after_exec(task)
    }

    fn descriptor(&mut self, found: &Descriptor) {
        let Descriptor { at, process, fd, ref what } = *found;
        if self.is_after_exec(process) {
            let record = Record { at, process, task: process, cpu: 0, body: Body::Other };
            self.emit(&record, process, RawKind::Fd { fd, what });
        }
    }

    fn follows(&self, task: u32) -> bool {
        self.tasks.get(&task).is_some_and(|t| t.followed)
    }

    fn emit(&mut self, record: &Record<'_>, task: u32, kind: RawKind<'_>) {
        if record.at > self.end && (task != self.start.root || self.stats.root_dead) {
            return;
        }
        self.last = self.last.max(record.at);
        self.note_off_cpu(task, &kind, self.last);
        let process = self.tasks.get(&task).map_or(0, |t| t.process);
        let cpu = Cpu(u16::try_from(record.cpu).unwrap_or(u16::MAX));
        let event = RawEvent { at: self.last, cpu, process: Tid(process), task: Tid(task), kind };
        self.sink.event(&event);
    }

    fn fork(&mut self, record: &Record<'_>, parent: u32, child: u32, process: u32) {
        let parents = self.tasks.get(&parent).map(|p| (p.followed, p.name, p.process));
        let (followed, name, parents) = parents.unwrap_or_default();
        let other_program = self.tasks.get(&parents).is_some_and(|parent| parent.other_program);
        let task =
            Task { followed, process, name, parent: parents, other_program, ..Task::default() };
        self.tasks.insert(child, task);
        self.forget();
        if followed {
            let kind = RawKind::Fork { child: Tid(child), process: Tid(process) };
            self.emit(record, parent, kind);
            self.tid_reused(child, record.at);
            self.task_born(record.at);
        }
    }

    fn exec(&mut self, record: &Record<'_>, task: u32, exec: Option<&Exec<'_>>) {
        let path = exec.map_or(Cow::Borrowed(""), |e| String::from_utf8_lossy(e.path));
        let former = exec.and_then(|e| self.pids.known(e.former));
        let former = Tid(former.unwrap_or(task));
        let root = self.start.root;
        if let Some(known) = self.tasks.get_mut(&task) {
            known.execs += 1;
            known.other_program = task != root || known.execs > 1;
            (known.expected_user_stack, known.early_user_stack, known.yielding) =
                (None, None, false);
            (known.in_exec, known.after_exec) = (false, true);
        }
        if let Some(known) = self.tasks.get_mut(&former.0).filter(|_| former != Tid(task)) {
            known.gone = Some(record.at);
        }
        self.emit(record, task, RawKind::Exec { former, path: &path });
        if task == self.start.root {
            for (fd, what) in std::mem::take(&mut self.start.descriptors) {
                self.emit(record, task, RawKind::Fd { fd, what: &what });
            }
        }
    }

    /// The task has this name: reported if it is new and the task is followed or known as the holder of a CPU.
    fn named(&mut self, record: &Record<'_>, task: u32, name: &[u8]) {
        let Some(known) = self.tasks.get_mut(&task) else { return };
        let mut padded = [0; 16];
        let len = name.len().min(padded.len());
        padded[..len].copy_from_slice(&name[..len]);
        if known.name != padded {
            known.name = padded;
            self.emit(record, task, RawKind::Comm(&String::from_utf8_lossy(&name[..len])));
        }
    }

    fn sample(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        match sample.role {
            Role::Switch => return self.switch(record, sample),
            Role::Waking => return self.waking(record, sample),
            Role::CallCounts => return self.counted(record, sample),
            // Only wakes the recorder; maybe of a task that was switched out already.
            Role::Dummy => return,
            role if !self.follows(record.task) && !self.adopts(record, role) => return,
            // BPF programs also report the time behind the barrier.
            role if role.is_by_programs() && self.is_before_exec(record.task) => return,
            // The switch-out is already reported.
            Role::WaitSite => {}
            _ => self.note_on_cpu(record, record.task),
        }
        self.note_gap(record, sample.role);
        match sample.role {
            Role::Enter => self.enter(record, sample),
            Role::EnterNth => self.enter_nth(record, sample),
            Role::LeaveNth => self.leave_nth(record, sample),
            Role::Leave => {
                let ret = sample.raw_u64(self.offsets.leave_ret).unwrap_or(0).cast_signed();
                if let Some(task) = self.tasks.get_mut(&record.task) {
                    (task.yielding, task.expected_user_stack) = (false, None);
                    (task.waits_for_children, task.in_exec, task.after_exec) =
                        (false, false, false);
                    if let (Some((nr, _)), Some(at)) = (task.called, task.entered.take()) {
                        let took = record.at.saturating_sub(at);
                        self.decimation.measured(nr, took);
                        self.fork_burst.left(nr, took);
                    }
                }
                self.emit(record, record.task, RawKind::Back { ret });
            }
            Role::Fault => {
                let (addr, ip, kernel) = (sample.addr, sample.ip, sample.kernel);
                self.emit(record, record.task, RawKind::Fault { addr, ip, kernel });
                self.expect_user_stack(record, record.task, Role::FaultSite);
            }
            Role::MinorEnd | Role::MajorEnd => {
                let major = sample.role == Role::MajorEnd;
                if let Some(task) = self.tasks.get_mut(&record.task) {
                    task.expected_user_stack = None;
                }
                self.emit(record, record.task, RawKind::FaultEnd { major });
            }
            Role::Timer => self.emit(record, record.task, RawKind::Timer),
            Role::TimerEnd => self.emit(record, record.task, RawKind::TimerEnd),
            Role::Clock => self.with_user(record, sample, |user, chain| RawKind::Sample {
                kernel: sample.kernel,
                user,
                chain,
            }),
            Role::CallSite | Role::FaultSite | Role::WaitSite => self.site(record, sample),
            Role::Main | Role::Probe(_) if self.ran_another_program(record.process) => {}
            Role::Main | Role::CommonMain => self.main(record, sample.role),
            Role::Probe(number) => self.probe(record, sample, number),
            Role::Count(number) => self.count(record, sample, number, false),
            Role::CountStack(number) => self.count(record, sample, number, true),
            Role::Switch | Role::Waking | Role::Exec | Role::CallCounts | Role::Dummy => {}
        }
    }

    /// Notes how long ago the previous event on this CPU was.
    fn note_gap(&mut self, record: &Record<'_>, role: Role) {
        let Some(cpu) = self.cpus.get_mut(record.cpu as usize) else { return };
        let gap = record.at.saturating_sub(cpu.latest);
        cpu.latest = record.at;
        match role {
            Role::Enter => self.stats.calls.add(gap, WARM_CALL),
            Role::Fault => self.stats.faults.add(gap, WARM_FAULT),
            _ => {}
        }
    }

    fn enter(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        // The tracepoints of single calls fill in only four of the eight bytes.
        let nr = sample.raw_u32(self.offsets.enter_nr).unwrap_or(u32::MAX);
        let nr = u16::try_from(nr).unwrap_or(u16::MAX);
        let args =
            std::array::from_fn(|i| sample.raw_u64(self.offsets.enter_args + 8 * i).unwrap_or(0));
        self.fork_burst.entered(nr);
        self.calls(record.task);
        if let Some(task) = self.tasks.get_mut(&record.task) {
            let is = |call| libc::c_long::from(nr) == call;
            (task.called, task.entered) = (Some((nr, args)), Some(record.at));
            task.yielding = is(libc::SYS_sched_yield);
            task.waits_for_children = is(libc::SYS_wait4) || is(libc::SYS_waitid);
            task.in_exec = is(libc::SYS_execve) || is(libc::SYS_execveat);
        }
        self.emit(record, record.task, RawKind::Syscall { nr, args });
        self.expect_user_stack(record, record.task, Role::CallSite);
    }
}
