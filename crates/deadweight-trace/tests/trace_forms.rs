//! Properties of both forms of a trace over random events of every kind: what is written reads back the same, and readers
//! fail on any bytes only with an error. Not for single examples; see the tests beside each form.

mod random;

use deadweight_trace::ids::{ImageId, LocationId, NameId, StackId};
use deadweight_trace::symbols::Location;
use deadweight_trace::{Event, Kind, Trace};
use proptest::prelude::*;
use proptest::sample::Index;
use random::trace;

/// An event with what its ids mean in their place: equal for traces that say the same, however
/// their tables are ordered.
fn meaning(trace: &Trace) -> Vec<String> {
    let symbols = &trace.symbols;
    let name = |id: NameId| format!("{:?}", symbols.name(id));
    let image = |id: ImageId| match symbols.images.get(id.index()) {
        None => "no image".to_owned(),
        Some(i) => format!(
            "{} {} {} {} {:?} {} {}",
            name(i.path),
            name(i.build_id),
            name(i.language),
            name(i.producer),
            i.optimised,
            i.has_symbols,
            i.has_lines
        ),
    };
    let location = |id: LocationId| {
        let location = &symbols.locations[id.index()];
        let frames: Vec<String> = location
            .frames
            .iter()
            .map(|f| format!("{} {} {}", name(f.function), name(f.file), f.line))
            .collect();
        if *location == Location::default() {
            return "unknown".to_owned();
        }
        format!("{} {:?} {frames:?}", image(location.image), location.addr)
    };
    let stack = |id: StackId| symbols.stack(id).iter().map(|l| location(*l)).collect::<Vec<_>>();
    let one = |event: Event| {
        let Event { at, cpu, task, kind } = event;
        let meant = match kind {
            Kind::Exec { path, .. } => name(path),
            Kind::Comm(what) | Kind::Fd { what, .. } => name(what),
            Kind::Off { stack: s, .. } | Kind::Wake { stack: s, .. } | Kind::Site(s) => {
                format!("{:?}", stack(s))
            }
            Kind::Fault { by, .. } => location(by),
            Kind::Sample { stack: s, kernel_stack: k, .. } => {
                format!("{:?} {:?}", stack(s), stack(k))
            }
            Kind::Map { image: i, .. } => image(i),
            Kind::Probe { probe, stack: s, .. } => format!("{} {:?}", name(probe), stack(s)),
            _ => String::new(),
        };
        format!("{at:?} {cpu:?} {task:?} {:?} {meant}", without_ids(kind))
    };
    let code = symbols.code.iter().map(|code| {
        let targets: Vec<_> = code.targets.iter().map(|(addr, to)| (addr.0, name(*to))).collect();
        let place = format!("{} {:?} {}", image(code.image), code.addr, name(code.name));
        format!("{place} {:x?} {targets:x?}", code.bytes)
    });
    trace.events().map(one).chain(code).collect()
}

/// The kind with its ids blanked out.
fn without_ids(kind: Kind) -> Kind {
    let (no_name, no_stack) = (NameId(0), StackId(0));
    match kind {
        Kind::Exec { former, .. } => Kind::Exec { former, path: no_name },
        Kind::Comm(_) => Kind::Comm(no_name),
        Kind::Off { why, .. } => Kind::Off { why, stack: no_stack },
        Kind::Wake { waker, irq, inferred, .. } => {
            Kind::Wake { waker, irq, inferred, stack: no_stack }
        }
        Kind::Fault { addr, kernel, .. } => Kind::Fault { addr, kernel, by: LocationId(0) },
        Kind::Sample { kernel, .. } => {
            Kind::Sample { kernel, stack: no_stack, kernel_stack: no_stack }
        }
        Kind::Site(_) => Kind::Site(no_stack),
        Kind::Map { start, len, .. } => Kind::Map { start, len, image: ImageId(0) },
        Kind::Fd { fd, .. } => Kind::Fd { fd, what: no_name },
        Kind::Probe { args, .. } => Kind::Probe { probe: no_name, args, stack: no_stack },
        other => other,
    }
}

/// Reads what [`Trace::to_text`] wrote.
fn read_text(text: &str) -> Result<Trace, TestCaseError> {
    Trace::from_text(text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))
}

#[test]
fn the_examples_of_the_documentation_are_traces() {
    let page = include_str!("../../../docs/trace-format.md");
    let blocks = page.split("```trace\n").skip(1).filter_map(|rest| rest.split("```").next());
    let read: Vec<usize> = blocks.map(|text| read_text(text).unwrap().len()).collect();
    assert_eq!(read.len(), 5);
    assert!(read.iter().all(|events| *events > 1), "{read:?}");
}

proptest! {
    #![proptest_config(random::seeded())]

    #[test]
    fn binary_reads_back_what_was_written(trace in trace()) {
        let bytes = trace.to_bytes();
        let (again, warnings) = Trace::from_bytes(&bytes).unwrap();
        prop_assert_eq!(warnings, Vec::<String>::new());
        prop_assert_eq!(&again.meta, &trace.meta);
        prop_assert!(again.events().eq(trace.events()));
        prop_assert_eq!(meaning(&again), meaning(&trace));
        prop_assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn text_reads_back_what_was_written(trace in trace()) {
        let text = trace.to_text();
        let controls = text.chars().filter(|c| c.is_control() && *c != '\n').count();
        prop_assert_eq!(controls, 0, "{}", text);
        let again = read_text(&text)?;
        prop_assert_eq!(&again.meta, &trace.meta, "{}", text);
        prop_assert_eq!(meaning(&again), meaning(&trace), "{}", text);
        prop_assert_eq!(again.to_text(), text);
    }

    #[test]
    fn text_to_binary_to_text_and_back_is_the_same(trace in trace()) {
        let bytes = read_text(&trace.to_text())?.to_bytes();
        let (from_bytes, _) = Trace::from_bytes(&bytes).unwrap();
        prop_assert_eq!(from_bytes.to_text(), trace.to_text());
        prop_assert_eq!(read_text(&from_bytes.to_text())?.to_bytes(), bytes);
    }

    #[test]
    fn changed_bytes_are_read_or_refused(
        trace in trace(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in any::<Index>(),
    ) {
        let mut bytes = trace.to_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 4);
        if let Ok((read, _)) = Trace::from_bytes(&bytes) {
            // Whatever came back is a trace like any other.
            prop_assert_eq!(meaning(&read_text(&read.to_text())?), meaning(&read));
        }
    }

    #[test]
    fn changed_text_is_read_or_refused(
        trace in trace(),
        at in any::<Index>(),
        with in "\\PC{0,3}",
    ) {
        let mut chars: Vec<char> = trace.to_text().chars().collect();
        let at = at.index(chars.len());
        chars.splice(at..=at, with.chars());
        if let Ok(read) = Trace::from_text(&String::from_iter(chars)) {
            prop_assert_eq!(meaning(&read_text(&read.to_text())?), meaning(&read));
        }
    }
}
