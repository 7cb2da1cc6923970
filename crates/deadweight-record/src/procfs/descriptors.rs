//! The open descriptors of processes, and what they refer to.

use std::collections::{HashMap, HashSet};
use std::fs;

/// What follows the name of a socket that keeps messages apart: the kernel's name for it does not show the type.
const DATAGRAM: &str = ":datagram";

/// The open descriptors of a process and what they refer to; empty if it is gone.
pub(crate) fn descriptors(process: u32) -> Vec<(i32, String)> {
    let mut found = named(process);
    add_types(process, found.iter_mut().map(|(_, what)| what));
    found
}

/// Adds the type to names of sockets, where it is datagrams or the like.
fn add_types<'n>(process: u32, names: impl Iterator<Item = &'n mut String>) {
    let mut sockets = names.filter(|name| name.starts_with("socket:[")).peekable();
    if sockets.peek().is_none() {
        return;
    }
    let table =
        |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let mut inodes = HashSet::new();
    for name in ["udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6"] {
        inodes.extend(of_protocol(&table(name)));
    }
    inodes.extend(of_unix(&table("unix")));
    for name in sockets {
        let inode = name.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        if inode
            .and_then(|inode| inode.parse().ok())
            .is_some_and(|inode: u64| inodes.contains(&inode))
        {
            name.push_str(DATAGRAM);
        }
    }
}

/// The inodes in a table such as `/proc/net/udp`.
fn of_protocol(table: &str) -> Vec<u64> {
    let inode = |line: &str| line.split_whitespace().nth(9)?.parse().ok();
    table.lines().skip(1).filter_map(inode).collect()
}

/// The inodes of sockets in `/proc/net/unix` that are no streams.
fn of_unix(table: &str) -> Vec<u64> {
    let inode = |line: &str| {
        let mut words = line.split_whitespace().skip(4);
        let (kind, inode) = (words.next()?, words.nth(1)?);
        (kind != "0001").then(|| inode.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// The open descriptors of a process and what they refer to, as `/proc` names it.
fn named(process: u32) -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let fd = entry.file_name().to_str()?.parse().ok()?;
            let what = fs::read_link(entry.path()).ok()?;
            Some((fd, what.to_string_lossy().into_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The descriptors of a process that stay open at its next exec. A closed standard descriptor refers to nothing: an
/// empty text.
pub(crate) fn inherited_descriptors(process: u32) -> Vec<(i32, String)> {
    let mut found = descriptors(process);
    found.retain(|(fd, _)| {
        let said = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|f| i32::from_str_radix(f.trim(), 8).ok()).unwrap_or(0);
        flags & libc::O_CLOEXEC == 0
    });
    for fd in 0..3 {
        if found.iter().all(|(open, _)| *open != fd) {
            found.push((fd, String::new()));
        }
    }
    found
}

/// Reads the descriptors of processes repeatedly, and reports changes.
#[derive(Default)]
pub(crate) struct Descriptors {
    known: HashMap<(u32, i32), String>,
    /// The processes that were read before.
    met: HashSet<u32>,
}

impl Descriptors {
    /// Everything that changed since the last call: process, descriptor, what it refers to.
    pub(crate) fn changes(&mut self, processes: &[u32]) -> Vec<(u32, i32, String)> {
        let mut new = Vec::new();
        let mut seen = HashMap::new();
        for process in processes {
            let from = new.len();
            for (fd, what) in named(*process) {
                if self.known.get(&(*process, fd)) != Some(&what) {
                    new.push((*process, fd, what.clone()));
                }
                seen.insert((*process, fd), what);
            }
            // The calls that make a socket later show its type.
            if self.met.insert(*process) {
                add_types(*process, new[from..].iter_mut().map(|(_, _, what)| what));
            }
        }
        self.known = seen;
        new
    }
}

/// What a descriptor of a process referred to at some instant.
pub(crate) struct Descriptor {
    /// The clock's reading.
    pub(crate) at: u64,
    /// The process.
    pub(crate) process: u32,
    /// The descriptor.
    pub(crate) fd: i32,
    /// As `/proc` names it; of a socket for messages, with its type.
    pub(crate) what: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn sockets_for_messages_are_distinguished_from_streams() {
        let (udp, tcp) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (messages, stream) = (UnixDatagram::unbound().unwrap(), UnixStream::pair().unwrap());
        let found: HashMap<i32, String> = descriptors(std::process::id()).into_iter().collect();
        for (fd, is) in [
            (udp.as_raw_fd(), true),
            (messages.as_raw_fd(), true),
            (tcp.as_raw_fd(), false),
            (stream.0.as_raw_fd(), false),
        ] {
            assert_eq!(found[&fd].ends_with(DATAGRAM), is, "{}", found[&fd]);
        }
        let first = Descriptors::default().changes(&[std::process::id()]);
        assert!(
            first.iter().any(|(_, fd, what)| *fd == udp.as_raw_fd() && what.ends_with(DATAGRAM))
        );
    }
}
