//! TCP sends and acknowledges at once: no message is held back until an earlier part of it is acknowledged.
//!
//! - In: the program's calls that make sockets and read from them.
//! - Out: the same messages, sooner, in more packets.
//! - Must not know: what the messages are.
//!
//! A program that sends has TCP_NODELAY on all its sockets, and one that receives TCP_QUICKACK before each read: one of the
//! two may be another machine's.
//!
//! What it does not keep: how many packets there are, and where a read ends inside a message.

use crate::kernel;
use crate::real::real;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

pub(crate) use crate::real::start;

const TCP: usize = 6;
const NODELAY: usize = 1;
const QUICKACK: usize = 12;
const WORDS: usize = 64;

/// A bit for each descriptor that is a TCP socket. Higher ones are not known.
static SOCKETS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

fn word(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((SOCKETS.get(fd / 64)?, 1 << (fd % 64)))
}

/// Sets an option of a socket to 1. Whether it has it.
unsafe fn set(fd: c_int, option: usize) -> bool {
    const SETSOCKOPT: c_long = 54;
    const ON: &c_int = &1;
    kernel::call_with_six(
        SETSOCKOPT,
        [fd as usize, TCP, option, core::ptr::from_ref(ON) as usize, size_of::<c_int>(), 0],
    ) == 0
}

unsafe fn made(fd: c_int) -> c_int {
    if set(fd, NODELAY)
        && let Some((word, bit)) = word(fd)
    {
        word.fetch_or(bit, Ordering::Relaxed);
    }
    fd
}

unsafe fn before_read(fd: c_int) {
    if let Some((word, bit)) = word(fd)
        && word.load(Ordering::Relaxed) & bit != 0
        && !set(fd, QUICKACK)
    {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
}

real!(fn socket as real_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int);
real!(fn accept as real_accept(fd: c_int, address: *mut c_void, len: *mut c_void) -> c_int);
real!(fn accept4 as real_accept4(fd: c_int, address: *mut c_void, len: *mut c_void, flags: c_int) -> c_int);
real!(fn close as real_close(fd: c_int) -> c_int);
real!(fn read as real_read(fd: c_int, to: *mut c_void, len: usize) -> isize);
real!(fn readv as real_readv(fd: c_int, to: *const c_void, count: c_int) -> isize);
real!(fn recv as real_recv(fd: c_int, to: *mut c_void, len: usize, flags: c_int) -> isize);
real!(fn recvfrom as real_recvfrom(fd: c_int, to: *mut c_void, len: usize, flags: c_int, address: *mut c_void, size: *mut c_void) -> isize);
real!(fn recvmsg as real_recvmsg(fd: c_int, message: *mut c_void, flags: c_int) -> isize);

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    made(real_socket(domain, kind, protocol))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept(fd: c_int, address: *mut c_void, len: *mut c_void) -> c_int {
    made(real_accept(fd, address, len))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut c_void,
    len: *mut c_void,
    flags: c_int,
) -> c_int {
    made(real_accept4(fd, address, len, flags))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    if let Some((word, bit)) = word(fd) {
        word.fetch_and(!bit, Ordering::Relaxed);
    }
    real_close(fd)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, to: *mut c_void, len: usize) -> isize {
    before_read(fd);
    real_read(fd, to, len)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(fd: c_int, to: *const c_void, count: c_int) -> isize {
    before_read(fd);
    real_readv(fd, to, count)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, len: usize, flags: c_int) -> isize {
    before_read(fd);
    real_recv(fd, to, len, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
    address: *mut c_void,
    size: *mut c_void,
) -> isize {
    before_read(fd);
    real_recvfrom(fd, to, len, flags, address, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(fd: c_int, message: *mut c_void, flags: c_int) -> isize {
    before_read(fd);
    real_recvmsg(fd, message, flags)
}
