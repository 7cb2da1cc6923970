//! Debug files by build-id from debuginfod servers, kept in the cache that elfutils' clients use.
//!
//! The only crate that opens a connection to what `DEBUGINFOD_URLS` names; without that variable there are no
//! [`Settings`], and so no [`Client`]. It does not know what a debug file is: the caller checks each file. It gives up
//! no rights: the caller runs it in a process without any.
//!
//! | module | what it does |
//! |---|---|
//! | `settings` | environment variables into servers, cache and limits |
//! | `cache` | the folder that clients share: files, remembered failures |
//! | `server` | one request, with its limits |
//! | `client` | the order of questions, the time for all, and what to say in the end |

#![forbid(unsafe_code)]

mod cache;
mod client;
mod server;
mod settings;

pub use client::{Client, File, Step};
pub use settings::Settings;
