//! A lock that a fork releases in the child, and that a thread knows when it holds it already.
//!
//! It takes no memory and no function of pthread. What it guards must be whole at every instruction: a fork in
//! the middle of a change leaves the child with the lock free.

use crate::{c, kernel};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The lock. The word holds the thread that has it, or 0.
pub(crate) struct Spin {
    word: AtomicPtr<AtomicUsize>,
    before: AtomicUsize,
}

impl Spin {
    pub(crate) const fn new() -> Spin {
        Spin { word: AtomicPtr::new(core::ptr::null_mut()), before: AtomicUsize::new(0) }
    }

    /// Moves the word to a page that is zero in the child of a fork. Called while there is one thread.
    pub(crate) unsafe fn survive_forks(&self) {
        const PAGE: usize = 4096;
        let page = kernel::map(PAGE);
        if page.is_null() {
            return;
        }
        if c::madvise(page.cast(), PAGE, c::MADV_WIPEONFORK) == 0 {
            self.word.store(page.cast(), Ordering::Release);
        } else {
            c::munmap(page.cast(), PAGE);
        }
    }

    fn word(&self) -> &AtomicUsize {
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: a page that is never unmapped.
        if word.is_null() { &self.before } else { unsafe { &*word } }
    }

    /// Takes the lock. False if this thread has it: a signal handler came in between.
    pub(crate) fn lock(&self) -> bool {
        let me = thread();
        let word = self.word();
        let mut tries = 0_u32;
        loop {
            match word.compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(owner) if owner == me => return false,
                Err(_) => {}
            }
            tries += 1;
            if tries.is_multiple_of(64) {
                // SAFETY: no arguments, no memory.
                unsafe { c::sched_yield() };
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Gives the lock back.
    pub(crate) fn unlock(&self) {
        self.word().store(0, Ordering::Release);
    }
}

/// A number that is another one in each thread: the address of its control block.
fn thread() -> usize {
    let pointer: usize;
    // SAFETY: the first word of the control block is its own address, by the ABI.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, pure, readonly));
    }
    pointer
}
