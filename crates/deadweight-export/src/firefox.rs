//! The Firefox Profiler's processed profile: samples of each thread, and markers for calls, waits and the path.
//!
//! - In: one run.
//! - Out: JSON that profiler.firefox.com opens.
//! - Must not know: how the ledger divides time. A sample counts as one; times of markers are exact.

use crate::names::{frame, plain, process, row_of_slice, thread};
use deadweight_core::OneRun;
use deadweight_core::timeline::{Block, Call, Sample, WokenBy};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval,
    StackHandle, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle,
    Timestamp,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The profile of a run as JSON.
///
/// # Errors
/// Never: all values have a JSON form.
pub fn firefox(run: &OneRun<'_, '_>) -> serde_json::Result<String> {
    let mut writer = Writer::new(run);
    writer.threads();
    for call in &run.timeline().calls {
        writer.call(call);
    }
    for block in &run.timeline().blocks {
        writer.wait(block);
    }
    writer.path();
    serde_json::to_string(&writer.profile)
}

/// A call, a wait, or a part of the path.
struct Interval {
    name: StringHandle,
    category: CategoryHandle,
    detail: StringHandle,
}

impl StaticSchemaMarker for Interval {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Interval";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.detail}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.detail}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "detail",
        label: "Detail",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.detail
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

struct Categories {
    user: CategoryHandle,
    kernel: CategoryHandle,
    call: CategoryHandle,
    wait: CategoryHandle,
    path: CategoryHandle,
}

struct Writer<'r, 'a, 't> {
    run: &'r OneRun<'a, 't>,
    profile: Profile,
    categories: Categories,
    threads: BTreeMap<TaskId, ThreadHandle>,
    processes: BTreeMap<TaskId, ProcessHandle>,
    stacks: BTreeMap<(ThreadHandle, StackId), Option<StackHandle>>,
}

fn at(time: Ns) -> Timestamp {
    Timestamp::from_nanos_since_reference(time.0)
}

impl<'r, 'a, 't> Writer<'r, 'a, 't> {
    fn new(run: &'r OneRun<'a, 't>) -> Self {
        let meta = &run.trace().meta;
        // The recording's clock has no date.
        let zero = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
        let interval = SamplingInterval::from_nanos(meta.sample_period.max(1));
        let command = plain(&meta.command.join(" ")).into_owned();
        let mut profile = Profile::new(&command, zero, interval);
        profile.set_os_name("Linux");
        profile.set_symbolicated(true);
        let categories = Categories {
            user: profile.add_category("User", CategoryColor::Yellow),
            kernel: profile.add_category("Kernel", CategoryColor::Orange),
            call: profile.add_category("Calls", CategoryColor::Blue),
            wait: profile.add_category("Waits", CategoryColor::Red),
            path: profile.add_category("Path", CategoryColor::Green),
        };
        Self {
            run,
            profile,
            categories,
            threads: BTreeMap::new(),
            processes: BTreeMap::new(),
            stacks: BTreeMap::new(),
        }
    }

    /// The subject's threads with their samples.
    fn threads(&mut self) {
        let run = self.run;
        for (index, of) in run.timeline().tasks.iter().enumerate() {
            let task = TaskId::at(index);
            if !run.path().subject.owns(task) {
                continue;
            }
            let shared = of.parent.filter(|p| run.timeline().task(*p).process == of.process);
            let known = shared.and_then(|parent| self.processes.get(&parent).copied());
            let in_process = known.unwrap_or_else(|| {
                let name = process(run, task);
                self.profile.add_process(&name, of.process.0, at(of.birth))
            });
            self.processes.insert(task, in_process);
            self.profile.set_process_end_time(in_process, at(of.end));
            let handle =
                self.profile.add_thread(in_process, of.tid.0, at(of.birth), known.is_none());
            self.profile.set_thread_name(handle, &thread(run, task));
            self.profile.set_thread_end_time(handle, at(of.end));
            self.threads.insert(task, handle);
            let mut before = of.birth;
            for sample in &of.samples {
                let cpu = of.on_cpu_between(before, sample.at);
                let stack = self.sample_stack(handle, sample);
                let cpu = CpuDelta::from_nanos(cpu.0);
                self.profile.add_sample(handle, at(sample.at), stack, cpu, 1);
                before = sample.at;
            }
        }
    }

    fn sample_stack(&mut self, handle: ThreadHandle, sample: &Sample) -> Option<StackHandle> {
        let user = self.stack(handle, sample.stack);
        if !sample.kernel {
            return user;
        }
        let symbols = self.run.symbols();
        let kernel: Vec<String> = symbols
            .frames(sample.kernel_stack)
            .map(|of| frame(symbols, of).function.into_owned())
            .collect();
        let mut stack = user;
        for name in kernel.iter().rev().map(String::as_str) {
            stack = Some(self.push(handle, stack, name, self.categories.kernel));
        }
        if kernel.is_empty() {
            stack = Some(self.push(handle, stack, "[kernel]", self.categories.kernel));
        }
        stack
    }

    /// A user stack in this thread's table.
    fn stack(&mut self, handle: ThreadHandle, id: StackId) -> Option<StackHandle> {
        if let Some(known) = self.stacks.get(&(handle, id)) {
            return *known;
        }
        let symbols = self.run.symbols();
        let mut names: Vec<String> =
            symbols.frames(id).map(|of| frame(symbols, of).function.into_owned()).collect();
        names.reverse();
        let mut stack = None;
        for name in &names {
            stack = Some(self.push(handle, stack, name, self.categories.user));
        }
        self.stacks.insert((handle, id), stack);
        stack
    }

    fn push(
        &mut self,
        handle: ThreadHandle,
        parent: Option<StackHandle>,
        name: &str,
        category: CategoryHandle,
    ) -> StackHandle {
        let frame = Frame::Label(self.profile.intern_string(name));
        let info = FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() };
        let frame = self.profile.intern_frame(handle, info);
        self.profile.intern_stack(handle, parent, frame)
    }

    fn call(&mut self, call: &Call) {
        let Some(handle) = self.threads.get(&call.task).copied() else { return };
        let name = syscall::name(self.run.trace().meta.arch, call.nr).unwrap_or("system call");
        let detail = match (call.times(), call.ret()) {
            (1, Some(ret)) => format!("= {ret}"),
            (1, None) => "did not return".to_owned(),
            (times, _) => format!("×{times}, counted together"),
        };
        let category = self.categories.call;
        self.marker(handle, (call.start, call.end), (name, &detail, category), call.site);
    }

    fn wait(&mut self, block: &Block) {
        let Some(handle) = self.threads.get(&block.task).copied() else { return };
        let run = self.run;
        let woken = match block.woken_by {
            WokenBy::Task(by) => {
                let inferred = if block.inferred { ", inferred" } else { "" };
                let tid = run.timeline().task(by).tid.0;
                format!(", woken by {} ({tid}{inferred})", thread(run, by))
            }
            WokenBy::Interrupt(_) => ", woken by an interrupt".to_owned(),
            WokenBy::Nobody => ", never woken".to_owned(),
            WokenBy::Unseen => String::new(),
        };
        let detail = format!("{}{woken}", plain(&run.waits_for(block)));
        let category = self.categories.wait;
        let stack = run.stack_of_wait(block);
        self.marker(handle, (block.start, block.end), ("wait", &detail, category), stack);
    }

    /// The critical path: one more thread of the subject's process.
    fn path(&mut self) {
        let subject = &self.run.path().subject;
        let Some(in_process) = self.processes.get(&subject.root).copied() else { return };
        let handle = self.profile.add_thread(in_process, 0, at(subject.start), false);
        self.profile.set_thread_name(handle, "critical path");
        self.profile.set_thread_end_time(handle, at(subject.end));
        for slice in self.run.path_slices() {
            let detail = thread(self.run, slice.task);
            let what = (row_of_slice(&slice), detail.as_str(), self.categories.path);
            self.marker(handle, (slice.start, slice.end), what, StackId(0));
        }
    }

    fn marker(
        &mut self,
        handle: ThreadHandle,
        (start, end): (Ns, Ns),
        (name, detail, category): (&str, &str, CategoryHandle),
        site: StackId,
    ) {
        let name = self.profile.intern_string(name);
        let detail = self.profile.intern_string(detail);
        let timing = MarkerTiming::Interval(at(start), at(end));
        let interval = Interval { name, category, detail };
        let marker = self.profile.add_marker(handle, timing, interval);
        if site != StackId(0) {
            let stack = self.stack(handle, site);
            self.profile.set_marker_stack(handle, marker, stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::firefox;
    use crate::tests::{TWO_THREADS, of_golden, of_text};
    use serde_json::Value;

    #[test]
    fn threads_have_their_samples_and_markers() {
        let text = of_text(TWO_THREADS, |_, run| firefox(run).unwrap());
        let profile: Value = serde_json::from_str(&text).unwrap();
        let threads = profile["threads"].as_array().unwrap();
        let seen = |name: &str| {
            let of = threads.iter().find(|t| t["name"] == name).unwrap();
            (of["samples"]["length"].as_u64(), of["markers"]["length"].as_u64())
        };
        // Two calls and a wait.
        assert_eq!(seen("main"), (Some(1), Some(3)));
        assert_eq!(seen("worker"), (Some(1), Some(1)));
        assert_eq!(seen("critical path").0, Some(0));
    }

    #[test]
    fn the_path_s_markers_are_as_long_as_the_wall_time() {
        of_golden(|name, report, run| {
            let profile: Value = serde_json::from_str(&firefox(run).unwrap()).unwrap();
            let threads = profile["threads"].as_array().unwrap();
            let path = threads.iter().find(|t| t["name"] == "critical path").unwrap();
            let sum = |field: &str| -> f64 {
                let times = path["markers"][field].as_array().unwrap();
                times.iter().map(|time| time.as_f64().unwrap()).sum()
            };
            let ns = (sum("endTime") - sum("startTime")) * 1e6;
            assert!((ns - report.wall_ns as f64).abs() < 1.0 + 1e-6 * ns, "{name}: {ns}");
        });
    }
}
