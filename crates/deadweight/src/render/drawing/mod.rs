//! Drawings as SVG: the ledger as a bar, CPU use over time, the timeline, flame graphs.
//!
//! - In: a report or a picture.
//! - Out: an `svg` element, or with [`alone`] a whole file. Colours and patterns are classes of `drawing.css`.
//! - Must not know: what surrounds a drawing.

pub mod difference;
pub mod flame;
pub mod history;
pub mod ledger;
pub mod timeline;
pub mod usage;

use super::page::{printable, shortened};
use super::quantity::time;
use maud::{Markup, PreEscaped, html};

/// The width of every drawing, in its own units.
pub(crate) const WIDTH: f64 = 1200.0;
/// The style of drawings.
pub(crate) const STYLE: &str = include_str!("drawing.css");
/// Colours that the page sets, for a drawing alone.
const COLOURS: &str = ":root,svg{--paper:#fff;--ink:#1b1f24;--faint:#57606a;--rule:#d0d7de;--cost:#a5301f;--on-part:#101214}\
     @media (prefers-color-scheme:dark){:root,svg{--paper:#14171a;--ink:#e6e9ec;--faint:#a3acb5;--rule:#3a4149;--cost:#f09a8a}}\
     .ground{fill:var(--paper)}";

/// A drawing: its height, what it is called, what it shows in words, and its elements.
pub struct Drawing {
    /// Its id in a page.
    pub id: String,
    /// Its height.
    pub height: f64,
    /// Its name.
    pub title: String,
    /// What it shows, for who does not see it.
    pub text: String,
    /// Its elements.
    pub body: Markup,
}

impl Drawing {
    /// The element for a page.
    #[must_use]
    pub fn element(&self) -> Markup {
        self.element_as("img")
    }

    /// The element for a page, if it has links: an image's content would be hidden from screen readers.
    #[must_use]
    pub fn element_with_links(&self) -> Markup {
        self.element_as("group")
    }

    fn element_as(&self, role: &str) -> Markup {
        html! {
            svg #(self.id) viewBox={ "0 0 1200 " (n(self.height)) } role=(role)
                aria-labelledby={ (self.id) "-title " (self.id) "-text" } {
                title #{ (self.id) "-title" } { (self.title) }
                desc #{ (self.id) "-text" } { (self.text) }
                (self.body)
            }
        }
    }

    /// A whole file.
    #[must_use]
    pub fn alone(&self) -> String {
        let page = html! {
            svg xmlns="http://www.w3.org/2000/svg" width="1200" height=(n(self.height))
                viewBox={ "0 0 1200 " (n(self.height)) } role="img" aria-labelledby="title text" {
                title #title { (self.title) }
                desc #text { (self.text) }
                style { (PreEscaped(COLOURS)) (PreEscaped(STYLE)) }
                rect.ground width="1200" height=(n(self.height)) {}
                (self.body)
            }
        };
        format!("{}\n", page.into_string())
    }
}

/// Drawings under each other, each with a line above it.
#[must_use]
pub fn stacked(drawings: Vec<(String, Drawing)>, title: &str) -> Drawing {
    /// For the line.
    const HEAD: f64 = 28.0;
    let mut top = 0.0;
    let mut placed: Vec<(f64, String, Drawing)> = Vec::new();
    for (line, drawing) in drawings {
        let height = drawing.height;
        placed.push((top, line, drawing));
        top += HEAD + height;
    }
    let texts: Vec<String> =
        placed.iter().map(|(_, line, drawing)| format!("{line}: {}", drawing.text)).collect();
    let body = html! {
        @for (top, line, drawing) in &placed {
            text x="0" y=(n(top + 18.0)) { (fitted(line, WIDTH)) }
            g transform={ "translate(0 " (n(top + HEAD)) ")" } { (drawing.body) }
        }
    };
    Drawing {
        id: String::new(),
        height: top,
        title: title.to_owned(),
        text: texts.join(". "),
        body,
    }
}

/// A coordinate with at most one decimal.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// As much of a text as fits into so many units.
pub(crate) fn fitted(text: &str, width: f64) -> String {
    /// A character of the drawings' font.
    const CHARACTER: f64 = 6.9;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small positive number"
    )]
    let characters = (width.max(0.0) / CHARACTER) as usize;
    let text = printable(text);
    match characters {
        0..3 => String::new(),
        // A few letters say nothing.
        3..7 if text.chars().count() > characters => String::new(),
        _ => shortened(&text, characters.max(4)),
    }
}

/// Times for an axis of this length, with their labels.
pub(crate) fn ticks(length: u64) -> Vec<(u64, String)> {
    let mut step = 1_u64;
    // 1, 2, 5, 10, ...
    for factor in [2, 5].into_iter().cycle() {
        if length / step <= 8 {
            break;
        }
        step = if factor == 2 { step.saturating_mul(2) } else { step / 2 * 5 };
        if length / step <= 8 {
            break;
        }
        if factor == 5 {
            step = step.saturating_mul(2);
        }
    }
    let label = |at: u64| if at == 0 { "0".to_owned() } else { time(at) };
    (0..=length / step.max(1)).map(|i| (i * step, label(i * step))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_colour() {
        let colours = |id: &str| STYLE.matches(&format!(".a-{id} {{")).count();
        let ids = deadweight_report::account::AccountId::all().map(|account| account.id());
        let without: Vec<&str> = ids.filter(|id| *id != "idle" && colours(id) != 1).collect();
        assert!(without.is_empty(), "drawing.css: {without:?}");
    }

    #[test]
    fn axes_have_round_steps() {
        for (length, step, count) in [(0, 0, 1), (7, 1, 8), (100, 20, 6), (1_138_000, 200_000, 6)] {
            let ticks = ticks(length);
            assert_eq!(ticks.len(), count, "{length}");
            assert_eq!(ticks.get(1).map_or(0, |tick| tick.0), step, "{length}");
        }
        assert!(ticks(u64::MAX).len() < 12);
    }

    #[test]
    fn texts_fit() {
        assert_eq!(fitted("abcdef", 10.0), "");
        assert_eq!(fitted("abcdef", 100.0), "abcdef");
        assert!(fitted(&"x".repeat(900), 100.0).chars().count() <= 15);
    }
}
