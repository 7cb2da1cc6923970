//! The command that grants a missing permission: it depends on the user and on the environment
//! (container, user namespace).
//!
//! - In: a need, and the kernel's error.
//! - Out: the reason and a command.
//! - Must not know: what is recorded; `plan` tries that.

mod capabilities;
pub(crate) mod yama;

use crate::procfs;
use capabilities::{BITS, holds, in_user_namespace, may_hold, status};
use std::io;
use std::path::Path;
use yama::TraceTarget;

/// What the kernel requires before it allows an action.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Watching tasks, or the whole machine, with perf events.
    Perf,
    /// The kernel's list of tracepoints, which only root can read.
    Tracefs,
    /// Uprobes.
    Uprobes,
    /// BPF programs.
    Bpf,
    /// Reading other processes' memory.
    Ptrace,
    /// Locked memory.
    LockedMemory,
    /// A real-time priority.
    Priority,
    /// More open files.
    OpenFiles,
    /// The kernel's own addresses.
    Symbols,
}

impl Need {
    /// The capabilities that grant it. To open a tracepoint, its number from tracefs is needed too.
    fn capabilities(self) -> &'static [&'static str] {
        match self {
            Self::Perf => &["cap_perfmon"],
            Self::Tracefs => &["cap_perfmon", "cap_dac_read_search"],
            Self::Uprobes => &["cap_sys_admin"],
            Self::Bpf => &["cap_perfmon", "cap_bpf", "cap_dac_read_search"],
            Self::Ptrace => &["cap_sys_ptrace"],
            Self::LockedMemory => &["cap_ipc_lock"],
            Self::Priority => &["cap_sys_nice"],
            Self::OpenFiles => &["cap_sys_resource"],
            Self::Symbols => &["cap_syslog"],
        }
    }

    /// The container options that grant it.
    fn docker(self) -> &'static str {
        match self {
            Self::Perf => "--cap-add PERFMON --pid host",
            Self::Tracefs => {
                "--cap-add PERFMON --pid host -v /sys/kernel/tracing:/sys/kernel/tracing:ro"
            }
            Self::Uprobes => "--cap-add SYS_ADMIN --pid host",
            Self::Bpf => "--cap-add PERFMON --cap-add BPF --pid host",
            Self::Ptrace => "--cap-add SYS_PTRACE",
            Self::LockedMemory => "--ulimit memlock=-1",
            Self::Priority => "--cap-add SYS_NICE",
            Self::OpenFiles => "--ulimit nofile=65536",
            Self::Symbols => "--cap-add SYSLOG",
        }
    }

    /// The command that grants it to all users of the machine, where there is one.
    fn for_all(self) -> Option<&'static str> {
        match self {
            Self::Perf => Some("sudo sysctl kernel.perf_event_paranoid=-1"),
            // With a higher level the kernel requires CAP_SYSLOG whatever this setting is.
            Self::Symbols if paranoid().is_some_and(|level| level <= 1) => {
                Some("sudo sysctl kernel.kptr_restrict=0")
            }
            Self::OpenFiles => Some("sudo prlimit --pid $$ --nofile=65536"),
            // This capability allows nearly everything: better for one run than permanently.
            Self::Uprobes => Some("sudo deadweight -- COMMAND"),
            Self::LockedMemory => Some("sudo sysctl kernel.perf_event_mlock_kb=65536"),
            _ => None,
        }
    }
}

/// The kernel refused: the reason in words, and the command that helps.
pub(crate) fn refused(error: &io::Error, need: Need) -> (String, Option<String>) {
    match error.raw_os_error() {
        Some(libc::ENOSYS) if has_seccomp_filter() => (filter_says(), without_filter()),
        Some(libc::ENOSYS) => ("this kernel was built without it".into(), None),
        // Then the kernel has no list of tracepoints for any user.
        Some(libc::ENOENT) if matches!(need, Need::Tracefs | Need::Uprobes) => {
            (locked_down().unwrap_or_else(|| error.to_string()), None)
        }
        Some(libc::EMFILE) => ("too many files are open".into(), command_for(Need::OpenFiles)),
        Some(libc::EACCES | libc::EPERM) => denied(error, need),
        _ => (error.to_string(), None),
    }
}

fn denied(error: &io::Error, need: Need) -> (String, Option<String>) {
    if need == Need::Ptrace
        && let Some((why, None)) = yama::refusal(TraceTarget::Other)
    {
        return (why, None);
    }
    let lacking: Vec<_> = need.capabilities().iter().filter(|c| !holds(c)).copied().collect();
    if lacking.is_empty() && has_seccomp_filter() {
        return (filter_says(), without_filter());
    }
    if lacking.is_empty() {
        let why = locked_down().unwrap_or_else(|| error.to_string());
        return (format!("refused in spite of all privileges: {why}"), None);
    }
    let lacking = lacking.join(", ").to_uppercase();
    let why = if in_user_namespace() {
        format!("refused: root of a user namespace has no {lacking} on the machine")
    } else if is_root() {
        format!("refused: root without {lacking} here")
    } else if need == Need::Perf {
        let paranoid = paranoid().map_or("unknown".into(), |level| level.to_string());
        format!("refused: without {lacking}, and kernel.perf_event_paranoid is {paranoid}")
    } else {
        format!("refused: without {lacking}")
    };
    (why, command_for(need))
}

/// What the lockdown security module keeps even from root, if anything.
fn locked_down() -> Option<String> {
    let levels = procfs::line("/sys/kernel/security/lockdown")?;
    let level = levels.split(['[', ']']).nth(1).filter(|level| *level != "none")?;
    Some(format!("the kernel is locked down ({level})"))
}

/// The command that grants it, if there is one.
pub(crate) fn command_for(need: Need) -> Option<String> {
    if in_user_namespace() {
        return Some(OUTSIDE.into());
    }
    // The process that started this one may have removed the capability permanently, and would have to grant it.
    if !need.capabilities().iter().all(|capability| may_hold(capability)) {
        return in_container().then(|| format!("docker run {} ...", need.docker()));
    }
    // A container cannot change the machine's settings.
    match need.for_all().filter(|_| !in_container() || need != Need::Perf) {
        Some(command) => Some(command.into()),
        None if is_root() => None,
        None => Some(set_capabilities(need.capabilities().iter().copied())),
    }
}

/// The one command that grants everything to this program, for all users who may run it; none where no such command
/// would help.
pub(crate) fn everything() -> Option<String> {
    const ALL: [Need; 6] =
        [Need::Bpf, Need::Ptrace, Need::LockedMemory, Need::Priority, Need::Symbols, Need::Perf];
    let wanted = || ALL.into_iter().flat_map(|need| need.capabilities().iter().copied());
    if in_user_namespace() {
        return Some(OUTSIDE.into());
    }
    if !wanted().all(may_hold) {
        return in_container().then(|| "docker run --privileged --pid host ...".into());
    }
    (!is_root()).then(|| set_capabilities(wanted()))
}

/// Root of a user namespace has no privileges that recording needs.
const OUTSIDE: &str = "sudo deadweight -- COMMAND   (outside the user namespace)";

/// `setcap` replaces what a file had, so what it has stays in the list.
fn set_capabilities(wanted: impl Iterator<Item = &'static str>) -> String {
    let mut list: Vec<&str> = BITS.iter().map(|(name, _)| *name).filter(|c| holds(c)).collect();
    wanted.for_each(|name| {
        if !list.contains(&name) {
            list.push(name);
        }
    });
    let program = std::env::current_exe().unwrap_or_else(|_| "deadweight".into());
    format!("sudo setcap {}=ep {}", list.join(","), quoted(&program))
}

/// A path quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The setting `kernel.perf_event_paranoid`: the higher it is, the less ordinary users may record.
fn paranoid() -> Option<i32> {
    procfs::line("/proc/sys/kernel/perf_event_paranoid")?.trim().parse().ok()
}

/// Whether a seccomp filter checks this process's system calls.
fn has_seccomp_filter() -> bool {
    status("Seccomp:").is_some_and(|mode| mode == "2")
}

fn filter_says() -> String {
    "refused by a seccomp filter, as containers and sandboxes use".into()
}

fn without_filter() -> Option<String> {
    in_container().then(|| "docker run --security-opt seccomp=unconfined ...".into())
}

/// Whether this is the superuser, perhaps of a user namespace only.
pub(crate) fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

/// Whether this looks like a container, by the files and variables that container runtimes set.
pub(crate) fn in_container() -> bool {
    let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists());
    marked
        || std::env::var_os("container").is_some()
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        assert_eq!(quoted(Path::new("/usr/bin/deadweight")), "/usr/bin/deadweight");
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }

    #[test]
    fn a_filter_is_not_taken_for_a_missing_capability() {
        let (why, _) = refused(&io::Error::from_raw_os_error(libc::EINVAL), Need::Perf);
        assert!(why.contains("Invalid"), "{why}");
    }
}
