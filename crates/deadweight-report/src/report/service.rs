//! A program that serves: its exchanges with clients, and what one cost. Its busy time is `net_ns` of the report, its idle
//! time the row `idle`.
//!
//! Data only. Not for how they are counted; see `deadweight-core`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exchanges of a program that serves: it was joined while it ran, or takes connections until a signal ends it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceInfo {
    /// Exchanges with clients: data received on a socket, then data sent there. Mostly a request and its answer; several
    /// requests that come together are one. 0 if none was seen.
    pub requests: u64,
    /// CPU time of all its tasks per exchange, without its start and without tracing overhead.
    pub cpu_ns_per_request: f64,
    /// What that consists of, largest first; small parts are left out.
    pub parts: Vec<RequestPart>,
    /// Why exchanges are not counted; empty if they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uncounted: String,
}

/// A part of the CPU time of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPart {
    /// Name of a system call, or the word of a row.
    pub name: String,
    /// Nanoseconds per exchange.
    pub ns: f64,
}
