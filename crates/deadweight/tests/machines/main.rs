//! Other machines than this one: a distribution's own kernel, older and otherwise configured, in an emulated machine
//! whose every setting a test may change.
//!
//! What a user finds who installs Debian 12: perf events refused to him (`perf_event_paranoid` 3), the Yama security
//! module, cgroups of version 2. No privilege is needed here. Not for amounts of time: an emulated machine
//! is slow.

#![expect(clippy::unwrap_used, reason = "a test stops where the machine does not obey")]
#![expect(clippy::expect_used, reason = "what is missing is said")]
#![expect(clippy::print_stderr, reason = "a restart of the machine is reported")]
#![cfg(target_arch = "x86_64")]

mod guest;

use guest::{Guest, USER};

/// Prints what can be recorded in a guest, as root and as an ordinary user.
const ROOT: &str = "deadweight doctor --json";

/// The report of a recording, and some of its calls: on a slow machine they have no line of their own in the report.
const RECORDED: &str = "sh -c 'deadweight record -o /tmp/files -- ls -R /bin > /dev/null; deadweight report -o - /tmp/files; \
                        deadweight dump --text /tmp/files | grep newfstatat | head -n 3; rm /tmp/files'";

/// Checks that both are there.
fn assert_recorded(said: &str) {
    assert!(said.contains("100.0 %") && said.contains("newfstatat"), "{said}");
}

fn user(words: &str) -> String {
    format!("{USER} {words}")
}

/// Sets something of the machine.
fn set(file: &str, value: &str) -> String {
    format!("echo {value} > {file}")
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Locked down as firmware does that checks signatures.
#[test]
fn root_has_everything_on_another_kernel() {
    let guest = Guest::run(
        2,
        "lsm=lockdown,yama lockdown=integrity",
        &[
            ("doctor", ROOT),
            ("files", RECORDED),
            ("sleep", "deadweight -- sleep 0.3"),
            ("dense", "deadweight -- dd if=/dev/zero of=/dev/null bs=1 count=100000"),
        ],
    );
    assert_eq!(guest.doctor("doctor").missing(), [""; 0]);
    assert_recorded(guest.said("files"));
    let sleep = guest.said("sleep");
    assert!(sleep.contains("asleep until a timer expired"), "{sleep}");
    assert!(!sleep.contains("no kernel symbols"), "{sleep}");
    let dense = guest.said("dense");
    // An emulated machine may be too slow to keep all records; then it says so.
    let whole = dense.contains("read was called 100 000 times");
    assert!(whole || dense.contains("records were lost"), "{dense}");
    // Calls more than 20 µs apart are recorded one by one: all 200 000 are, if the machine needs longer for each.
    let counted = dense.contains("too frequent to be recorded one by one");
    assert!(counted || seconds(dense) > 200_000.0 * 20e-6, "{dense}");
}

/// The length of a traced run by its report.
fn seconds(report: &str) -> f64 {
    let (_, after) = report.split_once("one traced run, ").expect(report);
    let length = after.split([',', '\n']).next().and_then(|length| length.strip_suffix(" s"));
    length.expect(report).parse().expect(report)
}

/// Each setting gives more, up to the one of the suggested command.
#[test]
fn a_user_of_a_distribution_goes_up_the_rungs_by_the_suggested_commands() {
    let (doctor, run) =
        (user(ROOT), user("deadweight -- dd if=/dev/zero of=/dev/null bs=1 count=900"));
    let attach = user("sh -c 'sleep 5 & sleep 0.2; deadweight --pid $! --for 100ms'");
    let sysctl = |value| set(PARANOID, value);
    let suggested = "sudo sysctl kernel.perf_event_paranoid=-1";
    let guest = Guest::run(
        2,
        "",
        &[
            ("stops", &doctor),
            ("run by stops", &run),
            ("attach by stops", &attach),
            ("to 2", &sysctl("2")),
            ("user", &doctor),
            ("run as user", &run),
            ("to 1", &sysctl("1")),
            ("kernel side", &doctor),
            ("as suggested", suggested),
            ("everyone", &doctor),
            ("run with everyone", &run),
        ],
    );
    let stops = guest.doctor("stops");
    assert_eq!(stops.rung(), "stops");
    let switches = stops.capability("context switches");
    assert!(
        switches["why"].as_str().is_some_and(|why| why.ends_with("paranoid is 3")),
        "{switches}"
    );
    assert_eq!(switches["grant"], suggested);
    assert_eq!(guest.doctor("user").rung(), "user");
    for name in ["kernel symbols", "page faults", "clock samples"] {
        assert!(guest.doctor("user").missing().contains(&name), "{name}");
        assert!(!guest.doctor("kernel side").missing().contains(&name), "{name}");
    }
    assert!(!guest.doctor("everyone").missing().contains(&"context switches"));
    for name in ["run by stops", "run as user", "run with everyone"] {
        let said = guest.said(name);
        // The program reads and writes 900 times each. On an emulated machine the rest may take so long that one of
        // both is too small a part for a finding, or for a row of its own. Where start-up is not separate, and only there, the
        // loader's two reads are among them.
        let in_one_line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let with_loader = in_one_line.contains("start-up is not separate from main");
        let counted = ["was called 900 times", "×900"].into_iter();
        let mut counted = counted.chain(with_loader.then_some("read ×902"));
        assert!(counted.any(|words| said.contains(words)), "{name}: {said}");
        assert!(said.contains("100.0 %") && said.contains("doctor"), "{name}: {said}");
    }
    assert!(guest.said("attach by stops").contains("asleep"), "{}", guest.said("attach by stops"));
}

/// The Yama security module, from nothing refused to everything, which only a new start undoes.
#[test]
fn refused_tracing_comes_with_the_command_that_helps() {
    let doctor = user(ROOT);
    let run = user("deadweight -- true");
    let attach = "sh -c 'sleep 5 & sleep 0.2; deadweight --pid $! --for 100ms; exit $?'";
    // A child of the shell is no child of deadweight.
    let theirs = user(attach);
    let suggested = "sh -c \"$(sed 's/.*This helps: //' /tmp/suggested)\"";
    let kept = format!("{theirs} > /tmp/suggested 2>&1; code=$?; cat /tmp/suggested; exit $code");
    let guest = Guest::run(
        2,
        "",
        &[
            ("to 1", &set(YAMA, "1")),
            ("run at 1", &run),
            ("attach at 1", &kept),
            ("as suggested", suggested),
            ("attach as suggested", &theirs),
            ("to 2", &set(YAMA, "2")),
            ("doctor at 2", &doctor),
            ("run at 2", &run),
            ("root at 2", "deadweight -- true"),
            ("to 3", &set(YAMA, "3")),
            ("doctor at 3", &doctor),
            ("root doctor at 3", ROOT),
            ("root at 3", "deadweight -- true"),
            ("back", &set(YAMA, "0")),
        ],
    );
    let one_sentence = |name: &str, words: &[&str]| {
        let step = guest.step(name);
        assert_eq!((step.code, step.said.trim().lines().count()), (2, 1), "{name}: {}", step.said);
        for word in words {
            assert!(step.said.contains(word), "{name}: no {word:?} in {}", step.said);
        }
    };
    assert!(guest.said("run at 1").contains("wall time"));
    one_sentence("attach at 1", &["parent", "ptrace_scope is 1", "ptrace_scope=0"]);
    guest.said("as suggested");
    assert!(guest.said("attach as suggested").contains("asleep"));
    assert_eq!(guest.doctor("doctor at 2").rung(), "none");
    one_sentence(
        "run at 2",
        &["paranoid is 3", "only processes with CAP_SYS_PTRACE", "scope is 2", "sudo deadweight"],
    );
    for name in ["root at 2", "root at 3"] {
        assert!(guest.said(name).contains("wall time"), "{name}");
    }
    for name in ["doctor at 3", "root doctor at 3"] {
        let doctor = guest.doctor(name);
        let looking = doctor.capability("looking into processes");
        assert_eq!(looking["available"], false, "{name}");
        assert!(
            looking["why"].as_str().is_some_and(|why| why.contains("until the next boot")),
            "{looking}"
        );
        assert!(looking["grant"].is_null(), "no command helps: {looking}");
    }
    assert_ne!(guest.step("back").code, 0, "the kernel lowers it after all");
}

#[test]
fn limits_of_cgroups_of_version_2() {
    let group = |name: &str, file: &str, value: &str| {
        format!(
            "mkdir /sys/fs/cgroup/{name} && {}",
            set(&format!("/sys/fs/cgroup/{name}/{file}"), value)
        )
    };
    let within =
        |name: &str, words: &str| format!("echo 0 > /sys/fs/cgroup/{name}/cgroup.procs && {words}");
    let dense = "deadweight -- dd if=/dev/zero of=/dev/null bs=1M count=400";
    let guest = Guest::run(
        2,
        "",
        &[
            ("no group", ROOT),
            ("controllers", &set("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory")),
            ("cpu", &group("cpu", "cpu.max", "\"20000 100000\"")),
            ("memory", &group("memory", "memory.max", "67108864")),
            ("doctor in cpu", &within("cpu", ROOT)),
            ("run in cpu", &within("cpu", dense)),
            ("doctor in memory", &within("memory", ROOT)),
            ("run in memory", &within("memory", dense)),
        ],
    );
    for name in ["controllers", "cpu", "memory"] {
        guest.said(name);
    }
    let [none, cpu, memory] =
        ["no group", "doctor in cpu", "doctor in memory"].map(|n| guest.doctor(n));
    assert!(none.hazard("cpu-limit").is_none() && none.hazard("memory-limit").is_none());
    assert!(cpu.hazard("cpu-limit").is_some_and(|(text, _)| text.contains("0.20 CPUs")));
    assert!(cpu.hazard("one-cpu").is_none(), "a fifth of each CPU is granted, not of one");
    assert!(memory.hazard("memory-limit").is_some_and(|(text, _)| text.contains("64 MiB")));
    let run = guest.said("run in cpu");
    assert!(run.contains("a quota") && run.contains("throttled"), "{run}");
    let run = guest.said("run in memory");
    assert!(run.contains("wall time") && run.contains("little memory was left"), "{run}");
}

/// One CPU, a clock that is slow to read and promises nothing, and settings that are reported with a command that changes
/// them: each command is run. Before its driver is loaded, the CPU has one speed.
#[test]
fn settings_that_mislead_end_with_the_suggested_command() {
    let aslr = "/proc/sys/kernel/randomize_va_space";
    let small = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    let random = "sudo sysctl kernel.randomize_va_space=2";
    let fast = "sudo cpupower frequency-set --governor performance";
    let guest = Guest::run(
        1,
        "",
        &[
            ("one speed", ROOT),
            ("two speeds", "insmod /speeds.ko"),
            ("fixed", &set(aslr, "0")),
            ("misleading", ROOT),
            ("fast", fast),
            ("random", random),
            ("small", small),
            ("mended", ROOT),
            ("run", RECORDED),
            ("run by stops", &user(RECORDED)),
        ],
    );
    assert!(guest.doctor("one speed").hazard("governor").is_none());
    let (misleading, mended) = (guest.doctor("misleading"), guest.doctor("mended"));
    for (id, words, command) in [
        ("one-cpu", "one CPU only", None),
        ("slow-clock", "ns to read here", None),
        ("no-invariant-clock", "nonstop_tsc", None),
        ("huge-pages", "2 MiB", Some(small)),
        ("fixed-addresses", "ASLR is off", Some(random)),
        ("governor", "governor schedutil", Some(fast)),
    ] {
        let suggested = misleading.hazard(id).unwrap_or_else(|| panic!("{id} is not reported"));
        assert!(suggested.0.contains(words), "{id}: {suggested:?}");
        assert_eq!(suggested.1, command, "{id}");
        assert_eq!(mended.hazard(id).is_none(), command.is_some(), "{id}");
    }
    for name in ["run", "run by stops"] {
        assert_recorded(guest.said(name));
    }
}

/// A kernel in lockdown, which refuses root too.
#[test]
fn a_locked_down_kernel_is_reported_and_ptrace_still_works() {
    let guest = Guest::run(
        2,
        "lsm=lockdown,yama lockdown=confidentiality",
        &[("doctor", ROOT), ("run", RECORDED)],
    );
    let doctor = guest.doctor("doctor");
    let refused = doctor.capability("wake-ups");
    assert_eq!(refused["available"], false, "{refused}");
    assert!(refused["why"].as_str().is_some_and(|why| why.contains("locked down")), "{refused}");
    assert_recorded(guest.said("run"));
}
