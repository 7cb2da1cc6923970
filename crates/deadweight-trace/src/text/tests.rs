//! The text form by example: what is filled in, what is written, what is refused. Not for random traces; see `tests/trace_forms`.

use super::{TextError, TextOptions};
use crate::ids::{Cpu, Tid};
use crate::units::Ns;
use crate::{Event, Kind, Off, Trace};
use expect_test::{Expect, expect};

/// The trace that `text` means, with the check that its own text means the same.
fn trace(text: &str) -> Trace {
    let trace = Trace::from_text(text).unwrap();
    let written = trace.to_text();
    let again = Trace::from_text(&written).unwrap_or_else(|e| panic!("{e} in\n{written}"));
    assert_eq!(written, again.to_text());
    assert_eq!(trace.meta, again.meta, "{written}");
    assert_eq!(trace.len(), again.len(), "{written}");
    trace
}

fn check(text: &str, written: &Expect) {
    written.assert_eq(&trace(text).to_text());
}

/// A text without abbreviations is written back unchanged.
fn check_same(text: &str) {
    assert_eq!(trace(text).to_text(), text);
}

fn error(text: &str) -> String {
    let error: TextError = Trace::from_text(text).unwrap_err();
    error.to_string()
}

#[test]
fn the_example_of_the_design() {
    let text = "\
task 1 main
     0 on
  3000 sample  sum <- main   @ cmp rax, rcx
  9000 syscall read 0 1
 12000 back
 20000 off     blocked read 0
 45000 on      woken-by 2 xxd
 50000 exit
";
    check(
        text,
        &expect![[r#"
            task 1 main
                 0 on
              3000 sample sum <- main
              9000 syscall read 0 1
             12000 back
             20000 syscall read 0 0
             20000 off blocked read 0
             45000 on woken-by 2
             45000 back
             50000 exit
        "#]],
    );
    let trace = trace(text);
    assert_eq!(trace.meta.root, Tid(1));
    assert_eq!((trace.meta.start, trace.meta.end), (Ns(0), Ns(50_000)));
    assert_eq!(trace.meta.exit.map(|e| e.code), Some(0));
    assert_eq!(trace.meta.cpus, 1);
    assert!(trace.meta.complete);
    let reads: Vec<i64> = trace
        .events()
        .filter_map(|e| if let Kind::Back { ret } = e.kind { Some(ret) } else { None })
        .collect();
    assert_eq!(reads, [1, 0]);
}

#[test]
fn sections_are_merged_and_equal_times_stay_in_order_of_writing() {
    check(
        "task 1 sh
             0 on
            10 fork 2
           100 off blocked wait4
           900 on woken-by 2
          1000 exit
        task 2 xxd
            10 on
           100 syscall write 1 512
           100 back
           900 exit",
        &expect![[r#"
            task 1 sh
            task 2 xxd
                 0 [1 sh] on
                10 [1 sh] fork 2
                10 [2 xxd] on
               100 [1 sh] syscall wait4 0 0
               100 [1 sh] off blocked wait4
               100 [2 xxd] syscall write 1 512
               100 [2 xxd] back
               900 [1 sh] on woken-by 2 xxd
               900 [1 sh] back
               900 [2 xxd] exit
              1000 [1 sh] exit
        "#]],
    );
}

#[test]
fn every_kind_reads_back_as_it_is_written() {
    check_same(
        r#"recorder 0.1.0
command ./a "b c" "\"" --flag
cpus 8
zero 123456789
start 5
end 90000
exit 0 signal 11
rusage user 100 system 20 max-rss 4096
sample-period 200000
observer syscall-user 290 syscall-kernel 215 switch 1000
recorders 900 901
rung user
rung-why "only root may"
lacks "kernel stacks"
lacks wakers
blind-cpus 1
steal 77
throttled 78
shared-line 910
cycle 274
unseen 79
warning "the clock\u{7} jumped\n"
incomplete
image a path /tmp/a build-id 00ff language C producer "GNU C17 12.2.0 -O2" optimised
image libstdc++.so.6 path /usr/lib/libstdc++.so.6 no-lines
image a~2 path /opt/a no-symbols no-lines
image [kernel]
task 1 "a b"
     0 [1 "a b"] fork 12
     0 [1 "a b"] fork 13 thread
     0 [1 "a b"] fork 14 in 12
     5 [1 "a b"] on
     5 [13] comm "in"
     6 [1 in] off preempted
"#
        .replace("     6 [1 in] off preempted\n", EVENTS)
        .as_str(),
    );
}

const EVENTS: &str = r#"     6 [1 "a b"] exec /bin/x
     6 [1 "a b"] exec "" former 13
     7 [1 "a b"] map 0x1000 0x2000 libstdc++.so.6
     7 [1 "a b"] fd 0 pipe:[7]
     7 [1 "a b"] fd -1 "/tmp/\u{202e}odd \"name\""
     8 [1 "a b"] main
     9 [1 "a b"] sample sum (a.c:14) <- main (a.c:30)
    10 [1 "a b"] sample kernel "operator new(unsigned long)" <- ? @libstdc++.so.6+0x9a0 <- @a~2+0x10
    11 [1 "a b"] sample get (v.h:9) in sum (a.c:14) @0x1139 <- main : pipe_read < vfs_read @0xff < @0xfe
    12 [1 "a b"] sample
    12 [1 "a b"] site
    13 [1 "a b"] syscall read 0 1 from sum ("a b.c":14) <- main ("a:5") <- f ("(x)":1)
    13 [13 "in"] syscall futex 0x7f0000000000 128 2 0
    13 [13 "in"] cpu3 site main
    14 [1 "a b"] off blocked read 0 : pipe_read < vfs_read < ksys_read from main
    15 [13 "in"] woken-by idle
    16 [13 "in"] woken-by interrupt : hrtimer_wakeup < __hrtimer_run_queues
    17 [13 "in"] cpu2 woken-by 1 "a b" irq inferred
    17 [13 "in"] cpu2 on woken-by 2
    18 [13 "in"] back -11
    18 [13 "in"] back
    19 [13 "in"] syscall nr999 1
    19 [13 "in"] back 99999999
    20 [13 "in"] off yielded
    21 [13 "in"] off stopped
    22 [13 "in"] off dead : do_exit
    30 [1 "a b"] on
    31 [1 "a b"] back
    32 [1 "a b"] fault 0x7f00 by memset (x.c:3) from main
    33 [1 "a b"] fault-end
    34 [1 "a b"] fault 0x7f01 kernel by copy_to_user
    35 [1 "a b"] fault-end major
    36 [1 "a b"] fault 0x0
    37 [1 "a b"] timer
    38 [1 "a b"] timer-end
    39 [1 "a b"] probe go.lock.wait 0xc000000000 1 from lock2 <- main.(*T).run
    40 [1 "a b"] probe x 0 0
    41 [0] lost 12
    42 [1 "a b"] exit
"#;

#[test]
fn names_threads_and_births_of_a_task_line() {
    check(
        "task 1 main
         0 on
       900 exit
       task 2 worker of 1
       300 on
       task 3 tool child-of 2
       400 on
       task 4 xxd outside",
        &expect![[r#"
            task 1 main
            task 2 worker
            task 3 tool
                 0 [4] comm xxd
                 0 [1 main] on
               300 [1 main] fork 2 thread
               300 [2 worker] on
               400 [2 worker] fork 3
               400 [3 tool] on
               900 [1 main] exit
        "#]],
    );
}

#[test]
fn cpus_are_the_last_one_or_a_free_one() {
    let trace = trace(
        "[1] 0 on
         "
        .replace(
            "[1] 0 on",
            "0 [1] on\n0 [2] on\n5 [1] off preempted\n6 [2] off preempted\n7 [1] on\n8 [2] cpu5 on",
        )
        .as_str(),
    );
    let cpus: Vec<u16> = trace.events().map(|e| e.cpu.0).collect();
    assert_eq!(cpus, [0, 1, 0, 1, 0, 5]);
    assert_eq!(trace.meta.cpus, 6);
}

#[test]
fn one_task_can_be_written_by_itself() {
    let trace = trace("0 [1] on\n10 [2] on\n20 [1] exit\n30 [2] exit");
    let mut text = String::new();
    let part = TextOptions { task: Some(Tid(2)), ..TextOptions::default() };
    trace.write_text(part, &mut text).unwrap();
    expect![[r#"
        root 1
        exit 0
        task 2
            10 cpu1 on
            30 exit
    "#]]
    .assert_eq(&text);
}

#[test]
fn addresses_can_be_left_out_where_there_is_a_name() {
    let trace = trace("task 1\n1 sample f (a.c:1) @0x10 <- ? @libc.so.6+0x20 : g @0xff");
    let mut text = String::new();
    trace
        .write_text(TextOptions { addresses: false, ..TextOptions::default() }, &mut text)
        .unwrap();
    assert!(text.ends_with(" 1 sample f (a.c:1) <- ? @libc.so.6+0x20 : g\n"), "{text}");
}

#[test]
fn a_program_in_brackets_reads_back_as_it_is_written() {
    for name in ["[main in/a", "[a/b]", "a/[b]", "[a]", "[", "bin/["] {
        trace(&format!("task 1 \"{name}\"\n1 sample f <- main"));
    }
}

#[test]
fn an_event_built_directly_equals_the_one_from_its_line() {
    let trace = trace("task 1\n1_000 cpu1 on\n12 000 off blocked");
    let events: Vec<Event> = trace.events().collect();
    let on = Event { at: Ns(1000), cpu: Cpu(1), task: Tid(1), kind: Kind::On };
    let off = Kind::Off { why: Off::Blocked, stack: crate::ids::StackId(0) };
    assert_eq!(events, [on, Event { at: Ns(12_000), kind: off, ..on }]);
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (text, said) in [
        (
            "task 1 a\n 5 of",
            "line 2: expected what happened (on, off, syscall, back, ...), found `of`",
        ),
        ("5 on", "line 1: expected `task TID NAME` above, or [TID], found `on`"),
        (
            "task 1\n9 on\n8 exit",
            "line 3: expected a time from 9 on, as task 1 is there already, found `exit`",
        ),
        ("task 1\n1 syscall raed 0", "line 2: expected a system call's name, found `raed 0`"),
        (
            "task 1\n1 off",
            "line 2: expected blocked, preempted, yielded, stopped or dead at the end of the line",
        ),
        ("task 1\n1 exit 3", "line 2: expected the end of the line, found `3`"),
        (
            "task 1\n1 sample f (a.c:3",
            "line 2: expected a closing parenthesis (a file with blanks needs quotes) at the end of the line",
        ),
        ("task 1\n1 sample f <-", "line 2: expected a function at the end of the line"),
        ("task 1\n1 comm \"x", "line 2: expected a closing quote, found `\\\"x`"),
        (
            "task 1\n1 syscall read 0 1\n2 off blocked write 1",
            "line 3: expected the call that the task is in, read, found `write`",
        ),
        (
            "task 1\n1 fork 99999999999",
            "line 2: expected the new task's number, found `99999999999`",
        ),
        ("hello", "line 1: expected a time, `task` or a line about the recording, found `hello`"),
        (
            "task 2 b child-of 1\n5 on\ntask 1 a\n1 on\n1 fork 2",
            "line 1: expected either `child-of` or `of` here or the parent's `fork`, not both, found `task 2`",
        ),
        (
            "task 1 a\ntask 1 b",
            "line 2: expected what task's first line says at the end of the line",
        ),
    ] {
        assert_eq!(error(text), said);
    }
}
