//! Why the kernel does not let us trace a process, where the Yama security module decides.

use super::capabilities::holds;
use crate::error::Error;
use crate::procfs::snapshot::{Target, field};
use std::fs;

/// TraceTarget process it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceTarget {
    /// A child of ours.
    Child,
    /// Somebody else's child.
    Other,
}

/// What Yama says, and the command that changes it if one does; none if it has no objection. The setting is as
/// documented with the kernel (`admin-guide/LSM/Yama`): 1 leaves us our children, 2 is for CAP_SYS_PTRACE, and 3 is for
/// nobody and cannot be lowered.
pub(crate) fn refusal(whose: TraceTarget) -> Option<(String, Option<String>)> {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    by_scope(scope.trim(), whose, holds("cap_sys_ptrace"))
}

/// It may not be traced, says the kernel: why, and what helps.
pub(crate) fn cannot_trace(target: &Target, error: &std::io::Error) -> Error {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let status = line(&format!("/proc/{}/status", target.pid));
    let tracer = field(&status, "TracerPid:");
    let yama = refusal(TraceTarget::Other);
    let why = if status.is_empty() {
        "it ended while it was being joined".into()
    } else if !matches!(&*tracer, "" | "0") {
        format!("process {tracer} traces it already, and nobody can be traced twice")
    } else if let Some((why, command)) = yama {
        let helps = command.map(|command| format!(". This helps: {command}"));
        why + &helps.unwrap_or_default()
    } else {
        format!(
            "the kernel does not let this user trace it ({error}), as it does not with programs that have \
             more rights than he or hide their memory; sudo helps"
        )
    };
    Error::NoProcess { pid: target.pid, why }
}

fn by_scope(scope: &str, whose: TraceTarget, capable: bool) -> Option<(String, Option<String>)> {
    let (who, enough) = match (scope, whose) {
        ("3", _) => ("nobody trace a program until the machine is started anew", None),
        _ if capable => return None,
        ("2", TraceTarget::Child) => ("only who has CAP_SYS_PTRACE trace", Some(1)),
        ("2", TraceTarget::Other) => ("only who has CAP_SYS_PTRACE trace", Some(0)),
        ("1", TraceTarget::Other) => ("only a program's parent trace it", Some(0)),
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
        let command = |scope, whose, capable| by_scope(scope, whose, capable).map(|told| told.1);
        for whose in [TraceTarget::Child, TraceTarget::Other] {
            assert_eq!(command("0", whose, false), None);
            assert_eq!(command("2", whose, true), None);
            // Nothing lowers it.
            assert_eq!(command("3", whose, true), Some(None));
        }
        assert_eq!(command("1", TraceTarget::Child, false), None);
        let free = "sudo sysctl kernel.yama.ptrace_scope=0".to_owned();
        assert_eq!(command("1", TraceTarget::Other, false), Some(Some(free.clone())));
        assert_eq!(command("2", TraceTarget::Other, false), Some(Some(free)));
        let ours = "sudo sysctl kernel.yama.ptrace_scope=1".to_owned();
        assert_eq!(command("2", TraceTarget::Child, false), Some(Some(ours)));
    }
}
