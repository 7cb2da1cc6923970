//! The open descriptors of processes, and what they refer to.

use crate::clock::{self, now};
use deadweight_trace::units::Ns;
use std::collections::{HashMap, HashSet};
use std::fs;

/// What follows the name of a socket: the kernel's name for it shows neither its type nor its peer.
const DATAGRAM: &str = ":datagram";
/// A peer connected to it.
const ACCEPTED: &str = ":accepted";
/// It was connected to a peer.
const CONNECTED: &str = ":connected";
/// A connected Unix socket without a name: a client's, or an end of a pair.
const UNNAMED: &str = ":unnamed";

/// The open descriptors of a process and what they refer to; empty if it is gone.
pub(crate) fn descriptors(process: u32) -> Vec<(i32, String)> {
    let mut found = named(process);
    add_types(process, found.iter_mut().map(|(_, what)| what));
    found
}

/// Adds to names of sockets what else is known of them.
fn add_types<'n>(process: u32, names: impl Iterator<Item = &'n mut String>) {
    let mut sockets = names.filter(|name| name.starts_with("socket:[")).peekable();
    if sockets.peek().is_none() {
        return;
    }
    let table =
        |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    let mut known = HashMap::new();
    for name in ["udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6"] {
        known.extend(of_protocol(&table(name)).into_iter().map(|inode| (inode, DATAGRAM)));
    }
    known.extend(of_unix(&table("unix")));
    known.extend(of_tcp(&[table("tcp"), table("tcp6")]));
    for name in sockets {
        let inode = name.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        let inode: Option<u64> = inode.and_then(|inode| inode.parse().ok());
        if let Some(added) = inode.and_then(|inode| known.get(&inode)) {
            name.push_str(added);
        }
    }
}

/// The inodes in a table such as `/proc/net/udp`.
fn of_protocol(table: &str) -> Vec<u64> {
    let inode = |line: &str| line.split_whitespace().nth(9)?.parse().ok();
    table.lines().skip(1).filter_map(inode).collect()
}

/// The inodes of connections in `/proc/net/tcp` and `/proc/net/tcp6`: a local port that is listened at is that of a
/// server.
fn of_tcp(tables: &[String; 2]) -> Vec<(u64, &'static str)> {
    /// The states of a socket that is not connected, and of one that listens.
    const CLOSED: &str = "07";
    const LISTENS: &str = "0A";
    let socket = |line: &'_ str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state, inode) = (words.next()?, words.nth(1)?, words.nth(5)?);
        let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        Some((port, state.to_owned(), inode.parse().ok()?))
    };
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let sockets: Vec<(u16, String, u64)> = lines.filter_map(socket).collect();
    let listens = sockets.iter().filter(|(_, state, _)| state == LISTENS);
    let ports: HashSet<u16> = listens.map(|(port, ..)| *port).collect();
    let connections =
        sockets.into_iter().filter(|(_, state, _)| ![CLOSED, LISTENS].contains(&&**state));
    let side = |port| if ports.contains(&port) { ACCEPTED } else { CONNECTED };
    connections.map(|(port, _, inode)| (inode, side(port))).collect()
}

/// The inodes of sockets in `/proc/net/unix` that are no streams, or connected: who accepts a connection has the name
/// of the socket that listens.
fn of_unix(table: &str) -> Vec<(u64, &'static str)> {
    /// The flag of a socket that listens, a stream, and the state of a connection.
    const LISTENS: &str = "00010000";
    const STREAM: &str = "0001";
    const CONNECTION: &str = "03";
    // The number of the inode has blanks before it if it is short; a name may have some in it.
    let words = |line: &str| -> Vec<String> {
        let mut words = line.split_ascii_whitespace();
        let mut first: Vec<String> = words.by_ref().take(7).map(str::to_owned).collect();
        let name: Vec<&str> = words.collect();
        first.extend((!name.is_empty()).then(|| name.join(" ")));
        first
    };
    let lines: Vec<Vec<String>> = table.lines().skip(1).map(words).collect();
    let listens = lines.iter().filter(|words| words.get(3).is_some_and(|flags| flags == LISTENS));
    let names: HashSet<&String> = listens.filter_map(|words| words.get(7)).collect();
    let socket = |words: &Vec<String>| {
        let [_, _, _, _, kind, state, inode] = words.get(..7)? else { return None };
        let added = match words.get(7) {
            _ if kind != STREAM => DATAGRAM,
            _ if state != CONNECTION => return None,
            Some(name) if names.contains(name) => ACCEPTED,
            Some(_) => CONNECTED,
            None => UNNAMED,
        };
        Some((inode.parse().ok()?, added))
    };
    lines.iter().filter_map(socket).collect()
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
    /// The processes whose sockets were looked up.
    met: HashSet<u32>,
    /// CPU time that the tables of sockets took: they hold those of all programs.
    pub(crate) in_tables: Ns,
    /// When they may be read again.
    tables_again: u64,
}

/// Reading the tables of sockets may take one in so many parts of the time.
const TABLES: u64 = 20;

impl Descriptors {
    /// Everything that changed since the last call: process, descriptor, what it refers to.
    pub(crate) fn changes(&mut self, processes: &[u32]) -> Vec<(u32, i32, String)> {
        let mut new = Vec::new();
        let mut seen = HashMap::new();
        for process in processes {
            let from = new.len();
            let untyped = !self.met.contains(process);
            for (fd, what) in named(*process) {
                let again = untyped && what.starts_with("socket:[");
                if again || self.known.get(&(*process, fd)) != Some(&what) {
                    new.push((*process, fd, what.clone()));
                }
                seen.insert((*process, fd), what);
            }
            // The calls that make a socket later show its type and its peer.
            if !self.met.contains(process) && now() >= self.tables_again {
                self.met.insert(*process);
                self.look_up(&mut new[from..]);
            }
        }
        self.known = seen;
        new
    }

    fn look_up(&mut self, of_process: &mut [(u32, i32, String)]) {
        let Some((process, ..)) = of_process.first() else { return };
        let before = clock::read(libc::CLOCK_THREAD_CPUTIME_ID);
        add_types(*process, of_process.iter_mut().map(|(.., what)| what));
        let took = clock::read(libc::CLOCK_THREAD_CPUTIME_ID) - before;
        self.in_tables += took;
        self.tables_again = now() + TABLES * took.0;
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
    /// As `/proc` names it; of a socket, with what else is known.
    pub(crate) what: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    #[test]
    fn sockets_with_short_numbers_are_read_from_the_table_too() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff1: 00000002 00000000 00010000 0001 01  9999 /run/a b\n\
            ffff2: 00000003 00000000 00000000 0001 03  9998 /run/a b\n\
            ffff3: 00000003 00000000 00000000 0002 01   812\n\
            ffff4: 00000003 00000000 00000000 0001 03 70000\n";
        let found = [(9998, ACCEPTED), (812, DATAGRAM), (70_000, UNNAMED)];
        assert_eq!(of_unix(table), found);
    }

    #[test]
    fn sockets_for_messages_and_both_sides_of_connections_are_distinguished() {
        let (udp, tcp) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (messages, stream) = (UnixDatagram::unbound().unwrap(), UnixStream::pair().unwrap());
        let asks = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let (answers, _) = tcp.accept().unwrap();
        let folder =
            std::env::temp_dir().join(format!("deadweight-sockets-{}", std::process::id()));
        let listener = UnixListener::bind(&folder).unwrap();
        let unix_asks = UnixStream::connect(&folder).unwrap();
        let (unix_answers, _) = listener.accept().unwrap();
        fs::remove_file(&folder).unwrap();
        let found: HashMap<i32, String> = descriptors(std::process::id()).into_iter().collect();
        for (fd, added) in [
            (udp.as_raw_fd(), DATAGRAM),
            (messages.as_raw_fd(), DATAGRAM),
            (tcp.as_raw_fd(), "]"),
            (asks.as_raw_fd(), CONNECTED),
            (answers.as_raw_fd(), ACCEPTED),
            (stream.0.as_raw_fd(), UNNAMED),
            (listener.as_raw_fd(), "]"),
            (unix_asks.as_raw_fd(), UNNAMED),
            (unix_answers.as_raw_fd(), ACCEPTED),
        ] {
            assert!(found[&fd].ends_with(added), "{} {added}", found[&fd]);
        }
        let first = Descriptors::default().changes(&[std::process::id()]);
        assert!(
            first.iter().any(|(_, fd, what)| *fd == udp.as_raw_fd() && what.ends_with(DATAGRAM))
        );
    }
}
