//! Names of the C library's variants: the `memcpy` for this CPU has no name in a stripped library.
//!
//! Our own process uses the same library and has had its functions resolved for the same CPU:
//! where they lie in our memory tells what they are in the file. Not for other libraries.

use crate::elf::Layout;
use crate::elf::content::Content;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// File addresses of the C library's functions that exist in several variants.
#[derive(Debug, Default)]
pub(crate) struct Variants {
    /// Device and inode of the library.
    file: (u64, u64),
    starts: Vec<(u64, &'static str)>,
}

impl Variants {
    /// Looks at our own process. Empty if we were linked statically or cannot see ourselves.
    pub(crate) fn of_this_process() -> Self {
        Self::find().unwrap_or_default()
    }

    fn find() -> Option<Self> {
        let functions = resolved();
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let (start, end, offset, path) = maps.lines().find_map(|line| {
            let mapping = mapping(line)?;
            let holds = |(address, _): &(u64, _)| (mapping.0..mapping.1).contains(address);
            functions.iter().any(holds).then_some(mapping)
        })?;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let content = Content::new(File::open(path).ok()?, metadata.len());
        let bias = Layout::read(&content).ok()?.bias(start, offset);
        let starts = functions
            .into_iter()
            .filter(|(address, _)| (start..end).contains(address))
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

/// Start, end, offset and path of a line of `/proc/PID/maps`.
fn mapping(line: &str) -> Option<(u64, u64, u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let path = words.nth(2)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(start)?, number(end)?, number(offset)?, path))
}

/// Where the dynamic linker put each function. Of functions with the same code the first named
/// here has it.
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
