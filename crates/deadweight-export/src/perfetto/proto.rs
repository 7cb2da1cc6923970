//! The messages of Perfetto's `perfetto_trace.proto` (github.com/google/perfetto/protos), as far as they are written.
//!
//! Written by hand for prost's derive, so that a build needs no `protoc`; the tags are the schema's. The full schema has
//! thousands of fields.

use prost::Message;

/// `TrackEvent.type`.
pub(crate) const SLICE_BEGIN: i32 = 1;
pub(crate) const SLICE_END: i32 = 2;
pub(crate) const INSTANT: i32 = 3;
/// `TracePacket.sequence_flags`.
pub(crate) const STATE_CLEARED: u32 = 1;
pub(crate) const NEEDS_STATE: u32 = 2;
/// `PerfEvents.Counter`: the sampling clock.
pub(crate) const CPU_CLOCK: i32 = 1;
/// `Profiling.CpuMode`.
pub(crate) const MODE_KERNEL: i32 = 1;
pub(crate) const MODE_USER: i32 = 2;

/// A file: packets in any order.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "1")]
    pub(crate) ftrace_events: Option<FtraceEventBundle>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(crate) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(crate) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(crate) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "66")]
    pub(crate) perf_sample: Option<PerfSample>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(crate) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(crate) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(crate) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(crate) name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(crate) flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(crate) terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    pub(crate) int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
}

/// Events of one CPU.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event: Vec<FtraceEvent>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) timestamp: Option<u64>,
    /// The task that was running.
    #[prost(uint32, optional, tag = "2")]
    pub(crate) pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub(crate) sched_switch: Option<SchedSwitch>,
    #[prost(message, optional, tag = "20")]
    pub(crate) sched_waking: Option<SchedWaking>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub(crate) prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(crate) next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) next_prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedWaking {
    #[prost(string, optional, tag = "1")]
    pub(crate) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PerfSample {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(crate) tid: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) callstack_iid: Option<u64>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) cpu_mode: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacketDefaults {
    #[prost(message, optional, tag = "12")]
    pub(crate) perf_sample_defaults: Option<PerfSampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PerfSampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub(crate) timebase: Option<Timebase>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Timebase {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) period: Option<u64>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) counter: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "5")]
    pub(crate) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) build_ids: Vec<InternedString>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub(crate) source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(crate) mappings: Vec<Mapping>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) str: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Frame {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) mapping_id: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) rel_pc: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) source_path_iid: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) line_number: Option<u32>,
}

/// Root first.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(crate) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) build_id: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(crate) path_string_ids: Vec<u64>,
}
