//! User registers and stack of a task: read from a record, or kept until the event that they belong to comes.

use crate::perf::decode::Sample;
use crate::perf::registers;
use crate::perf::schema::Role;
use deadweight_trace::raw::UserState;

/// User registers and stack, kept until the event that they belong to comes.
pub(crate) struct UserStack {
    pub(crate) role: Role,
    ip: u64,
    sp: u64,
    fp: u64,
    lr: u64,
    stack: Vec<u8>,
    chain: Vec<u64>,
}

impl UserStack {
    pub(crate) fn keep(role: Role, user: &UserState<'_>) -> Self {
        let UserState { ip, sp, fp, lr, .. } = *user;
        let (stack, chain) = (user.stack.to_vec(), user.chain.to_vec());
        Self { role, ip, sp, fp, lr, stack, chain }
    }

    pub(crate) fn user(&self) -> UserState<'_> {
        let Self { ip, sp, fp, lr, .. } = *self;
        UserState { ip, sp, fp, lr, stack: &self.stack, chain: &self.chain, general: &[] }
    }
}

/// The record's user registers and stack; none for a kernel thread.
pub(crate) fn user_state<'a>(sample: &Sample<'a>, chain: &'a [u64]) -> Option<UserState<'a>> {
    Some(UserState {
        general: &[],
        ip: sample.register(registers::IP)?,
        sp: sample.register(registers::SP)?,
        fp: sample.register(registers::FP)?,
        lr: sample.register(registers::LR).unwrap_or(0),
        stack: sample.stack,
        chain,
    })
}

/// The record's general registers by their numbers in machine code; none where they were not recorded, or are not those
/// of user code.
pub(crate) fn general_registers(sample: &Sample<'_>) -> Option<[u64; registers::COUNT]> {
    let mut general = [0; registers::COUNT];
    for (value, number) in general.iter_mut().zip(registers::GENERAL) {
        *value = sample.register(number)?;
    }
    (!sample.kernel).then_some(general)
}
