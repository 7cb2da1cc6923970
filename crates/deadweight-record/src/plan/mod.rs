//! What can be recorded on this machine, and how to get the rest. `rung` chooses the rung.
//!
//! - In: the machine, by trying, because settings, capabilities, containers and kernels all matter.
//! - Out: a [`Plan`] with a [`Rung`], and for `deadweight doctor` the whole [`Checkup`].
//! - Must not know: how a rung records.
//!
//! If not even the lowest rung is possible, the result is one sentence and the command that helps.

mod doctor;
mod hazards;
pub(crate) mod rung;

use crate::bpf::in_initial_pid_namespace;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::perf::schema::fields;
use crate::perf::sys::{Event, Every, Scope, Source};
use crate::perf::tracefs::Tracefs;
use crate::permissions::{self, Need};
use crate::procfs;
use deadweight_trace::Meta;
use deadweight_trace::syscall::Arch;
use std::io::{BufRead, BufReader};

pub use doctor::{Checkup, doctor};
pub use hazards::MachineHazard;
pub use rung::{Lack, Level, Rung};

/// Something that recording needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name in `deadweight doctor`.
    pub name: &'static str,
    /// Whether it is available.
    pub available: bool,
    /// The reason, as found out.
    pub why: String,
    /// What it contributes to the ledger.
    pub gives: &'static str,
    /// The exact command that grants it; none if it is available or no command does.
    pub grant: Option<String>,
    /// If it is missing: what the rung uses instead.
    pub instead: Option<&'static str>,
}

/// What will be recorded, and why the rest is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How much can be recorded.
    pub rung: Rung,
    /// All capabilities that were checked, for `doctor`.
    pub capabilities: Vec<Capability>,
    /// What the reader of each report from this machine must know.
    pub warnings: Vec<String>,
}

impl Plan {
    /// What is known about each recording of this plan before it begins.
    pub(crate) fn facts(&self) -> Meta {
        Meta {
            recorder: env!("CARGO_PKG_VERSION").into(),
            arch: Arch::HOST,
            cpus: u16::try_from(procfs::allowed_cpus()).unwrap_or(u16::MAX),
            machine: procfs::machine(),
            rung: self.rung.level.name().into(),
            rung_why: self.rung.why.clone(),
            lacks: self.rung.lacks_in_words(),
            warnings: self.warnings.clone(),
            ..Meta::default()
        }
    }

    /// Checks the machine. Cheap: opens a few events and closes them again.
    #[must_use]
    pub fn detect() -> Self {
        let tracefs = Tracefs::open();
        let switches = switches();
        // Who may open an event for all tasks may open one for his own. The first event of a task costs the kernel 14 ms
        // and makes each switch of the machine slower, so where that is not needed none is opened.
        let own = if switches.available { Scope::AllTasks } else { Scope::TaskTree(0) };
        let capabilities = vec![
            switches,
            wake_ups(tracefs.as_ref()),
            calls(tracefs.as_ref(), own),
            samples(own),
            probes(),
            symbols(),
        ];
        // The ledger depends on the first three; without the others it only says less.
        let missing = capabilities[..3].iter().find(|c| !c.available);
        let missing = missing.map(|c| format!("no {}: {}", c.name, c.why));
        let rung = too_few_files().map_or_else(|| rung::choose(missing), rung::lowest);
        let mut warnings: Vec<String> = capabilities
            .iter()
            // The rung reports its own lacks.
            .filter(|c| !c.available && rung.level == Level::Root)
            .map(|c| format!("no {}: {}", c.name, c.why))
            .collect();
        if !in_initial_pid_namespace() && rung.level == Level::Root {
            warnings.push(
                "inside a container with its own process ids: of programs outside only the names are \
                 known, and system calls at a high rate are recorded one by one"
                    .into(),
            );
        }
        Self { rung, capabilities, warnings }
    }

    /// The plan for a process that runs already: ordinary users attach to it with ptrace.
    pub(crate) fn for_attaching(&self) -> Self {
        let mut plan = self.clone();
        if plan.rung.level == Level::User {
            plan.rung = rung::lowest(plan.rung.why);
        }
        plan
    }

    /// Whether [`crate::record()`] and [`crate::attach`] can work.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] with what is missing and the command that helps.
    pub fn allows_recording(&self) -> Result<(), Error> {
        if self.rung.level > Level::None {
            return Ok(());
        }
        let missing = self.capabilities.iter().find(|c| !c.available);
        let why = missing.map_or("recording is not possible here".into(), |c| {
            // Below the lowest rung, that rung's refusal is reported too.
            let and = self.rung.why.split_once("; and ").map_or("", |(_, refused)| refused);
            let and = if and.is_empty() { String::new() } else { format!("; and {and}") };
            format!("cannot record {}: {}{and}", c.name, c.why)
        });
        // The simplest for one run; `doctor` knows permanent ways with fewer privileges.
        let sudo = (!permissions::is_root()).then(|| "sudo deadweight -- COMMAND".to_owned());
        let command = sudo.or_else(|| missing.and_then(|c| c.grant.clone()));
        let help = command
            .map_or("`deadweight doctor` says what this machine allows".into(), |command| {
                format!("This helps: {command}")
            });
        Err(Error::NotAllowed { why, help })
    }
}

/// Files that recording has open at least for each CPU, and in addition.
const LEAST_FILES: [usize; 2] = [12, 36];

/// Why there are too few open files for events of perf, if so: the lowest rung needs hardly any.
fn too_few_files() -> Option<String> {
    descriptor_limit::raise();
    let (cpus, most) = (procfs::online_cpus().len(), descriptor_limit::most_files());
    let wanted = LEAST_FILES[0] * cpus + LEAST_FILES[1];
    (most < wanted)
        .then(|| format!("only {most} files may be open (ulimit -n), and recording needs {wanted}"))
}

impl Capability {
    /// The result of trying it.
    pub(crate) fn tried<T>(
        name: &'static str,
        gives: &'static str,
        tried: std::io::Result<T>,
        need: Need,
    ) -> Self {
        match tried {
            Ok(_) => Self {
                name,
                available: true,
                why: "works".into(),
                gives,
                grant: None,
                instead: None,
            },
            Err(error) => {
                let (why, grant) = permissions::refused(&error, need);
                Self { name, available: false, why, gives, grant, instead: None }
            }
        }
    }
}

fn tried(name: &'static str, gives: &'static str, event: &Event, scope: Scope) -> Capability {
    Capability::tried(name, gives, event.open(scope, 0), Need::Perf)
}

fn switches() -> Capability {
    let gives = "every row: which task was on a CPU, and until when";
    tried("context switches", gives, &Event::of_each(Source::Dummy, fields::BASE), Scope::AllTasks)
}

fn traced(
    tracefs: Result<&Tracefs, &Error>,
    name: &'static str,
    gives: &'static str,
    tracepoint: &str,
    scope: Scope,
) -> Capability {
    let no = |why: String, grant: Option<String>| Capability {
        name,
        available: false,
        why,
        gives,
        grant,
        instead: None,
    };
    match tracefs.map(|t| t.has(tracepoint)) {
        // A user who may open a software event for `scope` may also open the tracepoint, given its number. It is not
        // opened here, because closing one takes the kernel 30 ms or more.
        Ok(Ok(())) => tried(name, gives, &Event::of_each(Source::Dummy, fields::BASE), scope),
        Ok(Err(error)) => no(
            format!("the tracepoint {tracepoint} is missing: {error}"),
            permissions::command_for(Need::Tracefs),
        ),
        Err(Error::System { what, source }) => {
            let (why, grant) = permissions::refused(source, Need::Tracefs);
            no(format!("{what}: {why}"), grant)
        }
        Err(error) => no(error.to_string(), permissions::command_for(Need::Tracefs)),
    }
}

fn wake_ups(tracefs: Result<&Tracefs, &Error>) -> Capability {
    let gives = "waiting rows: what the program waited for";
    traced(tracefs, "wake-ups", gives, "sched/sched_waking", Scope::AllTasks)
}

fn calls(tracefs: Result<&Tracefs, &Error>, scope: Scope) -> Capability {
    let gives = "system calls, tiny reads and writes, files, start-up";
    traced(tracefs, "system calls", gives, "raw_syscalls/sys_enter", scope)
}

fn samples(scope: Scope) -> Capability {
    let gives = "net work and everything inside user code";
    let clock = Source::Software(perf_event_open_sys::bindings::PERF_COUNT_SW_CPU_CLOCK);
    let event = Event { every: Every::Count(1_000_000), ..Event::of_each(clock, fields::BASE) };
    tried("clock samples", gives, &event, scope)
}

fn probes() -> Capability {
    let kind = procfs::line("/sys/bus/event_source/devices/uprobe/type");
    Capability {
        name: "probes",
        available: kind.is_some(),
        why: if kind.is_some() { "works" } else { "this kernel has no uprobes" }.into(),
        gives: "start-up separate from main, locks of Go programs",
        grant: None,
        instead: None,
    }
}

fn symbols() -> Capability {
    // The kernel generates the file of some 200 000 lines while it is read: the first lines suffice. Before Linux
    // 6.15 the very first are per-CPU variables, whose addresses start at zero.
    const LOOKED_AT: usize = 100;
    let named = std::fs::File::open("/proc/kallsyms").is_ok_and(|file| {
        let lines = BufReader::with_capacity(4096, file).lines().take(LOOKED_AT);
        lines.map_while(Result::ok).any(|line| !line.starts_with("0000000000000000"))
    });
    Capability {
        name: "kernel symbols",
        available: named,
        why: if named { "readable".into() } else { "the kernel hides its addresses".into() },
        gives: "what a wait is for: disk, pipe, lock, timer",
        grant: if named { None } else { permissions::command_for(Need::Symbols) },
        instead: None,
    }
}
