//! Times of compared commands as a table in a markup language. The last column is the factor to the
//! fastest command. Does not write files.

use super::{Summary, Timed};
use crate::cli::TimeUnit;
use crate::render::comparison::Shown;
use crate::render::page::printable;

/// A markup language.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Markup {
    /// Markdown.
    Markdown,
    /// AsciiDoc.
    AsciiDoc,
    /// Emacs' org-mode.
    Org,
}

/// A row for each command.
#[must_use]
pub fn table(all: &[Timed], markup: Markup, shown: Shown) -> String {
    let mut rows: Vec<(&Timed, Summary)> =
        all.iter().map(|timed| (timed, Summary::of(&timed.wall()))).collect();
    let fastest = rows.iter().map(|(_, one)| *one).min_by(|a, b| a.mean.total_cmp(&b.mean));
    let fastest = fastest.unwrap_or_default();
    if shown.fastest_first {
        rows.sort_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    }
    let fits = if fastest.mean < 1.0 { TimeUnit::Millisecond } else { TimeUnit::Second };
    let (unit, scale, digits) = match shown.unit.unwrap_or(fits) {
        TimeUnit::Microsecond => ("µs", 1e6, 1),
        TimeUnit::Millisecond => ("ms", 1e3, 1),
        TimeUnit::Second => ("s", 1.0, 3),
    };
    let head = ["Mean", "Min", "Max"].map(|what| format!("{what} [{unit}]"));
    let mut text = markup.head(&["Command", &head[0], &head[1], &head[2], "Relative"]);
    for (timed, one) in rows {
        let spread = |value: Option<f64>, digits: usize| {
            value.map(|value| format!(" ± {value:.digits$}")).unwrap_or_default()
        };
        let factor = one.mean / fastest.mean;
        // The relative deviations of a quotient add up as squares.
        let relative = |s: &Summary| s.deviation.map(|d| d / s.mean);
        let error = relative(&one)
            .zip(relative(&fastest))
            .filter(|_| one.mean > fastest.mean)
            .map(|(a, b)| factor * a.hypot(b));
        text.push_str(&markup.row(&[
            &markup.code(&timed.name),
            &format!(
                "{:.digits$}{}",
                one.mean * scale,
                spread(one.deviation.map(|d| d * scale), digits)
            ),
            &format!("{:.digits$}", one.min * scale),
            &format!("{:.digits$}", one.max * scale),
            &format!("{factor:.2}{}", spread(error, 2)),
        ]));
    }
    text + if markup == Markup::AsciiDoc { "|===\n" } else { "" }
}

impl Markup {
    /// The lines before the rows.
    fn head(self, names: &[&str; 5]) -> String {
        let names = self.row(names);
        match self {
            Self::Markdown => format!("{names}|:---|---:|---:|---:|---:|\n"),
            Self::AsciiDoc => format!("[cols=\"<,>,>,>,>\"]\n|===\n{}", names.trim_start()),
            Self::Org => format!("{names}|--+--+--+--+--|\n"),
        }
    }

    fn row(self, cells: &[&str; 5]) -> String {
        match self {
            Self::Markdown => format!("| {} |\n", cells.join(" | ")),
            Self::AsciiDoc => format!("\n| {} \n", cells.join(" \n| ")),
            Self::Org => format!("| {}  |\n", cells.join("  |  ")),
        }
    }

    fn code(self, text: &str) -> String {
        let text = printable(text).replace('|', "\\|");
        match self {
            Self::Org => format!("={text}="),
            // A backtick in the name would end the code.
            Self::Markdown if text.contains('`') => format!("`` {text} ``"),
            _ => format!("`{text}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_core::CleanRun;
    use deadweight_trace::units::Ns;
    use expect_test::expect;

    fn shown(markup: Markup, shown: Shown) -> String {
        let run = |ms: &u64| CleanRun { wall: Ns(ms * 1_000_000), ..CleanRun::default() };
        let timed = |name: &str, ms: &[u64]| Timed {
            name: name.into(),
            runs: ms.iter().map(run).collect(),
            ..Timed::default()
        };
        table(&[timed("x | y", &[20, 24]), timed("a", &[10, 12])], markup, shown)
    }

    #[test]
    fn tables_as_each_language_has_them() {
        expect![[r#"
            | Command | Mean [ms] | Min [ms] | Max [ms] | Relative |
            |:---|---:|---:|---:|---:|
            | `x \| y` | 22.0 ± 2.8 | 20.0 | 24.0 | 2.00 ± 0.36 |
            | `a` | 11.0 ± 1.4 | 10.0 | 12.0 | 1.00 |
        "#]]
        .assert_eq(&shown(Markup::Markdown, Shown::default()));
        expect![[r#"
            [cols="<,>,>,>,>"]
            |===
            | Command 
            | Mean [ms] 
            | Min [ms] 
            | Max [ms] 
            | Relative 

            | `x \| y` 
            | 22.0 ± 2.8 
            | 20.0 
            | 24.0 
            | 2.00 ± 0.36 

            | `a` 
            | 11.0 ± 1.4 
            | 10.0 
            | 12.0 
            | 1.00 
            |===
        "#]]
        .assert_eq(&shown(Markup::AsciiDoc, Shown::default()));
        expect![[r#"
            | Command  |  Mean [ms]  |  Min [ms]  |  Max [ms]  |  Relative  |
            |--+--+--+--+--|
            | =x \| y=  |  22.0 ± 2.8  |  20.0  |  24.0  |  2.00 ± 0.36  |
            | =a=  |  11.0 ± 1.4  |  10.0  |  12.0  |  1.00  |
        "#]]
        .assert_eq(&shown(Markup::Org, Shown::default()));
    }

    #[test]
    fn in_the_unit_and_order_that_are_asked_for() {
        let shown_as = Shown { unit: Some(TimeUnit::Second), fastest_first: true };
        expect![[r#"
            | Command | Mean [s] | Min [s] | Max [s] | Relative |
            |:---|---:|---:|---:|---:|
            | `a` | 0.011 ± 0.001 | 0.010 | 0.012 | 1.00 |
            | `x \| y` | 0.022 ± 0.003 | 0.020 | 0.024 | 2.00 ± 0.36 |
        "#]]
        .assert_eq(&shown(Markup::Markdown, shown_as));
    }
}
