//! What a group of calls is about: files, a collector's own work, or the start of programs. Not for whether they repeat.

use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::questions::Births;
use crate::inspect::same_files::{Reopened, is_read_of_files, reopened};
use crate::timeline::descriptors::ObjectKind;
use deadweight_code::symbol_role::SymbolRole;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;

/// Calls that open a file, and those on its descriptor.
const OF_OPENING: &[&str] = &["open", "openat", "openat2", "close", "fstat"];

/// Whether the calls open the same files again and again, or go with that.
pub(super) fn goes_with_files(facts: &Facts<'_>, group: &CallGroup) -> bool {
    let of_files = OF_OPENING.contains(&group.name) && is_of_files(facts, group);
    let reads = is_read_of_files(group);
    (of_files || reads || goes_with_opening(group))
        && match reopened(facts, group.process) {
            // A read between open and close belongs to the repetition.
            Some(Reopened::Reading) => true,
            Some(Reopened::Writing | Reopened::Sending | Reopened::Live) => !reads,
            None => false,
        }
}

/// Whether the descriptors of these calls, if they have any, are files'.
fn is_of_files(facts: &Facts<'_>, group: &CallGroup) -> bool {
    match group.kind {
        Some(ObjectKind::File) => true,
        None | Some(ObjectKind::Unknown) => {
            // Not known, as calls were counted together: files if the process opens little else.
            let births = Births::of(facts, group.process);
            !matches!(group.name, "close" | "fstat") || births.by_path * 4 >= births.all * 3
        }
        Some(_) => false,
    }
}

/// Whether a collector or an allocator makes the call, to block signals while it works.
pub(super) fn is_collectors(facts: &Facts<'_>, group: &CallGroup) -> bool {
    /// This many stacks decide.
    const ENOUGH: usize = 8;
    let theirs = |stack: StackId| {
        let sample = facts.sample(stack);
        [SymbolRole::Collect, SymbolRole::Allocate, SymbolRole::Grow]
            .into_iter()
            .any(|symbol_role| sample.under(symbol_role))
    };
    let known = group.sites.iter().filter(|(stack, _)| **stack != StackId(0)).take(ENOUGH);
    let (mut of_theirs, mut all) = (0, 0);
    for (stack, calls) in known {
        all += calls;
        of_theirs += if theirs(*stack) { *calls } else { 0 };
    }
    of_theirs * 2 > all
}

/// Whether these calls go with opening a file.
fn goes_with_opening(group: &CallGroup) -> bool {
    let asks = matches!(group.name, "fcntl" | "ioctl" | "lseek");
    let on_files = group.kind == Some(ObjectKind::File) && group.per_object() <= 8;
    // The kernel refuses to watch files: Go's library tries.
    let refused = group.name == "epoll_ctl" && group.failed * 2 > group.calls;
    asks && on_files || refused
}

/// Whether there is time, between two calls, to write another path to the same address.
pub(super) fn may_write_paths(found: &Inspection<'_, '_>, process: ProcessId, calls: u64) -> bool {
    const NS_PER_PATH: u64 = 150;
    let own: Ns = found.wall.user_time_of(process).map(|e| e.ns).sum();
    own.0 > calls.saturating_mul(NS_PER_PATH)
}

/// Whether the process makes so many calls as it starts programs: a shell asks a few dozen questions for each.
pub(super) fn goes_with_starting(facts: &Facts<'_>, process: ProcessId, calls: u64) -> bool {
    const FOR_EACH: u64 = 100;
    let children = facts.processes.get(process).children.iter();
    let started = children.filter(|child| facts.processes.get(**child).executed()).count();
    calls < FOR_EACH * u64::try_from(started).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    #[test]
    fn calls_of_a_collector_are_refused() {
        let ask = |at| {
            format!(
                "{at} syscall getppid from libgc.so.1+0x1a2b <- split (a.cr:7) <- main\n{} back 0\n",
                at + 200
            )
        };
        let asked = repeat(1000, 0, 400, ask);
        let text = format!("task 1 a\n0 on\n0 main\n{asked}400000 exit\n400000 off dead");
        assert_eq!(found(&text), "");
        let own = text.replace("libgc.so.1+0x1a2b <- ", "");
        assert!(found(&own).starts_with("repeated-syscalls"), "{}", found(&own));
    }
}
