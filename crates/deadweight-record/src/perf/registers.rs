//! The numbers of user registers in the kernel's `perf_regs.h`, by architecture.

pub(crate) use numbers::*;

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(crate) const FP: u8 = 6;
    pub(crate) const SP: u8 = 7;
    pub(crate) const IP: u8 = 8;
    /// This architecture has none: an unused number.
    pub(crate) const LR: u8 = 63;
    pub(crate) const ALL: u64 = 1 << FP | 1 << SP | 1 << IP;
    /// The general registers in the order of their numbers in machine code: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8
    /// to r15.
    pub(crate) const GENERAL: [u8; 16] = [0, 2, 3, 1, SP, FP, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const FP: u8 = 29;
    pub(crate) const LR: u8 = 30;
    pub(crate) const SP: u8 = 31;
    pub(crate) const IP: u8 = 32;
    pub(crate) const ALL: u64 = 1 << FP | 1 << LR | 1 << SP | 1 << IP;
    /// The general registers in the order of their numbers in machine code: x0 to x30, sp.
    pub(crate) const GENERAL: [u8; 32] = {
        let mut numbers = [0; 32];
        let mut n = 0;
        while n < 32 {
            numbers[n as usize] = n;
            n += 1;
        }
        numbers
    };
}

/// How many general registers there are.
pub(crate) const COUNT: usize = GENERAL.len();

/// The mask of all registers that samples have.
pub(crate) const SAMPLED: u64 = {
    let (mut mask, mut n) = (ALL, 0);
    while n < COUNT {
        mask |= 1 << GENERAL[n];
        n += 1;
    }
    mask
};
