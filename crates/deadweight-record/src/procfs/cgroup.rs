//! The cgroups of the recorder and thus of the program: their limits and statistics.
//!
//! Both cgroup versions. A limit may be set at any higher level, so all levels are read.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directories of the own cgroup with this controller and of all visible levels above it, the own first; empty
/// where there is none.
pub(crate) fn levels(controller: &str) -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let folder = groups.lines().find_map(|line| folder(line, controller));
    let above = |folder: &PathBuf| {
        let levels = folder.ancestors().take_while(|level| level.starts_with("/sys/fs/cgroup"));
        levels.map(Path::to_owned).collect()
    };
    folder.as_ref().map(above).unwrap_or_default()
}

/// The directory that a line of `/proc/self/cgroup` names, if it has this controller. A container with its own view
/// sees its cgroup as the topmost.
fn folder(line: &str, controller: &str) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let mounts = match controllers {
        "" => vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()],
        list if list.split(',').any(|c| c == controller) => {
            vec![format!("/sys/fs/cgroup/{controller}"), format!("/sys/fs/cgroup/{list}")]
        }
        _ => return None,
    };
    let marks = [format!("{controller}.stat"), format!("{controller}.max")];
    let known = |folder: &PathBuf| marks.iter().any(|mark| folder.join(mark).exists());
    let folders = mounts.iter().flat_map(|m| [format!("{m}{path}"), m.clone()]);
    folders.map(PathBuf::from).find(known)
}

/// How long CPU quotas have kept the tasks of the own cgroup from running, in ns summed over CPUs; 0 without a quota.
/// Every run asks twice, so the files stay open.
pub(crate) fn throttled() -> u64 {
    static STATS: OnceLock<Vec<File>> = OnceLock::new();
    let open = |level: &PathBuf| File::open(level.join("cpu.stat")).ok();
    let stats = STATS.get_or_init(|| levels("cpu").iter().filter_map(open).collect());
    let mut text = [0; 1024];
    let mut stat = |file: &File| {
        let length = file.read_at(&mut text, 0).unwrap_or(0);
        throttled_in(&String::from_utf8_lossy(&text[..length]))
    };
    stats.iter().map(&mut stat).sum()
}

/// The throttled time in a cgroup's `cpu.stat`: version 1 counts in ns, version 2 in µs.
pub(crate) fn throttled_in(stat: &str) -> u64 {
    let value = |name| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    value("throttled_usec ")
        .map(|us| us.saturating_mul(1000))
        .or(value("throttled_time "))
        .unwrap_or(0)
}

/// The smallest CPU quota that applies, in CPUs; none without one.
pub(crate) fn cpu_quota() -> Option<f64> {
    levels("cpu").iter().filter_map(|level| quota_at(level)).min_by(f64::total_cmp)
}

/// The CPU quota of one level, in CPUs.
fn quota_at(level: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(level.join(name)).ok();
    if let Some(max) = read("cpu.max") {
        return quota_in(&max);
    }
    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    quota_in(&format!("{} {}", quota.trim(), period.trim()))
}

/// The topmost visible cgroup with the CPU controller, if levels below it have a quota and it has none.
pub(crate) fn topmost_without_quota() -> Option<PathBuf> {
    let holds = |level: &PathBuf| level.join("cgroup.procs").exists();
    let top = levels("cpu").into_iter().rfind(holds)?;
    (quota_at(&top).is_none() && cpu_quota().is_some()).then_some(top)
}

/// CPUs, from a quota and its period as the kernel writes them (`max 100000`, `-1 100000`).
pub(crate) fn quota_in(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (words.next()??, words.next()??);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The smallest memory limit that applies, in bytes; none without one.
pub(crate) fn memory_limit() -> Option<u64> {
    memory_levels().into_iter().map(|(_, limit)| limit).min()
}

/// The levels of the own memory cgroup that have a limit, in bytes, the own first.
pub(crate) fn memory_levels() -> Vec<(PathBuf, u64)> {
    let limit = |level: PathBuf| {
        let files = ["memory.max", "memory.limit_in_bytes"].map(|name| level.join(name));
        let text = files.iter().find_map(|file| fs::read_to_string(file).ok())?;
        // Version 1 writes a number near 2^63 for none.
        let bytes = text.trim().parse::<u64>().ok().filter(|bytes| *bytes < 1 << 60)?;
        Some((level, bytes))
    };
    levels("memory").into_iter().filter_map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_as_both_versions_write_them() {
        assert_eq!(quota_in("30000 100000\n"), Some(0.3));
        assert_eq!(quota_in("max 100000"), None);
        assert_eq!(quota_in("-1 100000"), None);
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_usec 7\n"), 7000);
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_time 7\n"), 7);
    }
}
