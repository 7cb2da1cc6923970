//! Tests: a team in a function, of which other programs take the CPUs. For teams that are born together see the class.

use crate::cost::tests::found;

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
