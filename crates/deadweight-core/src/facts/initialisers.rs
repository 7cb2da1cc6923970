//! The program's own initialisers: its code that the runtime or the loader calls before `main`, such as Go's package
//! variables, C++'s static objects and constructor functions.
//!
//! In: the samples of a process. Out: the interval in which its initialisers ran, and their places. Whether that is
//! a cost is `cost::start_up`'s to say.

use crate::facts::call_site::{CallSite, Weights, is_own};
use crate::timeline::{Sample, Timeline};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Fewer samples are a start like any other.
const SAMPLES: usize = 3;

/// Functions of runtimes and loaders that call initialisers, and what compilers name those of a file.
const CALLERS: &[&str] =
    &["runtime.doInit1", "runtime.doInit", "call_init", "_dl_init", "__libc_csu_init"];
const OF_A_FILE: &[&str] = &["_GLOBAL__sub_I_", "__static_initialization_and_destruction_0"];
/// The program, after its initialisers.
const MAIN: &str = "main";

/// When a process ran its initialisers.
#[derive(Clone, Debug)]
pub(crate) struct Initialisers {
    /// From their first sample ...
    pub(crate) from: Ns,
    /// ... until main; until their last sample where that comes later, or main was not seen.
    pub(crate) to: Ns,
    /// Their samples.
    pub(crate) places: Weights,
}

impl Initialisers {
    /// The initialisers of the last program of a process with these tasks, if they ran for more than a few samples.
    pub(crate) fn of(timeline: &Timeline, symbols: &Symbols, tasks: &[TaskId]) -> Option<Self> {
        let tasks = || tasks.iter().map(|task| timeline.task(*task));
        let began = tasks().flat_map(|t| t.execs.iter().map(|(at, _)| *at)).max();
        let began = began.unwrap_or(Ns::ZERO);
        let main = tasks().flat_map(|t| t.mains.iter().copied()).filter(|at| *at >= began).min();
        let mut known = BTreeMap::new();
        let mut hits: Vec<&Sample> = tasks()
            .flat_map(|t| &t.samples[t.samples.partition_point(|sample| sample.at < began)..])
            .filter(|sample| {
                let is = || is_initialiser(symbols, sample.stack);
                *known.entry(sample.stack).or_insert_with(is)
            })
            .collect();
        hits.sort_by_key(|sample| sample.at);
        let (first, last) = (hits.first()?, hits.last()?);
        // The C library's common entry is no end: it calls the initialisers of the program, too.
        let to = main.filter(|main| *main > last.at).unwrap_or(last.at);
        if hits.len() < SAMPLES {
            return None;
        }
        let mut places = Weights::new();
        for sample in &hits {
            places.entry(CallSite::Stack(sample.stack)).or_default().amount += 1;
        }
        Some(Self { from: first.at, to, places })
    }
}

/// Whether the program's own code runs in this stack, called as an initialiser, and not by `main`: those of a library
/// that it loads are no part of the start.
fn is_initialiser(symbols: &Symbols, stack: StackId) -> bool {
    let (mut own, mut called) = (false, false);
    for (location, frame) in CallSite::Stack(stack).frames(symbols) {
        let name = symbols.name(frame.function);
        if name == MAIN {
            return false;
        }
        called |= OF_A_FILE.iter().any(|of| name.starts_with(of)) || own && CALLERS.contains(&name);
        own |= is_own(symbols, location, frame);
    }
    called
}
