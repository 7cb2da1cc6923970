//! The events of one task's decimated system call. `session::decimate` decides which calls are decimated.

use super::Session;
use crate::perf::call_tracepoints::Pair;
use crate::perf::schema::{Layout, Role, fields};
use crate::perf::sys::{Event, Every, Open, Scope, Source};
use std::ffi::CString;
use std::io;

/// 1 in this many calls is recorded. A prime, because programs rarely repeat themselves with a prime period.
pub(crate) const NTH: u32 = 61;

/// The two events of each CPU at a task's call.
#[derive(Debug)]
pub(crate) struct TaskCallEvents {
    enters: Vec<Open>,
    leaves: Vec<Open>,
}

impl Session {
    /// The two tracepoints of a call, where single calls have some.
    pub(crate) fn pair(&self, nr: u16) -> Option<Pair> {
        self.user_access.as_ref()?.calls.iter().find(|pair| pair.nr == nr).copied()
    }

    /// Opens events at one task's call, disabled: for each call, or for 1 in N.
    pub(crate) fn open_at_call(
        &mut self,
        pair: Pair,
        task: i32,
        nth: bool,
    ) -> io::Result<TaskCallEvents> {
        let roles = match nth {
            true => [Role::EnterNth, Role::LeaveNth],
            false => [Role::Enter, Role::Leave],
        };
        let every = Every::Count(if nth { NTH.into() } else { 1 });
        let layout = Layout { fields: fields::BASE | fields::RAW, registers: 0 };
        let mut open = |at, role| {
            let source = Source::Tracepoint(at);
            let event =
                Event { every, no_kernel: true, ..super::Event::of_each(source, layout.fields) };
            self.open_everywhere(role, Ok(&event), Scope::OneTask(task))
        };
        Ok(TaskCallEvents {
            enters: open(pair.enter, roles[0])?,
            leaves: open(pair.leave, roles[1])?,
        })
    }

    /// From now on, the events that all tasks share exclude this call of these tasks, permanently. The kernel refuses
    /// it if they exclude another call already.
    pub(crate) fn exclude_tasks(&self, pair: Pair, tasks: &[u32]) -> io::Result<()> {
        let each: Vec<_> = tasks.iter().map(|task| format!("common_pid != {task}")).collect();
        let filter = CString::new(each.join(" && "))?;
        for tracepoint in [pair.enter, pair.leave] {
            self.at(tracepoint).try_for_each(|open| open.filter(&filter))?;
        }
        Ok(())
    }
}

impl TaskCallEvents {
    /// Enables them; returns first, so that each recorded entry has its return.
    pub(crate) fn start(&self) -> io::Result<()> {
        self.leaves.iter().chain(&self.enters).try_for_each(Open::enable)
    }

    /// Disables them in the reverse order.
    pub(crate) fn stop(&self) -> io::Result<()> {
        self.enters.iter().chain(&self.leaves).try_for_each(Open::disable)
    }

    /// Whether their task is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.leaves.first().is_some_and(Open::is_over)
    }

    /// Excludes this task, as [`Session::exclude_tasks`].
    pub(crate) fn exclude_tasks(&self, task: u32) -> io::Result<()> {
        let filter = CString::new(format!("common_pid != {task}"))?;
        self.enters.iter().chain(&self.leaves).try_for_each(|open| open.filter(&filter))
    }
}
