//! `report F`: the report of a recording made earlier, perhaps elsewhere.

use super::recording;
use super::view::{Reader, Usually};
use crate::cli::Report;
use crate::failure::Failure;
use crate::inlining;
use deadweight_core::weigh::{Weighing, weigh};

pub(crate) fn report(wish: &Report) -> Result<u8, Failure> {
    let mut trace = recording::read(&wish.file)?;
    if wish.view.explain_inlining {
        inlining::ask(std::slice::from_mut(&mut trace));
    }
    let reader = Reader::open(&wish.view, Usually::Stdout)?;
    let of = wish.view.of.as_ref().map(ToString::to_string);
    let weighing = Weighing {
        traces: std::slice::from_ref(&trace),
        clean: &[],
        of: of.as_deref(),
        inside: wish.view.inside.as_deref(),
    };
    reader.give(&weigh(&weighing)?)?;
    Ok(0)
}
