//! Findings about waits for the disk outside `fsync` and similar calls: in writes to files opened with O_SYNC
//! or O_DSYNC, in calls that free blocks of files, and in all other calls.

use super::calls::{frees as is_free, is_write};
use super::{CLASS, FREQUENT};
use crate::account::{Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_groups::{CallGroup, READS};
use crate::facts::call_site::sites;
use crate::facts::durable::{O_DSYNC, OpenedWith};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Inspection, Sum};
use crate::timeline::Block;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::ids::CallId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The part of waits and calls that larger blocks, or the kernel's memory, likely save of direct reads and writes: a
/// journal with blocks of 4 KiB saved 84 % with 1 MiB, and 82 % without O_DIRECT, of 95 %.
const OF_DIRECT: f64 = 0.7;

/// Writes to files that were opened so that each write waits: their whole time, in the kernel and blocked.
pub(super) fn durable(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum) -> Option<Draft> {
    let groups = found.facts.call_groups.of_process(process);
    let writes: u64 = groups.filter(|(_, group)| group.durable).map(|(_, group)| group.calls).sum();
    let text = format!(
        "{} wrote {} to a file that was opened with O_DSYNC or O_SYNC: each write waits until its \
         data is stored.",
        found.facts.name(process),
        things(writes, "time")
    );
    let sites = sites(found.facts.symbols(), &sum.places, writes);
    let saving = sum.ns - Ns(sum.ns.0 / writes.max(1));
    let draft = draft(found, process, sum, "each write waits for the disk", text, DURABLE);
    let range = (saving - (sum.ns - sum.alone), saving);
    draft.filter(|_| writes >= FREQUENT).map(|draft| {
        let evidence = opened_at(found.facts, &OpenedWith::of(found.facts, process, O_DSYNC));
        Draft { saving, range, sites, evidence, ..draft }
    })
}

/// Calls that remove, replace or cut off files.
pub(super) fn frees(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum) -> Option<Draft> {
    let facts = found.facts;
    let mut names: BTreeMap<&str, Ns> = BTreeMap::new();
    for block in facts.waits_of(process).filter(|b| b.waits_for == WaitsFor::Disk) {
        let name = facts.call_of(block);
        let args = block.call.map(|call| facts.timeline.args(&facts.timeline.calls[call.index()]));
        if is_free(name, args.unwrap_or_default()) {
            *names.entry(name).or_default() += block.end - block.start;
        }
    }
    let all: Ns = names.values().copied().sum();
    names.retain(|_, ns| ns.share_of(all) >= 0.1);
    let calls: Vec<&str> = names.into_keys().collect();
    let opens = calls.iter().any(|name| matches!(*name, "open" | "openat" | "creat"));
    let text = format!(
        "{} was blocked {} in {} until the file system had freed the blocks of what it removed, replaced or truncated.",
        facts.name(process),
        things(sum.count, "time"),
        calls.join(" and ")
    );
    let remedy = if opens { CUT_OFF } else { REMOVED };
    draft(found, process, sum, "replacing or removing files waits for the disk", text, remedy)
}

/// Reads, and waits for other reasons.
pub(super) fn rest(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum) -> Option<Draft> {
    let facts = found.facts;
    let most = |of: &dyn Fn(&str) -> bool| {
        let waits = facts.waits_of(process).filter(|b| b.waits_for == WaitsFor::Disk);
        let waits = waits.filter(|block| of(facts.call_of(block)) && !frees_blocks(facts, block));
        waits.map(|block| block.end - block.start).sum::<Ns>().share_of(sum.ns) > 0.5
    };
    // Without a call: a page of a mapped file, or of the program itself.
    let reads = |name: &str| name.is_empty() || READS.contains(&name) || FILE_CALLS.contains(&name);
    let blocked = format!(
        "{} was blocked {} until storage answered",
        facts.name(process),
        things(sum.count, "time")
    );
    let (title, text, remedy) = if most(&reads) && drops_what_it_read(facts, process) {
        let text = format!(
            "{blocked}, mostly for files that were not in memory: it drops what it has read \
             (posix_fadvise with POSIX_FADV_DONTNEED)."
        );
        ("files that were dropped from memory are read again", text, DROPPED)
    } else if most(&reads) {
        let text =
            format!("{blocked}, mostly for files that were not in memory yet (a cold page cache).");
        ("files are read for the first time", text, COLD)
    } else if most(&is_write) {
        ("waits for the disk", format!("{blocked}, mostly in order to write."), WRITES)
    } else {
        ("waits for the disk", format!("{blocked}."), OTHER)
    };
    let draft = draft(found, process, sum, title, text, remedy)?;
    let Some(direct) = past_memory(facts, process) else { return Some(draft) };
    let (title, how, remedy) = match most(&is_write) {
        true => (
            "each write goes to the disk by itself",
            "in calls on files that were opened with O_DIRECT: each write goes to the disk by itself",
            DIRECT_WRITES,
        ),
        false => (
            "files are read past the kernel's memory",
            "in calls on files that were opened with O_DIRECT: the kernel keeps nothing of them in memory",
            DIRECT_READS,
        ),
    };
    let evidence = opened_at(facts, &direct);
    let (text, title) = (format!("{blocked}, mostly {how}."), title.into());
    // Fewer calls, or the kernel's memory, save the calls' own time, too.
    let groups: BTreeSet<_> =
        direct.calls().filter_map(|call| facts.call_groups.id(call)).collect();
    let on_them = |e: &&Entry| matches!(e.detail, Detail::Calls(id) if groups.contains(&id));
    let calls: Ns = found.wall.entries.iter().filter(on_them).map(|e| e.ns).sum();
    let (saving, range) = ((sum.alone + calls).part(OF_DIRECT), (Ns::ZERO, sum.ns + calls));
    let how = How::Estimate;
    Some(Draft { title, text, evidence, saving, range, how, remedy: remedy.into(), ..draft })
}

/// The files that a process opened with O_DIRECT, if most of the time that it waits for the disk is for them.
fn past_memory(facts: &Facts<'_>, process: ProcessId) -> Option<OpenedWith> {
    let direct = OpenedWith::of(facts, process, syscall::o_direct(facts.trace.meta.arch));
    let waits = || facts.waits_of(process).filter(|block| block.waits_for == WaitsFor::Disk);
    let time = |block: &Block| block.end - block.start;
    let on_them = |block: &&Block| block.call.is_some_and(|call| direct.holds(call));
    let (some, all): (Ns, Ns) = (waits().filter(on_them).map(time).sum(), waits().map(time).sum());
    (some.share_of(all) > 0.5).then_some(direct)
}

/// Where files were opened, as evidence.
fn opened_at(facts: &Facts<'_>, files: &OpenedWith) -> Vec<String> {
    let sites = sites(facts.symbols(), &files.places, 0);
    let known = sites.into_iter().find(|site| site.line > 0);
    known
        .map(|site| {
            format!("opened so at {}:{}, in {}", file_name(&site.file), site.line, site.function)
        })
        .into_iter()
        .collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether most of the time in which the process waited for what it read was for files that it lets the kernel forget.
fn drops_what_it_read(facts: &Facts<'_>, process: ProcessId) -> bool {
    const DONT_NEED: u64 = 4;
    let timeline = facts.timeline;
    let advises = |group: &CallGroup| group.process == process && group.name == "fadvise64";
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let advices: u64 = groups.filter(|group| advises(group)).map(|group| group.calls).sum();
    if advices < FREQUENT {
        return false;
    }
    let (mut dropped, mut files) = (0, BTreeSet::new());
    for (index, call) in timeline.calls.iter().enumerate() {
        let group = facts.call_groups.id(CallId::at(index)).map(|id| facts.call_groups.get(id));
        if group.is_some_and(advises) && timeline.args(call)[3] == DONT_NEED {
            dropped += call.times();
            files.extend(call.object());
        }
    }
    let (mut all, mut of_files) = (Ns::ZERO, Ns::ZERO);
    for block in facts.waits_of(process).filter(|block| block.waits_for == WaitsFor::Disk) {
        let waited = block.end - block.start;
        let object = block.call.and_then(|call| timeline.calls[call.index()].object());
        all += waited;
        let of_file = object.is_some_and(|object| files.contains(&object));
        of_files += if of_file { waited } else { Ns::ZERO };
    }
    dropped >= FREQUENT && of_files.share_of(all) > 0.5
}

fn frees_blocks(facts: &Facts<'_>, block: &Block) -> bool {
    let args = block.call.map(|call| facts.timeline.args(&facts.timeline.calls[call.index()]));
    is_free(facts.call_of(block), args.unwrap_or_default())
}

fn draft(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    sum: &Sum,
    title: &str,
    text: String,
    remedy: &str,
) -> Option<Draft> {
    (sum.count >= FREQUENT).then(|| Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: title.into(),
        text,
        amount: sum.ns,
        saving: sum.alone,
        range: (Ns::ZERO, sum.ns),
        how: How::Exact,
        sites: sites(found.facts.symbols(), &sum.places, sum.count),
        evidence: Vec::new(),
        remedy: remedy.into(),
    })
}

const DURABLE: &str = "Open the file without O_DSYNC and O_SYNC and call fdatasync once per batch or when it \
                       is complete; a crash then loses what was written since. Or write larger blocks.";
const CUT_OFF: &str = "Nothing is read: opening with O_TRUNC frees the old contents. Keep the file open and \
                       overwrite it (pwrite, then ftruncate), or write it once. A file system that is \
                       mounted with `discard` reports to the device each freed block: fstrim now and then \
                       avoids that.";
const REMOVED: &str = "These waits are no reads. Remove or replace fewer files, or keep one open and \
                       overwrite it. A file system that is mounted with `discard` reports to the device each \
                       freed block: fstrim now and then avoids that.";
const WRITES: &str = "Leave the flushing to the kernel: write less, in larger blocks, or to a file whose \
                      blocks are allocated already.";
const DIRECT_WRITES: &str = "Write larger blocks, or several at once (io_uring, threads). Or open the file without O_DIRECT: then the \
                             kernel collects writes, and fdatasync at the end keeps them safe.";
const DIRECT_READS: &str = "Read larger blocks, or several at once (io_uring, threads). Or open the file without O_DIRECT: then \
                            what is read again comes from memory.";
const OTHER: &str =
    "The places show which calls wait: make fewer of them, or keep the data in memory.";
const COLD: &str = "A second run finds the files in memory: measure with -w 1 if that is the usual \
                    case. If the first run matters, read less, in larger blocks, or ahead of need \
                    (posix_fadvise, readahead).";

const DROPPED: &str = "Each run reads these files from storage, a second one too. Leave out POSIX_FADV_DONTNEED \
                       if they are read again soon and memory is free; or read ahead of need \
                       (POSIX_FADV_WILLNEED, readahead).";

/// Calls that read a file or its metadata, besides [`READS`].
const FILE_CALLS: &[&str] = &[
    "pread64",
    "preadv",
    "open",
    "openat",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents64",
    "getdents",
    "execve",
    "mmap",
];

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};
    use deadweight_report::report::Finding;

    /// A program that opens a file with these flags and makes this call on it, twenty times, waiting for the disk.
    fn works(flags: u64, call: &str) -> Finding {
        let one = |at: u64| {
            format!(
                "{at} syscall {call} 3 4096\n\
                 {} off blocked : io_schedule_timeout < __iomap_dio_rw from work (log.c:9) <- main (log.c:20)\n\
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt\n{} back 4096\n",
                at + 20,
                at + 160,
                at + 170
            )
        };
        let text = format!(
            "task 1 log\n0 on\n0 main\n5 syscall openat 4294967196 4096 {flags} from start (log.c:4) <- main (log.c:18)\n\
             8 back 3\n{}4200 exit\n4200 off dead",
            repeat(20, 20, 200, one)
        );
        weighed(&text).findings.into_iter().find(|finding| finding.class == "wait-disk").unwrap()
    }

    #[test]
    fn writes_past_the_kernels_memory_are_found_with_where_their_file_was_opened() {
        let found = works(0o40_001, "write");
        assert_eq!(found.title, "each write goes to the disk by itself");
        assert_eq!(found.evidence, ["opened so at log.c:4, in start"]);
        // Waits are 67 % of the time; the calls' own time goes, too.
        assert!(found.low == 0.0 && found.high > 0.7, "{found:?}");
        assert_eq!(works(0o40_000, "read").title, "files are read past the kernel's memory");
        let each = works(0o10_001, "write");
        assert_eq!(each.title, "each write waits for the disk");
        assert_eq!(each.evidence, ["opened so at log.c:4, in start"]);
    }

    #[test]
    fn those_words_are_refused_for_other_files() {
        for (flags, call) in [(1, "write"), (0, "read")] {
            let found = works(flags, call);
            assert!(!found.text.contains("O_D") && found.evidence.is_empty(), "{found:?}");
        }
    }
}
