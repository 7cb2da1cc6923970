//! Tiny reads.
//!
//! # What it is
//! A file, pipe or socket is read in many small pieces. Each piece is a system call, and entering
//! and leaving the kernel costs more than copying the bytes.
//!
//! # How deadweight knows
//! The trace has every call with the size that the program asked for. The time inside the calls is
//! exact, except for the cost of entering and leaving the kernel: this is calibrated, to about 30
//! ns per call. The saving in the program's own code is the time that samples find at the call and
//! in the library function that makes it, and nowhere else.
//!
//! # What it is mistaken for
//! A reader that asks for much and gets little, because the writer writes little; a few small
//! reads; small files that are read once; a dialogue, in which each read waits for the answer to a
//! request.
//!
//! # What to do
//! Read blocks of 64 KiB into a buffer and take the pieces from there.
//!
//! # Seen in
//! Zig EVM: one read per byte of the program, 35 times slower than with a buffer.
//! In `tests/programs`: `count_bytes.c`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::syscall_entry_cost::{at_least, with_syscall_entry};
use crate::inspect::{Draft, Sum};
use crate::timeline::descriptors::ObjectKind;
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, count, things, time};
use deadweight_trace::units::Ns;

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
/// What remains per byte: copying from the page cache, at 10 GB/s.
pub(super) const NS_PER_10_BYTES: u64 = 1;
/// The block size that the remedy recommends.
pub(super) const BLOCK: u64 = 65_536;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    matches!(slice.what, What::Call(group, _) if is_tiny(facts.call_groups.get(group)))
}

fn is_tiny(group: &CallGroup) -> bool {
    let reads = matches!(group.name, "read" | "pread64" | "recvfrom");
    let source = !matches!(group.kind, Some(ObjectKind::Terminal | ObjectKind::Anonymous));
    reads
        && source
        && !group.starting
        && group.calls >= MANY
        && group.per_object() >= PER_OBJECT
        && group.mean_asked() <= TINY
        && group.blocked * 2 < group.calls
        && group.failed * 2 < group.calls
}

/// The sizes asked for, as words of a sentence.
pub(super) fn sizes(group: &CallGroup) -> String {
    match group.sizes {
        (low, high) if low == high => format!("{} each", bytes(low)),
        (low, high) => {
            format!("{low} to {}, {} on average", bytes(high), bytes(group.mean_asked()))
        }
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The group with most time among these entries.
pub(super) fn main_group<'e, 'c>(
    entries: impl Iterator<Item = &'e Entry>,
    facts: &'c Facts<'_>,
) -> Option<&'c CallGroup> {
    entries.max_by_key(|e| e.ns).and_then(|e| match e.detail {
        Detail::Calls(group) => Some(facts.call_groups.get(group)),
        _ => None,
    })
}

/// What is saved if `calls` with `busy` time in all and `moved` bytes become calls of [`BLOCK`].
pub(super) fn saved(busy: Ns, calls: u64, moved: u64) -> Ns {
    let needed = moved / BLOCK + 1;
    let kept = busy.0 / calls.max(1) * needed.min(calls) + moved * NS_PER_10_BYTES / 10;
    busy - Ns(kept)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let sum = Sum::of(found.wall.of_process(account, process));
    let group = main_group(found.wall.of_process(account, process), facts)?;
    let moved = group.bytes / group.calls.max(1) * sum.count;
    let saving = saved(sum.ns, sum.count, moved);
    let saving = with_syscall_entry(found, process, saving, sum.count, &sum.places);
    let per_call = Ns(sum.ns.0 / sum.count.max(1));
    let needed = group.bytes / BLOCK + 1;
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "tiny reads".into(),
        text: format!(
            "{} was called {} for {}; {} of up to 64 KiB would do the same.",
            group.name,
            things(group.calls, "time"),
            sizes(group),
            things(needed, "call"),
        ),
        amount: sum.ns,
        saving,
        range: (at_least(saving.min(sum.ns), sum.count), saving),
        how: How::Exact,
        sites: sites(facts.symbols(), &group.places(&sum.places), group.calls),
        evidence: vec![format!(
            "{} calls, {} in all, {} per call in the kernel",
            count(group.calls),
            bytes(group.bytes),
            time(per_call)
        )],
        remedy: remedy(&facts.processes.get(process).language).into(),
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
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
        "Python" => "Open with buffering, or read blocks: open(path, 'rb', buffering=65536).",
        "shell" => {
            "The shell's read takes one byte at a time from a pipe: let awk or another program do the \
             loop, or read from a file."
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
            tiny-reads 75 % (67..75) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]]
        .assert_eq(&found(&text));
        expect![[r#"
            tiny-reads 300000 read ×1 000, 1 byte each
            net-work 101000
        "#]]
        .assert_eq(&rows(&text, 2));
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
            tiny-reads 75 % (67..75) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
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
            tiny-reads 98 % (67..98) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&text));
        // The same samples elsewhere: then they do not belong to the call's entry and exit.
        let elsewhere = text.replace("read @libc.so.6+0x11 <-", "get (t.c:9) @0x80 <-");
        let elsewhere = elsewhere.replace("read @libc.so.6+0x20 <-", "get (t.c:9) @0x81 <-");
        expect![[r#"
            tiny-reads 75 % (67..75) @ take:63: read was called 1 000 times for 1 byte each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&elsewhere));
    }

    #[test]
    fn few_reads_large_reads_and_starved_readers_are_refused() {
        assert_eq!(found(&reader("take", 20, 1, 1)), "");
        assert_eq!(found(&reader("take", 1000, 65_536, 65_536)), "");
        // It asks for much and gets only what the writer wrote: the reader is not the cause.
        assert_eq!(found(&reader("take", 1000, 65_536, 40)), "");
    }
}
