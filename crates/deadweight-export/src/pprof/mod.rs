//! pprof's profile: time on the path, CPU time and time without a CPU, by stack, in a gzipped protobuf message.
//!
//! - In: one run.
//! - Out: bytes that `go tool pprof` opens.
//! - Must not know: what a row means. Rows, processes and threads are labels (`-tagfocus row=...`).

mod proto;

use crate::names::{frame, plain, process, thread};
use deadweight_core::{OneRun, StackTime};
use deadweight_report::account::AccountId;
use deadweight_trace::ids::{ImageId, TaskId};
use deadweight_trace::symbols::{Location, SourceFrame};
use flate2::{Compression, GzBuilder};
use prost::Message;
use proto::{Function, Label, Line, Mapping, Profile, Sample, ValueType};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The values of a sample: their names, and the words for `go tool pprof -sample_index`.
const VALUES: [&str; 3] = ["path", "cpu", "off_cpu"];

/// The profile of a run, gzipped.
///
/// # Errors
/// Never: memory takes everything.
pub fn pprof(run: &OneRun<'_, '_>) -> io::Result<Vec<u8>> {
    let mut file = GzBuilder::new().write(Vec::new(), Compression::default());
    file.write_all(&profile(run).encode_to_vec())?;
    file.finish()
}

fn profile(run: &OneRun<'_, '_>) -> Profile {
    let mut tables = Tables::new(run);
    let mut samples: BTreeMap<(Vec<u64>, AccountId, TaskId), [i64; 3]> = BTreeMap::new();
    let scopes = [run.path_stacks(), run.cpu_stacks(), run.off_cpu_stacks()];
    for (value, stacks) in scopes.iter().enumerate() {
        for time in stacks {
            let key = (tables.stack(time), time.account, time.task);
            samples.entry(key).or_default()[value] += signed(time.ns.0);
        }
    }
    let sample = samples.into_iter().map(|((location_id, account, task), values)| Sample {
        location_id,
        value: values.to_vec(),
        label: tables.labels(account, task),
    });
    let sample = sample.collect();
    let unit = tables.string("nanoseconds");
    let sample_type = VALUES.map(|name| ValueType { kind: tables.string(name), unit }).to_vec();
    let meta = &run.trace().meta;
    let comment = [tables.string(&format!("deadweight: {}", plain(&meta.command.join(" "))))];
    Profile {
        period_type: Some(sample_type[1]),
        default_sample_type: sample_type[0].kind,
        sample_type,
        sample,
        duration_nanos: signed(run.path().subject.wall().0),
        period: signed(meta.sample_period),
        comment: comment.to_vec(),
        ..tables.done
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An id from 1 on, for the entry at `index`.
fn id(index: usize) -> u64 {
    index as u64 + 1
}

/// The tables of a profile as they grow.
struct Tables<'r, 'a, 't> {
    run: &'r OneRun<'a, 't>,
    done: Profile,
    strings: BTreeMap<String, i64>,
    functions: BTreeMap<(i64, i64), u64>,
    mappings: BTreeMap<ImageId, u64>,
    locations: BTreeMap<Location, u64>,
    events: BTreeMap<String, u64>,
}

impl<'r, 'a, 't> Tables<'r, 'a, 't> {
    fn new(run: &'r OneRun<'a, 't>) -> Self {
        let mut tables = Self {
            run,
            done: Profile::default(),
            strings: BTreeMap::new(),
            functions: BTreeMap::new(),
            mappings: BTreeMap::new(),
            locations: BTreeMap::new(),
            events: BTreeMap::new(),
        };
        tables.string("");
        // pprof takes the first binary for the program.
        if let Some(image) = run.subject_image() {
            tables.mapping(image);
        }
        tables
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(id) = self.strings.get(text) {
            return *id;
        }
        let id = signed(self.done.string_table.len() as u64);
        self.done.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), id);
        id
    }

    fn labels(&mut self, account: AccountId, task: TaskId) -> Vec<Label> {
        let tid = signed(self.run.timeline().task(task).tid.0.into());
        let words = [
            ("row", account.name().to_owned()),
            ("process", process(self.run, task)),
            ("thread", thread(self.run, task)),
        ];
        let label = |(key, value): &(&str, String)| Label {
            key: self.string(key),
            str: self.string(value),
            num: 0,
        };
        let mut labels: Vec<Label> = words.iter().map(label).collect();
        labels.push(Label { key: self.string("tid"), str: 0, num: tid });
        labels
    }

    /// The locations of a stack, leaf first; its event is the leaf.
    fn stack(&mut self, time: &StackTime) -> Vec<u64> {
        let mut ids = Vec::new();
        if !time.event.is_empty() {
            ids.push(self.event(&format!("[{}]", plain(&time.event))));
        }
        let symbols = self.run.symbols();
        let mut latest: Option<&Location> = None;
        for (location, frame) in time.frames(symbols) {
            // Inlined functions of one instruction are lines of one location.
            let inlined = frame != &location.frames[0];
            if !(inlined && latest.is_some_and(|latest| std::ptr::eq(latest, location))) {
                ids.push(self.location(location));
            }
            latest = Some(location);
        }
        ids
    }

    fn event(&mut self, name: &str) -> u64 {
        if let Some(id) = self.events.get(name) {
            return *id;
        }
        let (name_id, id) = (self.string(name), id(self.done.location.len()));
        let line = vec![Line { function_id: self.function(name_id, 0), line: 0 }];
        self.done.location.push(proto::Location { id, mapping_id: 0, address: 0, line });
        self.events.insert(name.to_owned(), id);
        id
    }

    fn location(&mut self, location: &Location) -> u64 {
        if let Some(id) = self.locations.get(location) {
            return *id;
        }
        let line = location.frames.iter().map(|frame| self.line(location, frame)).collect();
        let mapping_id = self.mapping(location.image);
        let id = id(self.done.location.len());
        let address = location.addr.0;
        self.done.location.push(proto::Location { id, mapping_id, address, line });
        self.locations.insert(location.clone(), id);
        id
    }

    fn line(&mut self, location: &Location, at: &SourceFrame) -> Line {
        let frame = frame(self.run.symbols(), (location, at));
        let (name, file) = (self.string(&frame.function), self.string(&frame.file));
        Line { function_id: self.function(name, file), line: at.line.into() }
    }

    fn function(&mut self, name: i64, filename: i64) -> u64 {
        let functions = &mut self.done.function;
        *self.functions.entry((name, filename)).or_insert_with(|| {
            let id = id(functions.len());
            functions.push(Function { id, name, system_name: name, filename });
            id
        })
    }

    fn mapping(&mut self, image: ImageId) -> u64 {
        if let Some(id) = self.mappings.get(&image) {
            return *id;
        }
        let symbols = self.run.symbols();
        let Some(binary) = symbols.images.get(image.index()) else { return 0 };
        let (filename, build_id) = (
            self.string(&plain(symbols.name(binary.path))),
            self.string(symbols.name(binary.build_id)),
        );
        let id = id(self.done.mapping.len());
        // Addresses are the file's. All names are resolved, so nothing has to be looked up by them.
        self.done.mapping.push(Mapping {
            id,
            filename,
            build_id,
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
            ..Mapping::default()
        });
        self.mappings.insert(image, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::profile;
    use crate::tests::of_golden;

    #[test]
    fn both_ledgers_are_the_sums_of_their_values() {
        of_golden(|name, report, run| {
            let profile = profile(run);
            let sum = |value: usize| profile.sample.iter().map(|s| s.value[value]).sum::<i64>();
            assert_eq!(u64::try_from(sum(0)), Ok(report.wall_ns), "{name}");
            assert_eq!(u64::try_from(sum(1)), Ok(report.cpu_ns), "{name}");
            let strings = profile.string_table.len();
            let in_table = |id: i64| usize::try_from(id).is_ok_and(|id| id < strings);
            assert!(profile.function.iter().all(|f| in_table(f.name) && in_table(f.filename)));
        });
    }
}
