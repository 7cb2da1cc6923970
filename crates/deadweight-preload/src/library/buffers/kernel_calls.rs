//! The system calls that move the bytes. They return -errno.

use crate::kernel::call;
use core::ffi::c_int;

pub(crate) const EINTR: isize = -4;
pub(crate) const EAGAIN: isize = -11;

/// `struct stat` of x86-64.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    links: u64,
    pub(crate) mode: u32,
    rest: [u32; 5],
    pub(crate) size: i64,
    more: [u64; 11],
}

/// What `fd` is.
pub(crate) unsafe fn stat(fd: c_int) -> Option<Stat> {
    let mut stat = core::mem::zeroed::<Stat>();
    (call(5, fd as usize, (&raw mut stat) as usize, 0, 0) == 0).then_some(stat)
}

/// The magic number of the file system that `fd` is on.
pub(crate) unsafe fn file_system(fd: c_int) -> Option<u64> {
    let mut words = [0_u64; 16];
    (call(138, fd as usize, words.as_mut_ptr() as usize, 0, 0) == 0).then_some(words[0])
}

/// The flags that it was opened with.
pub(crate) unsafe fn flags(fd: c_int) -> isize {
    const F_GETFL: usize = 3;
    call(72, fd as usize, F_GETFL, 0, 0)
}

pub(crate) unsafe fn write(fd: c_int, from: *const u8, len: usize) -> isize {
    call(1, fd as usize, from as usize, len, 0)
}

/// Waits until there is a place for bytes.
pub(crate) unsafe fn wait_to_write(fd: c_int) {
    const POLLOUT: u64 = 4;
    let mut waits_for = fd as u32 as u64 | POLLOUT << 32;
    call(7, (&raw mut waits_for) as usize, 1, usize::MAX, 0);
}

pub(crate) unsafe fn read(fd: c_int, to: *mut u8, len: usize) -> isize {
    call(0, fd as usize, to as usize, len, 0)
}

pub(crate) unsafe fn read_at(fd: c_int, to: *mut u8, len: usize, at: i64) -> isize {
    call(17, fd as usize, to as usize, len, at as usize)
}

/// `lseek` from the start, or from where it is.
pub(crate) unsafe fn seek(fd: c_int, offset: i64, whence: c_int) -> isize {
    call(8, fd as usize, offset as usize, whence as usize, 0)
}

/// Bytes that a pipe holds.
pub(crate) unsafe fn waiting(fd: c_int) -> usize {
    const FIONREAD: usize = 0x541B;
    let mut bytes: c_int = 0;
    if call(16, fd as usize, FIONREAD, (&raw mut bytes) as usize, 0) == 0 {
        bytes as usize
    } else {
        0
    }
}

/// Copies what a pipe holds, up to `len` bytes. The pipe keeps it.
pub(crate) unsafe fn peek(fd: c_int, to: *mut u8, len: usize) -> isize {
    const O_CLOEXEC: usize = 0o2_000_000;
    const NONBLOCK: usize = 2;
    let mut ends: [c_int; 2] = [0; 2];
    let made = call(293, ends.as_mut_ptr() as usize, O_CLOEXEC, 0, 0);
    if made < 0 {
        return made;
    }
    let copied = call(276, fd as usize, ends[1] as usize, len, NONBLOCK);
    let mut got = copied.min(0);
    while got >= 0 && got < copied {
        let more = read(ends[0], to.add(got as usize), (copied - got) as usize);
        got = if more > 0 { got + more } else { -1 };
    }
    call(3, ends[0] as usize, 0, 0, 0);
    call(3, ends[1] as usize, 0, 0, 0);
    got
}
