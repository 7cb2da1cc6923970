//! Hazards: reasons why the measurement itself misleads, each with advice.
//!
//! Costs of the program are findings, not hazards.

mod disturbance;
pub(crate) mod readings;
mod series;

use crate::account::{AccountId, Attribution, Detail, OBSERVER};
use crate::cost;
use crate::facts::Facts;
use crate::facts::processes::{Process, ProcessId};
use crate::inspect::Inspection;
use crate::sections::stages;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::{Hazard, Stage};
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::Meta;
use deadweight_trace::units::Ns;
pub(crate) use series::of_series;

/// A program that waits this share of the wall time for input is timed with its producer.
const PRODUCER: f64 = 0.2;
/// A wrapper was started for the process that has this share of the CPU time: nothing else does work.
const DOMINATES: f64 = 0.9;
/// A run below this is mostly start-up and chance.
const SHORT: Ns = Ns(10_000_000);
/// Samples that a share needs to be worth printing: ± 10 points at 100.
const SAMPLES: u64 = 100;
/// Overhead above this share distorts the shares.
const HEAVY: f64 = 0.3;

/// The hazards of one traced run.
pub(crate) fn of_run(
    inspection: &Inspection<'_, '_>,
    stages: &[Stage],
    chosen: bool,
    (clean, two_readings): (bool, Option<Hazard>),
) -> Vec<Hazard> {
    let Inspection { facts, wall, .. } = *inspection;
    let mut found = Vec::new();
    found.extend(cut(facts));
    found.extend(producer(facts, wall, chosen));
    // Stages are shown each with its own clock: it is then obvious that the shell only starts them.
    if !chosen && stages.is_empty() {
        found.extend(wrapper(facts));
    }
    if !clean {
        found.extend(too_short(facts, wall));
        found.extend(heavy(wall, &facts.trace.meta));
        found.extend(contended(inspection));
    }
    found.extend(disturbance::disturbed(facts, wall).or_else(|| disturbance::crowded(facts, wall)));
    found.extend(disturbance::throttled(facts, wall));
    found.extend(two_readings);
    found.extend(unoptimised(facts));
    // When a recording was cut off, all processes were still alive.
    if !facts.trace.meta.attached && facts.trace.meta.complete {
        found.extend(survivors(facts));
    }
    found
}

fn hazard(id: &str, text: String) -> Hazard {
    Hazard { id: id.to_owned(), text }
}

/// The recorder was killed, or the file was cut: only the missing end of the trace shows it.
fn cut(facts: &Facts<'_>) -> Option<Hazard> {
    let meta = &facts.trace.meta;
    (!meta.complete).then(|| {
        let text = format!(
            "the recording ends {} after its start, before the program ended: deadweight was killed, or \
             the file was cut. The rest of the run, and how the program ended, is not known.",
            time(meta.end - meta.start)
        );
        hazard("breaks-off", text)
    })
}

fn producer(facts: &Facts<'_>, wall: &Attribution, chosen: bool) -> Option<Hazard> {
    let subject = facts.subject();
    let account = AccountId::of_class("wait-input");
    // Only bytes of a pipe can be had from a file instead. A peer at a socket gets questions, too.
    let piped = wall.of_process(account, subject).filter_map(|e| match e.detail {
        Detail::Waits(WaitsFor::PipeData, Some(peer)) => Some((e.ns, peer)),
        _ => None,
    });
    if let Some((ns, producer)) = piped.max()
        && ns.share_of(wall.net()) >= PRODUCER
        && !cost::is_server(facts, subject)
        && !facts.call_groups.turns.are_between(subject, producer)
        && stages::fed(facts, subject).is_some()
    {
        let [reader, producer] = [facts.name(subject), facts.name(producer)];
        return Some(hazard("timed-the-producer", producer_text(&reader, &producer, ns)));
    }
    if facts.trace.meta.attached {
        return None;
    }
    let whole = facts.path.subject.end - facts.path.subject.start;
    let (reader, (ns, producer)) = stages::members(facts, chosen)
        .into_iter()
        .filter(|id| !cost::is_server(facts, *id))
        .filter_map(|id| Some((id, stages::fed(facts, id)?)))
        .filter(|(id, (_, producer))| !facts.call_groups.turns.are_between(*id, *producer))
        .find(|(_, (ns, _))| ns.share_of(whole) >= PRODUCER)?;
    let [reader, producer] = [facts.name(reader), facts.name(producer)];
    Some(hazard("timed-the-producer", producer_text(&reader, &producer, ns)))
}

fn producer_text(reader: &str, producer: &str, ns: Ns) -> String {
    format!(
        "{reader} waited {} for input from {producer}, and a timer inside {reader} counts that as its \
         own time. Write the input to a file first, and let {reader} read the file.",
        time(ns)
    )
}

fn wrapper(facts: &Facts<'_>) -> Option<Hazard> {
    let subject = facts.subject();
    let outer = facts.processes.get(subject);
    if !outer.is_launcher() {
        return None;
    }
    // Its own start says nothing about what it is for.
    let cpu = |id: ProcessId| -> Ns {
        let from = if id == subject { outer.began() } else { Ns::ZERO };
        let tasks = facts.processes.get(id).tasks.iter().map(|t| facts.timeline.task(*t));
        tasks.map(|task| task.on_cpu_between(from, Ns::MAX)).sum()
    };
    let own: Vec<(Ns, ProcessId)> = facts
        .processes
        .ids()
        .filter(|id| facts.processes.get(*id).own)
        .map(|id| (cpu(id), id))
        .collect();
    let all: Ns = own.iter().map(|(ns, _)| *ns).sum();
    let (most, inner) = own.iter().max()?;
    let inner_process = facts.processes.get(*inner);
    let wraps = *inner != subject && inner_process.executed() && !is_part(outer, inner_process);
    if !wraps || most.share_of(all) < DOMINATES {
        return None;
    }
    let [outer, name] = [facts.name(subject), facts.name(*inner)];
    let wall = facts.path.subject.end - facts.path.subject.start;
    let life = inner_process.end - inner_process.birth;
    Some(hazard(
        "timed-a-wrapper",
        format!(
            "{outer} only starts {name}, which lived {} of the {} and used {} of the CPU time. \
             Use --of {name} for its own ledger.",
            time(life),
            time(wall),
            percent(*most, all)
        ),
    ))
}

/// Whether a program is a part of the one that starts it, as a compiler's passes are: the same binary, or
/// one that lies where no user starts programs.
fn is_part(outer: &Process, inner: &Process) -> bool {
    const PRIVATE: [&str; 4] = ["lib", "lib32", "lib64", "libexec"];
    let mut folders = inner.path.rsplit('/').skip(1);
    inner.path == outer.path || folders.any(|folder| PRIVATE.contains(&folder))
}

fn too_short(facts: &Facts<'_>, wall: &Attribution) -> Option<Hazard> {
    let samples: u64 =
        wall.user_time().flat_map(|e| e.samples.values()).map(|weight| weight.count).sum();
    let user = wall.user_time().map(|e| e.ns).sum::<Ns>().share_of(wall.total);
    let few = facts.trace.meta.sample_period > 0 && user > 0.2 && samples < SAMPLES;
    if wall.total >= SHORT && !few {
        return None;
    }
    if facts.trace.meta.attached {
        // Threads that have not stopped yet have no samples, however long it takes.
        let unseen = facts.trace.meta.unseen > Ns::ZERO;
        return (!unseen).then(|| {
            let text = format!(
                "{} of its own code: stay attached for longer (--for).",
                things(samples, "sample")
            );
            hazard("too-short-to-time", text)
        });
    }
    let runs = (SAMPLES / samples.max(5)).clamp(10, 50);
    Some(hazard(
        "too-short-to-time",
        format!(
            "One run of {} is too short for precise numbers. If the command may be repeated: \
             -r {runs}.",
            time(wall.total)
        ),
    ))
}

fn heavy(wall: &Attribution, meta: &Meta) -> Option<Hazard> {
    let overhead = wall.of(OBSERVER);
    let way_out = if meta.attached {
        "The slowed program does less than it would without recording."
    } else if meta.records_faults() {
        "With -r 10 the wall time comes from runs without recording."
    } else {
        "`deadweight -r 10 -- COMMAND` takes the wall time from runs without recording."
    };
    let known = if meta.records_faults() { "by calibration" } else { "by samples in the kernel" };
    (overhead.share_of(wall.total) >= HEAVY).then(|| {
        hazard(
            "traced-heavily",
            format!(
                "Recording took {} of this run, {known}: see the row tracing. {way_out}",
                percent(overhead, wall.total)
            ),
        )
    })
}

/// Threads that fight for a lock fight less while recording slows them.
fn contended(inspection: &Inspection<'_, '_>) -> Option<Hazard> {
    cost::is_longer_unrecorded(inspection).then(|| {
        let attached = inspection.facts.trace.meta.attached;
        let way_out = if attached { "" } else { " -r 10 measures that." };
        let text = format!(
            "Threads fight for a lock, and recording slows them between their calls: without it they fight more, and \
             the same work can take several times as long.{way_out}"
        );
        hazard(Hazard::LESS_CONTENDED, text)
    })
}

fn unoptimised(facts: &Facts<'_>) -> Option<Hazard> {
    let process = facts.processes.get(facts.subject());
    facts.build(process.image?)?.unoptimised.then(|| {
        let text = format!(
            "{} was built without optimisation: where its time goes says little about a release \
             build. Build with optimisation first.",
            process.name
        );
        hazard("unoptimised", text)
    })
}

/// Own processes that outlive the subject.
fn survivors(facts: &Facts<'_>) -> Option<Hazard> {
    let end = facts.path.subject.end;
    let alive = facts.processes.all.iter().find(|p| {
        let tasks = p.tasks.iter().map(|t| facts.timeline.task(*t));
        p.own
            && tasks.clone().all(|t| !t.died)
            && p.end >= end
            && p.birth < end
            && p.pid != facts.path.subject.process
    })?;
    Some(hazard(
        "still-running",
        format!(
            "{} was still running when the command ended: what it does later is not in the \
             ledger.",
            alive.name
        ),
    ))
}

#[cfg(test)]
mod tests {
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;

    /// The hazards of a text trace that `sh -c 'a | b'` left.
    fn hazards(text: &str) -> String {
        let mut trace = Trace::from_text(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
        trace.meta.command = ["/bin/sh", "-c", "a | b"].map(String::from).into();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        report
            .hazards
            .into_iter()
            .map(|hazard| format!("{}: {}\n", hazard.id, hazard.text))
            .collect()
    }

    /// A pipeline: `b` waits from `from` to `to` until `call` of `a` ends the wait.
    fn pipeline(head: &str, from: u64, to: u64, call: &str) -> String {
        format!(
            "{head}cpus 2
            task 1 sh
             0 cpu0 on
             1 syscall pipe2 0 0
             2 back 0
             4 fork 2
             6 fork 3
             8 off blocked wait4
         20000 cpu0 on woken-by 3
         20010 exit
         20020 off dead
            task 2 a
            10 cpu0 on
            15 exec /bin/a
            {at} syscall {call}
            {back} back 1
         18000 exit
         18010 off dead
            task 3 b
            12 cpu1 on
            15 exec /bin/b
            {from} off blocked read 3 : anon_pipe_read
            {to} cpu1 on woken-by 2
            {read} back 1
         19000 exit
         20000 off dead",
            at = to - 5,
            back = to + 5,
            read = to + 20,
        )
    }

    #[test]
    fn a_slow_producer_in_a_pipe_is_found() {
        let said = hazards(&pipeline("", 100, 15_000, "write 4 1"));
        assert!(said.contains("timed-the-producer: b waited 14.9 µs for input from a"), "{said}");
    }

    /// A pipeline whose reader waits for `helpers` processes that it starts one after the other.
    fn substitution(helpers: u64) -> String {
        let step = 15_000 / helpers;
        let (mut reads, mut children) = (String::new(), String::new());
        for i in 0..helpers {
            let (at, child) = (1_000 + i * step, 10 + i);
            let [born, exec, asks, writes, wakes, wrote] =
                [10, 15, 20, step - 110, step - 100, step - 90].map(|more| at + more);
            reads += &format!(
                "{born} fork {child}\n{asks} off blocked read 3 : anon_pipe_read
                 {wakes} cpu1 on woken-by {child}\n{wrote} back 1\n"
            );
            children += &format!(
                "task {child} cut\n{born} cpu0 on\n{exec} exec /bin/cut
                 {writes} syscall write 1 1\n{wrote} back 1\n{} exit\n{} off dead\n",
                wrote + 1,
                wrote + 2
            );
        }
        let text = pipeline("", 100, 900, "write 4 1").replace("18000 exit", "950 exit");
        text.replace("18010 off dead", "960 off dead")
            .replace("19000 exit", &format!("{reads}19000 exit"))
            + "\n"
            + &children
    }

    #[test]
    fn a_script_that_reads_many_helpers_is_refused_and_two_long_ones_are_found() {
        let said = hazards(&substitution(2));
        assert!(said.contains("timed-the-producer: b waited"), "{said}");
        let said = hazards(&substitution(10));
        assert!(!said.contains("timed-the-producer"), "{said}");
    }

    /// The same, but `a` closes the pipe as it becomes a program.
    fn start() -> String {
        pipeline("", 100, 15_000, "write 4 1")
            .replace("15 exec /bin/a", "15 sample work")
            .replace("syscall write 4 1", "exec /bin/a")
            .replace("15005 back 1", "15005 main")
            .replace("15020 back 1", "15020 back 0")
    }

    #[test]
    fn short_waits_starts_and_joined_programs_are_refused() {
        for text in [
            pipeline("", 100, 900, "write 4 1"),
            start(),
            pipeline("attached\n", 100, 15_000, "write 4 1"),
        ] {
            let said = hazards(&text);
            assert!(!said.contains("timed-the-producer"), "{said}");
        }
    }

    #[test]
    fn a_joined_program_cannot_be_repeated() {
        let joined = |unseen: u64, end: u64| {
            let head = format!("sample-period 1000\nattached\nunseen {unseen}\ntask 1 app\n");
            hazards(&format!(
                "{head}0 exec /bin/app\n0 on\n500 sample work\n{end} off blocked read 3"
            ))
        };
        let said = joined(0, 20_000_000);
        assert!(
            said.contains("1 sample of its own code: stay attached for longer (--for)."),
            "{said}"
        );
        assert_eq!(joined(5_000_000, 20_000_000), "", "it would have none then, too");
    }

    /// A shell that works until `own` and then waits for a program that works until `end`.
    fn script(own: u64, program: &str) -> String {
        let name = program.rsplit('/').next().unwrap_or(program);
        format!(
            "task 1 sh
             0 on
             5 exec /bin/sh
            10 main
            {own} fork 2
            {} off blocked wait4
        100000 on woken-by 2
        100010 exit
        100020 off dead
            task 2 sh
            {} on
            {} comm {name}
            {} exec {program}
         99990 exit
        100000 off dead",
            own + 10,
            own + 20,
            own + 30,
            own + 30,
        )
    }

    #[test]
    fn a_wrapper_is_found() {
        let said = hazards(&script(100, "/usr/bin/prog"));
        assert!(said.contains("timed-a-wrapper: sh only starts prog"), "{said}");
    }

    #[test]
    fn a_program_that_works_itself_or_starts_a_part_of_it_is_refused() {
        for text in [script(35_000, "/usr/bin/prog"), script(100, "/usr/lib/gcc/12/cc1")] {
            let said = hazards(&text);
            assert!(!said.contains("timed-a-wrapper"), "{said}");
        }
    }
}
