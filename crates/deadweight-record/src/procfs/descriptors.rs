//! The open descriptors of processes, and what they refer to.

use std::collections::HashMap;
use std::fs;

/// The open descriptors of a process and what they refer to; empty if it is gone.
pub(crate) fn descriptors(process: u32) -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let fd = entry.file_name().to_str()?.parse().ok()?;
            let what = fs::read_link(entry.path()).ok()?;
            Some((fd, what.to_string_lossy().into_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The descriptors of a process that stay open at its next exec. A closed standard descriptor refers to nothing: an
/// empty text.
pub(crate) fn inherited_descriptors(process: u32) -> Vec<(i32, String)> {
    let mut found = descriptors(process);
    found.retain(|(fd, _)| {
        let said = fs::read_to_string(format!("/proc/{process}/fdinfo/{fd}")).unwrap_or_default();
        let flags = said.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|f| i32::from_str_radix(f.trim(), 8).ok()).unwrap_or(0);
        flags & libc::O_CLOEXEC == 0
    });
    for fd in 0..3 {
        if found.iter().all(|(open, _)| *open != fd) {
            found.push((fd, String::new()));
        }
    }
    found
}

/// Reads the descriptors of processes repeatedly, and reports changes.
#[derive(Default)]
pub(crate) struct Descriptors {
    known: HashMap<(u32, i32), String>,
}

impl Descriptors {
    /// Everything that changed since the last call: process, descriptor, what it refers to.
    pub(crate) fn changes(&mut self, processes: &[u32]) -> Vec<(u32, i32, String)> {
        let mut new = Vec::new();
        let mut seen = HashMap::new();
        for process in processes {
            for (fd, what) in descriptors(*process) {
                if self.known.get(&(*process, fd)) != Some(&what) {
                    new.push((*process, fd, what.clone()));
                }
                seen.insert((*process, fd), what);
            }
        }
        self.known = seen;
        new
    }
}

/// What a descriptor of a process referred to at some instant.
pub(crate) struct Descriptor {
    /// The clock's reading.
    pub(crate) at: u64,
    /// The process.
    pub(crate) process: u32,
    /// The descriptor.
    pub(crate) fd: i32,
    /// As `/proc` names it.
    pub(crate) what: String,
}
