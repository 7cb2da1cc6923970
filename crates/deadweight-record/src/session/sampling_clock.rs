//! The sampling clock, and its own ring buffers: a stack is a hundred times as long as a record of a switch, and a
//! ring full of stacks would lose switches, hence time. Lost samples only make shares less certain.

use super::{Session, fitting};
use crate::error::Error;
use crate::perf::registers;
use crate::perf::ring::Ring;
use crate::perf::schema::{Layout, Role, fields};
use crate::perf::sys::{DEEP_STACK_BYTES, Event, Every, Open, STACK_BYTES, Scope, Source};
use crate::procfs::memory_budget::memory_left;
use perf_event_open_sys::bindings as abi;
use std::io;
use std::time::{Duration, Instant};

/// Shortest and longest period of the sampling clock in ns: 5 kHz to 1 kHz. Between them it is chosen so that samples
/// take [`SAMPLE_SHARE`] of the CPU: the interrupt alone takes 3 µs on bare metal and up to 15 µs in a virtual
/// machine. Odd, so as not to be in phase with any kernel tick.
const SAMPLE_PERIODS: [u64; 2] = [199_933, 999_983];
/// Samples may take 1/80 of the CPU time by their calibrated cost; in a real program one costs nearly twice as much.
const SAMPLE_SHARE: u64 = 80;
/// Up to this many CPUs the sampling clock follows all tasks: 40 MB/s for each busy CPU.
const WIDE_CLOCK_CPUS: usize = 8;
/// Bytes of a ring for samples: 50 ms of a busy CPU with the deepest stacks.
const SAMPLE_RING: usize = 8 << 20;

/// Clocks that follow all tasks, one per CPU.
#[derive(Default)]
pub(super) struct Clocks {
    pub(super) events: Vec<Open>,
    /// In ns.
    period: u64,
}

impl Clocks {
    /// Starts them one after the other, within one period. Clocks in phase would stop all CPUs at once: each sample
    /// would find its thread just when the others do not run, and threads that wait for each other's cache lines do
    /// not wait then.
    pub(super) fn start(&self) -> Result<(), Error> {
        let begun = Instant::now();
        let all = u32::try_from(self.events.len()).unwrap_or(u32::MAX);
        for (phase, clock) in (0..).zip(&self.events) {
            let due = Duration::from_nanos(self.period) * phase / all;
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            let what = "cannot start recording".into();
            clock.enable().map_err(|source| Error::System { what, source })?;
        }
        Ok(())
    }

    pub(super) fn stop(&self) -> Result<(), Error> {
        let what = || "cannot stop recording".into();
        let stop =
            |clock: &Open| clock.disable().map_err(|source| Error::System { what: what(), source });
        self.events.iter().try_for_each(stop)
    }
}

impl Session {
    /// A fast sampling clock for another process, to measure the cost of a sample.
    pub(crate) fn open_clock_for(&mut self, task: i32, period: u64) -> Result<Vec<Open>, Error> {
        self.set_clock_apart();
        let opened =
            self.open_everywhere(Role::Clock, Ok(&self.clock(period)), Scope::TaskTree(task));
        self.tolerate(Role::Clock, opened, true)
    }

    /// Opens the program's sampling clock, given what a sample costs in ns; returns its period.
    pub(crate) fn open_clock(&mut self, program: i32, cost: u64) -> Result<u64, Error> {
        self.set_clock_apart();
        let period = period(cost);
        let wide = self.has_wide_clock();
        let scope = if wide { Scope::AllTasks } else { Scope::FromExec(program) };
        let opened = self.open_everywhere(Role::Clock, Ok(&self.clock(period)), scope);
        let opened = self.tolerate(Role::Clock, opened, true)?;
        if wide {
            self.clocks = Clocks { events: opened, period };
        } else {
            self.task.extend(opened);
        }
        Ok(period)
    }

    /// The same for tasks that run already.
    pub(crate) fn open_clock_of(&mut self, tasks: &[i32], cost: u64) -> Result<u64, Error> {
        if self.has_wide_clock() {
            return self.open_clock(super::NO_PROGRAM, cost);
        }
        self.set_clock_apart();
        let period = period(cost);
        for task in tasks {
            // A task that is gone needs no samples.
            let opened =
                self.open_everywhere(Role::Clock, Ok(&self.clock(period)), Scope::TaskTree(*task));
            self.task.extend(opened.unwrap_or_default());
        }
        Ok(period)
    }

    pub(super) fn has_wide_clock(&self) -> bool {
        self.cpus.len() <= WIDE_CLOCK_CPUS && self.user_access.is_none()
    }

    fn clock(&self, period: u64) -> Event {
        let user = fields::IP | fields::CHAIN | fields::REGISTERS | fields::STACK;
        let source = Source::Software(abi::PERF_COUNT_SW_CPU_CLOCK);
        let no_kernel = self.user_access.as_ref().is_some_and(|user_access| !user_access.kernel);
        let event = Event::of_each(source, fields::BASE | user);
        let layout = Layout { registers: registers::SAMPLED, ..event.layout };
        let dump = if self.samplers.is_empty() { STACK_BYTES } else { DEEP_STACK_BYTES };
        Event { every: Every::Count(period), no_kernel, dump, layout, ..event }
    }

    /// Gives the clock ring buffers of its own. An ordinary user may not lock enough memory. If the kernel refuses
    /// them to others, samples go to the common rings, with shorter stacks.
    fn set_clock_apart(&mut self) {
        if self.user_access.is_none()
            && self.samplers.is_empty()
            && let Ok((owners, rings)) = self.sample_rings()
        {
            self.schema.set_clock_apart();
            self.samplers = owners;
            self.rings.extend(rings);
        }
    }

    fn sample_rings(&self) -> io::Result<(Vec<Open>, Vec<Ring>)> {
        // No BPF program writes to these: they only own the rings.
        let owner = Event::of_each(Source::BpfOutput, fields::BASE);
        let size = SAMPLE_RING.min(fitting(2 * self.cpus.len(), memory_left()));
        let each = self.cpus.iter().map(|cpu| {
            let owner = owner.open(Scope::AllTasks, *cpu)?;
            let ring = Ring::map(&owner, size)?;
            Ok((owner, ring))
        });
        each.collect()
    }
}

/// The sampling clock's period, given what a sample costs in ns.
fn period(cost: u64) -> u64 {
    ((cost * SAMPLE_SHARE) | 1).clamp(SAMPLE_PERIODS[0], SAMPLE_PERIODS[1])
}
