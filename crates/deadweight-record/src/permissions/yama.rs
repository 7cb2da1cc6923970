//! Why the kernel does not allow tracing a process, where the Yama security module decides.

use super::capabilities::holds;
use crate::error::Error;
use crate::procfs::snapshot::Target;
use crate::procfs::status::Status;
use std::fs;

/// Which process is to be traced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceTarget {
    /// A child of this process.
    Child,
    /// Another process.
    Other,
}

/// Yama's refusal, and the command that lifts it if one does; none if Yama allows it. The setting is documented with
/// the kernel (`admin-guide/LSM/Yama`): 1 allows children, 2 requires CAP_SYS_PTRACE, and 3 allows no process and
/// cannot be lowered.
pub(crate) fn refusal(whose: TraceTarget) -> Option<(String, Option<String>)> {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    by_scope(scope.trim(), whose, holds("cap_sys_ptrace"))
}

/// The kernel refused to trace this process: the reason, and what helps.
pub(crate) fn cannot_trace(target: &Target, error: &std::io::Error) -> Error {
    let status = Status::of(&format!("/proc/{}", target.pid));
    let tracer = status.as_ref().map_or("", |status| status.field("TracerPid:"));
    let yama = refusal(TraceTarget::Other);
    let why = if status.is_none() {
        "it ended while deadweight attached to it".into()
    } else if !matches!(tracer, "" | "0") {
        format!("process {tracer} traces it already, and a process can have one tracer only")
    } else if let Some((why, command)) = yama {
        let helps = command.map(|command| format!(". This helps: {command}"));
        why + &helps.unwrap_or_default()
    } else {
        format!(
            "the kernel does not let this user trace it ({error}), which is so for programs with elevated \
             privileges or protected memory; sudo helps"
        )
    };
    Error::NoProcess { pid: target.pid, why }
}

fn by_scope(scope: &str, whose: TraceTarget, capable: bool) -> Option<(String, Option<String>)> {
    let (who, enough) = match (scope, whose) {
        ("3", _) => ("no process trace another until the next boot", None),
        _ if capable => return None,
        ("2", TraceTarget::Child) => ("only processes with CAP_SYS_PTRACE trace others", Some(1)),
        ("2", TraceTarget::Other) => ("only processes with CAP_SYS_PTRACE trace others", Some(0)),
        ("1", TraceTarget::Other) => ("only its parent trace a program", Some(0)),
        _ => return None,
    };
    let command = enough.map(|enough| format!("sudo sysctl kernel.yama.ptrace_scope={enough}"));
    Some((format!("the kernel lets {who} (kernel.yama.ptrace_scope is {scope})"), command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_setting_refuses() {
        let command =
            |scope, whose, capable| by_scope(scope, whose, capable).map(|refusal| refusal.1);
        for whose in [TraceTarget::Child, TraceTarget::Other] {
            assert_eq!(command("0", whose, false), None);
            assert_eq!(command("2", whose, true), None);
            // No command lowers it.
            assert_eq!(command("3", whose, true), Some(None));
        }
        assert_eq!(command("1", TraceTarget::Child, false), None);
        let free = "sudo sysctl kernel.yama.ptrace_scope=0".to_owned();
        assert_eq!(command("1", TraceTarget::Other, false), Some(Some(free.clone())));
        assert_eq!(command("2", TraceTarget::Other, false), Some(Some(free)));
        let child = "sudo sysctl kernel.yama.ptrace_scope=1".to_owned();
        assert_eq!(command("2", TraceTarget::Child, false), Some(Some(child)));
    }
}
