//! Repeated system calls.
//!
//! # What it is
//! The program asks the kernel the same question over and over. For each item it opens, stats,
//! reads and closes the same few files, or it asks for the clock, its process id or a setting in a
//! loop.
//!
//! # How deadweight knows
//! Calls are counted by name and call site. If the trace has the files' names, they show that the
//! files are the same few. If not, the results of the reads show it: few different sizes for many
//! opens.
//!
//! # What it is mistaken for
//! Walking a directory tree, or reading many files once each: every call asks about something new.
//! Calls that move data are *tiny-reads* or *tiny-writes*. Locking a file (`fcntl`) is not a
//! question.
//!
//! # What to do
//! Ask once and keep the answer: cache the parsed file by its path, keep the descriptor open, read
//! the clock once per batch.
//!
//! # Seen in
//! A mailer that opens its template and its settings for every message.
//! In `tests/programs`: `recheck.cpp`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::syscall_entry_cost::{at_least, user_side_per_call};
use crate::inspect::{Draft, Sum, library_code_for, processes_in, with_user_side};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{count, things, time};
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "repeated-syscalls",
    source: include_str!("repeated_syscalls.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer calls of one kind are no repetition.
const MANY: u64 = 200;
/// From this many opens per distinct answer, the files are the same few.
const SAME: u64 = 40;

/// The topic of a call.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    /// Files by path, and the calls between open and close.
    Paths,
    /// Clock, identity, limits, settings of descriptors.
    Settings,
}

fn topic(name: &str) -> Option<Topic> {
    match name {
        "open" | "openat" | "openat2" | "close" | "stat" | "lstat" | "newfstatat" | "statx"
        // Not `readlink`: it walks along a path in one buffer, so the same address is not the same
        // question.
        | "fstat" | "access" | "faccessat" | "faccessat2" | "getcwd" => Some(Topic::Paths),
        "clock_gettime" | "gettimeofday" | "time" | "clock_getres" | "getpid" | "gettid"
        | "getppid" | "getuid" | "geteuid" | "getgid" | "getegid" | "uname" | "sysinfo"
        | "getrlimit" | "prlimit64" | "getrusage" | "times" | "getcpu" | "sched_getaffinity"
        | "sched_getparam" | "ioctl" | "fcntl" | "lseek" | "getsockopt" | "setsockopt"
        | "getsockname" | "getpeername" | "prctl" | "rt_sigprocmask" | "rt_sigaction"
        | "sigaltstack" | "statfs" | "fstatfs" | "umask" | "setitimer" | "timer_settime"
        | "getrandom" | "epoll_ctl" => Some(Topic::Settings),
        _ => None,
    }
}

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Call(id, _) = slice.what else { return false };
    let group = facts.call_groups.get(id);
    // Go's runtime calls it before each signal that interrupts a goroutine.
    let runtimes = group.name == "getpid" && facts.processes.get(group.process).language == "Go";
    if group.starting || runtimes || locks(group) || is_collectors(facts, group) {
        return false;
    }
    match topic(group.name) {
        Some(Topic::Settings) => group.calls >= MANY,
        Some(Topic::Paths) => same_files(facts, group.process),
        // A read between open and close belongs to the repetition.
        None => is_read_of_files(group) && same_files(facts, group.process),
    }
}

/// Whether the call locks files. That is no question: a database locks for each transaction.
fn locks(group: &CallGroup) -> bool {
    /// `F_SETLK`, `F_SETLKW`, and the same for open files (`F_OFD_SETLK`, `F_OFD_SETLKW`).
    const LOCKING: [u64; 4] = [6, 7, 37, 38];
    group.name == "fcntl" && group.questions.iter().any(|args| LOCKING.contains(&args[1]))
}

/// Whether a collector or an allocator makes the call, to block signals while it works.
fn is_collectors(facts: &Facts<'_>, group: &CallGroup) -> bool {
    /// This many stacks decide.
    const ENOUGH: usize = 8;
    let theirs = |stack: StackId| {
        let sample = facts.sample(stack);
        [SymbolRole::Collect, SymbolRole::Allocate, SymbolRole::Grow]
            .into_iter()
            .any(|symbol_role| sample.under(symbol_role))
    };
    let known = group.sites.iter().filter(|(stack, _)| **stack != StackId(0)).take(ENOUGH);
    let (mut of_theirs, mut all) = (0, 0);
    for (stack, calls) in known {
        all += calls;
        of_theirs += if theirs(*stack) { *calls } else { 0 };
    }
    of_theirs * 2 > all
}

fn is_read_of_files(group: &CallGroup) -> bool {
    let reads = matches!(group.name, "read" | "pread64" | "mmap" | "munmap" | "lseek");
    reads && group.objects.len() > 1 && group.per_object() <= 8
}

/// Whether a process asks about the same few files by path again and again.
fn same_files(facts: &Facts<'_>, process: ProcessId) -> bool {
    let mut opens = 0;
    let mut stats = 0;
    let mut walks = 0;
    let mut reads = 0;
    for (_, group) in facts.call_groups.of_process(process) {
        match group.name {
            "open" | "openat" | "openat2" => opens += group.calls,
            "getdents64" | "getdents" => walks += group.calls,
            "read" | "pread64" if is_read_of_files(group) => reads += group.calls,
            name if topic(name) == Some(Topic::Paths) => stats += group.calls,
            _ => {}
        }
    }
    if opens + stats < MANY || walks * 20 > opens + stats {
        return false;
    }
    if opens < MANY || reads == 0 {
        // Only questions by path: they repeat if their arguments are few.
        return stats >= MANY && opens * 4 < stats && few_questions(facts, process);
    }
    // The results of reads identify files only if the files were read.
    if reads < opens - opens / 4 {
        return false;
    }
    let answers = u64::try_from(facts.call_groups.distinct_results(process).max(1)).unwrap_or(1);
    opens / answers >= SAME
}

/// Whether questions by path have few different arguments.
fn few_questions(facts: &Facts<'_>, process: ProcessId) -> bool {
    facts
        .call_groups
        .of_process(process)
        .filter(|(_, f)| topic(f.name) == Some(Topic::Paths) && f.calls >= MANY)
        .all(|(_, f)| f.calls / u64::try_from(f.questions.len()).unwrap_or(1).max(1) >= SAME)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter(|p| !found.facts.processes.get(*p).is_launcher())
        .map(|process| draft(found, account, process))
        .collect()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Draft {
    let facts = found.facts;
    let entries = || found.wall.of_process(account, process);
    let sum = Sum::of(entries());
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in entries() {
        if let Detail::Calls(group) = entry.detail {
            *by_name.entry(facts.call_groups.get(group).name).or_default() += entry.count;
        }
    }
    let mut by_name: Vec<(u64, &str)> = by_name.into_iter().map(|(n, c)| (c, n)).collect();
    by_name.sort_by(|a, b| b.cmp(a));
    let calls = by_name.iter().take(5).map(|(c, n)| format!("{n} ×{}", count(*c)));
    let calls: Vec<String> = calls.collect();
    let files = by_name.iter().any(|(_, n)| topic(n) == Some(Topic::Paths));
    let around = library_code_for(found, process, &sum.places);
    let saving =
        with_user_side(found, process, sum.ns, sum.count, user_side_per_call(facts)) + around;
    let answers = u64::try_from(facts.call_groups.distinct_results(process)).unwrap_or(u64::MAX);
    let name = facts.name(process);
    Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if files {
            "the same files again and again".into()
        } else {
            format!("the same question again and again: {}", by_name.first().map_or("", |n| n.1))
        },
        text: format!(
            "{name} asked the kernel {}: {}.",
            things(sum.count, "time"),
            calls.join(", ")
        ),
        amount: sum.ns,
        saving,
        range: (at_least(sum.ns, sum.count), saving),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: [
            Some(format!("{} per call in the kernel", time(Ns(sum.ns.0 / sum.count.max(1))))),
            (around > Ns::ZERO)
                .then(|| format!("{} more in library code around these calls", time(around))),
            (files && answers > 0).then(|| {
                format!("the reads returned data of only {}", things(answers, "different size"))
            }),
        ]
        .into_iter()
        .flatten()
        .collect(),
        remedy: remedy(&facts.processes.get(process).language, files),
    }
}

fn remedy(language: &str, files: bool) -> String {
    let map = match language {
        "Go" => "a map from path to the parsed value",
        "Rust" => "a HashMap from path to the parsed value",
        "C++" => "a std::unordered_map from path to the parsed value",
        "Python" => "functools.lru_cache around the load",
        "Crystal" => "a Hash from path to the parsed value",
        _ => "a table from path to the parsed value",
    };
    if files {
        format!(
            "Load each file once and keep the result: {map}. If the files may change while the \
             program runs, check them every few seconds instead of for each item."
        )
    } else {
        "Ask once, outside the loop, and keep the answer. If it can change, ask once per batch."
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat};
    use expect_test::expect;

    /// Opens, reads and closes a file per message; the read returns `size(message)`.
    fn mailer(messages: u64, size: impl Fn(u64) -> u64) -> String {
        let message =
            |at: u64| {
                let size = size(at / 1000);
                format!(
                "{at} syscall openat 0 1 0 from os.ReadFile <- main.template (main.go:29) <- main
                 {} back 3\n{} syscall read 3 512\n{} back {size}
                 {} syscall close 3\n{} back 0\n",
                at + 300, at + 310, at + 400, at + 410, at + 500
            )
            };
        let end = messages * 1000;
        let messages = repeat(messages, 0, 1000, message);
        format!("task 1 mail\n0 on\n0 main\n{messages}{end} exit\n{end} off dead")
    }

    #[test]
    fn the_same_few_files_are_found() {
        expect![[r#"
            repeated-syscalls 48 % (39..48) @ main.template:29: mail asked the kernel 3 000 times: read ×1 000, openat ×1 000, close ×1 000.
        "#]].assert_eq(&found(&mailer(1000, |i| 100 + i % 12)));
    }

    #[test]
    fn library_code_around_the_calls_goes_with_them() {
        let mut text = String::new();
        for line in mailer(1000, |i| 100 + i % 12).lines() {
            text += &format!("{line}\n");
            if let Some(message) = line.strip_suffix("500 back 0") {
                let message: u64 = message.parse().unwrap_or(0);
                let stack = match message % 4 {
                    0 => "runtime.mallocgc <- os.ReadFile <- main.template (main.go:29) <- main",
                    1 => "os.ReadFile <- main.other (main.go:50) <- main",
                    _ => "main.template (main.go:29) <- main",
                };
                text += &format!("{message}700 sample {stack}\n");
            }
        }
        // A quarter of 520 ns of own time each; entry and exit of 3 calls are 180 ns more.
        expect![[r#"
            repeated-syscalls 61 % (39..61) @ main.template:29: mail asked the kernel 3 000 times: read ×1 000, openat ×1 000, close ×1 000.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn many_files_once_each_are_refused() {
        assert_eq!(found(&mailer(1000, |i| 100 + i)), "");
        assert_eq!(found(&mailer(100, |i| 100 + i % 12)), "");
    }

    #[test]
    fn files_are_distinguished_however_many_are_opened() {
        let text = found(&mailer(6_000, |i| 100 + i % 12));
        assert!(text.starts_with("repeated-syscalls 48 %") && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn files_that_are_opened_but_not_read_are_refused() {
        let object = |at: u64| {
            let size = 100 + at / 10_000 % 3;
            let mut text = format!(
                "{at} syscall openat 0 1 0 from unpack <- main\n{} back 3\n{} syscall close 3\n\
                 {} back 0\n",
                at + 300,
                at + 400,
                at + 500
            );
            if at.is_multiple_of(10_000) {
                text += &format!("{} syscall read 3 512\n{} back {size}\n", at + 510, at + 600);
            }
            text
        };
        let objects = repeat(1000, 0, 1000, object);
        let text = format!("task 1 git\n0 on\n0 main\n{objects}1000000 exit\n1000000 off dead");
        assert_eq!(found(&text), "");
    }

    #[test]
    fn locks_of_a_file_are_no_questions() {
        let program = |operation: u64| {
            let ask = |at| {
                format!(
                    "{at} syscall fcntl 3 {operation} 4096 from step <- main\n{} back 0\n",
                    at + 200
                )
            };
            let asked = repeat(1000, 0, 400, ask);
            format!("task 1 a\n0 on\n0 main\n{asked}400000 exit\n400000 off dead")
        };
        assert_eq!(found(&program(6)), "");
        assert!(found(&program(3)).starts_with("repeated-syscalls"), "{}", found(&program(3)));
    }

    #[test]
    fn calls_of_a_collector_are_refused() {
        let ask = |at| {
            format!(
                "{at} syscall rt_sigprocmask from libgc.so.1+0x1a2b <- split (a.cr:7) <- main\n{} back 0\n",
                at + 200
            )
        };
        let asked = repeat(1000, 0, 400, ask);
        let text = format!("task 1 a\n0 on\n0 main\n{asked}400000 exit\n400000 off dead");
        assert_eq!(found(&text), "");
        let own = text.replace("libgc.so.1+0x1a2b <- ", "");
        assert!(found(&own).starts_with("repeated-syscalls"), "{}", found(&own));
    }

    #[test]
    fn asking_for_the_same_thing_in_a_loop_is_found() {
        let ask =
            |at| format!("{at} syscall getppid from pid (a.c:7) <- main\n{} back 1\n", at + 200);
        let text = |count: u64| {
            let end = count * 400;
            let asked = repeat(count, 0, 400, ask);
            format!("task 1 a\n0 on\n0 main\n{asked}{end} exit\n{end} off dead")
        };
        expect![[r#"
            repeated-syscalls 50 % (43..50) @ pid:7: a asked the kernel 1 000 times: getppid ×1 000.
        "#]]
        .assert_eq(&found(&text(1000)));
        assert_eq!(found(&text(100)), "");
    }
}
