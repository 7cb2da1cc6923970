//! Regressions as workflow commands of GitHub Actions, which shows them at their lines.

use super::{sentence, values};
use crate::render::page::printable;
use deadweight_report::regressions::{Judgement, State};

/// One line for each regression, and a notice for what could not be judged. `root`: the folder that GitHub knows paths
/// from.
#[must_use]
pub fn commands(judgements: &[&Judgement], root: &str) -> String {
    let mut text = String::new();
    for judgement in judgements {
        for change in judgement.changes.iter().filter(|change| change.state.is_red()) {
            let title = format!("{}: {} got worse", judgement.workload, change.label());
            let message = format!("{} ({})", sentence(judgement), values(change));
            let site = change.sites.iter().find(|site| !site.file.is_empty());
            let place = site.map_or(String::new(), |site| {
                let file =
                    site.file.strip_prefix(root).unwrap_or(&site.file).trim_start_matches('/');
                let line =
                    if site.line > 0 { format!(",line={}", site.line) } else { String::new() };
                format!("file={}{line},", property(file))
            });
            text += &format!("::error {place}title={}::{}\n", property(&title), data(&message));
        }
        if judgement.state == State::Inconclusive {
            text += &format!(
                "::warning title={}::{}\n",
                property(&format!("{}: no verdict", judgement.workload)),
                data(&sentence(judgement))
            );
        }
    }
    text
}

/// The text of a message.
fn data(text: &str) -> String {
    printable(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, which `:` and `,` would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
