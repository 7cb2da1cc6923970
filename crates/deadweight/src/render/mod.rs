//! Reports as people and programs read them: pure functions from a value to text.
//!
//! [`terminal`] draws the screens, [`json`] the archive's form. Nothing here reads a clock, a file
//! or the environment: how wide and how colourful a page is comes in as a [`Page`].

pub mod article;
pub mod benchmarks;
pub mod comparison;
pub mod doctor;
pub mod exports;
pub mod ips;
pub mod json;
pub mod page;
pub mod quantity;
pub mod terminal;
