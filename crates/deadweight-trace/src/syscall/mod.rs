//! Which arguments of each system call the trace keeps, and what they mean.
//!
//! Numbers differ between architectures, names do not: the analysis compares names, never numbers. Not for structures
//! in the program's memory: the recorder reads registers only.

mod table;

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddrV4};
use table::{Row, TABLE};

/// The architecture that a trace was recorded on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// x86-64.
    #[default]
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// The architecture of this build.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };
}

/// The name of system call `nr`; none for an unknown number.
#[must_use]
pub fn name(arch: Arch, nr: u16) -> Option<&'static str> {
    let nr = usize::from(nr);
    match arch {
        Arch::X86_64 => syscalls::x86_64::Sysno::new(nr).map(|s| s.name()),
        Arch::Aarch64 => syscalls::aarch64::Sysno::new(nr).map(|s| s.name()),
    }
}

/// The number of the system call called `name`.
#[must_use]
pub fn number(arch: Arch, name: &str) -> Option<u16> {
    let nr = match arch {
        Arch::X86_64 => name.parse::<syscalls::x86_64::Sysno>().ok()?.id(),
        Arch::Aarch64 => name.parse::<syscalls::aarch64::Sysno>().ok()?.id(),
    };
    u16::try_from(nr).ok()
}

/// Which of a call's six arguments the trace keeps, in the order in which `Kind::Syscall::args`
/// holds them: at most four. Calls that are not in the table keep their first three.
#[must_use]
pub fn kept(name: &str) -> &'static [usize] {
    find(name).map_or(&[0, 1, 2], Row::kept)
}

/// The same by the numbers of an architecture's calls, up to the largest one.
#[must_use]
pub fn kept_by_number(arch: Arch) -> Vec<&'static [usize]> {
    (0..CALLS).map(|nr| kept(name(arch, nr).unwrap_or_default())).collect()
}

/// The position, among the kept arguments, of the descriptor that the call works on. If there are two: the one that
/// is read from; for `sendfile` the one that is written to.
#[must_use]
pub fn descriptor(name: &str) -> Option<usize> {
    find(name).and_then(|row| row.descriptor)
}

/// The position, among the kept arguments, of the number of bytes requested.
#[must_use]
pub fn size(name: &str) -> Option<usize> {
    find(name).and_then(|row| row.size)
}

/// The bit that an argument has if it is no address of a path, but a number that stands for the path itself.
pub const PATH_NUMBER: u64 = 1 << 63;

/// The position, among the kept arguments, of a path: its address, or see [`PATH_NUMBER`].
#[must_use]
pub fn path(name: &str) -> Option<usize> {
    find(name).and_then(|row| row.path)
}

/// The same by the numbers of an architecture's calls.
#[must_use]
pub fn path_positions(arch: Arch) -> Vec<Option<u8>> {
    let mut positions = vec![None; usize::from(CALLS)];
    for row in TABLE.iter().filter(|row| row.path.is_some()) {
        let position = number(arch, row.name).and_then(|nr| positions.get_mut(usize::from(nr)));
        let path = row.path.and_then(|path| u8::try_from(path).ok());
        position.into_iter().for_each(|position| *position = path);
    }
    positions
}

/// Numbers of calls are smaller.
const CALLS: u16 = 512;

/// The bit that the number of a peer has, besides [`PATH_NUMBER`], if it is an address of IPv4 itself.
const IPV4: u64 = 1 << 62;

/// The number that stands for the peer of a `connect` with these kept arguments: equal for equal addresses. None where the
/// recorder could not read it.
#[must_use]
pub fn peer(args: &[u64; 4]) -> Option<u64> {
    Some(args[1]).filter(|number| number & PATH_NUMBER != 0)
}

/// The address behind the number of a peer of IPv4, as `192.0.2.1:80`; none for other peers.
#[must_use]
pub fn ipv4_peer(number: u64) -> Option<SocketAddrV4> {
    if number & IPV4 == 0 {
        return None;
    }
    let [p, q, a, b, c, d, ..] = number.to_le_bytes();
    Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p, q])))
}

/// The length of the address of a `connect` or `bind` with these kept arguments, in bytes. Older traces of `connect` have
/// it in place of the peer.
#[must_use]
pub fn address_length(args: &[u64; 4]) -> u64 {
    if args[2] == 0 { args[1] } else { args[2] }
}

/// The position, among the kept arguments, of the flags that a call opens a file with. `openat2` has them in memory.
#[must_use]
pub fn open_flags(name: &str) -> Option<usize> {
    match name {
        "open" => Some(1),
        "openat" => Some(2),
        _ => None,
    }
}

/// The flag of a file that is read and written without the kernel's memory for files (`O_DIRECT`), from the kernel's uapi
/// headers.
#[must_use]
pub fn o_direct(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 0o40_000,
        Arch::Aarch64 => 0o200_000,
    }
}

fn find(name: &str) -> Option<&'static Row> {
    TABLE.binary_search_by_key(&name, |row| row.name).ok().map(|at| &TABLE[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARCHS: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    #[test]
    fn every_name_is_a_call_of_x86_64_and_is_found() {
        assert!(TABLE.windows(2).all(|w| w[0].name < w[1].name), "in order, none twice");
        for row in &TABLE {
            let nr = number(Arch::X86_64, row.name);
            assert_eq!(nr.and_then(|nr| name(Arch::X86_64, nr)), Some(row.name));
            assert!(std::ptr::eq(find(row.name).unwrap(), row));
        }
    }

    #[test]
    fn a_peer_of_ipv4_is_its_address() {
        // `sockaddr_in` of 127.0.0.1:8080 without its family.
        let number = u64::from_le_bytes([0x1f, 0x90, 127, 0, 0, 1, 0, 0xc0]);
        assert_eq!(peer(&[3, number, 16, 0]), Some(number));
        assert_eq!(ipv4_peer(number).map(|a| a.to_string()).as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(ipv4_peer(PATH_NUMBER | 77), None);
        assert_eq!(peer(&[3, 0x7fff_0000, 16, 0]), None);
    }

    #[test]
    fn kept_arguments_are_of_the_six_and_in_order() {
        for row in &TABLE {
            let kept = row.kept();
            assert!(kept.windows(2).all(|w| w[0] < w[1]), "{row:?}");
            assert!(kept.iter().all(|at| *at < 6), "{row:?}");
            let within = |at: Option<usize>| at.is_none_or(|at| at < kept.len());
            assert!(within(row.descriptor) && within(row.size), "{row:?}");
        }
    }

    #[test]
    fn numbers_and_names_of_both_architectures_go_both_ways() {
        for arch in ARCHS {
            let known = (0..1024).filter_map(|nr| Some((nr, name(arch, nr)?)));
            let count = known.inspect(|(nr, n)| assert_eq!(number(arch, n), Some(*nr))).count();
            assert!(count > 250, "{arch:?} has {count}");
            assert_eq!((name(arch, u16::MAX), number(arch, "raed")), (None, None));
        }
        let reads = ARCHS.map(|arch| (number(arch, "read"), number(arch, "open")));
        assert_eq!(reads, [(Some(0), Some(2)), (Some(63), None)]);
    }

    #[test]
    fn descriptors_and_sizes_are_where_the_analysis_expects_them() {
        for (name, positions, fd, bytes) in [
            ("read", &[0, 2][..], Some(0), Some(1)),
            ("pwrite64", &[0, 2, 3], Some(0), Some(1)),
            ("writev", &[0, 2], Some(0), None),
            ("futex", &[0, 1, 2, 3], None, None),
            ("mmap", &[1, 2, 3, 4], Some(3), None),
            ("munmap", &[0, 1], None, None),
            ("madvise", &[0, 1, 2], None, None),
            ("epoll_wait", &[0, 2, 3], Some(0), None),
            ("sendfile", &[0, 1, 3], Some(0), Some(2)),
            ("openat", &[0, 1, 2], None, None),
            ("accept4", &[0, 3], Some(0), None),
            ("pipe2", &[0, 1], None, None),
            ("getrandom", &[1, 2], None, Some(0)),
            ("wait4", &[0, 2], None, None),
            ("getpid", &[], None, None),
            ("unheard_of", &[0, 1, 2], None, None),
        ] {
            assert_eq!(
                (kept(name), descriptor(name), size(name)),
                (positions, fd, bytes),
                "{name}"
            );
        }
    }
}
