//! One word for each thread, without std: a thread-local variable in the initial-exec model.
//!
//! The library is loaded at start, so that its variable has a place in each thread's static block.

use super::lists::Heap;
use core::arch::{asm, global_asm};

global_asm!(
    ".section .tbss, \"awT\", @nobits",
    ".p2align 3",
    ".hidden deadweight_heap",
    ".globl deadweight_heap",
    ".type deadweight_heap, @object",
    ".size deadweight_heap, 8",
    "deadweight_heap:",
    ".zero 8",
    ".text",
);

/// The heap of this thread, or null.
#[inline(always)]
pub(crate) fn heap() -> *mut Heap {
    let heap: *mut Heap;
    // SAFETY: reads the variable above.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + deadweight_heap@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) heap,
            options(nostack, preserves_flags, readonly)
        );
    }
    heap
}

/// Gives this thread a heap.
pub(crate) unsafe fn set_heap(heap: *mut Heap) {
    asm!(
        "mov {1}, qword ptr [rip + deadweight_heap@GOTTPOFF]",
        "mov qword ptr fs:[{1}], {0}",
        in(reg) heap,
        out(reg) _,
        options(nostack, preserves_flags)
    );
}
