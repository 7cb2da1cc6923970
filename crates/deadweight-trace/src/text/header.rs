//! The lines about the recording itself: command, machine, bounds, tracing overhead, images.
//!
//! A fact without a line has a default that suits a ten-line test (see [`fill`]); the writer leaves out facts that equal
//! their default. Not for lines about tasks; see `read`.

use super::TextError;
use super::stack::{Frames, Images, KERNEL, undeclared};
use super::word::{Name, Words};
use crate::ids::{Cpu, Tid};
use crate::symbols::{Image, Symbols};
use crate::syscall::Arch;
use crate::units::Ns;
use crate::{Event, Exit, Kind, Machine, Meta, Overhead, Usage};
use std::fmt::{self, Write};

/// Facts about the recording that the text states.
#[derive(Default)]
pub(super) struct Header {
    pub(super) meta: Meta,
    cpus: Option<u16>,
    root: Option<Tid>,
    end: Option<Ns>,
    exit: Option<Option<Exit>>,
    incomplete: bool,
}

/// The names of [`Overhead`]'s fields in the text.
fn overhead_fields(overhead: &mut Overhead) -> [(&'static str, &mut u64); 14] {
    [
        ("syscall-user", &mut overhead.syscall_user),
        ("syscall-kernel", &mut overhead.syscall_kernel),
        ("counted-user", &mut overhead.counted_user),
        ("counted-kernel", &mut overhead.counted_kernel),
        ("fault-user", &mut overhead.fault_user),
        ("fault-kernel", &mut overhead.fault_kernel),
        ("switch", &mut overhead.switch),
        ("sample", &mut overhead.sample),
        ("birth", &mut overhead.birth),
        ("death", &mut overhead.death),
        ("site", &mut overhead.site),
        ("path", &mut overhead.path),
        ("folder", &mut overhead.folder),
        ("starting", &mut overhead.starting),
    ]
}

/// Reads a line that is neither a task's nor an event's.
pub(super) fn read_line(
    words: &mut Words<'_>,
    header: &mut Header,
    symbols: &mut Symbols,
    images: &mut Images,
) -> Result<(), TextError> {
    let here = words.clone();
    let meta = &mut header.meta;
    match words.word() {
        "image" => return read_image(words, symbols, images),
        "code" => return super::code::read(words, symbols, images),
        "calls" => return super::code::read_target(words, symbols),
        "recorder" => meta.recorder = words.name("a version")?,
        "command" => {
            while !words.at_end() {
                meta.command.push(words.name("a word of the command")?);
            }
        }
        "arch" => {
            meta.arch = match words.word() {
                "x86_64" => Arch::X86_64,
                "aarch64" => Arch::Aarch64,
                _ => return Err(words.expected("x86_64 or aarch64")),
            }
        }
        "machine" => read_machine(words, &mut meta.machine)?,
        "cpus" => header.cpus = Some(words.small("how many CPUs")?),
        "zero" => meta.zero = words.number("the clock's reading")?,
        "root" => header.root = Some(Tid(words.small("a task's number")?)),
        "start" => meta.start = Ns(words.time()?),
        "end" => header.end = Some(Ns(words.time()?)),
        "exit" => header.exit = Some(read_exit(words)?),
        "rusage" => {
            meta.rusage = Some(Usage {
                user: Ns(field(words, "user")?),
                system: Ns(field(words, "system")?),
                max_rss: field(words, "max-rss")?,
            });
        }
        "sample-period" => meta.sample_period = words.number("a period in nanoseconds")?,
        "observer" => read_overhead(words, &mut meta.overhead)?,
        "recorders" => {
            while !words.at_end() {
                meta.recorders.push(Tid(words.small("a task's number")?));
            }
        }
        "rung" => meta.rung = words.name("a word")?,
        "rung-why" => meta.rung_why = words.name("a text in quotes")?,
        "lacks" => meta.lacks.push(words.name("a text in quotes")?),
        "blind-cpus" => {
            while !words.at_end() {
                meta.blind_cpus.push(Cpu(words.small("a CPU's number")?));
            }
        }
        "steal" => meta.steal = Ns(words.time()?),
        "throttled" => meta.throttled = Ns(words.time()?),
        "shared-line" => meta.shared_line = words.number("thousandths")?,
        "cycle" => meta.cycle = words.number("picoseconds")?,
        "unseen" => meta.unseen = Ns(words.time()?),
        "thinned" => meta.decimated = words.number("a number of calls")?,
        "warning" => meta.warnings.push(words.name("a text in quotes")?),
        "attached" => meta.attached = true,
        "incomplete" => header.incomplete = true,
        _ => return Err(here.expected("a time, `task` or a line about the recording")),
    }
    Ok(())
}

/// The names of [`Machine`]'s texts.
fn machine_fields(machine: &mut Machine) -> [(&'static str, &mut String); 5] {
    [
        ("cpu", &mut machine.cpu),
        ("kernel", &mut machine.kernel),
        ("virtualisation", &mut machine.virtualisation),
        ("governor", &mut machine.governor),
        ("huge-pages", &mut machine.huge_pages),
    ]
}

/// The quota in the text: thousandths of a CPU.
const QUOTA: &str = "cpu-quota";

/// The sizes of caches in the text: three numbers.
const CACHES: &str = "caches";

fn read_machine(words: &mut Words<'_>, machine: &mut Machine) -> Result<(), TextError> {
    while !words.at_end() {
        let here = words.clone();
        let name = words.word();
        if name == QUOTA {
            machine.cpu_quota = words.number("thousandths of a CPU")? as f64 / 1000.0;
            continue;
        }
        if name == CACHES {
            for bytes in &mut machine.caches {
                *bytes = words.number("the size of a cache in bytes")?;
            }
            continue;
        }
        let (_, text) =
            machine_fields(machine).into_iter().find(|(n, _)| *n == name).ok_or_else(|| {
                here.expected(
                    "cpu, kernel, virtualisation, governor, huge-pages, cpu-quota or caches",
                )
            })?;
        *text = words.name("a text in quotes")?;
    }
    Ok(())
}

fn read_overhead(words: &mut Words<'_>, overhead: &mut Overhead) -> Result<(), TextError> {
    while !words.at_end() {
        let here = words.clone();
        let name = words.word();
        let value = words.number("a cost in nanoseconds")?;
        let mut fields = overhead_fields(overhead).into_iter();
        let (_, cost) = fields
            .find(|(n, _)| *n == name)
            .ok_or_else(|| here.expected("syscall-user, fault-user, switch, ..."))?;
        *cost = value;
    }
    Ok(())
}

fn field(words: &mut Words<'_>, name: &str) -> Result<u64, TextError> {
    if !words.keyword(name) {
        return Err(words.expected(name));
    }
    words.number("a number")
}

fn read_exit(words: &mut Words<'_>) -> Result<Option<Exit>, TextError> {
    if words.keyword("none") {
        return Ok(None);
    }
    let mut exit = Exit::default();
    let number = |words: &mut Words<'_>, what: &str| {
        i32::try_from(words.signed(what)?).map_err(|_| words.expected(what))
    };
    if words.peek() != "signal" {
        exit.code = number(words, "an exit code, `signal N` or none")?;
    }
    if words.keyword("signal") {
        exit.signal = Some(number(words, "a signal's number")?);
    }
    Ok(Some(exit))
}

fn read_image(
    words: &mut Words<'_>,
    symbols: &mut Symbols,
    images: &mut Images,
) -> Result<(), TextError> {
    let handle = words.name("the image's short name")?;
    if images.has(&handle) {
        return Err(words.expected("an image that was not named before"));
    }
    let mut image = undeclared(symbols, &handle);
    while !words.at_end() {
        let here = words.clone();
        match words.word() {
            "path" => image.path = symbols.intern(&words.name("a path")?),
            "build-id" => image.build_id = symbols.intern(&words.name("a build-id")?),
            "language" => image.language = symbols.intern(&words.name("a language")?),
            "producer" => image.producer = symbols.intern(&words.name("a producer")?),
            "optimised" => image.optimised = Some(true),
            "unoptimised" => image.optimised = Some(false),
            "no-symbols" => image.has_symbols = false,
            "no-lines" => image.has_lines = false,
            _ => return Err(here.expected("path, build-id, language, producer, ...")),
        }
    }
    images.declare(symbols, handle, image);
    Ok(())
}

/// Completes the facts with defaults: the root is the first task, the end the last event, the CPUs those of the
/// events, and a root that exits has exit code 0.
pub(super) fn fill(header: Header, first: Tid, events: &[Event]) -> Meta {
    let root = header.root.unwrap_or(first);
    let defaults = defaults(root, events.iter().copied());
    Meta {
        root,
        cpus: header.cpus.unwrap_or(defaults.cpus),
        end: header.end.unwrap_or(defaults.end),
        exit: header.exit.unwrap_or(defaults.exit),
        complete: !header.incomplete,
        ..header.meta
    }
}

/// Facts of a trace whose text does not state them.
struct HeaderDefaults {
    cpus: u16,
    end: Ns,
    exit: Option<Exit>,
}

fn defaults(root: Tid, events: impl Iterator<Item = Event>) -> HeaderDefaults {
    let mut defaults = HeaderDefaults { cpus: 1, end: Ns::ZERO, exit: None };
    for event in events {
        defaults.cpus = defaults.cpus.max(event.cpu.0.saturating_add(1));
        defaults.end = event.at;
        if event.task == root && event.kind == Kind::Exit {
            defaults.exit = Some(Exit::default());
        }
    }
    defaults
}

/// Writes the lines about the recording. `first` is the task that a reader takes for the root, `events` are the events
/// to be written.
pub(super) fn write(
    out: &mut dyn Write,
    meta: &Meta,
    first: Option<Tid>,
    events: impl Iterator<Item = Event>,
) -> fmt::Result {
    let defaults = defaults(meta.root, events);
    let word = |out: &mut dyn Write, key: &str, value: &str| match value {
        "" => Ok(()),
        value => writeln!(out, "{key} {}", Name(value)),
    };
    let number = |out: &mut dyn Write, key: &str, value: u64, defaults: u64| match value {
        value if value == defaults => Ok(()),
        value => writeln!(out, "{key} {value}"),
    };
    word(out, "recorder", &meta.recorder)?;
    let command: Vec<String> = meta.command.iter().map(|w| format!(" {}", Name(w))).collect();
    if !command.is_empty() {
        writeln!(out, "command{}", command.concat())?;
    }
    if meta.arch == Arch::Aarch64 {
        writeln!(out, "arch aarch64")?;
    }
    number(out, "cpus", meta.cpus.into(), defaults.cpus.into())?;
    if !meta.machine.is_unknown() {
        write_machine(out, &meta.machine)?;
    }
    number(out, "zero", meta.zero, 0)?;
    number(out, "root", meta.root.0.into(), first.unwrap_or_default().0.into())?;
    number(out, "start", meta.start.0, 0)?;
    number(out, "end", meta.end.0, defaults.end.0)?;
    match meta.exit {
        exit if exit == defaults.exit => {}
        None => writeln!(out, "exit none")?,
        Some(Exit { code, signal: None }) => writeln!(out, "exit {code}")?,
        Some(Exit { code, signal: Some(s) }) => writeln!(out, "exit {code} signal {s}")?,
    }
    if let Some(Usage { user, system, max_rss }) = meta.rusage {
        writeln!(out, "rusage user {} system {} max-rss {max_rss}", user.0, system.0)?;
    }
    number(out, "sample-period", meta.sample_period, 0)?;
    if meta.overhead != Overhead::default() {
        write_overhead(out, meta.overhead)?;
    }
    list(out, "recorders", meta.recorders.iter().map(|t| t.0))?;
    word(out, "rung", &meta.rung)?;
    word(out, "rung-why", &meta.rung_why)?;
    for lack in &meta.lacks {
        writeln!(out, "lacks {}", Name(lack))?;
    }
    list(out, "blind-cpus", meta.blind_cpus.iter().map(|c| c.0.into()))?;
    number(out, "steal", meta.steal.0, 0)?;
    number(out, "throttled", meta.throttled.0, 0)?;
    number(out, "shared-line", meta.shared_line, 0)?;
    number(out, "cycle", meta.cycle, 0)?;
    number(out, "unseen", meta.unseen.0, 0)?;
    number(out, "thinned", meta.decimated, 0)?;
    for warning in &meta.warnings {
        writeln!(out, "warning {}", Name(warning))?;
    }
    if meta.attached {
        writeln!(out, "attached")?;
    }
    if !meta.complete {
        writeln!(out, "incomplete")?;
    }
    Ok(())
}

fn write_overhead(out: &mut dyn Write, mut overhead: Overhead) -> fmt::Result {
    write!(out, "observer")?;
    for (name, cost) in overhead_fields(&mut overhead) {
        if *cost > 0 {
            write!(out, " {name} {cost}")?;
        }
    }
    writeln!(out)
}

fn write_machine(out: &mut dyn Write, machine: &Machine) -> fmt::Result {
    write!(out, "machine")?;
    for (name, text) in machine_fields(&mut machine.clone()) {
        if !text.is_empty() {
            write!(out, " {name} {}", Name(text))?;
        }
    }
    if machine.cpu_quota > 0.0 {
        write!(out, " {QUOTA} {:.0}", machine.cpu_quota * 1000.0)?;
    }
    if machine.caches != [0; 3] {
        let [first, second, third] = machine.caches;
        write!(out, " {CACHES} {first} {second} {third}")?;
    }
    writeln!(out)
}

fn list(out: &mut dyn Write, key: &str, numbers: impl Iterator<Item = u32>) -> fmt::Result {
    let numbers: Vec<String> = numbers.map(|n| format!(" {n}")).collect();
    if numbers.is_empty() { Ok(()) } else { writeln!(out, "{key}{}", numbers.concat()) }
}

/// Writes the images, unless a reader would infer the same ones. `program` is the name that it would give to the user's.
pub(super) fn write_images(
    out: &mut dyn Write,
    symbols: &Symbols,
    frames: &Frames<'_>,
    program: &str,
) -> fmt::Result {
    if images_are_default(symbols, program) {
        return Ok(());
    }
    for (id, image) in symbols.images.iter().enumerate() {
        let handle = frames.handle(crate::ids::ImageId::at(id));
        write!(out, "image {}", Name(handle))?;
        let path = symbols.name(image.path);
        if path != handle {
            write!(out, " path {}", Name(path))?;
        }
        for (key, value) in [
            ("build-id", symbols.name(image.build_id)),
            ("language", symbols.name(image.language)),
            ("producer", symbols.name(image.producer)),
        ] {
            if !value.is_empty() {
                write!(out, " {key} {}", Name(value))?;
            }
        }
        let optimised = match image.optimised {
            None => "",
            Some(true) => " optimised",
            Some(false) => " unoptimised",
        };
        let symbols = if image.has_symbols { "" } else { " no-symbols" };
        let lines = if image.has_lines { "" } else { " no-lines" };
        writeln!(out, "{optimised}{symbols}{lines}")?;
    }
    Ok(())
}

/// Whether a reader would infer exactly these images from the frames.
fn images_are_default(symbols: &Symbols, program: &str) -> bool {
    let program = if program.is_empty() { "program" } else { program };
    let mut expected = vec![program, KERNEL];
    symbols.images.iter().enumerate().all(|(id, image)| {
        let path = symbols.name(image.path);
        let plain =
            Image { path: image.path, has_symbols: true, has_lines: true, ..Image::default() };
        let used = symbols.locations.iter().skip(1).any(|l| l.image.index() == id);
        let wanted = expected.iter().position(|e| *e == path);
        wanted.map(|at| expected.remove(at)).is_some() && *image == plain && used
    })
}
