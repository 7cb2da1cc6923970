//! Drops privileges: code that reads the program's files needs no more than to read.
//!
//! After the recording, the calling thread and its children can no longer write, create, remove or execute files. Of
//! the capabilities they keep only the one to read any file, and cannot regain others. Open files stay usable. See
//! [ADR-0013](../../../../docs/adr/0013-privileges-are-dropped-before-foreign-files-are-read.md).

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const VERSION: u32 = 1;
/// Landlock's access rights to execute, write, remove and create files of any kind, by its versions 1 to 3. Bits 2
/// and 3 (reading) are not among them.
const CHANGES: [u64; 3] = [0b1_1111_1111_0011, 0b11_1111_1111_0011, 0b111_1111_1111_0011];
/// `CAP_DAC_READ_SEARCH`.
const READ: u32 = 1 << 2;
/// `_LINUX_CAPABILITY_VERSION_3`.
const CAPABILITIES: u32 = 0x2008_0522;

/// Drops all privileges of this thread except reading, permanently. Call it when this is the only thread and nothing
/// more is recorded, executed or opened for writing. On kernels without Landlock (before 5.13) only capabilities are
/// dropped.
pub fn confine() {
    // SAFETY: numbers, and structures laid out as the kernel describes them; on failure nothing changes.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        change_no_files();
        only_read();
    }
}

unsafe fn change_no_files() {
    // SAFETY: the caller's; the ruleset is one number, and its descriptor is owned here.
    unsafe {
        let none = std::ptr::null::<u64>();
        let version = libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION);
        let Ok(version @ 1..) = usize::try_from(version) else { return };
        let handled = CHANGES[version.min(CHANGES.len()) - 1];
        let size = size_of_val(&handled);
        let rules = libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0);
        let Some(rules) = i32::try_from(rules).ok().filter(|fd| *fd >= 0) else { return };
        libc::syscall(libc::SYS_landlock_restrict_self, rules, 0);
        libc::close(rules);
    }
}

unsafe fn only_read() {
    // Version and "this thread"; then effective, permitted, inheritable, for the lower and the upper 32 bits.
    let header = [CAPABILITIES, 0];
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: the caller's.
    unsafe {
        if libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) != 0 {
            return;
        }
        let [lower, upper] = &mut sets;
        let kept = lower[1] & READ;
        (*lower, *upper) = ([kept, kept, 0], [0; 3]);
        libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_confined_thread_reads_and_changes_nothing() {
        let file = std::env::temp_dir().join(format!("deadweight-confine-{}", std::process::id()));
        fs::write(&file, "before").unwrap();
        let mut open = fs::OpenOptions::new().append(true).open(&file).unwrap();
        let inside = file.clone();
        let status = std::thread::spawn(move || {
            confine();
            std::io::Write::write_all(&mut open, b", after").unwrap();
            assert_eq!(fs::read_to_string(&inside).unwrap(), "before, after");
            // SAFETY: asks for a number.
            let landlock = unsafe {
                libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, VERSION)
            };
            if landlock > 0 {
                assert!(fs::write(&inside, "x").is_err() && fs::remove_file(&inside).is_err());
                assert!(fs::File::create(inside.with_extension("new")).is_err());
                assert!(std::process::Command::new("true").status().is_err());
            } else {
                eprintln!("SKIPPED: this kernel has no Landlock");
            }
            fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        fs::remove_file(&file).unwrap();
        let field = |name| status.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim();
        let kept = u64::from_str_radix(field("CapEff:"), 16).unwrap();
        assert!(kept & !u64::from(READ) == 0 && field("NoNewPrivs:") == "1", "{status}");
        assert_eq!(field("CapEff:"), field("CapPrm:"));
    }
}
