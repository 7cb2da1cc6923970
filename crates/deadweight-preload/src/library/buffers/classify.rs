//! Which descriptors are collected.
//!
//! Files of file systems that keep bytes, and pipes. Not: terminals, sockets, devices, `/proc`; what was opened
//! to be synchronous, direct or non-blocking; standard error, and what is the same file as standard error; two
//! descriptors that are one file, because they may have one offset, and see each other's bytes.

use super::kernel_calls::{self as kernel, Stat};
use super::settle;
use super::table::{Kind, THREADS, Table};
use core::ffi::c_int;
use core::sync::atomic::Ordering;

const STANDARD_ERROR: c_int = 2;

/// ext, XFS, Btrfs, tmpfs, ramfs, overlay, F2FS, ZFS, bcachefs, SquashFS, EROFS, FUSE.
const FILE_SYSTEMS: [u64; 12] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x8584_58F6,
    0x794C_7630,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x7371_7368,
    0xE0F5_E1E2,
    0x6573_5546,
];

/// Looks at `fd` if that has not been done since it was opened.
#[inline(always)]
pub(crate) unsafe fn classify(table: &mut Table, fd: c_int) {
    if table.entries[fd as usize].kind == Kind::Unknown {
        look(table, fd);
    }
}

/// Collects nothing for `fd` until it is closed.
pub(crate) unsafe fn exclude(table: &mut Table, fd: c_int) {
    classify(table, fd);
    let entry = &mut table.entries[fd as usize];
    settle::one(entry, fd);
    if entry.kind != Kind::Unknown {
        entry.kind = not_collected(entry.kind);
    }
}

#[cold]
#[inline(never)]
unsafe fn look(table: &mut Table, fd: c_int) {
    let (kind, flags, stat) = kind(fd);
    let Some(stat) = stat else { return };
    let index = fd as usize;
    table.high = table.high.max(index + 1);
    let entry = &mut table.entries[index];
    const WRITE_ONLY: isize = 1;
    const ACCESS: isize = 3;
    entry.readable = flags & ACCESS != WRITE_ONLY;
    entry.writable = flags & ACCESS != 0;
    (entry.device, entry.inode, entry.error) = (stat.device, stat.inode, 0);
    (entry.kind, entry.ahead) = (kind, 0);
    for other in 0..table.high {
        let entry = table.entries[other];
        let same = (entry.device, entry.inode) == (stat.device, stat.inode);
        if other != index && same && entry.kind != Kind::Unknown {
            settle::one(&mut table.entries[other], other as c_int);
            table.entries[other].kind = not_collected(entry.kind);
            table.entries[index].kind = not_collected(kind);
        }
    }
}

fn not_collected(kind: Kind) -> Kind {
    match kind {
        Kind::File | Kind::OtherFile => Kind::OtherFile,
        _ => Kind::Other,
    }
}

/// What `fd` is by itself, its flags, and nothing if it is not open.
unsafe fn kind(fd: c_int) -> (Kind, isize, Option<Stat>) {
    const FORMAT: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    const FIFO: u32 = 0o010_000;
    // O_NONBLOCK, O_DSYNC, O_DIRECT, O_SYNC, O_PATH.
    const AT_ONCE: isize = 0o4000 | 0o10_000 | 0o40_000 | 0o4_000_000 | 0o10_000_000;
    let Some(stat) = kernel::stat(fd) else { return (Kind::Unknown, 0, None) };
    let flags = kernel::flags(fd);
    let plain = flags >= 0 && flags & AT_ONCE == 0 && fd != STANDARD_ERROR && !is_error(&stat);
    let kind = match stat.mode & FORMAT {
        REGULAR => {
            let keeps = kernel::file_system(fd).is_some_and(|magic| FILE_SYSTEMS.contains(&magic));
            if plain && keeps { Kind::File } else { Kind::OtherFile }
        }
        FIFO if plain && !THREADS.load(Ordering::Relaxed) => Kind::Pipe,
        _ => Kind::Other,
    };
    (kind, flags, Some(stat))
}

/// Whether it is the same file as standard error: stdio writes there at once.
unsafe fn is_error(stat: &Stat) -> bool {
    kernel::stat(STANDARD_ERROR)
        .is_some_and(|error| (error.device, error.inode) == (stat.device, stat.inode))
}

/// Whether `fd` is the same file as standard error.
pub(crate) unsafe fn is_same_as_error(fd: c_int) -> bool {
    kernel::stat(fd).is_some_and(|stat| is_error(&stat))
}
