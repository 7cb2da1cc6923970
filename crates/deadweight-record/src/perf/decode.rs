//! The kernel's records, decoded. Pure and safe: any bytes in, records or nothing out.
//!
//! A record names the event that made it by id; [`Schema`] knows what that event's records contain. `follow`
//! interprets them.

pub use super::record::{Body, Record, Sample};

use super::program_records;
use super::record::{u64_at, until_zero};
use super::schema::{Role, Schema, counted, fields};

/// The time of the record at the start of `bytes`, and the event that made it if it is a sample; none if it is cut
/// off or not a record.
#[must_use]
pub fn peek(bytes: &[u8], schema: &Schema) -> Option<(u64, Option<Role>)> {
    let (header, record) = header(bytes)?;
    if program_records::is_kind(header.kind) {
        return program_records::peek(header.kind, record);
    }
    if header.kind == kind::SAMPLE {
        let (role, layout) = schema.sampled(u64_at(record, 8)?, header.size)?;
        let time = u64_at(record, if layout.fields & fields::IP == 0 { 24 } else { 32 })?;
        if role == Role::CallCounts {
            return Some((self::record(record, schema)?.at, Some(role)));
        }
        Some((time, Some(role)))
    } else {
        Some((u64_at(record, header.size.checked_sub(24)?)?, None))
    }
}

/// The length in the header of the record at the start of `bytes`, to step over an unreadable one.
#[must_use]
pub fn length(bytes: &[u8]) -> Option<usize> {
    header(bytes).map(|(header, _)| header.size)
}

/// The length of the record at the start of `bytes`, if it reports lost records.
pub(super) fn lost_record_len(bytes: &[u8]) -> Option<usize> {
    header(bytes).filter(|(header, _)| header.kind == kind::LOST).map(|(header, _)| header.size)
}

/// Decodes one record after the other, up to one that is cut off. Unreadable ones are skipped.
pub fn records<'a>(bytes: &'a [u8], schema: &'a Schema) -> impl Iterator<Item = Record<'a>> {
    let mut rest = bytes;
    let next = move || {
        let (first, others) = rest.split_at_checked(length(rest)?)?;
        rest = others;
        Some(record(first, schema))
    };
    std::iter::from_fn(next).flatten()
}

/// Decodes the record at the start of `bytes`; none if it is cut off or contradicts itself.
#[must_use]
pub fn record<'a>(bytes: &'a [u8], schema: &Schema) -> Option<Record<'a>> {
    let (header, record) = header(bytes)?;
    if program_records::is_kind(header.kind) {
        return program_records::record(header.kind, header.misc, record);
    }
    let body = record.get(8..)?;
    if header.kind == kind::SAMPLE {
        return sample(body, &header, schema);
    }
    // Records that are not samples end with task, time, CPU and id (`sample_id_all`).
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(32)?)?;
    let mut trailer = Reader(trailer);
    let (process, task) = (trailer.u32()?, trailer.u32()?);
    let at = trailer.u64()?;
    let cpu = trailer.u32()?;
    let body = other(Reader(body), &header, schema)?;
    Some(Record { at, process, task, cpu, body })
}

fn other<'a>(mut body: Reader<'a>, header: &Header, schema: &Schema) -> Option<Body<'a>> {
    const BIT_13: u16 = 1 << 13;
    const BIT_14: u16 = 1 << 14;
    Some(match header.kind {
        kind::SWITCH | kind::SWITCH_CPU_WIDE => {
            Body::Switched { out: header.misc & BIT_13 != 0, runnable: header.misc & BIT_14 != 0 }
        }
        kind::FORK => {
            let process = body.u32()?;
            body.u32()?;
            Body::Fork { process, task: body.u32()?, parent: body.u32()? }
        }
        kind::EXIT => {
            body.u64()?;
            Body::Exit { task: body.u32()? }
        }
        kind::COMM => {
            body.u32()?;
            let task = body.u32()?;
            Body::Comm { task, exec: header.misc & BIT_13 != 0, name: until_zero(body.0) }
        }
        kind::MMAP2 => {
            body.u64()?;
            let (start, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
            body.u64()?; // device
            let inode = body.u64()?;
            body.u64()?; // generation
            let protection = body.u32()?;
            body.u32()?; // flags
            let executable = protection & 4 != 0;
            Body::Map { start, len, offset, inode, executable, path: until_zero(body.0) }
        }
        kind::LOST => {
            let samples = schema.drops_samples_only(body.u64()?);
            if samples { Body::LostSamples(body.u64()?) } else { Body::Lost(body.u64()?) }
        }
        kind::THROTTLE => Body::Throttled,
        _ => Body::Other,
    })
}

fn sample<'a>(body: &'a [u8], header: &Header, schema: &Schema) -> Option<Record<'a>> {
    let mut body = Reader(body);
    let (role, layout) = schema.sampled(body.u64()?, header.size)?;
    let has = |field: u64| layout.fields & field != 0;
    let ip = if has(fields::IP) { body.u64()? } else { 0 };
    let (process, task) = (body.u32()?, body.u32()?);
    let at = body.u64()?;
    let addr = if has(fields::ADDR) { body.u64()? } else { 0 };
    let cpu = body.u32()?;
    body.u32()?;
    let mut sample = Sample {
        role,
        kernel: header.misc & 7 == 1,
        ip,
        addr,
        chain: &[],
        raw: &[],
        mask: 0,
        registers: &[],
        stack: &[],
    };
    if has(fields::CHAIN) {
        let frames = usize::try_from(body.u64()?).ok()?;
        sample.chain = body.take(frames.checked_mul(8)?)?;
    }
    if has(fields::RAW) {
        let len = body.u32()? as usize;
        sample.raw = body.take(len)?;
    }
    if has(fields::REGISTERS) && body.u64()? != 0 {
        sample.mask = layout.registers;
        sample.registers = body.take(layout.registers.count_ones() as usize * 8)?;
    }
    if has(fields::STACK) {
        let reserved = usize::try_from(body.u64()?).ok()?;
        if reserved != 0 {
            let dump = body.take(reserved)?;
            let written = usize::try_from(body.u64()?).ok()?;
            sample.stack = dump.get(..written)?;
        }
    }
    // It covers the time since counting began.
    let at = if role == Role::CallCounts { at - counted_for(&sample)?.min(at) } else { at };
    Some(Record { at, process, task, cpu, body: Body::Sample(sample) })
}

/// For how long calls had been counted when this record of them was made, in ns.
fn counted_for(sample: &Sample<'_>) -> Option<u64> {
    Some(sample.raw_u64(counted::NOW)?.saturating_sub(sample.raw_u64(counted::SINCE)?))
}

/// `PERF_RECORD_*`.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const SWITCH: u32 = 14;
    pub(super) const SWITCH_CPU_WIDE: u32 = 15;
}

struct Header {
    kind: u32,
    misc: u16,
    size: usize,
}

/// The header, and the whole record that it announces.
fn header(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let mut reader = Reader(bytes);
    let kind = reader.u32()?;
    let both = reader.u32()?.to_ne_bytes();
    let misc = u16::from_ne_bytes([both[0], both[1]]);
    let size = usize::from(u16::from_ne_bytes([both[2], both[3]]));
    if size < 8 {
        return None;
    }
    Some((Header { kind, misc, size }, bytes.get(..size)?))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*taken))
    }

    fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*taken))
    }
}
