//! The top-level call: recorded runs in, the report out.
//!
//! - In: traces, and runs without tracing.
//! - Out: a report; or one run in more detail, see [`one_run`].
//! - Must not know: how a stage works. Only their order is here.

mod charged;
mod one_run;

use crate::account::Attribution;
use crate::account::inside::Function;
use crate::facts::Facts;
use crate::facts::clean_run::CleanRun;
use crate::facts::{locks, overhead};
use crate::inspect::Inspection;
use crate::path::{NoProcess, Path, Subject};
use crate::pool::TracedRun;
use crate::sections::{
    checks, hazards, ledger, loops, origin, service, stages, top, totals, unnamed, work,
};
use crate::timeline::{Task, Timeline};
use crate::{cost, findings, pool};
use charged::{Charged, both_accounts};
use deadweight_report::report::{ExitInfo, Inside, Report, Runs, SCHEMA, SubjectInfo, TracedRuns};
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;
use deadweight_trace::{Exit, Trace};
use std::sync::OnceLock;

pub use one_run::{CallTotal, OneRun, PathSlice, one_run};

/// The method of dividing time. It grows by 1 with every change that moves numbers of programs that did not change: a
/// history of reports begins anew with it. CHANGELOG.md says what changed.
pub const METHOD: u32 = 3;

/// What is to be weighed.
#[derive(Copy, Clone, Debug, Default)]
pub struct Weighing<'a> {
    /// Traced runs of one command; at least one. Several are pooled.
    pub traces: &'a [Trace],
    /// Runs of the same command without tracing, if it could be repeated. With them the wall time
    /// is their median, and the traces give the shares.
    pub clean: &'a [CleanRun],
    /// `NAME` or `NAME:2`: the process whose wall time is divided instead of the command's.
    pub of: Option<&'a str>,
    /// A function: only what was spent under it is divided.
    pub inside: Option<&'a str>,
    /// Whether the report says why hot loops take their time.
    pub why: bool,
}

/// Why nothing could be weighed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeighError {
    /// Called without a trace.
    #[error("there is no recording to weigh")]
    NoTrace,
    /// The trace holds no run of the command.
    #[error("the recording is empty: the command never ran")]
    Empty,
    /// Its tasks ran together for more nanoseconds than 64 bits hold.
    #[error("the recording is not valid: its tasks ran for more than 584 years together")]
    TooLong,
    /// `--in` names a function that no stack shows.
    #[error("no sample shows a function called `{0}`; --top lists the functions that samples show")]
    NoFunction(String),
    /// `--of` names a process that did not run.
    #[error(transparent)]
    NoProcess(#[from] NoProcess),
}

/// Divides the wall time of what was recorded.
///
/// # Errors
/// If there is nothing to divide, see [`WeighError`].
pub fn weigh(weighing: &Weighing<'_>) -> Result<Report, WeighError> {
    let mut runs = Vec::with_capacity(weighing.traces.len());
    let mut without = None;
    for trace in weighing.traces {
        match prepared(trace, weighing.of).and_then(|run| traced_run(trace, run, weighing)) {
            Ok(run) => runs.push(run),
            // A function that rarely runs may have been missed in some of the runs.
            Err(error @ WeighError::NoFunction(_)) => without = Some(error),
            Err(error) => return Err(error),
        }
    }
    if runs.is_empty() {
        return Err(without.unwrap_or(WeighError::NoTrace));
    }
    Ok(pooled(runs, weighing))
}

/// The same of one recording, which is given away: most of its events are forgotten as soon as they are understood, and a
/// long recording takes less memory.
///
/// # Errors
/// As [`weigh`].
pub fn weigh_one(
    mut trace: Trace,
    of: Option<&str>,
    inside: Option<&str>,
    why: bool,
) -> Result<Report, WeighError> {
    let run = prepared(&trace, of)?;
    if !locks::needs_events(&trace.symbols) {
        trace.forget_events();
    }
    let weighing = Weighing { traces: std::slice::from_ref(&trace), clean: &[], of, inside, why };
    let run = traced_run(&trace, run, &weighing)?;
    Ok(pooled(vec![run], &weighing))
}

fn pooled(runs: Vec<TracedRun>, weighing: &Weighing<'_>) -> Report {
    let mut report = pool::pool(runs, weighing.clean, weighing.traces.len());
    if let Some(apart) = apart(&report.runs.traced) {
        let list = if apart.matters { &mut report.warnings } else { &mut report.remarks };
        list.push(apart.text);
    }
    report
}

/// The report of runs without tracing alone: how long they took, and no ledger.
#[must_use]
pub fn timed(command: Vec<String>, clean: &[CleanRun]) -> Report {
    let runs = Runs { clean: pool::clean_runs(clean), ..Runs::default() };
    let exit = clean.first().map_or_else(Exit::default, |run| run.exit);
    Report {
        schema: SCHEMA,
        command,
        exit: ExitInfo { code: exit.code, signal: exit.signal },
        wall_ns: runs.clean.wall_ns.median,
        net_ns: runs.clean.wall_ns.median,
        hazards: hazards::of_series(clean),
        runs,
        ..Report::default()
    }
}

/// Two counts of the same CPU time that differ by more than this share are reported.
const SAME: f64 = 0.01;
/// CPU time that the kernel charges to a woken task before it switches to it, or after it switched away:
/// some microseconds at most, 15 on a virtual machine whose host sets the samples' timer. More per switch
/// has another cause.
const PER_SWITCH: u64 = 25_000;

/// From this share on it matters, whatever the cause.
const FAR: f64 = 0.1;

/// A difference between two counts of the CPU time, in words.
struct Apart {
    text: String,
    matters: bool,
}

/// Where recording and kernel differ about the CPU time: by how much, and why.
fn apart(traced: &TracedRuns) -> Option<Apart> {
    let (recorded, counted) = (traced.on_cpu_ns, traced.rusage_ns);
    let difference = recorded.abs_diff(counted);
    if counted == 0 || Ns(difference).share_of(Ns(counted)) <= SAME {
        return None;
    }
    let (more, share) =
        (if recorded > counted { "more" } else { "less" }, percent(Ns(difference), Ns(counted)));
    let each = difference / traced.switches.max(1);
    let why = if recorded < counted && each <= PER_SWITCH {
        format!(
            "{} for each of {}: the kernel charges a task until after the switch, the recording until \
             the switch. This is harmless",
            time(Ns(each)),
            things(traced.switches, "switch")
        )
    } else {
        "time that a hypervisor took, processes that no parent waited for, and records that were lost \
         are in one of the two counts only"
            .to_owned()
    };
    let text = format!("the recording has {share} {more} CPU time than the kernel counted: {why}");
    Some(Apart { text, matters: Ns(difference).share_of(Ns(counted)) >= FAR })
}

/// The timeline of a trace, and the process whose wall time is divided.
fn prepared(trace: &Trace, of: Option<&str>) -> Result<(Timeline, Subject), WeighError> {
    if trace.is_empty() {
        return Err(WeighError::Empty);
    }
    let timeline = Timeline::build(trace);
    // Lives are known without a look at every span.
    let lived: Ns = timeline.tasks.iter().map(Task::life).sum();
    let on_cpu = || timeline.tasks.iter().map(|t| u128::from(t.on_cpu().0)).sum::<u128>();
    if lived == Ns::MAX && on_cpu() > u64::MAX.into() {
        return Err(WeighError::TooLong);
    }
    let subject = Subject::choose(trace, &timeline, of)?;
    Ok((timeline, subject))
}

/// The report of one traced run by itself. With clean runs beside it, it only gives shares.
fn traced_run(
    trace: &Trace,
    (timeline, mut subject): (Timeline, Subject),
    weighing: &Weighing<'_>,
) -> Result<TracedRun, WeighError> {
    let Weighing { clean, of, inside, .. } = *weighing;
    // A program that is run again and again has an end to reach.
    if !clean.is_empty() || weighing.traces.len() > 1 {
        subject.service = None;
    }
    let path = Path::walk(&timeline, &subject);
    let overhead = overhead::fitted(trace, &timeline, clean);
    let gathered = OnceLock::new();
    let gather =
        || Facts::gather(trace, &timeline, &path, overhead, clean, cost::account_of_sample);
    let second = || hazards::readings::two(&trace.symbols, &timeline, &path);
    let Charged { facts, wall, cpu, beside: readings } = both_accounts(&gathered, gather, second);
    let whole = (wall.net(), cpu.net());
    let (wall, cpu) = match inside {
        Some(name) => within(facts, name, [&wall, &cpu])?,
        None => (wall, cpu),
    };
    let command = of.map(|_| whole_command(trace, &timeline, weighing)).transpose()?;
    let (whole_wall, whole_cpu) = command.unwrap_or(whole);
    let part = (wall.net().share_of(whole_wall), cpu.net().share_of(whole_cpu));
    let stages = stages::stages(facts, of.is_some());
    let inspection = Inspection { facts, wall: &wall, cpu: &cpu };
    let findings = findings::inspect(&inspection);
    let mut warnings = [&trace.meta.warnings[..], &timeline.warnings].concat();
    warnings.extend(several(&subject, facts));
    warnings.extend(cost::held_back_answers(facts));
    warnings.extend(unnamed::warnings(facts, &wall, &findings));
    let exit = trace.meta.exit.unwrap_or_default();
    let report = Report {
        schema: SCHEMA,
        deadweight: trace.meta.recorder.clone(),
        method: METHOD,
        machine: origin::machine(&trace.meta),
        builds: origin::builds(facts),
        command: trace.meta.command.clone(),
        subject: subject_info(facts),
        exit: ExitInfo { code: exit.code, signal: exit.signal },
        runs: Runs { traced: traced(trace, &timeline, &subject), ..Runs::default() },
        recording: origin::recording(&trace.meta),
        inside: inside.map(|name| Inside {
            function: name.to_owned(),
            share: wall.total.share_of(whole.0),
            cpu_share: cpu.total.share_of(whole.1),
            ..Inside::default()
        }),
        service: service::service(facts, &cpu),
        part: None,
        counts: totals::totals(facts, &subject.own),
        allocations: None,
        wall_ns: wall.total.0,
        net_ns: wall.net().0,
        ledger: ledger::rows(facts, &wall),
        cpu_ledger: ledger::rows(facts, &cpu),
        cpu_ns: cpu.total.0,
        checks: checks::checks(facts, &wall, &findings),
        findings,
        withdrawn: Vec::new(),
        hazards: hazards::of_run(&inspection, &stages, of.is_some(), (!clean.is_empty(), readings)),
        top: top::functions(facts, &wall),
        work: work::by_function(facts, &wall),
        loops: weighing.why.then(|| loops::loops(facts, inside)),
        stages,
        warnings,
        remarks: timeline.remarks.clone(),
    };
    Ok(TracedRun { report, disturbed_ns: wall.disturbed().0, part })
}

/// The whole command's wall and CPU time without overhead, where one process of it is weighed: clean runs
/// measure the whole command.
fn whole_command(
    trace: &Trace,
    timeline: &Timeline,
    weighing: &Weighing<'_>,
) -> Result<(Ns, Ns), WeighError> {
    if weighing.clean.is_empty() {
        return Ok((Ns(1), Ns(1)));
    }
    let subject = Subject::choose(trace, timeline, None)?;
    let path = Path::walk(timeline, &subject);
    let overhead = overhead::fitted(trace, timeline, weighing.clean);
    let gathered = OnceLock::new();
    let clean = weighing.clean;
    let gather = || Facts::gather(trace, timeline, &path, overhead, clean, cost::account_of_sample);
    let Charged { wall, cpu, .. } = both_accounts(&gathered, gather, || ());
    Ok((wall.net(), cpu.net()))
}

/// The part of both that lies under the function called `name`.
fn within(
    facts: &Facts<'_>,
    name: &str,
    [wall, cpu]: [&Attribution; 2],
) -> Result<(Attribution, Attribution), WeighError> {
    let function = Function::named(facts.symbols(), name);
    let wall = wall.inside(facts.symbols(), &function);
    if wall.total == Ns::ZERO {
        return Err(WeighError::NoFunction(name.to_owned()));
    }
    Ok((wall, cpu.inside(facts.symbols(), &function)))
}

fn subject_info(facts: &Facts<'_>) -> SubjectInfo {
    let process = facts.processes.get(facts.subject());
    let symbols = facts.symbols();
    let image = process.image.and_then(|id| symbols.images.get(id.index()));
    SubjectInfo {
        name: process.name.clone(),
        pid: process.pid.0,
        image: process.path.clone(),
        language: process.language.clone(),
        optimised: image.and_then(|image| image.optimised),
        producer: image.map_or(String::new(), |image| symbols.name(image.producer).to_owned()),
    }
}

fn traced(trace: &Trace, timeline: &Timeline, subject: &Subject) -> TracedRuns {
    let own = || timeline.tasks.iter().enumerate().filter(|(i, _)| subject.own[*i]);
    let all = timeline.tasks.iter().filter(|t| t.own).map(Task::on_cpu_and_switches);
    let (on_cpu, switches) = all.fold((Ns::ZERO, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    TracedRuns {
        count: 1,
        wall_ns: trace.wall().0,
        records: timeline.records,
        lost: timeline.lost,
        samples: own().map(|(_, t)| u64::try_from(t.samples.len()).unwrap_or(0)).sum(),
        // The kernel counts for the whole command, for any subject.
        on_cpu_ns: on_cpu.0,
        switches,
        rusage_ns: trace.meta.rusage.map_or(0, |usage| (usage.user + usage.system).0),
        ..TracedRuns::default()
    }
}

/// The warning that several processes fit the wanted name, with the one that was taken.
fn several(subject: &Subject, facts: &Facts<'_>) -> Option<String> {
    if subject.candidates.len() < 2 {
        return None;
    }
    let name = facts.name(facts.subject());
    let listed: Vec<String> = subject
        .candidates
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let taken = if c.taken { ", taken" } else { "" };
            format!(
                "{name}:{} (lived {}, {} on CPU{taken})",
                i + 1,
                time(c.end - c.start),
                time(c.cpu)
            )
        })
        .collect();
    Some(format!("several processes fit: {}; choose with --of NAME:N", listed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::report::Report;

    fn weighed(text: &str) -> Report {
        let trace = Trace::from_text(text).unwrap();
        weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap()
    }

    const SLEEP_INTO_CAT: &str = "task 1 sh
             0 on
            10 fork 2
            20 fork 3
            30 off blocked wait4
           990 on woken-by 3
           995 exit
          1000 off dead
        task 2 sleep
            12 on
            20 off blocked clock_nanosleep
           900 on woken-by interrupt
           910 syscall exit_group
           911 exit
           920 off dead
        task 3 cat
            31 on
            40 off blocked read 0 : anon_pipe_read
           915 on woken-by 2 : try_to_wake_up < pipe_release < do_exit
           930 syscall exit_group
           931 exit
           991 off dead";

    /// Times of a foreign recording may be as long as a number.
    #[test]
    fn tasks_that_ran_for_centuries_are_refused() {
        let end = u64::MAX / 2 + 10;
        let tasks = format!(
            "task 1 a\n0 on\n1 fork 2\n2 fork 3\n{end} exit\n{end} off dead
             task 2 b\n3 on\n{end} exit\n{end} off dead
             task 3 c\n4 on\n{end} exit\n{end} off dead"
        );
        let trace = Trace::from_text(&tasks).unwrap();
        let weighed = weigh(&Weighing { traces: &[trace], ..Weighing::default() });
        assert!(matches!(weighed, Err(WeighError::TooLong)));
    }

    #[test]
    fn the_rows_add_up_to_the_wall_time() {
        let report = weighed(SLEEP_INTO_CAT);
        let rows: Vec<_> = report.ledger.iter().map(|r| (r.account.as_str(), r.ns)).collect();
        assert_eq!(report.wall_ns, 1000);
        assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), 1000);
        assert_eq!(rows[0], ("wait-sleep", 860), "{rows:?}");
    }

    #[test]
    fn clean_runs_give_the_wall_time_and_traces_the_shares() {
        let traces: Vec<Trace> =
            (0..3).map(|_| Trace::from_text(SLEEP_INTO_CAT).unwrap()).collect();
        let clean = [1999, 2003, 2001].map(|ns| CleanRun { wall: Ns(ns), ..CleanRun::default() });
        let report =
            weigh(&Weighing { traces: &traces, clean: &clean, ..Weighing::default() }).unwrap();
        assert_eq!(report.wall_ns, 2001);
        assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), 2001);
        assert_eq!(report.ledger[0].ns, 1721);
        assert_eq!((report.runs.clean.count, report.runs.traced.count), (3, 3));
    }

    #[test]
    fn clean_runs_count_for_one_process_by_its_share() {
        let traces = [Trace::from_text(SLEEP_INTO_CAT).unwrap()];
        let clean = [CleanRun { wall: Ns(2000), ..CleanRun::default() }];
        let of = Some("cat");
        let alone = weigh(&Weighing { traces: &traces, of, ..Weighing::default() }).unwrap();
        let beside =
            weigh(&Weighing { traces: &traces, clean: &clean, of, ..Weighing::default() }).unwrap();
        assert_eq!((alone.wall_ns, beside.wall_ns), (960, 2 * 960));
        assert_eq!(beside.ledger.iter().map(|r| r.ns).sum::<u64>(), 2 * 960);
    }

    #[test]
    fn the_time_under_a_function_is_divided_by_itself() {
        let text = "sample-period 1000
            task 1 app
                0 on
              100 sample q::parse <- main
             1000 sample memset @libc.so.6 <- q::parse <- main
             2000 sample main
             3000 syscall read 3 10 from read @libc.so.6 <- q::parse <- main
             4000 back
             5000 syscall write 1 10 from write @libc.so.6 <- main
             7000 back
             8000 sample main
             9000 exit
             9000 off dead";
        let trace = [Trace::from_text(text).unwrap()];
        let weighing = Weighing { traces: &trace, inside: Some("parse"), ..Weighing::default() };
        let report = weigh(&weighing).unwrap();
        let rows: Vec<_> = report.ledger.iter().map(|r| (r.account.as_str(), r.ns)).collect();
        // Two of four samples of 6 us, and one call of two.
        assert_eq!(rows, [("zeroing", 1500), ("net-work", 1500), ("system-calls", 1000)]);
        assert_eq!((report.wall_ns, report.cpu_ns), (4000, 4000));
        // A run in which it was not seen counts as one without it.
        let elsewhere = text.replace("q::parse", "q::other");
        let traces = [trace[0].clone(), Trace::from_text(&elsewhere).unwrap()];
        let clean = [CleanRun { wall: Ns(9000), ..CleanRun::default() }];
        let some = Weighing { traces: &traces, clean: &clean, ..weighing };
        assert_eq!(weigh(&some).unwrap().wall_ns, 2000);
        let missing = weigh(&Weighing { inside: Some("parser"), ..weighing });
        assert_eq!(missing, Err(WeighError::NoFunction("parser".into())));
    }

    #[test]
    fn two_counts_of_cpu_time_that_differ_are_said_with_the_reason() {
        let traced = |on_cpu_ns, switches| TracedRuns {
            on_cpu_ns,
            switches,
            rusage_ns: 1_000_000,
            ..TracedRuns::default()
        };
        assert!(apart(&traced(1_009_000, 9)).is_none());
        let switches = apart(&traced(940_000, 20)).unwrap();
        let said = &switches.text;
        assert!(said.contains("6 % less") && said.contains("3.00 µs for each"));
        let far = apart(&traced(2_000_000, 1)).unwrap();
        assert!(far.text.contains("no parent waited for"));
        assert!(far.matters && !switches.matters);
    }

    #[test]
    fn nothing_to_weigh_is_an_error() {
        let nothing = Weighing::default();
        assert_eq!(weigh(&nothing), Err(WeighError::NoTrace));
        let empty = [Trace::default()];
        assert_eq!(weigh(&Weighing { traces: &empty, ..nothing }), Err(WeighError::Empty));
        let trace = [Trace::from_text(SLEEP_INTO_CAT).unwrap()];
        let named = weigh(&Weighing { traces: &trace, of: Some("dog"), ..nothing });
        assert!(matches!(named, Err(WeighError::NoProcess(_))));
    }
}
