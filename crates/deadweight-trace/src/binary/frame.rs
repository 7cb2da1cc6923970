//! The file's outer form: a magic, a version, and checksummed blocks one after the other.
//!
//! Not for the content of a block: see `tables` and `encoded`.

/// The start of every trace file. The first byte is not text; the line ends reveal a transfer in text mode.
pub(super) const MAGIC: [u8; 8] = *b"\x89dwt\r\n\x1a\n";
/// The version that is written. Readers accept it and all earlier ones.
pub(super) const VERSION: u16 = 6;
/// Bytes before the first block.
pub(super) const OPENING: usize = MAGIC.len() + 2;

/// Begins each block, so that the next one can be found after damage.
const MARK: [u8; 4] = *b"\xf0dwb";
/// Bytes of a block besides its content: mark, kind, length, checksum.
const FRAME: usize = MARK.len() + 1 + 4 + 4;

/// What a block holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Facts about the recording; the last such block counts.
    Meta,
    /// Entries of the tables.
    Tables,
    /// Events.
    Events,
}

const HOLDS: [(u8, Holds); 3] = [(b'M', Holds::Meta), (b'T', Holds::Tables), (b'E', Holds::Events)];

/// Appends a block.
pub(super) fn put_block(out: &mut Vec<u8>, holds: Holds, content: &[&[u8]]) {
    let kind = HOLDS.iter().find(|(_, h)| *h == holds).map_or(0, |(byte, _)| *byte);
    let len = content.iter().map(|c| c.len()).sum::<usize>();
    // Writers keep contents well below 4 GiB.
    let len = u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind]);
    sum.update(&len);
    content.iter().for_each(|c| sum.update(c));
    out.extend_from_slice(&MARK);
    out.push(kind);
    out.extend_from_slice(&len);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    content.iter().for_each(|c| out.extend_from_slice(c));
}

/// What is found next in a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Met<'a> {
    /// A whole block.
    Block(Holds, &'a [u8]),
    /// A whole block of a kind that this reader does not know.
    Unknown,
    /// This many bytes are not a block.
    Damage(usize),
    /// The file ends within a block, after this many of its bytes.
    Cut(usize),
}

/// Iterates over the blocks of a file, past damage.
pub(super) struct Blocks<'a> {
    rest: &'a [u8],
    /// Bytes whose checksum may still be computed in vain: it bounds the time that a crafted file takes.
    wasted_budget: usize,
}

impl<'a> Blocks<'a> {
    /// `bytes` are those after the opening.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, wasted_budget: bytes.len().saturating_mul(4) }
    }

    fn damage(&mut self) -> Met<'a> {
        let whole = self.rest;
        let mut skipped = 1;
        while skipped < whole.len() {
            let next = whole[skipped..].windows(MARK.len()).position(|w| w == MARK);
            let Some(next) = next else { break };
            skipped += next;
            match block(&whole[skipped..]) {
                Found::Whole { .. } => break,
                Found::Broken { summed } => {
                    self.wasted_budget = self.wasted_budget.saturating_sub(summed)
                }
                Found::Short | Found::Nothing => {}
            }
            if self.wasted_budget == 0 {
                skipped = whole.len();
            }
            skipped += 1;
        }
        let sound = whole.get(skipped..).is_some_and(|r| matches!(block(r), Found::Whole { .. }));
        let skipped = if sound { skipped } else { whole.len() };
        self.rest = &whole[skipped..];
        Met::Damage(skipped)
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Met<'a>;

    fn next(&mut self) -> Option<Met<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        Some(match block(self.rest) {
            Found::Whole { holds, content, len } => {
                self.rest = &self.rest[len..];
                holds.map_or(Met::Unknown, |holds| Met::Block(holds, content))
            }
            Found::Short => match self.damage() {
                // No block follows: the file was cut off here.
                Met::Damage(all) if self.rest.is_empty() => Met::Cut(all),
                damage => damage,
            },
            Found::Broken { .. } | Found::Nothing => self.damage(),
        })
    }
}

/// What some bytes begin with.
enum Found<'a> {
    Whole {
        holds: Option<Holds>,
        content: &'a [u8],
        len: usize,
    },
    /// The checksum of this many bytes is wrong.
    Broken {
        summed: usize,
    },
    /// The bytes end before the block does.
    Short,
    Nothing,
}

fn block(bytes: &[u8]) -> Found<'_> {
    let known = bytes.len().min(MARK.len());
    if bytes[..known] != MARK[..known] {
        return Found::Nothing;
    }
    let Some((frame, rest)) = bytes.split_at_checked(FRAME) else {
        return Found::Short;
    };
    let word = |at: usize| [frame[at], frame[at + 1], frame[at + 2], frame[at + 3]];
    let kind = frame[MARK.len()];
    let len = word(MARK.len() + 1);
    let sum = u32::from_le_bytes(word(MARK.len() + 5));
    let size = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
    let Some(content) = rest.get(..size) else {
        return Found::Short;
    };
    let mut actual = crc32fast::Hasher::new();
    actual.update(&[kind]);
    actual.update(&len);
    actual.update(content);
    if actual.finalize() != sum {
        return Found::Broken { summed: content.len() + 1 };
    }
    let holds = HOLDS.iter().find(|(byte, _)| *byte == kind).map(|(_, h)| *h);
    Found::Whole { holds, content, len: FRAME + content.len() }
}
