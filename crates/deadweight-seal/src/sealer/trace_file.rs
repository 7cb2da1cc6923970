//! The trace file: it grows during the recording, and stays readable when the disk is full.
//!
//! What was written can be read at any time: see `deadweight_trace::binary`. On a full disk later events are
//! lost, never the whole recording: the latest events are removed to write the tables of the earlier ones.

use deadweight_trace::Meta;
use deadweight_trace::binary::Writer;
use deadweight_trace::encoded::Block;
use deadweight_trace::symbols::Symbols;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// Bytes of events that are removed beyond the bytes needed: file systems allocate in large units.
const SLACK: u64 = 1 << 16;

/// The file.
#[derive(Debug)]
pub(crate) struct TraceFile {
    file: File,
    writer: Writer,
    /// The end of each part that was appended completely, in bytes.
    ends: Vec<u64>,
    /// The size that the file must not exceed.
    most: u64,
    /// The reason, once something could not be written.
    pub(crate) failure: Option<String>,
    /// Whether the reason was `most`.
    pub(crate) is_full: bool,
    /// Whether not even the facts about the run could be written: the file cannot be opened then.
    pub(crate) is_unreadable: bool,
}

impl TraceFile {
    /// Will write to `file` from its beginning.
    pub(crate) fn new(file: File) -> Self {
        let (ends, failure) = (Vec::new(), None);
        let (is_full, is_unreadable) = (false, false);
        let (writer, most) = (Writer::new(), u64::MAX);
        Self { file, writer, ends, most, failure, is_full, is_unreadable }
    }

    /// Limits the file to this many bytes.
    pub(crate) fn limit(&mut self, most: u64) {
        self.most = most;
    }

    /// Appends what is new. After a failure events are counted and dropped.
    pub(crate) fn append(&mut self, meta: &Meta, symbols: &Symbols, blocks: &[Block]) {
        let bytes = self.writer.append(meta, symbols, blocks);
        if self.failure.is_none()
            && let Err(error) = self.put(&bytes)
        {
            let complete = self.complete_len();
            self.failure = Some(format!(
                "the trace file could not be written beyond {complete} bytes ({error}); later events \
                 are missing in it"
            ));
        }
    }

    /// Writes the last events and the tables of sealing. Removes the latest events if there is no space for the tables.
    pub(crate) fn finish(&mut self, meta: &mut Meta, symbols: &Symbols, blocks: &[Block]) {
        self.append(meta, symbols, blocks);
        if self.failure.is_none() {
            let bytes = self.writer.clone().finish(meta, symbols, &[]);
            let Err(error) = self.put(&bytes) else { return };
            self.failure = Some(format!("the trace file could not be finished ({error})"));
        }
        meta.warnings.extend(self.failure.clone());
        // The dropped parts may have held entries of the tables: write all of them again.
        let facts = std::mem::take(&mut self.writer).finish(meta, symbols, &[]);
        let bytes = [tables(meta, symbols), facts.clone()].concat();
        // Without the tables if they do not fit.
        let put = self
            .put(&bytes)
            .or_else(|_| self.replace_latest(&bytes))
            .or_else(|_| self.replace_latest(&facts));
        self.is_unreadable = put.is_err();
    }

    /// Replaces the latest events by these bytes.
    fn replace_latest(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.truncate_by(u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_add(SLACK));
        self.put(bytes)
    }

    /// Removes the latest events to free this many bytes, but not the beginning of the file.
    fn truncate_by(&mut self, bytes: u64) {
        let most = self.complete_len().saturating_sub(bytes);
        let kept = self.ends.partition_point(|end| *end <= most).max(1);
        self.ends.truncate(kept);
        let _ = self.file.set_len(self.complete_len());
    }

    /// The end of the last complete part.
    fn complete_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Appends to the last complete part; on failure the file stays as it was.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let complete = self.complete_len();
        if complete.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) > self.most {
            self.is_full = true;
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the size that was allowed"));
        }
        let put =
            self.file.seek(SeekFrom::Start(complete)).and_then(|_| self.file.write_all(bytes));
        match put {
            Ok(()) => self.ends.push(complete + u64::try_from(bytes.len()).unwrap_or_default()),
            // A partial write does no harm: readers know where complete blocks end.
            Err(_) => _ = self.file.set_len(complete),
        }
        put
    }
}

/// All entries of the tables, to append to what was written before.
fn tables(meta: &Meta, symbols: &Symbols) -> Vec<u8> {
    let beginning = Writer::new().append(meta, &Symbols::default(), &[]);
    Writer::new().append(meta, symbols, &[]).split_off(beginning.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::ids::{StackId, Tid};
    use deadweight_trace::units::Ns;
    use deadweight_trace::{Event, Events, Kind, Trace};
    use std::fs;
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("deadweight-{name}-{}", std::process::id()))
    }

    /// Writes a trace whose every event has a new name, in steps, and reads it again. `hinder`
    /// gets the file before each step.
    fn written(path: &PathBuf, hinder: impl Fn(u64, &mut TraceFile)) -> Trace {
        let mut file = TraceFile::new(File::create(path).expect("a temporary file"));
        let (mut symbols, mut events) = (Symbols::default(), Events::default());
        let mut meta = Meta { root: Tid(7), complete: true, ..Meta::default() };
        for step in 0..20 {
            for at in step * 1_000..(step + 1) * 1_000 {
                let kind = Kind::Comm(symbols.intern(&format!("name number {at}")));
                events.push(Event { at: Ns(at), cpu: Default::default(), task: Tid(7), kind });
            }
            events.close();
            hinder(step, &mut file);
            file.append(&meta, &symbols, &events.take_closed());
        }
        meta.end = Ns(20_000);
        file.finish(&mut meta, &symbols, &[]);
        assert_eq!(meta.warnings.is_empty(), file.failure.is_none());
        let bytes = fs::read(path).expect("it was written");
        let _ = fs::remove_file(path);
        let (mut trace, _) = Trace::from_bytes(&bytes).expect("what was written can be read");
        trace.symbols.stacks.truncate(StackId(0).index() + 1);
        trace
    }

    #[test]
    fn a_recording_is_read_back_completely() {
        let trace = written(&place("whole"), |_, _| {});
        assert_eq!((trace.len(), trace.meta.warnings.len()), (20_000, 0));
    }

    #[test]
    fn a_limited_file_keeps_the_earlier_events() {
        const MOST: u64 = 400_000;
        let path = place("limited");
        let trace = written(&path, |_, file| {
            file.limit(MOST);
            assert!(file.complete_len() <= MOST);
        });
        let last = trace.events().filter(|event| matches!(event.kind, Kind::Comm(_))).last();
        assert!(last.is_some_and(|event| event.at > Ns(100) && event.at < Ns(19_000)));
        assert!(trace.meta.warnings.iter().any(|warning| warning.contains("was allowed")));
    }

    #[test]
    fn a_file_that_cannot_grow_keeps_the_earlier_events_with_their_names() {
        let path = place("full");
        let read_only = fs::write(&path, b"").and_then(|()| File::open(&path));
        let read_only = read_only.expect("a temporary file");
        let trace = written(&path, |step, file| {
            // From here on writing fails, until the end.
            if step == 10 {
                file.file = read_only.try_clone().expect("another descriptor");
            }
            if step == 19 {
                file.file = File::options().write(true).open(&path).expect("still there");
            }
        });
        let named = trace
            .events()
            .filter_map(|event| match event.kind {
                Kind::Comm(name) => Some(trace.symbols.name(name).to_owned()),
                _ => None,
            })
            .collect::<Vec<_>>();
        assert_eq!(named.len(), 10_000);
        assert_eq!(named.last().map(String::as_str), Some("name number 9999"));
        assert!(trace.events().any(|event| matches!(event.kind, Kind::Lost { .. })));
        assert!(trace.meta.warnings.iter().any(|warning| warning.contains("later events")));
    }
}
