//! Teams whose threads divide their work evenly or not, and what other programs take from them. Not phases; see `phases`.

use crate::cost::tests::{found, weighed};
use deadweight_report::report::CheckOutcome;

/// Two threads that work for so long, each with this function and so much rest before its end.
fn halves(one: u64, two: u64, functions: [&str; 2], rest: u64) -> String {
    let end = one.max(two) + 500_000;
    let thread = |tid: u64, cpu: u64, worked: u64, function: &str| {
        let pause = match rest {
            0 => String::new(),
            rest => format!(
                "{} off blocked futex 1 0 9 0 : futex_wait_queue\n{} on woken-by 1\n",
                100_000,
                100_000 + rest
            ),
        };
        format!(
            "task {tid} app\n40000 cpu{cpu} on\n\
             {} sample near (r.c:60) <- {function} (r.c:80) <- start_thread @libc.so.6 <- clone3 @libc.so.6\n\
             {pause}{} exit\n{} off dead\n",
            90_000,
            40_000 + rest + worked,
            45_000 + rest + worked
        )
    };
    format!(
        "cpus 2\nimage app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n\
         task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n\
         10000 syscall clone3 from all (r.c:90) <- main (r.c:99)\n11000 fork 2 thread\n12000 back 2\n\
         13000 syscall clone3 from all (r.c:90) <- main (r.c:99)\n14000 fork 3 thread\n15000 back 3\n\
         20000 off blocked futex 1 0 9 0 : futex_wait_queue\n{end} on woken-by {}\n{} exit\n{} off dead\n{}{}",
        if one > two { 2 } else { 3 },
        end + 10_000,
        end + 20_000,
        thread(2, 0, one, functions[0]),
        thread(3, 1, two, functions[1]),
    )
}

#[test]
fn the_slower_half_is_found_where_it_is_started() {
    let said = found(&halves(1_000_000, 9_000_000, ["half", "half"], 0));
    assert!(said.starts_with("imbalance 42 %") && said.contains("@ all:90: 2 threads"), "{said}");
}

#[test]
fn on_a_disturbed_machine_it_is_refused_and_not_ruled_out() {
    let disturbed = |one: u64, ns: u64| {
        let back = 9_510_000 + ns;
        halves(one, 9_000_000, ["half", "half"], 0).replace(
            "9510000 exit\n9520000 off dead",
            &format!(
                "9510000 off preempted\n{back} cpu0 on\n{} exit\n{} off dead",
                back + 10_000,
                back + 20_000
            ),
        ) + &format!("task 9 sha256sum outside\n9510000 cpu0 on\n{back} off preempted")
    };
    for (one, ns, seen) in
        [(1_000_000, 1_000_000, true), (1_000_000, 2_300_000, true), (5_500_000, 2_300_000, false)]
    {
        let said = found(&disturbed(one, ns));
        assert_eq!(said.contains("imbalance"), seen, "{one} {ns}: {said}");
    }
    assert!(found(&disturbed(5_500_000, 100_000)).contains("imbalance"), "a near miss");
    let report = weighed(&disturbed(1_000_000, 6_000_000));
    assert!(report.findings.iter().all(|finding| finding.class != "imbalance"));
    let check = report.checks.iter().find(|check| check.class == "imbalance").unwrap();
    assert_eq!(check.outcome, CheckOutcome::NotCheckable);
    assert_eq!(check.why, "other programs held the CPUs too often");
}

#[test]
fn one_that_had_no_cpu_while_the_other_took_its_pieces_is_refused() {
    // Of its 9 ms, the second thread had a CPU for 4 and waited for one for so long, or ended before.
    let waited = |ns: u64| {
        let text = halves(9_000_000, 4_000_000 + ns, ["half", "half"], 0);
        let from = "task 3 app\n40000 cpu1 on\n90000 sample";
        assert!(text.contains(from), "{text}");
        let pause = format!("100000 off preempted\n{} cpu1 on\n", 100_000 + ns);
        let (before, after) = text.split_once(from).unwrap();
        let (sample, rest) = after.split_once('\n').unwrap();
        format!(
            "{before}{from}{sample}\n{pause}{rest}task 9 make outside\n100000 cpu1 on\n{} off preempted",
            100_000 + ns
        )
    };
    assert!(!found(&waited(5_000_000)).contains("imbalance"), "{}", found(&waited(5_000_000)));
    assert!(found(&waited(1_000_000)).starts_with("imbalance"), "{}", found(&waited(1_000_000)));
}

/// The main thread and another work in one function, the other for so much longer. Other programs had the CPUs of
/// both for so long.
fn taken(more: u64, from_main: u64, from_other: u64) -> String {
    let waits = 10_000_000 + from_main;
    let end = 10_000_000 + more + from_other;
    let samples = |taken: u64, end: u64, site: &str| -> String {
        let at = (1..5).map(|ms| ms * 1_000_000).chain((6_000_000 + taken..end).step_by(1_000_000));
        at.map(|at| format!("{at} sample sweep (t.c:10) <- {site}\n")).collect()
    };
    let own = |taken: u64, cpu: u64| match taken {
        0 => String::new(),
        _ => format!("5000000 off preempted\n{} cpu{cpu} on\n", 5_000_000 + taken),
    };
    let outside = |taken: u64, cpu: u64| match taken {
        0 => String::new(),
        _ => format!(
            "task {} make outside\n5000000 cpu{cpu} on\n{} off preempted\n",
            cpu + 8,
            5_000_000 + taken
        ),
    };
    let lines = |text: String| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort_by_key(|line| line.split(' ').next().and_then(|at| at.parse::<u64>().ok()));
        lines.join("\n")
    };
    format!(
        "cpus 2\nimage app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n\
         task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n10000 fork 2 thread\n{}\n{} syscall futex from \
         pthread_barrier_wait @libc.so.6 <- sweep (t.c:20) <- main (t.c:90)\n{waits} off blocked : futex_wait_queue\n\
         {end} on woken-by 2\n{end} back 0\n{end} exit\n{end} off dead\n\
         task 2 app\n40000 cpu1 on\n{}\n{end} exit\n{end} off dead\n{}{}",
        lines(samples(from_main, waits, "main (t.c:90)") + &own(from_main, 0)),
        waits - 1000,
        lines(samples(from_other, end, "start_thread @libc.so.6") + &own(from_other, 1)),
        outside(from_main, 0),
        outside(from_other, 1),
    )
}

#[test]
fn what_other_programs_took_from_the_slowest_alone_is_chance() {
    let ms = 1_000_000;
    assert!(found(&taken(3 * ms, 0, 0)).contains("imbalance"));
    assert!(found(&taken(3 * ms, 3 * ms / 2, 3 * ms / 2)).contains("imbalance"), "of both");
    assert!(found(&taken(3 * ms, 0, 3 * ms / 2)).contains("imbalance"), "uneven without it");
    assert!(!found(&taken(3 * ms / 2, 0, 3 * ms / 2)).contains("imbalance"), "it is most of it");
}

#[test]
fn even_halves_other_work_and_pauses_are_refused() {
    for (text, why) in [
        (halves(8_500_000, 9_000_000, ["half", "half"], 0), "even"),
        (halves(1_000_000, 9_000_000, ["read", "work"], 0), "other work"),
        (halves(1_000_000, 9_000_000, ["half", "half"], 9_000_000), "a pause"),
    ] {
        assert!(!found(&text).contains("imbalance"), "{why}: {}", found(&text));
    }
}
