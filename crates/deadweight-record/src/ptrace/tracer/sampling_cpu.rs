//! Whom the clock interrupts for a sample, and from where.
//!
//! A task that is interrupted from another CPU goes on until it hears of it, on a virtual machine for 12 µs: it is in its next call or
//! page fault by then, and what it did before is never seen. A clock on its own CPU finds it where it is. So this
//! thread goes to the CPU of a task, sleeps a moment there, and asks it to stop while it stands involuntary_switches. That costs
//! the task several times as much, 0.3 ms: it is done for those whose calls or faults are so close that it matters.

use super::{MANY_TASKS, Tracer};
use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::ptrace::requests;
use crate::ptrace::sample_timer::SampleTimer;
use crate::ptrace::tracee::{Activity, Tracee};

/// The moment, in ns: so much, and up to so much more.
const MIN_WAIT: u64 = 40_000;
const WAIT_SPREAD: u64 = 160_000;
/// Who was not met on its CPU so many times is interrupted from another: it stops too often.
const MAX_MISSES: u32 = 3;

/// Where this thread is for the next sample.
pub(super) struct SamplingCpu {
    allowed: Affinity,
    /// The CPU that it went to.
    cpu: Option<usize>,
}

/// A task that may be interrupted, and the CPU that it is on, if that matters.
struct Candidate {
    task: u32,
    cpu: Option<usize>,
}

impl SamplingCpu {
    /// Of the calling thread.
    pub(super) fn new() -> Self {
        request_short_slice();
        Self { allowed: Affinity::of_this_thread(), cpu: None }
    }

    /// This thread goes to that CPU, if it may, and is woken there after a moment.
    fn move_to(&mut self, cpu: usize, timer: &SampleTimer, period: u64) {
        if Affinity::only(cpu).is_some_and(|only| only.apply_to(0)) {
            self.cpu = Some(cpu);
            let wait = MIN_WAIT + now() % WAIT_SPREAD;
            timer.set_first(wait, period - wait);
        }
    }

    /// The CPU that it went to; it may go anywhere from now on.
    fn release(&mut self) -> Option<usize> {
        let cpu = self.cpu.take()?;
        self.allowed.apply_to(0);
        Some(cpu)
    }
}

impl Tracer {
    /// The clock ticked while this thread saw to others: nothing else is done then, because of some tasks it is not
    /// known yet that they have stopped. Where they are many, going through them takes too long for that.
    pub(super) fn sample_late(&mut self, timer: &SampleTimer) {
        if self.tasks.len() > MANY_TASKS {
            return;
        }
        let next_cpu = self.interrupt_running(false);
        self.move_to(next_cpu, timer);
    }

    /// This thread goes to that CPU for the next sample, if there is one. The last thing to be done at a tick.
    pub(super) fn move_to(&mut self, cpu: Option<usize>, timer: &SampleTimer) {
        if let Some(cpu) = cpu {
            self.sampling_cpu.move_to(cpu, timer, self.period);
        }
    }

    /// Who is in its own code is stopped for a sample, or should be from its own CPU, which is told. Who is
    /// on ours stands where the clock found it only if this thread slept until then.
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
                // Who has waited longest for it.
                next_cpu = cpu.map(|cpu| (tracee.missed_interrupts, cpu)).max(next_cpu);
            }
        }
        next_cpu.map(|(_, cpu)| cpu)
    }

    /// Who is in its own code.
    fn candidates(&mut self) -> Vec<Candidate> {
        let pending_attach = &self.pending_attach;
        let in_user_code = |tracee: &&mut Tracee| {
            let left_alone = tracee.stopped
                || tracee.interrupt_sent
                || pending_attach.contains_key(&tracee.task);
            tracee.activity == Activity::UserSnapshot && !left_alone
        };
        let candidate = |tracee: &mut Tracee| {
            let state = if tracee.is_busy() { tracee.state() } else { None };
            // Past its calls it may be in one that waits: then it is left alone.
            let free_running = tracee.high_rate.free_until().is_some();
            let cpu = state.filter(|s| s.runs).map(|s| s.cpu);
            (cpu.is_some() || !free_running).then_some(Candidate { task: tracee.task, cpu })
        };
        self.tasks.values_mut().filter(in_user_code).filter_map(candidate).collect()
    }
}

/// The scheduler lets this thread have a CPU soon after it wakes: it never needs one for long. Since Linux 6.12;
/// otherwise it waits for the next tick now and then.
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
    /// The shortest turn that can be asked for, in ns.
    const SHORTEST: u64 = 100_000;
    let size = size_of::<Attributes>();
    let mut attributes = Attributes::default();
    // SAFETY: 0 is the calling thread; the kernel fills in at most `size` bytes and then reads them.
    unsafe {
        let read_ok = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0;
        // Of other policies the field means something else, or nothing.
        if read_ok && attributes.policy == libc::SCHED_OTHER.cast_unsigned() {
            attributes.runtime = SHORTEST;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}
