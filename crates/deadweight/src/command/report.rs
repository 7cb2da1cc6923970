//! `report F`: the report of a recording made earlier, perhaps elsewhere.

use super::recording;
use super::run::weighed_traces;
use super::view::{Reader, Usually};
use crate::cli::{Report, View};
use crate::failure::Failure;
use crate::inlining;

pub(crate) fn report(wish: &Report) -> Result<u8, Failure> {
    let bytes = recording::bytes(&wish.file)?;
    let reader = Reader::open(&wish.view, Usually::Stdout)?;
    if !wish.view.explain_inlining {
        // Others may have written it.
        deadweight_record::confine();
    }
    let mut trace = recording::of(&bytes, &wish.file)?;
    if wish.view.explain_inlining {
        inlining::ask(std::slice::from_mut(&mut trace));
    }
    let traces = std::slice::from_ref(&trace);
    let View { of, inside, .. } = &wish.view;
    reader.give(&weighed_traces(traces, &[], of.as_ref(), inside.as_deref())?)?;
    Ok(0)
}
