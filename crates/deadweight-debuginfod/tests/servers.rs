//! The client against servers of this process on loopback: what comes, what does not, and what is said of it.

use deadweight_debuginfod::{Client, File, Settings, Step};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A server that answers each request with the same bytes, and the number of requests.
fn server(answer: &'static [u8], then: Duration) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer);
                std::thread::sleep(then);
            });
        }
    });
    (address, count)
}

const FOUND: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nbytes";
const NOT_THERE: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BROKEN: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbytes that do not end";
const NOW: Duration = Duration::ZERO;
const LATE: Duration = Duration::from_secs(60);

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("deadweight-debuginfod-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        let _ = std::fs::remove_dir_all(&folder.0);
        folder
    }

    fn settings(&self, servers: &[&String]) -> Settings {
        Settings {
            servers: servers.iter().map(|server| (*server).clone()).collect(),
            cache: self.0.clone(),
            timeout: Some(Duration::from_secs(1)),
            for_one: None,
            in_all: Duration::from_secs(20),
            largest: 1_000,
            refused: Vec::new(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ID: &str = "00112233";

/// What a client finds, and what it says; a file must have these bytes.
fn find(settings: Settings, right: &[u8]) -> (Option<Vec<u8>>, Vec<String>) {
    let mut client = Client::new(settings);
    let file = File { build_id: ID, name: "zstd", is_minor: false };
    let is_it = |path: &std::path::Path| std::fs::read(path).is_ok_and(|bytes| bytes == right);
    let found = client.find(&file, &is_it, &mut |_| {});
    (found.map(|path| std::fs::read(path).expect("it was found")), client.remarks())
}

#[test]
fn a_file_is_found_at_the_second_server_and_then_in_the_cache() {
    let folder = Folder::new("found");
    let (first, _) = server(NOT_THERE, NOW);
    let (second, count) = server(FOUND, NOW);
    let mut steps = Vec::new();
    let mut client = Client::new(folder.settings(&[&first, &second]));
    let file = File { build_id: ID, name: "zstd", is_minor: false };
    let found = client.find(&file, &|_| true, &mut |step| {
        steps.push(match step {
            Step::Asking { server, .. } => server.to_owned(),
            Step::Receiving { bytes, of, .. } => format!("{bytes} of {of:?}"),
        });
    });
    assert_eq!(found.as_deref(), Some(folder.0.join(ID).join("debuginfo").as_path()));
    assert_eq!(steps, [first.as_str(), second.as_str(), "5 of Some(5)"]);
    assert_eq!(client.remarks(), Vec::<String>::new());
    assert_eq!(find(folder.settings(&[&second]), b"bytes"), (Some(b"bytes".to_vec()), vec![]));
    assert_eq!(count.load(Ordering::SeqCst), 1, "the cache has it");
}

#[test]
fn a_missing_file_is_remembered_and_said() {
    let folder = Folder::new("missing");
    let (address, count) = server(NOT_THERE, NOW);
    for _ in 0..2 {
        let (found, said) = find(folder.settings(&[&address]), b"bytes");
        assert_eq!(found, None);
        assert_eq!(said, ["no debuginfod server has the debug information of zstd"]);
    }
    let mut client = Client::new(folder.settings(&[&address]));
    for build_id in [ID, "0a0b"] {
        let file = File { build_id, name: "ld.so", is_minor: true };
        assert_eq!(client.find(&file, &|_| true, &mut |_| {}), None);
    }
    assert_eq!(client.remarks(), Vec::<String>::new());
    assert_eq!(count.load(Ordering::SeqCst), 2, "each asked for once");
}

#[test]
fn a_wrong_file_is_neither_taken_nor_kept() {
    let folder = Folder::new("wrong");
    let (address, count) = server(FOUND, NOW);
    for _ in 0..2 {
        let (found, said) = find(folder.settings(&[&address]), b"other bytes");
        assert_eq!(found, None);
        assert_eq!(
            said,
            [format!(
                "{address} sent a file with another build-id, or no ELF file: missing is the debug information of zstd"
            )]
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 2, "nothing is in the cache");
    assert!(!folder.0.join(ID).exists());
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_announced_and_by_its_real_size() {
    let folder = Folder::new("large");
    let (announced, _) = server(FOUND, NOW);
    let (endless, _) = server(ENDLESS, LATE);
    for address in [&announced, &endless] {
        let settings = Settings { largest: 4, ..folder.settings(&[address]) };
        let (found, said) = find(settings, b"bytes");
        assert_eq!(found, None);
        let why = "has only a file of more than 4 bytes (DEBUGINFOD_MAXSIZE)";
        assert_eq!(said, [format!("{address} {why}: missing is the debug information of zstd")]);
        assert!(!folder.0.join(ID).exists(), "the part that came is gone");
    }
}

#[test]
fn a_server_that_says_nothing_or_stops_is_left_after_its_time() {
    let folder = Folder::new("silent");
    let (silent, _) = server(b"", LATE);
    let (stops, _) = server(ENDLESS, LATE);
    for (address, why) in [(&silent, "did not answer in 1 s"), (&stops, "stopped sending for 1 s")]
    {
        let begun = Instant::now();
        let (found, said) = find(folder.settings(&[address]), b"bytes");
        assert_eq!(found, None);
        assert_eq!(said, [format!("{address} {why}: missing is the debug information of zstd")]);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_server_that_fails_is_not_asked_for_other_files() {
    let folder = Folder::new("failing");
    let (address, count) = server(BROKEN, NOW);
    let mut client = Client::new(folder.settings(&[&address]));
    for (build_id, name) in [("0011", "a"), ("0022", "b"), ("0033", "c"), ("0044", "d")] {
        assert_eq!(
            client.find(&File { build_id, name, is_minor: false }, &|_| true, &mut |_| {}),
            None
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let why = "answered with HTTP status 503: missing is the debug information of";
    assert_eq!(client.remarks(), [format!("{address} {why} a, b, c and one other")]);
    // It may have it next time.
    assert!(!folder.0.join("0011").exists());
}

#[test]
fn the_time_for_all_files_ends() {
    let folder = Folder::new("late");
    let (address, _) = server(ENDLESS, LATE);
    let in_all = Duration::from_millis(300);
    let settings = Settings { in_all, timeout: None, ..folder.settings(&[&address]) };
    let begun = Instant::now();
    let mut client = Client::new(settings);
    for build_id in ["0011", "0022"] {
        assert_eq!(
            client.find(&File { build_id, name: "a", is_minor: false }, &|_| true, &mut |_| {}),
            None
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let said = client.remarks();
    assert!(said.len() == 1 && said[0].contains("which is the limit"), "{said:?}");
}

#[test]
fn a_server_that_is_not_there_and_a_cache_that_cannot_be_written_are_said() {
    let folder = Folder::new("unwritable");
    let (address, _) = server(FOUND, NOW);
    let settings = Settings { cache: "/proc/nowhere".into(), ..folder.settings(&[&address]) };
    let (found, said) = find(settings, b"bytes");
    assert_eq!(found, None);
    assert!(said[0].contains("/proc/nowhere cannot be written"), "{said:?}");
    let (_, said) = find(folder.settings(&[&"http://127.0.0.1:1".to_owned()]), b"bytes");
    assert!(said.len() == 1 && said[0].contains("cannot be connected to"), "{said:?}");
}

#[test]
fn what_is_no_build_id_is_not_asked_for() {
    let folder = Folder::new("id");
    let (address, count) = server(FOUND, NOW);
    let mut client = Client::new(folder.settings(&[&address]));
    for build_id in ["", "00", "../../etc/x", "zz00zz00", &"0".repeat(200)] {
        assert_eq!(
            client.find(&File { build_id, name: "a", is_minor: false }, &|_| true, &mut |_| {}),
            None
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}
