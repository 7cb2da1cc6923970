//! Names and lines of binaries that are stripped, from the servers of `DEBUGINFOD_URLS`.
//!
//! - In: traces whose recording is over.
//! - Out: the same traces with functions and lines of debug files, and a warning for each reason why some are missing.
//! - Must not know: command lines (`cli`), or how a report is made.
//!
//! Asking takes the network, and reading what came is reading foreign bytes: both are done by a process of their own
//! (`asker`), which has given up all rights but to write to the cache. It is started before this process gives up its own
//! rights, since starting a process is one of them, and after the recording. Without the variable nothing is started.
//! See [ADR-0033](../../../../docs/adr/0033-debug-files-are-fetched-for-a-report-by-a-process-without-rights.md).

mod asker;
mod exchange;
mod missing;
mod process;
mod progress;

use self::exchange::Question;
use self::process::Process;
use deadweight_debuginfod::Settings;
use deadweight_trace::raw::{RawEvent, Sink};
use deadweight_trace::{Meta, Trace};
use std::fs::File;
use std::path::PathBuf;

pub(crate) use asker::{ask, is_meant};

/// Whether servers are asked, and the process that asks.
#[derive(Debug, Default)]
pub(crate) struct Debuginfod {
    settings: Option<Settings>,
    quiet: bool,
    process: Option<Process>,
    failure: Option<String>,
}

impl Debuginfod {
    /// Asks the servers of `DEBUGINFOD_URLS`, unless the user refuses it. `quiet` shows no progress.
    #[must_use]
    pub(crate) fn new(is_refused: bool, quiet: bool) -> Self {
        let settings = Settings::read(|name| std::env::var_os(name)).filter(|_| !is_refused);
        Self { settings, quiet, ..Self::default() }
    }

    /// Starts the process that asks, which waits for a question. Call it after the recording and before rights are given
    /// up.
    pub(crate) fn start(&mut self) {
        if self.settings.is_none() || self.process.is_some() || self.failure.is_some() {
            return;
        }
        match Process::start() {
            Ok(process) => self.process = Some(process),
            Err(error) => self.failure = Some(format!("cannot be started ({error})")),
        }
    }

    /// Names what the traces lack. Why something is still missing becomes a warning of the first one.
    pub(crate) fn complete(&mut self, traces: &mut [Trace]) {
        let Some(settings) = &self.settings else { return };
        let images = missing::of(traces);
        if images.is_empty() {
            return;
        }
        let time = settings.in_all;
        self.start();
        let question = Question { quiet: self.quiet, images };
        let answer = match (self.process.take(), self.failure.take()) {
            (Some(process), _) => process.ask(&question, time),
            (None, why) => Err(why.unwrap_or_default()),
        };
        let warnings = match answer {
            Ok(answer) => {
                let found = missing::by_build_id(&question, answer.images);
                traces.iter_mut().for_each(|trace| missing::fill(&mut trace.symbols, &found));
                answer.remarks
            }
            Err(why) => vec![format!(
                "the process that asks debuginfod servers {why}: code without symbols has no names"
            )],
        };
        if let Some(first) = traces.first_mut() {
            first.meta.warnings.extend(warnings);
        }
    }
}

/// A sink that starts the process that asks when the recording is over: sealing gives up the right to start one.
pub(crate) struct StartAtEnd<'s> {
    /// Where everything goes.
    pub(crate) sink: &'s mut dyn Sink,
    /// What is started.
    pub(crate) debuginfod: &'s mut Debuginfod,
}

impl Sink for StartAtEnd<'_> {
    fn begin(&mut self, meta: &Meta) {
        self.sink.begin(meta);
    }

    fn event(&mut self, event: &RawEvent<'_>) {
        self.sink.event(event);
    }

    fn executable(&mut self, path: PathBuf, file: File) {
        self.sink.executable(path, file);
    }

    fn flush(&mut self) {
        self.sink.flush();
    }

    fn finish(&mut self, meta: Meta) {
        self.debuginfod.start();
        self.sink.finish(meta);
    }
}
