//! A trace into bytes, at once or while it is recorded.
//!
//! The bytes returned so far can always be read: table entries precede the events that refer to them. Not for files: the
//! caller writes the bytes.

use super::frame::{Holds, MAGIC, VERSION, put_block};
use super::tables::Written;
use crate::encoded::bytes::put;
use crate::encoded::{Block, Events};
use crate::symbols::Symbols;
use crate::{Meta, Trace};

/// Turns a recording into bytes as it grows.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    begun: bool,
    written: Written,
    events: u64,
}

impl Writer {
    /// A writer of one trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes to append now: the opening, if these are the first, with `meta` as known so far, in case the
    /// recording breaks off; the new entries of `symbols`; and `blocks`, which must follow the earlier ones.
    pub fn append(&mut self, meta: &Meta, symbols: &Symbols, blocks: &[Block]) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&MAGIC);
            out.extend_from_slice(&VERSION.to_le_bytes());
            put_meta(&mut out, &Meta { complete: false, ..meta.clone() });
        }
        put_tables(&mut out, &self.written.new_entries(symbols));
        for block in blocks {
            self.put_events(&mut out, block);
        }
        out
    }

    /// The last bytes: as [`Writer::append`], then what sealing found for entries that were written before, and
    /// the final `meta`.
    #[must_use]
    pub fn finish(mut self, meta: &Meta, symbols: &Symbols, blocks: &[Block]) -> Vec<u8> {
        let mut out = self.append(meta, symbols, blocks);
        put_tables(&mut out, &self.written.sealed_entries(symbols));
        // An empty block has the number of events, in case the last blocks are damaged.
        self.put_events(&mut out, &Block { first: meta.end, ..Block::default() });
        put_meta(&mut out, meta);
        out
    }

    fn put_events(&mut self, out: &mut Vec<u8>, block: &Block) {
        let mut start = Vec::new();
        put(&mut start, self.events);
        put(&mut start, block.count.into());
        put(&mut start, block.first.0);
        put_block(out, Holds::Events, &[&start, &block.bytes]);
        self.events += u64::from(block.count);
    }
}

impl Trace {
    /// The whole trace as the bytes of a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut events: Events = self.events.clone();
        events.close();
        Writer::new().finish(&self.meta, &self.symbols, events.closed())
    }
}

fn put_meta(out: &mut Vec<u8>, meta: &Meta) {
    // Numbers, strings and lists of them: JSON can hold all of it.
    let json = serde_json::to_vec(meta).unwrap_or_default();
    put_block(out, Holds::Meta, &[&json]);
}

fn put_tables(out: &mut Vec<u8>, contents: &[Vec<u8>]) {
    contents.iter().for_each(|content| put_block(out, Holds::Tables, &[content]));
}
