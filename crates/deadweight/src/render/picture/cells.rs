//! States of one task as cells: long ones alone, short neighbours together.

use super::{Cell, State};
use crate::render::page::{printable, shortened};
use deadweight_core::OneRun;
use deadweight_core::timeline::kernel_stacks::Interrupt;
use deadweight_core::timeline::{Run, Span, Within, WokenBy};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Names of files and processes are cut to this many characters.
const NAME: usize = 80;

/// Texts, each once.
#[derive(Default)]
pub(super) struct Texts {
    index: BTreeMap<String, u32>,
    words: Vec<String>,
}

impl Texts {
    /// The number of a text.
    pub(super) fn number(&mut self, text: String) -> u32 {
        if let Some(number) = self.index.get(&text) {
            return *number;
        }
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.push(text.clone());
        self.index.insert(text, number);
        number
    }

    pub(super) fn into_words(self) -> Vec<String> {
        self.words
    }
}

/// Short states that are drawn as one cell.
#[derive(Default)]
struct Together {
    start: u64,
    times: [u64; State::ALL.len()],
}

impl Together {
    fn length(&self) -> u64 {
        self.times.iter().sum()
    }

    fn into_cell(self, texts: &mut Texts) -> Cell {
        let most = State::ALL.into_iter().max_by_key(|state| self.times[state.number()]);
        let length = self.length();
        let mut parts: Vec<(u64, State)> =
            State::ALL.into_iter().map(|state| (self.times[state.number()], state)).collect();
        parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        // In tenths, so that few texts are needed.
        let tenths = |ns: u64| (ns * 10 + length / 2) / length.max(1);
        let said: Vec<String> = parts
            .iter()
            .filter(|(ns, _)| tenths(*ns) > 0)
            .map(|(ns, state)| format!("{} {} %", state.name(), tenths(*ns) * 10))
            .collect();
        let word = texts.number(format!("several: {}", said.join(", ")));
        Cell(self.start, length, most.unwrap_or(State::Own), word)
    }
}

/// The cells of a task between the start and the end of the wall time. There are at most three for each `cell_ns`.
pub(super) fn cells(
    run: &OneRun<'_, '_>,
    id: TaskId,
    cell_ns: u64,
    texts: &mut Texts,
) -> Vec<Cell> {
    let (timeline, subject) = (run.timeline(), &run.path().subject);
    let task = timeline.task(id);
    let mut cells = Vec::new();
    let mut open: Option<Together> = None;
    for (index, span) in task.spans.iter().enumerate() {
        let from = span.start.max(subject.start);
        let to = task.span_end(index).min(subject.end);
        if from >= to {
            continue;
        }
        let (start, length) = ((from - subject.start).0, (to - from).0);
        let state = State::of(span.run(), span.within(), &timeline.blocks);
        if length >= cell_ns {
            cells.extend(open.take().map(|together| together.into_cell(texts)));
            let word = texts.number(words(run, id, span, from));
            cells.push(Cell(start, length, state, word));
            continue;
        }
        let together = open.get_or_insert_with(|| Together { start, ..Together::default() });
        together.times[state.number()] += length;
        if together.length() >= cell_ns {
            cells.extend(open.take().map(|together| together.into_cell(texts)));
        }
    }
    cells.extend(open.map(|together| together.into_cell(texts)));
    cells
}

/// What a span was, in words.
fn words(run: &OneRun<'_, '_>, task: TaskId, span: &Span, at: Ns) -> String {
    let timeline = run.timeline();
    match (span.run(), span.within()) {
        (Run::Blocked(block), within) => {
            let Some(block) = timeline.blocks.get(block as usize) else { return String::new() };
            let call = call(run, within);
            let within = if call.is_empty() { String::new() } else { format!(" in {call}") };
            format!(
                "waits{within}: {}; {}",
                cut(&run.waits_for(block)),
                ended_by(run, block.woken_by, block.inferred)
            )
        }
        (Run::OnCpu(cpu), Within::Syscall(_)) => {
            format!("system call {} on CPU {}", call(run, span.within()), cpu.0)
        }
        (Run::OnCpu(cpu), Within::Fault(fault)) => {
            let major = timeline.faults.get(fault as usize).is_some_and(|fault| fault.major);
            format!("page fault{} on CPU {}", if major { ", read from storage" } else { "" }, cpu.0)
        }
        (Run::OnCpu(cpu), Within::User) => {
            let names = &run.trace().symbols;
            let name = cut(names.name(timeline.task(task).name_at(at)));
            format!("own code of {name} on CPU {}", cpu.0)
        }
        (Run::OnCpu(cpu), Within::Interrupt) => format!("interrupt on CPU {}", cpu.0),
        (Run::OnCpu(cpu), Within::Starting) => format!("starting on CPU {}", cpu.0),
        (Run::OnCpu(cpu), Within::Exiting) => format!("exiting on CPU {}", cpu.0),
        (Run::Runnable, _) => "ready, but no CPU was free".to_owned(),
        (Run::Unrecorded, _) => "not recorded".to_owned(),
    }
}

/// A system call with its file.
pub(super) fn call(run: &OneRun<'_, '_>, within: Within) -> String {
    let timeline = run.timeline();
    let Within::Syscall(id) = within else { return String::new() };
    let Some(call) = timeline.calls.get(id.index()) else { return String::new() };
    let name = deadweight_trace::syscall::name(run.trace().meta.arch, call.nr).unwrap_or("call");
    let object = call.object().and_then(|object| timeline.objects.get(object));
    let file = object.map_or("", |object| run.symbols().name(object.name));
    let times = if call.times() > 1 { format!(" ×{}", call.times()) } else { String::new() };
    if file.is_empty() {
        format!("{name}{times}")
    } else {
        format!("{name}{times} of {}", cut(file))
    }
}

/// What ended a wait, in words.
pub(super) fn ended_by(run: &OneRun<'_, '_>, woken_by: WokenBy, inferred: bool) -> String {
    let concluded = if inferred { " (concluded)" } else { "" };
    match woken_by {
        WokenBy::Task(task) => {
            let tid = run.timeline().task(task).tid.0;
            format!("ended by {} {tid}{concluded}", cut(&run.process_name(task)))
        }
        WokenBy::Interrupt(Interrupt::Timer) => "ended by the clock".to_owned(),
        WokenBy::Interrupt(Interrupt::Disk) => "ended by the disk".to_owned(),
        WokenBy::Interrupt(Interrupt::Network) => "ended by the network".to_owned(),
        WokenBy::Interrupt(Interrupt::Other) => "ended by an interrupt".to_owned(),
        WokenBy::Nobody => "it never ended".to_owned(),
        WokenBy::Unseen => "its end was not seen".to_owned(),
    }
}

/// A name as it may be shown, of bounded length.
pub(super) fn cut(name: &str) -> String {
    shortened(&printable(name), NAME)
}
