//! What was odd about a series of runs, in words. Not for deciding whether there are more of them.

use super::{Series, ending, is_interrupted};
use deadweight_report::report::Hazard;

impl Series<'_> {
    /// What went otherwise than a reader would expect, after so many clean runs.
    pub(in crate::running) fn hazards(&self, clean: usize) -> Vec<Hazard> {
        let mut hazards = Vec::new();
        let mut say = |id: &str, text: String| hazards.push(Hazard { id: id.into(), text });
        if let Some((run, exit)) = self.failed {
            let left = match exit.signal {
                _ if is_interrupted(exit) => "it was interrupted",
                _ => "give -i to go on in spite of failures",
            };
            let ended = ending(exit);
            say(
                "stopped-repeating",
                format!("run {run} {ended} after {clean} clean runs; {left}."),
            );
        }
        if let Some((run, exit)) = self.ends_otherwise.filter(|_| self.failed.is_none()) {
            let text = format!("run {run} {}, unlike the first: the runs differ.", ending(exit));
            say("ends-differ", text);
        }
        if let Some((run, stream)) = self.differs {
            let text = format!(
                "run {run} wrote something else to {stream} than the run before it: they may not \
                 do the same work."
            );
            say("output-differs", text);
        }
        if let Some(text) = self.input.remark() {
            say("spooled-input", format!("{text}."));
        }
        hazards
    }
}
