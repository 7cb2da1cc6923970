//! Records in, in the order of the rings; records out, in order of time.

use super::super::{Follow, Start};
use super::Merge;
use crate::perf::schema::{Offsets, Schema};
use deadweight_trace::Meta;
use deadweight_trace::raw::{RawEvent, RawKind, Sink};

/// Times of switches.
#[derive(Default)]
struct Switches(Vec<u64>);

impl Sink for Switches {
    fn begin(&mut self, _: &Meta) {}
    fn event(&mut self, event: &RawEvent<'_>) {
        if matches!(event.kind, RawKind::On) {
            self.0.push(event.at);
        }
    }
    fn finish(&mut self, _: Meta) {}
}

fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) | u64::from(b) << 32
}

/// A record of perf about `task`.
fn record(kind: u32, words: &[u64], task: u32, at: u64) -> Vec<u8> {
    let trailer = [pair(task, task), at, pair(0, 0), 70];
    let body: Vec<u8> = [words, &trailer].concat().iter().flat_map(|w| w.to_ne_bytes()).collect();
    let size = u16::try_from(8 + body.len()).unwrap();
    let header = u64::from(kind) | 1 << 45 | u64::from(size) << 48;
    [&header.to_ne_bytes()[..], &body].concat()
}

/// `task` becomes another program.
fn becomes(task: u32, at: u64) -> Vec<u8> {
    record(3, &[pair(task, task), u64::from_ne_bytes(*b"xxd\0....")], task, at)
}

/// `task` gets the CPU.
fn gets_the_cpu(task: u32, at: u64) -> Vec<u8> {
    let mut bytes = record(15, &[], task, at);
    bytes[5] = 0;
    bytes
}

/// When the switches of the rings' records, task 7 being the command, are handed on up to `horizon`.
fn handed_on(rings: &[&[Vec<u8>]], horizon: u64) -> Vec<u64> {
    let mut schema = Schema::new(Offsets::default());
    schema.set_programs();
    let mut sink = Switches::default();
    let start = Start { root: 7, ..Start::default() };
    let mut follow = Follow::new(&mut sink, Offsets::default(), &[], start, 1);
    let mut merge = Merge::new(schema);
    rings.iter().for_each(|records| merge.add(records.concat()));
    merge.hand_on(horizon, &mut follow, |_| {});
    sink.0
}

#[test]
fn records_come_in_order_of_time() {
    let ring = |times: &[u64]| -> Vec<Vec<u8>> {
        // Another task each time, so that each is a switch.
        times.iter().map(|at| gets_the_cpu(u32::try_from(*at).unwrap(), *at)).collect()
    };
    let late: Vec<u64> = (200..300).chain([110]).collect();
    let rings = [ring(&[10, 30, 20, 60, 50, 40]), ring(&[15, 35]), ring(&late)];
    let rings: Vec<&[Vec<u8>]> = rings.iter().map(Vec::as_slice).collect();
    let expected: Vec<u64> =
        [10, 15, 20, 30, 35, 40, 50, 60, 110].into_iter().chain(200..250).collect();
    assert_eq!(handed_on(&rings, 250), expected);
}

#[test]
fn an_exec_waits_for_the_name_of_its_file_only_where_one_comes() {
    let after = |task| [becomes(task, 10), gets_the_cpu(9, 20)];
    assert!(handed_on(&[&after(7)], 1_000).is_empty());
    assert_eq!(handed_on(&[&after(8)], 1_000), [20]);
    assert_eq!(handed_on(&[&after(7)], 3_000_000_000), [20]);
}
