//! Finds the numbers of system calls' tracepoints where the kernel's list is not readable.
//!
//! For an ordinary user the kernel refuses every tracepoint except those of system calls, at once. So all numbers are
//! tried. Those that open stay open for a child, and the child makes each call once with harmless arguments: every
//! record contains its tracepoint's number and its call's. This takes some 0.1 s.
//!
//! Closing takes the kernel 15 to 40 ms for each tracepoint, during which none can be opened. A process of its own
//! closes them while no measurement is disturbed (`deferred_close` does likewise). That takes a minute, in which all
//! system calls of the machine take 20 ns more.

use super::known_calls::{Found, KNOWN};
use super::ring::Ring;
use super::schema::fields;
use super::sys::{Event, Open, Scope, Source};
use crate::clock::now;
use crate::descriptors::{close_all_but, pipe};
use crate::error::Error;
use crate::perf::deferred_close::{self, PAUSE};
use crate::procfs::command_line::{CLOSES_EVENTS, CommandLine};
use deadweight_trace::syscall::{self, Arch};
use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// The kernel numbers tracepoints from 1; after this many missing numbers there are no more.
const GAP: u32 = 400;
/// Numbers are 16 bits wide in a record.
const LAST: u64 = u16::MAX as u64;
/// The longest that they stay open, in ns: nothing waits for them while others record that long.
const LONGEST_WAIT: u64 = 3_600_000_000_000;
/// A filter that only the two tracepoints of all calls accept, which have such a field. They open, but report nothing
/// to an ordinary user, and all calls of the machine take 70 ns more until they are closed: that is done at once.
const OF_ALL_CALLS: &CStr = c"id >= 0";
/// The size of the ring for the child's calls: some 120 short records.
const RING: usize = 64 << 10;

/// The tracepoints of the known system calls.
///
/// # Errors
/// If no perf event can be opened.
pub(super) fn find() -> Result<Vec<Found>, Error> {
    let failed =
        |source| Error::System { what: "cannot find the system calls' events".into(), source };
    let close_lock = deferred_close::close_lock();
    let command_line = CommandLine::of_self();
    let (mut answer, write_end) = pipe().map_err(failed)?;
    // SAFETY: the child leaves only through `_exit` and holds no lock: this is called before any thread of the
    // recorder is started.
    match unsafe { libc::fork() } {
        -1 => return Err(Error::last("cannot fork")),
        0 => {
            drop(answer);
            // A grandchild does the work: init reaps it. SAFETY: as above.
            if unsafe { libc::fork() } == 0 {
                if let Some(line) = command_line {
                    // SAFETY: the child shares no memory, and needs no arguments.
                    unsafe { line.replace(CLOSES_EVENTS) };
                }
                scan(write_end, close_lock.as_ref());
            }
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        child => {
            // SAFETY: waits for the own child, which ends at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
    drop(write_end);
    let mut bytes = Vec::new();
    answer.read_to_end(&mut bytes).map_err(failed)?;
    let found = bytes.as_chunks::<6>().0.iter().map(|b| {
        let number = |at| u64::from(u16::from_ne_bytes([b[at], b[at + 1]]));
        (u16::from_ne_bytes([b[0], b[1]]), number(2), number(4))
    });
    Ok(found.collect())
}

/// The scan process. Ends the process.
fn scan(mut answer: File, close_lock: Option<&File>) -> ! {
    let open = try_all(&mut answer);
    let files: Vec<RawFd> = open.iter().map(AsRawFd::as_raw_fd).collect();
    let close_lock = close_lock.map_or(-1, AsRawFd::as_raw_fd);
    drop(answer);
    // SAFETY: plain system calls; ends the process.
    unsafe {
        let kept = files.iter().copied().chain([close_lock]).filter(|file| *file >= 0);
        let mut kept: Vec<RawFd> = kept.collect();
        kept.sort_unstable();
        libc::chdir(c"/".as_ptr());
        libc::setsid();
        // No process waits for this one's other descriptors then.
        close_all_but(&kept);
        // Recordings have to close theirs first, before the next clean run.
        deferred_close::close_under_lock(&files, close_lock, 20 * PAUSE, now() + LONGEST_WAIT);
        libc::_exit(0)
    }
}

/// Tries all numbers and writes the answer. Returns the open events, to be closed slowly.
fn try_all(answer: &mut File) -> Vec<Open> {
    let mut open = Vec::new();
    let Ok((mut start, go)) = pipe() else { return open };
    // SAFETY: the child makes plain system calls only.
    let child = match unsafe { libc::fork() } {
        -1 => return open,
        0 => {
            drop(go);
            let mut byte = [0];
            _ = start.read(&mut byte);
            make_each_call()
        }
        child => child,
    };
    let mut ring = None;
    let mut missing = 0;
    for id in 1..=LAST {
        match tracepoint(id).open(Scope::OneTask(child), -1) {
            Ok(event) => {
                missing = 0;
                if event.filter(OF_ALL_CALLS).is_ok() {
                    continue;
                }
                match (&ring, open.first()) {
                    (Some(_), Some(first)) => _ = event.write_to(first),
                    _ => ring = Ring::map(&event, RING).ok(),
                }
                _ = event.enable();
                open.push(event);
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOENT) => missing += 1,
                Some(libc::EPERM | libc::EACCES) => missing = 0,
                _ => break,
            },
        }
        if missing == GAP {
            break;
        }
    }
    drop(go);
    // SAFETY: waits for the own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let mut bytes = Vec::new();
    if let Some(ring) = &mut ring {
        ring.copy_to(&mut bytes);
    }
    for (nr, enter, leave) in read(&bytes) {
        let both = [enter, leave].map(|id| u16::try_from(id).unwrap_or(0).to_ne_bytes());
        _ = answer.write_all(&[nr.to_ne_bytes(), both[0], both[1]].concat());
    }
    open
}

fn tracepoint(id: u64) -> Event {
    Event { no_kernel: true, ..Event::of_each(Source::Tracepoint(id), fields::RAW) }
}

/// Makes each known call once. The last one ends the process.
fn make_each_call() -> ! {
    for known in KNOWN.iter().filter(|k| k.name != "exit_group") {
        let Some(nr) = syscall::number(Arch::HOST, known.name) else { continue };
        let [a, b, c, d] = known.harmless;
        // SAFETY: arguments that the kernel refuses or that do nothing.
        unsafe { libc::syscall(libc::c_long::from(nr), a, b, c, d, 0, 0) };
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

/// Reads the numbers from the records: for each call the entry's tracepoint comes first, then the exit's. Both are
/// neighbours.
fn read(mut bytes: &[u8]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..).and_then(|b| b.first_chunk()).map(|b| u16::from_ne_bytes(*b))
    };
    // Header (8 bytes, the length in its last two), length of the data (4), the data: the
    // tracepoint's number first, the call's at 8.
    while let Some(length) = word(bytes, 6).map(usize::from).filter(|l| *l >= 8) {
        if let (Some(id), Some(nr)) = (word(bytes, 12).map(u64::from), word(bytes, 20)) {
            match found.iter_mut().find(|(of, ..)| *of == nr) {
                None => found.push((nr, id, 0)),
                Some((_, enter, leave)) if *leave == 0 && id.abs_diff(*enter) == 1 => *leave = id,
                Some(_) => {}
            }
        }
        bytes = bytes.get(length..).unwrap_or_default();
    }
    // The call in which the child waited was entered before the events were enabled, and the last call does not
    // return: their two numbers are in the same order as the others.
    let below = found.iter().filter(|(_, enter, leave)| *leave != 0 && leave < enter).count();
    let is_below = below * 2 > found.len();
    for (_, enter, leave) in &mut found {
        match *leave {
            0 => *leave = if is_below { enter.saturating_sub(1) } else { *enter + 1 },
            _ if (*leave < *enter) != is_below => std::mem::swap(enter, leave),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u16, nr: u16) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[..4].copy_from_slice(&9_u32.to_ne_bytes());
        bytes[6..8].copy_from_slice(&40_u16.to_ne_bytes());
        bytes[12..14].copy_from_slice(&id.to_ne_bytes());
        bytes[20..22].copy_from_slice(&nr.to_ne_bytes());
        bytes
    }

    #[test]
    fn entries_come_first_and_a_call_without_return_follows_the_others() {
        let calls = [
            (1300, 0),
            (1301, 0),
            (1300, 0),
            (1299, 1),
            (1298, 1),
            (97, 3),
            (96, 3),
            (95, 4),
            (94, 4),
            (219, 231),
        ];
        let bytes: Vec<u8> = calls.into_iter().flat_map(|(id, nr)| record(id, nr)).collect();
        assert_eq!(
            read(&bytes),
            [(0, 1301, 1300), (1, 1299, 1298), (3, 97, 96), (4, 95, 94), (231, 219, 218)]
        );
        assert_eq!(read(&bytes[..7]), []);
        assert_eq!(read(&[0; 64]), []);
    }
}
