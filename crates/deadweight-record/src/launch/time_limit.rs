//! Kills a program that takes too long, with its descendants.

use crate::procfs::tree;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `wait`, which waits for the process `pid`, and kills that process after `limit`.
pub(crate) fn within<T>(limit: Option<Duration>, pid: i32, wait: impl FnOnce() -> T) -> T {
    let Some(limit) = limit else { return wait() };
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                kill(pid);
            }
        });
        let waited = wait();
        drop(done);
        waited
    })
}

/// Kills a process and its descendants.
fn kill(root: i32) {
    let tree = tree(root.cast_unsigned());
    for pid in tree.into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
        // SAFETY: signals an own child that has not been reaped yet.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn a_slow_program_is_killed_with_its_descendants() {
        let begun = Instant::now();
        // The inner one holds the pipe that is read to its end.
        let mut sleeper = Command::new("sh");
        sleeper.args(["-c", "sleep 60 & sleep 60; :"]).stdout(std::process::Stdio::piped());
        let child = sleeper.spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let out = within(Some(Duration::from_millis(200)), pid, || child.wait_with_output());
        assert!(!out.unwrap().status.success());
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_ends_in_time_is_not_killed() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let status = within(Some(Duration::from_secs(60)), pid, || child.wait()).unwrap();
        assert!(status.success());
    }
}
