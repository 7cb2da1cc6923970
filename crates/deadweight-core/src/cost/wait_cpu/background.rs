//! Background work that holds the CPU while the critical path waits for it.
//!
//! Not for threads that take part in the main work, nor for those whose work the program needs (`needed`).

use super::needed::is_needed;
use crate::account::{AccountId, Detail};
use crate::cost::busy_waiting::{only_waits, waits_busily};
use crate::facts::Facts;
use crate::facts::call_site::team_code::is_of_team;
use crate::facts::call_site::{CallSite, Weights, own_frame, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Inspection, waited_for};
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::Run;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::{NameId, StackId, TaskId};
use deadweight_trace::units::Ns;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A CPU holder with less than this part of its work on the critical path works in the background.
const BACKGROUND: f64 = 0.2;
/// A CPU holder with this part of its samples in the main task's functions does the same work.
const ALIKE: f64 = 0.5;

/// The main work of the critical path: a task that takes part in it is not in the background.
pub(super) struct Main {
    /// The task with most of the path.
    task: TaskId,
    /// The function that it started in.
    start: String,
    /// What it does: its part of samples in each of the program's functions.
    work: BTreeMap<NameId, f64>,
    /// Each task's time on the critical path.
    on_path: BTreeMap<TaskId, Ns>,
    /// Processes whose work another one waits for.
    waited_for: BTreeSet<ProcessId>,
    /// Answers of [`Main::is_beside`] so far.
    background: RefCell<BTreeMap<TaskId, bool>>,
}

impl Main {
    pub(super) fn of(facts: &Facts<'_>) -> Option<Self> {
        let mut on_path: BTreeMap<TaskId, Ns> = BTreeMap::new();
        for piece in &facts.path.pieces {
            *on_path.entry(piece.task).or_default() += piece.end - piece.start;
        }
        let task = *on_path.iter().max_by_key(|(_, ns)| **ns)?.0;
        Some(Self {
            task,
            start: start_of(facts, task),
            work: functions_of(facts, task),
            on_path,
            waited_for: waited_for::processes(facts),
            background: RefCell::default(),
        })
    }

    /// Whether a task does other work than the main one, little of it on the path. Computed once.
    fn is_beside(&self, facts: &Facts<'_>, task: TaskId) -> bool {
        *self.background.borrow_mut().entry(task).or_insert_with(|| {
            let shown = self.on_path.get(&task).copied().unwrap_or_default();
            shown.share_of(on_cpu(facts, task)) < BACKGROUND
                && task != self.task
                && !works_alike(facts, task, self)
                && !is_needed(facts, task)
                && !waits_busily(facts, task)
                && !is_in_team(facts, task)
        })
    }
}

/// The function that a task started in, as its samples show it.
fn start_of(facts: &Facts<'_>, task: TaskId) -> String {
    let samples = &facts.timeline.tasks[task.index()].samples;
    let stack = samples.iter().map(|s| s.stack).find(|s| *s != StackId(0)).unwrap_or_default();
    let symbols = facts.symbols();
    let own = symbols.frames(stack).filter(|(l, f)| crate::facts::call_site::is_own(symbols, l, f));
    own.last().map_or(String::new(), |(_, f)| symbols.name(f.function).to_owned())
}

/// Whether most of what a task does is for a team, such as OpenMP's: that is the main work, or a wait for it.
fn is_in_team(facts: &Facts<'_>, task: TaskId) -> bool {
    let samples = || facts.timeline.task(task).samples.iter().filter(|sample| !sample.kernel);
    let of_team =
        samples().filter(|sample| is_of_team(facts.symbols(), CallSite::Stack(sample.stack)));
    of_team.count() * 2 > samples().count()
}

/// The program's functions that a task was in, each with its part of the samples in the program's code: a task that
/// waits busily in a library does no other work there.
fn functions_of(facts: &Facts<'_>, task: TaskId) -> BTreeMap<NameId, f64> {
    let samples = &facts.timeline.tasks[task.index()].samples;
    let own = samples.iter().filter_map(|sample| {
        let (_, frame) = own_frame(facts.symbols(), CallSite::Stack(sample.stack))?;
        Some(frame.function)
    });
    let own: Vec<NameId> = own.collect();
    let mut functions = BTreeMap::new();
    for function in &own {
        *functions.entry(*function).or_default() += 1.0 / own.len() as f64;
    }
    functions
}

/// Whether a task does what the main one does.
fn works_alike(facts: &Facts<'_>, task: TaskId, main: &Main) -> bool {
    let common = functions_of(facts, task)
        .into_iter()
        .map(|(function, part)| main.work.get(&function).map_or(0.0, |of_main| part.min(*of_main)));
    start_of(facts, task) == main.start || common.sum::<f64>() >= ALIKE
}

/// Own tasks that held the CPU while the critical path waited, though no task waits for their work.
pub(super) fn background(
    found: &Inspection<'_, '_>,
    account: AccountId,
    process: ProcessId,
    main: &Main,
) -> Option<Draft> {
    let facts = found.facts;
    // Goroutines move between threads: a thread does not show whose work it does.
    if facts.processes.get(process).language == "Go" {
        return None;
    }
    let entries = || found.wall.of_process(account, process);
    let elsewhere_waited_for = |holder| holder != process && main.waited_for.contains(&holder);
    let mut held: BTreeMap<TaskId, Ns> = BTreeMap::new();
    for entry in entries() {
        if let Detail::Held(CpuHolder::Own(task)) = entry.detail {
            *held.entry(task).or_default() += entry.ns;
        }
    }
    held.retain(|task, ns| {
        ns.0 > 0 && main.is_beside(facts, *task) && !elsewhere_waited_for(facts.processes.of(*task))
    });
    // For a main thread that waits busily, the others work.
    if held.is_empty() || only_waits(facts, main.task) {
        return None;
    }
    let ns: Ns = held.values().copied().sum();
    let (worst, _) = held.iter().max_by_key(|(_, ns)| **ns)?;
    let worst_name = facts.symbols().name(facts.timeline.tasks[worst.index()].name_at(Ns::MAX));
    let places = work_of(facts, &held.keys().copied().collect());
    let top = sites(facts.symbols(), &places, 0);
    let doing = top.first().map_or(String::new(), |s| format!(" to run {}", s.function));
    Some(Draft {
        class: super::CLASS.id,
        moves: false,
        process,
        title: format!("background work of {worst_name} holds the CPU"),
        text: format!(
            "{} was ready to run for {} while {} of its own held the CPU{doing}. {}",
            facts.name(process),
            time(ns),
            things(u64::try_from(held.len()).ok()?, "background task"),
            waited_part(facts, main, held.keys()),
        ),
        amount: ns,
        saving: ns,
        range: (Ns::ZERO, ns),
        how: How::Estimate,
        sites: top,
        evidence: vec![
            "the saving is 0 if that work is needed now, the whole wait if it is not needed".into(),
        ],
        remedy: "Do less of that work, do it when its result is needed, or give that thread a \
                 lower priority. With one more CPU the wait would vanish."
            .into(),
    })
}

/// How much of these tasks' work the run waited for.
fn waited_part<'a>(
    facts: &Facts<'_>,
    main: &Main,
    tasks: impl Iterator<Item = &'a TaskId>,
) -> String {
    let (shown, whole) = tasks.fold((Ns::ZERO, Ns::ZERO), |(shown, whole), task| {
        let on_path = main.on_path.get(task).copied().unwrap_or_default();
        (shown + on_path, whole + on_cpu(facts, *task))
    });
    if shown.share_of(whole) < 0.01 {
        return "No task waited for that work.".into();
    }
    format!("The run waited for {} of that work.", percent(shown, whole))
}

fn on_cpu(facts: &Facts<'_>, task: TaskId) -> Ns {
    let task = &facts.timeline.tasks[task.index()];
    let on = task.spans.iter().enumerate().filter(|(_, s)| matches!(s.run(), Run::OnCpu(_)));
    on.map(|(i, s)| task.span_end(i) - s.start).sum()
}

/// What these tasks did, by samples.
fn work_of(facts: &Facts<'_>, tasks: &BTreeSet<TaskId>) -> Weights {
    let mut weights = Weights::new();
    for task in tasks {
        for sample in &facts.timeline.tasks[task.index()].samples {
            if own_frame(facts.symbols(), CallSite::Stack(sample.stack)).is_some() {
                let weight = weights.entry(CallSite::Stack(sample.stack)).or_default();
                weight.amount += 1;
            }
        }
    }
    weights
}
