//! Whether the tracepoints of each CPU's idle task reach us: on some machines those of one CPU do
//! not, and what runs there next would seem to wait on.
//!
//! Tried just before the run: we sleep on each CPU for a moment and look whether its idle task was
//! seen making room for us again. A CPU that was not idle proves nothing.

use crate::error::Error;
use crate::perf::decode::{self, Body, Record};
use crate::perf::schema::Role;
use crate::session::Session;
use std::thread;
use std::time::Duration;

/// Long enough for a CPU to become idle.
const NAP: Duration = Duration::from_micros(50);

/// The session's CPUs whose idle task was not seen.
pub(crate) fn unseen(session: &mut Session) -> Result<Vec<i32>, Error> {
    session.enable()?;
    let before = affinity();
    for cpu in &session.cpus {
        if only(*cpu).is_some_and(|set| set_affinity(&set)) {
            thread::sleep(NAP);
        }
    }
    set_affinity(&before);
    session.disable()?;
    let idle_left = session.schema.offsets.prev_pid;
    let mut bytes = Vec::new();
    let mut unseen = session.cpus.clone();
    for (ring, cpu) in session.rings.iter_mut().zip(&session.cpus) {
        bytes.clear();
        ring.copy_to(&mut bytes);
        let leaves_idle = |record: Record<'_>| {
            matches!(record.body, Body::Sample(sample)
                if sample.role == Role::Switch && sample.raw_u32(idle_left) == Some(0))
        };
        if decode::records(&bytes, &session.schema).any(leaves_idle) {
            unseen.retain(|other| other != cpu);
        }
    }
    Ok(unseen)
}

/// The set of this CPU; none if it has no place in a set.
fn only(cpu: i32) -> Option<libc::cpu_set_t> {
    let cpu = usize::try_from(cpu).ok().filter(|c| *c < 8 * size_of::<libc::cpu_set_t>())?;
    // SAFETY: all zero is the empty set, and the number is within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        Some(set)
    }
}

/// Where the calling thread may run.
fn affinity() -> libc::cpu_set_t {
    // SAFETY: all zero is the empty set; 0 is the calling thread; the set is written only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        set
    }
}

/// Whether the calling thread may run only there from now on.
fn set_affinity(set: &libc::cpu_set_t) -> bool {
    // SAFETY: 0 is the calling thread; the set is read only.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) == 0 }
}
