//! The bytes of a file into a trace, as much of it as is intact.
//!
//! Takes untrusted bytes: their number bounds time and memory. Damage is reported in a warning and becomes a hole in the
//! events. Not for the meaning of a trace.

use super::frame::{Blocks, Holds, MAGIC, Met, OPENING, VERSION};
use super::tables::{self, Used};
use crate::encoded::bytes::Bytes;
use crate::encoded::{Block, Events, FOR_A_THREAD, Walk};
use crate::ids::{Cpu, Tid};
use crate::symbols::Symbols;
use crate::units::Ns;
use crate::{Event, Kind, Meta, Trace};
use std::collections::BTreeSet;

/// Why bytes are not a trace at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There are none.
    #[error("the file is empty")]
    Empty,
    /// They begin differently.
    #[error("this is not a trace of deadweight")]
    NotATrace,
    /// They begin as a trace, but not one that this version can read.
    #[error(
        "the trace has format version {found}, this deadweight reads up to {VERSION}: \
         read it with the version that recorded it, or a newer one"
    )]
    Version {
        /// The format's version.
        found: u16,
    },
    /// They begin as a trace and end before anything was recorded.
    #[error("the trace breaks off before its first event")]
    Nothing,
}

impl Trace {
    /// Reads the bytes of a file. Warnings say what is missing or damaged; the trace's [`Meta`] has them too. Lost
    /// events leave [`Kind::Lost`] in their place.
    ///
    /// # Errors
    /// If the bytes are not a trace, have an unknown version, or hold nothing that can be read.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, Vec<String>), ReadError> {
        if bytes.is_empty() {
            return Err(ReadError::Empty);
        }
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(ReadError::NotATrace);
        }
        let Some((opening, rest)) = bytes.split_at_checked(OPENING) else {
            return Err(ReadError::Nothing);
        };
        let found = u16::from_le_bytes([opening[MAGIC.len()], opening[MAGIC.len() + 1]]);
        if found == 0 || found > VERSION {
            return Err(ReadError::Version { found });
        }
        let mut reader = Reader::new(rest.len());
        let mut blocks = Blocks::new(rest);
        loop {
            let some: Vec<_> = blocks.by_ref().take(TOGETHER).collect();
            if some.is_empty() {
                return reader.finish();
            }
            let walked = walk_all(&some);
            some.into_iter().zip(walked).for_each(|(met, walked)| reader.take(met, walked));
        }
    }
}

/// So many blocks are walked by two threads before they are taken: it bounds what is known about them in memory.
const TOGETHER: usize = 256;

/// What blocks of events hold, block by block; none for other blocks and for invalid content.
fn walk_all<'a>(blocks: &[Met<'a>]) -> Vec<Option<Walked<'a>>> {
    let walk = |blocks: &[Met<'a>]| -> Vec<Option<Walked<'a>>> {
        let of = |met: &Met<'a>| match met {
            Met::Block(Holds::Events, content) => Walked::of(content),
            _ => None,
        };
        blocks.iter().map(of).collect()
    };
    let bytes: usize = blocks.iter().map(bytes_of_events).sum();
    if bytes < FOR_A_THREAD {
        return walk(blocks);
    }
    let (first, second) = blocks.split_at(blocks.len() / 2);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| walk(second));
        let mut all = walk(first);
        all.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    })
}

fn bytes_of_events(met: &Met<'_>) -> usize {
    match met {
        Met::Block(Holds::Events, content) => content.len(),
        _ => 0,
    }
}

/// A block of events, whose content is valid by itself.
struct Walked<'a> {
    /// The number of earlier events in the undamaged file.
    before: u64,
    count: u32,
    first: Ns,
    last: Ns,
    opening: Option<Tid>,
    cpus: BTreeSet<Cpu>,
    used: Used,
    bytes: &'a [u8],
}

impl<'a> Walked<'a> {
    fn of(content: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(content);
        let before = bytes.number()?;
        let count: u32 = bytes.small()?;
        let first = Ns(bytes.number()?);
        let mut walk = Walk::new(bytes.0, count, first);
        let mut cpus = BTreeSet::new();
        let (mut last, mut opening, mut cpu) = (first, None, None);
        let mut used = Used::default();
        for event in &mut walk {
            last = event.at;
            opening.get_or_insert(event.task);
            used.note(&event.kind);
            if cpu != Some(event.cpu) {
                cpu = Some(event.cpu);
                cpus.insert(event.cpu);
            }
        }
        let is_done = walk.is_done();
        is_done.then_some(Self { before, count, first, last, opening, cpus, used, bytes: bytes.0 })
    }
}

/// What was read so far.
struct Reader {
    meta: Option<Meta>,
    symbols: Symbols,
    events: Events,
    /// The number of earlier events in the undamaged file.
    expected: u64,
    last: Ns,
    cpus: BTreeSet<Cpu>,
    first: Option<Tid>,
    used: Used,
    /// Bytes that are not a block, and blocks with invalid content.
    damaged: usize,
    cut: bool,
    unknown: usize,
    lost: u64,
    /// Empty entries that may still fill gaps of the tables.
    gap: usize,
}

impl Reader {
    fn new(size: usize) -> Self {
        Self {
            meta: None,
            symbols: Symbols::default(),
            events: Events::default(),
            expected: 0,
            last: Ns::ZERO,
            cpus: BTreeSet::new(),
            first: None,
            used: Used::default(),
            damaged: 0,
            cut: false,
            unknown: 0,
            lost: 0,
            gap: size,
        }
    }

    fn take(&mut self, met: Met<'_>, walked: Option<Walked<'_>>) {
        match met {
            Met::Damage(bytes) => self.damaged += bytes,
            Met::Cut(_) => self.cut = true,
            Met::Unknown => self.unknown += 1,
            Met::Block(holds, content) => {
                let sound = match holds {
                    Holds::Meta => self.meta(content),
                    Holds::Tables => tables::read(content, &mut self.symbols, &mut self.gap),
                    Holds::Events => walked.and_then(|walked| self.events(walked)),
                };
                if sound.is_none() {
                    self.damaged += content.len();
                }
            }
        }
    }

    fn meta(&mut self, content: &[u8]) -> Option<()> {
        self.meta = Some(serde_json::from_slice(content).ok()?);
        Some(())
    }

    fn events(&mut self, walked: Walked<'_>) -> Option<()> {
        let Walked { before, count, first, last, opening, mut cpus, used, bytes } = walked;
        let used = self.used.joined(used);
        let later = before >= self.expected && (first >= self.last || count == 0);
        if !later || used.beyond(&self.symbols) > self.gap {
            return None;
        }
        self.used = used;
        if before > self.expected {
            self.hole(before - self.expected, first.max(self.last));
        }
        if count == 0 {
            self.expected = before;
            return Some(());
        }
        self.first = self.first.or(opening);
        self.cpus.append(&mut cpus);
        self.expected = before.saturating_add(count.into());
        self.last = last;
        self.events.push_block(Block { bytes: bytes.to_vec(), count, first });
        Some(())
    }

    /// Adds a lost-records event at `at` on every CPU. How many each CPU lost is not known: they are spread evenly,
    /// at least one each, so that every CPU has its hole.
    fn hole(&mut self, count: u64, at: Ns) {
        self.lost = self.lost.saturating_add(count);
        let cpus = self.meta.as_ref().map_or(1, |m| m.cpus.clamp(1, crate::encoded::CPUS));
        self.cpus.extend((0..cpus).map(Cpu));
        let share = (count / self.cpus.len() as u64).max(1);
        for cpu in &self.cpus {
            let kind = Kind::Lost { count: share };
            self.events.push(Event { at, cpu: *cpu, task: Tid(0), kind });
        }
        self.events.close();
        self.last = at;
    }

    fn finish(mut self) -> Result<(Trace, Vec<String>), ReadError> {
        let Some(mut meta) = self.meta.clone().or_else(|| self.guessed_meta()) else {
            return Err(ReadError::Nothing);
        };
        if self.events.is_empty() && !meta.complete {
            return Err(ReadError::Nothing);
        }
        let mut warnings = Vec::new();
        if self.meta.is_none() {
            let missing = "the facts about the recording (command, machine) are missing";
            warnings.push(missing.to_owned());
        }
        if self.cut || !meta.complete {
            meta.complete = false;
            meta.end = meta.end.max(self.last);
            warnings.push(format!(
                "the recording breaks off after {} events, {:.3} s after its start",
                self.events.len(),
                (self.last - meta.start).seconds(),
            ));
        }
        if self.damaged > 0 {
            let bytes = self.damaged;
            warnings.push(match self.lost {
                0 => format!("{bytes} bytes of the trace are damaged"),
                lost => format!("{bytes} bytes of the trace are damaged, {lost} events are lost"),
            });
        }
        if self.unknown > 0 {
            warnings.push("the trace holds parts that this version does not know".to_owned());
        }
        for warning in &warnings {
            if !meta.warnings.contains(warning) {
                meta.warnings.push(warning.clone());
            }
        }
        tables::complete(&mut self.symbols, &self.used);
        Ok((Trace { meta, symbols: self.symbols, events: self.events }, warnings))
    }

    /// The minimum that the analysis needs, if the facts are missing.
    fn guessed_meta(&self) -> Option<Meta> {
        let start = self.events.iter().next()?.at;
        Some(Meta {
            root: self.first?,
            cpus: self.cpus.last().map_or(1, |c| c.0 + 1),
            start,
            end: self.last,
            ..Meta::default()
        })
    }
}
