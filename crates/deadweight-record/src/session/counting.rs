//! Counts how often the program and its descendants call certain functions.
//!
//! Each function gets a uprobe tracepoint (`uprobe_events`), because only those follow a program into its threads and
//! children without affecting other processes: perf's own uprobes follow either one task or the whole machine. A hit
//! makes a short record; some hits a second one with the user stack. After [`MOST_HITS`] all uprobes are closed at
//! once. The few probes of each recording are in `probes`. A run whose time counts is never counted.

use super::Session;
use crate::error::Error;
use crate::launch::{Argument, Count};
use crate::perf::decode::Sample;
use crate::perf::schema::{Role, fields};
use crate::perf::sys::{Event, Every, Open, Scope, Source};
use crate::perf::tracefs::Tracefs;
use deadweight_trace::probe::ProbeKind;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Hits of all uprobes together after which they are closed: at 0.7 µs each, some three seconds.
const MOST_HITS: u64 = 4_000_000;
/// The most hits of a run that takes longer than [`LONG`]. If the kernel must single-step the first instruction,
/// which in a virtual machine may exit the guest, a hit takes 13 µs.
const MOST_HITS_OF_LONG: u64 = 100_000;
/// See [`MOST_HITS_OF_LONG`]; shorter if the caller says so.
const LONG: Duration = Duration::from_secs(10);
/// User stacks per second, function, task and CPU. The first ones are always recorded.
const STACKS_PER_SECOND: u64 = 2000;
/// The prefix of the tracepoints' group names; the process id follows.
const GROUP: &str = "deadweight_";

/// The name of an argument's register in uprobe definitions; none for one that is not in a register.
fn register(argument: Argument) -> Option<&'static str> {
    let (c, go): (&[_], &[_]) = if cfg!(target_arch = "aarch64") {
        (&["%x0", "%x1", "%x2"], &["%x0", "%x1", "%x2"])
    } else {
        (&["%di", "%si", "%dx"], &["%ax", "%bx", "%cx"])
    };
    match argument {
        Argument::C(n) => c.get(usize::from(n)).copied(),
        Argument::Go(n) => go.get(usize::from(n)).copied(),
    }
}

/// The uprobes that count.
#[derive(Default)]
pub(crate) struct Counting {
    open: Option<OpenPlaces>,
    /// The thread that closes them, because closing is slow.
    closing: Option<JoinHandle<()>>,
}

/// Open uprobes.
struct OpenPlaces {
    /// Events that record every hit.
    hits: Vec<Open>,
    /// Events that record some hits, with stacks.
    stacks: Vec<Open>,
    /// Dropped last: the kernel refuses to remove a uprobe that is open.
    _places: CountedPlaces,
    since: Instant,
    /// See [`LONG`].
    long: Duration,
}

/// How to read the records of a counted function.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    mark: ProbeKind,
    factors: usize,
    conditional: bool,
}

/// Offsets of the values in a record's data: after the tracepoint's common part and the address.
mod data {
    pub(super) const STACK_POINTER: usize = 16;
    pub(super) const CALLER: usize = 24;
    pub(super) const VALUES: usize = 32;
}

impl Reading {
    pub(crate) fn of(count: &Count) -> Self {
        Self {
            mark: count.mark,
            factors: count.factors.len(),
            conditional: count.unless_zero.is_some(),
        }
    }

    /// The probe's name and arguments: bytes, and a number that is equal for hits from one caller at one stack depth.
    /// None if the hit does not count.
    pub(crate) fn read(
        &self,
        sample: &Sample<'_>,
        stack: bool,
    ) -> Option<(&'static str, [u64; 2])> {
        let value = |number: usize| sample.raw_u64(data::VALUES + 8 * number);
        if self.conditional && value(self.factors)? == 0 {
            return None;
        }
        let bytes = (0..self.factors).try_fold(1_u64, |all, n| Some(all.saturating_mul(value(n)?)));
        let bytes = if self.factors == 0 { 0 } else { bytes? };
        let (sp, caller) = (sample.raw_u64(data::STACK_POINTER)?, sample.raw_u64(data::CALLER)?);
        let name = if stack { self.mark.stack_name() } else { self.mark.hit_name() };
        Some((name, [bytes, sp.rotate_left(20) ^ caller]))
    }
}

impl Session {
    /// Opens these uprobes for the program behind the barrier: they count from its exec on.
    pub(crate) fn open_counts(
        &mut self,
        program: i32,
        counts: &[Count],
        long: Option<Duration>,
    ) -> Result<(), Error> {
        if counts.is_empty() {
            return Ok(());
        }
        let failed = |source| Error::System { what: "cannot count calls".into(), source };
        let tracefs = Tracefs::open()?;
        let mut places = CountedPlaces::new(&tracefs).map_err(failed)?;
        let (mut hits, mut stacks) = (Vec::new(), Vec::new());
        let scope = Scope::FromExec(program);
        for (number, count) in (0_u16..).zip(counts) {
            let defined = places.define(number, count);
            let id = defined.and_then(|name| Ok(tracefs.tracepoint(&name)?.id)).map_err(failed)?;
            let stack = self.open_everywhere(Role::CountStack(number), Ok(&stack(id)), scope);
            stacks.extend(stack.map_err(failed)?);
            let hit = self.open_everywhere(Role::Count(number), Ok(&hit(id)), scope);
            hits.extend(hit.map_err(failed)?);
        }
        let (since, long) = (Instant::now(), long.unwrap_or(LONG));
        self.counting.open = Some(OpenPlaces { hits, stacks, _places: places, since, long });
        Ok(())
    }
}

impl Counting {
    /// Whether calls of functions are counted.
    pub(crate) fn is_active(&self) -> bool {
        self.open.is_some()
    }

    /// Disables all uprobes, nearly at one instant, if there are enough hits; true if so.
    pub(crate) fn stop_if_enough(&mut self) -> bool {
        let Some(open) = self.open.take_if(|open| open.is_enough()) else { return false };
        for event in open.hits.iter().chain(&open.stacks) {
            // An event that could not be disabled is closed soon.
            _ = event.disable();
        }
        self.closing = Some(thread::spawn(move || drop(open)));
        true
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        if let Some(closing) = self.closing.take() {
            // Only its end is of interest.
            _ = closing.join();
        }
    }
}

impl OpenPlaces {
    fn is_enough(&self) -> bool {
        let hits: u64 = self.hits.iter().map(|event| event.count().unwrap_or(0)).sum();
        hits >= MOST_HITS || hits >= MOST_HITS_OF_LONG && self.since.elapsed() >= self.long
    }
}

fn hit(id: u64) -> Event {
    let event = Event::of_each(Source::Tracepoint(id), fields::BASE | fields::RAW);
    Event { no_kernel_chain: true, no_user_chain: true, ..event }
}

fn stack(id: u64) -> Event {
    let what = fields::RAW | fields::CHAIN | fields::REGISTERS | fields::STACK;
    let event = Event::of_each(Source::Tracepoint(id), fields::BASE | what);
    Event { every: Every::PerSecond(STACKS_PER_SECOND), no_kernel_chain: true, ..event }
}

/// The created tracepoints. They are global to the machine, and are removed when this is dropped.
struct CountedPlaces {
    list: File,
    made: Vec<String>,
}

impl CountedPlaces {
    fn new(tracefs: &Tracefs) -> io::Result<Self> {
        let mut places = Self { list: tracefs.uprobe_events()?, made: Vec::new() };
        places.remove_leftovers()?;
        Ok(places)
    }

    /// Creates a tracepoint; returns its name with its group.
    fn define(&mut self, number: u16, count: &Count) -> io::Result<String> {
        let name = format!("{GROUP}{}/c{number}", std::process::id());
        // By descriptor: a path may contain blanks, which the kernel's grammar cannot quote.
        let file = File::open(&count.path)?;
        let place = format!("/proc/self/fd/{}:{:#x}", file.as_raw_fd(), count.file_offset);
        let line = format!("p:{name} {place}{}", values(count));
        self.list.write_all(line.as_bytes())?;
        self.made.push(name.clone());
        Ok(name)
    }

    /// Removes the tracepoints that a killed deadweight left behind.
    fn remove_leftovers(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.list.read_to_string(&mut text)?;
        for name in leftovers(&text, |pid| Path::new("/proc").join(pid).exists()) {
            // Its owner may be alive in another PID namespace: then the kernel refuses.
            _ = self.list.write_all(format!("-:{name}").as_bytes());
        }
        Ok(())
    }
}

impl Drop for CountedPlaces {
    fn drop(&mut self) {
        for name in &self.made {
            // If this fails, the next deadweight removes it.
            _ = self.list.write_all(format!("-:{name}").as_bytes());
        }
    }
}

/// The values of a record, in the kernel's grammar: two that identify the caller, then the factors, then the
/// condition. See [`data`].
fn values(count: &Count) -> String {
    let registers = count.factors.iter().chain(&count.unless_zero).copied().filter_map(register);
    let caller = if cfg!(target_arch = "aarch64") { "%x30" } else { "+0(%sp)" };
    let mut text = format!(" sp=%sp:u64 caller={caller}:u64");
    for (number, register) in registers.enumerate() {
        text.push_str(&format!(" v{number}={register}:u64"));
    }
    text
}

/// The names of deadweight's tracepoints in the kernel's list whose owner is not alive.
pub(crate) fn leftovers(list: &str, alive: impl Fn(&str) -> bool) -> Vec<&str> {
    let leftover = |line: &'_ str| {
        let name = line.strip_prefix("p:")?.split_whitespace().next()?;
        let pid = name.strip_prefix(GROUP)?.split('/').next()?;
        let numeric = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
        (numeric && !alive(pid)).then_some(name.len())
    };
    list.lines().filter_map(|line| leftover(line).map(|len| &line[2..2 + len])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_uprobe_is_defined_with_the_values_of_its_records() {
        let mut count = Count {
            mark: ProbeKind::Allocation,
            path: PathBuf::new(),
            file_offset: 0,
            factors: vec![Argument::C(0), Argument::C(1)],
            unless_zero: None,
        };
        let text = values(&count);
        assert!(text.contains(" v0=%") && text.contains(" v1=%") && !text.contains(" v2="));
        count.unless_zero = Some(Argument::C(0));
        assert!(values(&count).contains(" v2=%"));
    }

    #[test]
    fn only_leftovers_of_ended_processes_are_removed() {
        let list = "p:deadweight_7/c0 /bin/a:0x10 sp=%sp:u64\np:deadweight_8/c1 /bin/b:0x20\n\
                    p:probes/mine /bin/c:0x30\nr:deadweight_9x/c0 /bin/d:0\np:deadweight_/c0 /e:0\n";
        assert_eq!(leftovers(list, |pid| pid == "8"), ["deadweight_7/c0"]);
        assert!(leftovers("", |_| false).is_empty());
    }
}
