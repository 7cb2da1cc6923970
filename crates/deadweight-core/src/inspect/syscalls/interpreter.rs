//! What an interpreter does around a script's system calls: its own print, flush, open or close. That work goes with the
//! calls where the script no longer asks for them.
//!
//! - In: the places of calls.
//! - Out: the process' own time below the same steps of the interpreter's loop.
//! - Must not know: scripts' lines. Some of that work may stay: it belongs to the upper end of a range.

use crate::facts::call_site::{CallSite, Weights};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_report::wording::time;
use deadweight_trace::ids::NameId;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Functions that run a script's steps, each of which calls what the step does: of CPython, Perl and PHP.
const LOOPS: [&str; 3] = ["_PyEval_EvalFrameDefault", "Perl_runops_standard", "execute_ex"];
/// How the names of V8's code begin through which a script's compiled code calls native functions.
const LEAVES_SCRIPT: [&str; 2] = ["Builtins_CallApiCallback", "Builtins_CEntry"];
/// If less than this part of the time below a function is in what it calls for these system calls, it does other things
/// too, and only that counts.
const MOST_OF_IT: f64 = 0.3;

/// The function that a step calls, and what that calls next.
type Step = (NameId, Option<NameId>);

/// The own time of a process in what the interpreter does for the steps of a script that make these calls.
pub(crate) fn around(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights) -> Ns {
    let symbols = found.facts.symbols();
    let steps: BTreeSet<Step> = places.keys().filter_map(|site| step(symbols, *site)).collect();
    let called: BTreeSet<NameId> = steps.iter().map(|(called, _)| *called).collect();
    if called.is_empty() {
        return Ns::ZERO;
    }
    // Of each of these functions: the time below it, and what of that is in the same steps.
    let mut below: BTreeMap<NameId, (Ns, Ns)> = BTreeMap::new();
    for entry in found.wall.user_time_of(process) {
        for (site, weight) in &entry.samples {
            let Some(step) = step(symbols, *site).filter(|(of, _)| called.contains(of)) else {
                continue;
            };
            let ns = entry.ns.part(weight.amount as f64 / entry.sampled().max(1) as f64);
            let (all, same) = below.entry(step.0).or_default();
            *all += ns;
            *same += if steps.contains(&step) { ns } else { Ns::ZERO };
        }
    }
    let counts = |(all, same): (Ns, Ns)| if same.share_of(all) < MOST_OF_IT { same } else { all };
    below.into_values().map(counts).sum()
}

/// The sentence about that time.
pub(crate) fn evidence(around: Ns) -> Option<String> {
    (around > Ns::ZERO).then(|| {
        format!(
            "{} more in what the interpreter does around these calls, which the upper end includes",
            time(around)
        )
    })
}

/// The innermost step of a script at this site.
fn step(symbols: &Symbols, site: CallSite) -> Option<Step> {
    let (mut called, mut next) = (None, None);
    for (_, frame) in site.frames(symbols) {
        let name = symbols.name(frame.function);
        if LOOPS.contains(&name) || LEAVES_SCRIPT.iter().any(|start| name.starts_with(start)) {
            return Some((called?, next));
        }
        if !passes_on(name) {
            (called, next) = (Some(frame.function), called);
        }
    }
    None
}

/// Whether a function only passes calls on: `PyObject_Vectorcall`, `v8::internal::Builtin_HandleApiCall`.
fn passes_on(name: &str) -> bool {
    name.contains("Call") || name.contains("Vectorcall")
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    const BELOW: &str = "_PyEval_EvalFrameDefault @python3 <- main @python3";
    const FLUSH: &str = "flush @python3 <- PyObject_VectorcallMethod @python3 <- print @python3";

    /// A script that prints and flushes 1000 times; where the interpreter was sampled in between, in turn.
    fn script(between: [&str; 3]) -> String {
        let turn = |at: u64| {
            let sampled = between[usize::try_from(at / 1000 % 3).unwrap()];
            format!(
                "{at} sample {sampled} <- {BELOW}\n\
                 {} syscall write 1 10 from write @libc.so.6 <- {FLUSH} <- {BELOW}\n{} back 10\n",
                at + 500,
                at + 700
            )
        };
        let end = 1000 * 1000;
        format!(
            "image python3 path /usr/bin/python3 language Python\nimage libc.so.6 path /lib/libc.so.6\n\
             sample-period 1000\ntask 1 python3\n0 fd 1 /tmp/out\n0 on\n0 exec /usr/bin/python3\n0 main\n{}{end} exit\n\
             {end} off dead",
            repeat(1000, 0, 1000, turn)
        )
    }

    /// The range of what tiny writes cost, in percent, and whether the interpreter is spoken of.
    fn range(between: [&str; 3]) -> (f64, f64, bool) {
        let report = weighed(&script(between));
        let found = report.findings.iter().find(|found| found.class == "tiny-writes").unwrap();
        let part = |share: f64| (share * 100.0).round();
        let said = found.evidence.iter().any(|text| text.contains("interpreter"));
        (part(found.low), part(found.high), said)
    }

    #[test]
    fn what_print_does_to_flush_belongs_to_the_upper_end() {
        let text = "str @python3 <- write @python3 <- print @python3";
        let (flush, other) = (format!("encode @python3 <- {FLUSH}"), "add @python3");
        // All of print, as most of it is to flush; and only that, as most of it is not.
        let (low, high, said) = range([&flush, text, other]);
        assert!(low < 20.0 && (60.0..80.0).contains(&high) && said, "{low} {high}");
        let (low, high, said) = range([other, text, other]);
        assert!(low < 20.0 && (15.0..30.0).contains(&high) && !said, "{low} {high}");
    }

    #[test]
    fn what_a_native_function_of_node_does_counts() {
        let flush = "uv_fs_write @python3 <- node::fs::WriteString @python3";
        let text = script([
            &format!("lock <- {flush}"),
            "utf8 <- node::fs::WriteString",
            "node::fs::Read",
        ]);
        let compiled = "Builtins_CallApiCallback @python3 <- ? @[anonymous]+0x70";
        let text =
            text.replace(FLUSH, flush).replace("_PyEval_EvalFrameDefault @python3", compiled);
        let report = weighed(&text);
        let found = report.findings.iter().find(|found| found.class == "tiny-writes").unwrap();
        assert!((0.6..0.8).contains(&found.high), "{}", found.high);
    }

    #[test]
    fn other_steps_of_the_script_are_not_counted() {
        let others =
            ["sort @python3", "PyObject_Vectorcall @python3", "_PyEval_EvalFrameDefault @python3"];
        let (low, high, said) = range(others);
        assert!(low < 20.0 && (15.0..30.0).contains(&high) && !said, "{low} {high}");
    }
}
