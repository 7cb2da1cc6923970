//! The sections of a report of one run: rows, stages, the service, top functions, work by function, code without
//! names, hazards. Beside the report: charged time by call stack.
//!
//! - In: the facts of a run, and its time, charged.
//! - Out: values of `deadweight_report::report`.
//! - Must not know: how time is charged (`attribute`) or savings are predicted (`findings`).

pub(crate) mod checks;
pub(crate) mod hazards;
pub(crate) mod ledger;
pub(crate) mod loops;
pub(crate) mod origin;
pub(crate) mod service;
pub(crate) mod stacks;
pub(crate) mod stages;
pub(crate) mod top;
pub(crate) mod totals;
pub(crate) mod unnamed;
pub(crate) mod work;
