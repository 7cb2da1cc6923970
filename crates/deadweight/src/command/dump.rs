//! `dump F`: prints what a recording holds. Does not analyse it.

use super::{print, recording};
use crate::cli::Dump;
use crate::failure::Failure;
use crate::render::page::printable;
use crate::render::quantity::{count, time};
use deadweight_trace::ids::Tid;
use deadweight_trace::text::TextOptions;
use deadweight_trace::units::Ns;
use deadweight_trace::{Kind, Trace};
use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write as _};

pub(crate) fn dump(options: &Dump) -> Result<u8, Failure> {
    deadweight_record::confine();
    if matches!(options.between.as_deref(), Some([from, to]) if from.0 > to.0) {
        let why = "--between takes the earlier time first: the first of these times is later";
        return Err(Failure::Unknown(why.into()));
    }
    let trace = recording::read(&options.file)?;
    if !options.text {
        print("the recording", &summary(&trace))?;
        return Ok(0);
    }
    let trace = match options.between.as_deref() {
        Some([from, to]) => trace.cut(Ns(from.0), Ns(to.0)),
        _ => trace,
    };
    let part = TextOptions { task: options.task.map(Tid), addresses: options.addresses };
    let mut out = Out { to: BufWriter::new(std::io::stdout().lock()), error: None };
    let _ = trace.write_text(part, &mut out);
    let written = out.error.map_or_else(|| out.to.flush(), Err);
    written.map_err(|source| Failure::Write {
        what: "the recording",
        to: "standard output".into(),
        source,
    })?;
    Ok(0)
}

/// Writes text directly to standard output: a recording's text may be larger than memory.
struct Out {
    to: BufWriter<StdoutLock<'static>>,
    error: Option<io::Error>,
}

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.to.write_all(text.as_bytes()).map_err(|error| {
            self.error.get_or_insert(error);
            fmt::Error
        })
    }
}

/// The facts of a recording in a few lines.
fn summary(trace: &Trace) -> String {
    let meta = &trace.meta;
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<12} {}", printable(&value));
    };
    fact("command", crate::render::terminal::command_line(&meta.command));
    fact("wall time", time(trace.wall().0));
    fact("events", count(trace.len() as u64));
    fact("images", count(trace.symbols.images.len() as u64));
    fact("stacks", count(trace.symbols.stacks.len() as u64));
    fact("CPUs", meta.cpus.to_string());
    fact("recorded by", format!("deadweight {} as {}", meta.recorder, meta.rung));
    for lack in &meta.lacks {
        fact("lacking", lack.clone());
    }
    fact("complete", completeness(trace));
    for warning in &meta.warnings {
        fact("warning", warning.clone());
    }
    text
}

/// Whether everything was recorded and can be read.
fn completeness(trace: &Trace) -> String {
    if !trace.meta.complete {
        return "no: the recording broke off".into();
    }
    let lost = trace.events().map(|event| match event.kind {
        Kind::Lost { count } => count,
        _ => 0,
    });
    match lost.sum() {
        0 => "yes".into(),
        lost => format!("no: {} records were lost", count(lost)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Trace, completeness};

    /// Whether a recording with this event is complete.
    fn with(event: &str) -> String {
        let text = format!("task 1 main\n 0 on\n {event}\n 100 exit\n");
        completeness(&Trace::from_text(&text).unwrap())
    }

    #[test]
    fn a_recording_with_losses_is_not_complete() {
        assert_eq!(with("9 lost 3"), "no: 3 records were lost");
        assert_eq!(with("9 off blocked read 0"), "yes");
    }
}
