//! `doctor`: each missing permission and each misleading setting is real here: users, capabilities,
//! namespaces, cgroups and limits. Only hardware that this machine does not have is faked, by files in
//! a namespace.

use crate::support::{Bench, FILTER, Said, USER, limited, live, said, within};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The result of `doctor` under a program that changes something first; `None`, with a message, if that
/// program fails.
fn under(wrapper: &[&str], program: &Path) -> Option<Said> {
    let out = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(program)
        .args(["doctor", "--json"])
        .env("LC_ALL", "C.UTF-8")
        .output();
    let said = out.map(|out| said(&out));
    match said {
        Ok(said) if said.out.starts_with('{') => Some(said),
        other => {
            eprintln!("SKIPPED {wrapper:?}: {other:?}");
            None
        }
    }
}

/// The lines of the JSON object with this name or id.
fn entry(said: &Said, key: &str, value: &str) -> Option<String> {
    let mark = format!("\"{key}\": \"{value}\"");
    let at = said.out.find(&mark)?;
    let start = said.out[..at].rfind('{')?;
    let end = said.out[at..].find('}')? + at;
    Some(said.out[start..end].to_owned())
}

/// Checks that a capability is missing under `wrapper`, with what it gives and why.
fn missing(wrapper: &[&str], program: &Path, name: &str, words: &[&str]) {
    let Some(said) = under(wrapper, program) else { return };
    let found = entry(&said, "name", name).unwrap_or_else(|| panic!("no {name} in {}", said.out));
    assert!(found.contains("\"available\": false"), "{wrapper:?}: {found}");
    for word in words {
        assert!(found.contains(word), "{wrapper:?}: no {word:?} in {found}");
    }
}

/// Checks that a hazard is reported under `wrapper`.
fn hazard(wrapper: &[&str], id: &str, words: &[&str]) {
    let program = Path::new(env!("CARGO_BIN_EXE_deadweight"));
    let Some(said) = under(wrapper, program) else { return };
    let found = entry(&said, "id", id).unwrap_or_else(|| panic!("no {id} in {}", said.out));
    for word in words {
        assert!(found.contains(word), "{wrapper:?}: no {word:?} in {found}");
    }
}

#[test]
fn root_has_everything() {
    live!();
    let said = said(&crate::support::deadweight().args(["doctor", "--json"]).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("\"rung\": \"root\""), "{}", said.out);
    assert!(said.out.contains("\"records\": true"), "{}", said.out);
    assert!(!said.out.contains("\"available\": false"), "{}", said.out);
}

#[test]
fn a_user_sees_what_is_missing_and_the_command_really_grants_it() {
    live!();
    let bench = Bench::new();
    let program = bench.copy();
    missing(&USER, &program, "context switches", &["every row", "paranoid", "the program's own"]);
    missing(&USER, &program, "wake-ups", &["waiting rows", "tracefs", "\"grant\": \""]);
    missing(&USER, &program, "counted places", &["allocation", "CAP_SYS_ADMIN", "sudo deadweight"]);
    missing(&USER, &program, "probes", &["start-up"]);
    missing(&USER, &program, "kernel symbols", &["what a wait is for"]);
    let Some(said) = under(&USER, &program) else { return };
    let line = said.out.lines().find_map(|line| line.trim().strip_prefix("\"grant_all\": \""));
    let command = line.unwrap_or_else(|| panic!("no command in {}", said.out));
    let Some(command) = command.trim_end_matches("\",").strip_prefix("sudo ") else {
        eprintln!("SKIPPED granting: here the command is {command}");
        return;
    };
    let granted = Command::new("sh").args(["-c", command]).output().unwrap();
    if !granted.status.success() {
        eprintln!("SKIPPED granting: {}", String::from_utf8_lossy(&granted.stderr));
        return;
    }
    let said = under(&USER, &program).unwrap();
    assert_eq!(said.code, 0, "{}", said.out);
    assert!(said.out.contains("\"rung\": \"root\""), "{}", said.out);
    let run =
        Command::new(USER[0]).args(&USER[1..]).arg(&program).args(["--", "true"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(String::from_utf8_lossy(&run.stderr).contains("wall time"));
}

/// Each command that doctor suggests for a missing capability is run, and grants it. Commands that change a
/// setting of the machine are left out: they would disturb other tests.
#[test]
fn each_command_gives_what_it_is_named_for() {
    live!();
    let bench = Bench::new();
    for alone in ["+perfmon", "+bpf", "+sys_ptrace"] {
        let held = ["--inh-caps", alone, "--ambient-caps", alone];
        let wrapper = [&USER[..], &held].concat();
        let mut tried = Vec::new();
        let Some(before) = under(&wrapper, &bench.copy()) else { return };
        for name in ["context switches", "wake-ups", "recording in the kernel", "priority"] {
            let found = entry(&before, "name", name).unwrap();
            let command =
                found.split("\"grant\": \"sudo ").nth(1).and_then(|c| c.split('"').next());
            let Some(command) = command.filter(|_| found.contains("\"available\": false")) else {
                assert!(found.contains("\"available\": true"), "{alone}: {found}");
                continue;
            };
            if !command.starts_with("setcap ") {
                eprintln!("SKIPPED for {name} under {alone}: here the command is {command}");
                continue;
            }
            // The new copy has no earlier grants.
            let program = bench.copy();
            let granted = Command::new("sh").args(["-c", command]).output().unwrap();
            assert!(granted.status.success(), "{command}: {granted:?}");
            let after = under(&wrapper, &program).unwrap();
            let now = entry(&after, "name", name).unwrap();
            assert!(now.contains("\"available\": true"), "{alone}, {command}: {now}");
            tried.push(name);
        }
        assert!(tried.len() >= 2, "{alone}: {tried:?}");
    }
}

#[test]
fn root_without_a_capability_sees_which() {
    live!();
    let program = Path::new(env!("CARGO_BIN_EXE_deadweight"));
    let without = |set| ["setpriv", "--bounding-set", set];
    let gone = without("-perfmon,-sys_admin");
    missing(&gone, program, "context switches", &["CAP_PERFMON"]);
    missing(&gone, program, "page faults", &["CAP_PERFMON", "first touches"]);
    missing(&gone, program, "clock samples", &["CAP_PERFMON", "net work"]);
    missing(&gone, program, "system calls", &["tiny reads"]);
    missing(&gone, program, "probes", &["CAP_SYS_ADMIN", "start-up"]);
    missing(
        &without("-bpf,-sys_admin"),
        program,
        "recording in the kernel",
        &["CAP_BPF", "tracing"],
    );
    missing(&without("-ipc_lock"), program, "room for records", &["CAP_IPC_LOCK", "holes"]);
    let nice = ["prlimit", "--rtprio=0", "setpriv", "--bounding-set", "-sys_nice"];
    missing(&nice, program, "priority", &["CAP_SYS_NICE", "holes"]);
    if fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").is_ok_and(|p| p.trim() > "1") {
        missing(&without("-syslog,-sys_admin"), program, "kernel symbols", &["hides"]);
    }
}

#[test]
fn limits_and_namespaces_are_reported() {
    live!();
    let program = Path::new(env!("CARGO_BIN_EXE_deadweight"));
    let files = ["prlimit", "--nofile=64:64"];
    missing(&files, program, "open files", &["too many files", "on all CPUs"]);
    let inside = ["unshare", "--user", "--map-root-user"];
    missing(&inside, program, "context switches", &["user namespace", "sudo deadweight"]);
    let Some(said) = under(&["unshare", "--pid", "--fork", "--mount-proc"], program) else {
        return;
    };
    assert!(said.out.contains("its own process ids"), "{}", said.out);
}

#[test]
fn a_filter_of_system_calls_is_reported() {
    live!();
    // perf_event_open, process_vm_readv.
    let numbers = if cfg!(target_arch = "x86_64") { "298,310" } else { "241,270" };
    let program = Path::new(env!("CARGO_BIN_EXE_deadweight"));
    let wrapper = ["python3", "-c", FILTER, numbers];
    missing(&wrapper, program, "context switches", &["seccomp filter", "every row"]);
    missing(&wrapper, program, "clock samples", &["seccomp filter", "net work"]);
    missing(&wrapper, program, "looking into processes", &["seccomp filter", "--pid"]);
}

#[test]
fn cpus_clocks_and_layouts_that_mislead_are_reported() {
    live!();
    hazard(&["taskset", "-c", "0"], "one-cpu", &["share"]);
    hazard(&["setarch", "-R"], "fixed-addresses", &["ASLR", "memory layout"]);
    let bench = Bench::new();
    // Hardware of another machine, seen in a namespace of our own only.
    let clock = bench.file("clock", "hpet\n");
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let script = format!("mount --bind {} {file} && exec \"$0\" \"$@\"", clock.display());
    hazard(&["unshare", "--mount", "sh", "-c", &script], "slow-clock", &["hpet", "ns to read"]);
    let known = fs::read_to_string("/proc/cpuinfo").unwrap();
    let lame = bench.file("cpuinfo", known.replace("nonstop_tsc", ""));
    let script = format!("mount --bind {} /proc/cpuinfo && exec \"$0\" \"$@\"", lame.display());
    if cfg!(target_arch = "x86_64") {
        let wrapper = ["unshare", "--mount", "sh", "-c", &script];
        hazard(&wrapper, "no-invariant-clock", &["nonstop_tsc"]);
    }
    let cpu = "/sys/devices/system/cpu/cpu0";
    let script = format!(
        "mount -t tmpfs none {cpu} && mkdir {cpu}/cpufreq && \
         echo powersave > {cpu}/cpufreq/scaling_governor && exec \"$0\" \"$@\""
    );
    let wrapper = ["unshare", "--mount", "sh", "-c", &script];
    hazard(&wrapper, "governor", &["powersave", "cpupower frequency-set"]);
}

/// A program that keeps a CPU busy, and that ends also where the test fails.
struct Spin(std::process::Child);

impl Spin {
    fn new() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_busy_machine_is_reported() {
    live!();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let _spins: Vec<Spin> = (0..cpus).map(|_| Spin::new()).collect();
    hazard(&["env"], "busy", &["other programs use", "CPUs now"]);
}

#[test]
fn stolen_time_is_reported_where_there_is_any() {
    live!();
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).flat_map(str::parse).collect();
    let share = ticks[7] / ticks[..8].iter().sum::<f64>();
    // Near the limit both answers are right.
    if share > 0.0015 {
        hazard(&["env"], "virtual-machine", &["hypervisor", "steal"]);
    } else if share < 0.0005 {
        let said = under(&["env"], Path::new(env!("CARGO_BIN_EXE_deadweight"))).unwrap();
        assert!(!said.out.contains("virtual-machine"), "{}", said.out);
    } else {
        eprintln!("SKIPPED stolen time: it is near the limit of what is reported");
    }
}

#[test]
fn huge_pages_are_reported_while_they_are_always_on() {
    live!();
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(before) = fs::read_to_string(file) else {
        eprintln!("SKIPPED huge pages: this kernel has none");
        return;
    };
    let before = before.split(['[', ']']).nth(1).unwrap().to_owned();
    if fs::write(file, "always").is_err() {
        eprintln!("SKIPPED huge pages: {file} cannot be written");
        return;
    }
    let said = under(&["env"], Path::new(env!("CARGO_BIN_EXE_deadweight")));
    fs::write(file, before).unwrap();
    let found = entry(&said.unwrap(), "id", "huge-pages").unwrap();
    assert!(found.contains("2 MiB") && found.contains("madvise"), "{found}");
}

#[test]
fn limits_of_cgroups_are_reported() {
    live!();
    let first = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "150000")];
    if let Some(group) = limited("cpu", &first, &[("cpu.max", "150000 100000")]) {
        hazard(&["sh", "-c", &within(&group)], "cpu-limit", &["1.50 CPUs", "cgroup"]);
    }
    let bytes = "134217728";
    let limits = ([("memory.limit_in_bytes", bytes)], [("memory.max", bytes)]);
    if let Some(group) = limited("memory", &limits.0, &limits.1) {
        hazard(&["sh", "-c", &within(&group)], "memory-limit", &["128 MiB", "cgroup"]);
    }
}
