//! What a table shows better than a drawing: source lines with their CPU time, and system calls with their rates.

use super::cells::cut;
use crate::render::page::{printable, shortened};
use deadweight_core::timeline::descriptors::ObjectKind;
use deadweight_core::{CallTotal, OneRun, StackTime};
use deadweight_trace::symbols::SourceFrame;
use serde::Serialize;
use std::collections::BTreeMap;

/// The most lines, and kinds of calls.
const LINES: usize = 40;
const CALLS: usize = 30;
/// Characters of a line's text that are kept.
const TEXT: usize = 160;

/// Time by row.
type Rows = BTreeMap<&'static str, u64>;

/// A source line with the CPU time of all threads in it, and in code without lines that it calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourceLine {
    /// Source file.
    pub file: String,
    /// Line from 1.
    pub line: u32,
    /// Its function.
    pub function: String,
    /// Its text, if it was at hand when the recording was made.
    pub text: String,
    /// Its time.
    pub ns: u64,
    /// The row that has most of it.
    pub account: &'static str,
}

/// A kind of system call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallRate {
    /// The calling process.
    pub process: String,
    /// The call, and what its descriptors referred to.
    pub name: String,
    /// How many there were.
    pub calls: u64,
    /// Bytes transferred, if it transfers bytes.
    pub bytes: Option<u64>,
    /// Time inside, waits included.
    pub ns: u64,
    /// Time inside without waits.
    pub busy_ns: u64,
}

/// The lines with most CPU time, and the time of all lines that are known.
pub(super) fn lines(run: &OneRun<'_, '_>, stacks: &[StackTime]) -> (Vec<SourceLine>, u64) {
    let symbols = run.symbols();
    let mut sums: BTreeMap<SourceFrame, Rows> = BTreeMap::new();
    for stack in stacks {
        let known = |frame: &&SourceFrame| frame.line > 0 && !symbols.name(frame.file).is_empty();
        let frame = stack.frames(symbols).map(|(_, frame)| frame).find(known);
        if let Some(frame) = frame {
            *sums.entry(*frame).or_default().entry(stack.account.id()).or_default() += stack.ns.0;
        }
    }
    let known: u64 = sums.values().flat_map(BTreeMap::values).sum();
    let mut lines: Vec<_> =
        sums.into_iter().map(|(frame, rows)| (rows.values().sum::<u64>(), frame, rows)).collect();
    lines.sort_by_key(|(ns, frame, _)| (std::cmp::Reverse(*ns), *frame));
    // Less than half of the last digit that is shown.
    lines.retain(|(ns, ..)| ns.saturating_mul(2000) >= known);
    lines.truncate(LINES);
    let line = |(ns, frame, rows): (u64, SourceFrame, Rows)| {
        let most = rows.iter().max_by_key(|(_, ns)| **ns);
        SourceLine {
            file: shortened(&printable(symbols.name(frame.file)), TEXT),
            line: frame.line,
            function: cut(symbols.name(frame.function)),
            text: shortened(&printable(symbols.source_line(&frame)), TEXT),
            ns,
            account: most.map_or("", |(account, _)| account),
        }
    };
    (lines.into_iter().map(line).collect(), known)
}

/// The kinds of calls with most time inside.
pub(super) fn calls(run: &OneRun<'_, '_>) -> Vec<CallRate> {
    let rate = |total: CallTotal| CallRate {
        process: cut(&total.process),
        name: match total.object.map(object) {
            None | Some("") => total.name.to_owned(),
            Some(object) => format!("{} of a {object}", total.name),
        },
        calls: total.calls,
        bytes: total.bytes,
        ns: total.time.0,
        busy_ns: total.busy.0,
    };
    let wall = run.path().subject.wall().0;
    let seen = |total: &CallTotal| total.time.0.saturating_mul(20_000) >= wall;
    run.call_totals().into_iter().filter(seen).take(CALLS).map(rate).collect()
}

fn object(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::File => "file",
        ObjectKind::Pipe => "pipe",
        ObjectKind::Socket => "socket",
        ObjectKind::Datagrams => "datagram socket",
        ObjectKind::Terminal => "terminal",
        ObjectKind::Device => "device",
        ObjectKind::Anonymous | ObjectKind::Unknown => "",
    }
}
