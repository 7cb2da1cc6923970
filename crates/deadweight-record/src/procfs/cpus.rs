//! The machine's CPUs, those that this process may use, and the time that the hypervisor took.

use super::affinity::Affinity;
use std::fs;

/// The CPUs that are online, by number.
pub(crate) fn online_cpus() -> Vec<i32> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(&list);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Reads the kernel's form of a set of CPUs (`0-3,8`).
pub(crate) fn cpu_list(text: &str) -> Vec<i32> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.parse::<u16>(), to.parse::<u16>()) {
            cpus.extend((from..=to).map(i32::from));
        }
    }
    cpus
}

/// How many CPUs the recorder, and so the program, may run on. CPU quotas are not considered.
pub(crate) fn allowed_cpus() -> usize {
    match Affinity::of_this_thread().cpus().count() {
        // More CPUs than a set has places.
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cpus => cpus,
    }
}

/// Time that the hypervisor took from all CPUs together since boot, in ns.
pub(crate) fn steal() -> u64 {
    // SAFETY: asks for a number.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let stolen = stat.lines().next().and_then(|l| l.split_whitespace().nth(8)?.parse::<u64>().ok());
    stolen.unwrap_or(0) * (1_000_000_000 / ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpu_list("0\n"), [0]);
        assert_eq!(cpu_list("nonsense"), [0_i32; 0]);
    }
}
