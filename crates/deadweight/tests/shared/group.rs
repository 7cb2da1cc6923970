//! Cgroups with limits, of either version, for tests that run deadweight inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// A cgroup with a limit, removed when the value is dropped.
pub(crate) struct Group(PathBuf);

impl Group {
    /// With these files of version 1 or 2 written; `Err` is why there can be none.
    pub(crate) fn new(
        controller: &str,
        first: &[(&str, &str)],
        second: &[(&str, &str)],
    ) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("deadweight-{}-{number}", std::process::id());
        let old = Path::new("/sys/fs/cgroup").join(controller);
        let new = Path::new("/sys/fs/cgroup");
        let (folder, settings) = if old.is_dir() { (&*old, first) } else { (new, second) };
        let _ = fs::write(new.join("cgroup.subtree_control"), format!("+{controller}"));
        let group = Self(folder.join(name));
        let set = |(file, value): &(&str, &str)| fs::write(group.0.join(file), value);
        let made = fs::create_dir(&group.0).and_then(|()| settings.iter().try_for_each(set));
        made.map_err(|error| format!("no cgroup with a limit can be made ({error})"))?;
        Ok(group)
    }

    /// The processes inside.
    pub(crate) fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that closes events may stay for long: it is moved to the parent group.
        let above = self.0.with_file_name("cgroup.procs");
        for process in fs::read_to_string(self.processes()).unwrap_or_default().lines() {
            let _ = fs::write(&above, process);
        }
        // A process that has just ended still counts.
        for _ in 0..100 {
            if !self.0.exists() || fs::remove_dir(&self.0).is_ok() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.0.display());
    }
}
