//! Stripped programs and debuginfod servers: a real one, and some that fail. Which is asked, when, and by which process.

use crate::program;
use crate::truth::leave;
use object::Object;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The function and the line that only the debug file names.
const SOURCE: &str = "\
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned long mix_the_numbers(unsigned long n) {
    unsigned long sum = 1;
    for (unsigned long i = 0; i < n; i++) sum = sum * 6364136223846793005u + (sum >> 7);
    return sum;
}
int main(int n, char **a) { printf(\"%lu\\n\", mix_the_numbers(n * atol(a[1]))); return 0; }
";
const NAMED: [&str; 2] = ["mix_the_numbers", "hot.c:5"];
const UNNAMED: &str = "hot+0x";
const MISSING: &str = "the debug information of hot";

/// A folder with a stripped program; its debug file is in `debug`. Removed when the value is dropped.
struct Split {
    folder: PathBuf,
    build_id: String,
}

impl Split {
    fn new(name: &str, build_id: &str) -> Self {
        let folder = program::scratch_folder().join(format!("debuginfod-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("debug")).unwrap();
        fs::write(folder.join("hot.c"), SOURCE).unwrap();
        let run = |words: &[&str]| {
            let done = Command::new(words[0]).args(&words[1..]).current_dir(&folder).status();
            assert!(done.unwrap().success(), "{words:?}");
        };
        let id = format!("-Wl,--build-id=0x{build_id}");
        run(&["gcc", "-O2", "-g", &id, "-o", "hot", "hot.c"]);
        run(&["objcopy", "--only-keep-debug", "hot", "debug/hot.debug"]);
        run(&["objcopy", "--strip-all", "hot"]);
        Self { folder, build_id: build_id.to_owned() }
    }

    fn debug_file(&self) -> Vec<u8> {
        fs::read(self.folder.join("debug/hot.debug")).unwrap()
    }

    fn cache(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// deadweight with these words, without servers.
    fn deadweight(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deadweight"));
        command.args(words).current_dir(&self.folder).stdin(Stdio::null());
        command.env_remove("DEBUGINFOD_URLS").env("DEBUGINFOD_TIMEOUT", "1");
        command
    }

    /// What it reports of the program with these servers and this cache.
    fn report(&self, servers: &str, cache: &str, more: &[&str]) -> String {
        let words = [more, &["--top", "--width", "500", "-o", "-", "--", "./hot", "30000000"]];
        let mut command = self.deadweight(&words.concat());
        command.env("DEBUGINFOD_URLS", servers).env("DEBUGINFOD_CACHE_PATH", self.cache(cache));
        output(&mut command)
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Standard output of a command that succeeds.
fn output(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let [text, said] = [&out.stdout, &out.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
    assert!(out.status.success(), "{command:?}: {said}");
    text
}

fn assert_named(text: &str) {
    assert!(NAMED.iter().all(|name| text.contains(name)) && !text.contains(UNNAMED), "{text}");
}

fn assert_unnamed(text: &str) {
    assert!(text.contains("wall time") && text.contains(UNNAMED), "{text}");
    assert!(!text.contains(NAMED[0]), "{text}");
}

/// Debian's server, over the debug file of a program.
struct Debuginfod {
    process: Child,
    address: String,
    log: PathBuf,
}

impl Debuginfod {
    /// It has read its folder when it has all these build-ids.
    fn start(split: &Split, build_ids: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = split.folder.join("server.log");
        let mut command = Command::new("debuginfod");
        command.args(["-p", &port.to_string(), "-F", "-d"]).arg(split.folder.join("index.sqlite"));
        command.arg(split.folder.join("debug")).stdin(Stdio::null());
        let (out, err) = (fs::File::create(&log).unwrap(), fs::File::create(&log).unwrap());
        let process = command.stdout(out).stderr(err).spawn().unwrap();
        let server = Self { process, address: format!("http://127.0.0.1:{port}"), log };
        let begun = Instant::now();
        while !build_ids.iter().all(|id| server.has(port, id)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not read its folder");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// Whether it has this build-id.
    fn has(&self, port: u16, build_id: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
        let request =
            format!("GET /buildid/{build_id}/debuginfo HTTP/1.0\r\nUser-Agent: test\r\n\r\n");
        let mut answer = Vec::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && answer.starts_with(b"HTTP/1.0 200") | answer.starts_with(b"HTTP/1.1 200")
    }

    /// How often deadweight has asked it.
    fn asked(&self) -> usize {
        let log = String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned();
        log.lines().filter(|line| line.contains("UA:deadweight/") && line.contains("GET ")).count()
    }
}

impl Drop for Debuginfod {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server that gives one answer to all, and the number of its connections. With `hangs` it keeps connections open.
fn server(answer: Vec<u8>, hangs: bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&answer);
            open.extend(hangs.then_some(stream));
        }
    });
    (address, count)
}

fn found(file: &[u8]) -> Vec<u8> {
    let length = file.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), file].concat()
}

fn tools() -> Option<String> {
    ["gcc", "objcopy"].iter().find_map(|tool| program::tool(tool).err())
}

#[test]
fn a_debuginfod_server_names_functions_and_lines_and_later_the_cache_does() {
    let missing = tools().or_else(|| program::tool("debuginfod").err());
    let Some(_alone) = leave(missing) else { return };
    let split = Split::new("real", "00112233445566778899aabbccddeeff00112233");
    let server = Debuginfod::start(&split, &[&split.build_id]);
    let address = server.address.clone();

    // Nobody is asked without the variable, or if the user refuses it.
    assert_unnamed(&split.report("", "cache", &[]));
    assert_unnamed(&split.report(&address, "cache", &["--no-debuginfod"]));
    let unset =
        split.deadweight(&["--top", "-o", "-", "--", "./hot", "30000000"]).output().unwrap();
    assert_unnamed(&String::from_utf8_lossy(&unset.stdout));
    // A recording asks nobody either; its report does.
    let mut record = split.deadweight(&["record", "-q", "-o", "t.dwt", "--", "./hot", "30000000"]);
    output(record.env("DEBUGINFOD_URLS", &address));
    assert_eq!(server.asked(), 0);
    assert!(!split.cache("cache").exists());

    assert_named(&split.report(&address, "cache", &[]));
    assert_eq!(server.asked(), 1);
    let report = |cache: &str| {
        let mut command = split.deadweight(&["report", "t.dwt", "--top"]);
        command.env("DEBUGINFOD_URLS", &address).env("DEBUGINFOD_CACHE_PATH", split.cache(cache));
        output(&mut command)
    };
    assert_named(&report("other"));
    assert_eq!(server.asked(), 2);
    assert_named(&split.report(&address, "repeated", &["-r", "2"]));
    assert_eq!(server.asked(), 3);

    // What the server does not have is asked for once, and remembered.
    let unknown = Split::new("unknown", "ffff2233445566778899aabbccddeeff00112233");
    for _ in 0..2 {
        let text = unknown.report(&address, "cache", &[]);
        assert_unnamed(&text);
        let said = format!("no debuginfod server has {MISSING}");
        assert_eq!(text.matches(&said).count(), 1, "{text}");
        assert_eq!(server.asked(), 4);
    }

    drop(server);
    assert_named(&split.report(&address, "cache", &[]));
    assert_named(&report("other"));
    elfutils_has_the_same_cache(&split, &unknown);
}

/// What deadweight kept is found by elfutils' client, which has no server any more.
fn elfutils_has_the_same_cache(split: &Split, unknown: &Split) {
    if program::tool("debuginfod-find").is_err() {
        return;
    }
    let find = |split: &Split| {
        let mut command = Command::new("debuginfod-find");
        command.args(["debuginfo", &split.build_id]);
        command.env("DEBUGINFOD_URLS", "http://127.0.0.1:1");
        command.env("DEBUGINFOD_CACHE_PATH", split.cache("cache"));
        command.output().unwrap()
    };
    let found = find(split);
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    assert_eq!(Path::new(&path), split.cache("cache").join(&split.build_id).join("debuginfo"));
    // A remembered failure is another answer than that of a server that is not there.
    let said = String::from_utf8_lossy(&find(unknown).stderr).into_owned();
    assert!(said.contains("No such file") && !said.contains("refused"), "{said}");
}

#[test]
fn what_a_debug_file_shares_with_others_is_fetched_too() {
    let missing = tools()
        .or_else(|| ["debuginfod", "dwz"].map(program::tool).into_iter().find_map(Result::err));
    let Some(_alone) = leave(missing) else { return };
    let split = Split::new("shared", "44442233445566778899aabbccddeeff00112233");
    let folder = split.folder.join("debug");
    fs::copy(folder.join("hot.debug"), folder.join("other.debug")).unwrap();
    let mut dwz = Command::new("dwz");
    dwz.args(["-m", "shared.debug", "-M", "/nowhere/shared.debug", "hot.debug", "other.debug"]);
    assert!(dwz.current_dir(&folder).status().unwrap().success());
    let shared = fs::read(folder.join("shared.debug")).unwrap();
    let shared =
        object::File::parse(shared.as_slice()).unwrap().build_id().unwrap().unwrap().to_vec();
    let shared: String = shared.iter().map(|byte| format!("{byte:02x}")).collect();
    let server = Debuginfod::start(&split, &[&split.build_id, &shared]);
    let text = split.report(&server.address, "cache", &[]);
    assert_named(&text);
    assert!(!text.contains(MISSING), "{text}");
    assert_eq!(server.asked(), 2);
    assert_eq!(fs::read_dir(split.cache("cache")).unwrap().count(), 2);
}

#[test]
fn servers_that_fail_leave_a_report_and_one_sentence() {
    let Some(_alone) = leave(tools()) else { return };
    let split = Split::new("failing", "11112233445566778899aabbccddeeff00112233");
    let other = Split::new("another", "22222233445566778899aabbccddeeff00112233");
    let file = split.debug_file();
    let large = [&file[..], &vec![0; 600 << 10]].concat();
    let silent = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nsome".to_vec();
    let not_there = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (name, (address, count), said) in [
        ("wrong", server(found(&other.debug_file()), false), "another build-id"),
        ("text", server(found(b"<html>log in first</html>"), false), "no ELF file"),
        ("absent", server(not_there.to_vec(), false), "no debuginfod server has"),
        ("large", server(found(&large), false), "more than 500000 bytes (DEBUGINFOD_MAXSIZE)"),
        ("hangs", server(Vec::new(), true), "did not answer in 1 s"),
        ("stops", server(silent, true), "stopped sending for 1 s"),
        ("nobody", ("http://127.0.0.1:1".to_owned(), Arc::default()), "cannot be connected to"),
    ] {
        let words = ["--top", "--width", "500", "-o", "-", "--", "./hot", "30000000"];
        let mut command = split.deadweight(&words);
        command.env("DEBUGINFOD_URLS", &address).env("DEBUGINFOD_MAXSIZE", "500000");
        command.env("DEBUGINFOD_CACHE_PATH", split.cache(name));
        let begun = Instant::now();
        let text = output(&mut command);
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {:?}", begun.elapsed());
        assert_unnamed(&text);
        assert!(text.contains(said), "{name}: {text}");
        assert_eq!(text.matches(MISSING).count(), 1, "{name}: {text}");
        assert_eq!(count.load(Ordering::SeqCst), usize::from(name != "nobody"), "{name}");
        let kept = split.cache(name).join(&split.build_id).join("debuginfo");
        assert!(fs::metadata(kept).map_or(true, |kept| kept.len() == 0), "{name}: it is kept");
    }
    // One that works helps if another does not.
    let (broken, _) = server(found(b"no ELF file"), false);
    let (good, _) = server(found(&file), false);
    assert_named(&split.report(&format!("{broken} {good}"), "second", &[]));
}

/// The processes that ask servers, as `/proc` shows them.
fn askers() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let asks = |path: &PathBuf| {
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        words.starts_with(b"deadweight-debuginfod\0")
    };
    processes
        .filter(asks)
        .map(|path| fs::read_to_string(path.join("status")).unwrap_or_default())
        .collect()
}

#[test]
fn servers_are_asked_after_the_recording_by_a_process_without_rights() {
    let Some(_alone) = leave(tools()) else { return };
    let split = Split::new("rights", "33332233445566778899aabbccddeeff00112233");
    let (address, count) = server(Vec::new(), true);
    let deadweight = |words: &[&str]| {
        let mut command = split.deadweight(words);
        command.env("DEBUGINFOD_URLS", &address).env("DEBUGINFOD_TIMEOUT", "4");
        command.env("DEBUGINFOD_CACHE_PATH", split.cache("cache"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    // The program waits until it is seen that nobody asks yet.
    let wait = "./hot 30000000; read line";
    let mut child = deadweight(&["--", "sh", "-c", wait]).stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!((askers(), count.load(Ordering::SeqCst)), (Vec::new(), 0));
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let begun = Instant::now();
    while count.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "no server was asked");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = askers();
    let out = child.wait_with_output().unwrap();
    assert_eq!(status.len(), 1, "{status:?}");
    let field = |name: &str| {
        let line = status[0].lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    };
    for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(field(set).trim_start_matches('0'), "", "{set}: {}", status[0]);
    }
    assert_eq!(field("NoNewPrivs:"), "1");
    // It took longer than a second: a line says what took time.
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains(&format!("asking {address} for {MISSING}")), "{said}");
    assert!(said.contains("did not answer in 4 s"), "{said}");

    // As the user who called sudo, if there is one.
    let mut command = deadweight(&["-q", "--", "./hot", "30000000"]);
    let cache = std::env::temp_dir().join(format!("deadweight-sudo-{}", std::process::id()));
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534").env("DEBUGINFOD_CACHE_PATH", &cache);
    let (address, _) = server(found(&split.debug_file()), false);
    assert!(command.env("DEBUGINFOD_URLS", address).status().unwrap().success());
    let kept = fs::metadata(cache.join(&split.build_id).join("debuginfo"));
    let owner = kept.map(|kept| std::os::unix::fs::MetadataExt::uid(&kept)).ok();
    let _ = fs::remove_dir_all(&cache);
    assert_eq!(owner, Some(65534));
}
