//! The file form by example: reading whole, truncated and damaged bytes. Not for random traces; see `tests/trace_forms`.

use super::{ReadError, Writer};
use crate::encoded::bytes::put;
use crate::encoded::{Events, FOR_A_THREAD};
use crate::ids::{Cpu, Tid};
use crate::symbols::SourceFrame;
use crate::units::Ns;
use crate::{Event, Kind, Meta, Trace};

const SMALL: &str = "\
command ./a b
observer syscall-user 290
image a path /tmp/a language C optimised no-lines
code sum @0x1130 554889e5 5dc3
calls 0x2000 read
calls 0x3000 \"operator new(unsigned long)\"
task 1 main
     0 on
   100 fd 0 pipe:[7]
  3000 sample get (v.h:9) in sum (a.c:14) @0x1139 <- main (a.c:30)
  9000 syscall read 0 1 from main
 12000 back
 20000 syscall read 0 1
 20000 off blocked read 0 : pipe_read < vfs_read
 45000 on woken-by 2 xxd
 45001 back 0
 50000 exit
";

fn small() -> Trace {
    Trace::from_text(SMALL).unwrap()
}

#[test]
fn values_come_back() {
    let mut trace = small();
    let (function, name) = (trace.symbols.intern("sum"), trace.symbols.intern("struct row"));
    trace.symbols.values.insert((function, 320), name);
    let (read, _) = Trace::from_bytes(&trace.to_bytes()).unwrap();
    assert_eq!(read.symbols.values, trace.symbols.values);
}

/// A trace of this many blocks, each with a new name.
fn blocks(count: u64) -> Vec<u8> {
    let mut trace = Trace::default();
    let mut events = Events::default();
    for at in 0..count * 10 {
        let name = trace.symbols.intern(&format!("name {at}"));
        events.push(Event {
            at: Ns(at),
            task: Tid(1),
            kind: Kind::Comm(name),
            cpu: Default::default(),
        });
        if at % 10 == 9 {
            events.close();
        }
    }
    trace.meta = Meta { complete: true, cpus: 2, end: Ns(count * 10), ..Meta::default() };
    let mut writer = Writer::new();
    let mut bytes = Vec::new();
    for block in events.closed() {
        bytes.extend(writer.append(&trace.meta, &trace.symbols, std::slice::from_ref(block)));
    }
    bytes.extend(writer.finish(&trace.meta, &trace.symbols, &[]));
    bytes
}

#[test]
fn a_trace_reads_back_from_its_bytes() {
    let trace = small();
    let (again, warnings) = Trace::from_bytes(&trace.to_bytes()).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(again.to_text(), trace.to_text());
    assert_eq!(again.meta, trace.meta);
    assert!(again.events().eq(trace.events()));
    assert_eq!(again.to_bytes(), trace.to_bytes());
}

#[test]
fn blocks_that_two_threads_walk_are_read_in_order() {
    let event = |at: u64| Event {
        at: Ns(at * 1000),
        cpu: Cpu(u16::from(at.is_multiple_of(7))),
        task: Tid(1 + u32::from(at.is_multiple_of(3))),
        kind: Kind::On,
    };
    let meta = Meta { complete: true, cpus: 2, end: Ns(200_000_000), ..Meta::default() };
    let trace = Trace::new(meta, Default::default(), (0..200_000).map(event));
    let bytes = trace.to_bytes();
    assert!(bytes.len() > FOR_A_THREAD, "{}", bytes.len());
    let (again, warnings) = Trace::from_bytes(&bytes).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert!(again.events().eq(trace.events()));
}

#[test]
fn a_trace_without_events_is_one() {
    let trace = Trace::new(Meta { complete: true, ..Meta::default() }, Default::default(), []);
    let (again, warnings) = Trace::from_bytes(&trace.to_bytes()).unwrap();
    assert!(again.is_empty() && warnings.is_empty());
}

#[test]
fn a_truncated_trace_is_read_with_a_warning_or_refused_with_a_reason() {
    let whole = small().to_bytes();
    let mut opened = 0;
    for len in 0..whole.len() {
        match Trace::from_bytes(&whole[..len]) {
            Ok((trace, warnings)) => {
                opened += 1;
                assert!(!trace.meta.complete);
                assert!(trace.meta.end >= Ns(50_000), "{len}");
                assert_eq!(trace.len(), small().len());
                assert_eq!(warnings.len(), 1, "{len}: {warnings:?}");
                assert!(warnings[0].contains("breaks off after 13 events"), "{warnings:?}");
            }
            Err(ReadError::Empty) => assert_eq!(len, 0),
            Err(error) => assert_eq!(error, ReadError::Nothing, "{len}"),
        }
    }
    assert!(opened > 100, "the facts alone are some hundred bytes: {opened}");
}

#[test]
fn a_killed_recording_keeps_every_written_block() {
    let whole = blocks(5);
    let mut lens = std::collections::BTreeSet::new();
    for len in 0..whole.len() {
        if let Ok((trace, warnings)) = Trace::from_bytes(&whole[..len]) {
            assert!(!warnings.is_empty(), "{len}");
            for (at, event) in trace.events().enumerate() {
                let Kind::Comm(name) = event.kind else { panic!("{event:?}") };
                assert_eq!(trace.symbols.name(name), format!("name {at}"));
            }
            lens.insert(trace.len());
        }
    }
    assert_eq!(Vec::from_iter(lens), [10, 20, 30, 40, 50]);
}

#[test]
fn one_damaged_block_is_a_hole_in_its_place() {
    let whole = blocks(5);
    let (sound, _) = Trace::from_bytes(&whole).unwrap();
    assert_eq!(sound.len(), 50);
    let mut holes = 0;
    for at in super::frame::OPENING..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let (trace, warnings) = Trace::from_bytes(&bytes).unwrap();
        assert!(!warnings.is_empty(), "{at}");
        let lost: Vec<Event> =
            trace.events().filter(|e| matches!(e.kind, Kind::Lost { .. })).collect();
        if !lost.is_empty() {
            holes += 1;
            let counts: Vec<Kind> = lost.iter().map(|e| e.kind).collect();
            assert_eq!(counts, [Kind::Lost { count: 5 }; 2], "ten on two CPUs");
            assert_eq!(trace.len(), 42);
            let times: Vec<Ns> = trace.events().map(|e| e.at).collect();
            assert!(times.is_sorted(), "{times:?}");
            assert!(warnings[0].contains("10 events are lost"), "{warnings:?}");
        }
    }
    assert!(holes > 5 * 30, "each byte of five blocks of events: {holes}");
}

#[test]
fn nothing_is_earlier_than_the_hole_before_it() {
    let mut bytes = small().to_bytes();
    let events = [3, 0, 100]; // none, after three that are lost, at 100 ns
    let at = super::frame::OPENING;
    let mut early = bytes[..at].to_vec();
    super::frame::put_block(&mut early, super::frame::Holds::Events, &[&events]);
    early.extend(bytes.drain(at..));
    let (trace, warnings) = Trace::from_bytes(&early).unwrap();
    assert!(warnings.iter().any(|w| w.contains("damaged")), "{warnings:?}");
    let times: Vec<Ns> = trace.events().map(|e| e.at).collect();
    assert!(times.is_sorted(), "{times:?}");
    let (again, _) = Trace::from_bytes(&trace.to_bytes()).unwrap();
    assert!(again.events().eq(trace.events()));
}

#[test]
fn what_is_not_a_trace_is_refused_with_a_sentence() {
    let error = |bytes: &[u8]| Trace::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(error(b""), "the file is empty");
    assert_eq!(error(b"#!/bin/sh\n"), "this is not a trace of deadweight");
    let mut whole = small().to_bytes();
    whole[8] = 9;
    assert_eq!(
        error(&whole),
        "the trace has format version 9, this deadweight reads up to 6: \
         read it with the version that recorded it, or a newer one"
    );
    assert_eq!(error(&whole[..5]), "the trace breaks off before its first event");
}

#[test]
fn sealing_at_the_end_reaches_entries_written_before() {
    let mut trace = small();
    let sealed = trace.symbols.clone();
    for location in &mut trace.symbols.locations {
        location.frames.clear();
    }
    for image in &mut trace.symbols.images {
        image.language = Default::default();
    }
    let mut events = trace.events.clone();
    events.close();
    let mut writer = Writer::new();
    let mut bytes = writer.append(&trace.meta, &trace.symbols, events.closed());
    let (bare, _) = Trace::from_bytes(&bytes).unwrap();
    assert!(bare.symbols.locations.iter().all(|l| l.frames.is_empty()));
    bytes.extend(writer.finish(&trace.meta, &sealed, &[]));
    let (again, warnings) = Trace::from_bytes(&bytes).unwrap();
    assert_eq!(warnings, [""; 0]);
    assert_eq!(again.symbols.locations, sealed.locations);
    assert_eq!(again.symbols.images, sealed.images);
}

#[test]
fn ids_beyond_the_tables_lead_nowhere_instead_of_failing() {
    let mut trace = small();
    trace.symbols.locations.truncate(2);
    trace.symbols.images.clear();
    trace.symbols.locations[1].frames =
        vec![SourceFrame { function: crate::ids::NameId(77), ..SourceFrame::default() }];
    let (again, _) = Trace::from_bytes(&trace.to_bytes()).unwrap();
    assert_eq!(again.len(), trace.len());
    for stack in &again.symbols.stacks {
        assert!(stack.iter().all(|l| l.index() < again.symbols.locations.len()));
    }
    assert_eq!(again.symbols.locations[1].frames[0].function.0, 0);
}

#[test]
fn ids_beyond_all_numbers_are_damage() {
    // The table of names from its last possible id on: so many entries, and one that is empty.
    let mut block = vec![0];
    put(&mut block, u64::MAX);
    put(&mut block, 1);
    block.push(0);
    let mut symbols = crate::symbols::Symbols::default();
    assert!(super::tables::read(&block, &mut symbols, &mut 1000).is_none());
}

#[test]
fn a_run_of_small_reads_takes_a_few_bytes_an_event() {
    let mut text = String::from("cpus 2\ntask 1 reader\n0 on\n");
    for read in 0..2000 {
        let at = read * 426 + 1000;
        text += &format!("{at} syscall read 0 1\n{} back\n", at + 215);
    }
    let trace = Trace::from_text(&text).unwrap();
    let size = trace.to_bytes().len();
    assert!(size < 5 * trace.len(), "{size} bytes for {} events", trace.len());
}
