//! Removals: what runs can leave out to measure a finding, without the source and without another build.
//!
//! - In: an inspection, and a finding's class and process.
//! - Out: removals, largest share of the finding first; at least one, which says why if nothing can be left out.
//! - Must not know: how runs do that, or what comes of it (`proof`).
//!
//! One file for each means.

mod calls;
mod libraries;
mod patches;
mod settings;
mod twice;

use crate::account::AccountId;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_report::report::{Change, Preloaded, Removal};
use deadweight_trace::units::Ns;
use libraries::library;
use twice::twice;

/// The removals for a finding of `class` in `process`.
pub(crate) fn removals(
    found: &Inspection<'_, '_>,
    class: &'static str,
    process: ProcessId,
) -> Vec<Removal> {
    let removals = match class {
        "zeroing" => patches::zeroing(found, process),
        "atomics" => patches::atomics(found, process),
        "bounds-checks" => patches::bounds_checks(found, process),
        "wait-disk" => {
            let durable = libraries::durable(found, process);
            calls::syncs(found, process).into_iter().chain(durable).collect()
        }
        "wait-sleep" => {
            let over = libraries::time_outs(found, process);
            calls::sleeps(found, process).into_iter().chain(over).collect()
        }
        "wait-cpu" => libraries::yields(found, process),
        "repeated-syscalls" => libraries::questions(found, process),
        "false-sharing" | "wait-lock" => {
            vec![placed("work on several CPUs at once", Change::OneCpu)]
        }
        "throttled" => vec![placed("the CPU quota", Change::NoQuota)],
        // Its row has only the connections that are made again.
        "network-turns" if found.wall.of(AccountId::of_class(class)) == Ns::ZERO => {
            vec![library("waits for delayed acknowledgements", Preloaded::Sockets)]
        }
        "parallel-overhead" => settings::one_thread(found, process),
        "gc" => settings::collections(found, process),
        "memory-churn" => {
            // What the program maps itself, no setting of `malloc` keeps.
            let mapped = libraries::mapped(found, process);
            let kept = settings::kept_memory(found, process);
            let some = mapped.as_ref().is_none_or(|mapped| mapped.share < 1.0 - calls::SMALL);
            mapped.into_iter().chain(kept.into_iter().filter(|_| some)).collect()
        }
        "first-touch" => settings::huge_pages(found, process, "most page faults"),
        "small-pages" => settings::huge_pages(found, process, "small pages"),
        "allocation" => vec![library("the time in the allocator", Preloaded::Allocator)],
        "buffer-copies" => twice(found, class, process, "the copies"),
        "rescans" => twice(found, class, process, "the scans"),
        "tiny-reads" => vec![library("small reads", Preloaded::Buffers)],
        "tiny-writes" => vec![library("small writes", Preloaded::Buffers)],
        _ => Vec::new(),
    };
    match removals.is_empty() {
        true => {
            vec![Removal { what: "it".into(), share: 1.0, change: Err(why_not(class).to_owned()) }]
        }
        false => removals,
    }
}

/// A removal by running elsewhere.
fn placed(what: &str, change: Change) -> Removal {
    Removal { what: what.to_owned(), share: 1.0, change: Ok(change) }
}

/// Why costs of this class cannot be left out.
fn why_not(class: &str) -> &'static str {
    match class {
        "buffer-copies" | "struct-copies" => "the program uses the copy's result",
        "missed-inlining" | "unoptimised-build" => "only another build shows it",
        "exceptions" | "hashing" | "rescans" | "text-conversion" => "the program uses the result",
        "cache-misses" | "branch-misses" => "only another order or layout shows it",
        "slow-instructions" => "the program uses the result",
        "repeated-syscalls" => "the program uses the calls' results",
        "busy-waiting" => "the program needs what it waits for",
        "thread-churn" | "imbalance" | "parallel-overhead" => "the program needs the threads' work",
        "start-up" => "the program does not run without it",
        "wait-child" | "wait-input" => "the program needs what it waits for",
        "wait-cpu" => "the CPU does other work meanwhile",
        "network-turns" => "both ends use the connections",
        "wait-output" => "the reader needs its time",
        "wait-disk" | "wait-sleep" => "it waits in calls whose results it needs",
        "gc" | "first-touch" | "small-pages" => "its runtime has no setting for that",
        "memory-churn" => "its runtime has no setting that changes only that",
        "zeroing" | "bounds-checks" | "atomics" => "it is not in the program's own code",
        _ => "no way is known",
    }
}

#[cfg(test)]
mod tests {
    use crate::weigh::{Weighing, weigh};
    use deadweight_report::report::Change;
    use deadweight_trace::Trace;
    use expect_test::expect;

    /// What can be left out of each finding of a recording.
    fn left_out(text: &str) -> String {
        let trace = Trace::from_text(text).unwrap();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        let mut said = String::new();
        for finding in &report.findings {
            for removal in &finding.removals {
                let change = match &removal.change {
                    Ok(Change::SkippedCalls(calls)) => {
                        format!("{:?}", calls.iter().map(|call| call.name).collect::<Vec<_>>())
                    }
                    Ok(Change::Environment(variables)) => variables[0].0.clone(),
                    Ok(Change::Library(library)) => format!("{library:?}"),
                    Ok(Change::Patches(..)) => "patches".to_owned(),
                    Ok(other) => format!("{other:?}"),
                    Err(why) => why.clone(),
                };
                said += &format!("{}: {} ({change})\n", finding.class, removal.what);
            }
        }
        said
    }

    /// A program that waits ten times in this call until the clock ends the wait.
    fn waits(call: &str) -> String {
        let look = |at: u64| {
            format!(
                "{} off blocked {call}
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0\n",
                at + 100_000,
                at + 1_000_000,
                at + 1_000_010
            )
        };
        let looks: String = (0..10).map(|i| look(i * 2_000_000)).collect();
        format!("task 1 app\n0 on\n{looks}20000010 exit\n20000010 off dead")
    }

    #[test]
    fn the_other_threads_of_open_mp_can_be_left_out_and_those_at_a_barrier_cannot() {
        let team = |code: &str| {
            let samples = |tid: u64| -> String {
                let stack = |n: u64| if n.is_multiple_of(5) { "work (s.c:9)" } else { code };
                (1..20).map(|n| format!("{} sample {}\n", n * 1_000_000 + tid, stack(n))).collect()
            };
            format!(
                "cpus 2\nimage app path /bin/app language C\nimage libgomp.so.1 path /lib/libgomp.so.1\n\
                 image libc.so.6 path /lib/libc.so.6\nsample-period 1000000\n\
                 task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n{}21000000 exit\n21000000 off dead\n\
                 task 2 app\n10000 cpu1 on\n{}20990000 exit\n20990000 off dead",
                samples(1),
                samples(2)
            )
        };
        expect![[r#"
            parallel-overhead: the other threads (OMP_THREAD_LIMIT=1) (OMP_THREAD_LIMIT)
        "#]]
        .assert_eq(&left_out(&team("spin @libgomp.so.1 <- relax (s.c:7)")));
        expect![[r#"
            parallel-overhead: it (the program needs the threads' work)
        "#]]
        .assert_eq(&left_out(&team("pthread_barrier_wait @libc.so.6 <- relax (s.c:7)")));
    }

    /// Maps ten pages, touches them and unmaps them, twenty times, by these callers.
    fn mapping(by: &str) -> String {
        let mut text = String::from(
            "image app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n",
        );
        for at in (100..20_000).step_by(1000) {
            text += &format!(
                "{at} syscall mmap 40960 3 34 0 from mmap @libc.so.6 <- {by}\n{} back 0x7000\n",
                at + 20
            );
            for page in 0..10 {
                let fault = at + 100 + page * 50;
                text += &format!(
                    "{fault} fault {:#x} from fill (a.c:7) <- main\n{} fault-end\n",
                    0x7000 + page * 4096,
                    fault + 30
                );
            }
            text += &format!(
                "{} syscall munmap 0x7000 40960 from munmap @libc.so.6 <- {by}\n{} back 0\n",
                at + 800,
                at + 890
            );
        }
        text + "20500 exit\n20500 off dead"
    }

    #[test]
    fn memory_that_the_program_maps_is_kept_and_that_of_malloc_by_a_setting() {
        expect![[r#"
            memory-churn: mapping and unmapping memory of the same sizes (it is cleared instead) (Maps)
        "#]]
        .assert_eq(&left_out(&mapping("pack (a.c:5) <- main (a.c:9)")));
        expect![[r#"
            memory-churn: giving memory back (glibc.malloc.trim_threshold, mmap_max) (GLIBC_TUNABLES)
        "#]]
        .assert_eq(&left_out(&mapping("malloc @libc.so.6 <- pack (a.c:5) <- main (a.c:9)")));
    }

    /// A program that looks for the end of a text most of its time, called like this.
    fn scanning(by: &str) -> String {
        let mut text = String::from(
            "image app path /app language C\nimage libc.so.6 path /lib/libc.so.6\nimage libp.so path /usr/lib/libp.so\n\
             sample-period 1000\ntask 1 app\n0 on\n0 exec /app\n0 main\n",
        );
        for at in (500..100_000).step_by(1000) {
            let scan = format!("rawmemchr @libc.so.6+0x90 <- {by} <- main (a.c:20) @0x1100");
            let stack = if at / 1000 % 10 < 8 { scan } else { "main (a.c:19) @0x10f0".into() };
            text += &format!("{at} sample {stack}\n");
        }
        text + "100000 exit\n100000 off dead"
    }

    #[test]
    fn a_scan_that_the_program_calls_is_done_twice_and_one_inside_of_a_library_is_not() {
        let sscanf = "__isoc99_sscanf @libc.so.6+0x50 <-";
        expect![[r#"
            rescans: the scans at a.c:5 (Twice("/app", [FileAddr(4096)]))
        "#]]
        .assert_eq(&left_out(&scanning(&format!("{sscanf} take (a.c:5) @0x1000"))));
        expect![[r#"
            rescans: it (the program uses the result)
        "#]]
        .assert_eq(&left_out(&scanning(&format!(
            "{sscanf} parse @libp.so+0x20 <- take (a.c:5) @0x1000"
        ))));
    }

    #[test]
    fn sleeps_are_found_to_be_calls_that_can_be_skipped() {
        expect![[r#"
            wait-sleep: the sleeps (["clock_nanosleep", "nanosleep", "poll", "ppoll", "pselect6", "select"])
        "#]]
        .assert_eq(&left_out(&waits("clock_nanosleep 1 from sleep_for <- main (a.c:4)")));
    }

    #[test]
    fn a_wait_until_a_time_out_is_found_to_be_cut_short_but_of_go_it_is_refused() {
        let polls = waits("poll 4096 1 5 : do_sys_poll from look <- main (a.c:4)");
        expect![[r#"
            wait-sleep: the waits until a time-out, and sleeps (TimeOuts)
        "#]]
        .assert_eq(&left_out(&polls));
        let image = "image app path /tmp/app language Go\ntask 1 app\n0 on\n0 exec /tmp/app";
        expect![[r#"
            wait-sleep: it (it waits in calls whose results it needs)
        "#]]
        .assert_eq(&left_out(
            &polls.replace("task 1 app\n0 on", image).replace("look", "time.Sleep"),
        ));
    }

    #[test]
    fn syncs_are_found_to_be_calls_that_can_be_skipped() {
        let sync = |at: u64| {
            format!(
                "{0} syscall fdatasync 3 from save <- main (a.c:9)
                 {0} off blocked fdatasync 3 : blkdev_issue_flush < __x64_sys_fdatasync
                 {1} on woken-by interrupt : blk_done < asm_common_interrupt
                 {2} back 0\n",
                at + 100_000,
                at + 1_900_000,
                at + 1_900_010
            )
        };
        let syncs: String = (0..20).map(|i| sync(i * 2_000_000)).collect();
        let text = format!("task 1 app\n0 on\n{syncs}40000010 exit\n40000010 off dead");
        expect![[r#"
            wait-disk: the syncs (fdatasync) (["fdatasync", "fsync", "msync", "sync", "sync_file_range", "syncfs"])
        "#]]
        .assert_eq(&left_out(&text));
    }

    /// A program of a language that spends a third of its time under this function of its runtime.
    fn samples(language: &str, inside: &str) -> String {
        let mut text = format!(
            "image app path /tmp/app language {language}\nsample-period 1000\ntask 1 app\n0 on\n\
             0 exec /tmp/app\n0 main\n"
        );
        for at in (500..100_000).step_by(1000) {
            let inside =
                if at / 1000 % 3 == 0 { format!("{inside} @app <- ") } else { String::new() };
            text += &format!("{at} sample {inside}work (a:3) @app <- main @app\n");
        }
        text + "100000 exit\n100000 off dead"
    }

    #[test]
    fn a_collector_is_found_to_have_a_setting_where_its_runtime_has_one() {
        expect![[r#"
            gc: most collections (GOGC=400) (GOGC)
        "#]]
        .assert_eq(&left_out(&samples("Go", "runtime.gcDrain")));
        expect![[r#"
            gc: it (its runtime has no setting for that)
        "#]]
        .assert_eq(&left_out(&samples("Python", "gc_collect_main")));
    }
}
