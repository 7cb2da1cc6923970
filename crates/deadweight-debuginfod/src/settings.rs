//! Environment variables into servers, cache and limits.
//!
//! The variables are those of elfutils (`man debuginfod-client-config`). Does not open anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server that sends nothing for so long is not asked again. elfutils waits for 90 seconds: a report would be late.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time for all files of a report.
const IN_ALL: Duration = Duration::from_secs(30);

/// Larger files are not fetched.
const LARGEST: u64 = 512 << 20;

/// Which servers are asked, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses without a slash at the end, in the order of asking.
    pub servers: Vec<String>,
    /// The folder that clients share.
    pub cache: PathBuf,
    /// A server must send something within this time; none for no limit of its own.
    pub timeout: Option<Duration>,
    /// The time for one file, where the user limits it.
    pub for_one: Option<Duration>,
    /// The time for all files.
    pub in_all: Duration,
    /// The size of the largest file, in bytes.
    pub largest: u64,
    /// Words of the list that are no servers that can be asked.
    pub refused: Vec<String>,
}

impl Settings {
    /// Reads the variables; none if `DEBUGINFOD_URLS` is not set or names nothing.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let list = text("DEBUGINFOD_URLS")?;
        let words: Vec<&str> = list.split_whitespace().collect();
        if words.is_empty() {
            return None;
        }
        let seconds = |name: &str| text(name)?.trim().parse::<i64>().ok();
        let limit = |seconds: i64| u64::try_from(seconds).ok().filter(|n| *n > 0);
        let for_one = seconds("DEBUGINFOD_MAXTIME").and_then(limit).map(Duration::from_secs);
        let (servers, refused) = sorted(&words);
        Some(Self {
            servers,
            refused,
            cache: cache(&variable),
            timeout: seconds("DEBUGINFOD_TIMEOUT")
                .map_or(Some(TIMEOUT), |given| limit(given).map(Duration::from_secs)),
            for_one,
            in_all: for_one.map_or(IN_ALL, |given| given.max(IN_ALL)),
            largest: seconds("DEBUGINFOD_MAXSIZE").and_then(limit).unwrap_or(LARGEST),
        })
    }
}

/// Servers, and words that name none. elfutils' `ima:enforcing` asks for signatures of what follows: they are not
/// checked here, so these servers are not asked.
fn sorted(words: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut servers, mut refused) = (Vec::new(), Vec::new());
    let mut must_be_signed = false;
    for word in words {
        if let Some(policy) = word.strip_prefix("ima:") {
            must_be_signed = policy == "enforcing";
            continue;
        }
        let is_http = word.starts_with("http://") || word.starts_with("https://");
        if is_http && !must_be_signed {
            servers.push(word.trim_end_matches('/').to_owned());
        } else {
            refused.push((*word).to_owned());
        }
    }
    (servers, refused)
}

/// Where elfutils' clients keep what they fetched.
fn cache(variable: &impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME").unwrap_or_else(|| PathBuf::from("/"));
    set("DEBUGINFOD_CACHE_PATH").unwrap_or_else(|| {
        let former = home.join(".debuginfod_client_cache");
        if former.is_dir() { former } else { beside(set("XDG_CACHE_HOME"), &home) }
    })
}

fn beside(caches: Option<PathBuf>, home: &Path) -> PathBuf {
    caches.unwrap_or_else(|| home.join(".cache")).join("debuginfod_client")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Option<Settings> {
        Settings::read(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_a_list_of_servers_there_is_nothing_to_ask() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("DEBUGINFOD_URLS", "")]), None);
        assert_eq!(read(&[("DEBUGINFOD_URLS", " \t ")]), None);
        assert_eq!(read(&[("DEBUGINFOD_CACHE_PATH", "/c"), ("HOME", "/h")]), None);
    }

    #[test]
    fn servers_are_in_order_and_without_a_slash_at_the_end() {
        let settings = read(&[("DEBUGINFOD_URLS", "https://a.org/  http://b:8002")]).unwrap();
        assert_eq!(settings.servers, ["https://a.org", "http://b:8002"]);
        assert_eq!(settings.refused, Vec::<String>::new());
    }

    #[test]
    fn servers_whose_signatures_must_be_checked_are_not_asked() {
        let list = "https://a ima:enforcing https://b ima:ignore https://c file:///d";
        let settings = read(&[("DEBUGINFOD_URLS", list)]).unwrap();
        assert_eq!(settings.servers, ["https://a", "https://c"]);
        assert_eq!(settings.refused, ["https://b", "file:///d"]);
    }

    #[test]
    fn the_cache_is_where_elfutils_has_it() {
        let cache = |more: &[(&str, &str)]| {
            let urls = [("DEBUGINFOD_URLS", "http://a"), ("HOME", "/nowhere")];
            read(&[&urls[..], more].concat()).unwrap().cache
        };
        assert_eq!(cache(&[]), Path::new("/nowhere/.cache/debuginfod_client"));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/x")]), Path::new("/x/debuginfod_client"));
        let both = [("XDG_CACHE_HOME", "/x"), ("DEBUGINFOD_CACHE_PATH", "/c")];
        assert_eq!(cache(&both), Path::new("/c"));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "")]), cache(&[]), "an empty variable is not set");
    }

    #[test]
    fn limits_are_the_users_and_a_report_is_never_very_late() {
        let limits = |more: &[(&str, &str)]| {
            let settings = read(&[&[("DEBUGINFOD_URLS", "http://a")], more].concat()).unwrap();
            (settings.timeout, settings.for_one, settings.in_all, settings.largest)
        };
        let s = Duration::from_secs;
        assert_eq!(limits(&[]), (Some(TIMEOUT), None, IN_ALL, LARGEST));
        let given = [("DEBUGINFOD_TIMEOUT", "3"), ("DEBUGINFOD_MAXTIME", "5")];
        assert_eq!(limits(&given), (Some(s(3)), Some(s(5)), IN_ALL, LARGEST));
        let none = [("DEBUGINFOD_TIMEOUT", "0"), ("DEBUGINFOD_MAXTIME", "0")];
        assert_eq!(limits(&none), (None, None, IN_ALL, LARGEST));
        let long = [("DEBUGINFOD_MAXTIME", "120"), ("DEBUGINFOD_MAXSIZE", "1000")];
        assert_eq!(limits(&long), (Some(TIMEOUT), Some(s(120)), s(120), 1000));
        assert_eq!(limits(&[("DEBUGINFOD_MAXSIZE", "much")]).3, LARGEST);
    }
}
