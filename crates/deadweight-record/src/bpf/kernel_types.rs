//! What the programs need of the kernel's types: ids of tracepoints' types and offsets of members, by name.
//!
//! The kernel's description has some 6 MB. What was found is kept until the next boot.

use super::btf::{Types, no_btf};
use crate::perf::private_dir::Folder;
use crate::procfs;
use std::collections::HashMap;
use std::fmt::Write;
use std::io;

/// The file that keeps what was found.
const CACHE: &str = "kernel-types";

/// Ids and offsets by name: `btf_trace_NAME` for a tracepoint, `STRUCTURE.MEMBER` for a member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KernelTypes(HashMap<String, u32>);

impl KernelTypes {
    /// Finds these names, from the cache if it has all of them. A name that this kernel lacks is not found.
    ///
    /// # Errors
    ///
    /// If the kernel does not describe its types.
    pub(super) fn find(tracepoints: &[&str], members: &[(&str, &str)]) -> io::Result<Self> {
        let key = key(tracepoints, members);
        let folder = Folder::open();
        let cached = folder.as_ref().and_then(|folder| folder.read(CACHE));
        if let Some(found) = cached.and_then(|text| Self::parse(&text, &key)) {
            return Ok(found);
        }
        let types = Types::of_kernel()?;
        let ids = tracepoints.iter().map(|name| {
            let name = format!("btf_trace_{name}");
            types.definition(&name).map(|id| (name, id))
        });
        let offsets = members.iter().map(|(structure, member)| {
            let offset = types.member(structure, member);
            offset.map(|offset| (format!("{structure}.{member}"), offset))
        });
        let found = Self(ids.chain(offsets).flatten().collect());
        if let Some(folder) = folder {
            folder.write(CACHE, &found.render(&key));
        }
        Ok(found)
    }

    /// The id of a tracepoint's type.
    pub(super) fn tracepoint(&self, name: &str) -> io::Result<u32> {
        self.0.get(&format!("btf_trace_{name}")).copied().ok_or_else(no_btf)
    }

    /// The offset of a member, in bytes.
    pub(super) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        self.0.get(&format!("{structure}.{member}")).copied()
    }

    fn render(&self, key: &str) -> String {
        let mut text = format!("{key}\n");
        for (name, number) in &self.0 {
            _ = writeln!(text, "{name} {number}");
        }
        text
    }

    /// None if it is of another boot, of other names, or damaged.
    fn parse(text: &str, key: &str) -> Option<Self> {
        let (first, rest) = text.split_once('\n')?;
        let found = rest.lines().map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        });
        found.collect::<Option<_>>().filter(|_| first == key).map(Self)
    }
}

/// Identifies the boot and the names.
fn key(tracepoints: &[&str], members: &[(&str, &str)]) -> String {
    let line = |path| procfs::line(path).unwrap_or_default();
    let members: Vec<_> = members.iter().map(|(of, member)| format!("{of}.{member}")).collect();
    format!(
        "1 {} {} {} {}",
        line("/proc/sys/kernel/osrelease"),
        line("/proc/sys/kernel/random/boot_id"),
        tracepoints.join(","),
        members.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_read_again_in_the_same_boot_only() {
        let found = KernelTypes(HashMap::from([("btf_trace_a".into(), 7), ("b.c".into(), 8)]));
        let text = found.render("boot 1");
        assert_eq!(KernelTypes::parse(&text, "boot 1").as_ref(), Some(&found));
        assert_eq!(KernelTypes::parse(&text, "boot 2"), None);
        assert_eq!(KernelTypes::parse("boot 1\nb.c x\n", "boot 1"), None);
        assert_eq!(found.tracepoint("a").ok(), Some(7));
        assert_eq!((found.offset("b", "c"), found.offset("b", "d")), (Some(8), None));
    }
}
