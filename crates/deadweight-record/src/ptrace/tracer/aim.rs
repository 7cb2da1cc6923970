//! Whom the clock interrupts for a sample, and from where.
//!
//! A task that is interrupted from another CPU goes on until it hears of it, on a virtual machine for 12 µs: it is in its next call or
//! page fault by then, and what it did before is never seen. A clock on its own CPU finds it where it is. So this
//! thread goes to the CPU of a task, sleeps a moment there, and asks it to stop while it stands displaced. That costs
//! the task several times as much, 0.3 ms: it is done for those whose calls or faults are so close that it matters.

use super::{MANY, Tracer};
use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::ptrace::clock::Clock;
use crate::ptrace::requests;
use crate::ptrace::tracee::{Doing, Tracee};

/// The moment, in ns: so much, and up to so much more.
const MOMENT: u64 = 40_000;
const SPREAD: u64 = 160_000;
/// Who was not met on its CPU so many times is interrupted from another: it stops too often.
const TRIES: u32 = 3;

/// Where this thread is for the next sample.
pub(super) struct Aim {
    anywhere: Affinity,
    /// The CPU that it went to.
    at: Option<usize>,
}

/// A task that may be interrupted, and the CPU that it is on, if that matters.
struct Ready {
    task: u32,
    cpu: Option<usize>,
}

impl Aim {
    /// Of the calling thread.
    pub(super) fn new() -> Self {
        prompt();
        Self { anywhere: Affinity::of_this_thread(), at: None }
    }

    /// This thread goes to that CPU, if it may, and is woken there after a moment.
    fn go(&mut self, cpu: usize, clock: &Clock, period: u64) {
        if Affinity::only(cpu).is_some_and(|only| only.apply_to(0)) {
            self.at = Some(cpu);
            let moment = MOMENT + now() % SPREAD;
            clock.once_after(moment, period - moment);
        }
    }

    /// The CPU that it went to; it may go anywhere from now on.
    fn leave(&mut self) -> Option<usize> {
        let at = self.at.take()?;
        self.anywhere.apply_to(0);
        Some(at)
    }
}

impl Tracer {
    /// The clock ticked while this thread saw to others: nothing else is done then, because of some tasks it is not
    /// known yet that they have stopped. Where they are many, going through them takes too long for that.
    pub(super) fn sample_late(&mut self, clock: &Clock) {
        if self.tasks.len() > MANY {
            return;
        }
        let next = self.interrupt(false);
        self.aim_at(next, clock);
    }

    /// This thread goes to that CPU for the next sample, if there is one. The last thing to be done at a tick.
    pub(super) fn aim_at(&mut self, cpu: Option<usize>, clock: &Clock) {
        if let Some(cpu) = cpu {
            self.aim.go(cpu, clock, self.period);
        }
    }

    /// Who is in its own code is stopped for a sample, or should be from its own CPU, which is told. Who is
    /// on ours stands where the clock found it only if this thread slept until then.
    pub(super) fn interrupt(&mut self, slept: bool) -> Option<usize> {
        let here = self.aim.leave().filter(|_| slept);
        let ready = self.ready();
        let many = ready.len() > MANY;
        let mut next: Option<(u32, usize)> = None;
        for Ready { task, cpu } in ready {
            let Some(tracee) = self.tasks.get_mut(&task) else { continue };
            let met = here.is_some() && cpu == here;
            let from_afar = many || here.is_none() && (tracee.unmet >= TRIES || !tracee.is_busy());
            if met || from_afar {
                tracee.asked = requests::interrupt(task).is_ok();
                (tracee.met, tracee.unmet) = (met, 0);
            } else if here.is_none() {
                tracee.unmet += 1;
                // Who has waited longest for it.
                next = cpu.map(|cpu| (tracee.unmet, cpu)).max(next);
            }
        }
        next.map(|(_, cpu)| cpu)
    }

    /// Who is in its own code.
    fn ready(&mut self) -> Vec<Ready> {
        let unheld = &self.unheld;
        let own_code = |tracee: &&mut Tracee| {
            let alone = tracee.stopped || tracee.asked || unheld.contains_key(&tracee.task);
            tracee.doing == Doing::User && !alone
        };
        let ready = |tracee: &mut Tracee| {
            let seen = if tracee.is_busy() { tracee.standing() } else { None };
            // Past its calls it may be in one that waits: then it is left alone.
            let loose = tracee.dense.until().is_some();
            let cpu = seen.filter(|seen| seen.runs).map(|seen| seen.cpu);
            (cpu.is_some() || !loose).then_some(Ready { task: tracee.task, cpu })
        };
        self.tasks.values_mut().filter(own_code).filter_map(ready).collect()
    }
}

/// The scheduler lets this thread have a CPU soon after it wakes: it never needs one for long. Since Linux 6.12;
/// otherwise it waits for the next tick now and then.
fn prompt() {
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
        let told = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) == 0;
        // Of other policies the field means something else, or nothing.
        if told && attributes.policy == libc::SCHED_OTHER.cast_unsigned() {
            attributes.runtime = SHORTEST;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        }
    }
}
