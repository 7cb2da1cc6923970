//! Counting runs as text traces, and what their reports must contain.

use super::{Counted, ProbeKind, add_to, copies};
use crate::weigh::{Weighing, weigh};
use deadweight_report::report::{CountBasis, Report};
use deadweight_trace::Trace;

/// A run under probes: two calls of `parse`, one of them from `main` through `parse` itself, with three
/// allocations, and one allocation elsewhere.
const COUNTED: &str = "sample-period 1000
    task 1 app
        0 on
      100 probe count.call 0 77
      110 probe count.call.stack 0 77 from q::parse (q.c:3) <- main (q.c:9)
      200 probe count.allocation 24 5
      210 probe count.allocation.stack 24 5 from malloc @libc.so.6 <- q::parse (q.c:4) <- main (q.c:9)
      300 probe count.allocation 24 5
      400 probe count.allocation 40 5
      500 probe count.call 0 78
      510 probe count.call.stack 0 78 from q::parse (q.c:3) <- q::parse (q.c:5) <- main (q.c:9)
      600 probe count.allocation 8 6
      610 probe count.allocation.stack 8 6 from malloc @libc.so.6 <- other (q.c:7) <- main (q.c:9)
      700 sample q::parse (q.c:4) <- main (q.c:9)
     9000 exit
     9000 off dead";

fn report_with(timed: &str, counted: &str, name: &str) -> Report {
    let timed = [Trace::from_text(timed).unwrap()];
    let weighing =
        Weighing { traces: &timed, clean: &[], inside: Some(name), ..Weighing::default() };
    let mut report = weigh(&weighing).unwrap();
    let trace = &Trace::from_text(counted).unwrap();
    add_to(&mut report, &Counted { trace, of: None, allocators: true, function: true });
    report
}

#[test]
fn calls_and_what_they_allocate_are_given_for_each() {
    let report = report_with(COUNTED, COUNTED, "parse");
    let inside = report.inside.unwrap();
    let calls = inside.calls.unwrap();
    assert_eq!((calls.count, calls.basis), (2, CountBasis::Exact));
    assert_eq!(calls.allocations_per_call, Some(1.5));
    assert_eq!(calls.bytes_per_call, Some(44.0));
    assert_eq!((calls.inlined_share, calls.recursive_share), (0.0, 0.5));
    assert!((calls.ns_per_call - report.wall_ns as f64 / 2.0).abs() < 1e-9);
    assert!(calls.remarks[0].contains("50 % of the calls come from itself"), "{calls:?}");
    let all = report.allocations.unwrap();
    assert_eq!((all.count, all.bytes), (4, 96));
    let line = &all.sites[0];
    assert_eq!((line.function.as_str(), line.line), ("q::parse", 4));
    assert_eq!((line.count, line.bytes, line.least, line.most), (3, 88, 24, 40));
}

#[test]
fn throws_are_counted_for_the_lines_of_the_finding() {
    let thrown = "_Unwind_RaiseException @libgcc_s.so.1 <- price (p.cpp:8) <- main (p.cpp:9)";
    let samples: String =
        (0..20).map(|i| format!("{} sample {thrown}\n", 1_000 + i * 1_000)).collect();
    let timed = format!(
        "sample-period 1000\nimage app path /bin/app language C++\nimage libgcc_s.so.1 path /lib/libgcc_s.so.1\n\
         task 1 app\n0 on\n0 exec /bin/app\n0 main\n{samples}22000 exit\n22000 off dead"
    );
    let hits: String =
        (0..4).map(|i| format!("{} probe count.throw 0 5\n", 21_000 + i * 100)).collect();
    let stack = format!("21500 probe count.throw.stack 0 5 from {thrown}\n");
    let counted = timed.replace("22000 exit", &format!("{hits}{stack}22000 exit"));
    let report = report_with(&timed, &counted, "price");
    let finding = report.findings.iter().find(|f| f.class == "exceptions").unwrap();
    assert_eq!(finding.sites[0].count, 4, "{finding:?}");
    assert!(finding.evidence[0].starts_with("4 throws, 5."), "{finding:?}");
}

#[test]
fn counts_that_stopped_early_are_the_least_and_times_the_most() {
    let stopped = COUNTED.replace("  700 sample", "  650 probe count.stopped 0 0\n  700 sample");
    let calls = report_with(COUNTED, &stopped, "parse").inside.unwrap().calls.unwrap();
    assert_eq!((calls.count, calls.basis), (2, CountBasis::AtLeast));
    assert!(calls.remarks[0].contains("counting stopped after 650 ns"), "{calls:?}");
}

const PARSE: &str = "q::parse (q.c:4) <- main";

/// So many samples, a nanosecond apart.
fn samples(from: u64, many: u64, stack: &str) -> String {
    (0..many).map(|n| format!("      {} sample {stack}\n", from + n)).collect()
}

/// [`COUNTED`] with these samples before counting stops, and these after it.
fn stopped(before: &str, after: &str) -> String {
    let all = format!("{before}      850 probe count.stopped 0 0\n{after}      8000 sample");
    COUNTED.replace("      700 sample", &all)
}

#[test]
fn counts_that_stopped_early_are_scaled_by_the_work_that_was_done() {
    let text = stopped(&samples(700, 120, PARSE), &samples(900, 359, PARSE));
    let text = text.replace("sample-period 1000", "sample-period 18");
    let report = report_with(COUNTED, &text, "parse");
    let calls = report.inside.unwrap().calls.unwrap();
    assert_eq!((calls.count, calls.basis), (8, CountBasis::Estimate));
    assert_eq!(calls.allocations_per_call, Some(1.5));
    assert!(calls.remarks[0].contains("25 % of the program's own work"), "{calls:?}");
    let all = report.allocations.unwrap();
    assert_eq!((all.count, all.bytes, all.sites[0].count), (16, 384, 12));
}

#[test]
fn what_is_left_of_a_run_without_probes_says_how_far_it_had_come() {
    let text = stopped(&samples(700, 120, PARSE), &samples(900, 359, PARSE));
    // 359 samples of 22.5 ns are left of 9 µs: a tenth was done, in which the probes left the caches cold.
    let report =
        report_with(COUNTED, &text.replace("sample-period 1000", "sample-period 22"), "parse");
    let calls = report.inside.unwrap().calls.unwrap();
    assert!((14..=20).contains(&calls.count), "{calls:?}");
}

#[test]
fn samples_that_came_late_because_of_a_probe_are_no_work() {
    // As many again behind the probe.
    let behind = samples(770, 60, "malloc @libc.so.6 <- q::parse (q.c:4) <- main");
    let text = stopped(&(samples(700, 60, PARSE) + &behind), &samples(900, 179, PARSE));
    let text = text.replace("sample-period 1000", "sample-period 36");
    let report = report_with(COUNTED, &text, "parse");
    let calls = report.inside.unwrap().calls.unwrap();
    assert_eq!((calls.count, calls.basis), (8, CountBasis::Estimate));
}

#[test]
fn a_run_in_which_nothing_was_called_says_so() {
    let silent = "task 1 app\n 0 on\n 700 sample q::parse <- main\n 9000 exit\n 9000 off dead";
    let inside = report_with(COUNTED, silent, "parse").inside.unwrap();
    assert!(inside.calls.is_none() && inside.uncounted.contains("shows no call"));
}

#[test]
fn hits_of_other_processes_are_not_the_subjects() {
    let other = COUNTED.replace(
        "task 1 app",
        "task 1 sh\n 0 on\n 1 fork 2\n 9500 exit\n 9500 off dead\ntask 2 app",
    );
    let trace = &Trace::from_text(&other).unwrap();
    let mut report = Report { inside: None, ..Report::default() };
    add_to(&mut report, &Counted { trace, of: Some("sh"), allocators: true, function: false });
    assert_eq!(report.allocations.as_ref().map(|all| all.count), Some(4), "its child is its own");
    add_to(&mut report, &Counted { trace, of: Some("dog"), allocators: true, function: false });
    assert!(report.warnings[0].contains("did not have this process"));
}

#[test]
fn inlined_copies_cannot_be_counted() {
    let text = "task 1 app\n 0 on\n 700 sample step (q.c:2) in q::parse (q.c:4) <- main\n 900 exit\n 900 off dead";
    let symbols = &Trace::from_text(text).unwrap().symbols;
    let (step, parse) = (copies(symbols, "step"), copies(symbols, "parse"));
    assert!(step.own.is_empty() && step.inlined);
    assert!(parse.own.len() == 1 && !parse.inlined);
    assert_ne!(ProbeKind::Call.hit_name(), ProbeKind::Call.stack_name());
}
