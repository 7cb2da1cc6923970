//! A server that a case needs during tests and measurements, on a port of its own.
//!
//! It is not measured: for the measured command it is another process.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time that a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts `command` with a free port in `$PORT`, and waits until it accepts connections. Its
    /// output goes to `server.log` in `out`.
    pub(crate) fn start(command: &str, folder: &Path, out: &Path) -> Result<Self, String> {
        let log = out.join("server.log");
        let failed = |why: String| format!("the server `{command}`: {why}, see {}", log.display());
        let port = free_port().map_err(|e| failed(e.to_string()))?;
        let file = File::create(&log).map_err(|e| failed(e.to_string()))?;
        let also = file.try_clone().map_err(|e| failed(e.to_string()))?;
        let process = Command::new("/bin/sh")
            .args(["-e", "-c", &format!("exec {command}")])
            .env("OUT", out)
            .env("PORT", port.to_string())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(also)
            .spawn()
            .map_err(|e| failed(e.to_string()))?;
        let mut server = Self { process, port };
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Ok(Some(status)) = server.process.try_wait() {
                return Err(failed(format!("it ended with {status}")));
            }
            if start.elapsed() > PATIENCE {
                return Err(failed(format!("no answer within {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may already have ended.
        if self.process.kill().is_ok() {
            drop(self.process.wait());
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_reported_with_its_status() {
        let out = std::env::temp_dir();
        let why = Server::start("sh -c 'exit 3'", &out, &out).err().unwrap();
        assert!(why.contains("exit status: 3") && why.contains("server.log"), "{why}");
    }
}
