//! Shell lines of a program, in its scratch folder; clean runs, and what strace counts.
//!
//! Does not know deadweight; see `mod`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Debian's programs, and not what a developer has before them.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A fresh folder, which is removed at the end.
pub(crate) struct Scratch {
    folder: PathBuf,
    /// `$PORT` in shell lines: a port that was free a moment ago.
    port: u16,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("wild-{}-{name}", std::process::id()));
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
        let port = free.map_err(|e| format!("no free port: {e}"))?.port();
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Self { folder, port })
    }

    /// A command in the folder. Its output goes to the files `out` and `err`: many programs do less if
    /// it goes to `/dev/null`.
    pub(crate) fn command(&self, program: &Path) -> Result<Command, String> {
        let file =
            |name: &str| File::create(self.folder.join(name)).map_err(|e| format!("{name}: {e}"));
        let mut command = Command::new(program);
        command
            // A developer's settings and cargo's own would change what programs do: their buffers, their libraries.
            .env_clear()
            .env("PATH", PATH)
            .env("LC_ALL", "C")
            .env("HOME", &self.folder)
            .env("PORT", self.port.to_string())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(file("out")?)
            .stderr(file("err")?);
        Ok(command)
    }

    pub(crate) fn shell(&self, line: &str) -> Result<Command, String> {
        let mut command = self.command(Path::new("/bin/sh"))?;
        command.args(["-e", "-c", line]);
        Ok(command)
    }

    /// Runs a shell line; fails if it fails.
    pub(crate) fn run(&self, line: &str) -> Result<(), String> {
        finish(self.shell(line)?.status(), line).map_err(|why| format!("{why}: {}", self.errors()))
    }

    /// Starts a shell line in a process group of its own.
    pub(crate) fn start(&self, line: &str) -> Result<Background, String> {
        use std::os::unix::process::CommandExt;
        let mut command = self.shell(&format!("exec {line}"))?;
        let log = |name: &str| File::create(self.folder.join(name)).map_err(|e| e.to_string());
        command.stdout(log("server.out")?).stderr(log("server.err")?).process_group(0);
        Ok(Background { process: command.spawn().map_err(|e| format!("`{line}`: {e}"))? })
    }

    /// The output of a shell line.
    pub(crate) fn printed(&self, line: &str) -> Result<String, String> {
        self.run(line)?;
        std::fs::read_to_string(self.folder.join("out")).map_err(|e| e.to_string())
    }

    /// The end of what the last command wrote to its standard error.
    pub(crate) fn errors(&self) -> String {
        let text = std::fs::read(self.folder.join("err")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" / ")
    }

    /// The median of the wall times of five runs.
    pub(crate) fn clean(&self, line: &str, reset: &[String]) -> Result<Duration, String> {
        let mut times = Vec::new();
        for _ in 0..5 {
            reset.iter().try_for_each(|line| self.run(line))?;
            let start = Instant::now();
            self.run(line)?;
            times.push(start.elapsed());
        }
        times.sort();
        Ok(times[2])
    }

    /// How often a shell line makes each of these calls, by strace.
    pub(crate) fn strace(&self, line: &str, calls: &[&str]) -> Result<Vec<u64>, String> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = self.command(Path::new("strace"))?;
        let traced = format!("trace={}", calls.join(","));
        command.args(["-f", "-c", "-o", "strace.txt", "-e", &traced, "/bin/sh", "-e", "-c", line]);
        finish(command.status(), "strace")?;
        let table = std::fs::read_to_string(self.folder.join("strace.txt"));
        let table = table.map_err(|e| format!("strace.txt: {e}"))?;
        Ok(calls.iter().map(|call| counted(&table, call)).collect())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A server may still write there: then the folder stays.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn finish(status: std::io::Result<std::process::ExitStatus>, line: &str) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}`: {status}")),
        Err(e) => Err(format!("`{line}`: {e}")),
    }
}

/// The calls in a table of `strace -c`: `% time, seconds, usecs/call, calls, errors, syscall`.
fn counted(table: &str, call: &str) -> u64 {
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = words.into_iter().find(|words| words.len() >= 5 && words.last() == Some(&call));
    row.and_then(|words| words[3].parse().ok()).unwrap_or(0)
}

/// A process group that runs in the background; it ends when this is dropped.
pub(crate) struct Background {
    process: Child,
}

impl Background {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let signal = |name: &str| {
            // The group may have ended already.
            drop(Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status());
        };
        signal("-TERM");
        // A database needs a moment to end in order.
        let asked = Instant::now();
        while self.runs() && asked.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
        signal("-KILL");
        drop(self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_strace_is_read_with_and_without_errors() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n \
                     60.00    0.000009           1         7           read\n \
                     40.00    0.000006           1        12         3 openat\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.000015           0        19         3 total\n";
        assert_eq!(["read", "openat", "write"].map(|call| counted(table, call)), [7, 12, 0]);
    }

    #[test]
    fn a_failing_line_is_reported_with_its_words_and_removed_with_its_folder() {
        let scratch = Scratch::new("failing-line").unwrap();
        let folder = scratch.folder.clone();
        scratch.run("echo a >b").unwrap();
        assert_eq!(scratch.printed("cat b").unwrap(), "a\n");
        let why = scratch.run("echo because >&2; exit 3").unwrap_err();
        assert!(why.contains("exit status: 3") && why.contains("because"), "{why}");
        drop(scratch);
        assert!(!folder.exists());
    }
}
