//! User registers and stacks of tasks: at samples, calls, faults, waits and probes.
//!
//! For reading them out of a record see `user_stack`.

use super::Follow;
use super::user_stack::{UserStack, general_registers, user_state};
use crate::perf::decode::{Record, Sample};
use crate::perf::schema::Role;
use deadweight_trace::raw::{RawKind, UserState};

impl Follow<'_> {
    /// To be called after an event that can have user registers and stack. If they were read before it, they are
    /// emitted now; otherwise from the next record of the same role.
    pub(super) fn expect_user_stack(&mut self, record: &Record<'_>, task: u32, site: Role) {
        let Some(known) = self.tasks.get_mut(&task) else { return };
        known.expected_user_stack = Some(site);
        if let Some(early) = known.early_user_stack.take_if(|early| early.role == site) {
            known.expected_user_stack = None;
            self.emit(record, task, RawKind::Site(early.user()));
        }
    }

    pub(super) fn site(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        if self.site_of_decimated(record, sample) {
            return;
        }
        sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
        let chain = std::mem::take(&mut self.user_chain);
        if let Some(user) = user_state(sample, &chain)
            && let Some(task) = self.tasks.get_mut(&record.task)
        {
            if task.expected_user_stack == Some(sample.role) {
                task.expected_user_stack = None;
                self.emit(record, record.task, RawKind::Site(user));
            } else {
                task.early_user_stack = Some(UserStack::keep(sample.role, &user));
            }
        }
        self.user_chain = chain;
    }

    pub(super) fn with_user(
        &mut self,
        record: &Record<'_>,
        sample: &Sample<'_>,
        kind: impl for<'b> FnOnce(Option<UserState<'b>>, &'b [u64]) -> RawKind<'b>,
    ) {
        sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
        let kernel = std::mem::take(&mut self.kernel_chain);
        let chain = std::mem::take(&mut self.user_chain);
        let general = general_registers(sample);
        let general = general.as_ref().map_or(&[][..], |general| general);
        let user = user_state(sample, &chain).map(|user| UserState { general, ..user });
        let kind = kind(user, &kernel);
        self.emit(record, record.task, kind);
        (self.kernel_chain, self.user_chain) = (kernel, chain);
    }

    /// `main` is reached. The C library's entry is used for programs without a probe of their own: all but the
    /// command itself.
    pub(super) fn main(&mut self, record: &Record<'_>, role: Role) {
        let root = self.start.root;
        let commands_own =
            record.process == root && self.tasks.get(&root).is_some_and(|t| t.execs <= 1);
        if role == Role::Main || !(self.start.main_is_probed && commands_own) {
            self.emit(record, record.task, RawKind::Main);
        }
    }

    pub(super) fn probe(&mut self, record: &Record<'_>, sample: &Sample<'_>, number: u16) {
        let probes = self.probes;
        let Some(probe) = probes.get(usize::from(number)) else { return };
        let args = probe.args.map(|arg| match arg {
            crate::Register::Number(n) => sample.register(n).unwrap_or(0),
            crate::Register::None => 0,
        });
        sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
        let chain = std::mem::take(&mut self.user_chain);
        let user = user_state(sample, &chain).filter(|_| probe.stack);
        self.emit(record, record.task, RawKind::Probe { probe: &probe.name, args, user });
        self.user_chain = chain;
    }
}
