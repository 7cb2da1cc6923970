//! Task pids inside a container: perf's own fields have those that tasks have in our namespace, what tracepoints
//! wrote has the machine's. Which belong together is seen whenever a task leaves a CPU, where both stand.

use std::collections::HashMap;

/// In a number of ours: a task of another namespace, or one that is not known yet.
const FOREIGN: u32 = 1 << 31;

/// The pids that are known. Where ours are the machine's there is nothing to know.
#[derive(Default)]
pub(super) struct PidMap(Option<HashMap<u32, u32>>);

impl PidMap {
    /// Whether `inside` a namespace of our own.
    pub(super) fn new(inside: bool) -> Self {
        Self(inside.then(HashMap::new))
    }

    /// Whether they have to be told apart.
    pub(super) fn differ(&self) -> bool {
        self.0.is_some()
    }

    /// A task of the machine's number has this one here; 0 for tasks of other namespaces.
    pub(super) fn learn(&mut self, machines: u32, here: u32) {
        if let Some(known) = self.0.as_mut().filter(|_| machines != 0 && here != 0) {
            known.insert(machines & !FOREIGN, here);
        }
    }

    /// The number of the task that the machine calls so.
    pub(super) fn here(&self, machines: u32) -> u32 {
        match &self.0 {
            Some(known) if machines != 0 => {
                known.get(&machines).copied().unwrap_or(machines | FOREIGN)
            }
            _ => machines,
        }
    }

    /// The same, if it is known.
    pub(super) fn known(&self, machines: u32) -> Option<u32> {
        Some(self.here(machines)).filter(|number| number & FOREIGN == 0)
    }

    /// The machine may use the number again.
    pub(super) fn forget(&mut self, machines: u32) {
        if let Some(known) = &mut self.0 {
            known.remove(&machines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_learned_and_forgotten() {
        let mut pids = PidMap::new(true);
        assert_eq!((pids.here(4711), pids.known(4711)), (4711 | FOREIGN, None));
        pids.learn(4711, 7);
        assert_eq!((pids.here(4711), pids.known(4711)), (7, Some(7)));
        // A task of another namespace, and the idle task.
        pids.learn(4712, 0);
        assert_eq!((pids.here(4712), pids.here(0)), (4712 | FOREIGN, 0));
        // A CPU's holder that turns out to be one of ours.
        pids.learn(4712 | FOREIGN, 8);
        assert_eq!(pids.here(4712), 8);
        pids.forget(4711);
        assert_eq!(pids.known(4711), None);
        assert_eq!(PidMap::new(false).here(4711), 4711);
    }
}
