//! Everything in its place: pending writes out, the kernel's offsets where the program thinks they are.

use super::kernel_calls as kernel;
use super::owing;
use super::table::{Entry, Kind, Locked, Mode, Table};
use core::ffi::c_int;

/// Writes out what is pending for a descriptor. The error is kept, and returned by a later call.
pub(crate) unsafe fn write_out(entry: &mut Entry, fd: c_int) {
    if entry.mode != Mode::Writing {
        return;
    }
    let (from, end) = (entry.buffer, entry.end);
    // At rest first: a handler of SIGPIPE that does not come back leaves nothing to be written twice.
    entry.rest();
    let mut done = 0;
    while done < end {
        let wrote = kernel::write(fd, from.add(done), end - done);
        if wrote > 0 {
            done += wrote as usize;
        } else if wrote == kernel::EAGAIN {
            // Another process made the pipe non-blocking.
            kernel::wait_to_write(fd);
        } else if wrote != kernel::EINTR {
            entry.error = -wrote as c_int;
            return;
        }
    }
}

/// Gives back what was read ahead.
pub(crate) unsafe fn put_back(entry: &mut Entry, fd: c_int) {
    if entry.mode != Mode::Reading {
        return;
    }
    let (start, at, kind) = (entry.start, entry.at, entry.kind);
    entry.rest();
    if kind == Kind::Pipe {
        // The pipe still has all of it: what the program has seen is read away.
        let mut left = start;
        // Never waits: another process may have read them, against the rules.
        while left > 0 && kernel::waiting(fd) > 0 {
            let got = kernel::read(fd, entry.buffer, left);
            if got > 0 {
                left -= got as usize;
            } else if got != kernel::EINTR {
                return;
            }
        }
    } else {
        const FROM_START: c_int = 0;
        kernel::seek(fd, at + start as i64, FROM_START);
    }
}

/// Both, for one descriptor.
pub(crate) unsafe fn one(entry: &mut Entry, fd: c_int) {
    write_out(entry, fd);
    put_back(entry, fd);
}

/// All pending writes of descriptors.
pub(crate) unsafe fn writes(table: &mut Table) {
    for fd in 0..table.high {
        write_out(&mut table.entries[fd], fd as c_int);
    }
}

/// Both, for all descriptors.
pub(crate) unsafe fn each(table: &mut Table) {
    for fd in 0..table.high {
        one(&mut table.entries[fd], fd as c_int);
    }
}

/// All pending writes, those of streams too.
pub(crate) unsafe fn all_writes() {
    owing::pay();
    if let Some(mut table) = Locked::get() {
        writes(&mut table);
    }
}

/// Everything.
pub(crate) unsafe fn all() {
    owing::pay();
    if let Some(mut table) = Locked::get() {
        each(&mut table);
    }
}
