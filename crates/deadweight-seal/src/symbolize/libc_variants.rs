//! Names of the C library's variants (ifunc): the `memcpy` for this CPU has no name in a stripped library.
//!
//! Our own process uses the same library on the same CPU: the addresses of the functions in our memory give their
//! addresses in the file. Does not name functions of other libraries.

use crate::elf::Layout;
use crate::elf::content::Content;
use crate::images::{Mapped, OWN_MAPS, mapped};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File addresses of the C library's functions that exist in several variants.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    /// Device and inode of the library.
    file: (u64, u64),
    starts: Vec<(u64, &'static str)>,
}

impl Variants {
    /// Reads our own process. Empty if we are linked statically or cannot read `/proc/self`.
    pub(crate) fn of_this_process() -> Self {
        Self::find().unwrap_or_default()
    }

    fn find() -> Option<Self> {
        let functions = resolved();
        let maps = fs::read_to_string(OWN_MAPS).ok()?;
        let Mapped { addresses, offset, path } = maps.lines().find_map(|line| {
            let mapped = mapped(line)?;
            let holds = |(address, _): &(u64, _)| mapped.addresses.contains(address);
            functions.iter().any(holds).then_some(mapped)
        })?;
        let (content, metadata) = Content::open(Path::new(path))?;
        let bias = Layout::read(&content).ok()?.bias(addresses.start, offset);
        let starts = functions
            .into_iter()
            .filter(|(address, _)| addresses.contains(address))
            .map(|(address, name)| (address.wrapping_sub(bias), name))
            .collect();
        Some(Self { file: (metadata.dev(), metadata.ino()), starts })
    }

    /// The function that starts at `start` in the file with this device and inode.
    pub(crate) fn name(&self, file: (u64, u64), start: u64) -> Option<&'static str> {
        let same = |(known, _): &&(u64, _)| *known == start;
        (file == self.file).then(|| self.starts.iter().find(same).map(|(_, name)| *name))?
    }
}

/// The address that the dynamic linker chose for each function. If two share their code, the first one listed here
/// names it.
fn resolved() -> Vec<(u64, &'static str)> {
    macro_rules! addresses {
        ($($name:ident)*) => {
            vec![$((libc::$name as *const () as usize as u64, stringify!($name))),*]
        };
    }
    addresses! {
        memcpy memmove memset memcmp memchr memrchr memmem
        strlen strnlen strcmp strncmp strcpy strncpy strcat strchr strrchr strstr
        strcasecmp strncasecmp strspn strcspn strpbrk time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_library_has_its_variants() {
        let variants = Variants::of_this_process();
        let names: Vec<_> = variants.starts.iter().map(|(_, name)| *name).collect();
        assert!(names.contains(&"memcpy") && names.contains(&"memset"), "{names:?}");
        let (start, _) = variants.starts[0];
        assert_eq!(variants.name(variants.file, start), Some("memcpy"));
        assert_eq!(variants.name((0, 0), start), None);
    }
}
