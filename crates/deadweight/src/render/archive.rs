//! Kept runs as text: a list, the origin of one, the outcome of a check.
//!
//! Not for the report of a run; see `terminal`.

use super::page::{Ink, Line, Page, Sheet, columns, fitted, printable};
use super::quantity::time;
use deadweight_archive::Checked;
use deadweight_report::benchmarks::units::Scale;
use deadweight_report::tables::{CountRow, OURS, RunRow};

/// Letters of an id that are shown: with 100 000 runs, two rarely begin so.
pub const ID: usize = 8;
/// Letters of a commit that are shown.
pub const COMMIT: usize = 10;
/// Seconds of a day.
const DAY: i64 = 86_400;

/// The runs, one in a line; `cut` if there are more.
#[must_use]
pub fn list(runs: &[RunRow], cut: bool, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    if runs.is_empty() {
        sheet.line(Line::indented(0).push(Ink::Plain, "no such run is kept"));
    }
    let times: Vec<String> = runs.iter().map(|run| time(total(run))).collect();
    let width = times.iter().map(|text| columns(text)).max().unwrap_or(0);
    for (run, took) in runs.iter().zip(&times) {
        let mut line = Line::default();
        line.push(Ink::Strong, short(&run.run, ID))
            .push(Ink::Faint, &format!("  {}  ", moment(run.time)));
        line.push(Ink::Plain, &commit(run));
        let start = ID + 2 + 16 + 2 + COMMIT + 1 + 2;
        line.pad_to(start).right(start + width, Ink::Plain, took).push(Ink::Plain, "  ");
        let left = sheet.width().saturating_sub(start + width + 2).max(20);
        line.push(Ink::Plain, &fitted(&run.workload, left));
        sheet.line(&line);
    }
    if cut {
        sheet.line(Line::indented(0).push(Ink::Faint, "older runs: --last N"));
    }
    sheet.into_text()
}

/// Where a run came from, above its report.
#[must_use]
pub fn origin(run: &RunRow, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    let mut parts = vec![format!(
        "{}: {}, measured {} UTC",
        short(&run.run, ID),
        run.workload,
        moment(run.time)
    )];
    if !run.commit.is_empty() {
        parts.push(format!("commit {}", commit(run)));
    }
    if !run.branch.is_empty() {
        parts.push(format!("branch {}", run.branch));
    }
    if run.dirty {
        parts.push("with changes that are in no commit".into());
    }
    if run.kind != OURS && !run.kind.is_empty() {
        parts.push(format!("made by {}", run.kind));
    }
    sheet.paragraph(Line::default(), 2, Ink::Faint, &parts.join(", "));
    sheet.into_text()
}

/// The figures of a benchmark that another program measured: each unit with its median and its range.
#[must_use]
pub fn figures(counts: &[CountRow], page: Page) -> String {
    let mut sheet = Sheet::new(page);
    let width = counts.iter().map(|count| columns(&count.name)).max().unwrap_or(0);
    for CountRow { name, value, low, high, .. } in counts {
        let scale = Scale::common([*value, *low, *high], name);
        let [value, low, high] = [value, low, high].map(|each| scale.print(*each));
        let mut line = Line::indented(2);
        line.push(Ink::Plain, name).pad_to(2 + width + 2);
        line.push(Ink::Strong, &value).push(Ink::Faint, &format!("  ({low} to {high})"));
        sheet.line(&line);
    }
    sheet.into_text()
}

/// The outcome of a check of the archive at `to`.
#[must_use]
pub fn checked(to: &str, checked: &Checked) -> String {
    let mut text = format!(
        "{}: version {}, {:.1} MB\n",
        printable(to),
        checked.version,
        checked.bytes as f64 / 1e6
    );
    for (table, rows) in &checked.tables {
        text.push_str(&format!("{rows:>10}  {table}\n"));
    }
    for problem in &checked.problems {
        text.push_str(&format!("DAMAGED  {}\n", printable(problem)));
    }
    text.push_str(match checked.problems.is_empty() {
        true => "nothing is wrong\n",
        false => {
            "save what can be read with `deadweight archive export -o FILE`, and add it to a new archive: \
             deadweight archive add FILE --archive NEW.db\n"
        }
    });
    text
}

/// The time that a run is listed with: as in its series.
fn total(run: &RunRow) -> u64 {
    if run.clean_runs > 0 { run.clean_ns } else { run.net_ns }
}

fn commit(run: &RunRow) -> String {
    let changed = if run.dirty { "+" } else { "" };
    format!("{}{changed}", short(&run.commit, COMMIT))
}

/// The first letters of a text.
#[must_use]
pub fn short(text: &str, letters: usize) -> &str {
    text.char_indices().nth(letters).map_or(text, |(end, _)| &text[..end])
}

/// A moment in UTC, as `2026-11-26 17:48`.
pub(super) fn moment(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3_600, rest / 60 % 60)
}

/// The date that is so many days after 1970-01-01. Years begin in March here, so that a leap day ends one; 400 years have
/// the same number of days each.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let since = days.saturating_add(719_468);
    let (era, day_of_era) =
        (since.div_euclid(DAYS_OF_400_YEARS), since.rem_euclid(DAYS_OF_400_YEARS));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00");
        assert_eq!(moment(1_795_715_331), "2026-11-26 17:48");
        assert_eq!(moment(-1), "1969-12-31 23:59");
        // Foreign archives may hold anything.
        assert!(!moment(i64::MAX).is_empty() && !moment(i64::MIN).is_empty());
    }
}
