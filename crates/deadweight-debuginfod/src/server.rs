//! One request to one server, with its limits. Does not know the cache or other servers.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::header;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Why a file did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server does not have it.
    Missing,
    /// It is larger than the limit.
    TooLarge,
    /// What came is not the file.
    WrongFile,
    /// It did not come in time, but bytes came until then.
    TooSlow,
    /// The server did not answer, or not as it should: why, in words that follow its address.
    Server(String),
    /// It cannot be kept: why.
    Ours(String),
}

/// The limits of one request.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limits {
    /// When the file must be complete.
    pub(crate) until: Instant,
    /// How long the server may send nothing.
    pub(crate) silent: Option<Duration>,
    /// The largest size in bytes.
    pub(crate) largest: u64,
}

/// A connection for all requests.
#[derive(Debug)]
pub(crate) struct Http {
    agent: Agent,
}

impl Http {
    /// Nothing is opened yet. Certificates take a hundred files to read: only where a server needs them.
    pub(crate) fn new(with_tls: bool) -> Self {
        let roots = if with_tls { roots() } else { RootCerts::WebPki };
        let config = Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .max_redirects(5)
            .user_agent(concat!("deadweight/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.into() }
    }

    /// Copies what is at `url` to `out`; `step` is called with the bytes that came, and with the size where it is known.
    pub(crate) fn get(
        &self,
        url: &str,
        limits: &Limits,
        out: &mut dyn Write,
        step: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<(), Failure> {
        let left = limits.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::TooSlow);
        }
        let phase = Some(limits.silent.map_or(left, |silent| silent.min(left)));
        let request = self
            .agent
            .get(url)
            .header("X-DEBUGINFOD-MAXSIZE", limits.largest.to_string())
            .config()
            .timeout_global(Some(left))
            .timeout_connect(phase)
            .timeout_recv_response(phase)
            .timeout_per_read(phase)
            .build();
        let mut response = request.call().map_err(|error| unanswered(&error, phase))?;
        match response.status().as_u16() {
            200 => {}
            404 => return Err(Failure::Missing),
            // By elfutils' servers: larger than the header allows.
            406 => return Err(Failure::TooLarge),
            other => return Err(Failure::Server(format!("answered with HTTP status {other}"))),
        }
        let size = response.headers().get(header::CONTENT_LENGTH);
        let size = size.and_then(|value| value.to_str().ok()?.parse().ok());
        if size.is_some_and(|size: u64| size > limits.largest) {
            return Err(Failure::TooLarge);
        }
        copy(&mut response.body_mut().as_reader(), (limits, phase), out, &mut |got| step(got, size))
    }
}

/// Certificates of the system; Mozilla's where it has none.
fn roots() -> RootCerts {
    let own = rustls_native_certs::load_native_certs().certs;
    if own.is_empty() {
        return RootCerts::WebPki;
    }
    own.iter().map(|own| Certificate::from_der(own).to_owned()).collect::<Vec<_>>().into()
}

fn copy(
    body: &mut dyn Read,
    (limits, phase): (&Limits, Option<Duration>),
    out: &mut dyn Write,
    step: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let mut piece = vec![0; 1 << 16];
    let mut got = 0;
    loop {
        let read = match body.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) if Instant::now() >= limits.until => return Err(Failure::TooSlow),
            Err(error) => return Err(Failure::Server(broke_off(&error, phase))),
        };
        got += read as u64;
        if got > limits.largest {
            return Err(Failure::TooLarge);
        }
        out.write_all(&piece[..read]).map_err(|error| Failure::Ours(error.to_string()))?;
        if Instant::now() >= limits.until {
            return Err(Failure::TooSlow);
        }
        step(got);
    }
}

fn broke_off(error: &io::Error, phase: Option<Duration>) -> String {
    match (is_timeout(error), phase) {
        (true, Some(phase)) => format!("stopped sending for {} s", seconds(phase)),
        _ => format!("broke off ({error})"),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
    error.kind() == io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}

fn unanswered(error: &ureq::Error, phase: Option<Duration>) -> Failure {
    let why = match (error, phase) {
        (ureq::Error::Timeout(_), Some(phase)) => {
            format!("did not answer in {} s", seconds(phase))
        }
        (ureq::Error::HostNotFound, _) => "is not a known host".to_owned(),
        (ureq::Error::ConnectionFailed, _) => "cannot be connected to".to_owned(),
        (ureq::Error::Io(error), _) => format!("cannot be connected to ({error})"),
        (error, _) => format!("cannot be asked ({error})"),
    };
    Failure::Server(why)
}

/// Whole seconds, at least one.
fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}
