//! The events of tasks that run already, when a recording joins them: each thread needs its own set,
//! what it starts later inherits that. Not for finding the threads: that is `record::attached`.

use super::Session;
use super::root_rung::task_events;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::perf::schema::Role;
use crate::perf::sys::Scope;
use crate::perf::tracefs::Tracefs;

/// Descriptors that are left for everything else.
const SPARE_FILES: usize = 256;

impl Session {
    /// Whether so many tasks can have a set of task events each.
    pub(crate) fn has_room_for(&self, tasks: usize) -> bool {
        /// Task events of one task on one CPU, with the sampling clock.
        const EACH: usize = 8;
        descriptor_limit::most_files() > tasks * EACH * self.cpus.len() + SPARE_FILES
    }

    /// Follows this task and its descendants too, once enabled; false if it is gone.
    pub(crate) fn follow_task(&mut self, task: i32) -> Result<bool, Error> {
        let mut opened = Vec::new();
        self.follow_calls_of(task);
        for (role, event) in task_events(&Tracefs::open()?, self.bpf_events.is_none()) {
            match self.open_everywhere(role, event.as_ref(), Scope::TaskTree(task)) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
                other => opened.extend(self.tolerate(role, other, role != Role::FaultSite)?),
            }
        }
        self.task.extend(opened);
        Ok(true)
    }

    /// Watches the calls and faults of everybody: where there are too many tasks to follow each.
    pub(crate) fn open_task_events_for_all(&mut self) -> Result<(), Error> {
        self.follow_calls_of_all();
        for (role, event) in task_events(&Tracefs::open()?, self.bpf_events.is_none()) {
            let opened = self.open_everywhere(role, event.as_ref(), Scope::AllTasks);
            let opened = self.tolerate(role, opened, role != Role::FaultSite)?;
            self.task.extend(opened);
        }
        let told = "it has so many threads that the system calls of all programs are recorded: \
                    they are slowed down too";
        self.warnings.push(told.into());
        Ok(())
    }

    /// Starts the task events of tasks that run already.
    pub(crate) fn enable_tasks(&self) {
        // Those of a task that is gone cannot be started.
        self.task.iter().for_each(|event| _ = event.enable());
    }
}
