//! What is asked again, in a few words, and what to do instead. Not for which calls are questions.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weight, Weights};
use crate::facts::processes::ProcessId;
use crate::inspect::same_files::Reopened;

/// For files that are opened for each write.
const KEEP_OPEN: &str = "Open each file once and keep it open; in a shell, redirect the whole loop. If another \
    program may move the file away (a log), open it again every few seconds or at a signal.";

/// For files that are sent.
const CACHE: &str = "Keep the descriptors of files that are sent often, and check every few seconds whether their paths \
    lead to other files; servers have a cache of open files for it (nginx: open_file_cache).";

/// For files of `/proc` and `/sys`.
const READ_AGAIN: &str = "Keep each of them open, and read it again from its start (pread at offset 0): the kernel \
    writes it anew each time.";

/// For `localtime`, `mktime` and `strftime`, which look at /etc/localtime each time.
const TIME_ZONE: &str = "localtime, mktime and strftime look each time whether the time zone has changed: call \
    localtime_r, or set TZ (TZ=:/etc/localtime), and convert one time per second at most.";

/// For questions, and for files that are read, in this language.
fn remedy(language: &str, files: bool) -> String {
    let map = match language {
        "Go" => "a map from path to the parsed value",
        "Rust" => "a HashMap from path to the parsed value",
        "C++" => "a std::unordered_map from path to the parsed value",
        "Python" => "functools.lru_cache around the load",
        "Crystal" => "a Hash from path to the parsed value",
        _ => "a table from path to the parsed value",
    };
    if files {
        format!(
            "Load each file once and keep the result: {map}. If the files may change while the \
             program runs, check them every few seconds instead of for each item."
        )
    } else {
        "Ask once, outside the loop, and keep the answer. If it can change, ask once per batch."
            .into()
    }
}

/// What is asked again: about files and what for, or by which call most.
pub(super) fn title(purpose: Option<Reopened>, files: bool, most: &str) -> String {
    match purpose {
        Some(Reopened::Writing) => "the same files opened for each write".into(),
        Some(Reopened::Live) => "the same files of the kernel opened for each reading".into(),
        _ if files => "the same files again and again".into(),
        _ => format!("the same question again and again: {most}"),
    }
}

/// The advice for calls at these places: what files are opened for, or whether the questions are about files.
pub(super) fn of(
    facts: &Facts<'_>,
    process: ProcessId,
    purpose: Option<Reopened>,
    files: bool,
    places: &Weights,
) -> String {
    match purpose {
        Some(Reopened::Writing) => KEEP_OPEN.into(),
        Some(Reopened::Sending) => CACHE.into(),
        Some(Reopened::Live) => READ_AGAIN.into(),
        _ if is_of_time_zone(facts, places) => TIME_ZONE.into(),
        _ => remedy(&facts.processes.get(process).language, files),
    }
}

/// Whether at least half of the calls are the C library's, which looks whether the time zone has changed.
fn is_of_time_zone(facts: &Facts<'_>, places: &Weights) -> bool {
    let symbols = facts.symbols();
    let looks = |site: &CallSite| {
        let mut names = site.frames(symbols).map(|(_, frame)| symbols.name(frame.function));
        names.any(|name| {
            name.contains("tzset") || name.contains("tz_convert") || name == "localtime"
        })
    };
    let amount = |places: &mut dyn Iterator<Item = (&CallSite, &Weight)>| -> u64 {
        places.map(|(_, weight)| weight.amount).sum()
    };
    let of_zone = amount(&mut places.iter().filter(|(site, _)| looks(site)));
    of_zone > 0 && of_zone * 2 >= amount(&mut places.iter())
}
