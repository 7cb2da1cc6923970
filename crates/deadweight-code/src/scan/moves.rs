//! Copies and clearing of a constant size: one match for each run of instructions, or for each call.
//!
//! What a copy or clearing is, the roles have decided. A loop of unknown length is left out.

use super::{LEAST_COPIED, LEAST_ZEROED, Match, Pattern, Scan};
use crate::instruction::Kind;
use crate::roles::{Place, Role, Run, routine};
use deadweight_trace::units::FileAddr;
use std::collections::BTreeSet;

/// No value and no buffer of constant size has more bytes: then the constant is of a path that is never taken.
pub(super) const MOST: u32 = 1 << 28;

pub(super) fn matches(scan: &Scan<'_, '_>) -> Vec<Match> {
    let mut found = Vec::new();
    // Each run once: all its instructions have the same role.
    let mut runs = BTreeSet::new();
    for (at, (instruction, role)) in
        scan.function.instructions.iter().zip(&scan.function.roles).enumerate()
    {
        let (pattern, run, least) = match role {
            Role::Copy(run) if !fills_fresh_memory(run) => (Pattern::Copy, run, LEAST_COPIED),
            Role::Zeroing(run) => (Pattern::Zeroing, run, LEAST_ZEROED),
            _ => continue,
        };
        // An instruction that moves all of it by itself.
        let whole = matches!(
            instruction.kind,
            Kind::Call(_) | Kind::Jump(_) | Kind::CopyBlock | Kind::FillBlock
        );
        let bytes = match instruction.callee() {
            Some(to) if whole && run.bytes == 0 => fixed(scan, FileAddr(to)),
            _ if run.looped => 0,
            _ => run.bytes,
        };
        if (least..=MOST).contains(&bytes) && (whole || runs.insert((pattern, run.at))) {
            found.push(scan.found(pattern, at, bytes));
        }
    }
    found
}

/// A copy into memory just allocated fills a buffer for its owner.
pub(super) fn fills_fresh_memory(run: &Run) -> bool {
    run.to == Place::Returned && run.from != Place::Frame
}

/// The bytes that a routine moves whose amount is fixed in its own code.
fn fixed(scan: &Scan<'_, '_>, to: FileAddr) -> u32 {
    use routine::Routine::{CopyFixed, ZeroFixed};
    let routine = (scan.callees.names)(to).and_then(routine::named);
    match routine {
        Some(CopyFixed | ZeroFixed) => (scan.callees.written)(to),
        _ => 0,
    }
}
