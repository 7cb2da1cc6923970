//! Lines of `/proc/PID/maps`.
//!
//! Does not choose mappings; its callers do.

/// One mapping.
pub(crate) struct MapsLine<'t> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    /// `//anon` without a file, as perf names it.
    pub(crate) path: &'t str,
    pub(crate) executable: bool,
}

/// Reads a line: `start-end perms offset device inode path`.
pub(crate) fn parse(line: &str) -> Option<MapsLine<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    let executable = words.next()?.contains('x');
    let offset = hex(words.next()?)?;
    let inode = words.nth(1)?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    let path = if path.is_empty() { "//anon" } else { path };
    Some(MapsLine { start, end, offset, inode, path, executable })
}
