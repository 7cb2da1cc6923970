//! What is kept of a run: its rows, its report, perhaps its trace. Its id is a hash of its content.
//!
//! Knows no database.

use deadweight_report::report::Report;
use deadweight_report::tables::{Origin, Tables, tables};
use sha2::{Digest, Sha256};

/// A run to keep, or a kept one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Its rows. Their run is its [`id`].
    pub tables: Tables,
    /// The JSON of its report, without blanks between its words.
    pub report_json: Vec<u8>,
    /// Its trace: the bytes of a recording's file.
    pub trace: Option<Vec<u8>>,
}

impl Kept {
    /// A report that was made here or read from a file, with its JSON.
    #[must_use]
    pub fn new(report: &Report, json: &str, origin: &Origin) -> Self {
        let report_json = compact(json);
        let run = id(&origin.workload, &origin.commit, &report_json);
        Self { tables: tables(&run, report, origin), report_json, trace: None }
    }
}

/// The id of a run: 128 bits of a hash over what was measured, of which commit, and the compact JSON of its report.
#[must_use]
pub fn id(workload: &str, commit: &str, report_json: &[u8]) -> String {
    let mut hash = Sha256::new();
    // As databases keep them.
    let [workload, commit] = [workload, commit].map(|text| text.replace('\0', "\u{2400}"));
    for part in [workload.as_bytes(), commit.as_bytes(), report_json] {
        // With its length, so that no two different lists of parts are the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..16])
}

/// The key of a trace.
pub(crate) fn key(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// The key of a text that is found again by it.
pub(crate) fn short_key(content: &[u8]) -> String {
    hex(&Sha256::digest(content)[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON without blanks between its words. The words stay as they are, so nothing that a later version wrote is lost.
fn compact(json: &str) -> Vec<u8> {
    let (mut quoted, mut escaped) = (false, false);
    let keep = |byte: &u8| {
        let blank = !quoted && byte.is_ascii_whitespace();
        quoted ^= *byte == b'"' && !escaped;
        escaped = quoted && *byte == b'\\' && !escaped;
        !blank
    };
    json.bytes().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_and_words_stay() {
        let json = "{ \"a b\" : [ 1.50,\n \"\\\" \\\\\" , \"x y\" ] }\n";
        let compact = String::from_utf8(compact(json)).unwrap();
        assert_eq!(compact, "{\"a b\":[1.50,\"\\\" \\\\\",\"x y\"]}");
    }

    #[test]
    fn an_id_depends_on_workload_commit_and_report() {
        let ids = [id("a", "", b"{}"), id("", "a", b"{}"), id("a", "", b"[]"), id("", "", b"a{}")];
        let mut different = ids.to_vec();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 4);
        assert!(ids.iter().all(|id| id.len() == 32), "{ids:?}");
    }
}
