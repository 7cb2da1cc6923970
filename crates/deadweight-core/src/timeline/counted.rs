//! Calls that were counted together: where on the time axis they are placed.
//!
//! A stretch of counted calls has a length, a number of calls of each kind, and the time inside them. The
//! calls are spread evenly. Between two known events of the task lie one piece of own time and one piece of
//! calls, in the order that fits the sample at the piece's beginning. The sums are exact; the position of a
//! single call within the stretch is not known.

use super::span::INDICES;
use super::state::{Builder, Part, StackOwner, Stretch};
use super::{Call, CallId};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind};

impl Builder<'_> {
    /// The task makes these calls from now on.
    pub(super) fn count(&mut self, task: TaskId, kind: Kind) {
        let Kind::Calls { nr, args, ret, count, inside, over } = kind else { return };
        self.end_call(task, self.now, Call::NEVER);
        let live = &mut self.live[task.index()];
        (live.fault, live.starting, live.gave_birth) = (None, false, false);
        live.stack_owner = StackOwner::Nothing;
        self.mark(task, self.now);
        if count == 0 {
            return;
        }
        let (start, end) = (self.now, Ns(self.now.0.saturating_add(over.0)));
        let new = Stretch { start, placed: start, end, inside: false, parts: Vec::new() };
        let stretch = self.counted.entry(task).or_insert(new);
        stretch.end = stretch.end.max(end);
        stretch.parts.push(Part { nr, args, ret, count, inside, latest: None });
    }

    /// Places the calls counted until this event, of its task and of the task that has its CPU.
    pub(super) fn place_counted(&mut self, event: &Event) {
        let current = self.cpus[usize::from(event.cpu.0)].current;
        let own = self.own(event.task);
        for task in [own, current.filter(|task| Some(*task) != own)].into_iter().flatten() {
            let Some(mut stretch) = self.counted.remove(&task) else { continue };
            let its = own == Some(task);
            if its && matches!(event.kind, Kind::Calls { .. }) && stretch.start == self.now {
                self.counted.insert(task, stretch);
                continue;
            }
            // Events that a task only causes outside of these calls, or without a CPU.
            let over = match event.kind {
                Kind::Syscall { .. } | Kind::Calls { .. } | Kind::Off { .. } | Kind::Exit => its,
                Kind::On => true,
                Kind::Exec { .. } => its,
                _ => false,
            };
            let all = over || self.now >= stretch.end;
            self.place(task, &mut stretch, self.now, all);
            stretch.inside = its && matches!(event.kind, Kind::Sample { kernel: true, .. });
            if !all {
                self.counted.insert(task, stretch);
            }
        }
    }

    /// Places the rest of all stretches.
    pub(super) fn place_all_counted(&mut self, end: Ns) {
        for (task, mut stretch) in std::mem::take(&mut self.counted) {
            self.place(task, &mut stretch, end, true);
        }
    }

    /// Places a stretch up to `until`, or its whole rest.
    fn place(&mut self, task: TaskId, stretch: &mut Stretch, until: Ns, all: bool) {
        if self.out.calls.len() + stretch.parts.len() >= INDICES {
            return;
        }
        let until = until.min(stretch.end).max(stretch.placed);
        let (length, left) = (until - stretch.placed, (stretch.end - stretch.placed).max(Ns(1)));
        let live = &self.live[task.index()];
        let elsewhere = live.interrupt || live.fault.is_some();
        let room = if elsewhere { Ns::ZERO } else { length };
        let mut pieces = Vec::with_capacity(stretch.parts.len());
        for part in &mut stretch.parts {
            let mut piece = *part;
            if !all {
                piece.count = share(part.count.into(), length, left).try_into().unwrap_or(u32::MAX);
                piece.inside = Ns(share(part.inside.0, length, left));
                // An interrupt takes its part of the measured time.
                piece.count = if elsewhere { 0 } else { piece.count };
                if piece.count > 0 || elsewhere {
                    part.inside -= piece.inside;
                }
                part.count -= piece.count.min(part.count);
            }
            // Calls without time of their own left are added to the piece before, or no row would count
            // them.
            if let Some(latest) = part.latest.filter(|_| all && room == Ns::ZERO) {
                self.out.calls[latest.index()].counted += piece.count;
            } else if piece.count > 0 {
                part.latest = Some(CallId::at(self.out.calls.len() + pieces.len()));
                pieces.push(piece);
            }
        }
        self.place_pieces(task, stretch, &pieces, room);
        stretch.placed = until;
    }

    fn place_pieces(&mut self, task: TaskId, stretch: &Stretch, pieces: &[Part], room: Ns) {
        let inside: Ns = pieces.iter().map(|piece| piece.inside).sum();
        let mut count: u64 = pieces.iter().map(|piece| u64::from(piece.count)).sum();
        let mut between = room - inside;
        let mut at = stretch.placed;
        for piece in pieces {
            let within =
                if inside > room { Ns(share(piece.inside.0, room, inside)) } else { piece.inside };
            let before = Ns(share(between.0, Ns(piece.count.into()), Ns(count.max(1))));
            (between, count) = (between - before, count - u64::from(piece.count));
            if stretch.inside {
                self.place_call(task, piece, at, at + within, stretch.inside);
                at = at + within + before;
            } else {
                at += before;
                self.place_call(task, piece, at, at + within, stretch.inside);
                at += within;
            }
        }
    }

    fn place_call(&mut self, task: TaskId, piece: &Part, start: Ns, end: Ns, behind: bool) {
        let Part { nr, args, ret, count, .. } = *piece;
        let process = self.out.tasks[task.index()].process;
        let object = self.descriptors.object_of(process, nr, &args).unwrap_or(Call::NOTHING);
        let id = CallId::at(self.out.calls.len());
        let (args, site) = (self.arguments.keep(args), StackId(0));
        self.out.calls.push(Call {
            start,
            end,
            ret,
            task,
            site,
            args,
            object,
            counted: count,
            own_time_behind: behind,
            nr,
        });
        let interrupted =
            self.live[task.index()].interrupt || self.live[task.index()].fault.is_some();
        self.live[task.index()].last_call = Some(id);
        if !interrupted && start < end {
            self.live[task.index()].call = Some(id);
            self.mark(task, start);
            self.live[task.index()].call = None;
            self.mark(task, end);
        }
    }
}

/// `whole * part / all`, at most `whole`.
fn share(whole: u64, part: Ns, all: Ns) -> u64 {
    Ns(whole).scaled(part.0, all.0).0.min(whole)
}

#[cfg(test)]
mod tests {
    use crate::timeline::{Timeline, Within};
    use deadweight_trace::Trace;

    /// Each call of a trace: number, how many, from when, until when; and whether its task's spans tile.
    fn calls(text: &str) -> Vec<(u16, u64, u64, u64)> {
        let timeline = Timeline::build(&Trace::from_text(text).unwrap());
        timeline.calls.iter().map(|c| (c.nr, c.times(), c.start.0, c.end.0)).collect()
    }

    #[test]
    fn without_other_events_counted_calls_are_one_piece_after_own_time() {
        let text = "task 1 a\n0 on\n1000 calls 100 read 3 1 back 1 inside 20000 over 50000\n60000 off dead";
        assert_eq!(calls(text), [(0, 100, 31_000, 51_000)]);
        let timeline = Timeline::build(&Trace::from_text(text).unwrap());
        let spans = &timeline.tasks[0].spans;
        let inside = spans.iter().filter(|s| matches!(s.within(), Within::Syscall(_)));
        assert_eq!(inside.map(|s| s.start.0).collect::<Vec<_>>(), [31_000]);
        assert_eq!(timeline.calls[0].ret(), Some(1));
    }

    #[test]
    fn each_sample_is_where_it_was_taken() {
        let text = "task 1 a\n0 on\n0 calls 90 read 3 1 back 1 inside 60000 over 90000\n\
                    30000 sample kernel\n60000 sample f\n100000 off dead";
        let pieces = [(0, 30, 10_000, 30_000), (0, 30, 30_000, 50_000), (0, 30, 70_000, 90_000)];
        assert_eq!(calls(text), pieces);
    }

    #[test]
    fn alternating_kinds_share_the_time_between() {
        let text = "task 1 a\n0 on\n0 calls 10 read 3 64 back 64 inside 300 over 1000\n\
                    0 calls 10 write 4 64 back 64 inside 500 over 1000\n2000 off dead";
        assert_eq!(calls(text), [(0, 10, 100, 400), (1, 10, 500, 1000)]);
    }

    #[test]
    fn an_interrupt_takes_its_time_from_both_sides() {
        let text = "task 1 a\n0 on\n0 calls 100 getppid back 1 inside 50000 over 100000\n\
                    40000 timer\n60000 timer-end\n200000 off dead";
        assert_eq!(calls(text), [(110, 40, 20_000, 40_000), (110, 60, 80_000, 100_000)]);
    }

    #[test]
    fn calls_that_end_in_an_interrupt_are_added_to_the_piece_before() {
        let text = "task 1 a\n0 on\n0 calls 100 getppid back 1 inside 50000 over 100000\n\
                    90000 timer\n120000 timer-end\n200000 off dead";
        assert_eq!(calls(text), [(110, 100, 45_000, 90_000)]);
    }

    #[test]
    fn calls_without_time_left_are_still_counted() {
        let text = "task 1 a\n0 on\n0 calls 10 read 3 1 back 1 inside 800 over 1000\n400 off dead";
        assert_eq!(calls(text), [(0, 10, 0, 400)]);
        let text = "task 1 a\n0 on\n5 calls 10 read 3 1 back 1 inside 800 over 1000\n5 syscall read 3 1\n9 back\n9 off dead";
        assert_eq!(calls(text).iter().map(|c| c.1).collect::<Vec<_>>(), [10, 1]);
    }
}
