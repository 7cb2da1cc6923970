//! Encrypted connections: the server's certificate is checked, against an authority of the tests' own.

use crate::places::Place;
use crate::server::Server;
use crate::writers::start_with;
use deadweight_archive::{Archive, ErrorKind};
use std::path::Path;
use std::process::Command;

/// Makes an authority `ca.pem` and a certificate that it signed, `server.crt`, and gives the key to the server.
const CERTIFICATES: &str = "set -e
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=authority -days 2
openssl req -newkey rsa:2048 -nodes -keyout server.key -out request -subj /CN=localhost
echo subjectAltName=IP:127.0.0.1 > extensions
openssl x509 -req -in request -CA ca.pem -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile extensions
chmod 600 server.key
chown --reference=data server.key server.crt";

#[test]
fn an_encrypted_connection_needs_a_certificate_of_a_known_authority() {
    let server = Server::start("encrypted");
    let data: String =
        server.client("postgres").query_one("SHOW data_directory", &[]).unwrap().get(0);
    let folder = Path::new(&data).parent().unwrap();
    let made = Command::new("sh").args(["-c", CERTIFICATES]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (setting, file) in [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")] {
        server.sql(&format!("ALTER SYSTEM SET {setting} = '{}'", folder.join(file).display()));
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    let mut place = Place::postgres(&server);
    place.address.push_str("?sslmode=require");
    let refused = loop {
        // Until the server has read its settings again.
        let refused = Archive::open(&place.address).unwrap_err();
        if !refused.to_string().contains("server does not support TLS") {
            break refused;
        }
    };
    assert_eq!(refused.kind, ErrorKind::Denied);
    assert!(refused.to_string().contains("SSL_CERT_FILE"), "{refused}");
    let known = folder.join("ca.pem");
    let writer = start_with(&place, 0, 3, "w", |writer| _ = writer.env("SSL_CERT_FILE", &known));
    assert!(writer.wait_with_output().unwrap().status.success());
    let plain = place.address.replace("?sslmode=require", "");
    assert_eq!(Archive::open(&plain).unwrap().series("w").unwrap().points.len(), 3);
}
