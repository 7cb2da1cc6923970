"""Reads a trace with Perfetto's own published messages and prints sums of it as JSON.

usage: perfetto_sums.py FILE
"""

import json
import sys
from collections import defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

trace = perfetto.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())



def check(message):
    """A field that the schema does not have would be a wrong tag."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in value if field.is_repeated else [value]:
                check(part)


check(trace)
tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
names = {uuid: t.name or t.thread.thread_name or t.process.process_name for uuid, t in tracks.items()}

events = [(p.timestamp, i, p.track_event) for i, p in enumerate(trace.packet) if p.HasField("track_event")]
events.sort(key=lambda event: event[:2])
opened, ns, begun, ended = defaultdict(list), defaultdict(int), {}, {}
for at, _, event in events:
    if event.type == event.TYPE_SLICE_BEGIN:
        opened[event.track_uuid].append((at, event.categories[0]))
    elif event.type == event.TYPE_SLICE_END:
        start, category = opened[event.track_uuid].pop()
        ns[category] += at - start
    else:
        assert event.type == event.TYPE_INSTANT
    begun |= {flow: (at, event.track_uuid) for flow in event.flow_ids}
    ended |= {flow: (at, event.track_uuid) for flow in event.terminating_flow_ids}
assert not any(opened.values()), "a slice does not end"
assert begun.keys() == ended.keys() and all(begun[flow][0] <= ended[flow][0] for flow in begun)

running, since, switches, wakes = defaultdict(int), {}, 0, 0
for packet in trace.packet:
    for event in packet.ftrace_events.event:
        cpu = packet.ftrace_events.cpu
        if event.HasField("sched_switch"):
            switches += 1
            if cpu in since:
                running[since[cpu][1]] += event.timestamp - since[cpu][0]
                assert since[cpu][1] == event.sched_switch.prev_pid, "a task is switched out that had no CPU"
            since[cpu] = (event.timestamp, event.sched_switch.next_pid)
        else:
            assert event.HasField("sched_waking")
            wakes += 1

functions, frames, callstacks, sampled = {}, {}, {}, defaultdict(int)
for packet in trace.packet:
    interned = packet.interned_data
    functions |= {f.iid: f.str.decode() for f in interned.function_names}
    frames |= {f.iid: functions[f.function_name_id] for f in interned.frames}
    callstacks |= {c.iid: [frames[f] for f in c.frame_ids] for c in interned.callstacks}
    if packet.HasField("perf_sample"):
        stack = callstacks[packet.perf_sample.callstack_iid]
        sampled[stack[-1] if stack else ""] += 1

flows = sorted({(names[begun[flow][1]], names[ended[flow][1]]) for flow in begun})
json.dump(
    {"ns": ns, "flows": flows, "running": running, "switches": switches, "wakes": wakes, "sampled": sampled},
    sys.stdout,
)
