//! A PostgreSQL server of the tests' own: in a folder that is removed, on a free port, ended with the tests' process.
//!
//! Not installed means that the tests fail: half of them would otherwise be skipped unnoticed.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// With letters that a careless error message would show.
pub(crate) const PASSWORD: &str = "sesame-4711";

/// A running server.
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    child: Mutex<Child>,
}

/// The server of most tests.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start("shared"))
}

impl Server {
    /// Makes a folder and starts a server in it.
    pub(crate) fn start(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("deadweight-pg-{}-{name}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("password"), PASSWORD).unwrap();
        if is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(&folder).status();
            assert!(owned.unwrap().success(), "there is no user `postgres`: {INSTALL}");
        }
        let mut initdb = command("initdb");
        initdb.args(["--auth=scram-sha-256", "--username=postgres", "--no-sync", "--pwfile"]);
        initdb.arg(folder.join("password")).arg("-D").arg(folder.join("data"));
        let made = initdb.stdin(Stdio::null()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { child: Mutex::new(run(&folder, port)), folder, port };
        server.wait_until_ready();
        server
    }

    /// The address of a database.
    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a database.
    pub(crate) fn create(&self, database: &str) {
        self.sql(&format!("CREATE DATABASE {database}"));
    }

    /// Executes a statement in the database `postgres`.
    pub(crate) fn sql(&self, sql: &str) {
        self.client("postgres").batch_execute(sql).unwrap();
    }

    /// A connection that is not deadweight's.
    pub(crate) fn client(&self, database: &str) -> postgres::Client {
        postgres::Client::connect(&self.address(database), postgres::NoTls).unwrap()
    }

    /// Ends it as a power failure would, and starts it again after a while.
    pub(crate) fn restart(&self, after: Duration) {
        let mut child = self.child.lock().unwrap();
        self.stop("immediate");
        child.wait().unwrap();
        std::thread::sleep(after);
        *child = run(&self.folder, self.port);
        drop(child);
        self.wait_until_ready();
    }

    fn stop(&self, mode: &str) {
        let mut stop = command("pg_ctl");
        stop.args(["stop", "-m", mode, "-D"]).arg(self.folder.join("data"));
        stop.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        while postgres::Client::connect(&self.address("postgres"), postgres::NoTls).is_err() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "PostgreSQL does not start: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("immediate");
        _ = self.child.lock().unwrap().wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

const INSTALL: &str = "the tests need PostgreSQL: ./setup.sh tests";

/// The server's process. The kernel ends it with the thread that started it, so this thread never ends by itself; the
/// folder goes with the server.
fn run(folder: &Path, port: u16) -> Child {
    let log = fs::File::create(folder.join("log")).unwrap();
    // If this process is gone, its shell ends the server, and removes the folder.
    let script = "\"$@\" & server=$!; trap 'gone=1; kill -QUIT $server' TERM; wait $server; wait $server; \
                  [ -z \"$gone\" ] || rm -rf \"$FOLDER\"";
    let mut server = Command::new("setpriv");
    server.args(["--pdeathsig", "TERM", "sh", "-c", script, "sh"]);
    let postgres = command("postgres");
    server.arg(postgres.get_program()).args(postgres.get_args());
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    server.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
    server.args(["-c", "max_connections=60"]);
    server.env("FOLDER", folder).env("LC_ALL", "C");
    server.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        send.send(server.spawn().unwrap()).unwrap();
        loop {
            std::thread::park();
        }
    });
    receive.recv().unwrap()
}

/// A program of PostgreSQL, run by a user that it accepts.
fn command(name: &str) -> Command {
    let program = find(name);
    match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
            command.arg(program).current_dir("/");
            command
        }
        false => Command::new(program),
    }
}

/// Where Debian has it, else in PATH.
fn find(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)))
        .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|dir| dir.join(name)))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("`{name}` is not installed: {INSTALL}"))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}
