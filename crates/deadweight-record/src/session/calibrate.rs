//! Calibration: measures the tracing overhead on this machine. For what is kept of it see `known_overhead`.
//!
//! A child process does a little of everything, once without events and once with the session's events; the
//! differences are the overhead. All in all some 50 ms as root. For stops, see `ptrace::calibrate`.

use super::Session;
use super::calibrated_actions::{
    Children, PAGES, PROGRAMS, UntouchedPages, Walk, one_call, open_times, pin_to_this_cpu,
    round_trip_time, touch_pages,
};
use crate::error::Error;
use crate::perf::decode::{self, Body};
use crate::perf::schema::{Role, Schema};
use crate::perf::sys::Open;
use crate::procfs::has_ended;
use crate::timing::{EMPTY, SHORT, TRIES, best, empty_calls, short_calls, whole, with_entry_cost};
use deadweight_trace::Overhead;
use std::ptr;

/// Parts of the child's work: calls, round trips, processes, programs, calls again, spins.
const PARTS: u32 = 6;
/// The part in which it runs programs.
const RUNS_PROGRAMS: u32 = 4;
/// Steps of a spin that is timed to find how many make [`SPIN`].
const STEPS: u64 = 2_000;
/// Length of the spin in ns.
const SPIN: f64 = 450_000.0;
/// Walks with a call or a fault after each.
const WALKS: usize = 31;
/// An event after other work costs no more than this many times more than among others.
const MOST_COLDER: f64 = 5.0;
/// An event of a program that starts costs no more than this much more, in thousandths.
const MOST_WHILE_STARTING: f64 = 2000.0;
/// Period in ns at which the spin is sampled: often enough to show even where a sample takes 15 µs, and seldom enough
/// not to fill a ring.
const FAST_PERIOD: u64 = 60_000;

/// How long the child's work took, in ns.
#[repr(C)]
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Measured {
    /// One empty system call.
    pub(super) call: f64,
    /// One short call.
    pub(super) short: f64,
    /// One of the first empty system calls, after other work: with events, its user stack is taken.
    first_call: f64,
    /// One first touch of a page.
    pub(super) fault: f64,
    /// One round trip between two processes on one CPU: two context switches, four calls.
    round: f64,
    /// A process that ends at once, from its birth until it is reaped, and until it runs.
    life: f64,
    birth: f64,
    /// Making a descriptor and closing it: without a path, with one, and with one below a folder.
    opens: [f64; 3],
    /// A process that runs a small program, from its birth until it is reaped; 0 if there is none.
    program: f64,
    /// One spin of so many steps.
    spin: f64,
    steps: u64,
    /// Between the records of a call's entry and return, in the best try; 0 without events.
    call_inside: f64,
    /// Events in one run of the program; none without events.
    in_program: InProgram,
    /// Samples during one spin; 0 without events.
    spin_samples: f64,
    /// An empty call, and a first touch, after other work.
    cold_call: f64,
    cold_fault: f64,
}

impl Measured {
    /// Measures the shortest actions. A processor may be slow for some milliseconds, and so for all tries that
    /// follow each other; therefore this is done twice.
    fn calls_and_faults(&mut self) {
        self.short = self.short.min(best(SHORT, short_calls));
        self.call = self.call.min(best(EMPTY, empty_calls));
        self.fault = self.fault.min(best(PAGES, touch_pages));
    }
}

/// Events in one run of a small program.
#[derive(Copy, Clone, Debug, Default)]
struct InProgram {
    calls: f64,
    faults: f64,
}

/// The overhead per event, from a run without and a run with events.
pub(super) fn overhead(without: &Measured, with: &Measured) -> Overhead {
    let call = (with.call - without.call).max(0.0);
    // An empty call does next to nothing between its two records.
    let inside = with.call_inside.min(call);
    let [around, inside] = with_entry_cost(without.call, call - inside, inside);
    let fault = (with.fault - without.fault).max(0.0);
    let more = |of: fn(&Measured) -> f64| of(with) - of(without);
    let path = (more(|m| m.opens[1]) - more(|m| m.opens[0])).max(0.0);
    let folder = (more(|m| m.opens[2]) - more(|m| m.opens[1])).max(0.0);
    // Until the child runs, one call begins and the CPU switches; until it is reaped, two more calls and a switch.
    let birth = more(|m| m.birth);
    let site = (more(|m| m.first_call) - more(|m| m.cold_call)).max(0.0);
    let switch = ((with.round - without.round - 4.0 * call) / 2.0).max(0.0);
    let sample = if with.spin_samples < 1.0 {
        0.0
    } else {
        ((with.spin - without.spin) / with.spin_samples).max(0.0)
    };
    Overhead {
        syscall_user: whole(around),
        syscall_kernel: whole(inside),
        counted_user: 0,
        counted_kernel: 0,
        // Two records of similar size, the first before and the second after the fault; a record's time is taken
        // before it is written, so each cost follows its own record.
        fault_user: whole(fault / 2.0),
        fault_kernel: whole(fault / 2.0),
        switch: whole(switch),
        sample: whole(sample),
        site: whole(site),
        path: whole(path),
        folder: whole(folder),
        starting: starting(without, with, [call, fault]),
        birth: whole((birth - switch - call / 2.0).max(0.0)),
        death: whole((more(|m| m.life) - birth - switch - 2.5 * call).max(0.0)),
    }
}

/// How much more events cost while a program starts than `costs` (of a call and a fault), in thousandths. What the birth and
/// the death of the process cost is not counted.
fn starting(without: &Measured, with: &Measured, costs: [f64; 2]) -> u64 {
    let InProgram { calls, faults } = with.in_program;
    let known = calls * costs[0] + faults * costs[1];
    if without.program <= 0.0 || with.program <= 0.0 || known <= 0.0 {
        return 0;
    }
    let all = (with.program - with.life) - (without.program - without.life);
    whole(((all / known - 1.0) * 1000.0).min(MOST_WHILE_STARTING))
}

/// What recording an event costs more after other work, when its memory has left the caches, than right after another
/// event. In ns.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Cold {
    /// A system call.
    pub(crate) call: u64,
    /// A page fault.
    pub(crate) fault: u64,
}

/// What a call and a fault cost more after other work than among others.
pub(super) fn cold(without: &Measured, with: &Measured) -> Cold {
    let more = |cold: [f64; 2], warm: [f64; 2]| {
        let [cold, warm] = [cold[1] - cold[0], warm[1] - warm[0]].map(|cost| cost.max(0.0));
        whole((cold - warm).min(MOST_COLDER * warm))
    };
    Cold {
        call: more([without.cold_call, with.cold_call], [without.call, with.call]),
        fault: more([without.cold_fault, with.cold_fault], [without.fault, with.fault]),
    }
}

/// One empty system call, one first touch of a page and one short call, in ns, on this thread.
pub(super) fn quick() -> [f64; 3] {
    [best(EMPTY, empty_calls), best(PAGES, touch_pages), best(SHORT, short_calls)]
}

/// Runs the child without events.
pub(super) fn without_events() -> Result<Measured, Error> {
    let memory = Walk::new();
    let spin = best(1, || memory.spin(STEPS));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some 100 000")]
    let steps = (STEPS as f64 * SPIN / spin.max(1.0)) as u64;
    measure(None, &memory, steps)
}

/// Runs the child with the session's task events.
pub(super) fn with_events(
    session: &mut Session,
    without_events: &Measured,
) -> Result<Measured, Error> {
    measure(Some(session), &Walk::new(), without_events.steps)
}

fn measure(
    mut session: Option<&mut Session>,
    memory: &Walk,
    steps: u64,
) -> Result<Measured, Error> {
    let page = SharedPage::new()?;
    let mut go = [0; 2];
    // SAFETY: fills in two descriptors, closed below.
    if unsafe { libc::pipe2(go.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last("cannot make a pipe"));
    }
    // SAFETY: the child makes plain system calls and writes to the shared page only.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(Error::last("cannot fork")),
        // SAFETY: this is the child.
        0 => unsafe { work(page.0, memory, go, steps) },
        child => child,
    };
    let mut events = session.as_deref_mut().map(|s| Events::open(s, child)).transpose();
    let mut seen = Seen::default();
    let (mut in_programs, mut clock) = (InProgram::default(), Ok(()));
    // SAFETY: own descriptors and the own child. Each byte lets the child do one part of its work.
    unsafe {
        libc::close(go[0]);
        if let Ok(events) = &mut events {
            events.iter().for_each(Events::start);
            session.iter().for_each(|session| _ = session.enable());
            for part in 1..PARTS {
                // How many stacks there are differs from run to run, and each costs as much as ten calls.
                session.iter().for_each(|s| s.let_programs_take_stacks(part != RUNS_PROGRAMS));
                libc::write(go[1], [1_u8].as_ptr().cast(), 1);
                page.wait_for(part, child);
                seen.read_back(session.as_deref_mut(), child);
                if part == RUNS_PROGRAMS {
                    in_programs = seen.of_others;
                }
            }
            session.iter().for_each(|session| _ = session.disable());
            if let (Some(events), Some(session)) = (events, session.as_deref_mut()) {
                clock = events.only_fast_clock(session, child);
            }
            libc::write(go[1], [1_u8].as_ptr().cast(), 1);
        }
        libc::close(go[1]);
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
    }
    drop(events?);
    clock?;
    let mut measured = page.measured();
    seen.read_back(session, child);
    (measured.call_inside, measured.spin_samples) = seen.measured();
    measured.in_program = in_programs.each(PROGRAMS);
    Ok(measured)
}

impl InProgram {
    fn count(&mut self, body: &Body<'_>) {
        let Body::Sample(sample) = body else { return };
        match sample.role {
            Role::Enter => self.calls += 1.0,
            Role::MinorEnd | Role::MajorEnd => self.faults += 1.0,
            _ => {}
        }
    }

    /// Of one of so many programs.
    fn each(self, programs: usize) -> Self {
        let each = |number: f64| number / programs as f64;
        Self { calls: each(self.calls), faults: each(self.faults) }
    }
}

/// The events that follow the child.
struct Events {
    set: Vec<Open>,
    fast_clock: Vec<Open>,
}

impl Events {
    /// Where the clock of a recording is not the child's, births and deaths have none to copy and to free.
    fn open(session: &mut Session, child: i32) -> Result<Self, Error> {
        let mut events = Self { set: session.open_task_events(child)?, fast_clock: Vec::new() };
        if !session.has_wide_clock() {
            events.fast_clock = session.open_clock_for(child, FAST_PERIOD)?;
        }
        Ok(events)
    }

    fn start(&self) {
        // An event that cannot be enabled only makes the overhead look smaller.
        self.set.iter().for_each(|e| _ = e.enable());
    }

    fn only_fast_clock(&mut self, session: &mut Session, child: i32) -> Result<(), Error> {
        self.set.iter().for_each(|e| _ = e.disable());
        if self.fast_clock.is_empty() {
            self.fast_clock = session.open_clock_for(child, FAST_PERIOD)?;
        }
        self.fast_clock.iter().for_each(|e| _ = e.enable());
        Ok(())
    }
}

/// The child's records in the rings. They are read after each part: small rings hold no more, and a full one drops
/// records, which costs the child less.
#[derive(Default)]
struct Seen {
    /// Time inside each empty call, in ns.
    inside: Vec<u64>,
    /// Samples in the last part, the spins.
    samples: u64,
    /// Events of other tasks in the last part.
    of_others: InProgram,
}

impl Seen {
    /// Takes all records out of the rings, not only this child's.
    fn read_back(&mut self, session: Option<&mut Session>, child: i32) {
        let Some(session) = session else { return };
        (self.samples, self.of_others) = (0, InProgram::default());
        let bytes = session.take_records();
        self.read(&bytes, &session.schema, child.cast_unsigned());
    }

    fn read(&mut self, bytes: &[u8], schema: &Schema, child: u32) {
        let mut entered = None;
        let (mut records, others): (Vec<_>, Vec<_>) =
            decode::records(bytes, schema).partition(|record| record.task == child);
        others.iter().for_each(|record| self.of_others.count(&record.body));
        records.sort_by_key(|record| record.at);
        for record in records {
            match record.body {
                Body::Sample(sample) if sample.role == Role::Enter => {
                    let nr = sample.raw_u32(schema.offsets.enter_nr);
                    let empty = nr.is_some_and(|nr| libc::c_long::from(nr) == libc::SYS_lseek);
                    entered = empty.then_some(record.at);
                }
                Body::Sample(sample) if sample.role == Role::Leave => {
                    if let Some(at) = entered.take() {
                        self.inside.push(record.at.saturating_sub(at));
                    }
                }
                Body::Sample(sample) if sample.role == Role::Clock => self.samples += 1,
                _ => {}
            }
        }
    }

    /// Time inside a call in the best try, in ns, and samples per spin.
    fn measured(&self) -> (f64, f64) {
        let tries = self.inside.chunks(usize::try_from(EMPTY).unwrap_or(1));
        let tries = tries.map(|calls| calls.iter().sum::<u64>() as f64 / calls.len() as f64);
        (tries.reduce(f64::min).unwrap_or(0.0), self.samples as f64 / TRIES as f64)
    }
}

/// The child's main function. Ends the process.
///
/// # Safety
/// Only in a forked child; `page` must be shared with the parent.
unsafe fn work(page: *mut Page, memory: &Walk, go: [i32; 2], steps: u64) -> ! {
    // SAFETY: plain system calls; the page outlives the child.
    unsafe {
        libc::close(go[1]);
        await_byte(go[0]);
        pin_to_this_cpu();
        let mut measured = Measured {
            call: f64::MAX,
            fault: f64::MAX,
            short: f64::MAX,
            steps,
            ..Measured::default()
        };
        measured.first_call = memory.median_after_walks(FIRST_CALLS, one_call);
        measured.calls_and_faults();
        measured.opens = open_times();
        measured.cold_call = memory.median_after_walks(WALKS, one_call);
        let pages = UntouchedPages::new(WALKS);
        measured.cold_fault = memory.median_after_walks(WALKS, |walk| pages.touch(walk));
        end_part(page, go[0]);
        measured.round = round_trip_time();
        end_part(page, go[0]);
        let mut children = Children::new();
        [measured.birth, measured.life] = children.lives();
        end_part(page, go[0]);
        measured.program = children.program();
        end_part(page, go[0]);
        measured.calls_and_faults();
        (*page).measured = measured;
        end_part(page, go[0]);
        (*page).measured.spin = best(1, || memory.spin(steps));
        libc::_exit(0)
    }
}

/// Fewer than those whose stacks are taken in any case.
const FIRST_CALLS: usize = 9;

/// Lets the parent read the rings.
unsafe fn end_part(page: *mut Page, go: i32) {
    // SAFETY: the page outlives the child.
    unsafe {
        (*page).parts.fetch_add(1, std::sync::atomic::Ordering::Release);
        await_byte(go);
    }
}

unsafe fn await_byte(fd: i32) {
    let mut byte = 0_u8;
    // SAFETY: reads one byte to the stack.
    if unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } != 1 {
        // SAFETY: ends the child, because its parent gave up.
        unsafe { libc::_exit(1) }
    }
}

/// Memory shared by parent and child.
struct SharedPage(*mut Page);

#[repr(C)]
struct Page {
    measured: Measured,
    parts: std::sync::atomic::AtomicU32,
}

impl SharedPage {
    fn new() -> Result<Self, Error> {
        // SAFETY: a new mapping, zero-filled: a valid `Page`.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<Page>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Error::last("cannot map memory"));
        }
        Ok(Self(at.cast()))
    }

    /// Waits for the end of the child's part: some seconds at most, and not if it was killed.
    fn wait_for(&self, part: u32, child: i32) {
        for _ in 0..30_000 {
            // SAFETY: the page is alive and the field is atomic.
            let done = unsafe { (*self.0).parts.load(std::sync::atomic::Ordering::Acquire) };
            if done >= part || has_ended(child.cast_unsigned()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }

    fn measured(&self) -> Measured {
        // SAFETY: the child is gone; plain numbers.
        unsafe { (*self.0).measured }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe { libc::munmap(self.0.cast(), size_of::<Page>()) };
    }
}
