//! When the critical path goes through the holder of a lock: through its process, and through others that it waits for
//! while it has the lock, such as a server that answers it.

use crate::facts::Facts;
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use deadweight_trace::units::Ns;

/// Intervals of the path, in order, during which the holder of a lock of this process may keep it back. Waits are in order
/// of their end.
pub(super) fn of(facts: &Facts<'_>, process: ProcessId, waits: &[LockWait]) -> Vec<(Ns, Ns)> {
    let mut all: Vec<(Ns, Ns)> = Vec::new();
    // Where the path left the process, while it is elsewhere.
    let mut left: Option<Ns> = None;
    for piece in &facts.path.pieces {
        if facts.processes.of(piece.task) != process {
            left = left.or(all.last().map(|(_, end)| *end));
            continue;
        }
        if let Some(left) = left.take()
            && is_within_a_hold(waits, left, piece.start)
        {
            all.push((left, piece.start));
        }
        all.push((piece.start, piece.end));
    }
    all
}

/// Whether the lock had one holder all this time, and a task waited for it.
fn is_within_a_hold(waits: &[LockWait], from: Ns, to: Ns) -> bool {
    let next = waits.partition_point(|wait| wait.end < to);
    let before = next.checked_sub(1).map_or(Ns::ZERO, |before| waits[before].end);
    waits.get(next).is_some_and(|wait| wait.start <= to && before <= from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::tests::found;
    use deadweight_trace::ids::{StackId, TaskId};
    use std::fmt::Write;

    /// Two threads take turns with a lock; the holder waits for the answer of another process.
    fn asks_under_lock() -> String {
        let [mut one, mut two, mut server] = [String::new(), String::new(), String::new()];
        for i in 0..40 {
            let at = 2000 + i * 1000;
            let (waits, holds, tid) =
                if i % 2 == 0 { (&mut one, &mut two, 2) } else { (&mut two, &mut one, 1) };
            let cpu = tid - 1;
            writeln!(
                waits,
                "{} syscall futex 4096 128 2 0
                 {} off blocked : futex_do_wait from pthread_mutex_lock <- get (cache.c:33) <- worker
                 {} cpu{} on woken-by {tid}\n{} back 0",
                at + 5, at + 10, at + 905, 1 - cpu, at + 907
            )
            .unwrap();
            writeln!(
                holds,
                "{} syscall write 3 5\n{} back 5
                 {} off blocked read 3 1 : sk_wait_data from read <- ask (cache.c:9) <- get (cache.c:36)
                 {} cpu{cpu} on woken-by 9\n{} back 5",
                at + 40, at + 45, at + 50, at + 850, at + 855
            )
            .unwrap();
            writeln!(
                server,
                "{} cpu2 on woken-by {tid}\n{} back 5\n{} syscall write 4 5\n{} back 5
                 {} off blocked read 4 : sk_wait_data",
                at + 42,
                at + 60,
                at + 848,
                at + 852,
                at + 860
            )
            .unwrap();
            writeln!(
                holds,
                "{} syscall futex 4096 129 1 from __lll_lock_wake <- get (cache.c:38) <- worker\n{} back 1",
                at + 900, at + 910
            )
            .unwrap();
        }
        format!(
            "cpus 3\ntask 1 app\n0 cpu0 on\n10 fd 3 socket:[1]\n100 fork 2 thread\n110 fork 9\n{one}
             50000 off blocked futex 9 0 7 : futex_do_wait\n50500 cpu0 on woken-by 2
             51000 syscall exit_group\n51000 exit\n51010 off dead
             task 2 app\n120 cpu1 on\n{two}50490 exit\n50600 off dead
             task 9 app\n130 cpu2 on\n140 fd 4 socket:[2]\n150 off blocked read 4 : sk_wait_data\n{server}60000 exit\n60010 off dead"
        )
    }

    #[test]
    fn a_path_that_is_elsewhere_for_longer_than_one_hold_is_not_under_the_lock() {
        let wait = |start: u64, end: u64| LockWait {
            process: ProcessId(0),
            word: 4096,
            waiter: TaskId(1),
            holder: TaskId(0),
            start: Ns(start),
            end: Ns(end),
            resumed: Ns(end),
            waiter_site: StackId(0),
            holder_site: StackId(0),
            goroutine: 0,
            holding_goroutine: 0,
        };
        let waits = [wait(100, 200), wait(210, 300), wait(310, 400)];
        assert!(is_within_a_hold(&waits, Ns(220), Ns(290)));
        assert!(!is_within_a_hold(&waits, Ns(190), Ns(290)), "two holds");
        assert!(!is_within_a_hold(&waits, Ns(410), Ns(450)), "no task waits");
    }

    #[test]
    fn a_lock_held_while_a_server_of_the_command_answers_is_found() {
        let said = found(&asks_under_lock());
        assert!(said.starts_with("wait-lock 35 % (16..75) @ get:38"), "{said}");
    }
}
