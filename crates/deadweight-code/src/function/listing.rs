//! The hottest stretch of a function's instructions as lines of text, for people.
//!
//! Never a single instruction: which of a few neighbours a sample hits is chance. Not for roles.

use super::Function;
use crate::body::find;
use crate::code::{Code, Names};
use crate::decode;
use crate::instruction::Instruction;
use deadweight_trace::units::FileAddr;

/// Instructions shown: enough for a loop's body, and less than a screen.
const SHOWN: usize = 12;

/// An instruction with the number of samples that waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it is.
    pub addr: FileAddr,
    /// Samples charged to it.
    pub hits: u64,
    /// Its text, with called functions by name.
    pub text: String,
}

impl Function {
    /// The stretch of up to twelve instructions with most samples, with their counts.
    ///
    /// `code` is what the function was read from; `samples` are sampled addresses with how
    /// often each was hit, in any order; those outside the function are left out. Empty if there
    /// are none in it.
    #[must_use]
    pub fn listing(
        &self,
        code: &Code<'_>,
        names: &Names<'_>,
        samples: &[(FileAddr, u64)],
    ) -> Vec<Line> {
        let lines = self.lines(code, names, samples);
        let hits: Vec<u64> = lines.iter().map(|line| line.hits).collect();
        let range = hottest(&hits);
        lines.into_iter().skip(range.start).take(range.len()).collect()
    }

    /// All instructions, with the samples charged to each; see
    /// [`Function::listing`].
    #[must_use]
    pub fn lines(
        &self,
        code: &Code<'_>,
        names: &Names<'_>,
        samples: &[(FileAddr, u64)],
    ) -> Vec<Line> {
        let mut hits = vec![0u64; self.instructions.len()];
        for (ip, count) in samples {
            if let Some(i) = self.charged(*ip) {
                hits[i] = hits[i].saturating_add(*count);
            }
        }
        let lines = self.instructions.iter().zip(&hits);
        lines
            .map(|(instruction, hits)| Line {
                addr: FileAddr(instruction.addr),
                hits: *hits,
                text: self.line(code, names, instruction),
            })
            .collect()
    }

    /// The text of one instruction.
    pub(crate) fn line(
        &self,
        code: &Code<'_>,
        names: &Names<'_>,
        instruction: &Instruction,
    ) -> String {
        let native = decode::text(code, instruction.addr);
        let outside = |to: &u64| find(&self.instructions, *to).is_none();
        let callee = instruction.callee().filter(outside).and_then(|to| names(FileAddr(to)));
        match (native, callee) {
            (Some(native), Some(callee)) => {
                let word = native.split_whitespace().next().unwrap_or_default();
                format!("{word} {callee}")
            }
            (Some(native), None) => native,
            (None, _) => String::from("(not an instruction)"),
        }
    }
}

/// The window with most hits, without cold instructions at its ends.
fn hottest(hits: &[u64]) -> std::ops::Range<usize> {
    let mut sum: u64 = hits.iter().take(SHOWN).sum();
    let (mut best, mut start) = (sum, 0);
    for end in SHOWN..hits.len() {
        sum = sum.saturating_add(hits[end]).saturating_sub(hits[end - SHOWN]);
        if sum > best {
            (best, start) = (sum, end + 1 - SHOWN);
        }
    }
    if best == 0 {
        return 0..0;
    }
    let window = &hits[start..(start + SHOWN).min(hits.len())];
    let first = window.iter().position(|h| *h > 0).unwrap_or(0);
    let last = window.iter().rposition(|h| *h > 0).unwrap_or(0);
    // One neighbour on either side gives context.
    let first = (start + first).saturating_sub(1);
    let last = (start + last + 1).min(hits.len() - 1);
    first..last + 1
}
