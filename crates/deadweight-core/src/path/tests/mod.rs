//! Readings of small recordings: the path of each, line by line.

mod cut_off;
mod holes;
mod lives;
mod pitfalls;
mod programs;
mod subjects;
mod watchdogs;

use super::{Path, Subject};
use crate::timeline::{Run, Timeline, Within, WokenBy};
use deadweight_trace::ids::TaskId;
use deadweight_trace::{Trace, syscall};
use std::fmt::Write;

/// A recording with everything concluded from it.
pub(crate) struct Read {
    pub(crate) trace: Trace,
    pub(crate) timeline: Timeline,
    pub(crate) path: Path,
}

/// Reads a text trace as the command's ledger would, or that of the process called `of`.
pub(crate) fn read_of(text: &str, of: Option<&str>) -> Read {
    let trace = Trace::from_text(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let timeline = Timeline::build(&trace);
    let subject = Subject::choose(&trace, &timeline, of).unwrap();
    let path = Path::walk(&timeline, &subject);
    Read { trace, timeline, path }
}

pub(crate) fn read(text: &str) -> Read {
    read_of(text, None)
}

impl Read {
    /// A task as `name` or, if it has none, by number.
    pub(crate) fn name(&self, task: TaskId) -> String {
        let task = self.timeline.task(task);
        let names = task.names.iter().rev().map(|(_, n)| self.trace.symbols.name(*n));
        names.into_iter().next().map_or_else(|| task.tid.0.to_string(), str::to_owned)
    }

    /// A span, in a few words.
    fn content(&self, run: Run, within: Within) -> String {
        let inside = match within {
            Within::User => "user".to_owned(),
            Within::Syscall(call) => {
                let nr = self.timeline.calls[call.index()].nr;
                syscall::name(self.trace.meta.arch, nr).unwrap_or("?").to_owned()
            }
            other => format!("{other:?}").to_lowercase(),
        };
        match run {
            Run::OnCpu(_) => inside,
            Run::Runnable => "no cpu".to_owned(),
            Run::Unrecorded => "unrecorded".to_owned(),
            Run::Blocked(block) => {
                let block = &self.timeline.blocks[block as usize];
                let by = match block.woken_by {
                    WokenBy::Task(task) => self.name(task),
                    WokenBy::Interrupt(kind) => format!("interrupt {kind:?}").to_lowercase(),
                    other => format!("{other:?}").to_lowercase(),
                };
                let inferred = if block.inferred { ", inferred" } else { "" };
                format!("waits for {:?}, by {by}{inferred}", block.waits_for)
            }
        }
    }

    /// The path: from, to, whose, what.
    pub(crate) fn pieces(&self) -> String {
        let mut text = String::new();
        for piece in &self.path.pieces {
            let who = self.name(piece.task);
            if piece.unexplained {
                writeln!(text, "{}..{} {who}: unexplained", piece.start.0, piece.end.0).unwrap();
                continue;
            }
            for (start, end, _, span) in piece.spans(&self.timeline) {
                let what = self.content(span.run(), span.within());
                writeln!(text, "{}..{} {who}: {what}", start.0, end.0).unwrap();
            }
        }
        text
    }

    /// A task's spans with their starts, and where its life ends.
    pub(crate) fn life(&self, task: u32) -> String {
        let mut text = String::new();
        for task in self.timeline.tasks.iter().filter(|t| t.tid.0 == task && t.own) {
            for span in &task.spans {
                let what = self.content(span.run(), span.within());
                writeln!(text, "{} {what}", span.start.0).unwrap();
            }
            let died = if task.died { "dead" } else { "end" };
            writeln!(text, "{} {died}", task.end.0).unwrap();
        }
        text
    }
}

/// The path of `text` is as expected.
#[track_caller]
pub(crate) fn check(text: &str, expected: &expect_test::Expect) {
    expected.assert_eq(&read(text).pieces());
}

/// The life of `task` in `text` is as expected.
#[track_caller]
pub(crate) fn check_life(text: &str, task: u32, expected: &expect_test::Expect) {
    expected.assert_eq(&read(text).life(task));
}
