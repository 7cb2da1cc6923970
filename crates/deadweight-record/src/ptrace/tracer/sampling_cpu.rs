//! Which tasks the timer interrupts for a sample, and from which CPU.
//!
//! A task that is interrupted from another CPU runs on until the interrupt arrives, on a virtual
//! machine for 12 µs: the sample skids into the next call or page fault. A timer on the task's own
//! CPU finds it where it is. So this thread moves to that CPU, sleeps a moment, and interrupts the
//! task while this thread has preempted it. That costs the task several times as much, 0.3 ms: it
//! is done only for tasks whose calls or faults follow each other closely.

use super::{MANY_TASKS, Tracer};
use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::ptrace::requests;
use crate::ptrace::sample_timer::SampleTimer;
use crate::ptrace::tracee::{Activity, Tracee};

/// The sleep, in ns: at least this, plus a random part below this.
const MIN_WAIT: u64 = 40_000;
const WAIT_SPREAD: u64 = 160_000;
/// After this many misses (the task was not on the expected CPU) it is interrupted from another CPU:
/// a task that stops often leaves its CPU before this thread gets there.
const MAX_MISSES: u32 = 3;

/// The CPU of this thread for the next sample.
pub(super) struct SamplingCpu {
    allowed: Affinity,
    /// The CPU that it moved to.
    cpu: Option<usize>,
}

/// A task that may be interrupted, and its CPU, if that matters.
struct Candidate {
    task: u32,
    cpu: Option<usize>,
}

impl SamplingCpu {
    /// For the calling thread.
    pub(super) fn new() -> Self {
        request_short_slice();
        Self { allowed: Affinity::of_this_thread(), cpu: None }
    }

    /// Moves this thread to that CPU, if allowed, and wakes it there after a moment.
    fn move_to(&mut self, cpu: usize, timer: &SampleTimer, period: u64) {
        if Affinity::only(cpu).is_some_and(|only| only.apply_to(0)) {
            self.cpu = Some(cpu);
            let wait = MIN_WAIT + now() % WAIT_SPREAD;
            timer.set_first(wait, period - wait);
        }
    }

    /// The CPU that it moved to. From now on it may run anywhere.
    fn release(&mut self) -> Option<usize> {
        let cpu = self.cpu.take()?;
        self.allowed.apply_to(0);
        Some(cpu)
    }
}

impl Tracer {
    /// The timer expired while stops were handled: only samples are taken, because some tasks may
    /// have stopped unnoticed. With many tasks, even that takes too long.
    pub(super) fn sample_late(&mut self, timer: &SampleTimer) {
        if self.tasks.len() > MANY_TASKS {
            return;
        }
        let next_cpu = self.interrupt_running(false);
        self.move_to(next_cpu, timer);
    }

    /// Moves this thread to that CPU for the next sample. The last step of a tick.
    pub(super) fn move_to(&mut self, cpu: Option<usize>, timer: &SampleTimer) {
        if let Some(cpu) = cpu {
            self.sampling_cpu.move_to(cpu, timer, self.period);
        }
    }

    /// Interrupts the tasks in user code for a sample. Returns the CPU of a task that should be
    /// interrupted locally. A task on this CPU is where the timer found it only if this thread
    /// slept until then.
    pub(super) fn interrupt_running(&mut self, slept: bool) -> Option<usize> {
        let cpu_here = self.sampling_cpu.release().filter(|_| slept);
        let candidates = self.candidates();
        let many = candidates.len() > MANY_TASKS;
        let mut next_cpu: Option<(u32, usize)> = None;
        for Candidate { task, cpu } in candidates {
            let Some(tracee) = self.tasks.get_mut(&task) else { continue };
            let local = cpu_here.is_some() && cpu == cpu_here;
            let remotely = many
                || cpu_here.is_none()
                    && (tracee.missed_interrupts >= MAX_MISSES || !tracee.is_busy());
            if local || remotely {
                tracee.interrupt_sent = requests::interrupt(task).is_ok();
                (tracee.local_interrupt, tracee.missed_interrupts) = (local, 0);
            } else if cpu_here.is_none() {
                tracee.missed_interrupts += 1;
                // The one that has waited longest.
                next_cpu = cpu.map(|cpu| (tracee.missed_interrupts, cpu)).max(next_cpu);
            }
        }
        next_cpu.map(|(_, cpu)| cpu)
    }

    /// The tasks in user code.
    fn candidates(&mut self) -> Vec<Candidate> {
        let pending_attach = &self.pending_attach;
        let in_user_code = |tracee: &&mut Tracee| {
            let left_alone = tracee.stopped
                || tracee.interrupt_sent
                || pending_attach.contains_key(&tracee.task);
            tracee.activity == Activity::UserCode && !left_alone
        };
        let candidate = |tracee: &mut Tracee| {
            let state = if tracee.is_busy() { tracee.state() } else { None };
            // In a free run it may be blocked in a call: then it is not interrupted.
            let free_running = tracee.high_rate.free_until().is_some();
            let cpu = state.filter(|s| s.runs).map(|s| s.cpu);
            (cpu.is_some() || !free_running).then_some(Candidate { task: tracee.task, cpu })
        };
        self.tasks.values_mut().filter(in_user_code).filter_map(candidate).collect()
    }
}

/// Requests a short time slice, so that the scheduler runs this thread soon after it wakes. Since
/// Linux 6.12; otherwise it waits for the next tick now and then.
fn request_short_slice() {
    /// `struct sched_attr` as of its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    /// The shortest time slice that can be requested, in ns.
    const SHORTEST: u64 = 100_000;
    let size = size_of::<Attributes>();
    let mut attributes = Attributes::default();
    // SAFETY: 0 is the calling thread; the kernel fills in at most `size` bytes and then reads them.
    unsafe {
        let read_ok = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0;
        // For other policies the field means something else.
        if read_ok && attributes.policy == libc::SCHED_OTHER.cast_unsigned() {
            attributes.runtime = SHORTEST;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}
