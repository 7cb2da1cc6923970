//! Records of BPF programs: their kinds and layouts, as in `bpf/output.h` and `bpf/recorder.bpf.c`.
//!
//! The reader of the rings (`bpf::ring`) gives each a header like those of perf, with the CPU in it. Pure and safe: any
//! bytes in, records or nothing out.

use super::record::{Body, Record, Sample, u64_at};
use super::schema::Role;

/// Kinds from here on are those of programs.
pub(crate) const FIRST: u32 = 0x1000;
/// Bytes before a record's own data: header, time, process and task.
pub(crate) const HEADER_SIZE: usize = 24;

/// What the programs record, by kind.
const ROLES: [Role; 12] = [
    Role::Enter,
    Role::Leave,
    Role::CallCounts,
    Role::Switch,
    Role::Waking,
    Role::Exec,
    Role::Timer,
    Role::TimerEnd,
    Role::Fault,
    Role::MinorEnd,
    // Of lost records.
    Role::Dummy,
    Role::Main,
];
/// The kind that reports lost records, above [`FIRST`].
const LOST: u32 = 11;

/// Kernel stacks of switches and wake-ups, to the end of the record.
const SWITCH_STACK: usize = 32;
const WAKING_STACK: usize = 16;

/// Whether a record of this kind is a program's.
pub(super) fn is_kind(kind: u32) -> bool {
    kind >= FIRST
}

/// Time and event of a record.
pub(super) fn peek(kind: u32, record: &[u8]) -> Option<(u64, Option<Role>)> {
    Some((u64_at(record, 8)?, role(kind, record)))
}

fn role(kind: u32, record: &[u8]) -> Option<Role> {
    let index = usize::try_from(kind.checked_sub(FIRST)?).ok()?.checked_sub(1)?;
    let flag = || u64_at(record, HEADER_SIZE).map(|word| word != 0);
    Some(match *ROLES.get(index)? {
        Role::MinorEnd if flag()? => Role::MajorEnd,
        Role::Main if flag()? => Role::CommonMain,
        role => role,
    })
}

/// Decodes a record of this kind.
pub(super) fn record(kind: u32, cpu: u16, record: &[u8]) -> Option<Record<'_>> {
    let (at, ids) = (u64_at(record, 8)?, record.get(16..24)?.as_chunks::<4>().0);
    let [process, task] = [ids[0], ids[1]].map(u32::from_ne_bytes);
    let raw = record.get(HEADER_SIZE..)?;
    let body = if kind == FIRST + LOST {
        Body::Lost(u64_at(raw, 0)?)
    } else {
        let role = role(kind, record)?;
        let stack = match role {
            Role::Switch => raw.get(SWITCH_STACK..),
            Role::Waking => raw.get(WAKING_STACK..),
            _ => None,
        };
        let fault = |offset| if role == Role::Fault { u64_at(raw, offset) } else { Some(0) };
        let (addr, ip, in_kernel) = (fault(0)?, fault(8)?, fault(16)? != 0);
        let kernel = in_kernel || stack.is_some();
        let chain = stack.map(without_zeros).unwrap_or_default();
        let none: &[u8] = &[];
        let (mask, registers, stack) = (0, none, none);
        Body::Sample(Sample { role, kernel, ip, addr, chain, raw, mask, registers, stack })
    };
    Some(Record { at, process, task, cpu: cpu.into(), body })
}

/// A stack without the zeros behind its last frame.
fn without_zeros(stack: &[u8]) -> &[u8] {
    let frames = stack.as_chunks::<8>().0;
    let used = frames.iter().position(|frame| *frame == [0; 8]).unwrap_or(frames.len());
    &stack[..8 * used]
}

#[cfg(test)]
mod tests {
    use super::super::schema::Offsets;
    use super::*;

    const OFFSETS: Offsets = Offsets::OF_PROGRAMS;

    fn bytes(kind: u32, data: &[u64]) -> Vec<u8> {
        let size = u64::try_from(HEADER_SIZE + 8 * data.len()).unwrap();
        let header = u64::from(kind) | 3 << 32 | size << 48;
        let words = [header, 1000, 7 | 8 << 32];
        words.iter().chain(data).flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn decoded(kind: u32, data: &[u64], check: impl FnOnce(&Record<'_>)) {
        let bytes = bytes(FIRST + kind, data);
        check(&record(FIRST + kind, 3, &bytes).unwrap());
        for length in 0..bytes.len() {
            _ = record(FIRST + kind, 3, &bytes[..length]);
            _ = peek(FIRST + kind, &bytes[..length]);
        }
    }

    #[test]
    fn a_switch_has_tasks_state_name_and_stack() {
        decoded(4, &[8 | 9 << 32, 2, 0x41, 0, 0xffff_0001, 0xffff_0002, 0], |record| {
            assert_eq!((record.at, record.process, record.task, record.cpu), (1000, 7, 8, 3));
            let Body::Sample(sample) = &record.body else { panic!() };
            assert_eq!((sample.role, sample.kernel), (Role::Switch, true));
            assert_eq!(sample.raw_u32(OFFSETS.next_pid), Some(9));
            assert_eq!(sample.raw_u64(OFFSETS.prev_state), Some(2));
            assert_eq!(sample.raw.get(OFFSETS.next_comm), Some(&0x41));
            assert_eq!(sample.chain.len(), 16);
        });
    }

    #[test]
    fn a_fault_has_its_address_and_where_it_came_from() {
        decoded(9, &[0x1000, 0x40_0000, 1], |record| {
            let Body::Sample(sample) = &record.body else { panic!() };
            assert_eq!((sample.role, sample.kernel), (Role::Fault, true));
            assert_eq!((sample.addr, sample.ip), (0x1000, 0x40_0000));
        });
        let role = |major| peek(FIRST + 10, &bytes(FIRST + 10, &[major])).unwrap().1;
        assert_eq!([role(0), role(1)], [Some(Role::MinorEnd), Some(Role::MajorEnd)]);
    }

    #[test]
    fn the_start_of_main_is_the_commands_own_or_the_c_librarys() {
        let role = |common| peek(FIRST + 12, &bytes(FIRST + 12, &[common])).unwrap().1;
        assert_eq!([role(0), role(1)], [Some(Role::Main), Some(Role::CommonMain)]);
        decoded(12, &[1], |record| assert_eq!((record.task, record.at), (8, 1000)));
    }

    #[test]
    fn lost_records_are_counted_and_unknown_kinds_refused() {
        decoded(11, &[5], |record| assert!(matches!(record.body, Body::Lost(5))));
        assert!(record(FIRST, 0, &bytes(FIRST, &[0])).is_none());
        assert!(record(FIRST + 99, 0, &bytes(FIRST + 99, &[0])).is_none());
    }
}
