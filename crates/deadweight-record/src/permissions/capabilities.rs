//! The capabilities that this process has or can be given. For the command that grants them see `permissions`.

use crate::procfs::status::Status;

/// The capabilities that recording uses, by their numbers.
pub(super) const BITS: [(&str, u32); 9] = [
    ("cap_dac_read_search", 2),
    ("cap_ipc_lock", 14),
    ("cap_sys_ptrace", 19),
    ("cap_sys_admin", SYS_ADMIN),
    ("cap_sys_nice", 23),
    ("cap_sys_resource", 24),
    ("cap_syslog", 34),
    ("cap_perfmon", 38),
    ("cap_bpf", 39),
];

/// The number of CAP_SYS_ADMIN, from which newer capabilities were split off.
const SYS_ADMIN: u32 = 21;

/// Whether this process has the capability, or the one that it was split off from.
pub(crate) fn holds(name: &str) -> bool {
    let admin = matches!(name, "cap_perfmon" | "cap_bpf" | "cap_syslog");
    !in_user_namespace() && (is_in_set("CapEff:", name) || admin && has("CapEff:", SYS_ADMIN))
}

/// Whether a program can get this capability here at all.
pub(super) fn may_hold(name: &str) -> bool {
    is_in_set("CapBnd:", name)
}

fn is_in_set(set: &str, name: &str) -> bool {
    BITS.iter().any(|(known, bit)| *known == name && has(set, *bit))
}

fn has(set: &str, bit: u32) -> bool {
    Status::of("/proc/self").is_some_and(|status| status.bits(set) & (1 << bit) != 0)
}

/// A field of `/proc/self/status`.
pub(super) fn status(field: &str) -> Option<String> {
    Some(Status::of("/proc/self")?.field(field).to_owned())
}

/// Whether this process is in a user namespace that is not the initial one.
pub(super) fn in_user_namespace() -> bool {
    const FIRST: &str = "user:[4026531837]";
    std::fs::read_link("/proc/self/ns/user").is_ok_and(|ns| ns.as_os_str() != FIRST)
}
