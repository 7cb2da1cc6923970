//! What kind of machine this is, by its settings: times of two kinds cannot be compared.
//!
//! Not for settings that make measurements misleading; see `plan/hazards`.

use super::{cgroup, line};
use deadweight_trace::Machine;
use std::fs;
use std::io::Read;

/// What one CPU takes in `/proc/cpuinfo` at most, in bytes; some 1 500 to 3 000.
const ONE_CPU: u64 = 8192;

/// The kind of machine that this is.
#[must_use]
pub fn machine() -> Machine {
    let cpuinfo = first_cpu();
    Machine {
        cpu: field(&cpuinfo, "model name").unwrap_or_default(),
        kernel: line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        virtualisation: virtualisation(&cpuinfo),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").unwrap_or_default(),
        huge_pages: line("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| chosen(&text).map(str::to_owned))
            .unwrap_or_default(),
        cpu_quota: cgroup::cpu_quota().map_or(0.0, |cpus| (cpus * 1000.0).round() / 1000.0),
        caches: caches(),
    }
}

/// The first CPU's part of `/proc/cpuinfo`. The kernel writes it as it is read: that of hundreds of CPUs takes milliseconds.
fn first_cpu() -> String {
    let mut part = Vec::new();
    let read =
        fs::File::open("/proc/cpuinfo").and_then(|file| file.take(ONE_CPU).read_to_end(&mut part));
    read.map_or(String::new(), |_| String::from_utf8_lossy(&part).into_owned())
}

/// The sizes of the first CPU's caches for data, by level.
fn caches() -> [u64; 3] {
    let mut sizes = [0; 3];
    for index in 0..8 {
        let read = |name| line(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            break;
        };
        let level = level.parse::<usize>().unwrap_or(0).wrapping_sub(1);
        if kind != "Instruction"
            && let Some(known) = sizes.get_mut(level)
        {
            *known = size.trim_end_matches('K').parse::<u64>().unwrap_or(0) << 10;
        }
    }
    sizes
}

/// The first value of a field of `/proc/cpuinfo`.
fn field(cpuinfo: &str, name: &str) -> Option<String> {
    let of = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    cpuinfo.lines().find_map(of)
}

/// The word in brackets, as the kernel marks the setting that is in force.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

/// Who made the virtual machine, or `vm` if only that it is one is known.
fn virtualisation(cpuinfo: &str) -> String {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return String::new();
    }
    line("/sys/class/dmi/id/sys_vendor").filter(|name| !name.is_empty()).unwrap_or("vm".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_the_kernel_writes_them() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("nonsense"), None);
        let cpuinfo = "model name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(cpuinfo, "model name").as_deref(), Some("AMD EPYC"));
        assert_ne!(virtualisation(cpuinfo), "");
        assert_eq!(virtualisation("flags : fpu\n"), "");
    }
}
