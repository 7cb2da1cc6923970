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
use deadweight_trace::syscall::PATH_NUMBER;
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
    let starting = cost.starting > 0 && is_starting(task, span.start);
    let early = |ns: u64| if starting { ns + ns * cost.starting / 1000 } else { ns };
    let entering = match span.within() {
        Within::Syscall(call) if timeline.calls[call.index()].start == span.start => {
            let call = &timeline.calls[call.index()];
            let birth = if timeline.starters.contains(&call.nr) { cost.birth } else { 0 };
            let own = per_call(call, cost.syscall_kernel, cost.counted_kernel);
            early(own + path(timeline, call, cost) + stack(call.site, cost)) + birth
        }
        Within::Fault(fault) => {
            let first = before.is_none_or(|before| before.within() != span.within());
            let site = timeline.faults[fault as usize].site;
            early(cost.fault_kernel + if first { stack(site, cost) } else { 0 })
        }
        Within::Exiting if before.is_none_or(|b| b.within() != Within::Exiting) => cost.death,
        _ => 0,
    };
    let leaving = before.map_or(0, |b| match (b.run(), b.within(), span.within()) {
        (Run::OnCpu(_), Within::Fault(_), _) => early(cost.fault_user),
        (Run::OnCpu(_), Within::Syscall(call), Within::User) => {
            let call = &timeline.calls[call.index()];
            let counted = if call.own_time_behind { cost.counted_user } else { 0 };
            early(per_call(call, cost.syscall_user, counted))
        }
        (Run::OnCpu(_), ..) => 0,
        _ => cost.switch,
    });
    let ahead = calls_ahead(timeline, task, index).map_or(0, |c| per_call(c, 0, cost.counted_user));
    Ns(entering + leaving + ahead + early(sampling(cost, samples).0))
}

/// Overhead of a task's events and samples in an interval. Fast if that is soon after span `near` of the task.
pub(crate) fn between(
    timeline: &Timeline,
    cost: &Overhead,
    (task, near): (TaskId, usize),
    interval: (Ns, Ns),
) -> Ns {
    let task = timeline.task(task);
    let spans = running(task, near, interval);
    spans.map(|(at, length, n)| in_span(timeline, cost, task, at, n).min(length)).sum()
}

/// A task's spans on a CPU that begin in an interval: the index, the length within it, and how many samples it has.
fn running(
    task: &Task,
    near: usize,
    (from, to): (Ns, Ns),
) -> impl Iterator<Item = (usize, Ns, usize)> {
    let reached = task.span_after(near, from);
    let first = reached + usize::from(task.spans.get(reached).is_some_and(|s| s.start < from));
    let mut sampled = task.samples.partition_point(|sample| sample.at < from);
    let spans = (first..task.spans.len()).take_while(move |at| task.spans[*at].start < to);
    spans.filter_map(move |at| {
        let (span, end) = (task.spans[at], task.span_end(at).min(to));
        let before = sampled;
        while task.samples.get(sampled).is_some_and(|sample| sample.at < end) {
            sampled += 1;
        }
        let length = end - span.start;
        matches!(span.run(), Run::OnCpu(_)).then_some((at, length, sampled - before))
    })
}

/// Whether this is between an exec and the beginning of `main`.
fn is_starting(task: &Task, at: Ns) -> bool {
    let execs = task.execs.partition_point(|(exec, _)| *exec <= at);
    let main = task.mains.get(task.mains.partition_point(|main| *main <= at));
    let next = task.execs.get(execs);
    execs > 0 && main.is_some_and(|main| next.is_none_or(|(next, _)| main < next))
}

/// The overhead of reading a call's path, if it was read.
fn path(timeline: &Timeline, call: &Call, cost: &Overhead) -> u64 {
    /// In place of a folder's descriptor: the current folder (`AT_FDCWD`).
    const CURRENT: u32 = (-100_i32).cast_unsigned();
    let Some(&Some(position)) = timeline.paths.get(usize::from(call.nr)) else { return 0 };
    let args = timeline.args(call);
    let number = args[usize::from(position)];
    if call.counted > 0 || number < PATH_NUMBER {
        return 0;
    }
    // An empty path is read, and not followed.
    if number == PATH_NUMBER {
        return cost.path * 2 / 5;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a descriptor is an int")]
    let below = position > 0 && args[0] as u32 != CURRENT;
    cost.path + if below { cost.folder } else { 0 }
}

/// The overhead of taking the user stack at an event, if it was taken.
fn stack(site: StackId, cost: &Overhead) -> u64 {
    if site == StackId(0) { 0 } else { cost.site }
}

/// The counted calls whose own time this span is, if it precedes them.
fn calls_ahead<'t>(timeline: &'t Timeline, task: &Task, index: usize) -> Option<&'t Call> {
    let next = task.spans.get(index + 1)?;
    match (task.spans[index].within(), next.within()) {
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
        for (index, length, samples) in running(task, 0, (Ns::ZERO, Ns(u64::MAX))) {
            let side = &mut sides[usize::from(task.spans[index].within() != Within::User)];
            side.gross += length;
            side.overhead += in_span(timeline, cost, task, index, samples).min(length);
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
            path: scaled(cost.path, kernel),
            folder: scaled(cost.folder, kernel),
            ..cost
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
        path: within(cost.path, calibrated.path),
        folder: within(cost.folder, calibrated.folder),
        starting: cost.starting,
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

    /// The overhead in the kernel of one such line and its end.
    fn in_kernel(text: &str, cost: Overhead) -> u64 {
        let timeline = Timeline::build(&Trace::from_text(text).unwrap());
        sides(&timeline, &cost)[1].overhead.0
    }

    #[test]
    fn a_call_whose_path_was_read_costs_more_and_one_below_a_folder_most() {
        let of = |call: &str| {
            let cost = Overhead { path: 500, folder: 300, ..Overhead::default() };
            let text = format!("task 1 a\n0 on\n100 syscall {call}\n5000 back 3\n9000 off dead");
            in_kernel(&text, cost)
        };
        assert_eq!(of("openat 4294967196 0x8000000000001234 0"), 500);
        assert_eq!(of("openat 3 0x8000000000001234 0"), 800);
        assert_eq!(of("access 0x8000000000001234 4"), 500);
        assert_eq!(of("newfstatat 3 0x8000000000000000 4096"), 200, "an empty path");
        assert_eq!(of("openat 3 0x7ffe12345678 0"), 0, "it was not read");
        assert_eq!(of("read 3 0x8000000000001234"), 0);
    }

    #[test]
    fn events_cost_more_between_an_exec_and_main() {
        let cost = Overhead { fault_kernel: 400, starting: 500, ..Overhead::default() };
        let of = |at: u64, main: &str| {
            let text = format!(
                "task 1 a\n0 on\n10000 exec /bin/a\n{main}{at} fault 4096 by f (a.c:1)\n{} fault-end\n90000 off dead",
                at + 2000
            );
            let mut lines: Vec<&str> = text.lines().skip(1).collect();
            lines.sort_by_key(|line| line.split(' ').next().and_then(|at| at.parse::<u64>().ok()));
            in_kernel(&format!("task 1 a\n{}", lines.join("\n")), cost)
        };
        let main = "50000 main\n";
        assert_eq!([of(5000, main), of(20_000, main), of(60_000, main)], [400, 600, 400]);
        assert_eq!(of(20_000, ""), 400, "where it ends is not known");
        let again = "12000 main\n50000 exec /bin/b\n60000 main\n";
        assert_eq!([of(20_000, again), of(55_000, again)], [400, 600]);
    }

    #[test]
    fn fits_are_bounded_and_need_clean_runs() {
        assert_eq!(fit(10, 10, 1000), (400, 800));
        assert_eq!(fit(0, 0, 0), (100, 200));
    }
}
