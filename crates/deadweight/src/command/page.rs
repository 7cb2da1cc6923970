//! What the output can show: columns, colours, characters.
//!
//! The only reader of the environment's settings (NO_COLOR, COLUMNS, the locale).

use crate::cli::{Color, Style};
use crate::render::page::Page;
use std::env::var_os;
use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Columns if no terminal and no option gives them.
const COLUMNS: u16 = 80;
/// Lines longer than this are hard to read.
const WIDEST: u16 = 200;
/// Nothing fits into fewer columns.
const NARROWEST: u16 = 40;

/// The page for printing to `to`.
pub(crate) fn page(to: &(impl AsFd + IsTerminal), style: &Style) -> Page {
    let terminal = || terminal_size::terminal_size_of(to).map(|(width, _)| width.0);
    let said = || var_os("COLUMNS")?.to_str()?.parse().ok();
    let width = style.width.or_else(terminal).or_else(said).unwrap_or(COLUMNS);
    let color = if style.no_color { Color::Never } else { style.color };
    Page {
        width: usize::from(width.clamp(NARROWEST, WIDEST)),
        colour: colours(to, color),
        unicode: unicode(),
    }
}

/// Whether to use colours there.
pub(crate) fn colours(to: &impl IsTerminal, when: Color) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let unwanted = var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            to.is_terminal() && !unwanted && var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// Whether the locale is UTF-8. Containers often set no locale but print UTF-8, so only a locale with
/// another encoding counts.
fn unicode() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(var_os)
        .find(|value| !value.is_empty())
        .map(|value| value.to_string_lossy().to_lowercase());
    said.is_none_or(|locale| locale.contains("utf-8") || locale.contains("utf8"))
}
