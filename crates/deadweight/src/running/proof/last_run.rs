//! The last run is the program as it is: the files that it writes are its own then.
//!
//! After Ctrl-C too; another one ends that run. Who sends another signal wants an end: then it is said what may be missing.

use super::{Failure, Prover, Series};
use rustix::process::Signal;
use std::rc::Rc;

impl Prover<'_> {
    /// Runs the program once more if a run of a proof had begun. `broken_off`: in which proof it was interrupted, and how
    /// its runs differ. Returns what the user should know.
    pub(super) fn last_run(&mut self, broken_off: Option<(String, String)>) -> Option<String> {
        if !self.began {
            return broken_off.map(|(proof, _)| format!("interrupted in {proof}"));
        }
        if let Some((proof, changed)) = &broken_off {
            if self.interrupts.seen() != Some(Signal::INT.as_raw()) {
                return Some(format!(
                    "interrupted in {proof}: the last run may be one {changed}; run the command again if it writes files"
                ));
            }
            if !self.options.run.quiet {
                self.progress.note(
                    "deadweight: interrupted; the program itself runs once more, so that its files are its own (interrupt again to end it)",
                );
            }
        }
        self.progress.say("the program itself once more");
        let said = match self.once_more() {
            Ok(true) if broken_off.is_none() => return None,
            Ok(true) => "the last run was the program itself".to_owned(),
            Ok(false) => {
                "the last run, of the program itself, did not end as the first one; run it again if it writes files".to_owned()
            }
            Err(failure) => format!(
                "the program could not be run once more ({failure}): the last run may lack a cost; run it again if it writes files"
            ),
        };
        Some(match broken_off {
            Some((proof, _)) => format!("interrupted in {proof}: {said}"),
            None => said,
        })
    }

    /// Returns whether it ended as the first time.
    fn once_more(&self) -> Result<bool, Failure> {
        let mut series = Series::compared(self.options.run, Rc::clone(&self.input))?;
        series.clean_run()?;
        Ok(series.first_exit() == Some(self.options.exit))
    }
}
