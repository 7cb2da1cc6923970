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
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(crate) const FP: u8 = 29;
    pub(crate) const LR: u8 = 30;
    pub(crate) const SP: u8 = 31;
    pub(crate) const IP: u8 = 32;
    pub(crate) const ALL: u64 = 1 << FP | 1 << LR | 1 << SP | 1 << IP;
}
