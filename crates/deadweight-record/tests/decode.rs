//! Records are decoded as the kernel writes them, and no bytes can make the decoder panic.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use deadweight_record::perf::decode::{Body, length, peek, record};
use deadweight_record::perf::schema::{Layout, Offsets, Role, Schema, fields};

const EVERYTHING: u64 = fields::BASE
    | fields::IP
    | fields::ADDR
    | fields::CHAIN
    | fields::RAW
    | fields::REGISTERS
    | fields::STACK;

fn schema() -> Schema {
    let mut schema = Schema::new(Offsets::default());
    let plain = |fields| Layout { fields, registers: 0 };
    schema.add(70, Role::Clock, Layout { fields: EVERYTHING, registers: 0b1_1100_0000 });
    schema.add(7, Role::Enter, plain(fields::BASE | fields::RAW));
    schema.add(30, Role::Fault, plain(fields::BASE | fields::IP | fields::ADDR));
    schema
}

/// A record of this type with a body of these words.
fn bytes(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + 8 * words.len()).unwrap();
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
    bytes
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A sample with every field: kernel and user chain, three registers, 16 bytes of stack of which
/// 8 were written.
fn full() -> Vec<u8> {
    let (kernel, user) = ((-128_i64).cast_unsigned(), (-512_i64).cast_unsigned());
    let task = pair(41, 42);
    let chain = [5, kernel, 0xffff_1000, user, 0x1000, 0x2000];
    let raw = [pair(12, 0xaaaa), pair(0xbbbb, 0xcccc)];
    let state = [2, 0xb9, 0x59, 0x19, 16, 0x1122_3344_5566_7788, 0, 8];
    let mut words = vec![70, 0xffff_1000, task, 5000, 0xadd4, pair(3, 0)];
    words.extend(chain);
    words.extend(raw);
    words.extend(state);
    bytes(9, 1, &words)
}

#[test]
fn a_sample_with_every_field() {
    let schema = schema();
    let bytes = full();
    assert_eq!(peek(&bytes, &schema), Some((5000, Some(Role::Clock))));
    let record = record(&bytes, &schema).unwrap();
    assert_eq!((record.at, record.process, record.task, record.cpu), (5000, 41, 42, 3));
    let Body::Sample(sample) = record.body else { panic!("{:?}", record.body) };
    assert!(sample.kernel);
    assert_eq!((sample.ip, sample.addr), (0xffff_1000, 0xadd4));
    assert_eq!((sample.raw_u32(0), sample.raw_u32(8)), (Some(0xaaaa), Some(0xcccc)));
    let registers = [6, 7, 8, 0].map(|n| sample.register(n));
    assert_eq!(registers, [Some(0xb9), Some(0x59), Some(0x19), None]);
    assert_eq!(sample.stack, 0x1122_3344_5566_7788_u64.to_ne_bytes());
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    sample.split_chain(&mut kernel, &mut user);
    assert_eq!((kernel, user), (vec![0xffff_1000], vec![0x1000, 0x2000]));
}

#[test]
fn records_about_tasks() {
    let trailer = [pair(8, 9), 6000, pair(1, 0), 70];
    let of = |kind, misc, words: &[u64]| {
        let bytes = bytes(kind, misc, &[words, &trailer].concat());
        let record = record(&bytes, &schema()).unwrap();
        assert_eq!((record.at, record.process, record.task, record.cpu), (6000, 8, 9, 1));
        format!("{:?}", record.body)
    };
    assert_eq!(
        of(7, 0, &[pair(20, 8), pair(21, 9), 0]),
        "Fork { process: 20, task: 21, parent: 9 }"
    );
    assert_eq!(of(4, 0, &[pair(20, 8), pair(21, 9), 0]), "Exit { task: 21 }");
    let name = u64::from_ne_bytes(*b"xxd\0....");
    let exec = of(3, 1 << 13, &[pair(20, 21), name]);
    assert_eq!(exec, "Comm { task: 21, exec: true, name: [120, 120, 100] }");
    assert_eq!(of(15, 1 << 13, &[0]), "Switched { out: true, runnable: false }");
    assert_eq!(of(15, 3 << 13, &[0]), "Switched { out: true, runnable: true }");
    assert_eq!(of(2, 0, &[70, 12]), "Lost(12)");
}

/// Only where nothing else is in the clock's rings.
#[test]
fn lost_samples_are_distinguished_from_lost_time() {
    let mut schema = Schema::new(Offsets::default());
    schema.add(31, Role::Clock, Layout { fields: fields::BASE, registers: 0 });
    schema.add(32, Role::Switch, Layout { fields: fields::BASE, registers: 0 });
    let lost = |schema: &Schema, id| {
        let bytes = bytes(2, 0, &[id, 12, pair(8, 9), 6000, pair(1, 0), id]);
        format!("{:?}", record(&bytes, schema).unwrap().body)
    };
    assert_eq!(lost(&schema, 31), "Lost(12)");
    schema.set_clock_apart();
    assert_eq!(lost(&schema, 31), "LostSamples(12)");
    assert_eq!(lost(&schema, 32), "Lost(12)");
}

/// The kernel marks the records of all events that count the same page fault alike.
#[test]
fn page_fault_records_are_distinguished_by_length() {
    let mut schema = schema();
    schema.add(31, Role::MinorEnd, Layout { fields: fields::BASE, registers: 0 });
    schema.add(32, Role::MajorEnd, Layout { fields: fields::BASE | fields::ADDR, registers: 0 });
    let (task, cpu) = (pair(8, 9), pair(1, 0));
    let role = |words: &[u64]| {
        let bytes = bytes(9, 2, words);
        let read = record(&bytes, &schema)?;
        assert_eq!(peek(&bytes, &schema).map(|(at, _)| at), Some(read.at));
        assert_eq!((read.at, read.task, read.cpu), (6000, 9, 1));
        let Body::Sample(sample) = read.body else { return None };
        Some(sample.role)
    };
    for id in [30, 31, 32, 999] {
        assert_eq!(role(&[id, 0x1000, task, 6000, 0xadd4, cpu]), Some(Role::Fault));
        assert_eq!(role(&[id, task, 6000, cpu]), Some(Role::MinorEnd));
        assert_eq!(role(&[id, task, 6000, 0xadd4, cpu]), Some(Role::MajorEnd));
        assert_eq!(role(&[id, task, 6000, cpu, 0, 0, 0]), None);
    }
}

#[test]
fn cut_off_records_are_refused() {
    let (schema, whole) = (schema(), full());
    for len in 0..whole.len() {
        assert!(record(&whole[..len], &schema).is_none(), "{len} bytes");
    }
    // Also where the header claims to fit.
    for words in 0..(whole.len() / 8 - 1) {
        let mut cut = whole[..8 + words * 8].to_vec();
        let size = u16::try_from(cut.len()).unwrap();
        cut[6..8].copy_from_slice(&size.to_ne_bytes());
        assert!(record(&cut, &schema).is_none(), "{words} words");
    }
}

/// Whole records with a few bytes changed, a quarter of a million of them.
#[test]
fn no_bytes_make_it_panic() {
    let schema = schema();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut decoded = 0;
    for _ in 0..250_000 {
        let mut bytes = full();
        for _ in 0..random() % 6 {
            let at = usize::try_from(random()).unwrap() % bytes.len();
            bytes[at] = random().to_ne_bytes()[0];
        }
        assert!(length(&bytes).is_none_or(|len| (8..=bytes.len()).contains(&len)));
        _ = peek(&bytes, &schema);
        let Some(record) = record(&bytes, &schema) else { continue };
        decoded += 1;
        if let Body::Sample(sample) = record.body {
            sample.split_chain(&mut kernel, &mut user);
            let at = usize::try_from(random() % 100).unwrap();
            _ = (
                sample.raw_string(at),
                sample.raw_u64(at),
                sample.register(random().to_ne_bytes()[0]),
            );
        }
    }
    assert!(decoded > 10_000, "the changes are small enough to be met deep inside: {decoded}");
}
