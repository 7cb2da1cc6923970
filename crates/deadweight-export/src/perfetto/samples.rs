//! Samples of the clock, with their stacks: user frames, and the kernel's below them.

use super::Out;
use super::proto::{
    CPU_CLOCK, Callstack, Frame, InternedData, InternedString, MODE_KERNEL, MODE_USER, Mapping,
    PerfSample, PerfSampleDefaults, Timebase, TracePacket, TracePacketDefaults,
};
use crate::names::{frame, plain};
use deadweight_core::OneRun;
use deadweight_core::timeline::Run;
use deadweight_trace::ids::{ImageId, StackId};
use deadweight_trace::symbols::{Location, SourceFrame};
use std::collections::BTreeMap;

pub(super) fn write(run: &OneRun<'_, '_>, out: &mut Out) {
    let period = run.trace().meta.sample_period;
    let timebase = Some(Timebase { period: Some(period), counter: Some(CPU_CLOCK) });
    out.packet(TracePacket {
        trace_packet_defaults: Some(TracePacketDefaults {
            perf_sample_defaults: Some(PerfSampleDefaults { timebase }),
        }),
        ..TracePacket::default()
    });
    let mut tables = Tables::new(run);
    for of in &run.timeline().tasks {
        for sample in &of.samples {
            let (callstack, interned_data) = tables.stack(sample.stack, sample.kernel_stack);
            let on = of.span_at(sample.at).and_then(|index| match of.spans.get(index)?.run() {
                Run::OnCpu(cpu) => Some(u32::from(cpu.0)),
                _ => None,
            });
            let perf_sample = PerfSample {
                cpu: Some(on.unwrap_or(0)),
                pid: Some(of.process.0),
                tid: Some(of.tid.0),
                callstack_iid: Some(callstack),
                cpu_mode: Some(if sample.kernel { MODE_KERNEL } else { MODE_USER }),
            };
            out.packet(TracePacket {
                timestamp: Some(sample.at.0),
                perf_sample: Some(perf_sample),
                interned_data,
                ..TracePacket::default()
            });
        }
    }
}

/// What was written already, with its ids. A packet brings what it is the first to use.
struct Tables<'r, 'a, 't> {
    run: &'r OneRun<'a, 't>,
    functions: BTreeMap<String, u64>,
    paths: BTreeMap<String, u64>,
    sources: BTreeMap<String, u64>,
    builds: BTreeMap<String, u64>,
    mappings: BTreeMap<ImageId, u64>,
    frames: BTreeMap<(u64, u64, u64, u32), u64>,
    stacks: BTreeMap<(StackId, StackId), u64>,
    new: InternedData,
}

/// The id of a string, and the string itself if it is new.
fn interned(known: &mut BTreeMap<String, u64>, new: &mut Vec<InternedString>, text: &str) -> u64 {
    if let Some(id) = known.get(text) {
        return *id;
    }
    let id = known.len() as u64 + 1;
    known.insert(text.to_owned(), id);
    new.push(InternedString { iid: Some(id), str: Some(text.as_bytes().to_vec()) });
    id
}

impl<'r, 'a, 't> Tables<'r, 'a, 't> {
    fn new(run: &'r OneRun<'a, 't>) -> Self {
        Self {
            run,
            functions: BTreeMap::new(),
            paths: BTreeMap::new(),
            sources: BTreeMap::new(),
            builds: BTreeMap::new(),
            mappings: BTreeMap::new(),
            frames: BTreeMap::new(),
            stacks: BTreeMap::new(),
            new: InternedData::default(),
        }
    }

    /// The id of a stack, and what is new in it.
    fn stack(&mut self, user: StackId, kernel: StackId) -> (u64, Option<InternedData>) {
        if let Some(id) = self.stacks.get(&(user, kernel)) {
            return (*id, None);
        }
        let symbols = self.run.symbols();
        let leaf_first = symbols.frames(kernel).chain(symbols.frames(user));
        let mut frame_ids: Vec<u64> = leaf_first.map(|at| self.frame(at)).collect();
        frame_ids.reverse();
        let id = self.stacks.len() as u64 + 1;
        self.stacks.insert((user, kernel), id);
        self.new.callstacks.push(Callstack { iid: Some(id), frame_ids });
        (id, Some(std::mem::take(&mut self.new)))
    }

    fn frame(&mut self, (location, at): (&Location, &SourceFrame)) -> u64 {
        let named = frame(self.run.symbols(), (location, at));
        let function = interned(&mut self.functions, &mut self.new.function_names, &named.function);
        let source = interned(&mut self.sources, &mut self.new.source_paths, &named.file);
        let mapping = self.mapping(location.image);
        let key = (function, mapping, location.addr.0, named.line);
        if let Some(id) = self.frames.get(&key) {
            return *id;
        }
        let id = self.frames.len() as u64 + 1;
        self.frames.insert(key, id);
        self.new.frames.push(Frame {
            iid: Some(id),
            function_name_id: Some(function),
            mapping_id: Some(mapping),
            rel_pc: Some(location.addr.0),
            source_path_iid: Some(source),
            line_number: Some(named.line),
        });
        id
    }

    fn mapping(&mut self, image: ImageId) -> u64 {
        if let Some(id) = self.mappings.get(&image) {
            return *id;
        }
        let symbols = self.run.symbols();
        let of = symbols.images.get(image.index()).cloned().unwrap_or_default();
        let path = plain(symbols.name(of.path)).into_owned();
        let path = interned(&mut self.paths, &mut self.new.mapping_paths, &path);
        let build = symbols.name(of.build_id);
        let build = interned(&mut self.builds, &mut self.new.build_ids, build);
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(image, id);
        let mapping = Mapping { iid: Some(id), build_id: Some(build), path_string_ids: vec![path] };
        self.new.mappings.push(mapping);
        id
    }
}
