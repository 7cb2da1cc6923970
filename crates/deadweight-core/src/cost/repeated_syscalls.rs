//! Repeated system calls.
//!
//! # What it is
//! The program asks the kernel the same question over and over. For each item it opens, stats,
//! reads and closes the same few files, opens one anew for each line that it writes, or it asks for
//! the clock, its process id or a setting in a loop. Or a new child closes all numbers that might be open. Or it gives the
//! same order again and again: each switch of a coroutine saves the signal mask, each patch changes the protection of
//! the same pages, each record is preceded by a seek, each random number is fetched by itself.
//!
//! # How deadweight knows
//! Calls are counted by name and call site. As root, a number for the path is recorded with each call
//! that has one: it shows how many paths there were. Otherwise the recorder reads at some instants which files are
//! open: their paths prove that the files are the same few. Without that there is no finding. For
//! calls by path that open nothing: the address of the path is the same, and there is no time to
//! write another path there.
//! What library functions do on the way to the calls (locks, the runtime's states) goes away with them.
//! In a script, what CPython, Perl, PHP or Node does around the calls belongs to the upper end.
//!
//! # What it is mistaken for
//! Walking a directory tree, or reading many files once each, be they of one size: every call asks
//! about something new. A file that is emptied or replaced each time has to be opened. Calls that
//! move data are *tiny-reads* or *tiny-writes*. Calls that change something are no questions:
//! locking a file, marking a descriptor, watching a socket. CPU time is another one each time: reading it is a
//! finding where it takes much of the time, and may be wanted. A question about another connection
//! each time is a new question, though the descriptor's number is the same.
//!
//! # What to do
//! Ask once and keep the answer: cache the parsed file by its path, keep the descriptor open, read
//! the clock once per batch.
//!
//! # Seen in
//! A mailer that opens its template and its settings for every message.
//! In `tests/programs`: `recheck.cpp`, `close_numbers.c`.

mod advice;
mod kinds;
mod loading;
mod not_open;
mod orders;

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::questions::{MANY, repeats_question};
use crate::inspect::same_files::{Reopened, asks_by_path, knows_paths, rechecks, reopened};
use crate::inspect::syscalls::entry_cost::{at_least, user_side_per_call};
use crate::inspect::syscalls::{LibraryCode, interpreter};
use crate::inspect::{Draft, Sum, calls_by_name, counted_calls, processes_in, with_user_side};
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;
use kinds::{goes_with_files, goes_with_starting, is_collectors, may_write_paths};

pub(super) const CLASS: Class = Class {
    id: "repeated-syscalls",
    source: include_str!("repeated_syscalls.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// What a function makes of the contents takes no more than so many times as long as loading them; else it does
/// something besides.
const MAKES: u64 = 3;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Call(id, _) = slice.what else { return false };
    let group = facts.call_groups.get(id);
    // Go's runtime calls it before each signal that interrupts a goroutine.
    let runtimes = group.name == "getpid" && facts.processes.get(group.process).language == "Go";
    if group.starting || runtimes || is_collectors(facts, group) {
        return false;
    }
    if not_open::is_of_numbers(group) {
        return true;
    }
    if asks_by_path(group) {
        return reopened(facts, group.process).is_some() || rechecks(facts, group.process);
    }
    if group.calls >= MANY && repeats_question(facts, group) {
        return true;
    }
    orders::kind(facts, group).is_some() || goes_with_files(facts, group)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter(|process| {
            let calls = found.wall.of_process(account, *process).map(|e| e.count).sum();
            !goes_with_starting(found.facts, *process, calls)
        })
        .flat_map(|process| {
            let own = [not_open::draft(found, process), draft(found, account, process)];
            own.into_iter().flatten().chain(orders::drafts(found, process))
        })
        .collect()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let of_process = || found.wall.of_process(account, process);
    let entries =
        || of_process().filter(|e| !not_open::is_at(facts, e) && orders::of(facts, e).is_none());
    let sum = Sum::of(entries());
    if sum.ns == Ns::ZERO {
        return None;
    }
    let mut of_files = 0;
    for entry in entries() {
        if let Detail::Calls(group) = entry.detail {
            let group = facts.call_groups.get(group);
            of_files += if repeats_question(facts, group) { 0 } else { entry.count };
        }
    }
    let by_name = calls_by_name(facts, entries(), 5);
    let calls: Vec<&str> = by_name.iter().map(|(_, said)| said.as_str()).collect();
    let files = of_files * 2 > sum.count;
    let purpose = reopened(facts, process).filter(|_| files);
    let by_address = files && purpose.is_none() && !knows_paths(facts, process);
    if by_address && may_write_paths(found, process, of_files) {
        return None;
    }
    let around = LibraryCode::around(found, process, &sum.places, sum.ns).all();
    let saving =
        with_user_side(found, process, sum.ns, sum.count, user_side_per_call(facts)) + around;
    let loads = if files { loading::of_functions(found, process, &sum.places) } else { Ns::ZERO };
    let interpreted = interpreter::around(found, process, &sum.places);
    let live = matches!(purpose, Some(Reopened::Live));
    let most = saving.max(sum.ns + loads.min(Ns(sum.ns.0.saturating_mul(MAKES))))
        + interpreted
        + if live { loading::of_live_files(found, process) } else { Ns::ZERO };
    let first = by_name.first().map_or("", |name| name.0);
    let asker = advice::library_that_asks(facts, first, &sum.places);
    let least = if asker.is_some() { Ns::ZERO } else { at_least(found, sum.ns, sum.count) };
    let name = facts.name(process);
    let times = counted_calls(facts, entries()).iter().map(|(count, _)| count).sum();
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: advice::title(purpose, files, first),
        text: format!("{name} asked the kernel {}: {}.", things(times, "time"), calls.join(", ")),
        amount: sum.ns,
        saving: (saving + most).part(0.5),
        range: (least, most),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, times),
        evidence: loading::evidence(facts, process, (around, interpreted), purpose.is_some()),
        remedy: match asker {
            Some(name) => advice::for_library(name),
            None if advice::CLOCKS.contains(&first) => advice::CLOCK.into(),
            None => advice::of(facts, process, purpose, files, &sum.places),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};
    use expect_test::expect;

    /// Opens, reads and closes a file per message; the read returns `size(message)`. Of one opening in 7 the recorder
    /// sees that it is of the file `file(message)`.
    fn mailer_of(messages: u64, size: impl Fn(u64) -> u64, file: impl Fn(u64) -> u64) -> String {
        let message =
            |at: u64| {
                let (message, size) = (at / 1000, size(at / 1000));
                let seen = match message % 7 {
                    0 => format!("{} fd 3 /site/{}.conf\n", at + 305, file(message)),
                    _ => String::new(),
                };
                format!(
                "{at} syscall openat 0 1 0 from os.ReadFile <- main.template (main.go:29) <- main
                 {} back 3\n{seen}{} syscall read 3 512\n{} back {size}
                 {} syscall close 3\n{} back 0\n",
                at + 300, at + 310, at + 400, at + 410, at + 500
            )
            };
        let end = messages * 1000;
        let messages = repeat(messages, 0, 1000, message);
        format!("task 1 mail\n0 on\n0 main\n{messages}{end} exit\n{end} off dead")
    }

    /// The same with 12 files.
    fn mailer(messages: u64, size: impl Fn(u64) -> u64) -> String {
        mailer_of(messages, size, |message| message % 12)
    }

    #[test]
    fn the_same_few_files_are_found() {
        expect![[r#"
            repeated-syscalls 48 % (35..56) @ main.template:29: mail asked the kernel 3 000 times: read ×1 000, openat ×1 000, close ×1 000.
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
            repeated-syscalls 74 % (35..89) @ main.template:29: mail asked the kernel 3 000 times: read ×1 000, openat ×1 000, close ×1 000.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn many_files_once_each_are_refused() {
        assert_eq!(found(&mailer(1000, |i| 100 + i)), "");
        assert_eq!(found(&mailer(100, |i| 100 + i % 12)), "");
    }

    #[test]
    fn many_files_of_one_size_are_refused() {
        assert_eq!(found(&mailer_of(2000, |_| 41, |message| message)), "");
        assert_eq!(found(&mailer_of(2000, |_| 41, |message| message / 2)), "");
        let unseen = mailer(2000, |_| 41).replace("fd 3 /site", "fd 9 /site");
        assert_eq!(found(&unseen), "");
    }

    #[test]
    fn files_opened_for_each_write_are_found_but_not_emptied_ones_which_are_refused() {
        let write = |flags: &str, file: fn(u64) -> u64| {
            let text = mailer_of(1000, |_| 40, file).replace("read 3 512", "write 3 40");
            found(&text.replace("openat 0 1 0", &format!("openat 0 1 {flags}")))
        };
        let text = write("1025", |_| 1);
        assert!(text.starts_with("repeated-syscalls") && text.contains("2 000 times"), "{text}");
        assert!(!write("577", |_| 1).contains("repeated-syscalls"));
        assert!(!write("1025", |message| message).contains("repeated-syscalls"));
    }

    #[test]
    fn files_of_the_kernel_are_read_anew_and_only_their_opening_is_found() {
        let text = found(&mailer_of(1000, |at| at, |at| at % 12).replace("/site/", "/proc/7/"));
        assert!(text.contains("2 000 times: openat ×1 000, close ×1 000"), "{text}");
    }
    #[test]
    fn files_opened_for_each_sendfile_are_found_without_the_sending() {
        let send = |file: fn(u64) -> u64| {
            found(&mailer_of(1000, |_| 40, file).replace("read 3 512", "sendfile 7 3 0 40"))
        };
        let text = send(|_| 1);
        assert!(text.contains("2 000 times: openat ×1 000, close ×1 000"), "{text}");
        assert!(!send(|message| message).contains("repeated-syscalls"));
    }

    #[test]
    fn asking_by_path_is_found_unless_another_path_may_be_written_between() {
        // Between two calls are 200 ns: a path takes less. Only 100 ns are too short.
        assert_eq!(found(&asking(&["newfstatat 4294967196 0x7ffe5bffba76 0"])), "");
        let asked = |other: &str, every: u64| {
            let calls = repeat(1000, 0, 300, |at| {
                let name = if at / 300 % every == 1 { other } else { "newfstatat" };
                format!(
                    "{at} syscall {name} 4294967196 0x7ffe5bffba76 0 from age (a.c:9) <- main\n{} back 0\n",
                    at + 200
                )
            });
            found(&format!("task 1 a\n0 on\n0 main\n{calls}300000 exit\n300000 off dead"))
        };
        assert!(asked("newfstatat", 2).starts_with("repeated-syscalls 67 %"));
        // A walk through folders: listings of many names, or a change of each file.
        assert_eq!(asked("getdents64", 900), "");
        assert_eq!(asked("fchmodat", 2), "");
    }

    #[test]
    fn paths_that_were_recorded_decide_and_not_what_was_seen_of_descriptors() {
        // Nothing is known of the descriptors, but the paths of all openings are: so many distinct ones.
        let opening = |paths: u64| {
            let calls = repeat(800, 0, 600, |at| {
                let path = 0x9000_0000_0000_0000_u64 + at / 600 % paths;
                format!(
                    "{at} syscall openat 4294967196 {path:#x} 0 from load (a.c:7) <- main\n{} back 3\n\
                     {} syscall read 3 512 from load (a.c:8) <- main\n{} back 90\n\
                     {} syscall close 3 from load (a.c:9) <- main\n{} back 0\n",
                    at + 150,
                    at + 200,
                    at + 350,
                    at + 400,
                    at + 500,
                )
            });
            let end = 800 * 600;
            format!("task 1 a\n0 on\n0 main\n{calls}{end} exit\n{end} off dead")
        };
        let few = found(&opening(4));
        assert!(few.starts_with("repeated-syscalls") && few.contains("@ load:7"), "{few}");
        assert!(
            weighed(&opening(4)).findings[0]
                .evidence
                .contains(&"800 openings were of 4 paths".into())
        );
        assert_eq!(found(&opening(400)), "");
        let mapped = |paths| opening(paths).replace("syscall read 3 512", "syscall mmap 90 1 2 3");
        assert!(found(&mapped(4)).starts_with("repeated-syscalls"), "{}", found(&mapped(4)));
        assert_eq!(found(&mapped(400)), "");
    }

    #[test]
    fn counted_calls_are_about_the_paths_of_the_calls_between_them() {
        // One in three is recorded with its path, of so many; the others are counted and have an address.
        let ask = |number: u64, paths: u64| {
            let calls = repeat(600, 0, 1000, |at| {
                let path = number + at / 1000 % paths;
                format!(
                    "{at} syscall newfstatat 4294967196 {path:#x} 0 from age (a.c:9) <- main\n{} back 0\n\
                     {} calls 2 newfstatat 4294967196 0x7ffe5bffba76 0 back 0 inside 400 over 500\n",
                    at + 200,
                    at + 900
                )
            });
            found(&format!("task 1 a\n0 on\n0 main\n{calls}600000 exit\n600000 off dead"))
        };
        let numbered = 0x9000_0000_0000_0000;
        let one = ask(numbered, 1);
        assert!(one.starts_with("repeated-syscalls") && one.contains("@ age:9"), "{one}");
        assert_eq!(ask(numbered, 600), "");
        // Paths too long for a number, one after the other at one address.
        assert_eq!(ask(0x7ffe_5bff_ba00, 1), "");
    }

    #[test]
    fn a_path_asked_for_again_is_known_however_much_time_there_is_between() {
        let ask = |paths: u64| {
            let calls: Vec<String> = (0..paths)
                .map(|n| format!("newfstatat 4294967196 {:#x} 0", 0x9000_0000_0000_0000_u64 + n))
                .collect();
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            found(&asking(&calls))
        };
        assert!(ask(1).starts_with("repeated-syscalls 50 %"), "{}", ask(1));
        let other = |i: u64| {
            format!(
                "{} syscall newfstatat 4294967196 {:#x} 0 from age (a.c:9) <- main\n{} back 0\n",
                i * 400,
                0x9000_0000_0000_0000_u64 + i,
                i * 400 + 200
            )
        };
        let walk: String = (0..1000).map(other).collect();
        let text = format!("task 1 a\n0 on\n0 main\n{walk}400000 exit\n400000 off dead");
        assert_eq!(found(&text), "");
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

    /// A program that makes these calls 1000 times.
    fn asking(calls: &[&str]) -> String {
        let ask = |at| {
            let call = |(i, call): (u64, &&str)| {
                let (what, result) = call.split_once(" = ").unwrap_or((call, "0"));
                let (from, to) = (at + 400 * i, at + 400 * i + 200);
                format!("{from} syscall {what} from step (a.c:7) <- main\n{to} back {result}\n")
            };
            (0..).zip(calls).map(call).collect::<String>()
        };
        let each = 400 * calls.len() as u64;
        let (asked, end) = (repeat(1000, 0, each, ask), each * 1000);
        format!("task 1 a\n0 on\n0 main\n{asked}{end} exit\n{end} off dead")
    }

    #[test]
    fn a_question_about_one_descriptor_is_found() {
        for ask in ["fcntl 0 3 0", "ioctl 0 0x5413 0", "lseek 0 0 2", "getsockname 0"] {
            let text = found(&asking(&[ask]));
            assert!(text.starts_with("repeated-syscalls 50 %"), "{ask}: {text}");
        }
    }

    #[test]
    fn calls_that_change_something_are_refused() {
        // A lock, F_SETFD, F_DUPFD_CLOEXEC, SEEK_SET, SIGPIPE, TCP_NODELAY.
        for order in [
            "fcntl 0 6 4096",
            "fcntl 0 2 1",
            "fcntl 0 1030 3 = 4",
            "lseek 0 0 0",
            "ioctl 0 0x5402 0",
            "rt_sigaction 13 0 0 8",
            "rt_sigprocmask 2 0 0 8",
            "setsockopt 0 6 1 4",
            "epoll_ctl 3 1 0",
            "setitimer 0 0 0",
        ] {
            assert_eq!(found(&asking(&[order])), "", "{order}");
        }
    }

    #[test]
    fn questions_about_another_descriptor_each_time_are_refused() {
        let connection = ["accept4 0 0 0 0 = 5", "getsockname 5", "read 5 9 = 9", "close 5"];
        assert_eq!(found(&asking(&connection)), "");
        assert_eq!(found(&asking(&["openat 0 1 0 = 5", "fcntl 5 3 0", "close 5"])), "");
    }

    #[test]
    fn what_a_library_computes_besides_is_refused() {
        let with = |samples: u64| {
            let mut text = String::new();
            for line in asking(&["getppid = 1"]).lines() {
                text += &format!("{line}\n");
                if let Some(at) = line.strip_suffix(" back 1") {
                    let at: u64 = at.parse().unwrap_or(0);
                    let library = at / 400 % 100 < samples;
                    let stack = if library { "std::run <- step (a.c:7) <- main" } else { "main" };
                    text += &format!("{} sample {stack}\n", at + 100);
                }
            }
            text.replace("from step", "from std::run <- step")
        };
        // Half of the time is in the calls. A fifth of the rest may be work around them; all of it, with much more
        // time between, would not be.
        assert!(found(&with(20)).starts_with("repeated-syscalls 60 %"), "{}", found(&with(20)));
        let longer = |text: String| {
            let times = |line: &str| {
                let (at, rest) = line.split_once(' ')?;
                let at: u64 = at.parse().ok()?;
                let stretched = at / 400 * 4000 + at % 400;
                Some(format!("{stretched} {rest}\n"))
            };
            text.lines().map(|l| times(l).unwrap_or(format!("{l}\n"))).collect::<String>()
        };
        let text = found(&longer(with(100)));
        assert!(text.starts_with("repeated-syscalls 5 % (4..6)"), "{text}");
    }

    #[test]
    fn a_program_is_found_whatever_its_name_is() {
        let text = asking(&["getppid = 1"]).replace("task 1 a", "task 1 node");
        assert!(found(&text).starts_with("repeated-syscalls 50 %"), "{}", found(&text));
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
            repeated-syscalls 50 % (38..57) @ pid:7: a asked the kernel 1 000 times: getppid ×1 000.
        "#]]
        .assert_eq(&found(&text(1000)));
        assert_eq!(found(&text(100)), "");
    }
}
