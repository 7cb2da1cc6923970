//! What to do instead of asking again. Not for which calls are questions.

/// For files that are opened for each write.
pub(super) const KEEP_OPEN: &str = "Open each file once and keep it open; in a shell, redirect the whole loop. If another \
    program may move the file away (a log), open it again every few seconds or at a signal.";

/// For files that are sent.
pub(super) const CACHE: &str = "Keep the descriptors of files that are sent often, and check every few seconds whether their paths \
    lead to other files; servers have a cache of open files for it (nginx: open_file_cache).";

/// For files of `/proc` and `/sys`.
pub(super) const READ_AGAIN: &str = "Keep each of them open, and read it again from its start (pread at offset 0): the kernel \
    writes it anew each time.";

/// For `localtime`, `mktime` and `strftime`, which look at /etc/localtime each time.
pub(super) const TIME_ZONE: &str = "localtime, mktime and strftime look each time whether the time zone has changed: call \
    localtime_r, or set TZ (TZ=:/etc/localtime), and convert one time per second at most.";

/// For questions, and for files that are read, in this language.
pub(super) fn remedy(language: &str, files: bool) -> String {
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
