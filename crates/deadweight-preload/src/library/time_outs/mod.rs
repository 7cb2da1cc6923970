//! Waits that only the clock ends are cut short, and the program's clock runs ahead by as much.
//!
//! - In: the program's calls that sleep, wait with a time-out, or read a clock.
//! - Out: the same answers, sooner.
//! - Must not know: what the program waits for.
//!
//! A wait looks for its event for a moment only. If nothing came, it answers that its time is over, and the clocks show
//! that time: a program that waits until a moment sees it reached. A wait without a time-out, or whose event is there,
//! is as it was.
//!
//! What it does not keep: an event that would have come within the time-out comes after it; what a thread does in the
//! meantime takes more of the time that the program sees; timers of the kernel (`alarm`, `timerfd`) run by the kernel's clock.

mod clock;
mod descriptors;
mod locks;
mod sleeps;

pub(crate) use crate::real::start;
