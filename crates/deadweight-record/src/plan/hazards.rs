//! Properties of this machine that make measurements misleading, found by reading settings and by trying.
//!
//! This is about the machine, before any program is run. Hazards of a single run are in the core's `hazards`.

use crate::clock::now;
use crate::procfs;
use crate::procfs::cgroup;
use std::fs;
use std::ptr;
use std::time::Duration;

/// A property of the machine that makes measurements misleading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineHazard {
    /// Its name.
    pub id: &'static str,
    /// What it means for the numbers.
    pub text: String,
    /// The exact command that removes it; none if there is no such command.
    pub remedy: Option<String>,
}

/// Clocks that are read without entering the kernel.
const FAST_CLOCKS: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
/// If reading the clock takes longer, in ns, the kernel was entered.
const SLOW_CLOCK: u64 = 150;
/// Stolen time below this share of all CPU time is not reported.
const STOLEN: f64 = 0.001;
/// How long to measure how busy the machine is.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// Other programs that keep this share of the CPUs busy are reported.
const BUSY: f64 = 0.2;
/// A memory limit above this share of the machine's memory is no limit.
const AMPLE: f64 = 0.9;

/// All hazards. Takes a tenth of a second, to measure how busy the machine is.
pub(crate) fn all() -> Vec<MachineHazard> {
    let found = [
        one_cpu(),
        clock(),
        variant_clock(),
        governor(),
        cpu_limit(),
        memory_limit(),
        steal(),
        busy(),
        huge_pages(),
        fixed_addresses(),
    ];
    found.into_iter().flatten().collect()
}

fn hazard(id: &'static str, text: String, remedy: Option<&str>) -> Option<MachineHazard> {
    Some(MachineHazard { id, text, remedy: remedy.map(str::to_owned) })
}

fn one_cpu() -> Option<MachineHazard> {
    if procfs::allowed_cpus() > 1 {
        return None;
    }
    let all = procfs::online_cpus().len();
    let shared =
        "the recorder and the program share it, and waits for a CPU include the recorder's time";
    if all > 1 {
        let text = format!("only one of the {all} CPUs can be used here: {shared}");
        return hazard("one-cpu", text, Some(&format!("taskset -c 0-{} deadweight ...", all - 1)));
    }
    hazard("one-cpu", format!("there is one CPU only: {shared}"), None)
}

fn clock() -> Option<MachineHazard> {
    const ROUND: u64 = 200;
    let name = procfs::line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let name = name.unwrap_or_else(|| "unknown".into());
    let round = || {
        let start = now();
        (1..ROUND).for_each(|_| _ = now());
        (now() - start) / ROUND
    };
    let cost = (0..20).map(|_| round()).min().unwrap_or(0);
    if FAST_CLOCKS.contains(&&*name) && cost < SLOW_CLOCK {
        return None;
    }
    let text = format!(
        "the kernel's clock source is {name}, {cost} ns to read here: each event costs more, and a \
         program that reads the time often is slowed down too"
    );
    let known = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let better = procfs::line(known).unwrap_or_default();
    let better = better.split_whitespace().find(|c| FAST_CLOCKS.contains(c) && *c != name);
    let set = |better: &str| {
        let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        format!("echo {better} | sudo tee {file}")
    };
    hazard("slow-clock", text, better.map(set).as_deref())
}

fn variant_clock() -> Option<MachineHazard> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let flags = fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = flags.lines().find(|line| line.starts_with("flags"))?;
    let missing = ["constant_tsc", "nonstop_tsc"].into_iter();
    let missing: Vec<_> =
        missing.filter(|flag| flags.split_whitespace().all(|f| f != *flag)).collect();
    if missing.is_empty() {
        return None;
    }
    let text = format!(
        "the CPU does not guarantee an invariant clock ({} missing): times from different CPUs \
         or at different speeds may disagree",
        missing.join(", ")
    );
    hazard("no-invariant-clock", text, None)
}

fn governor() -> Option<MachineHazard> {
    let governor = procfs::line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")?;
    if governor == "performance" {
        return None;
    }
    let text = format!("the CPU's speed follows its load (governor {governor}): short runs differ");
    hazard("governor", text, Some("sudo cpupower frequency-set --governor performance"))
}

fn cpu_limit() -> Option<MachineHazard> {
    let cpus = cgroup::cpu_quota()?;
    let text = format!(
        "a cgroup grants {cpus:.2} CPUs: a program that uses more is stopped for the rest of each \
         period, and so is the recorder"
    );
    hazard(
        "cpu-limit",
        text,
        container(&format!("docker run --cpus {} ...", procfs::online_cpus().len())),
    )
}

fn memory_limit() -> Option<MachineHazard> {
    let limit = cgroup::memory_limit()?;
    let total = total_memory()?;
    if limit as f64 > total as f64 * AMPLE {
        return None;
    }
    let text = format!(
        "a cgroup grants {} MiB of memory: near it, files are read from disk again and again, and \
         beyond it the program is killed. The recorder's memory counts too: where little is left, less is recorded",
        limit >> 20
    );
    hazard("memory-limit", text, container("docker run --memory 0 ..."))
}

/// A command that only makes sense in a container.
fn container(command: &str) -> Option<&str> {
    crate::permissions::in_container().then_some(command)
}

fn total_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

fn steal() -> Option<MachineHazard> {
    let ticks = ticks()?;
    let share = ticks.stolen as f64 / ticks.all.max(1) as f64;
    if share < STOLEN {
        return None;
    }
    let text = format!(
        "a hypervisor has taken {:.1} % of the CPU time since boot (steal): such time looks like \
         the program's own",
        share * 100.0
    );
    hazard("virtual-machine", text, None)
}

fn busy() -> Option<MachineHazard> {
    let before = ticks()?;
    let began = now();
    std::thread::sleep(BUSY_INTERVAL);
    let after = ticks()?;
    // In ticks of mostly 10 ms: the count of each CPU may be off by one.
    let cpus = procfs::online_cpus().len() as f64;
    let all = (now() - began) as f64 / 1e9 * after.per_second as f64 * cpus;
    let busy = 1.0 - (after.idle - before.idle) as f64 / all.max(1.0);
    if busy < BUSY {
        return None;
    }
    let text = format!(
        "other programs use {:.1} of {cpus} CPUs now: the program may have to wait for a CPU because of them",
        busy.min(1.0) * cpus
    );
    hazard("busy", text, Some("top -o %CPU"))
}

/// The kernel's counts since boot, over all CPUs, in ticks.
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
    per_second: u64,
}

fn ticks() -> Option<Ticks> {
    // SAFETY: asks for a number.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let words = stat.lines().next()?.split_whitespace().skip(1);
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    // The users' time includes that of guests.
    let all = numbers.iter().take(8).sum();
    Some(Ticks { all, idle: at(3) + at(4), stolen: at(7), per_second })
}

/// Whether ordinary memory gets huge pages: by the setting, because a machine that runs for long may have none free at
/// this instant, or found out by touching some.
fn huge_pages() -> Option<MachineHazard> {
    if !huge_pages_are_always_on() && touches_of_8_mib()? > 1024 {
        return None;
    }
    let text = "ordinary memory gets pages of 2 MiB where they fit (transparent huge pages are \
                always on): page faults and first touches depend on its addresses";
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    hazard("huge-pages", text.into(), Some(&format!("echo madvise | sudo tee {file}")))
}

/// Whether the setting is *always*, and this process has not been exempted.
fn huge_pages_are_always_on() -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    // SAFETY: asks for a flag of this process.
    let exempt = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } > 0;
    setting.is_ok_and(|setting| setting.contains("[always]")) && !exempt
}

/// Page faults while touching 8 MiB of fresh memory: 2048 with pages of 4 KiB.
fn touches_of_8_mib() -> Option<i64> {
    const LEN: usize = 8 << 20;
    let faults = || {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: fills in plain numbers.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init().ru_minflt
        }
    };
    let before = faults();
    // SAFETY: touches one byte of each page of a mapping of our own, then unmaps it.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(ptr::null_mut(), LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        for offset in (0..LEN).step_by(4096) {
            at.cast::<u8>().add(offset).write_volatile(1);
        }
        libc::munmap(at, LEN);
    }
    Some(faults() - before)
}

fn fixed_addresses() -> Option<MachineHazard> {
    const NO_RANDOMIZE: i32 = 0x004_0000;
    // SAFETY: asks for the present value.
    let personality = unsafe { libc::personality(0xffff_ffff) };
    let sysctl = procfs::line("/proc/sys/kernel/randomize_va_space").is_some_and(|v| v == "0");
    let by_us = personality >= 0 && personality & NO_RANDOMIZE != 0;
    if !sysctl && !by_us {
        return None;
    }
    let text = "addresses are the same in every run (ASLR is off): a difference between two builds may \
                come from their memory layout, and repeated runs do not show that";
    let remedy =
        if sysctl { "sudo sysctl kernel.randomize_va_space=2" } else { "setarch without -R" };
    hazard("fixed-addresses", text.into(), Some(remedy))
}
