//! Files that a process opens, or asks about by path, again and again.
//!
//! Programs in the kernel record a number for each path. Without them the recorder reads at some instants what descriptors
//! refer to: a sample of the openings, each with its path. Not by the sizes of what was read: many files are of one size. Not by the address of a path: another
//! path may be there next time.

use crate::facts::Facts;
use crate::facts::call_groups::{CallGroup, REMEMBERED};
use crate::facts::processes::ProcessId;
use crate::inspect::questions::{Births, MANY, SAME};
use crate::timeline::descriptors::ObjectKind;
use deadweight_report::wording::things;
use deadweight_trace::ids::NameId;
use deadweight_trace::syscall;
use std::collections::{BTreeMap, BTreeSet};

/// Calls that ask about a file by its path.
pub(crate) const BY_PATH: &[&str] =
    &["stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"];

/// Calls that ask what a link refers to. They walk along a path in one buffer: the address of it says nothing.
const OF_LINKS: &[&str] = &["readlink", "readlinkat"];

/// Whether these calls ask about files by their paths, and it can be known whether about the same again.
pub(crate) fn asks_by_path(group: &CallGroup) -> bool {
    BY_PATH.contains(&group.name) || OF_LINKS.contains(&group.name) && has_numbers(group)
}

/// Whether nearly all paths of these calls have numbers. Those that were counted together have none; the others are a
/// sample.
fn has_numbers(group: &CallGroup) -> bool {
    let sample = group.calls - group.counted.min(group.calls);
    sample > 0 && group.paths.calls * 8 >= sample * 7
}

/// Calls that change a file, or make one, by path.
const CHANGES: &[&str] = &[
    "chmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchownat",
    "utime",
    "utimes",
    "utimensat",
    "setxattr",
    "lsetxattr",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
];

/// So many names of a folder come in one `getdents64`, which has a buffer of 32 KiB.
const LISTED: u64 = 1000;

/// Whether these calls read files that were opened for it: few calls each.
pub(crate) fn is_read_of_files(group: &CallGroup) -> bool {
    matches!(group.name, "read" | "pread64" | "mmap" | "munmap") && is_of_opened_files(group)
}

/// Whether these calls are on files that were opened for few calls each.
fn is_of_opened_files(group: &CallGroup) -> bool {
    use ObjectKind::{Datagrams, Pipe, Socket};
    let others = matches!(group.kind, Some(Socket | Datagrams | Pipe));
    !others && group.objects.len() > 1 && group.per_object() <= 8
}

/// Whether a call opens a file and empties it.
fn truncates(name: &str, args: &[u64; 4]) -> bool {
    const TRUNCATE: u64 = 0o1000;
    // Where the flags are not known, it may do so.
    syscall::open_flags(name).is_none_or(|at| args[at] & TRUNCATE != 0)
}

/// Whether these openings empty a file each time: it is never opened to write more into it. One that is emptied once, before
/// the first of many lines is added, is not replaced.
fn replace(opens: &[(&'static str, [u64; 4])]) -> bool {
    /// `O_WRONLY` and `O_RDWR`.
    const WRITES: u64 = 0o3;
    let paths = |empties: bool| {
        let which = opens.iter().filter(move |(name, args)| truncates(name, args) == empties);
        which.filter_map(|(name, args)| {
            Some((syscall::path(name)?, syscall::open_flags(name), args))
        })
    };
    let added: BTreeSet<&[u64]> = paths(false)
        .filter(|(path, flags, args)| {
            let writes = flags.is_some_and(|at| args[at] & WRITES != 0);
            writes && args[*path] & syscall::PATH_NUMBER != 0
        })
        .map(|(path, _, args)| &args[..=path])
        .collect();
    paths(true).any(|(path, _, args)| !added.contains(&args[..=path]))
}

/// What a process opens the same few files for, again and again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reopened {
    /// To read them.
    Reading,
    /// To write more into them.
    Writing,
    /// To have the kernel send them (`sendfile`).
    Sending,
    /// To read what the kernel says at that instant: files of `/proc` and `/sys`.
    Live,
}

/// What a process opens the same few files for, if it does.
pub(crate) fn reopened(facts: &Facts<'_>, process: ProcessId) -> Option<Reopened> {
    let Asked { opens, paths, walks, reads, maps, writes, sends, replaces, .. } =
        Asked::by(facts, process);
    let answers = u64::try_from(facts.call_groups.distinct_results(process).max(1)).unwrap_or(1);
    let for_most = |calls: u64| calls >= opens - opens / 4;
    let purpose = if for_most(reads) && SeenOpenings::of(facts, process).are_live(facts) {
        Reopened::Live
    } else if for_most(reads) && opens / answers >= SAME {
        Reopened::Reading
    } else if paths.is_some() && maps > reads && for_most(reads + maps) && !replaces {
        // What is mapped shows no result: only known paths prove that it is the same.
        Reopened::Reading
    } else if for_most(writes) && reads * 4 < opens && !replaces {
        Reopened::Writing
    } else if for_most(sends) && (reads + writes) * 4 < opens {
        Reopened::Sending
    } else {
        return None;
    };
    let many = opens >= MANY && walks * 20 <= opens;
    let few = || match paths {
        Some(paths) => opens / paths.max(1) >= SAME,
        None => SeenOpenings::of(facts, process).prove_few_files(opens),
    };
    (many && few()).then_some(purpose)
}

/// How many distinct paths the calls of a group were about; none if that is not known of all.
fn distinct_paths(group: &CallGroup) -> Option<u64> {
    *group.distinct_paths.get_or_init(|| count_paths(group))
}

fn count_paths(group: &CallGroup) -> Option<u64> {
    let at = syscall::path(group.name)?;
    // A relative path is one of the folder before it.
    let paths: BTreeSet<&[u64]> = group.questions.iter().map(|args| &args[..=at]).collect();
    let count = u64::try_from(paths.len()).ok()?;
    let all_known = paths.iter().all(|path| path[at] & syscall::PATH_NUMBER != 0);
    if group.questions.len() < REMEMBERED && all_known {
        return Some(count);
    }
    group.paths.distinct().filter(|_| has_numbers(group))
}

/// Whether the paths of a process's calls are known themselves, not by their addresses. A few calls of another kind do
/// not matter.
pub(crate) fn knows_paths(facts: &Facts<'_>, process: ProcessId) -> bool {
    const FEW: u64 = 20;
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let asks = |group: &&CallGroup| asks_by_path(group) && !group.starting;
    let by_path: Vec<&CallGroup> = groups.filter(asks).collect();
    let most = by_path.iter().map(|group| group.calls).max().unwrap_or(0);
    let mut many = by_path.iter().filter(|group| group.calls * FEW >= most);
    !by_path.is_empty() && many.all(|group| distinct_paths(group).is_some())
}

/// How many paths were opened how often, as evidence, if that is known.
pub(crate) fn opened_paths(facts: &Facts<'_>, process: ProcessId) -> Option<String> {
    let Asked { opens, paths, .. } = Asked::by(facts, process);
    Some(format!("{} were of {}", things(opens, "opening"), things(paths?, "path")))
}

/// Whether a process that gets few descriptors asks by path, or about a descriptor with an empty path, with few
/// different arguments. These hold the address of the path: another path may be there the next time, see the
/// class *repeated-syscalls*.
pub(crate) fn rechecks(facts: &Facts<'_>, process: ProcessId) -> bool {
    let Asked { walks, by_path, changes, .. } = Asked::by(facts, process);
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let mut many = groups.filter(|group| asks_by_path(group) && group.calls >= MANY);
    let few = |group: &CallGroup| {
        let asked = || u64::try_from(group.questions.len()).unwrap_or(1);
        group.calls / distinct_paths(group).unwrap_or_else(asked).max(1) >= SAME
    };
    by_path >= MANY
        && walks * LISTED <= by_path
        && changes * 4 < by_path
        && Births::of(facts, process).all * 4 < by_path
        && many.all(few)
}

/// How often a process makes the calls that concern files.
#[derive(Default)]
struct Asked {
    opens: u64,
    /// Of how many paths, if that is known of all openings.
    paths: Option<u64>,
    by_path: u64,
    walks: u64,
    reads: u64,
    /// Mappings of files that are opened for it.
    maps: u64,
    writes: u64,
    sends: u64,
    /// Calls that change a file by its path: the next one is about another file.
    changes: u64,
    /// Whether files get other contents, or other files their path.
    replaces: bool,
}

impl Asked {
    fn by(facts: &Facts<'_>, process: ProcessId) -> Self {
        let mut asked = Self { paths: Some(0), ..Self::default() };
        let mut opens = Vec::new();
        for (_, group) in facts.call_groups.of_process(process) {
            match group.name {
                "open" | "openat" | "openat2" => {
                    asked.opens += group.calls;
                    let more = distinct_paths(group);
                    asked.paths = asked.paths.zip(more).map(|(paths, more)| paths + more);
                    opens.extend(group.questions.iter().map(|args| (group.name, *args)));
                }
                "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" => {
                    asked.replaces |= group.calls >= MANY / 4;
                }
                "write" | "pwrite64" | "writev" if is_of_opened_files(group) => {
                    asked.writes += group.calls;
                }
                name if CHANGES.contains(&name) => asked.changes += group.calls,
                "sendfile" => asked.sends += group.calls,
                "getdents64" | "getdents" => asked.walks += group.calls,
                "read" | "pread64" if is_read_of_files(group) => asked.reads += group.calls,
                "mmap" if is_read_of_files(group) => asked.maps += group.calls,
                _ if asks_by_path(group) => asked.by_path += group.calls,
                _ => {}
            }
        }
        asked.replaces |= replace(&opens);
        asked
    }
}

/// The openings of files that were seen with their path and closed again: how many of each path.
pub(crate) struct SeenOpenings(BTreeMap<NameId, u64>);

impl SeenOpenings {
    /// Those of a process after its start.
    pub(crate) fn of(facts: &Facts<'_>, process: ProcessId) -> Self {
        let mut seen = BTreeMap::new();
        for (_, group) in facts.call_groups.of_process(process) {
            let named = group.kind == Some(ObjectKind::File) && group.object_name != NameId(0);
            if named && group.name == "close" {
                *seen.entry(group.object_name).or_default() += group.things;
            }
        }
        Self(seen)
    }

    /// Whether most of them were of files that the kernel writes when they are read.
    fn are_live(&self, facts: &Facts<'_>) -> bool {
        let live = |name: &NameId| {
            let path = facts.symbols().name(*name);
            path.starts_with("/proc/") || path.starts_with("/sys/")
        };
        let of_live: u64 = self.0.iter().filter(|(name, _)| live(name)).map(|(_, n)| n).sum();
        of_live > 0 && of_live * 2 >= self.all()
    }

    /// How many were seen.
    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// Whether they prove that `opens` openings are mostly of few files, each opened many times.
    ///
    /// Two openings are of one file with the probability 1 / files. A few pairs may be of one file by chance:
    /// they count less.
    pub(crate) fn prove_few_files(&self, opens: u64) -> bool {
        const CERTAIN: u128 = 20;
        let pairs = |n: u64| u128::from(n) * u128::from(n.saturating_sub(1)) / 2;
        let of_one_file: u128 = self.0.values().map(|n| pairs(*n)).sum();
        let certain = u128::from(opens) * of_one_file * of_one_file.min(CERTAIN);
        let once = self.0.values().filter(|n| **n == 1).count();
        of_one_file > 0
            && certain >= u128::from(SAME) * CERTAIN * pairs(self.all())
            && u64::try_from(once).unwrap_or(u64::MAX) <= self.all() / 2
    }

    /// The proof in words, if any was seen.
    pub(crate) fn sentence(&self) -> Option<String> {
        let files = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        let all = things(self.all(), "opening");
        (files > 0).then(|| format!("{all} seen with their path were of {}", things(files, "file")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::tests::{found, repeat};

    fn seen(each: &[u64]) -> SeenOpenings {
        SeenOpenings((1..).map(NameId).zip(each.iter().copied()).collect())
    }

    #[test]
    fn few_files_are_proven_by_openings_of_one_path() {
        assert!(seen(&[2]).prove_few_files(800));
        assert!(seen(&[5, 4, 4, 1, 1, 1]).prove_few_files(1000));
        assert!(seen(&[20, 20, 20, 20]).prove_few_files(200));
    }

    #[test]
    fn chance_and_many_files_prove_nothing_and_are_refused() {
        assert!(!seen(&[]).prove_few_files(1_000_000));
        assert!(!seen(&[1, 1, 1, 1]).prove_few_files(1_000_000));
        assert!(!seen(&[2]).prove_few_files(400));
        let twice_each = [[2; 3].as_slice(), &[1; 60]].concat();
        assert!(!seen(&twice_each).prove_few_files(1500));
        let settings_and_data = [[12].as_slice(), &[1; 20]].concat();
        assert!(!seen(&settings_and_data).prove_few_files(10_000));
    }

    #[test]
    fn a_file_emptied_once_before_lines_are_added_is_found_and_one_emptied_each_time_is_refused() {
        // By one line of an interpreter; the path is recorded.
        let add = |flags: [u64; 2]| {
            let path = 0x9000_0000_0000_0007_u64;
            let calls = repeat(900, 0, 600, |at| {
                let flags = flags[usize::from(at > 0)];
                format!(
                    "{at} syscall openat 4294967196 {path:#x} {flags} from open <- run\n{} back 3\n\
                     {} syscall write 3 40 from write <- run\n{} back 40\n\
                     {} syscall close 3 from close <- run\n{} back 0\n",
                    at + 150,
                    at + 200,
                    at + 350,
                    at + 400,
                    at + 500,
                )
            });
            found(&format!("task 1 a\n0 on\n0 main\n{calls}540000 exit\n540000 off dead"))
        };
        let added = add([577, 1025]);
        assert!(added.starts_with("repeated-syscalls") && added.contains("1 800 times"), "{added}");
        assert!(!add([577, 577]).contains("repeated-syscalls"), "{}", add([577, 577]));
        // Read first, and written anew each time.
        assert!(!add([0, 577]).contains("repeated-syscalls"), "{}", add([0, 577]));
    }
}
