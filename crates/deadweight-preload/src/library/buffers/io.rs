//! `read`, `write`, `lseek`, `close` and `fork`.

use super::classify::classify;
use super::table::{
    self, BUFFER, Entry, Kind, Locked, Mode, OVER, PLAIN_OUTPUT, SMALL, THREADS, Table,
};
use super::{effect, kernel_calls as kernel, owing, real, settle};
use crate::c;
use core::ffi::c_int;
use core::sync::atomic::Ordering;

/// The most that is peeked of a pipe: its writer goes on while the program works.
const PEEK: usize = 16 << 10;

#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, from: *const u8, len: usize) -> isize {
    if table::has_place(fd) && !OVER.load(Ordering::Relaxed) {
        if owing::owes(fd) {
            owing::pay();
        }
        let mut seen = false;
        if let Some(mut table) = Locked::get() {
            if let Some(result) = collect(&mut table, fd, from, len) {
                drop(table);
                if result < 0 {
                    c::set_errno(-result as c_int);
                    return -1;
                }
                return result;
            }
            seen = !is_file(&table, fd);
        }
        // What another process gets now may speak of what it should have got before.
        if seen {
            settle::all_writes();
        }
    }
    real::write(fd, from, len)
}

fn is_file(table: &Table, fd: c_int) -> bool {
    matches!(table.entries[fd as usize].kind, Kind::File | Kind::OtherFile)
}

/// Puts the bytes into the buffer. None: they are to be written at once, and everything before them has been.
#[inline(always)]
unsafe fn collect(table: &mut Table, fd: c_int, from: *const u8, len: usize) -> Option<isize> {
    classify(table, fd);
    let index = fd as usize;
    let entry = &mut table.entries[index];
    let collected = matches!(entry.kind, Kind::File | Kind::Pipe)
        && entry.writable
        && (entry.kind == Kind::File || !THREADS.load(Ordering::Relaxed))
        && len < SMALL
        && len > 0
        && !owing::uses(fd);
    if entry.mode == Mode::Reading {
        settle::put_back(entry, fd);
    }
    // Whole writes: those of two processes are not mixed within one.
    if entry.mode == Mode::Writing && (!collected || entry.end + len > BUFFER) {
        settle::write_out(entry, fd);
    }
    if entry.error != 0 {
        return Some(-(entry.take_error() as isize));
    }
    if !collected || (entry.mode == Mode::Idle && !entry.begin(Mode::Writing)) {
        return None;
    }
    if fd == 1 {
        PLAIN_OUTPUT.store(1, Ordering::Relaxed);
    }
    if entry.end > 0 {
        effect::note();
    }
    entry.buffer.add(entry.end).copy_from_nonoverlapping(from, len);
    entry.end += len;
    Some(len as isize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, to: *mut u8, len: usize) -> isize {
    if table::has_place(fd) && !OVER.load(Ordering::Relaxed) {
        let mut waits = false;
        if let Some(mut table) = Locked::get() {
            if let Some(result) = serve(&mut table, fd, to, len) {
                return result;
            }
            waits = !is_file(&table, fd);
        }
        if waits {
            settle::all_writes();
        }
    }
    real::read(fd, to, len)
}

/// Serves a read from what was read ahead. None: it is to be done by the kernel, whose offset is right.
#[inline(always)]
unsafe fn serve(table: &mut Table, fd: c_int, to: *mut u8, len: usize) -> Option<isize> {
    classify(table, fd);
    let entry = &mut table.entries[fd as usize];
    if entry.mode == Mode::Writing {
        settle::write_out(entry, fd);
    }
    let small = len < SMALL && len > 0 && entry.readable && !owing::uses(fd);
    let served = match entry.kind {
        Kind::File if small => serve_file(entry, fd, to, len),
        Kind::Pipe if fd == 0 && small && !THREADS.load(Ordering::Relaxed) => {
            serve_pipe(entry, fd, to, len)
        }
        _ => None,
    };
    if served.is_none() {
        settle::put_back(entry, fd);
    }
    served
}

unsafe fn serve_file(entry: &mut Entry, fd: c_int, to: *mut u8, len: usize) -> Option<isize> {
    const FROM_HERE: c_int = 1;
    if entry.mode == Mode::Idle {
        let at = kernel::seek(fd, 0, FROM_HERE);
        if at < 0 || !entry.begin(Mode::Reading) {
            return None;
        }
        entry.at = at as i64;
        entry.ahead = SMALL;
    }
    if entry.end - entry.start >= len {
        effect::note();
    }
    let mut done = 0;
    loop {
        let some = (entry.end - entry.start).min(len - done);
        to.add(done).copy_from_nonoverlapping(entry.buffer.add(entry.start), some);
        entry.start += some;
        done += some;
        if done == len {
            return Some(len as isize);
        }
        entry.at += entry.start as i64;
        (entry.start, entry.end) = (0, 0);
        let got = kernel::read_at(fd, entry.buffer, entry.ahead, entry.at);
        // Reading goes on where it was: more each time.
        entry.ahead = (entry.ahead * 2).min(BUFFER);
        match got {
            0 => return Some(done as isize),
            1.. => entry.end = got as usize,
            _ if done > 0 => return Some(done as isize),
            _ => return None,
        }
    }
}

/// Standard input only: several processes may read from another pipe at the same time, and each would see the
/// bytes that are peeked here.
unsafe fn serve_pipe(entry: &mut Entry, fd: c_int, to: *mut u8, len: usize) -> Option<isize> {
    if entry.mode == Mode::Reading && entry.end - entry.start < len {
        settle::put_back(entry, fd);
    }
    if entry.mode == Mode::Idle {
        // Six system calls in place of four or fewer: not worth it.
        if kernel::waiting(fd) < len * 16 || !entry.begin(Mode::Reading) {
            return None;
        }
        let got = kernel::peek(fd, entry.buffer, PEEK);
        if got < len as isize {
            entry.rest();
            return None;
        }
        entry.end = got as usize;
    } else {
        effect::note();
    }
    to.copy_from_nonoverlapping(entry.buffer.add(entry.start), len);
    entry.start += len;
    Some(len as isize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lseek(fd: c_int, offset: i64, whence: c_int) -> i64 {
    if table::has_place(fd) && !OVER.load(Ordering::Relaxed) {
        if owing::owes(fd) {
            owing::pay();
        }
        if let Some(mut table) = Locked::get() {
            classify(&mut table, fd);
            let entry = &mut table.entries[fd as usize];
            if let Some(at) = move_within(entry, offset, whence) {
                return at;
            }
            settle::one(entry, fd);
        }
    }
    real::lseek(fd, offset, whence)
}

/// Moves in what was read ahead, or away from it.
unsafe fn move_within(entry: &mut Entry, offset: i64, whence: c_int) -> Option<i64> {
    if entry.mode != Mode::Reading || entry.kind != Kind::File {
        return None;
    }
    let target = match whence {
        0 => offset,
        1 => (entry.at + entry.start as i64).checked_add(offset)?,
        _ => return None,
    };
    if target < 0 {
        return None;
    }
    match target.checked_sub(entry.at) {
        Some(inside @ 0..) if inside <= entry.end as i64 => entry.start = inside as usize,
        _ => {
            (entry.at, entry.start, entry.end) = (target, 0, 0);
            entry.ahead = SMALL;
        }
    }
    Some(target)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lseek64(fd: c_int, offset: i64, whence: c_int) -> i64 {
    lseek(fd, offset, whence)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    let mut error = 0;
    if table::has_place(fd) {
        if owing::owes(fd) {
            owing::pay();
        }
        if let Some(mut table) = Locked::get() {
            let entry = &mut table.entries[fd as usize];
            settle::one(entry, fd);
            error = entry.take_error();
            entry.forget();
            if fd == 2 {
                table.forget_all();
            }
        }
    }
    let result = real::close(fd);
    if error != 0 && result == 0 {
        c::set_errno(error);
        return -1;
    }
    result
}

/// The lock is held: no other thread adds to what both processes would then write.
#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> c_int {
    owing::pay();
    let mut table = Locked::get();
    if let Some(table) = &mut table {
        settle::each(table);
    }
    real::fork()
}
