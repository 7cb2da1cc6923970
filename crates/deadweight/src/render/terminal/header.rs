//! The first lines: the command, its language and build, the runs and their times.

use crate::render::page::{Ink, Line, Sheet, columns, fitted};
use crate::render::quantity::{Scale, beside, count, percent, time};
use crate::running::program::EXEC;
use deadweight_report::report::{CountBasis, Inside, Report, RequestPart, Row, Runs, ServiceInfo};
use deadweight_report::wording::shell_word;

/// Widest share of a line that a command may take, in columns out of 100.
const COMMAND_SHARE: usize = 60;

/// Rows with less than this share of an operation are added up.
const SHOWN: f64 = 0.02;
/// If the CPU time of all threads exceeds the wall time by this factor, they run in parallel.
const BESIDE: f64 = 1.1;

pub(super) fn write(sheet: &mut Sheet, report: &Report) {
    let mut line = Line::indented(2);
    let room = sheet.width() * COMMAND_SHARE / 100;
    line.push(Ink::Strong, &fitted(&command_line(&report.command), room));
    for (ink, part) in inked_parts(report) {
        if line.columns() + 3 + columns(&part) > sheet.width() {
            sheet.line(&line);
            line = Line::indented(4);
        } else {
            line.push(Ink::Faint, " · ");
        }
        line.push(ink, &part);
    }
    sheet.line(&line);
    if let Some(service) = &report.service {
        requests(sheet, service, report);
    }
    if let Some(inside) = &report.inside {
        calls(sheet, inside);
        operation(sheet, inside, report);
    }
    if let Some(text) = ending(report) {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ");
        sheet.paragraph(line, 4, Ink::Plain, &text);
    }
    sheet.gap();
}

/// What is said of the subject, the build and the runs, in words.
pub(crate) fn parts(report: &Report) -> Vec<String> {
    inked_parts(report).map(|(_, part)| part).collect()
}

fn inked_parts(report: &Report) -> impl Iterator<Item = (Ink, String)> + use<> {
    let parts =
        [subject(report), build(report), clean(&report.runs), traced(report), inside(report)];
    parts.into_iter().flatten()
}

/// The command as a user would type it.
pub(crate) fn command_line(command: &[String]) -> String {
    if let [shell, flag, script] = command
        && shell == "/bin/sh"
        && flag == "-c"
    {
        return script.strip_prefix(EXEC).unwrap_or(script).to_owned();
    }
    command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The subject, if it is not the command itself.
fn subject(report: &Report) -> Option<(Ink, String)> {
    let name = &report.subject.name;
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let same = report.command.first().is_some_and(|first| {
        let first = file(first);
        // The kernel cuts names to 15 bytes.
        first == *name || (name.len() == 15 && first.starts_with(name.as_str()))
    });
    (!same && !name.is_empty()).then(|| (Ink::Plain, format!("time of {name}")))
}

fn build(report: &Report) -> Option<(Ink, String)> {
    let subject = &report.subject;
    let made = match subject.optimised {
        Some(true) => "optimised",
        Some(false) => "not optimised",
        None => "",
    };
    let ink = if subject.optimised == Some(false) { Ink::Doubt } else { Ink::Plain };
    let words: Vec<&str> =
        [subject.language.as_str(), made].into_iter().filter(|w| !w.is_empty()).collect();
    (!words.is_empty()).then(|| (ink, words.join(", ")))
}

fn clean(runs: &Runs) -> Option<(Ink, String)> {
    let wall = runs.clean.wall_ns;
    let scale = Scale::for_largest(wall.median);
    let median = time(wall.median);
    let text = match runs.clean.count {
        0 => return None,
        1 => format!("1 clean run, {median}"),
        n => {
            let (low, high) = (beside(wall.low, scale), beside(wall.high, scale));
            // Fewer have no such interval: these are the fastest and the slowest.
            let interval = if n < 6 { "" } else { "95 % CI " };
            format!("{n} clean runs, median {median} ({interval}{low} to {high})")
        }
    };
    Some((Ink::Plain, text))
}

fn traced(report: &Report) -> Option<(Ink, String)> {
    let Runs { clean, traced } = &report.runs;
    let overhead = percent(traced.overhead_share.max(0.0));
    let wall = if report.inside.is_some() { traced.wall_ns } else { report.wall_ns };
    if report.recording.attached {
        let pid = report.subject.pid;
        return Some((
            Ink::Plain,
            format!("attached to process {pid} for {}, tracing {overhead} of it", time(wall)),
        ));
    }
    let text = match (clean.count, traced.count) {
        (_, 0) => return None,
        (0, 1) => format!("one traced run, {}, tracing {overhead} of it", time(wall)),
        (0, n) => format!("{n} traced runs, {}, tracing {overhead} of it", time(wall)),
        // Threads that fight for a lock fight less.
        (_, n) if traced.overhead_share < -0.1 => {
            format!("{n} more with tracing, {} shorter", percent(-traced.overhead_share))
        }
        (_, n) if traced.overhead_share < 0.01 => format!("{n} more with tracing, no slower"),
        (_, n) => format!("{n} more with tracing, {overhead} slower"),
    };
    Some((Ink::Plain, text))
}

/// The function that the report is limited to.
fn inside(report: &Report) -> Option<(Ink, String)> {
    let inside = report.inside.as_ref()?;
    let (wall, share) = (time(report.wall_ns), percent(inside.share));
    Some((Ink::Strong, format!("only under {}: {wall}, {share} of the run", inside.function)))
}

/// How long a program that serves was busy, and what an exchange with a client cost.
fn requests(sheet: &mut Sheet, service: &ServiceInfo, report: &Report) {
    let (busy, wall) = (report.net_ns, report.wall_ns);
    let share = percent(busy as f64 / wall.max(1) as f64);
    let mut text = format!("busy for {} of {} ({share})", time(busy), time(wall));
    if service.cpu_ns_per_request > 0.0 {
        let each = nanoseconds(service.cpu_ns_per_request);
        let part = |part: &RequestPart| format!("{} {}", part.name, nanoseconds(part.ns));
        let parts: Vec<String> = service.parts.iter().map(part).collect();
        let exchanges = count(service.requests);
        text.push_str(&format!(
            "; {exchanges} exchanges (a read and its answer), {each} of CPU each: {}",
            parts.join(", ")
        ));
    } else if !service.uncounted.is_empty() {
        text.push_str(&format!("; {}", service.uncounted));
    }
    sheet.paragraph(Line::indented(4), 6, Ink::Strong, &text);
}

/// The cost of a call of that function, as benchmarks show it, or why calls were not counted.
fn calls(sheet: &mut Sheet, inside: &Inside) {
    let Some(calls) = &inside.calls else {
        if !inside.uncounted.is_empty() {
            sheet.paragraph(Line::indented(4), 6, Ink::Faint, &inside.uncounted);
        }
        return;
    };
    let (about, most) = match calls.basis {
        CountBasis::Exact => ("", ""),
        CountBasis::AtLeast => ("at least ", "at most "),
        CountBasis::Estimate => ("about ", "about "),
    };
    let (calls_in_all, each) = (count(calls.count), nanoseconds(calls.ns_per_call));
    let mut text = format!("{about}{calls_in_all} calls: {most}{each} each");
    let one_thread = calls.cpu_ns_per_call <= calls.ns_per_call * BESIDE;
    if !one_thread {
        let cpu = nanoseconds(calls.cpu_ns_per_call);
        text.push_str(&format!(" of the wall time, {cpu} of all threads' CPU time"));
    }
    if let (Some(bytes), Some(allocations)) = (calls.bytes_per_call, calls.allocations_per_call) {
        text.push_str(&format!(", {} B, {} allocations", quotient(bytes), quotient(allocations)));
    }
    sheet.paragraph(Line::indented(4), 6, Ink::Strong, &text);
    for remark in &calls.remarks {
        sheet.paragraph(Line::indented(4), 6, Ink::Faint, remark);
    }
}

/// The ledger of one operation of a benchmark, by the program's own count of operations.
fn operation(sheet: &mut Sheet, inside: &Inside, report: &Report) {
    let Some(operation) = &inside.operation else { return };
    let shown = |row: &&Row| row.share >= SHOWN;
    let (large, small): (Vec<&Row>, Vec<&Row>) = report.ledger.iter().partition(shown);
    let part = |row: &&Row| format!("{} {}", row.account, nanoseconds(row.share * operation.ns));
    let mut parts: Vec<String> = large.iter().map(part).collect();
    let rest: f64 = small.iter().map(|row| row.share).sum();
    if rest > 0.0 {
        parts.push(format!("other {}", nanoseconds(rest * operation.ns)));
    }
    let each = nanoseconds(operation.ns);
    let text = format!("{} takes {each} an operation: {}", operation.name, parts.join(", "));
    sheet.paragraph(Line::indented(4), 6, Ink::Strong, &text);
}

/// A mean time: below 100 ns with its fraction, as the noise of counts is small.
fn nanoseconds(ns: f64) -> String {
    if ns < 100.0 {
        return format!("{} ns", quotient(ns));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
    let whole = ns.round() as u64;
    time(whole)
}

/// A quotient of counts: whole if it is, else to three digits.
fn quotient(value: f64) -> String {
    let digits = match value {
        v if (v - v.round()).abs() < 0.000_5 * v.max(1.0) => 0,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// A sentence about a command that failed.
pub(crate) fn ending(report: &Report) -> Option<String> {
    match (report.exit.signal, report.exit.code) {
        (Some(signal), _) => {
            Some(format!("the command was ended by signal {signal}{}", name(signal)))
        }
        (None, 0) => None,
        (None, code) => Some(format!("the command failed with exit code {code}")),
    }
}

/// Frequent signals, with what they usually mean.
fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGINT => " (SIGINT, Ctrl-C): the report covers the time until then",
        libc::SIGHUP => " (SIGHUP: its terminal was closed): the report covers the time until then",
        libc::SIGQUIT => " (SIGQUIT): the report covers the time until then",
        libc::SIGTERM => " (SIGTERM): the report covers the time until then",
        libc::SIGKILL => " (SIGKILL: perhaps the machine had too little memory)",
        libc::SIGSEGV => " (SIGSEGV: an access to invalid memory)",
        libc::SIGABRT => " (SIGABRT: the program aborted)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE: usually a division by zero)",
        libc::SIGILL => " (SIGILL: an instruction this CPU does not have)",
        libc::SIGPIPE => " (SIGPIPE: the reader of its output has closed the pipe)",
        _ => "",
    }
}
