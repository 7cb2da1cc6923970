//! Intervals that are unknown because records were lost. They become `Run::Unrecorded`, which
//! `cost::account` charges to the row *not recorded*. A single switch that was not seen is repaired by
//! the next event, see `switches`.

use super::state::{Builder, Holes, State};
use super::{Run, Span, WokenBy};
use deadweight_trace::ids::{Cpu, TaskId};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind};

impl Holes {
    /// Whether events of this kind arrive even while records of their CPU are lost: samples, births, names, mappings and
    /// deaths have ring buffers of their own, and readings of `/proc` have none.
    pub(super) fn survives_losses(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::Sample { .. }
                | Kind::Registers { .. }
                | Kind::Site(_)
                | Kind::Fork { .. }
                | Kind::Exec { .. }
                | Kind::Comm(_)
                | Kind::Map { .. }
                | Kind::Exit
                | Kind::Fd { .. }
                | Kind::Page { .. }
        )
    }

    pub(super) fn moved(&mut self, task: TaskId, from: Cpu, at: Ns) {
        self.moved.insert(task, (from, at));
    }

    /// From when on it is unknown whether this wait, whose end was not seen, still lasted: the first loss
    /// in it from which on losses fill most of its rest.
    fn hidden_from(&self, start: Ns, end: Ns) -> Option<Ns> {
        let before = self.lost.range(..start).next_back();
        let mut apart: Vec<(Ns, Ns)> = Vec::new();
        for (since, until) in before.into_iter().chain(self.lost.range(start..end)) {
            let known = apart.last().map_or(start, |(_, until)| *until);
            let (since, until) = (known.max(*since), end.min(*until));
            if since < until {
                apart.push((since, until));
            }
        }
        let mut lost = Ns::ZERO;
        let mut hidden = None;
        for (since, until) in apart.into_iter().rev() {
            lost += until - since;
            if end - since <= lost + lost {
                hidden = Some(since);
            }
        }
        hidden
    }
}

impl Builder<'_> {
    /// Records of one CPU were lost since its latest one.
    pub(super) fn lost(&mut self, event: &Event, count: u64) {
        self.anomalies.lost_records = self.anomalies.lost_records.saturating_add(count.max(1));
        let cpu = &mut self.cpus[usize::from(event.cpu.0)];
        let since = cpu.last_record;
        cpu.lost_since.get_or_insert(since);
        let until = self.holes.lost.entry(since).or_insert(self.now);
        *until = self.now.max(*until);
        for index in 0..self.live.len() {
            if self.live[index].state == State::OnCpu(event.cpu) {
                let live = &mut self.live[index];
                live.state = State::Unrecorded;
                live.fault = None;
                live.interrupt = false;
                self.hide(TaskId::at(index), event.cpu, since);
            }
        }
        let moved: Vec<_> = self.holes.moved.iter().map(|(task, from)| (*task, *from)).collect();
        for (task, (_, at)) in moved.into_iter().filter(|(_, (from, _))| *from == event.cpu) {
            self.open_hole(task, event.cpu, since, at);
        }
    }

    /// What `task` did on `cpu` is unknown from then on, whatever was concluded from events that arrived nevertheless; so is
    /// until when it waited for a CPU before them.
    fn hide(&mut self, task: TaskId, cpu: Cpu, since: Ns) {
        let spans = &mut self.out.tasks[task.index()].spans;
        let concluded = |span: &&Span| span.run() == Run::OnCpu(cpu) && span.start > since;
        let known = spans.len() - spans.iter().rev().take_while(concluded).count();
        let before = known.checked_sub(1).map(|at| spans[at].run());
        let start = match spans.get(known) {
            Some(first) if before != Some(Run::OnCpu(cpu)) && before != Some(Run::Runnable) => {
                first.start
            }
            _ => since,
        };
        spans.truncate(known);
        self.mark(task, start);
    }

    /// Part of a wait between two instants may be hidden by losses. Returns until when the wait is known.
    pub(super) fn wait_into_hole(&mut self, task: TaskId, start: Ns, end: Ns) -> Ns {
        let Some(hole) = self.holes.hidden_from(start, end) else { return end };
        self.live[task.index()].state = State::Unrecorded;
        self.mark(task, hole);
        hole
    }

    /// What `task` did between two instants is unknown: so far it was taken to stay on `cpu`.
    fn open_hole(&mut self, task: TaskId, cpu: Cpu, since: Ns, until: Ns) {
        let spans = &mut self.out.tasks[task.index()].spans;
        let Some(at) = spans.partition_point(|span| span.start < until).checked_sub(1) else {
            return;
        };
        let Span { start, .. } = spans[at];
        let within = spans[at].within();
        if spans[at].run() != Run::OnCpu(cpu) {
            return;
        }
        if since <= start {
            spans[at].set_run(Run::Unrecorded);
        } else if since < until {
            spans.insert(at + 1, Span::new(since, Run::Unrecorded, within));
        }
    }

    /// A loss may be reported after the waits that it hides have ended: on a CPU that had no event since.
    pub(super) fn hide_waits(&mut self) {
        if self.holes.lost.is_empty() {
            return;
        }
        for index in 0..self.out.blocks.len() {
            let block = &self.out.blocks[index];
            if !matches!(block.woken_by, WokenBy::Unseen) {
                continue;
            }
            let Some(hole) = self.holes.hidden_from(block.start, block.end) else { continue };
            let spans = &mut self.out.tasks[block.task.index()].spans;
            let first = spans.partition_point(|span| span.start < block.start);
            let waits =
                |span: &&mut Span| matches!(span.run(), Run::Blocked(of) if of as usize == index);
            let parts = spans[first..].iter_mut().take_while(waits);
            let (mut last, mut hidden) = (first, None);
            for (part, span) in parts.enumerate() {
                if span.start < hole {
                    (last, hidden) = (first + part + 1, Some(span.within()));
                } else {
                    span.set_run(Run::Unrecorded);
                }
            }
            if let Some(within) = hidden {
                spans.insert(last, Span::new(hole, Run::Unrecorded, within));
            }
            self.out.blocks[index].end = hole;
        }
    }

    /// A task that waited when the recording ended in losses (a file at its size limit, a full disk) may
    /// have run since: that is unknown.
    pub(super) fn end_in_a_hole(&mut self) {
        let lost = || self.cpus.iter().filter_map(|cpu| cpu.lost_since);
        // A recording that was cut off lacks the same end on every CPU; only an idle one has no records before it.
        let cut = self.cpus.iter().all(|cpu| cpu.lost_since.is_some());
        let busy = self.cpus.iter().filter(|cpu| cpu.current.is_some());
        let first = busy.filter_map(|cpu| cpu.lost_since).min();
        let since = if cut { first.or(lost().max()) } else { lost().min() };
        let Some(hole) = since else { return };
        for index in 0..self.live.len() {
            let task = TaskId::at(index);
            match self.live[index].state {
                State::Blocked(block) => {
                    let block = &mut self.out.blocks[block as usize];
                    block.end = hole.max(block.start);
                    block.woken_by = WokenBy::Unseen;
                }
                State::Runnable => {}
                _ => continue,
            }
            self.live[index].state = State::Unrecorded;
            self.mark(task, hole);
        }
    }
}
