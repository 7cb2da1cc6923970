//! Shared by the classes' tests: a text trace in, its findings out, one per line.

use crate::weigh::{Weighing, weigh};
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use std::fmt::Write;

/// The report of a text trace.
pub(crate) fn weighed(text: &str) -> Report {
    let trace = Trace::from_text(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
    assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), report.wall_ns);
    report
}

/// The findings of a text trace: `class saving % (low..high) @ function:line: text`.
pub(crate) fn found(text: &str) -> String {
    let mut out = String::new();
    for f in weighed(text).findings {
        let place = f.sites.first().map_or("nowhere".into(), |s| match s.line {
            0 => s.function.clone(),
            line => format!("{}:{line}", s.function),
        });
        let percent = |share: f64| (share * 100.0).round();
        writeln!(
            out,
            "{} {} % ({}..{}) @ {place}: {}",
            f.class,
            percent(f.saving_share),
            percent(f.low),
            percent(f.high),
            f.text
        )
        .unwrap();
    }
    out
}

/// The notes of the largest rows: `account ns note`.
pub(crate) fn rows(text: &str, count: usize) -> String {
    let report = weighed(text);
    let rows = report.ledger.iter().take(count);
    rows.map(|r| format!("{} {} {}", r.account, r.ns, r.note).trim_end().to_owned() + "\n")
        .collect()
}

/// `count` times the text that `lines` gives for the start time of each repetition.
pub(crate) fn repeat(count: u64, from: u64, every: u64, lines: impl Fn(u64) -> String) -> String {
    (0..count).map(|i| lines(from + i * every)).collect()
}

/// The report of a text trace with this line of source.
pub(super) fn with_source(text: &str, file: &str, line: u32, source: &str) -> Report {
    let mut trace = Trace::from_text(text).unwrap();
    let at = (trace.symbols.intern(file), line);
    let source = trace.symbols.intern(source);
    trace.symbols.source.insert(at, source);
    weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap()
}

/// As [`computing`], with the machine code of one of its functions: `name @0xADDRESS BYTES`.
pub(super) fn coded(language: &str, code: &str, stacks: &[(u64, &str)]) -> String {
    let code: Vec<&str> = code.split_whitespace().collect();
    computing(language, stacks).replacen("task 1", &format!("code {}\ntask 1", code.join(" ")), 1)
}

/// A C program that is in a loop for all of its time: `count` samples 10 µs apart. `code`: machine code of a function at
/// 0x1000. `sample` gives of each sample the stack and registers by their number in machine code.
pub(crate) fn looping(
    code: &str,
    count: u64,
    sample: impl Fn(u64) -> (String, Vec<(usize, u64)>),
) -> String {
    let mut text = format!(
        "image app path /bin/app language C\nmachine caches 32768 1048576 33554432\n\
         sample-period 10000\n{code}\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n"
    );
    for i in 0..count {
        text += &sampled(5_000 + i * 10_000, &sample(i));
    }
    let end = count * 10_000;
    write!(text, "{end} exit\n{end} off dead").unwrap();
    text
}

/// A sample with registers, as lines.
pub(super) fn sampled(at: u64, (stack, known): &(String, Vec<(usize, u64)>)) -> String {
    let mut general = [0; 16];
    known.iter().for_each(|(register, value)| general[*register] = *value);
    let mut text = format!("{at} sample {stack}\n");
    for (group, values) in general.chunks(4).enumerate() {
        let [a, b, c, d] = values else { unreachable!("four each") };
        writeln!(text, "{at} registers {} {a} {b} {c} {d}", 4 * group).unwrap();
    }
    text
}

/// A number that looks random, below `below`.
pub(crate) fn scattered(i: u64, below: u64) -> u64 {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20) % below
}

/// A program that only computes: each stack is sampled so many times, a microsecond apart.
pub(crate) fn computing(language: &str, stacks: &[(u64, &str)]) -> String {
    let mut text = format!(
        "image app path /bin/app language {language}\nimage libc.so.6 path /lib/libc.so.6\n\
         image libstdc++.so.6 path /lib/libstdc++.so.6\nsample-period 1000\n\
         task 1 app\n0 on\n0 exec /bin/app\n0 main\n"
    );
    let mut at = 500;
    for (count, stack) in stacks {
        for _ in 0..*count {
            writeln!(text, "{at} sample {stack}").unwrap();
            at += 1000;
        }
    }
    let end = at - 500;
    write!(text, "{end} exit\n{end} off dead").unwrap();
    text
}

/// A script that starts `count` programs one after the other, each of which sleeps, writes and
/// starts five more.
fn script(count: u64) -> String {
    const EACH: u64 = 10_000;
    let mut text = String::from("task 1 sh\n0 exec /bin/sh\n0 on\n0 main\n");
    let mut others = String::new();
    for i in 0..count {
        let (at, tool) = (i * EACH, 100 + i * 10);
        writeln!(
            text,
            "{} fork {tool}\n{} off blocked wait4 : do_wait\n{} on woken-by {tool}",
            at + 10,
            at + 20,
            at + 9_900
        )
        .unwrap();
        let from = |more: u64| at + more;
        writeln!(
            others,
            "task {tool} tool\n{} on\n{} exec /bin/tool\n{} main\n{} syscall write 1 40\n{} back 40
             {} off blocked clock_nanosleep : do_nanosleep\n{} on woken-by interrupt",
            from(30),
            from(40),
            from(50),
            from(60),
            from(70),
            from(80),
            from(190)
        )
        .unwrap();
        let mut steps = String::new();
        for step in 1..=5 {
            let (tid, at) = (tool + step, at + step * 1_000);
            writeln!(
                others,
                "{} fork {tid}\n{} off blocked wait4 : do_wait\n{} on woken-by {tid}",
                at + 10,
                at + 20,
                at + 900
            )
            .unwrap();
            writeln!(
                steps,
                "task {tid} step\n{} on\n{} exec /bin/step\n{} main\n{} exit\n{} off dead",
                at + 30,
                at + 40,
                at + 400,
                at + 800,
                at + 910
            )
            .unwrap();
        }
        writeln!(others, "{} exit\n{} off dead\n{steps}", from(9_400), from(9_910)).unwrap();
    }
    let end = count * EACH;
    format!("{text}{end} exit\n{end} off dead\n{others}")
}

#[test]
fn the_visit_count_grows_with_the_processes_and_not_with_their_square() {
    let visits = |count| {
        let _ = crate::visit_count::take();
        // Each tool works for long: its start is looked at and is no cost.
        assert!(!found(&script(count)).contains("start-up"));
        crate::visit_count::take()
    };
    let (some, many) = (visits(50), visits(400));
    assert!(some > 50 && many < 9 * some, "8 times the processes: {some}, then {many} visits");
}

/// The advice for a program that writes 40 bytes at a time through descriptor `fd`, which refers to `to`.
fn advice_for_writes(language: &str, fd: u32, to: &str) -> String {
    let write = |at| {
        format!(
            "{} syscall write {fd} 40 from send (a:68) <- main\n{} back 40\n",
            at + 100,
            at + 400
        )
    };
    let text = format!(
        "image app path /bin/app language {language}\ntask 1 app\n0 fd {fd} {to}\n0 on\n\
         0 exec /bin/app\n0 main\n{}401000 exit\n401000 off dead",
        repeat(1000, 0, 400, write)
    );
    weighed(&text).findings.into_iter().find(|f| f.class == "tiny-writes").unwrap().remedy
}

#[test]
fn advice_is_for_the_language_and_for_what_is_written_to() {
    for (language, fd, to, word) in [
        ("Rust", 1, "pipe:[7]", "println!"),
        ("Rust", 5, "socket:[7]", "BufWriter around the stream"),
        ("Rust", 5, "/tmp/out", "BufWriter::with_capacity"),
        ("Go", 1, "pipe:[7]", "os.Stdout"),
        ("Go", 5, "/tmp/out", "NewWriterSize(file"),
        ("JavaScript", 1, "pipe:[7]", "parts.join"),
        ("JavaScript", 9, "socket:[7]", "socket.cork()"),
        ("Python", 9, "socket:[7]", "sock.sendall"),
    ] {
        let advice = advice_for_writes(language, fd, to);
        assert!(advice.contains(word), "{language} {to}: {advice}");
    }
}
