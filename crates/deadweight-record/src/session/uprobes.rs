//! Uprobes: at the start of `main` by a BPF program, where the kernel has such links, and at probes by events of perf.
//!
//! `probes` finds the places.

use super::{Entry, Session};
use crate::bpf::{Attachment, MainProgram};
use crate::error::Error;
use crate::launch::{Probe, Register};
use crate::perf::schema::{Role, fields};
use crate::perf::sys::{Event, Scope, Source};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Session {
    /// Opens events of perf at probes, and at starts of `main` where no program is attached.
    pub(super) fn open_uprobes(
        &mut self,
        entries: &[Entry],
        probes: &[Probe],
    ) -> Result<(), Error> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")
            .ok()
            .and_then(|text| text.trim().parse().ok());
        let Some(kind) = kind else {
            if !entries.is_empty() || !probes.is_empty() {
                self.warnings
                    .push("this kernel has no uprobes: start-up is not separate from main".into());
            }
            return Ok(());
        };
        let by_perf = if self.mains.is_empty() { entries } else { &[] };
        for entry in by_perf {
            let role = if entry.common { Role::CommonMain } else { Role::Main };
            let source = uprobe(kind, &entry.path, entry.offset);
            let place = source.map(|source| Event::of_each(source, fields::BASE));
            let opened = self.open_everywhere(role, place.as_ref(), Scope::AllTasks);
            let opened = self.tolerate(role, opened, false)?;
            self.wide.extend(opened);
        }
        for (number, probe) in (0..).zip(probes) {
            let source = uprobe(kind, &probe.path, probe.file_offset);
            let place = source.map(|source| probe_event(probe, source));
            let role = Role::Probe(number);
            let opened = self.open_everywhere(role, place.as_ref(), Scope::AllTasks);
            let opened = self.tolerate(role, opened, false)?;
            self.wide.extend(opened);
        }
        Ok(())
    }
}

/// A probe's event: user registers and stack, with the values that the probe requests.
pub(super) fn probe_event(probe: &Probe, source: Source) -> Event {
    let mut what = fields::BASE | fields::REGISTERS;
    if probe.stack {
        what |= fields::STACK | fields::CHAIN;
    }
    let mut event = Event { no_kernel_chain: true, ..Event::of_each(source, what) };
    event.layout.registers |= probe.args.iter().fold(0, |mask, arg| match arg {
        Register::Number(n) if *n < 64 => mask | 1 << n,
        _ => mask,
    });
    event
}

/// Attaches the program to all of these; to none if one of them is refused, because then perf's uprobes say why.
pub(crate) fn attach_to_mains(program: &MainProgram, entries: &[Entry]) -> Vec<Attachment> {
    let attach = |entry: &Entry| program.attach(&entry.path, entry.offset, entry.common);
    entries.iter().map(attach).collect::<std::io::Result<_>>().unwrap_or_default()
}

fn uprobe(kind: u32, path: &Path, offset: u64) -> std::io::Result<Source> {
    Ok(Source::Uprobe(kind, CString::new(path.as_os_str().as_bytes())?, offset))
}
