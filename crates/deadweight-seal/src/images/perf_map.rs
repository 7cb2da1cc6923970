//! Names of JIT code from perf maps: `/tmp/perf-PID.map`, which JIT compilers write on request. `/tmp` and PID are
//! those that the process sees.
//!
//! The program wrote the file: it is read bounded, only if the process's own user owns it, and never through a
//! link. Does not name code in files; see `resolve`.

use crate::frame::Frame;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a perf map that are read: a large program's has some megabytes.
const MOST_BYTES: u64 = 64 << 20;
/// Entries with a larger size are ignored.
const LARGEST: u64 = 1 << 24;
/// Longer names are cut.
const LONGEST: usize = 400;
/// The most matches of entries with addresses: entries may repeat.
const MOST_MATCHES: usize = 1_000_000;
/// Ticks per second in `/proc/PID/stat`: the same for every program of Linux.
const TICKS: u64 = 100;

/// Where a process's perf map would be.
#[derive(Debug)]
pub(crate) struct PerfMap {
    /// The process's `/tmp`; none if it is the one that we see.
    folder: Option<OwnedFd>,
    /// The process id in its own PID namespace.
    pid: u32,
    /// The user id that the process writes files as; none if it had ended: then the file must be ours.
    owner: Option<u32>,
    /// An older file is of another process. Seconds since 1970.
    since: i64,
}

/// What a perf map says about addresses.
#[derive(Debug, Default)]
pub(crate) struct ListedNames {
    /// For each address its frame, if it has one.
    pub(crate) frames: Vec<Option<Frame>>,
    /// Why the file was not read, or not to its end, in words that follow its path.
    pub(crate) warning: Option<String>,
}

impl PerfMap {
    /// The perf map of a process. None if its `/tmp` cannot be reached. A process that has ended is assumed to
    /// have been in our own namespaces. `began` is the start of the recording.
    pub(crate) fn of(process: u32, began: i64) -> Option<Self> {
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
            return Some(Self { folder: None, pid: process, owner: None, since: began });
        };
        let last = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().last()?.parse().ok()
        };
        let folder = if shares_our_files(process)? { None } else { Some(folder_of(process)?) };
        let since = started(process).unwrap_or(began);
        // The last process id is that of the innermost namespace; the last user id is for files.
        let pid = last("NSpid:").unwrap_or(process);
        Some(Self { folder, pid, owner: Some(last("Uid:")?), since })
    }

    /// The file's path, as the process sees it.
    pub(crate) fn path(&self) -> String {
        format!("/tmp/perf-{}.map", self.pid)
    }

    /// What the file says about these addresses, which are in ascending order; none if there is no file.
    pub(crate) fn names(&self, addresses: &[u64]) -> Option<ListedNames> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match &self.folder {
            Some(folder) => openat(folder, format!("perf-{}.map", self.pid), flags, Mode::empty()),
            None => openat(CWD, self.path(), flags, Mode::empty()),
        };
        let file = File::from(opened.ok()?);
        let metadata = file.metadata().ok()?;
        let owner = self.owner.or_else(|| fs::metadata("/proc/self").ok().map(|us| us.uid()))?;
        if !metadata.is_file() || metadata.mtime() < self.since {
            return None;
        }
        if metadata.uid() != owner {
            let file_owner = metadata.uid();
            let warning =
                format!("belongs to uid {file_owner}, and the program runs as uid {owner}");
            return Some(ListedNames { frames: Vec::new(), warning: Some(warning) });
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let warning = (metadata.len() > MOST_BYTES).then(|| {
            format!("is read up to {} MiB; JIT code listed later has no names", MOST_BYTES >> 20)
        });
        Some(ListedNames { frames: frames(&bytes, addresses), warning })
    }
}

/// Whether a process sees the same files as we do under the same paths.
fn shares_our_files(process: u32) -> Option<bool> {
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let root = |process: &str| {
        let root = fs::metadata(format!("/proc/{process}/root")).ok()?;
        Some((root.dev(), root.ino()))
    };
    let process = process.to_string();
    Some(namespace(&process)? == namespace("self")? && root(&process)? == root("self")?)
}

/// The `/tmp` of a process that has its own root: no link may lead out of that root.
fn folder_of(process: u32) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, format!("/proc/{process}/root"), flags, Mode::empty()).ok()?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, "tmp", flags, Mode::empty(), inside).ok()
}

/// When a process started, in seconds since 1970, a little early rather than late.
fn started(process: u32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything; the start time is the 20th field after it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: u64 = uptime.split('.').next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(now.checked_sub(uptime)? + ticks / TICKS).ok()?.checked_sub(2)
}

/// Reads a perf map for these addresses, which are in ascending order. Returns how many have a name. For fuzzing.
#[must_use]
pub fn named_by_perf_map(list: &[u8], addresses: &[u64]) -> usize {
    frames(list, addresses).iter().flatten().count()
}

/// What the file's bytes say about these addresses, which are in ascending order. An address that two different
/// functions had, one after the other, gets no name.
fn frames(list: &[u8], addresses: &[u64]) -> Vec<Option<Frame>> {
    let mut found: Vec<Option<&[u8]>> = vec![None; addresses.len()];
    let mut ambiguous = vec![false; addresses.len()];
    let mut matches_left = MOST_MATCHES;
    for (start, size, name) in list.split(|byte| *byte == b'\n').filter_map(entry) {
        let first = addresses.partition_point(|address| *address < start);
        let within = addresses[first..].iter().take_while(|at| **at - start < size);
        for at in first..first + within.take(matches_left).count() {
            matches_left -= 1;
            ambiguous[at] |= found[at].is_some_and(|known| !same_code(known, name));
            found[at] = Some(name);
        }
    }
    let sure = found.into_iter().zip(ambiguous);
    sure.map(|(name, ambiguous)| name.filter(|_| !ambiguous).map(frame)).collect()
}

/// Start, size and name of a line `START SIZE NAME`, numbers in hexadecimal.
fn entry(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let digits = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?;
    (size > 0 && size <= LARGEST && !name.is_empty()).then_some((start, size, name))
}

/// Whether two names are of one function: a JIT compiler lists it again after it has optimized it further.
fn same_code(one: &[u8], other: &[u8]) -> bool {
    one == other || frame(one) == frame(other)
}

/// A name in its readable form. The prefix of the language stays: a script may have a function `malloc`, which is
/// not the C library's.
fn frame(name: &[u8]) -> Frame {
    let name: String = String::from_utf8_lossy(name).trim().chars().take(LONGEST).collect();
    by_v8(&name).or_else(|| by_python(&name)).unwrap_or(Frame {
        function: name,
        file: String::new(),
        line: 0,
    })
}

/// `JS:*name /path/file.js:LINE:COLUMN`; the sign before the name is V8's compiler tier.
fn by_v8(name: &str) -> Option<Frame> {
    let (kind, rest) = name.split_once(':')?;
    if !["JS", "LazyCompile", "Function", "Eval", "Script"].contains(&kind) {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '~', '^', '+']);
    let (function, position) = rest.split_once(' ').unwrap_or((rest, ""));
    let function = if function.is_empty() { "(anonymous)" } else { function };
    let position = position.strip_prefix("file://").unwrap_or(position);
    let mut parts = position.rsplitn(3, ':');
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    let column = column.and_then(|column| column.parse::<u32>().ok());
    let line = line.and_then(|line| line.parse().ok());
    let (file, line) = match (column, line, file) {
        (Some(_), Some(line), Some(file)) => (file, line),
        _ => (position, 0),
    };
    Some(Frame { function: format!("JS:{function}"), file: file.to_owned(), line })
}

/// `py::name:/path/file.py`.
fn by_python(name: &str) -> Option<Frame> {
    let (function, file) = name.strip_prefix("py::")?.split_once(":/")?;
    Some(Frame { function: format!("py::{function}"), file: format!("/{file}"), line: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(list: &str, addresses: &[u64]) -> Vec<String> {
        let shown = |frame: Option<Frame>| {
            frame.map_or("?".into(), |f| format!("{} {}:{}", f.function, f.file, f.line))
        };
        frames(list.as_bytes(), addresses).into_iter().map(shown).collect()
    }

    #[test]
    fn each_compilers_names_are_read_as_it_writes_them() {
        let list = "1000 40 JS:*walk /srv/app.js:12:3\n\
                    1040 40 JS:~ file:///srv/m.mjs:1:1\n\
                    1080 b py::Tree.walk:/srv/tree.py\n\
                    0x00000000000010a0 0x0000000000000020 int Tree.walk(long)\n\
                    10c0 20 Builtin:CallFunction\n";
        assert_eq!(
            named(list, &[0x1000, 0x107f, 0x108a, 0x10a1, 0x10c0, 0x10e0]),
            [
                "JS:walk /srv/app.js:12",
                "JS:(anonymous) /srv/m.mjs:1",
                "py::Tree.walk /srv/tree.py:0",
                "int Tree.walk(long) :0",
                "Builtin:CallFunction :0",
                "?"
            ]
        );
    }

    #[test]
    fn an_address_that_two_functions_had_gets_no_name() {
        let list = "10 10 JS:~one /a.js:1:1\n10 10 JS:*one /a.js:1:1\n20 10 JS:*one /a.js:1:1\n\
                    20 10 JS:*two /a.js:9:1\n";
        assert_eq!(named(list, &[0x18, 0x28]), ["JS:one /a.js:1", "?"]);
    }

    #[test]
    fn invalid_lines_are_skipped_in_bounded_time() {
        let everywhere = "0 ffffffffffffffff all\n";
        let many = "0 1000000 all\n".repeat(200_000);
        let odd = "\n \n1\n1 2\nxyz 10 a\n-1 10 b\n10 0 none\nffffffffffffffff 2 end\n";
        let addresses: Vec<u64> = (0..1_000).collect();
        assert_eq!(named_by_perf_map(everywhere.as_bytes(), &addresses), 0);
        assert_eq!(named_by_perf_map(odd.as_bytes(), &[u64::MAX]), 1);
        assert_eq!(named_by_perf_map(many.as_bytes(), &addresses), 1_000);
    }

    #[test]
    fn only_a_file_of_the_programs_own_user_is_read() {
        let pid = 4_000_000 + std::process::id();
        let map = |owner, since| PerfMap { folder: None, pid, owner: Some(owner), since };
        let path = format!("/tmp/perf-{pid}.map");
        let us = fs::metadata("/proc/self").unwrap().uid();
        assert!(map(us, 0).names(&[0x18]).is_none(), "there is none");
        fs::write(&path, "10 10 one\n").unwrap();
        let read = map(us, 0).names(&[0x18]).unwrap();
        assert!(read.frames[0].is_some() && read.warning.is_none());
        assert!(map(us, i64::MAX).names(&[0x18]).is_none(), "of an earlier process");
        let foreign = map(us + 1, 0).names(&[0x18]).unwrap();
        assert!(foreign.frames.is_empty() && foreign.warning.is_some());
        let target = format!("{path}.target");
        fs::rename(&path, &target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(map(us, 0).names(&[0x18]).is_none(), "links are not followed");
        fs::remove_file(path).unwrap();
        fs::remove_file(target).unwrap();
    }

    #[test]
    fn a_living_process_is_known_and_its_start_is_not_late() {
        let map = PerfMap::of(std::process::id(), 0).unwrap();
        assert!(map.folder.is_none() && map.owner.is_some());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(map.since > 0 && map.since <= i64::try_from(now).unwrap());
    }
}
