//! Tiny reads.
//!
//! # What it is
//! A file, pipe or socket is read in many small pieces. Each piece is a system call, and entering
//! and leaving the kernel costs more than copying the bytes.
//!
//! # How deadweight knows
//! The trace has every call with the size that the program asked for. Of frequent calls, which the
//! kernel counts, one in 29 is timed; else the time inside is exact, except for the cost of entering
//! and leaving the kernel: this is calibrated, to about 30 ns per call. Of the program's own time, only samples at the call or in its library wrapper count
//! as saving.
//! What library functions do on the way to the calls (locks, the runtime's states) goes away with them.
//! In a script, what CPython, Perl, PHP or Node does around the calls belongs to the upper end.
//!
//! # What it is mistaken for
//! A reader that asks for more than it gets: a larger buffer would get the same. A few small
//! reads; small files that are read once; a dialogue, in which each read takes the answer to a
//! request, whether the read itself waits or an `epoll_wait` before it.
//!
//! # What to do
//! Read blocks of 64 KiB into a buffer and take the pieces from there.
//!
//! # Seen in
//! An Ethereum virtual machine in Zig: one read per byte of its input program, 35 times slower than with a buffer.
//! In `tests/programs`: `count_bytes.c`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::syscalls::entry_cost::{at_least, with_syscall_entry};
use crate::inspect::syscalls::interpreter;
use crate::inspect::syscalls::small_calls::{SmallCalls, Stream, needed};
use crate::timeline::descriptors::ObjectKind;

pub(super) const CLASS: Class = Class {
    id: "tiny-reads",
    source: include_str!("tiny_reads.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer calls than this are not worth reporting.
pub(super) const MANY: u64 = 64;
/// Pieces above this size cost more to copy than to fetch.
pub(super) const TINY: u64 = 2048;
/// Fewer calls than this on one object are a small file, read once.
pub(super) const PER_OBJECT: u64 = 16;
fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    matches!(slice.what, What::Call(group, _) if is_tiny(facts.call_groups.get(group)))
}

fn is_tiny(group: &CallGroup) -> bool {
    let reads = matches!(group.name, "read" | "pread64" | "recvfrom");
    reads
        && is_stream(group)
        && !group.starting
        && group.calls >= MANY
        && group.per_object() >= PER_OBJECT
        && group.mean_asked() <= TINY
        && can_be_joined(group)
        && group.blocked * 2 < group.calls
        && group.failed * 2 < group.calls
}

/// Whether its object carries bytes, not messages that must stay apart, and not for a person.
pub(super) fn is_stream(group: &CallGroup) -> bool {
    use ObjectKind::{Anonymous, Datagrams, Terminal};
    !matches!(group.kind, Some(Terminal | Anonymous | Datagrams))
}

/// Whether most of the calls could be joined with the one before.
pub(super) fn can_be_joined(group: &CallGroup) -> bool {
    // A little less than half of them: a header and a body, read one after the other.
    needed(group) * 5 <= group.calls * 3
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let calls = SmallCalls::of(facts, found.wall.of_process(account, process))?;
    let saving = with_syscall_entry(found, process, calls.saved(), calls.on_path, &calls.places);
    let around = calls.around(found, process);
    let interpreted = calls.interpreted(found, process);
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "tiny reads".into(),
        text: calls.text(),
        amount: calls.ns,
        saving: saving + around.on_the_way + interpreted.part(0.5),
        range: (
            at_least(found, saving.min(calls.ns), calls.on_path),
            saving + around.all() + interpreted,
        ),
        how: calls.how(),
        sites: calls.sites(facts),
        evidence: calls.evidence().into_iter().chain(interpreter::evidence(interpreted)).collect(),
        remedy: remedy(&facts.processes.get(process).language, calls.stream()).into(),
    })
}

fn remedy(language: &str, stream: Stream) -> &'static str {
    match language {
        "C" | "C++" if stream == Stream::Socket => {
            "Receive as much as there is into a buffer of 64 KiB, and take the messages from it."
        }
        "C" => {
            "Read 64 KiB blocks into a buffer and take the pieces from it, or use stdio's fread, \
             which does this."
        }
        "C++" => {
            "Read 64 KiB blocks into a buffer and take the pieces from it; std::ifstream has a buffer \
             unless the program turned it off."
        }
        "Rust" => "Wrap the source: let mut input = std::io::BufReader::new(input);",
        "Go" => "Wrap the source: input := bufio.NewReaderSize(input, 64<<10)",
        "Zig" => "Wrap the source: var input = std.io.bufferedReader(file.reader());",
        "Crystal" => {
            "Leave IO buffering on (io.sync = false, io.read_buffering = true), or read slices."
        }
        "Python" if stream == Stream::Socket => {
            "Receive blocks (sock.recv(65536)), or read through sock.makefile('rb')."
        }
        "Python" if stream == Stream::Standard => {
            "Read through sys.stdin.buffer, or blocks: os.read(0, 65536)."
        }
        "JavaScript" => {
            "Read into a Buffer of 64 KiB and take the pieces from it, or use a stream with \
             highWaterMark: 65536."
        }
        "Java" => "Wrap the source: new BufferedInputStream(in, 65536).",
        "Ruby" => "Read with gets, each_line or read(65536), not with sysread.",
        "PHP" => {
            "Read blocks (fread($f, 65536), stream_get_contents), and take the pieces from there."
        }
        "Perl" => "Read with <$file> or read, not with sysread.",
        "Python" => "Open with buffering, or read blocks: open(path, 'rb', buffering=65536).",
        "shell" => {
            "The shell's read takes one byte at a time from a pipe, and dash from a file, too: let awk or another program do \
             the loop."
        }
        _ => "Read blocks of 64 KiB into a buffer and take the pieces from there.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, rows};
    use expect_test::expect;

    /// A program that reads `size` bytes at a time, each call taking 300 ns of every 400.
    fn reader(name: &str, calls: u64, size: u64, got: u64) -> String {
        let read = |at| {
            format!(
                "{} syscall read 0 {size} from {name} (t.c:63) <- main (t.c:99)
                 {} back {got}\n",
                at + 100,
                at + 400
            )
        };
        let end = calls * 400 + 1000;
        let reads = repeat(calls, 0, 400, read);
        format!("task 1 t\n0 fd 0 /data\n0 on\n0 main\n{reads}{end} exit\n{end} off dead")
    }

    #[test]
    fn a_byte_at_a_time_is_found() {
        let text = reader("take", 1000, 1, 1);
        expect![[r#"
            tiny-reads 75 % (61..79) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]]
        .assert_eq(&found(&text));
        expect![[r#"
            tiny-reads 300000 read ×1 000, 1 byte each
            net-work 101000
        "#]]
        .assert_eq(&rows(&text, 2));
    }

    #[test]
    fn reads_of_what_ran_in_the_process_before_are_refused() {
        let read = |at| format!("{} syscall read 0 1\n{} back 1\n", at + 100, at + 400);
        let reads = repeat(1000, 10_000, 400, read);
        let before = "20 syscall read 3 4096\n90 back 4096\n";
        let with = |exec: &str| {
            found(&format!(
                "task 1 t\n0 on\n0 exec /usr/bin/env\n5 main\n{before}{exec}{reads}500000 exit\n500000 off dead"
            ))
        };
        let later = with("1000 exec /usr/bin/t\n1100 main\n");
        assert!(later.contains("read was called 1 000 times for 1 byte each"), "{later}");
        // The same program is found with all its reads.
        assert!(with("").contains("read was called 1 001 times"));
    }

    #[test]
    fn reads_in_one_piece_of_a_file_are_found_and_those_at_separate_places_are_refused() {
        let with = |call: fn(u64) -> String, between: &str| {
            let read = |at| {
                let between = match between {
                    "" => String::new(),
                    between => format!("{} syscall {between}\n{} back 0\n", at + 10, at + 50),
                };
                let call = call(at / 400);
                format!(
                    "{between}{} syscall {call} from take (t.c:63) <- main\n{} back 16\n",
                    at + 100,
                    at + 400
                )
            };
            let reads = repeat(1000, 0, 400, read);
            found(&format!(
                "task 1 t\n0 fd 3 /data\n0 on\n0 main\n{reads}401000 exit\n401000 off dead"
            ))
        };
        let plain = |_| "read 3 16".to_owned();
        assert!(with(plain, "").contains("1 call of up to"));
        assert!(
            with(plain, "lseek 3 0 1").contains("1 call of up to"),
            "it only asks where the file is"
        );
        assert_eq!(with(plain, "lseek 3 4096 0"), "");
        assert!(with(|i| format!("pread64 3 16 {}", i * 16), "").contains("1 call of up to"));
        assert_eq!(with(|_| "pread64 3 16 0".to_owned(), ""), "");
        let stored = |call: fn(u64) -> String| with(call, "fdatasync 3");
        assert!(!stored(|_| "write 3 16".to_owned()).contains("tiny-writes"));
    }

    #[test]
    fn calls_that_were_counted_together_are_the_same_finding() {
        // Ten calls are recorded, the others counted 99 at a time.
        let calls = |at: u64| {
            format!(
                "{} syscall read 0 1 from take (t.c:63) <- main (t.c:99)
                 {} back 1
                 {} calls 99 read 0 1 back 1 inside 29700 over 39600\n",
                at + 100,
                at + 400,
                at + 400
            )
        };
        let text = format!(
            "task 1 t\n0 fd 0 /data\n0 on\n0 main\n{}401000 exit\n401000 off dead",
            repeat(10, 0, 40_000, calls)
        );
        expect![[r#"
            tiny-reads 75 % (61..79) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]]
        .assert_eq(&found(&text));
        assert_eq!(rows(&text, 2), rows(&reader("take", 1000, 1, 1), 2));
    }

    #[test]
    fn the_cost_of_kernel_entry_and_exit_is_found_by_samples() {
        // Of 40 samples of its own time, 30 are just after the call, 8 in the function that makes
        // it.
        let sample = |i| match i % 25 {
            0 if i < 750 => "read @libc.so.6+0x11 <- take (t.c:63) @0x99",
            0 if i < 950 => "read @libc.so.6+0x20 <- take (t.c:63) @0x99",
            _ => "take (t.c:60) @0x90",
        };
        let read = |at| {
            let sample = match at / 400 {
                i if i % 25 == 0 => format!("{} sample {}\n", at + 50, sample(i)),
                _ => String::new(),
            };
            format!(
                "{sample}{} syscall read 0 1 from read @libc.so.6+0x10 <- take (t.c:63) @0x99
                 {} back 1\n",
                at + 100,
                at + 400
            )
        };
        let text = format!(
            "image t path /bin/t\nimage libc.so.6 path /lib/libc.so.6\nsample-period 2500\n\
             task 1 t\n0 fd 0 /data\n0 on\n0 main\n{}401000 exit\n401000 off dead",
            repeat(1000, 0, 400, read)
        );
        expect![[r#"
            tiny-reads 98 % (61..100) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&text));
        // The same samples elsewhere: then they do not belong to the call's entry and exit.
        let elsewhere = text.replace("read @libc.so.6+0x11 <-", "get (t.c:9) @0x80 <-");
        let elsewhere = elsewhere.replace("read @libc.so.6+0x20 <-", "get (t.c:9) @0x81 <-");
        expect![[r#"
            tiny-reads 75 % (61..79) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&elsewhere));
    }

    #[test]
    fn few_reads_large_reads_and_starved_readers_are_refused() {
        assert_eq!(found(&reader("take", 20, 1, 1)), "");
        assert_eq!(found(&reader("take", 1000, 65_536, 65_536)), "");
        // It asks for much and gets only what the writer wrote: the reader is not the cause.
        assert_eq!(found(&reader("take", 1000, 65_536, 40)), "");
    }

    /// A reader of socket 3 that asks for `size` bytes at a time and gets `got`, after `between`.
    fn asker(size: u64, got: u64, between: impl Fn(u64) -> String) -> String {
        let read = |at| {
            format!(
                "{}{} syscall read 3 {size} from take (t.c:63) <- main\n{} back {got}\n",
                between(at),
                at + 600,
                at + 900
            )
        };
        let reads = repeat(1000, 0, 1000, read);
        format!(
            "task 1 t\n0 fd 3 socket:[3]\n0 fd 2 anon_inode:[eventpoll]\n0 on\n0 main\n{reads}1001000 exit\n1001000 off dead"
        )
    }

    #[test]
    fn reads_that_took_all_there_was_are_refused() {
        let nothing = |_| String::new();
        assert_eq!(found(&asker(1024, 64, nothing)), "");
        // The same pieces, but more was there each time.
        assert!(found(&asker(64, 64, nothing)).starts_with("tiny-reads"));
    }

    #[test]
    fn reads_of_answers_are_refused() {
        let order = |at| format!("{} syscall write 3 9\n{} back 9\n", at + 10, at + 100);
        assert_eq!(found(&asker(1, 1, order)), "");
        let wait = |at| {
            format!(
                "{} off blocked epoll_wait 2 64 100 : ep_poll\n{} on woken-by interrupt\n{} back 1\n",
                at + 10,
                at + 300,
                at + 310
            )
        };
        assert!(!found(&asker(1, 1, wait)).contains("tiny-reads"));
    }

    #[test]
    fn a_byte_at_a_time_of_each_message_is_found() {
        let order = |at: u64| match at % 10_000 {
            0 => format!("{} syscall write 3 9\n{} back 9\n", at + 10, at + 100),
            _ => String::new(),
        };
        expect![[r#"
            tiny-reads 27 % (22..34) @ take:63: read was called 1 000 times for 1 byte each; 100 calls of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&asker(1, 1, order)));
    }
}
