//! Handshakes of TLS: keys and certificates that both ends of a new connection compute, and the turns for them.

use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_trace::units::Ns;

/// Parts of names of functions that a whole handshake runs under: Go's `crypto/tls`, OpenSSL and its forks, GnuTLS, mbed
/// TLS, rustls, NSS.
const FUNCTIONS: &[&str] = &[
    "crypto/tls.(*Conn).clientHandshake",
    "crypto/tls.(*Conn).serverHandshake",
    "crypto/tls.(*Conn).handshakeContext",
    "SSL_do_handshake",
    "SSL_connect",
    "SSL_accept",
    "gnutls_handshake",
    "mbedtls_ssl_handshake",
    "rustls::client::tls12",
    "rustls::client::tls13",
    "rustls::client::hs",
    "rustls::server::tls12",
    "rustls::server::tls13",
    "rustls::server::hs",
    "SSL_ForceHandshake",
];

/// Whether this is code of a handshake.
pub(super) fn is_at(facts: &Facts<'_>, site: CallSite) -> bool {
    let symbols = facts.symbols();
    site.frames(symbols).any(|(_, frame)| {
        let name = symbols.name(frame.function);
        FUNCTIONS.iter().any(|function| name.starts_with(function))
    })
}

/// CPU time of these processes in handshakes.
pub(super) fn cpu_time(found: &Inspection<'_, '_>, of: impl Fn(ProcessId) -> bool) -> Ns {
    let entries = found.cpu.entries.iter().filter(|entry| of(entry.process));
    entries.map(|entry| entry.sampled_at(|site| is_at(found.facts, site))).sum()
}
