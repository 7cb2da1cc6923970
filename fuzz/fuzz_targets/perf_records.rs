//! perf records as in a ring buffer: any bytes, one record after the other. Not what follows from the records.
#![no_main]

use deadweight_record::perf::decode::{Body, length, peek, record};
use deadweight_record::perf::schema::{Layout, Offsets, Role, Schema, fields};
use libfuzzer_sys::fuzz_target;

const ROLES: [Role; 18] = [
    Role::Dummy,
    Role::Switch,
    Role::Waking,
    Role::Exec,
    Role::Enter,
    Role::Leave,
    Role::Fault,
    Role::MinorEnd,
    Role::MajorEnd,
    Role::Timer,
    Role::TimerEnd,
    Role::Clock,
    Role::CallSite,
    Role::FaultSite,
    Role::WaitSite,
    Role::Main,
    Role::CommonMain,
    Role::Probe(7),
];

/// Optional fields of records, by the upper half of an event's id.
const LAYOUTS: [u64; 5] = [
    0,
    fields::RAW,
    fields::RAW | fields::CHAIN,
    fields::IP | fields::ADDR,
    fields::IP | fields::CHAIN | fields::REGISTERS | fields::STACK,
];

fuzz_target!(|data: &[u8]| {
    let mut schema = Schema::new(Offsets::default());
    for (layout, more) in LAYOUTS.iter().enumerate() {
        for (role, name) in ROLES.iter().enumerate() {
            let id = layout as u64 * 32 + role as u64;
            let registers = if layout == 4 { 0xff_01ff } else { 0 };
            schema.add(id, *name, Layout { fields: fields::BASE | more, registers });
        }
    }
    let mut rest = data;
    while !rest.is_empty() {
        one(rest, &schema);
        let step = length(rest).unwrap_or(0).clamp(8, rest.len().max(8));
        rest = rest.get(step..).unwrap_or(&[]);
    }
});

fn one(bytes: &[u8], schema: &Schema) {
    let (peeked, read) = (peek(bytes, schema), record(bytes, schema));
    let Some(read) = read else { return };
    assert_eq!(peeked.map(|(at, _)| at), Some(read.at), "both say the same time");
    if let Body::Sample(sample) = read.body {
        let (mut kernel, mut user) = (Vec::new(), Vec::new());
        sample.split_chain(&mut kernel, &mut user);
        assert!((kernel.len() + user.len()) * 8 <= bytes.len());
        for at in [0, 8, 24, usize::MAX] {
            let _ = (sample.raw_u32(at), sample.raw_u64(at), sample.raw_string(at));
        }
        for number in [0, 7, 8, 23, 63, 64, 255] {
            let _ = sample.register(number);
        }
    }
}
