//! What is asked again, in a few words, and what to do instead. Not for which calls are questions.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weight, Weights};
use crate::facts::processes::ProcessId;
use crate::inspect::same_files::Reopened;
use std::collections::BTreeMap;

/// For files that are opened for each write.
const KEEP_OPEN: &str = "Open each file once and keep it open; in a shell, redirect the whole loop. If another \
    program may move the file away (a log), open it again every few seconds or at a signal.";

/// For files that are sent.
const CACHE: &str = "Keep the descriptors of files that are sent often, and check every few seconds whether their paths \
    lead to other files; servers have a cache of open files for it (nginx: open_file_cache).";

/// For files of `/proc` and `/sys`.
const READ_AGAIN: &str = "Keep each of them open, and read it again from its start (pread at offset 0): the kernel \
    writes it anew each time. What does not change, as the number of CPUs, need be asked only once.";

/// For `localtime`, `mktime` and `strftime`, which look at /etc/localtime each time.
const TIME_ZONE: &str = "localtime, mktime and strftime look each time whether the time zone has changed: call \
    localtime_r, or set TZ (TZ=:/etc/localtime), and convert one time per second at most.";

/// For statements of SQLite, each of which is a transaction of its own.
const SQLITE: &str = "Put the statements into one transaction (BEGIN; ... COMMIT;): outside of one, SQLite locks the file for each, \
    and looks whether another program has changed it.";

/// What reads a clock.
pub(super) const CLOCKS: [&str; 3] = ["clock_gettime", "gettimeofday", "time"];
/// For a clock that is read by system calls.
pub(super) const CLOCK: &str = "The C library's functions (clock_gettime, gettimeofday, std::chrono) read the clock without a \
    system call: call these, not syscall(). Where they make one, the clock is one of CPU time, or the machine's clock source is \
    slow (/sys/devices/system/clocksource/clocksource0/current_clocksource). Or read it once per batch.";

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
        _ if is_below(facts, places, is_of_time_zone) => TIME_ZONE.into(),
        _ if files && is_below(facts, places, |name| name.starts_with("sqlite3_")) => SQLITE.into(),
        _ => remedy(&facts.processes.get(process).language, files),
    }
}

/// The library's function that asks where it is in a file, if most of these calls are made by one that is more than a
/// seek: the program cannot keep the answer.
pub(super) fn library_that_asks<'f>(
    facts: &'f Facts<'_>,
    call: &str,
    places: &Weights,
) -> Option<&'f str> {
    if call != "lseek" {
        return None;
    }
    let symbols = facts.symbols();
    let mut asked: BTreeMap<&str, u64> = BTreeMap::new();
    for (site, weight) in places {
        let asks = site
            .library_frames(symbols)
            .last()
            .map_or("", |(_, frame)| symbols.name(frame.function));
        *asked.entry(asks).or_default() += weight.count;
    }
    let all: u64 = asked.values().sum();
    let (name, most) = asked.into_iter().max_by_key(|(_, count)| *count)?;
    let seeks = name.is_empty() || name.contains("seek") || name.contains("tell");
    (!seeks && most * 2 > all).then_some(name)
}

/// For such a function.
pub(super) fn for_library(name: &str) -> String {
    format!(
        "{name} asks for its place in the file each time: read the file once, and keep what {name} returns in a table."
    )
}

/// Whether at least half of the time in these calls is below a function whose name is such a one.
fn is_below(facts: &Facts<'_>, places: &Weights, such: impl Fn(&str) -> bool) -> bool {
    let symbols = facts.symbols();
    let below =
        |site: &CallSite| site.frames(symbols).any(|(_, frame)| such(symbols.name(frame.function)));
    let amount = |places: &mut dyn Iterator<Item = (&CallSite, &Weight)>| -> u64 {
        places.map(|(_, weight)| weight.amount).sum()
    };
    let of_those = amount(&mut places.iter().filter(|(site, _)| below(site)));
    of_those > 0 && of_those * 2 >= amount(&mut places.iter())
}

/// Whether a function of the C library looks whether the time zone has changed.
fn is_of_time_zone(name: &str) -> bool {
    name.contains("tzset") || name.contains("tz_convert") || name == "localtime"
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    /// The range and advice of a program that asks 1000 times where it is in a file, through this function.
    fn asking(through: &str) -> (f64, String) {
        let ask = |at: u64| {
            let to = at + 200;
            format!("{at} syscall lseek 3 0 1 from {through}uid (a.c:7) <- main\n{to} back 0\n")
        };
        let report = weighed(&format!(
            "image a path /bin/a\nimage libc.so.6 path /lib/libc.so.6\ntask 1 a\n0 fd 3 /users\n0 on\n0 exec /bin/a\n\
             0 main\n{}400000 exit\n400000 off dead",
            repeat(1000, 0, 400, ask)
        ));
        (report.findings[0].low, report.findings[0].remedy.clone())
    }

    /// The advice of a program that looks at one file 1000 times, through this function.
    fn looking(through: &str) -> String {
        let look = |at: u64| {
            let to = at + 200;
            format!(
                "{at} syscall newfstatat 4294967196 0x938e8b955a950d14 0 0 from {through} <- find (a.c:7) <- main\n{to} back 0\n"
            )
        };
        let report = weighed(&format!(
            "image a path /bin/a\nimage libc.so.6 path /lib/libc.so.6\nimage db path /usr/lib/libsqlite3.so.0\ntask 1 a\n0 on\n\
             0 exec /bin/a\n0 main\n{}400000 exit\n400000 off dead",
            repeat(1000, 0, 400, look)
        ));
        report.findings[0].remedy.clone()
    }

    #[test]
    fn statements_of_sqlite_get_advice_about_a_transaction_and_others_do_not() {
        let said = looking("stat @libc.so.6 <- sqlite3_step @db");
        assert!(said.starts_with("Put the statements into one transaction"), "{said}");
        assert!(looking("stat @libc.so.6").starts_with("Load each file once"));
    }

    #[test]
    fn an_answer_that_only_the_library_has_is_no_certain_saving_and_a_position_asked_for_is() {
        let (low, remedy) = asking("fgetpwent @libc.so.6 <- ");
        assert!(low == 0.0 && remedy.starts_with("fgetpwent asks"), "{low} {remedy}");
        for own in ["ftell @libc.so.6 <- ", "lseek @libc.so.6 <- ", ""] {
            let (low, remedy) = asking(own);
            assert!(low > 0.3 && remedy.starts_with("Ask once"), "{own}: {low} {remedy}");
        }
    }
}
