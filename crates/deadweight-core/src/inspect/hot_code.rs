//! The hottest machine code of a finding, as lines that a reader can check.
//!
//! Never a single instruction: which of a few neighbours a sample hits is chance. `cost` judges what is a
//! cost, `deadweight_code` decodes the instructions.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights};
use deadweight_code::machine_code::FunctionId;
use deadweight_trace::ids::LocationId;
use deadweight_trace::symbols::SourceFrame;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Columns for an instruction, so that source lines stand below each other.
const INSTRUCTION: usize = 32;

/// The hottest run of instructions among these samples: a line with the function, then one line per
/// instruction with its samples and, where a line of source begins, that line. None without code.
pub(crate) fn hot_code(facts: &Facts<'_>, places: &Weights) -> Option<String> {
    let symbols = facts.symbols();
    let mut functions: BTreeMap<FunctionId, Vec<(LocationId, u64)>> = BTreeMap::new();
    for (site, weight) in places {
        let leaf = site.stack().and_then(|stack| symbols.stack(stack).first());
        let Some(leaf) = leaf else { continue };
        if let Some(function) = facts.machine.function_at(*leaf) {
            functions.entry(function).or_default().push((*leaf, weight.amount));
        }
    }
    let sum = |samples: &[(LocationId, u64)]| samples.iter().map(|s| s.1).sum::<u64>();
    let (id, samples) = functions.into_iter().max_by_key(|(_, samples)| sum(samples))?;
    let code = facts.machine.code(id);
    let mut text = format!("hottest code, in {}:", symbols.name(code.name));
    let mut shown: Option<SourceFrame> = None;
    for line in facts.machine.listing(id, &samples) {
        let _ = write!(text, "\n{:>6}  {:INSTRUCTION$}", line.hits, line.text);
        let at = facts.machine.location(code.image, line.addr);
        let frame =
            at.and_then(|at| CallSite::At(at).frames(symbols).next()).map(|(_, frame)| *frame);
        if let Some(frame) = frame.filter(|f| f.line > 0 && Some(*f) != shown) {
            // The file's name only where it changes: lines are short.
            let file = symbols.name(frame.file);
            let base = file.rsplit('/').next().unwrap_or(file);
            let base = if shown.is_some_and(|s| s.file == frame.file) { "" } else { base };
            let _ = write!(text, "  {base}:{} {}", frame.line, symbols.source_line(&frame));
            shown = Some(frame);
        }
        text.truncate(text.trim_end().len());
    }
    Some(text)
}
