//! The clock of all records, and the kernel's other clocks. For timing pieces of work see `timing`.

use deadweight_trace::units::Ns;

/// The clock of every event, in ns.
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC).0
}

/// The time that a clock shows. Async-signal-safe.
pub(crate) fn read(id: libc::clockid_t) -> Ns {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(id, &mut time) };
    Ns(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}
