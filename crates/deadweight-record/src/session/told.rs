//! What programs in the kernel tell a session of system calls. Not for the programs: see `crate::programs`.

use super::{Session, machine};
use crate::dense::Dense;
use crate::perf::sys::Whom;
use crate::programs::Programs;
use std::io;
use std::os::fd::AsRawFd;

impl Session {
    /// Opens what the programs tell, on each CPU. Nobody makes records there but they.
    pub(super) fn open_told(&mut self, programs: &Programs) -> io::Result<()> {
        for (role, event) in machine::told_events() {
            let opened = self.open_everywhere(role, Ok(&event), Whom::Everyone)?;
            for (cpu, open) in self.cpus.iter().zip(&opened) {
                open.enable()?;
                programs.tell(role, cpu.cast_unsigned(), open.as_raw_fd())?;
            }
            self.told.extend(opened);
        }
        Ok(())
    }

    /// Who is to count dense calls, where that can be had.
    pub(crate) fn dense(&self) -> Dense {
        let costs = (self.bare_call, self.recording_call);
        Dense::new(self.cpus.len(), self.programs.clone(), costs)
    }

    /// What programs tell of calls is told no more.
    pub(crate) fn follow_nobody(&self) {
        self.programs.iter().for_each(|programs| programs.follow_all(false));
    }
}
