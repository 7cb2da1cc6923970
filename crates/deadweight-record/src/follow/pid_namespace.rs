//! Process ids inside a container: perf's own fields contain the ids of the recorder's PID namespace, tracepoints
//! those of the initial one. A switch-out contains both, and connects them.

use deadweight_trace::hash::ByFast;
use std::collections::HashMap;

/// Marks an id as that of a task in another namespace, or of one that is not known yet.
const FOREIGN: u32 = 1 << 31;

/// The known ids. If the namespaces are the same, there is nothing to know.
#[derive(Default)]
pub(super) struct PidMap(Option<HashMap<u32, u32, ByFast>>);

impl PidMap {
    /// Whether the recorder is in a PID namespace of its own.
    pub(super) fn new(inside: bool) -> Self {
        Self(inside.then(HashMap::default))
    }

    /// Whether the ids differ.
    pub(super) fn differ(&self) -> bool {
        self.0.is_some()
    }

    /// A task with this id in the initial namespace has that id here; 0 for tasks of other namespaces.
    pub(super) fn learn(&mut self, machines: u32, here: u32) {
        if let Some(known) = self.0.as_mut().filter(|_| machines != 0 && here != 0) {
            known.insert(machines & !FOREIGN, here);
        }
    }

    /// The id here of the task with this initial id.
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

    /// The kernel may reuse the id.
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
        // A CPU's holder that turns out to be a followed task.
        pids.learn(4712 | FOREIGN, 8);
        assert_eq!(pids.here(4712), 8);
        pids.forget(4711);
        assert_eq!(pids.known(4711), None);
        assert_eq!(PidMap::new(false).here(4711), 4711);
    }
}
