//! The order of questions: cache, then each server; the time for all of them, and what to say in the end.

use crate::cache::{Cache, Kept};
use crate::server::{Failure, Http, Limits};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Names of files in one sentence; of further ones only the number is said.
const MOST_NAMES: usize = 3;

/// What happens now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step<'s> {
    /// A server is asked.
    Asking {
        /// Its address.
        server: &'s str,
        /// The name of the binary.
        what: &'s str,
    },
    /// Bytes came.
    Receiving {
        /// The name of the binary.
        what: &'s str,
        /// How many.
        bytes: u64,
        /// Of how many, where that is known.
        of: Option<u64>,
    },
}

/// A file to find.
#[derive(Copy, Clone, Debug)]
pub struct File<'f> {
    /// The build-id in hexadecimal.
    pub build_id: &'f str,
    /// The name of the binary, for people.
    pub name: &'f str,
    /// Whether it matters so little that nothing is said if no server has it.
    pub is_minor: bool,
}

/// Asks the cache and the servers.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    cache: Cache,
    /// Made for the first question to a server: certificates are then read.
    http: Option<Http>,
    /// When asking must end; set by the first question to a server.
    until: Option<Instant>,
    /// Servers that failed are not asked again, and why.
    failed: BTreeMap<String, String>,
    /// Binaries without a file, for each reason.
    missing: Vec<(String, Vec<String>)>,
}

/// Why servers have no file for a binary.
const NOT_THERE: &str = "no debuginfod server has the debug information of";

impl Client {
    /// A client with these settings. Nothing is opened yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let cache = Cache::new(settings.cache.clone());
        let (http, failed) = (None, BTreeMap::new());
        Self { settings, cache, http, until: None, failed, missing: Vec::new() }
    }

    /// The debug file with this build-id, from the cache or from a server. `is_it` decides whether a file is the one that
    /// is meant: another is not kept.
    pub fn find(
        &mut self,
        file: &File<'_>,
        is_it: &dyn Fn(&Path) -> bool,
        step: &mut dyn FnMut(Step<'_>),
    ) -> Option<PathBuf> {
        // It becomes a part of a path and of an address.
        let is_hex = file.build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(4..=128).contains(&file.build_id.len()) {
            return None;
        }
        match self.cache.find(file.build_id) {
            Kept::File(path) if is_it(&path) => return Some(path),
            Kept::Missing => {
                self.not_there(file);
                return None;
            }
            Kept::File(_) | Kept::Nothing => {}
        }
        self.ask(file, is_it, step)
    }

    /// One sentence for each reason why files are missing.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let refused = self.settings.refused.iter().map(|word| {
            format!(
                "{word} of DEBUGINFOD_URLS was not asked: only http and https are spoken, and no signatures are checked"
            )
        });
        let missing = self.missing.iter().map(|(why, names)| format!("{why} {}", listed(names)));
        refused.chain(missing).collect()
    }

    fn ask(
        &mut self,
        file: &File<'_>,
        is_it: &dyn Fn(&Path) -> bool,
        step: &mut dyn FnMut(Step<'_>),
    ) -> Option<PathBuf> {
        let in_all = self.settings.in_all;
        let until = *self.until.get_or_insert_with(|| Instant::now() + in_all);
        let mut do_all_lack_it = true;
        for server in self.settings.servers.clone() {
            if let Some(why) = self.failed.get(&server).cloned() {
                do_all_lack_it = false;
                self.note(&why, file.name);
                continue;
            }
            if Instant::now() >= until {
                self.late(file.name);
                return None;
            }
            step(Step::Asking { server: &server, what: file.name });
            match self.fetch(&server, until, file, is_it, step) {
                Ok(path) => return Some(path),
                Err(Failure::Missing) => {}
                Err(failure) => {
                    do_all_lack_it = false;
                    self.fail(&server, failure, until, file.name);
                }
            }
        }
        if do_all_lack_it && !self.settings.servers.is_empty() {
            // If the cache cannot be written, the servers are asked again next time.
            _ = self.cache.remember_missing(file.build_id);
            self.not_there(file);
        }
        None
    }

    fn fetch(
        &mut self,
        server: &str,
        until: Instant,
        file: &File<'_>,
        is_it: &dyn Fn(&Path) -> bool,
        step: &mut dyn FnMut(Step<'_>),
    ) -> Result<PathBuf, Failure> {
        let for_one = self.settings.for_one.map(|time| Instant::now() + time);
        let limits = Limits {
            until: for_one.map_or(until, |one| one.min(until)),
            silent: self.settings.timeout,
            largest: self.settings.largest,
        };
        let ours = |error: std::io::Error| Failure::Ours(error.to_string());
        let mut partial = self.cache.begin(file.build_id).map_err(ours)?;
        let with_tls = self.settings.servers.iter().any(|server| server.starts_with("https:"));
        let http = self.http.get_or_insert_with(|| Http::new(with_tls));
        let url = format!("{server}/buildid/{}/debuginfo", file.build_id);
        let what = file.name;
        let mut received = |bytes, of| step(Step::Receiving { what, bytes, of });
        http.get(&url, &limits, &mut partial, &mut received)?;
        if !is_it(partial.path()) {
            return Err(Failure::WrongFile);
        }
        partial.keep().map_err(ours)
    }

    fn fail(&mut self, server: &str, failure: Failure, until: Instant, name: &str) {
        let why = match failure {
            Failure::Missing => return,
            Failure::TooSlow if Instant::now() >= until => return self.late(name),
            Failure::TooSlow => {
                let time = self.settings.for_one.unwrap_or_default().as_secs();
                format!("{server} took longer than {time} s (DEBUGINFOD_MAXTIME)")
            }
            Failure::TooLarge => {
                let most = size(self.settings.largest);
                format!("{server} has only a file of more than {most} (DEBUGINFOD_MAXSIZE)")
            }
            Failure::WrongFile => {
                format!("{server} sent a file with another build-id, or no ELF file")
            }
            Failure::Ours(ref why) => {
                format!("the cache {} cannot be written ({why})", self.settings.cache.display())
            }
            Failure::Server(ref why) => format!("{server} {why}"),
        };
        let why = format!("{why}: missing is the debug information of");
        if matches!(failure, Failure::Server(_)) {
            self.failed.insert(server.to_owned(), why.clone());
        }
        self.note(&why, name);
    }

    fn not_there(&mut self, file: &File<'_>) {
        if !file.is_minor {
            self.note(NOT_THERE, file.name);
        }
    }

    /// The time for all files is over.
    fn late(&mut self, name: &str) {
        let time = self.settings.in_all.as_secs();
        let why = format!(
            "debuginfod servers took {time} s, which is the limit (DEBUGINFOD_MAXTIME): missing is the debug information of"
        );
        self.note(&why, name);
    }

    fn note(&mut self, why: &str, name: &str) {
        let names = match self.missing.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names,
            None => {
                self.missing.push((why.to_owned(), Vec::new()));
                let Some((_, names)) = self.missing.last_mut() else { return };
                names
            }
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
}

/// `a, b, c and 4 others`.
fn listed(names: &[String]) -> String {
    let said = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => said,
        1 => format!("{said} and one other"),
        more => format!("{said} and {more} others"),
    }
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{bytes} bytes") } else { format!("{} MiB", bytes >> 20) }
}
