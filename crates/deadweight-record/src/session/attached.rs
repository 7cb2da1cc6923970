//! The events of running tasks, when a recording attaches to them: each thread needs its own set, which its children
//! inherit. `record::attached` finds the threads.

use super::Session;
use super::root_rung::task_events;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::perf::schema::Role;
use crate::perf::sys::Scope;
use crate::perf::tracefs::Tracefs;

/// Descriptors that are reserved for everything else.
const SPARE_FILES: usize = 256;

impl Session {
    /// Whether the descriptor limit allows a set of task events for this many tasks.
    pub(crate) fn has_descriptors_for(&self, tasks: usize) -> bool {
        /// Task events of one task on one CPU, with the sampling clock.
        const EACH: usize = 8;
        self.has_programs()
            || descriptor_limit::most_files() > tasks * EACH * self.cpus.len() + SPARE_FILES
    }

    /// Follows this task and its descendants too, once enabled; false if the task is gone.
    pub(crate) fn follow_task(&mut self, task: i32) -> Result<bool, Error> {
        if self.has_programs() {
            self.follow_by_programs(task);
            return Ok(true);
        }
        let mut opened = Vec::new();
        for (role, event) in task_events(&Tracefs::open()?) {
            match self.open_everywhere(role, event.as_ref(), Scope::TaskTree(task)) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
                other => opened.extend(self.tolerate(role, other, role != Role::FaultSite)?),
            }
        }
        self.task.extend(opened);
        Ok(true)
    }

    /// Records the calls and faults of all tasks: where there are too many to follow each.
    pub(crate) fn open_task_events_for_all(&mut self) -> Result<(), Error> {
        for (role, event) in task_events(&Tracefs::open()?) {
            let opened = self.open_everywhere(role, event.as_ref(), Scope::AllTasks);
            let opened = self.tolerate(role, opened, role != Role::FaultSite)?;
            self.task.extend(opened);
        }
        let warning = "the process has so many threads that the system calls of all programs are recorded: \
                       that slows them all down";
        self.warnings.push(warning.into());
        Ok(())
    }

    /// Enables the task events of running tasks.
    pub(crate) fn enable_tasks(&self) {
        // Events of a task that is gone cannot be enabled.
        self.task.iter().for_each(|event| _ = event.enable());
    }
}
