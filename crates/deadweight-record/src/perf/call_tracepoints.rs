//! The system calls that any user may record, and the numbers of their tracepoints.
//!
//! Each call has two tracepoints of its own (`syscalls:sys_enter_X`, `sys_exit_X`). The kernel allows them to the
//! process's user, but not the two that cover all calls. Every event costs each fork some 8 µs, so the set is limited
//! to the calls in which costs are likely, the likeliest first.
//! `tracepoint_scan` finds their numbers where the kernel's list of them cannot be read.

use super::known_calls::{Found, KNOWN};
use super::private_dir::Folder;
use super::tracefs::Tracefs;
use super::tracepoint_scan;
use crate::error::Error;
use crate::procfs;
use deadweight_trace::syscall::{self, Arch};
use std::fmt::Write as _;
use std::sync::OnceLock;

/// Events per CPU for everything else.
const OTHERS: usize = 6;
/// The most events of one recording: 4 ms for each fork.
const MOST: usize = 480;
/// The most calls that are recorded, however few CPUs there are.
const MOST_CALLS: usize = 48;

/// The two tracepoints of a system call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The call's number.
    pub(crate) nr: u16,
    /// `sys_enter_X`.
    pub(crate) enter: u64,
    /// `sys_exit_X`.
    pub(crate) leave: u64,
    /// Whether user stacks are recorded.
    pub(crate) sited: bool,
}

/// The calls to record on this number of CPUs, the likeliest first.
///
/// # Errors
/// If no number could be found.
pub(crate) fn chosen(cpus: usize) -> Result<Vec<Pair>, Error> {
    let found = found()?;
    let mut events = OTHERS * cpus;
    let mut chosen = Vec::new();
    for known in KNOWN {
        let Some(nr) = syscall::number(Arch::HOST, known.name) else { continue };
        let Some(&(_, enter, leave)) = found.iter().find(|(of, ..)| *of == nr) else { continue };
        events += (2 + usize::from(known.sited)) * cpus;
        if events > MOST || chosen.len() == MOST_CALLS {
            break;
        }
        chosen.push(Pair { nr, enter, leave, sited: known.sited });
    }
    if chosen.is_empty() {
        let source = std::io::Error::other("no tracepoint of a system call was found");
        return Err(Error::System { what: "cannot record system calls".into(), source });
    }
    Ok(chosen)
}

/// The tracepoints of this kernel, found once: first when the rung is chosen.
fn found() -> Result<&'static [Found], Error> {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let folder = Folder::open();
    let key = key();
    let cached = folder.as_ref().and_then(|f| f.read(CACHE)).and_then(|text| parse(&text, &key));
    let found = match cached.or_else(listed) {
        Some(found) => found,
        None => {
            let found = tracepoint_scan::find()?;
            if let Some(folder) = &folder {
                folder.write(CACHE, &render(&found, &key));
            }
            found
        }
    };
    Ok(FOUND.get_or_init(|| found))
}

/// The file that keeps the numbers until the next boot.
const CACHE: &str = "tracepoints";

/// Identifies the kernel and the boot for which the numbers are valid.
fn key() -> String {
    let line = |path| procfs::line(path).unwrap_or_default();
    format!(
        "2 {} {} {}",
        line("/proc/sys/kernel/osrelease"),
        line("/proc/sys/kernel/random/boot_id"),
        KNOWN.len()
    )
}

fn render(found: &[Found], key: &str) -> String {
    let mut text = format!("{key}\n");
    for (nr, enter, leave) in found {
        _ = writeln!(text, "{nr} {enter} {leave}");
    }
    text
}

/// Reads the numbers in the cached file; none if it is from another boot or damaged.
fn parse(text: &str, key: &str) -> Option<Vec<Found>> {
    let mut lines = text.lines();
    if lines.next() != Some(key) {
        return None;
    }
    let found: Option<Vec<Found>> = lines
        .map(|line| {
            let mut words = line.split(' ');
            let nr = words.next()?.parse().ok()?;
            Some((nr, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect();
    found.filter(|found| !found.is_empty())
}

/// The numbers from the kernel's list, where it is readable.
fn listed() -> Option<Vec<Found>> {
    let tracefs = Tracefs::open().ok()?;
    let id = |name: String| tracefs.tracepoint(&name).ok().map(|t| t.id);
    let found: Vec<Found> = KNOWN
        .iter()
        .filter_map(|known| {
            let name = match known.name {
                "stat" | "fstat" | "lstat" => format!("new{}", known.name),
                name => name.to_owned(),
            };
            let nr = syscall::number(Arch::HOST, known.name)?;
            let enter = id(format!("syscalls/sys_enter_{name}"))?;
            Some((nr, enter, id(format!("syscalls/sys_exit_{name}"))?))
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_numbers_are_valid_in_the_same_boot_only() {
        let found = vec![(0, 1301, 1300), (1, 1299, 1298)];
        let text = render(&found, "6.1.0 boot 5");
        assert_eq!(parse(&text, "6.1.0 boot 5"), Some(found));
        assert_eq!(parse(&text, "6.1.0 other 5"), None);
        assert_eq!(parse("6.1.0 boot 5\n0 x 1\n", "6.1.0 boot 5"), None);
        assert_eq!(parse("6.1.0 boot 5\n", "6.1.0 boot 5"), None);
    }

    #[test]
    fn calls_are_known_once_each() {
        let mut names: Vec<_> = KNOWN.iter().map(|k| k.name).collect();
        assert!(names.iter().all(|n| syscall::number(Arch::X86_64, n).is_some()));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KNOWN.len());
    }
}
