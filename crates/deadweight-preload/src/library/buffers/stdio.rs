//! Streams of stdio: `fflush` waits, and standard output without a buffer gets one.
//!
//! stdio calls the kernel without a name that could be taken, so that its buffers do the collecting. Only while
//! there is one thread: a stream that another thread closes must not be flushed.

use super::classify::{classify, exclude};
use super::effect;
use super::owing::{self, FULL, Stream, owes, pay, real_fflush, stderr, stdin, stdout};
use super::real::real;
use super::settle;
use super::table::{self, Kind, Locked, Mode, OVER, THREADS};
use crate::kernel;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

unsafe extern "C" {
    fn __fwriting(stream: Stream) -> c_int;
}

real!(fn fflush_unlocked as real_fflush_unlocked(stream: Stream) -> c_int);
real!(fn fileno as real_fileno(stream: Stream) -> c_int);
real!(fn setvbuf as real_setvbuf(stream: Stream, buffer: *mut c_char, mode: c_int, size: usize) -> c_int);

const LINE: c_int = 1;
const NONE: c_int = 2;

fn idle() -> bool {
    THREADS.load(Relaxed) || OVER.load(Relaxed)
}

/// Whether what is written to the stream is collected: its descriptor, if so.
unsafe fn collected(stream: Stream) -> Option<c_int> {
    if idle() {
        return None;
    }
    let fd = real_fileno(stream);
    if !table::has_place(fd) {
        return None;
    }
    let mut table = Locked::get()?;
    classify(&mut table, fd);
    let entry = &mut table.entries[fd as usize];
    let collected = matches!(entry.kind, Kind::File | Kind::Pipe) && entry.writable;
    (collected && entry.mode == Mode::Idle).then_some(fd)
}

/// Notes that the stream owes a flush. False if it has to be flushed now.
unsafe fn defer(stream: Stream) -> bool {
    if owing::has(stream) {
        effect::note();
        return true;
    }
    if stream == stderr || __fwriting(stream) == 0 {
        return false;
    }
    collected(stream).is_some_and(|fd| owing::add(stream, fd))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fflush(stream: Stream) -> c_int {
    if !stream.is_null() && defer(stream) {
        return 0;
    }
    settle::all_writes();
    real_fflush(stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fflush_unlocked(stream: Stream) -> c_int {
    if !stream.is_null() && defer(stream) {
        return 0;
    }
    settle::all_writes();
    real_fflush_unlocked(stream)
}

/// The buffer of standard output.
static BUFFER: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Gives standard output a buffer if it is to have none, or one of a line.
unsafe fn enlarge(mode: c_int) -> bool {
    if collected(stdout).is_none() {
        return false;
    }
    if BUFFER.load(Relaxed).is_null() {
        BUFFER.store(kernel::map(table::BUFFER).cast(), Relaxed);
    }
    let buffer = BUFFER.load(Relaxed);
    if buffer.is_null() || real_setvbuf(stdout, buffer, FULL, table::BUFFER) != 0 {
        return false;
    }
    owing::want(mode);
    effect::note();
    true
}

/// Standard output is as the program wanted it: there will be a second thread, or one file for two streams.
pub(crate) unsafe fn stop() {
    let wanted = owing::forget_wanted();
    if wanted != FULL {
        // With a buffer of lines that it has already, glibc would go on as before until it is full.
        let (buffer, size) =
            if wanted == LINE { (BUFFER.load(Relaxed), table::BUFFER) } else { (null_mut(), 0) };
        real_setvbuf(stdout, buffer, wanted, size);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setvbuf(
    stream: Stream,
    buffer: *mut c_char,
    mode: c_int,
    size: usize,
) -> c_int {
    if stream == stdout {
        if matches!(mode, LINE | NONE) && enlarge(mode) {
            return 0;
        }
        owing::forget_wanted();
    }
    real_setvbuf(stream, buffer, mode, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setbuffer(stream: Stream, buffer: *mut c_char, size: usize) {
    setvbuf(stream, buffer, if buffer.is_null() { NONE } else { FULL }, size);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setbuf(stream: Stream, buffer: *mut c_char) {
    const BUFSIZ: usize = 8192;
    // musl's is smaller: a buffer of the program then has fewer bytes.
    let size = if buffer.is_null() { 0 } else { BUFSIZ.min(1024) };
    setvbuf(stream, buffer, if buffer.is_null() { NONE } else { FULL }, size);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setlinebuf(stream: Stream) {
    setvbuf(stream, null_mut(), LINE, 0);
}

/// The program has two ways to the file from now on.
#[unsafe(no_mangle)]
unsafe extern "C" fn fileno(stream: Stream) -> c_int {
    let fd = real_fileno(stream);
    let standard = stream == stdin || stream == stdout || stream == stderr;
    if !standard && table::has_place(fd) {
        if owes(fd) {
            pay();
        }
        if let Some(mut table) = Locked::get() {
            exclude(&mut table, fd);
        }
    }
    fd
}

/// The stream is about to be closed, or to be another file.
pub(crate) unsafe fn closing(stream: Stream) {
    pay();
    if stream == stdout {
        owing::forget_wanted();
    }
    let fd = if stream.is_null() { -1 } else { real_fileno(stream) };
    if let Some(mut table) = Locked::get()
        && table::has_place(fd)
    {
        let entry = &mut table.entries[fd as usize];
        settle::one(entry, fd);
        entry.forget();
        if fd == 2 {
            table.forget_all();
        }
    }
}

/// The stream is about to read: what plain calls read ahead of its descriptor is put back.
pub(crate) unsafe fn reading(stream: Stream) {
    let fd = real_fileno(stream);
    if table::has_place(fd)
        && let Some(mut table) = Locked::get()
    {
        settle::one(&mut table.entries[fd as usize], fd);
    }
}

/// Standard input, if `stream` is null.
pub(crate) unsafe fn input(stream: Stream) -> Stream {
    if stream.is_null() { stdin } else { stream }
}

/// The bytes that the stream has read ahead. glibc and musl keep the two pointers at the same place.
pub(crate) unsafe fn ahead<'a>(stream: Stream) -> &'a [u8] {
    #[repr(C)]
    struct Begin {
        flags: usize,
        at: *const u8,
        end: *const u8,
    }
    let begin = &*stream.cast::<Begin>();
    let len = (begin.end as usize).saturating_sub(begin.at as usize);
    if begin.at.is_null() { &[] } else { core::slice::from_raw_parts(begin.at, len) }
}
