//! Whether a CPU was free for more of a team's work.

use crate::cost::Inspection;
use deadweight_trace::ids::{Cpu, TaskId};
use deadweight_trace::units::Ns;

/// For how much of this time `last` is on the critical path on a CPU, and another CPU has no task of the command but
/// threads that only wait for it (`waits`).
pub(super) fn free(
    found: &Inspection<'_, '_>,
    waits: &dyn Fn(&TaskId) -> bool,
    last: TaskId,
    from: Ns,
    to: Ns,
) -> Ns {
    let timeline = found.facts.timeline;
    let pieces = &found.facts.path.pieces;
    let first = pieces.partition_point(|piece| piece.end <= from);
    let near = pieces[first..].iter().take_while(|piece| piece.start < to);
    let on_path = near.filter(|piece| piece.task == last || waits(&piece.task));
    on_path
        .map(|piece| {
            let (from, to) = (piece.start.max(from), piece.end.min(to));
            let used = |cpu: usize| -> Ns {
                let cpu = Cpu(u16::try_from(cpu).unwrap_or(u16::MAX));
                let held = timeline.holders(cpu, from, to);
                let busy = held.filter(|(_, _, who)| {
                    who.is_some_and(|who| timeline.task(who).own && !waits(&who))
                });
                busy.map(|(start, end, _)| end - start).sum()
            };
            let mut used: Vec<Ns> = (0..timeline.held.len()).map(used).collect();
            used.sort_unstable();
            let working: Ns = timeline.task(last).on_cpu_between(from, to);
            used.first().map_or(Ns::ZERO, |least| ((to - from) - *least).min(working))
        })
        .sum()
}
