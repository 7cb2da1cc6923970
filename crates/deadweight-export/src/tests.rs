//! Shared by the tests of the formats: text traces, and every golden trace of the repository.

use deadweight_core::{OneRun, Weighing, one_run, weigh};
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use std::path::Path;

/// What a format makes of a trace in its text form.
pub(crate) fn of_text<R>(text: &str, read: impl FnOnce(&Report, &OneRun<'_, '_>) -> R) -> R {
    let trace = Trace::from_text(text).expect("the text of a test is a trace");
    of_trace(&trace, read)
}

fn of_trace<R>(trace: &Trace, read: impl FnOnce(&Report, &OneRun<'_, '_>) -> R) -> R {
    let report = weigh(&Weighing { traces: std::slice::from_ref(trace), ..Weighing::default() });
    let report = report.expect("it can be weighed");
    one_run(trace, None, |run| read(&report, run)).expect("it can be weighed")
}

/// Calls `judge` for each golden trace, with its name.
#[expect(clippy::disallowed_methods, reason = "golden files are read by their test")]
pub(crate) fn of_golden(judge: impl Fn(&str, &Report, &OneRun<'_, '_>)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deadweight-core/tests/golden");
    let files = std::fs::read_dir(folder).expect("the folder is part of the repository");
    let mut judged = 0;
    for file in files.map(|file| file.expect("it can be read").path()) {
        if file.extension().is_some_and(|extension| extension == "dwt") {
            let bytes = std::fs::read(&file).expect("it was just listed");
            let (trace, _) = Trace::from_bytes(&bytes).expect("old recordings keep reading");
            let name = file.file_stem().expect("it has an extension").to_string_lossy();
            of_trace(&trace, |report, run| judge(&name, report, run));
            judged += 1;
        }
    }
    assert!(judged > 5);
}

/// A program whose two threads share a lock.
pub(crate) const TWO_THREADS: &str = "cpus 2
        task 1 main
             0 exec /bin/main
             0 on
            10 main
            20 sample hash (/src/hash.c:7) <- main (/src/main.c:3)
            30 fork 2 thread
            40 syscall read 3 0 1 from next (/src/main.c:9) <- main (/src/main.c:4)
            60 back 1
            70 off blocked futex : futex_wait
           400 on woken-by 2
           900 exit
          1000 off dead
        task 2 worker
            31 cpu1 on
           200 sample add (/src/add.c:2) <- work (/src/add.c:9)
           398 syscall futex
           402 back 1
           410 exit
           420 off dead";

#[test]
fn stacks_add_up_to_both_ledgers_row_by_row() {
    of_golden(|name, report, run| {
        for (rows, stacks) in
            [(&report.ledger, run.path_stacks()), (&report.cpu_ledger, run.cpu_stacks())]
        {
            for row in rows {
                let stacks = stacks.iter().filter(|time| time.account.id() == row.account);
                let sum: u64 = stacks.map(|time| time.ns.0).sum();
                assert_eq!(sum, row.ns, "{name}: {}", row.account);
            }
            let sums = (rows.iter().map(|row| row.ns).sum(), stacks.iter().map(|s| s.ns.0).sum());
            let (rows, stacks): (u64, u64) = sums;
            assert_eq!(rows, stacks, "{name}");
        }
    });
}
