//! What can be read from a stopped task: its user registers and stack, and the effects of its call.
//!
//! Does not resume it; see the parent.

use crate::perf::sys::STACK_BYTES;
use crate::procfs;
use crate::ptrace::event::{EventKind, Mapping, UserSnapshot};
use crate::ptrace::maps;
use crate::ptrace::requests;
use crate::ptrace::tracee::Tracee;

/// The effects of a call that just returned, emitted after its return.
pub(super) fn call_effects(tracee: &mut Tracee, nr: u16, args: &[u64; 6], ret: i64) {
    let call = libc::c_long::from(nr);
    if call == libc::SYS_mmap && !(-4095..0).contains(&ret) {
        let map = maps::from_mmap(tracee.process, args, ret.cast_unsigned());
        tracee.pending.extend(map.map(EventKind::Map));
    }
    let executable = args[2] & u64::from(libc::PROT_EXEC.cast_unsigned()) != 0;
    if call == libc::SYS_mprotect && ret == 0 && executable {
        let inside = |map: &Mapping| map.executable && map.start == args[0];
        tracee.pending.extend(
            maps::of_process(tracee.process).into_iter().filter(inside).map(EventKind::Map),
        );
    }
    if call == libc::SYS_prctl && args[0] == u64::from(libc::PR_SET_NAME.cast_unsigned()) {
        let name = procfs::line(format!("/proc/{}/task/{}/comm", tracee.process, tracee.task));
        tracee.pending.extend(name.map(EventKind::Comm));
    }
}

/// User registers and stack of a stopped task.
pub(super) fn user_snapshot(task: u32) -> Option<UserSnapshot> {
    let registers = requests::registers(task)?;
    let mut stack = vec![0; STACK_BYTES as usize];
    let len = requests::read_memory(task, registers.sp, &mut stack);
    stack.truncate(len);
    Some(UserSnapshot { registers, stack: stack.into_boxed_slice() })
}
