//! The words of a proof: what was left out, what else changed, and what is still paid.
//!
//! - In: a means, a class, pairs of runs.
//! - Out: parts of a proof's one line.
//! - Must not know: whether a saving was shown.

use super::{CHECKS, Timed};
use deadweight_report::report::Means;
use deadweight_report::stats::median::median_of;

/// CPU time and memory that change by less than this are not worth a word.
const CHANGED: f64 = 0.1;

pub(super) fn leaving_out(means: Option<Means>) -> &'static str {
    match means {
        Some(Means::PatchedCopy) => "removing",
        Some(Means::SkippedCalls) => "skipping",
        Some(Means::Twice) => "doing twice",
        _ => "leaving out",
    }
}

/// What else the runs without it used: CPU time and memory, where they changed by more than a tenth.
pub(super) fn also(pairs: &[(Timed, Timed)]) -> Vec<String> {
    let median = |of: &dyn Fn(&(Timed, Timed)) -> u64| -> f64 {
        median_of(&pairs.iter().map(|pair| of(pair) as f64).collect::<Vec<_>>())
    };
    let change = |what: &str, before: f64, after: f64| {
        let grown = after / before.max(1.0) - 1.0;
        let worth = grown.abs() >= CHANGED && before > 0.0;
        worth.then(|| match grown >= 1.0 {
            true => format!("{what} ×{:.1}", grown + 1.0),
            false => format!(
                "{what} {}{:.0} %",
                if grown < 0.0 { "−" } else { "+" },
                grown.abs() * 100.0
            ),
        })
    };
    let wall = [median(&|p| p.0.wall.0), median(&|p| p.1.wall.0)];
    let cpu = [median(&|p| p.0.cpu.0), median(&|p| p.1.cpu.0)];
    // CPU time that follows the wall time says nothing new.
    let moved = |[before, after]: [f64; 2]| after - before;
    let matters = (moved(cpu) - moved(wall)).abs() >= CHANGED * wall[0];
    let cpu = matters.then(|| change("CPU time", cpu[0], cpu[1])).flatten();
    let memory = change("memory", median(&|p| p.0.max_rss), median(&|p| p.1.max_rss));
    cpu.into_iter().chain(memory).collect()
}

pub(super) fn besides(also: &[String]) -> String {
    match also.is_empty() {
        true => String::new(),
        false => format!(" ({})", also.join(", ")),
    }
}

/// The part of the cost that those runs still have.
pub(super) fn left_over(class: &str, means: Option<Means>) -> &'static str {
    match class {
        "memory-churn" if means == Some(Means::Library) => {
            "; the memory is still cleared each time: keeping it may save more"
        }
        CHECKS => {
            "; the instructions in place of the checks do nothing but take time: code without them may save more"
        }
        "atomics" => {
            "; they still count, without the lock prefix: not counting at all may save more"
        }
        "allocation" => "; the program still calls an allocator: allocating less may save more",
        "gc" => "; the program still allocates and collects: allocating less may save more",
        "repeated-syscalls" => {
            "; the program still asks: remembering the answer itself may save more"
        }
        "first-touch" => "; it still touches as much memory: less may save more",
        "wait-cpu" => {
            "; it still waits in a loop, asleep: waiting for the event itself may save more"
        }
        "parallel-overhead" => {
            "; one thread did all work: larger pieces on several CPUs may save more"
        }
        "false-sharing" | "wait-lock" => {
            "; on one CPU nothing runs at the same time: several CPUs without this cost may save more"
        }
        _ => "",
    }
}

/// A share in percent, to the measurable precision.
pub(super) fn number(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    if text == "-0.0" { "0.0".to_owned() } else { text.replace('-', "−") }
}
