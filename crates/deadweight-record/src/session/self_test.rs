//! Self-test: whether the tracepoints of each CPU's idle task are delivered. On some machines those of one CPU are
//! not, and the task that runs there next would seem to wait longer.
//!
//! Just before the run, this thread sleeps on each CPU for a moment; then the rings must show that the idle task was
//! switched out again. A CPU that was not idle proves nothing.

use super::Session;
use crate::error::Error;
use crate::perf::decode::{self, Body, Record};
use crate::perf::schema::Role;
use crate::procfs::affinity::Affinity;
use std::thread;
use std::time::Duration;

/// Long enough for a CPU to become idle.
const NAP: Duration = Duration::from_micros(50);

/// The session's CPUs without a switch of the idle task.
pub(crate) fn blind_cpus(session: &mut Session) -> Result<Vec<i32>, Error> {
    session.enable()?;
    let before = Affinity::of_this_thread();
    for cpu in &session.cpus {
        let only = usize::try_from(*cpu).ok().and_then(Affinity::only);
        if only.is_some_and(|cpu| cpu.apply_to(0)) {
            thread::sleep(NAP);
        }
    }
    before.apply_to(0);
    session.disable()?;
    let idle_left = session.schema.offsets.prev_pid;
    let mut blind = session.cpus.clone();
    let leaves_idle = |record: &Record<'_>| {
        matches!(record.body, Body::Sample(sample)
            if sample.role == Role::Switch && sample.raw_u32(idle_left) == Some(0))
    };
    let bytes = session.take_records();
    for record in decode::records(&bytes, &session.schema).filter(leaves_idle) {
        blind.retain(|cpu| cpu.cast_unsigned() != record.cpu);
    }
    Ok(blind)
}
