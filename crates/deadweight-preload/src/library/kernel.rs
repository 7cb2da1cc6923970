//! System calls by the instruction, past the functions of the C library.
//!
//! They are no points of cancellation, they do not set `errno`, and no library takes their place.

use core::ffi::c_long;

/// A system call of up to four arguments. -errno if it fails.
pub(crate) unsafe fn call(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
) -> isize {
    call_with_six(number, [first, second, third, fourth, 0, 0])
}

/// Private zeroed memory, or null.
#[cfg(any(library = "allocator", library = "answers", library = "buffers", library = "maps"))]
pub(crate) unsafe fn map(len: usize) -> *mut u8 {
    const MMAP: c_long = 9;
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    let at = call_with_six(MMAP, [0, len, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0]);
    if at < 0 { core::ptr::null_mut() } else { at as *mut u8 }
}

/// A system call of six arguments.
#[inline(always)]
pub(crate) unsafe fn call_with_six(number: c_long, arguments: [usize; 6]) -> isize {
    let result: isize;
    core::arch::asm!(
        "syscall",
        inlateout("rax") number as isize => result,
        in("rdi") arguments[0],
        in("rsi") arguments[1],
        in("rdx") arguments[2],
        in("r10") arguments[3],
        in("r8") arguments[4],
        in("r9") arguments[5],
        out("rcx") _,
        out("r11") _,
        options(nostack)
    );
    result
}
