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

#[cfg(test)]
mod tests {
    use super::proto::{Trace, TrackEvent};
    use super::{perfetto, track};
    use crate::tests::{TWO_THREADS, of_golden, of_text};
    use deadweight_trace::ids::TaskId;
    use prost::Message;

    fn decoded(bytes: &[u8]) -> Trace {
        Trace::decode(bytes).unwrap()
    }

    #[test]
    fn an_arrow_goes_from_the_waker_to_the_task_that_it_woke() {
        let trace = decoded(&of_text(TWO_THREADS, |_, run| perfetto(run)));
        let end = |of: &dyn Fn(&TrackEvent) -> bool| {
            let events =
                trace.packet.iter().filter_map(|p| Some((p.timestamp?, p.track_event.as_ref()?)));
            let found = events.filter(|(_, event)| of(event));
            found.map(|(at, event)| (at, event.track_uuid.unwrap_or(0))).collect::<Vec<_>>()
        };
        let (main, worker) = (track(TaskId(0)), track(TaskId(1)));
        assert_eq!(end(&|event| !event.flow_ids.is_empty()), [(400, worker)]);
        assert_eq!(end(&|event| !event.terminating_flow_ids.is_empty()), [(400, main)]);
    }

    #[test]
    fn every_slice_ends_and_scheduling_is_a_chain() {
        of_golden(|name, _, run| {
            let trace = decoded(&perfetto(run));
            let events: Vec<_> =
                trace.packet.iter().filter_map(|p| p.track_event.as_ref()).collect();
            let of = |kind| events.iter().filter(|event| event.r#type == Some(kind)).count();
            assert_eq!(of(super::proto::SLICE_BEGIN), of(super::proto::SLICE_END), "{name}");
            let bundles = trace.packet.iter().filter_map(|p| p.ftrace_events.as_ref());
            let mut latest = std::collections::BTreeMap::new();
            for bundle in bundles {
                for switch in bundle.event.iter().filter_map(|event| event.sched_switch.as_ref()) {
                    let before = latest.insert(bundle.cpu, switch.next_pid);
                    assert!(before.is_none_or(|before| before == switch.prev_pid), "{name}");
                }
            }
        });
    }
}
