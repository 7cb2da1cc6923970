//! Code by which the threads of a team share out work and meet: OpenMP's libraries, TBB, rayon, barriers, Rust's channels, Go's
//! scheduler.

use super::{CallSite, image_path, is_own};
use deadweight_trace::symbols::{Location, SourceFrame, Symbols};

/// Shared libraries whose own code only shares out work: OpenMP's, and another one.
const OPEN_MP: [&str; 3] = ["libgomp.so", "libomp.so", "libiomp5.so"];
const TBB: &str = "libtbb.so";
/// The same in libraries that are compiled into the program, by the beginning of a function's name.
const FUNCTIONS: [&str; 6] = [
    "rayon::",
    "rayon_core::",
    "crossbeam_deque::",
    "crossbeam_epoch::",
    "pthread_barrier_wait",
    "__pthread_barrier_wait",
];
/// Channels between threads in Rust, by the beginning of a function's name ...
const CHANNELS: [&str; 7] = [
    "std::sync::mpsc::",
    "std::sync::mpmc::",
    "crossbeam_channel::",
    "flume::",
    "async_channel::",
    "kanal::",
    "tokio::sync::mpsc::",
];
/// ... and by a part of the source file's path: inlined functions have short names.
const CHANNEL_FILES: [&str; 6] = [
    "/std/src/sync/mpsc",
    "/std/src/sync/mpmc/",
    "/crossbeam-channel-",
    "/flume-",
    "/async-channel-",
    "/kanal-",
];
/// Small functions that such code is made of, by the beginning of their names, or by a part of the source file's path.
const PARTS: [&str; 6] =
    ["core::", "std::", "alloc::", "crossbeam_utils::", "syscall", "sched_yield"];
const PART_FILES: [&str; 4] =
    ["/library/core/src/", "/library/std/src/", "/library/alloc/src/", "/crossbeam-utils-"];

/// Functions of Go's runtime that start goroutines, choose the next one, and let them wait for each other.
const GO: [&str; 18] = [
    "runtime.chanrecv",
    "runtime.chansend",
    "runtime.execute",
    "runtime.findRunnable",
    "runtime.findrunnable",
    "runtime.goexit0",
    "runtime.gopark",
    "runtime.goready",
    "runtime.gosched_m",
    "runtime.mcall",
    "runtime.newproc",
    "runtime.park_m",
    "runtime.ready",
    "runtime.schedule",
    "runtime.selectgo",
    "runtime.semacquire",
    "runtime.semrelease",
    "runtime.startm",
];

/// Whether this is a frame of such code.
fn is_team_frame(symbols: &Symbols, location: &Location, frame: &SourceFrame) -> bool {
    let file = image_path(symbols, location).rsplit('/').next().unwrap_or_default();
    let function = symbols.name(frame.function).trim_start_matches('<');
    OPEN_MP.iter().any(|name| file.starts_with(name))
        || file.starts_with(TBB)
        || FUNCTIONS.iter().any(|name| function.starts_with(name))
        || is_channel_frame(symbols, frame)
}

/// Whether this is a frame of a channel.
fn is_channel_frame(symbols: &Symbols, frame: &SourceFrame) -> bool {
    let function = symbols.name(frame.function).trim_start_matches(['<', '&']);
    let file = symbols.name(frame.file);
    CHANNELS.iter().any(|name| function.starts_with(name))
        || CHANNEL_FILES.iter().any(|part| file.contains(part))
}

/// Whether this is a small function of a standard library.
fn is_part(symbols: &Symbols, frame: &SourceFrame) -> bool {
    let name = symbols.name(frame.function).trim_start_matches('<');
    let file = symbols.name(frame.file);
    PARTS.iter().any(|part| name.starts_with(part))
        || PART_FILES.iter().any(|part| file.contains(part))
}

/// Whether the innermost code at a site is of that kind, or a small function of the standard library that it calls.
pub(crate) fn is_in_team_code(symbols: &Symbols, site: CallSite) -> bool {
    let mut frames = site.frames(symbols);
    let innermost =
        frames.find(|(_, frame)| is_channel_frame(symbols, frame) || !is_part(symbols, frame));
    innermost.is_some_and(|(location, frame)| {
        let asks = is_channel_frame(symbols, frame) && only_asks(symbols, site);
        is_team_frame(symbols, location, frame) && !asks
    })
}

/// Whether the library's code at a site tries to send or to receive, and does not wait if it cannot: that may be a loop
/// that asks again and again.
fn only_asks(symbols: &Symbols, site: CallSite) -> bool {
    const ASKS: [&str; 3] = ["try_recv", "try_send", "runtime.selectnb"];
    library(symbols, site).any(|name| ASKS.iter().any(|asks| name.contains(asks)))
}

/// The names of the functions up to the program's own innermost frame.
fn library(symbols: &Symbols, site: CallSite) -> impl Iterator<Item = &str> {
    site.library_frames(symbols).map(|(_, frame)| symbols.name(frame.function))
}

/// Functions of condition variables and semaphores, and of locks, by the beginning of their names without leading underscores.
const CONDITIONS: [&str; 5] =
    ["pthread_cond_", "std::condition_variable", "sem_post", "sem_wait", "new_sem_wait"];
const LOCKS: [&str; 6] = [
    "pthread_mutex_",
    "lll_lock_",
    "gthread_mutex_",
    "std::mutex::",
    "std::unique_lock",
    "std::lock_guard",
];

/// Whether threads tell each other at a site that something is there: a condition variable of the C or C++ library.
pub(crate) fn is_under_condition(symbols: &Symbols, site: CallSite) -> bool {
    is_under(symbols, site, &CONDITIONS)
}

/// Whether a site is in a lock of the C or C++ library.
pub(crate) fn is_under_lock(symbols: &Symbols, site: CallSite) -> bool {
    is_under(symbols, site, &LOCKS)
}

fn is_under(symbols: &Symbols, site: CallSite, functions: &[&str]) -> bool {
    let mut library = library(symbols, site).map(|name| name.trim_start_matches('_'));
    library.any(|name| functions.iter().any(|function| name.starts_with(function)))
}

/// Whether a channel's code is between a site and the program's own innermost frame.
pub(crate) fn is_under_channel(symbols: &Symbols, site: CallSite) -> bool {
    site.library_frames(symbols).any(|(_, frame)| is_channel_frame(symbols, frame))
}

/// The variable of the environment by which the team's library at a site runs all with one thread, if it has one.
pub(crate) fn one_thread_by(symbols: &Symbols, site: CallSite) -> Option<&'static str> {
    site.frames(symbols).find_map(|(location, frame)| {
        let file = image_path(symbols, location).rsplit('/').next().unwrap_or_default();
        let function = symbols.name(frame.function).trim_start_matches('<');
        if OPEN_MP.iter().any(|name| file.starts_with(name)) {
            return Some("OMP_THREAD_LIMIT");
        }
        function.starts_with("rayon_core::").then_some("RAYON_NUM_THREADS")
    })
}

/// Whether such code is anywhere in the stack of a site: its thread works for a team.
pub(crate) fn is_of_team(symbols: &Symbols, site: CallSite) -> bool {
    site.frames(symbols).any(|(location, frame)| is_team_frame(symbols, location, frame))
}

/// Whether a site is in Go's runtime, where that starts goroutines or lets them wait for each other; not for a lock.
pub(crate) fn is_in_go_scheduler(symbols: &Symbols, site: CallSite) -> bool {
    let library = || library(symbols, site);
    let schedules = |name: &str| GO.iter().any(|function| name.starts_with(function));
    library().any(schedules)
        && !library().any(|name| name.contains("Mutex"))
        && !only_asks(symbols, site)
}

/// Whether such code is between a site and the program's own innermost frame.
pub(crate) fn is_under_team_code(symbols: &Symbols, site: CallSite) -> bool {
    site.frames(symbols)
        .map(|(location, frame)| {
            (is_team_frame(symbols, location, frame), is_own(symbols, location, frame))
        })
        .take_while(|(team, own)| *team || !own)
        .any(|(team, _)| team)
        && !only_asks(symbols, site)
}
