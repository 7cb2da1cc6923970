//! What was unexpected about a series of runs, in words. Does not decide whether more runs follow.

use super::{Series, ending, is_interrupted};
use deadweight_report::report::Hazard;

impl Series<'_> {
    /// What was unexpected, after this many clean runs.
    pub(super) fn hazards(&self, clean: usize) -> Vec<Hazard> {
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
        if let Some((run, exit)) = self.exit_differs.filter(|_| self.failed.is_none()) {
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
