//! Tracing overhead of a task: per span, and fitted to runs without recording.
//!
//! The recorder calibrates a cost per event while the machine is idle; a program's real cost depends on its
//! caches and on the load of the machine. Where the same command also ran without recording, the kernel's
//! count of its CPU time is what must be left when the overhead is taken out. The calibrated costs are
//! scaled until that holds. `attribute` moves the time into its row.

use crate::facts::clean_run::CleanRun;
use crate::timeline::{Call, Run, Task, Timeline, Within};
use deadweight_report::stats::median::summarise;
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use deadweight_trace::{Overhead, Trace};

/// The clean runs together need this much CPU time: 100 ticks at 250 Hz. The kernel divides CPU time into user
/// and system by where the tick interrupted, so the division has a standard error of 5 percentage points.
const SPLIT: Ns = Ns(400_000_000);
/// A mode (user or kernel) with a smaller share of overhead is left as calibrated: runs differ by as much.
const NEGLIGIBLE: f64 = 0.05;
/// The scaled cost stays within these factors of the calibrated one.
const FACTOR: (f64, f64) = (0.25, 4.0);
/// If recorded and rusage CPU time differ by more than this share, they do not cover the same tasks.
const SAME_TASKS: f64 = 0.1;
/// Costs are limited to the length of their span, so fitting takes a few rounds.
const ROUNDS: usize = 3;

/// Overhead in an on-CPU span that is charged from its first nanosecond and contains `samples` samples.
pub(crate) fn in_span(
    timeline: &Timeline,
    cost: &Overhead,
    task: &Task,
    index: usize,
    samples: usize,
) -> Ns {
    let span = task.spans[index];
    let before = index.checked_sub(1).map(|i| task.spans[i]);
    let entering = match span.within {
        Within::Syscall(call) if timeline.calls[call.index()].start == span.start => {
            let call = &timeline.calls[call.index()];
            let birth = if timeline.starters.contains(&call.nr) { cost.birth } else { 0 };
            per_call(call, cost.syscall_kernel, cost.counted_kernel)
                + stack(call.site, cost)
                + birth
        }
        Within::Fault(fault) => {
            let first = before.is_none_or(|before| before.within != span.within);
            let site = timeline.faults[fault as usize].site;
            cost.fault_kernel + if first { stack(site, cost) } else { 0 }
        }
        Within::Exiting if before.is_none_or(|b| b.within != Within::Exiting) => cost.death,
        _ => 0,
    };
    let leaving = before.map_or(0, |b| match (b.run, b.within, span.within) {
        (Run::OnCpu(_), Within::Fault(_), _) => cost.fault_user,
        (Run::OnCpu(_), Within::Syscall(call), Within::User) => {
            let call = &timeline.calls[call.index()];
            let counted = if call.own_time_behind { cost.counted_user } else { 0 };
            per_call(call, cost.syscall_user, counted)
        }
        (Run::OnCpu(_), ..) => 0,
        _ => cost.switch,
    });
    let ahead = calls_ahead(timeline, task, index).map_or(0, |c| per_call(c, 0, cost.counted_user));
    Ns(entering + leaving + ahead) + sampling(cost, samples)
}

/// The overhead of taking the user stack at an event, if it was taken.
fn stack(site: StackId, cost: &Overhead) -> u64 {
    if site == StackId(0) { 0 } else { cost.site }
}

/// The counted calls whose own time this span is, if it precedes them.
fn calls_ahead<'t>(timeline: &'t Timeline, task: &Task, index: usize) -> Option<&'t Call> {
    let next = task.spans.get(index + 1)?;
    match (task.spans[index].within, next.within) {
        (Within::User, Within::Syscall(call)) => {
            Some(&timeline.calls[call.index()]).filter(|call| !call.own_time_behind)
        }
        _ => None,
    }
}

/// The overhead of one recorded call, or of calls that were counted.
fn per_call(call: &Call, recorded: u64, counted: u64) -> u64 {
    if call.counted == 0 { recorded } else { counted.saturating_mul(call.counted.into()) }
}

/// The overhead of so many samples.
pub(crate) fn sampling(cost: &Overhead, samples: usize) -> Ns {
    Ns(u64::try_from(samples).unwrap_or(u64::MAX).saturating_mul(cost.sample))
}

/// CPU time of the command's tasks in one mode, user or kernel.
#[derive(Copy, Clone, Debug, Default)]
struct Side {
    /// As recorded.
    gross: Ns,
    /// The overhead in it.
    overhead: Ns,
}

/// User mode, and kernel mode.
fn sides(timeline: &Timeline, cost: &Overhead) -> [Side; 2] {
    let mut sides = [Side::default(); 2];
    for task in timeline.tasks.iter().filter(|t| t.own) {
        let mut sampled = 0;
        for (index, span) in task.spans.iter().enumerate() {
            let end = task.span_end(index);
            let from = sampled;
            while task.samples.get(sampled).is_some_and(|s| s.at < end) {
                sampled += 1;
            }
            if !matches!(span.run, Run::OnCpu(_)) {
                continue;
            }
            let side = &mut sides[usize::from(span.within != Within::User)];
            let length = end - span.start;
            side.gross += length;
            side.overhead += in_span(timeline, cost, task, index, sampled - from).min(length);
        }
    }
    sides
}

/// The calibrated costs, scaled so that the rest is what the clean runs took.
pub(crate) fn fitted(trace: &Trace, timeline: &Timeline, clean: &[CleanRun]) -> Overhead {
    let mut cost = trace.meta.overhead;
    let Some(usage) = trace.meta.rusage.filter(|_| !clean.is_empty()) else { return cost };
    let counted = usage.user + usage.system;
    let recorded: Ns = (0..timeline.tasks.len())
        .filter(|i| timeline.tasks[*i].own)
        .map(|i| timeline.task(TaskId::at(i)).on_cpu())
        .sum();
    let apart = (recorded - counted) + (counted - recorded);
    if apart.share_of(counted) > SAME_TASKS {
        return cost;
    }
    let [user, system] = clean_times(clean);
    let split = clean.iter().map(|run| run.user + run.system).sum::<Ns>() >= SPLIT;
    let calibrated = if split { on_both_sides(&cost) } else { cost };
    cost = calibrated;
    for _ in 0..ROUNDS {
        let [own, kernel] = sides(timeline, &cost);
        let all =
            Side { gross: own.gross + kernel.gross, overhead: own.overhead + kernel.overhead };
        let both = factor(all, user + system);
        let [own, kernel] =
            if split { [factor(own, user), factor(kernel, system)] } else { [both; 2] };
        cost = Overhead {
            syscall_user: scaled(cost.syscall_user, own),
            syscall_kernel: scaled(cost.syscall_kernel, kernel),
            counted_user: scaled(cost.counted_user, own),
            counted_kernel: scaled(cost.counted_kernel, kernel),
            fault_user: scaled(cost.fault_user, own),
            fault_kernel: scaled(cost.fault_kernel, kernel),
            switch: scaled(cost.switch, both),
            sample: scaled(cost.sample, both),
            birth: scaled(cost.birth, both),
            death: scaled(cost.death, both),
            site: scaled(cost.site, kernel),
        };
    }
    bounded(cost, &calibrated)
}

/// The cost of a call or a fault, half of it in each mode. The instant at which a record's clock is read is
/// known to some ten ns only, which may be all that a counted call costs in one mode: as a measure to scale
/// by, the whole is better.
fn on_both_sides(cost: &Overhead) -> Overhead {
    let half = |user: u64, kernel: u64| user.saturating_add(kernel).div_ceil(2);
    let (syscall, counted, fault) = (
        half(cost.syscall_user, cost.syscall_kernel),
        half(cost.counted_user, cost.counted_kernel),
        half(cost.fault_user, cost.fault_kernel),
    );
    Overhead {
        syscall_user: syscall,
        syscall_kernel: syscall,
        counted_user: counted,
        counted_kernel: counted,
        fault_user: fault,
        fault_kernel: fault,
        ..*cost
    }
}

/// The time of a run in user and in kernel mode without recording.
fn clean_times(clean: &[CleanRun]) -> [Ns; 2] {
    let each: Vec<u64> = clean.iter().map(|run| (run.user + run.system).0).collect();
    let typical = summarise(&each).interval.median;
    let user: Ns = clean.iter().map(|run| run.user).sum();
    let all: u64 = each.iter().fold(0, |sum, ns| sum.saturating_add(*ns));
    let own = Ns(typical).scaled(user.0, all).min(Ns(typical));
    [own, Ns(typical) - own]
}

/// The factor by which the cost of a mode must grow for `left` to remain of it.
fn factor(side: Side, left: Ns) -> f64 {
    if side.overhead.share_of(side.gross) < NEGLIGIBLE {
        return 1.0;
    }
    (side.gross - left).share_of(side.overhead)
}

fn scaled(cost: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some µs")]
    let scaled = (cost as f64 * factor.clamp(0.0, 1e3)).min(1e9) as u64;
    scaled
}

/// Limits each part to a believable distance from `calibrated`.
fn bounded(cost: Overhead, calibrated: &Overhead) -> Overhead {
    let within = |cost: u64, of: u64| cost.clamp(scaled(of, FACTOR.0), scaled(of, FACTOR.1));
    Overhead {
        syscall_user: within(cost.syscall_user, calibrated.syscall_user),
        syscall_kernel: within(cost.syscall_kernel, calibrated.syscall_kernel),
        counted_user: within(cost.counted_user, calibrated.counted_user),
        counted_kernel: within(cost.counted_kernel, calibrated.counted_kernel),
        fault_user: within(cost.fault_user, calibrated.fault_user),
        fault_kernel: within(cost.fault_kernel, calibrated.fault_kernel),
        switch: within(cost.switch, calibrated.switch),
        sample: within(cost.sample, calibrated.sample),
        birth: within(cost.birth, calibrated.birth),
        death: within(cost.death, calibrated.death),
        site: within(cost.site, calibrated.site),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::Usage;

    /// A thousand calls: each 400 ns in the kernel and 600 ns of its own code, as recorded.
    fn recording() -> Trace {
        let calls: String = (0..1000_u64)
            .map(|i| format!("{} syscall getppid\n{} back 1\n", i * 1000 + 600, i * 1000 + 1000))
            .collect();
        let mut trace =
            Trace::from_text(&format!("task 1 a\n0 on\n{calls}1000000 exit\n1000000 off dead"))
                .unwrap();
        trace.meta.overhead =
            Overhead { syscall_user: 100, syscall_kernel: 200, ..Overhead::default() };
        trace.meta.rusage =
            Some(Usage { user: Ns(600_000), system: Ns(400_000), ..Usage::default() });
        trace
    }

    fn fit(user: u64, system: u64, runs: usize) -> (u64, u64) {
        let trace = recording();
        let run = CleanRun { user: Ns(user), system: Ns(system), ..CleanRun::default() };
        let cost = fitted(&trace, &Timeline::build(&trace), &vec![run; runs]);
        (cost.syscall_user, cost.syscall_kernel)
    }

    #[test]
    fn costs_are_scaled_until_they_leave_what_clean_runs_took() {
        // 1 ms was recorded, 0.7 ms is what calibration leaves: nothing to change.
        assert_eq!(fit(600_000, 100_000, 1), (100, 200));
        // It leaves too much, but too little ran to know in which mode.
        assert_eq!(fit(400_000, 150_000, 1), (150, 300));
    }

    #[test]
    fn with_ticks_enough_each_side_is_fitted_by_itself() {
        assert_eq!(fit(300_000, 300_000, 1000), (300, 100));
    }

    #[test]
    fn calls_that_were_counted_cost_where_their_own_time_was_put() {
        let cost = |sample: &str| {
            let text = format!(
                "task 1 a\n0 on\n0 calls 90 read 3 1 back 1 inside 60000 over 90000\n{sample}90000 off dead"
            );
            let mut trace = Trace::from_text(&text).unwrap();
            let cost = Overhead { counted_user: 100, counted_kernel: 10, ..Overhead::default() };
            trace.meta.overhead = cost;
            sides(&Timeline::build(&trace), &cost).map(|side| side.overhead.0)
        };
        assert_eq!(cost(""), [9000, 900], "ahead of them");
        assert_eq!(cost("0 sample kernel\n"), [9000, 900], "behind them");
    }

    #[test]
    fn the_call_that_starts_a_task_bears_what_its_birth_costs() {
        let cost = Overhead { birth: 700, ..Overhead::default() };
        let of = |call: &str| {
            let text = format!("task 1 a\n0 on\n100 syscall {call}\n5000 back 2\n9000 off dead");
            let timeline = Timeline::build(&Trace::from_text(&text).unwrap());
            sides(&timeline, &cost).map(|side| side.overhead.0)
        };
        assert_eq!(of("clone3"), [0, 700]);
        assert_eq!(of("getppid"), [0, 0]);
    }

    #[test]
    fn fits_are_bounded_and_need_clean_runs() {
        assert_eq!(fit(10, 10, 1000), (400, 800));
        assert_eq!(fit(0, 0, 0), (100, 200));
    }
}
