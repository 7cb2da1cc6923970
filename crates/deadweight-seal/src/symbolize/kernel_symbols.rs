//! Names of kernel functions, from `/proc/kallsyms`.
//!
//! The kernel takes some 50 ms to print that list, so its functions are cached, in order, in the user's cache folder
//! until the kernel or its modules change. Does not interpret the names; see `deadweight_core::timeline::kernel_stacks`.

use deadweight_trace::hash::fold;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the kernel lists its symbols.
pub(crate) const LIST: &str = "/proc/kallsyms";

/// Bytes that are read at a time: several lines, also of the longest names.
const WINDOW: usize = 4096;

/// An address further than this behind the preceding symbol is in no known function.
const FARTHEST: u64 = 1 << 20;

/// The kernel's functions, in the form of its own list: one line each, in order of address.
///
/// Searched as text, and in its file: reading a hundred thousand lines to look up some fifty would take longer than the
/// rest of a short recording.
#[derive(Debug)]
pub(crate) enum KernelNames {
    /// In memory.
    Lines(Vec<u8>),
    /// In a file of so many bytes.
    Cached(File, u64),
}

impl Default for KernelNames {
    fn default() -> Self {
        Self::Lines(Vec::new())
    }
}

impl KernelNames {
    /// The names of the running kernel; empty where it hides them.
    pub(crate) fn load() -> io::Result<Self> {
        let cached = cache_file();
        if let Some(file) = cached.as_deref().filter(|file| is_ours(file)) {
            let file = File::open(file)?;
            let size = file.metadata()?.len();
            if size > 0 {
                return Ok(Self::Cached(file, size));
            }
        }
        let names = Self::parse(&fs::read(LIST)?);
        if let Some(file) = cached.filter(|_| !names.is_empty()) {
            // Without the cache the next run takes a little longer: no warning.
            let _ = names.keep(&file);
        }
        Ok(names)
    }

    /// Reads a list in the form of `/proc/kallsyms`. It is empty where the kernel hides its
    /// addresses (they are all zero then).
    fn parse(list: &[u8]) -> Self {
        let mut functions: Vec<(u64, &[u8])> =
            list.split(|b| *b == b'\n').filter_map(function).collect();
        functions.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| alias_rank(a.1).cmp(&alias_rank(b.1))));
        functions.dedup_by_key(|function| function.0);
        let mut lines = Vec::new();
        for (address, name) in functions {
            lines.extend_from_slice(format!("{address:0DIGITS$x} t ").as_bytes());
            lines.extend_from_slice(name);
            lines.push(b'\n');
        }
        Self::Lines(lines)
    }

    /// Whether there are no names.
    pub(crate) fn is_empty(&self) -> bool {
        self.size() == 0
    }

    fn size(&self) -> u64 {
        match self {
            Self::Lines(lines) => lines.len() as u64,
            Self::Cached(_, size) => *size,
        }
    }

    /// Some bytes from here on.
    fn read(&self, at: u64, most: usize) -> Option<Vec<u8>> {
        match self {
            Self::Lines(lines) => {
                let rest = lines.get(usize::try_from(at).ok()?..)?;
                Some(rest[..rest.len().min(most)].to_vec())
            }
            Self::Cached(file, _) => {
                let mut bytes = vec![0; most];
                let read = file.read_at(&mut bytes, at).ok()?;
                bytes.truncate(read);
                Some(bytes)
            }
        }
    }

    /// The function that holds `address`. None in a damaged list.
    pub(crate) fn find(&self, address: u64) -> Option<String> {
        // The last line whose address is not greater begins in this range, at whose start a line begins.
        let (mut from, mut to) = (0, self.size());
        while to - from > WINDOW as u64 {
            let middle = from + (to - from) / 2;
            let bytes = self.read(middle, WINDOW)?;
            let start = bytes.iter().position(|byte| *byte == b'\n')? + 1;
            let line = bytes.get(start..)?.split(|byte| *byte == b'\n').next()?;
            let start = middle + start as u64;
            if start >= to {
                // No line is that long.
                return None;
            } else if function(line)?.0 <= address {
                from = start;
            } else {
                to = start;
            }
        }
        // The line may end behind the range.
        let bytes = self.read(from, 2 * WINDOW)?;
        let lines = bytes.split(|byte| *byte == b'\n').map_while(function);
        let (begin, name) = lines.take_while(|(begin, _)| *begin <= address).last()?;
        let name = std::str::from_utf8(name).ok()?;
        (address - begin < FARTHEST).then(|| name.to_owned())
    }

    /// Writes the list to `file` and removes those of earlier kernels. Only the user may read kernel addresses.
    fn keep(&self, file: &Path) -> io::Result<()> {
        let Some(folder) = file.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for old in fs::read_dir(folder)?.flatten() {
            if old.file_name().to_string_lossy().starts_with(CACHED) {
                fs::remove_file(old.path())?;
            }
        }
        let draft = file.with_extension(std::process::id().to_string());
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let Self::Lines(lines) = self else { return Ok(()) };
        out.write_all(lines)?;
        fs::rename(draft, file)
    }
}

/// How the names of cached lists begin.
const CACHED: &str = "kernel-";

/// The cache file for this boot with these modules.
fn cache_file() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // A module's name and address stay while it is loaded; there may be no modules at all.
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let modules = modules
        .lines()
        .filter_map(|line| Some([line.split(' ').next()?, line.split(' ').nth(5)?]))
        .flat_map(|words| words.concat().into_bytes())
        .fold(0, |hash, byte| fold(hash, u64::from(byte)));
    let folder = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))?;
    Some(
        folder.join("deadweight").join(format!("{CACHED}{}-{modules:016x}.functions", boot.trim())),
    )
}

/// Whether a cached list is a regular file of our own user.
fn is_ours(file: &Path) -> bool {
    let us = fs::metadata("/proc/self").map(|us| us.uid()).ok();
    let regular = |found: &Metadata| found.is_file() && Some(found.uid()) == us;
    fs::symlink_metadata(file).is_ok_and(|found| regular(&found))
}

/// Digits of an address.
const DIGITS: usize = 16;

/// Address and name in a line, if that is of a function.
fn function(line: &[u8]) -> Option<(u64, &[u8])> {
    let (digits, rest) = line.split_at_checked(DIGITS)?;
    let (b" t " | b" T " | b" w " | b" W ", name) = rest.split_at_checked(3)? else { return None };
    let mut address = 0_u64;
    for digit in digits {
        let value = char::from(*digit).to_digit(16)?;
        address = address << 4 | u64::from(value);
    }
    let name = name.split(u8::is_ascii_whitespace).next()?;
    (address != 0 && !name.is_empty()).then_some((address, name))
}

/// Of several names for one address, the name with the smallest rank is the usual one.
fn alias_rank(name: &[u8]) -> (bool, usize, usize) {
    let position_independent_twin = name.starts_with(b"__pi_") || name.starts_with(b"__pfx_");
    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
    (position_independent_twin, underscores, name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cover_up_to_the_next_and_aliases_take_the_plain_one() {
        let list = "ffffffff81000000 T __pi_start\nffffffff81000000 T start\n\
                    ffffffff81000100 t pipe_read\nffffffff81000180 D data\n\
                    ffffffffc0000000 t ext4_read\t[ext4]\nbroken\n";
        let names = KernelNames::parse(list.as_bytes());
        assert_eq!(names.find(0xffff_ffff_8100_00ff).as_deref(), Some("start"));
        assert_eq!(names.find(0xffff_ffff_8100_0190).as_deref(), Some("pipe_read"));
        assert_eq!(names.find(0xffff_ffff_c000_0010).as_deref(), Some("ext4_read"));
        assert_eq!(names.find(0xffff_ffff_c900_0000), None);
        assert_eq!(names.find(16), None);
        let many: String = (1..=999).map(|i| format!("{:016x} t f{i}\n", i * 16)).collect();
        let names = KernelNames::parse(many.as_bytes());
        for i in 1..=999 {
            assert_eq!(names.find(i * 16 + i % 16), Some(format!("f{i}")));
        }
        assert_eq!(names.find(15), None);
    }

    #[test]
    fn a_cached_list_is_searched_in_its_file() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("deadweight-kernel-names-{}", std::process::id()));
        // Lines of different lengths, up to the kernel's longest name.
        let name = |i: u64| format!("f{i}{}", "x".repeat(usize::try_from(i * 37 % 500).unwrap()));
        let lines = (1..=5000).map(|i| format!("{:016x} t {}\n", i * 16, name(i)));
        fs::write(&file, lines.collect::<String>()).unwrap();
        let open = |size| KernelNames::Cached(File::open(&file).unwrap(), size);
        let names = open(fs::metadata(&file).unwrap().len());
        for i in 1..=5000 {
            assert_eq!(names.find(i * 16 + i % 16), Some(name(i)));
        }
        fs::write(&file, vec![b'0'; 100_000]).unwrap();
        assert_eq!(open(100_000).find(70), None);
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn hidden_addresses_are_no_names() {
        assert!(KernelNames::parse(b"0000000000000000 T start\n").is_empty());
    }

    #[test]
    fn a_cached_list_replaces_older_ones_and_is_private() {
        let folder =
            std::env::temp_dir().join(format!("deadweight-kernel-list-{}", std::process::id()));
        let (old, new) = (folder.join("kernel-old"), folder.join("kernel-new"));
        let names = KernelNames::parse(b"ffffffff81000000 T start\n");
        names.keep(&old).expect("a folder of our own");
        names.keep(&new).expect("a folder of our own");
        assert!(!old.exists() && is_ours(&new));
        assert_eq!(fs::metadata(&new).expect("it was written").mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).expect("it was ours");
    }
}
