//! A CPU quota, as containers have one: what it holds back is no other program's doing.

use crate::truth::Truth;
use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup that may use 30 ms of CPU time in every 100, gone with the value.
struct Quota(PathBuf);

impl Quota {
    /// Where version 1 or version 2 of cgroups is mounted and may be written.
    fn new() -> Result<Self, String> {
        let name = format!("deadweight-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let second = Path::new("/sys/fs/cgroup");
        let refused = |e| format!("no cgroup with a CPU quota can be made ({e})");
        let quota = Self(if first.is_dir() { first } else { second }.join(name));
        fs::create_dir(&quota.0).map_err(refused)?;
        if first.is_dir() {
            fs::write(quota.0.join("cpu.cfs_period_us"), "100000").map_err(refused)?;
            fs::write(quota.0.join("cpu.cfs_quota_us"), "30000").map_err(refused)?;
        } else {
            let _ = fs::write(second.join("cgroup.subtree_control"), "+cpu");
            fs::write(quota.0.join("cpu.max"), "30000 100000").map_err(refused)?;
        }
        Ok(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Who closes events behind our back may be in it for long: he goes on above it.
        let above = self.0.with_file_name("cgroup.procs");
        let inside = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in inside.lines() {
            let _ = fs::write(&above, process);
        }
        // Who has just ended still counts.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.0.display());
    }
}

#[test]
fn a_quota_is_the_wait_for_a_cpu() {
    let quota = Quota::new();
    let group = quota.as_ref().map(|q| q.0.join("cgroup.procs")).map_err(Clone::clone);
    Truth::of("@word_count 200000")
        .in_group(group)
        .rows(&["wait-cpu"], 0.3..=0.95)
        .note("wait-cpu", "quota")
        .hazard("throttled")
        .check();
}
