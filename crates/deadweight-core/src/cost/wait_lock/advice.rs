//! What to do about a lock that others wait for.

use crate::facts::Facts;
use crate::facts::locks::LockWait;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;

/// The title where the lock is an interpreter's.
pub(super) const ONE_AT_A_TIME: &str = "threads of an interpreter that runs one at a time";
/// The advice for it.
pub(super) const FOR_INTERPRETERS: &str = "The lock is the interpreter's own (Python's GIL, Ruby's GVL): threads help only \
    where they wait. Use processes for work (multiprocessing, prefork workers), or one thread and an event loop; calls \
    into compiled code may release the lock.";

/// Whether at least half of these waits, as far as stacks show it, are for the lock under which an interpreter runs its
/// threads.
pub(super) fn is_of_interpreter(facts: &Facts<'_>, waits: &[LockWait]) -> bool {
    const TAKE: [&str; 9] = [
        "take_gil",
        "drop_gil",
        "PyEval_RestoreThread",
        "PyEval_SaveThread",
        "PyGILState_Ensure",
        "gvl_acquire",
        "gvl_release",
        "thread_sched_",
        "rb_gvl",
    ];
    let takes = |name: &str| TAKE.iter().any(|take| name.starts_with(take));
    let is_mostly = |site: fn(&LockWait) -> StackId| {
        let known: Vec<StackId> = waits.iter().map(site).filter(|at| *at != StackId(0)).collect();
        let of_it = known.iter().filter(|at| facts.symbols().functions(**at).any(takes)).count();
        !known.is_empty() && of_it * 2 >= known.len()
    };
    // The holder may give it up in a function of its own, inlined.
    is_mostly(|wait| wait.waiter_site) || is_mostly(|wait| wait.holder_site)
}

/// If a lock is waited for less than this on average, what is done under it is brief: taking it often is the cost.
const BRIEF: Ns = Ns(100_000);
/// What to do about such a lock.
const OFTEN: &str = "The lock is held only briefly, but taken often: collect in each thread and add it up under the lock once \
    per batch or at the end, or split the lock so that unrelated work uses different locks.";

/// The advice for a process whose waits take `typical` on average.
pub(super) fn of(
    facts: &Facts<'_>,
    process: ProcessId,
    of_interpreter: bool,
    typical: Ns,
) -> String {
    match of_interpreter {
        true => FOR_INTERPRETERS.into(),
        false => remedy(&facts.processes.get(process).language, typical),
    }
}

fn remedy(language: &str, typical: Ns) -> String {
    if typical < BRIEF {
        return OFTEN.into();
    }
    let lock = match language {
        "Rust" => "drop the guard before it and lock again to store the result",
        "Go" => "call Unlock before it and Lock again to store the result",
        "C++" => "end the lock_guard's scope before it and lock again to store the result",
        _ => "unlock before it and lock again to store the result",
    };
    format!(
        "Do the long part outside the lock: {lock} (two tasks may then do the same work twice, \
         which a per-key lock avoids). Or split the lock so that unrelated work uses different locks."
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::workers;
    use crate::cost::tests::weighed;

    #[test]
    fn the_lock_of_an_interpreter_is_known_by_the_functions_that_take_it() {
        let own = workers("pthread_mutex_lock", 2);
        let of_python = own.replace("__lll_lock_wake <-", "__lll_lock_wake <- drop_gil <-");
        let finding = |text: &str| weighed(text).findings.into_iter().next().unwrap();
        assert!(finding(&of_python).title.starts_with("threads of an interpreter"));
        assert!(finding(&of_python).remedy.contains("multiprocessing"));
        assert!(finding(&own).title.starts_with("work under a lock"));
    }
}
