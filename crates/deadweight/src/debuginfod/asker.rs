//! The process that asks: it gives up its rights, asks for one list of binaries, reads what came, and answers.
//!
//! It never has a trace, and no right but to write to the cache: neither a server nor a debug file gets at more.

use super::exchange::{Answer, Found, Question, Wanted};
use super::progress::Progress;
use deadweight_debuginfod::{Client, File, Settings};
use deadweight_record::{become_user, confine_to, memory_left, trim_heap};
use deadweight_seal::{Detail, Host, Resolved, is_build, missing_supplement, resolve_fetched};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The name by which this program is started to ask.
pub(super) const NAME: &str = "deadweight-debuginfod";

const HOST: Host = Host { drop_privileges: || {}, memory_left, return_memory: trim_heap };

/// Answers one question from standard input. `caller` is the user and group that called `sudo`: as root with such a
/// caller it becomes that user. Returns the exit code.
pub(crate) fn ask(caller: Option<(u32, u32)>) -> u8 {
    let home = caller.and_then(|(user, _)| home_of(user));
    let variable = |name: &str| match (&home, name) {
        (Some(home), "HOME") => Some(home.clone().into_os_string()),
        _ => std::env::var_os(name),
    };
    let Some(settings) = Settings::read(variable) else { return 1 };
    if let Some((user, group)) = caller
        && let Err(error) = become_user(user, group)
    {
        return answer(Err(format!("rights could not be given up ({error})")));
    }
    let cache = &settings.cache;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(cache);
    if let Err(error) = made.and_then(|()| confine_to(cache)) {
        // Without a place for files there is nothing to fetch. Other rights are not kept for that.
        let why = format!(
            "debuginfod servers were not asked: {} cannot be used ({error})",
            cache.display()
        );
        return answer(Err(why));
    }
    let mut text = Vec::new();
    // No question: nothing was missing.
    if io::stdin().lock().read_to_end(&mut text).is_err() || text.is_empty() {
        return 0;
    }
    match serde_json::from_slice(&text) {
        Ok(question) => answer(Ok(found(&question, settings))),
        Err(error) => answer(Err(error.to_string())),
    }
}

/// The home folder of a user.
fn home_of(user: u32) -> Option<PathBuf> {
    let known = fs::read_to_string("/etc/passwd").ok()?;
    let mut fields = known.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let fields = fields.find(|fields| fields.get(2).is_some_and(|id| id.parse() == Ok(user)))?;
    fields.get(5).map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Prints the answer, or the reason why nothing was found.
fn answer(answer: Result<Answer, String>) -> u8 {
    let answer = answer.unwrap_or_else(|why| Answer { remarks: vec![why], ..Answer::default() });
    let written = serde_json::to_vec(&answer).map_err(io::Error::other);
    let mut out = io::stdout().lock();
    u8::from(written.and_then(|text| out.write_all(&text).and_then(|()| out.flush())).is_err())
}

/// Fetches and reads all debug files.
fn found(question: &Question, settings: Settings) -> Answer {
    let mut client = Client::new(settings);
    let progress = Progress::start(question.quiet);
    // All are fetched before the first is read: reading has no part in the time for fetching.
    let files: Vec<Option<Files>> =
        question.images.iter().map(|image| fetched(&mut client, image, &progress)).collect();
    progress.end();
    let mut remarks = client.remarks();
    let images = question.images.iter().zip(files).map(|(image, files)| {
        let resolved = read(image, &files?)?;
        let of = format!("debug information of {} from debuginfod", image.name);
        remarks.extend(resolved.warnings.iter().map(|warning| format!("{of}: {warning}")));
        Some(in_short(resolved))
    });
    let images = images.collect();
    Answer { images, remarks }
}

/// A debug file, and the one that it shares with others.
struct Files {
    debug: PathBuf,
    supplement: Option<PathBuf>,
}

fn fetched(client: &mut Client, image: &Wanted, progress: &Progress) -> Option<Files> {
    let mut one = |id: &str| {
        let file = File { build_id: id, name: &image.name, is_minor: image.is_minor };
        client.find(&file, &|path| is_build(path, id), &mut |step| progress.step(step))
    };
    let debug = one(&image.build_id)?;
    let wanted = missing_supplement(&debug).filter(|_| image.lines);
    let supplement = wanted.and_then(|id| one(&id));
    Some(Files { debug, supplement })
}

fn read(image: &Wanted, files: &Files) -> Option<Resolved> {
    let detail = if image.lines { Detail::Lines } else { Detail::Functions };
    resolve_fetched(&files.debug, files.supplement.as_deref(), &image.addresses, detail, &HOST)
}

fn in_short(resolved: Resolved) -> Found {
    let info = resolved.info;
    let frames = resolved.frames.into_iter().map(|frames| {
        frames.into_iter().map(|frame| (frame.function, frame.file, frame.line)).collect()
    });
    Found {
        frames: frames.collect(),
        language: info.language,
        producer: info.producer,
        optimised: info.optimised,
        has_symbols: info.has_symbols,
        has_lines: info.has_lines,
    }
}

/// Whether these words of a command line start the process that asks.
pub(crate) fn is_meant(words: &[OsString]) -> bool {
    words.first().is_some_and(|first| first == NAME)
}
