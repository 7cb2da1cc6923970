//! Which task a tid stands for at this moment. It does not know what the task does.

use deadweight_trace::ids::{TaskId, Tid};
use std::collections::BTreeMap;

/// The largest tid that Linux gives out (`PID_MAX_LIMIT`) bounds the table.
const TABLE: usize = 1 << 22;

/// The living tasks, by tid.
#[derive(Debug, Default)]
pub(crate) struct Tids {
    table: Vec<u32>,
    beyond: BTreeMap<u32, TaskId>,
}

/// Stands for "no task" in the table.
const NONE: u32 = u32::MAX;

impl Tids {
    /// The task with this tid.
    pub(crate) fn get(&self, tid: Tid) -> Option<TaskId> {
        match self.table.get(tid.0 as usize) {
            Some(&NONE) => None,
            Some(&id) => Some(TaskId(id)),
            None => self.beyond.get(&tid.0).copied(),
        }
    }

    /// From now on `task` has this tid.
    pub(crate) fn set(&mut self, tid: Tid, task: TaskId) {
        let index = tid.0 as usize;
        if index >= TABLE {
            self.beyond.insert(tid.0, task);
            return;
        }
        if index >= self.table.len() {
            self.table.resize(index + 1, NONE);
        }
        self.table[index] = task.0;
    }

    /// From now on no task has this tid.
    pub(crate) fn free(&mut self, tid: Tid) {
        match self.table.get_mut(tid.0 as usize) {
            Some(slot) => *slot = NONE,
            None => {
                self.beyond.remove(&tid.0);
            }
        }
    }
}
