//! Which rung is chosen: whether perf events with BPF (`root`), perf events of the user's own programs (`user`) or
//! ptrace (`stops`) record a program here, why no higher rung does, and what the chosen one lacks.
//!
//! Each trace and report carries the result. `session` and `ptrace` know how a rung records.

use crate::perf::call_tracepoints::chosen;
use crate::perf::schema::fields;
use crate::perf::sys::{Event, Scope, Source};
use crate::ptrace;
use crate::session::UserAccess;

/// The rungs, from nothing to everything. [`Rung`] is the chosen level with its reasons and what it lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing can be recorded.
    None,
    /// No perf events: ptrace stops the program at its system calls and for samples.
    Stops,
    /// The program's own switches, chosen system calls, faults and user samples, as the kernel reports them to any
    /// user.
    User,
    /// Everything: the machine's switches and wake-ups, the program's calls, faults and samples.
    Root,
}

impl Level {
    /// Its name, as a trace stores it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stops => "stops",
            Self::User => "user",
            Self::Root => "root",
        }
    }

    /// What this rung uses instead of a kind of record (by its name in `doctor`) that only the root rung has.
    pub(crate) fn instead(self, feature: &str) -> Option<&'static str> {
        Some(match (self, feature) {
            (Self::User, "context switches") => {
                "the program's own are recorded, not those of other programs"
            }
            (Self::User, "system calls") => {
                "the most likely ones are recorded, the others only as a sum"
            }
            (Self::User, "clock samples") => "taken in user code",
            (Self::User, "page faults") => "recorded for user code",
            (Self::Stops, "context switches") => {
                "the scheduler's counts between ptrace stops, not those of other programs"
            }
            (Self::Stops, "system calls") => "the program is stopped at each, which costs time",
            (Self::Stops, "clock samples") => "the program is stopped for each, in user code",
            (Self::Stops, "page faults") => "the kernel's count of them, not when and where",
            (Self::User | Self::Stops, "wake-ups") => {
                "inferred from what the peer process did at that time"
            }
            _ => return None,
        })
    }
}

/// Something that only a higher rung records.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Anything at all.
    Everything,
    /// Which task woke which.
    Wakers,
    /// What other programs did on the CPUs.
    Others,
    /// Kernel call stacks at waits and samples.
    KernelStacks,
    /// System calls other than the most likely ones.
    RareCalls,
    /// The start of `main`, and other probes.
    Probes,
    /// Page faults one by one.
    Faults,
    /// Samples of user code at a steady rate.
    Samples,
}

impl Lack {
    /// What is lacking and what replaces it, as half a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Everything => "nothing can be recorded",
            Self::Wakers => "wakers are inferred from what the peer process did at that time",
            Self::Others => "other programs on the CPUs are not recorded",
            Self::KernelStacks => "kernel work is known from system calls, not from kernel stacks",
            Self::RareCalls => "only the most likely system calls are recorded one by one",
            Self::Probes => "start-up is not separate from main",
            Self::Faults => "page faults are not recorded one by one",
            Self::Samples => "user code is sampled coarsely",
        }
    }
}

/// How much can be recorded, why not more, and what is therefore lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Which one.
    pub level: Level,
    /// Why it is not a higher one, as found out; empty at the top.
    pub why: String,
    /// What a higher rung would record, most important first; empty at the top.
    pub lacks: Vec<Lack>,
}

impl Rung {
    /// The highest.
    #[must_use]
    pub fn root() -> Self {
        Self { level: Level::Root, why: String::new(), lacks: Vec::new() }
    }

    /// What is lacking, in words.
    #[must_use]
    pub fn lacks_in_words(&self) -> Vec<String> {
        self.lacks.iter().map(|lack| lack.words().to_owned()).collect()
    }
}

/// The rung: the highest, if nothing that it needs is missing.
pub(super) fn choose(missing: Option<String>) -> Rung {
    missing.map_or_else(Rung::root, lower)
}

/// The rung if the highest is not available for this reason.
fn lower(why: String) -> Rung {
    let own = Event { no_kernel: true, ..Event::of_each(Source::TasksAndSwitches, fields::BASE) };
    if own.open(Scope::TaskTree(0), 0).is_err() {
        return lowest(why);
    }
    // Some kernels are built without the tracepoints that this rung uses for system calls; others deny access to
    // them.
    if let Err(error) = chosen(1) {
        return lowest(format!("{why}; {error}"));
    }
    let [kernel, everyone] = UserAccess::tried();
    let lacks = [
        (Lack::Wakers, false),
        (Lack::Others, everyone),
        (Lack::KernelStacks, kernel),
        (Lack::RareCalls, false),
        (Lack::Probes, false),
    ];
    let lacks = lacks.into_iter().filter(|(_, had)| !had).map(|(lack, _)| lack).collect();
    Rung { level: Level::User, why, lacks }
}

/// The rung if no perf event is available.
pub(super) fn lowest(why: String) -> Rung {
    match ptrace::check_available() {
        Ok(()) => {
            let lacks = [
                Lack::Wakers,
                Lack::Others,
                Lack::KernelStacks,
                Lack::Faults,
                Lack::Samples,
                Lack::Probes,
            ];
            Rung { level: Level::Stops, why, lacks: lacks.into() }
        }
        Err(refused) => {
            let why = format!("{why}; and {refused}");
            Rung { level: Level::None, why, lacks: vec![Lack::Everything] }
        }
    }
}
