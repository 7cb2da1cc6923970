//! On which CPUs a thread may run.

/// A set of CPUs.
#[derive(Copy, Clone)]
pub(crate) struct Affinity(libc::cpu_set_t);

impl Affinity {
    /// Where the calling thread may run.
    pub(crate) fn of_this_thread() -> Self {
        // SAFETY: all zero is the empty set; 0 is the calling thread; the set is written only.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
            Self(set)
        }
    }

    /// This CPU alone; none if it has no place in a set.
    pub(crate) fn only(cpu: usize) -> Option<Self> {
        // SAFETY: all zero is the empty set, and the number is within it.
        (cpu < 8 * size_of::<libc::cpu_set_t>()).then(|| unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            Self(set)
        })
    }

    /// Its CPUs, by number.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = usize> {
        // SAFETY: the numbers are within the set.
        (0..8 * size_of::<libc::cpu_set_t>())
            .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &self.0) })
    }

    /// Whether this thread may run only there from now on; 0 is the calling one.
    pub(crate) fn apply_to(&self, thread: u32) -> bool {
        let thread = thread.cast_signed();
        // SAFETY: the set is read only.
        unsafe {
            libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const self.0) == 0
        }
    }
}
