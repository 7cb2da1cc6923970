//! Perfetto's trace: who had which CPU, the state of each thread, calls, faults and waits as slices, wake-ups as flows,
//! samples, and the path as a track of its own.
//!
//! - In: one run.
//! - Out: a protobuf message that ui.perfetto.dev and the trace processor open.
//! - Must not know: how the ledger divides time. Slices of the path have the row of their span.

mod proto;
mod samples;
mod scheduling;
mod slices;

use crate::names::{plain, process, row_of_slice, thread};
use deadweight_core::OneRun;
use deadweight_trace::ids::TaskId;
use prost::Message;
use proto::{
    DebugAnnotation, NEEDS_STATE, ProcessDescriptor, STATE_CLEARED, ThreadDescriptor, Trace,
    TracePacket, TrackDescriptor, TrackEvent,
};
use std::collections::BTreeSet;

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// The track of the path.
const PATH: u64 = 1;

/// The trace of a run.
#[must_use]
pub fn perfetto(run: &OneRun<'_, '_>) -> Vec<u8> {
    let mut out = Out::default();
    tracks(run, &mut out);
    scheduling::write(run, &mut out);
    for index in 0..run.timeline().tasks.len() {
        slices::write(run, TaskId::at(index), &mut out);
    }
    slices::write_flows(run, &mut out);
    path(run, &mut out);
    samples::write(run, &mut out);
    out.bytes
}

/// The file as it grows: packets are encoded immediately, because a recording may have millions of events.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
}

impl Out {
    fn packet(&mut self, packet: TracePacket) {
        let flags = if self.bytes.is_empty() { STATE_CLEARED } else { NEEDS_STATE };
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(flags),
            ..packet
        };
        self.bytes.extend(Trace { packet: vec![packet] }.encode_to_vec());
    }

    fn event(&mut self, at: u64, event: TrackEvent) {
        self.packet(TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }
}

/// The track of a task.
fn track(task: TaskId) -> u64 {
    2 + u64::from(task.0)
}

/// A kernel id as Perfetto keeps it.
fn pid(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX)
}

/// Names for all threads of the trace, and for their processes.
fn tracks(run: &OneRun<'_, '_>, out: &mut Out) {
    let first = 2 + run.timeline().tasks.len() as u64;
    let mut named = BTreeSet::new();
    let mut descriptor = |track: TrackDescriptor| {
        out.packet(TracePacket { track_descriptor: Some(track), ..TracePacket::default() });
    };
    let name = Some("critical path".to_owned());
    descriptor(TrackDescriptor { uuid: Some(PATH), name, ..TrackDescriptor::default() });
    for (index, of) in run.timeline().tasks.iter().enumerate() {
        let task = TaskId::at(index);
        let id = of.process.0;
        if named.insert(id) {
            let process_name = Some(process(run, task));
            descriptor(TrackDescriptor {
                uuid: Some(first + u64::from(id)),
                process: Some(ProcessDescriptor { pid: Some(pid(id)), process_name }),
                ..TrackDescriptor::default()
            });
        }
        descriptor(TrackDescriptor {
            uuid: Some(track(task)),
            parent_uuid: Some(first + u64::from(id)),
            thread: Some(ThreadDescriptor {
                pid: Some(pid(id)),
                tid: Some(of.tid.0.into()),
                thread_name: Some(thread(run, task)),
            }),
            ..TrackDescriptor::default()
        });
    }
}

/// The path: a slice for each span that it goes through. Together they are as long as the wall time.
fn path(run: &OneRun<'_, '_>, out: &mut Out) {
    for slice in run.path_slices() {
        let begin = TrackEvent {
            track_uuid: Some(PATH),
            r#type: Some(proto::SLICE_BEGIN),
            name: Some(row_of_slice(&slice).to_owned()),
            categories: vec!["path".to_owned()],
            debug_annotations: vec![
                text("thread", &thread(run, slice.task)),
                text("process", &process(run, slice.task)),
            ],
            ..TrackEvent::default()
        };
        out.event(slice.start.0, begin);
        out.event(slice.end.0, end(PATH));
    }
}

fn end(track: u64) -> TrackEvent {
    TrackEvent { track_uuid: Some(track), r#type: Some(proto::SLICE_END), ..TrackEvent::default() }
}

/// A property of a slice.
fn text(name: &str, value: &str) -> DebugAnnotation {
    let (name, string_value) = (Some(name.to_owned()), Some(plain(value).into_owned()));
    DebugAnnotation { name, string_value, ..DebugAnnotation::default() }
}
