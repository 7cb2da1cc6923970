//! The processes of a pipeline, each with its own life time, CPU time and waits.
//!
//! Stages overlap: their times never add up to the wall time, which is the ledger's.

use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Block, Run, Task, WokenBy};
use deadweight_report::report::Stage;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// More children than this are a loop, not a pipeline.
const STAGES: usize = 12;

/// The programs that the command started itself, each as a stage.
pub(crate) fn stages(facts: &Facts<'_>, chosen: bool) -> Vec<Stage> {
    members(facts, chosen).into_iter().map(|id| stage(facts, id)).collect()
}

/// The programs that the command started itself, in order; none if it started at most one. With `of` it is
/// the program and the processes that it waited for.
pub(crate) fn members(facts: &Facts<'_>, chosen: bool) -> Vec<ProcessId> {
    let subject = facts.subject();
    let parent = if chosen { facts.processes.get(subject).parent } else { Some(subject) };
    let children: Vec<ProcessId> = facts
        .processes
        .ids()
        .filter(|id| {
            let process = facts.processes.get(*id);
            process.parent.is_some() && process.parent == parent && process.executed()
        })
        .collect();
    let together = overlap(facts, &children) && are_connected(facts, &children);
    let together = together || is_pipeline(facts);
    if !(2..=STAGES).contains(&children.len()) || !together {
        return Vec::new();
    }
    children
}

/// So many processes that a reader started itself are helpers, not its producer.
const HELPERS: usize = 3;

/// The process that delivered most of what a process waited for in pipes, and how long it waited for all.
pub(crate) fn fed(facts: &Facts<'_>, id: ProcessId) -> Option<(Ns, ProcessId)> {
    let mut producers: BTreeMap<ProcessId, Ns> = BTreeMap::new();
    for block in facts.waits_of(id).filter(|block| block.waits_for == WaitsFor::PipeData) {
        if !is_for_start(facts, block)
            && let Some(producer) = facts.peer(block)
        {
            *producers.entry(producer).or_default() += block.end - block.start;
        }
    }
    // A script's own helpers, started one after the other (`$(... | cut ...)`), are its work.
    if producers.len() >= HELPERS {
        let own = facts.processes.below(&[id]);
        let is_own = |producer: &ProcessId| own.binary_search(producer).is_ok();
        if producers.keys().filter(|producer| is_own(producer)).count() >= HELPERS {
            producers.retain(|producer, _| !is_own(producer));
        }
    }
    let waited = producers.values().copied().sum();
    let most = producers.into_iter().max_by_key(|(_, ns)| *ns);
    most.map(|(producer, _)| (waited, producer))
}

/// Whether a wait for data ended without any as its writer became a program: such a pipe says whether the
/// exec failed.
fn is_for_start(facts: &Facts<'_>, block: &Block) -> bool {
    let WokenBy::Task(writer) = block.woken_by else { return false };
    let got = block.call.and_then(|call| facts.timeline.calls[call.index()].ret());
    got == Some(0) && facts.processes.get(facts.processes.of(writer)).starting(block.end)
}

/// Whether the command is a shell script with a pipe in it: on a busy machine its first stage may end
/// before the next one is born.
fn is_pipeline(facts: &Facts<'_>) -> bool {
    let [_, flag, script] = facts.trace.meta.command.as_slice() else { return false };
    flag == "-c" && script.replace("||", "").contains('|')
}

/// Whether one of the processes waited for another of them at a pipe. Helpers of a program are no stages.
fn are_connected(facts: &Facts<'_>, processes: &[ProcessId]) -> bool {
    processes.iter().any(|id| {
        let of_pipes = |block: &&Block| {
            matches!(block.waits_for, WaitsFor::PipeData | WaitsFor::PipeRoom)
                && !is_for_start(facts, block)
        };
        let peers = facts.waits_of(*id).filter(of_pipes).filter_map(|block| facts.peer(block));
        peers.into_iter().any(|peer| peer != *id && processes.contains(&peer))
    })
}

/// Whether any two of the processes lived at the same time.
fn overlap(facts: &Facts<'_>, processes: &[ProcessId]) -> bool {
    processes.windows(2).any(|two| {
        let [a, b] = [facts.processes.get(two[0]), facts.processes.get(two[1])];
        a.birth.max(b.birth) < a.end.min(b.end)
    })
}

/// How long a task waited for input and to get rid of output; each peer, too, with its part.
fn waits_of(facts: &Facts<'_>, task: &Task, peers: &mut BTreeMap<ProcessId, Ns>) -> (Ns, Ns) {
    let (mut input, mut output) = (Ns::ZERO, Ns::ZERO);
    for span in &task.spans {
        let Run::Blocked(block) = span.run() else { continue };
        let block = &facts.timeline.blocks[block as usize];
        let length = block.end - block.start;
        let timer = block.woken_by == WokenBy::Interrupt(Interrupt::Timer);
        match block.waits_for {
            WaitsFor::PipeData if is_for_start(facts, block) => continue,
            WaitsFor::PipeData | WaitsFor::Terminal => input += length,
            WaitsFor::SocketData | WaitsFor::Poll if !timer => input += length,
            WaitsFor::PipeRoom | WaitsFor::SocketRoom => {
                output += length;
                continue;
            }
            _ => continue,
        }
        if let Some(peer) = facts.peer(block) {
            *peers.entry(peer).or_default() += length;
        }
    }
    (input, output)
}

fn stage(facts: &Facts<'_>, id: ProcessId) -> Stage {
    let process = facts.processes.get(id);
    let first_exec = process
        .tasks
        .iter()
        .flat_map(|t| facts.timeline.task(*t).execs.iter().map(|(at, _)| *at))
        .min();
    let from = first_exec.unwrap_or(process.birth);
    let mut cpu = Ns::ZERO;
    let mut peers: BTreeMap<ProcessId, Ns> = BTreeMap::new();
    // Threads wait at the same time: those of the one that waited longest.
    let (mut input, mut output) = (Ns::ZERO, Ns::ZERO);
    for task in process.tasks.iter().map(|t| facts.timeline.task(*t)) {
        cpu += task.on_cpu_between(from, process.end);
        let waits = waits_of(facts, task, &mut peers);
        (input, output) = (input.max(waits.0), output.max(waits.1));
    }
    let waited_for = peers.into_iter().max_by_key(|(_, ns)| *ns).map(|(p, _)| facts.name(p));
    Stage {
        name: facts.name(id),
        alive_ns: (process.end - from).0,
        cpu_ns: cpu.0,
        input_wait_ns: input.0,
        waited_for: waited_for.unwrap_or_default(),
        output_wait_ns: output.0,
    }
}

#[cfg(test)]
mod tests {
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;

    /// Two children, the first dead before the second is born.
    const ONE_AFTER_THE_OTHER: &str = "task 1 sh
             0 on
            10 fork 2
            20 off blocked wait4
            60 on woken-by 2
            70 fork 3
            75 off blocked wait4
           105 on woken-by 3
           110 exit
           120 off dead
        task 2 a
            21 on
            25 exec /a
            30 syscall exit_group
            31 exit
            60 off dead
        task 3 b
            76 on
            78 exec /b
            90 syscall exit_group
            91 exit
           105 off dead";

    fn stages(script: &str) -> Vec<String> {
        let mut trace = Trace::from_text(ONE_AFTER_THE_OTHER).unwrap();
        trace.meta.command = ["/bin/sh", "-c", script].map(String::from).into();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        report.stages.into_iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn a_pipeline_has_stages_even_if_one_was_over_before_the_next() {
        assert_eq!(stages("a | b").len(), 2);
    }

    /// Two children at the same time; the second one waits in its own read, for what ends the wait `by`.
    fn beside(by: &str) -> usize {
        let trace = Trace::from_text(&format!(
            "task 1 app\n0 on\n5 exec /app\n10 fork 2\n12 fork 3\n20 off blocked wait4\n400 on woken-by 3\n410 exit\n420 off dead\n\
             task 2 a\n15 on\n18 exec /a\n200 exit\n300 off dead\n\
             task 3 b\n16 on\n19 exec /b\n50 off blocked read 0 : anon_pipe_read\n150 on woken-by {by}\n380 exit\n390 off dead"
        ))
        .unwrap();
        weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap().stages.len()
    }

    #[test]
    fn processes_that_feed_each_other_are_stages_and_helpers_of_one_program_are_not() {
        assert_eq!((beside("2 a"), beside("1 app")), (2, 0));
    }

    #[test]
    fn sequential_commands_are_no_stages() {
        assert_eq!(stages("a; b"), [""; 0]);
        assert_eq!(stages("a || b"), [""; 0]);
    }
}
