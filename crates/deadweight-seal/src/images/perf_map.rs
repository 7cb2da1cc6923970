//! Names of code that a compiler inside a program made while it ran: from the list that such compilers
//! write on request, `/tmp/perf-PID.map`, as the process sees `/tmp` and its own number.
//!
//! The list is another's: it is read bounded, from a file of the process's own user only, and never by a
//! link. Not for code in files, see `resolve`.

use crate::frame::Frame;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// More of a list is not read: a large program's has some megabytes.
const MOST_BYTES: u64 = 64 << 20;
/// Larger functions are none.
const LARGEST: u64 = 1 << 24;
/// Longer names are cut.
const LONGEST: usize = 400;
/// Entries that may apply to addresses that were hit, all together: a list may repeat itself.
const MOST_FITS: usize = 1_000_000;
/// Ticks per second in `/proc/PID/stat`: the same for every program of Linux.
const TICKS: u64 = 100;

/// Where a process's list would be.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its `/tmp`; none if that is ours.
    folder: Option<OwnedFd>,
    /// Its number, as it knows it.
    number: u32,
    /// Whose files it writes; none if it was gone before we looked, then it must be ours.
    owner: Option<u32>,
    /// An older list is of another process, in seconds since 1970.
    since: i64,
}

/// What a list says of addresses.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// For each address its frame, if it has one.
    pub(crate) frames: Vec<Option<Frame>>,
    /// Why the list was not read, or not whole, in words that follow its name.
    pub(crate) warning: Option<String>,
}

impl Place {
    /// Looks at a living process. None if its `/tmp` cannot be reached; one that is gone is taken to have
    /// been in our own namespaces. `began` is when the recording did.
    pub(crate) fn of(process: u32, began: i64) -> Option<Self> {
        let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
            return Some(Self { folder: None, number: process, owner: None, since: began });
        };
        let last = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().last()?.parse().ok()
        };
        let folder = if shares_our_files(process)? { None } else { Some(folder_of(process)?) };
        let since = started(process).unwrap_or(began);
        // The last of the numbers is the innermost; the last of the users is for files.
        let number = last("NSpid:").unwrap_or(process);
        Some(Self { folder, number, owner: Some(last("Uid:")?), since })
    }

    /// The list's path, as the process would write it.
    pub(crate) fn path(&self) -> String {
        format!("/tmp/perf-{}.map", self.number)
    }

    /// What the list says of these addresses, which are in ascending order; none if there is none.
    pub(crate) fn names(&self, addresses: &[u64]) -> Option<Names> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = match &self.folder {
            Some(folder) => {
                openat(folder, format!("perf-{}.map", self.number), flags, Mode::empty())
            }
            None => openat(CWD, self.path(), flags, Mode::empty()),
        };
        let file = File::from(opened.ok()?);
        let metadata = file.metadata().ok()?;
        let owner = self.owner.or_else(|| fs::metadata("/proc/self").ok().map(|us| us.uid()))?;
        if !metadata.is_file() || metadata.mtime() < self.since {
            return None;
        }
        if metadata.uid() != owner {
            let whose = metadata.uid();
            let warning =
                format!("belongs to uid {whose}, and the program that would write it to {owner}");
            return Some(Names { frames: Vec::new(), warning: Some(warning) });
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let warning = (metadata.len() > MOST_BYTES)
            .then(|| format!("is read up to {} MiB; later code has no names", MOST_BYTES >> 20));
        Some(Names { frames: frames(&bytes, addresses), warning })
    }
}

/// Whether a process sees the same files as we do under the same names.
fn shares_our_files(process: u32) -> Option<bool> {
    let namespace = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/mnt")).ok();
    let root = |whose: &str| {
        let root = fs::metadata(format!("/proc/{whose}/root")).ok()?;
        Some((root.dev(), root.ino()))
    };
    let process = process.to_string();
    Some(namespace(&process)? == namespace("self")? && root(&process)? == root("self")?)
}

/// The `/tmp` of a process in a file system of its own, by no link that leads out of it.
fn folder_of(process: u32) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, format!("/proc/{process}/root"), flags, Mode::empty()).ok()?;
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, "tmp", flags, Mode::empty(), inside).ok()
}

/// When a process started, in seconds since 1970, a little early rather than late.
fn started(process: u32) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything; the start is the 20th field behind it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: u64 = uptime.split('.').next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(now.checked_sub(uptime)? + ticks / TICKS).ok()?.checked_sub(2)
}

/// Reads a list for these addresses, which are in ascending order, and says how many have a name: for
/// fuzzing.
#[must_use]
pub fn named_by_list(list: &[u8], addresses: &[u64]) -> usize {
    frames(list, addresses).iter().flatten().count()
}

/// What the list's bytes say of these addresses, which are in ascending order. Where code took the place
/// of other code and both are named there, neither is meant.
fn frames(list: &[u8], addresses: &[u64]) -> Vec<Option<Frame>> {
    let mut found: Vec<Option<&[u8]>> = vec![None; addresses.len()];
    let mut ambiguous = vec![false; addresses.len()];
    let mut room = MOST_FITS;
    for (start, size, name) in list.split(|byte| *byte == b'\n').filter_map(entry) {
        let first = addresses.partition_point(|address| *address < start);
        let within = addresses[first..].iter().take_while(|at| **at - start < size);
        for at in first..first + within.take(room).count() {
            room -= 1;
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

/// Whether two names are of one function: a compiler lists it again when it has compiled it better.
fn same_code(one: &[u8], other: &[u8]) -> bool {
    one == other || frame(one) == frame(other)
}

/// A name as a reader knows it. The prefix of the language stays: a script may call its functions
/// `malloc`, and that is another one.
fn frame(name: &[u8]) -> Frame {
    let name: String = String::from_utf8_lossy(name).trim().chars().take(LONGEST).collect();
    by_v8(&name).or_else(|| by_python(&name)).unwrap_or(Frame {
        function: name,
        file: String::new(),
        line: 0,
    })
}

/// `JS:*name /path/file.js:LINE:COLUMN`, with a mark for how well it is compiled.
fn by_v8(name: &str) -> Option<Frame> {
    let (kind, rest) = name.split_once(':')?;
    if !["JS", "LazyCompile", "Function", "Eval", "Script"].contains(&kind) {
        return None;
    }
    let rest = rest.trim_start_matches(['*', '~', '^', '+']);
    let (function, place) = rest.split_once(' ').unwrap_or((rest, ""));
    let function = if function.is_empty() { "(anonymous)" } else { function };
    let place = place.strip_prefix("file://").unwrap_or(place);
    let mut parts = place.rsplitn(3, ':');
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    let column = column.and_then(|column| column.parse::<u32>().ok());
    let line = line.and_then(|line| line.parse().ok());
    let (file, line) = match (column, line, file) {
        (Some(_), Some(line), Some(file)) => (file, line),
        _ => (place, 0),
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

    fn told(list: &str, addresses: &[u64]) -> Vec<String> {
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
            told(list, &[0x1000, 0x107f, 0x108a, 0x10a1, 0x10c0, 0x10e0]),
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
    fn code_in_the_place_of_other_code_is_not_named_after_either() {
        let list = "10 10 JS:~one /a.js:1:1\n10 10 JS:*one /a.js:1:1\n20 10 JS:*one /a.js:1:1\n\
                    20 10 JS:*two /a.js:9:1\n";
        assert_eq!(told(list, &[0x18, 0x28]), ["JS:one /a.js:1", "?"]);
    }

    #[test]
    fn nonsense_is_passed_over_in_bounded_time() {
        let everywhere = "0 ffffffffffffffff all\n";
        let many = "0 1000000 all\n".repeat(200_000);
        let odd = "\n \n1\n1 2\nxyz 10 a\n-1 10 b\n10 0 none\nffffffffffffffff 2 end\n";
        let addresses: Vec<u64> = (0..1_000).collect();
        assert_eq!(named_by_list(everywhere.as_bytes(), &addresses), 0);
        assert_eq!(named_by_list(odd.as_bytes(), &[u64::MAX]), 1);
        assert_eq!(named_by_list(many.as_bytes(), &addresses), 1_000);
    }

    #[test]
    fn only_a_file_of_the_programs_own_is_read() {
        let number = 4_000_000 + std::process::id();
        let place = |owner, since| Place { folder: None, number, owner: Some(owner), since };
        let path = format!("/tmp/perf-{number}.map");
        let us = fs::metadata("/proc/self").unwrap().uid();
        assert!(place(us, 0).names(&[0x18]).is_none(), "there is none");
        fs::write(&path, "10 10 one\n").unwrap();
        let read = place(us, 0).names(&[0x18]).unwrap();
        assert!(read.frames[0].is_some() && read.warning.is_none());
        assert!(place(us, i64::MAX).names(&[0x18]).is_none(), "of an earlier process");
        let foreign = place(us + 1, 0).names(&[0x18]).unwrap();
        assert!(foreign.frames.is_empty() && foreign.warning.is_some());
        let target = format!("{path}.target");
        fs::rename(&path, &target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(place(us, 0).names(&[0x18]).is_none(), "links are not followed");
        fs::remove_file(path).unwrap();
        fs::remove_file(target).unwrap();
    }

    #[test]
    fn a_living_process_is_known_and_its_start_is_not_late() {
        let place = Place::of(std::process::id(), 0).unwrap();
        assert!(place.folder.is_none() && place.owner.is_some());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(place.since > 0 && place.since <= i64::try_from(now).unwrap());
    }
}
