//! Mappings of a process, from `/proc/PID/maps` or from a returned `mmap`.
//!
//! Does not follow changes; see `tracer::inspect`.

use super::event::Mapping;
use crate::procfs::maps::{self, MapsLine};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// All mappings that have a name or are executable.
pub(super) fn of_process(process: u32) -> Vec<Mapping> {
    let text = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    parse(&String::from_utf8_lossy(&text))
}

/// The mappings in this text.
pub(super) fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(text: &str) -> Option<Mapping> {
    let MapsLine { start, end, offset, inode, path, executable } = maps::parse(text)?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let named = path.starts_with('/') && !path.starts_with("//");
    (named || executable).then(|| Mapping {
        start,
        len: end.saturating_sub(start),
        offset,
        inode,
        path: path.into(),
        executable,
    })
}

/// The mapping that `mmap` with these arguments made at `start`.
pub(super) fn from_mmap(process: u32, args: &[u64; 6], start: u64) -> Option<Mapping> {
    let [_, len, access, flags, fd, offset] = *args;
    let executable = access & libc::PROT_EXEC.cast_unsigned() as u64 != 0;
    let anonymous = flags & libc::MAP_ANONYMOUS.cast_unsigned() as u64 != 0;
    if anonymous {
        let path = "//anon".into();
        return executable.then_some(Mapping { start, len, offset: 0, inode: 0, path, executable });
    }
    // An int in a register: its upper half may hold anything.
    let file = format!("/proc/{process}/fd/{}", fd & 0xffff_ffff);
    let path = fs::read_link(&file).ok()?.to_string_lossy().into_owned();
    let inode = fs::metadata(&file).map_or(0, |file| file.ino());
    Some(Mapping { start, len, offset, inode, path, executable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_maps_are_read() {
        let text = "55d8c0a00000-55d8c0a25000 r-xp 00001000 fe:00 131 /usr/bin/with space";
        let map = parse_line(text).unwrap();
        assert_eq!((map.start, map.len, map.offset), (0x55d8_c0a0_0000, 0x25000, 0x1000));
        assert_eq!(
            (map.inode, map.path.as_str(), map.executable),
            (131, "/usr/bin/with space", true)
        );
        assert_eq!(parse_line("7f00-7f10 rw-p 00000000 00:00 0 "), None);
        let jit = parse_line("7f00-7f10 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(jit.path, "//anon");
        assert_eq!(parse_line("nonsense"), None);
    }
}
