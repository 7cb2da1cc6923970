//! Reports as text: pure functions from a value to a string.
//!
//! - In: a report, and a [`Page`](page::Page) with width and colours.
//! - Out: text for a terminal ([`terminal`], ...), for a browser ([`html`]) or for programs ([`json`],
//!   [`exports`]).
//! - Must not know: the clock, files or the environment.

pub mod archive;
pub mod benchmarks;
pub mod comparison;
pub mod doctor;
pub mod drawing;
pub mod explanation;
pub mod exports;
pub mod history;
pub mod html;
pub mod ips;
pub mod json;
pub mod judgement;
pub mod page;
pub mod picture;
pub mod quantity;
pub mod scan;
pub mod terminal;
