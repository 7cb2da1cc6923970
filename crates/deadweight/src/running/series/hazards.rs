//! What was unexpected about a series of runs, in words. Does not decide whether more runs follow.

use super::{Series, ending, is_interrupted};
use deadweight_report::report::Hazard;
use deadweight_trace::Exit;
use std::collections::BTreeMap;

impl Series<'_> {
    /// What was unexpected, after this many clean runs; `left_out` of all `runs` failed.
    pub(super) fn hazards(&self, clean: usize, left_out: &[Exit], runs: usize) -> Vec<Hazard> {
        let mut hazards = Vec::new();
        let mut say = |id: &str, text: String| hazards.push(Hazard { id: id.into(), text });
        if let Some((run, exit)) = self.failed {
            let left = match exit.signal {
                _ if is_interrupted(exit) => "it was interrupted",
                _ => "give -i to continue after failures",
            };
            let ended = ending(exit);
            say(
                "stopped-repeating",
                format!("run {run} {ended} after {clean} clean runs; {left}."),
            );
        }
        if !left_out.is_empty() {
            let text = format!(
                "{} of {runs} runs failed ({}): their times and shares are left out.",
                left_out.len(),
                ends(left_out)
            );
            say("failed-runs", text);
        } else if let Some((run, exit)) = self.exit_differs.filter(|_| self.failed.is_none()) {
            let text =
                format!("run {run} {}, unlike the first run: the runs differ.", ending(exit));
            say("ends-differ", text);
        }
        if let Some((run, stream)) = self.output_differs {
            let text = format!(
                "run {run} wrote other output to {stream} than the run before it: they may not do \
                 the same work."
            );
            say("output-differs", text);
        }
        if let Some(text) = self.input.note() {
            say("spooled-input", format!("{text}."));
        }
        hazards
    }
}

/// How runs ended, with their numbers: `exit code 3: 2, signal 6: 1`.
fn ends(exits: &[Exit]) -> String {
    let mut counts = BTreeMap::new();
    for exit in exits {
        *counts.entry((exit.signal, exit.code)).or_insert(0_u32) += 1;
    }
    let words = counts.into_iter().map(|((signal, code), runs)| match signal {
        Some(signal) => format!("signal {signal}: {runs}"),
        None => format!("exit code {code}: {runs}"),
    });
    words.collect::<Vec<_>>().join(", ")
}
