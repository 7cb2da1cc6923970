//! One entry for fuzzing: reads a text with each parser that reads `/proc`, `/sys`, cgroups and tracefs. It checks
//! only that no parser panics.

use crate::perf::tracefs::Tracepoint;
use crate::procfs::{self, cgroup, memory, snapshot, waits};
use crate::ptrace;
use crate::session::counting;

/// Reads a text with each parser and returns how many found something in it.
#[must_use]
pub fn read_as_any(text: &str) -> usize {
    let found = [
        !procfs::cpu_list(text).is_empty(),
        !memory::pieces(text).is_empty(),
        waits::registers(text).is_some(),
        cgroup::throttled_in(text) > 0,
        cgroup::quota_in(text).is_some(),
        Tracepoint::parse(text).offset("prev_pid", usize::MAX) < usize::MAX,
        ptrace::count_mappings(text) > 0,
        snapshot::call(text).is_some(),
        text.lines().any(|line| snapshot::mapping(0, line).is_some()),
        !counting::leftovers(text, |_| false).is_empty(),
    ];
    found.into_iter().filter(|found| *found).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reader_finds_what_is_its_own_and_nonsense_is_nobodys() {
        assert!(read_as_any("0-3,8\n") >= 1);
        assert!(read_as_any("0 0x3 0x7f73 0x20000 0x0 0x0 0x0 0x7ffd1 0x7f02\n") >= 1);
        assert!(read_as_any("7f0000000000-7f0000100000 rwxp 00000000 00:00 0 \n") >= 2);
        assert_eq!(read_as_any("nonsense"), 0);
    }
}
