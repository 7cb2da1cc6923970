//! What the tracer leaves alone, by reason: tasks, and the time of tasks that it attached to and that have not stopped yet.
//!
//! Only counts; `tracer` decides.

/// Tasks that are not traced, by reason.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Untraced {
    /// Programs that gain privileges.
    pub(super) elevated: u64,
    /// Tasks that trace or are traced by the program itself.
    pub(super) traced: u64,
    /// CPU time of tasks that were attached to, before their first stop, in ns: what they called is not known.
    pub(super) unseen: u64,
}

impl Untraced {
    pub(super) fn warnings(self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.elevated > 0 {
            warnings.push(format!(
                "programs with elevated privileges (set-user-id or similar), {} of them: tracing \
                 would remove these privileges, so their time is not recorded",
                self.elevated
            ));
        }
        if self.traced > 0 {
            warnings.push(format!(
                "the program traces processes itself, {} of them: a process has at most one \
                 tracer, so they are not recorded from then on",
                self.traced
            ));
        }
        if self.unseen > 0 {
            warnings.push(format!(
                "threads that waited in calls were not interrupted where the call would fail: for {:.0} ms of CPU \
                 time it is not known what they called, and system calls and their waits count as net work or as idle",
                self.unseen as f64 / 1e6
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_called_before_their_first_stop_is_said_to_be_unknown() {
        assert_eq!(Untraced::default().warnings(), Vec::<String>::new());
        let warnings = Untraced { unseen: 3_000_000, ..Untraced::default() }.warnings();
        assert!(warnings[0].contains("for 3 ms of CPU time it is not known"), "{warnings:?}");
    }
}
