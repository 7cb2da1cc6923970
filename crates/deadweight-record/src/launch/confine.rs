//! Drops privileges: code that reads the program's files needs no more than to read.
//!
//! After the recording, the calling thread and its children can no longer write, create, remove or execute files. Of
//! the capabilities they keep only the one to read any file, and cannot regain others. Open files stay usable. See
//! [ADR-0013](../../../../docs/adr/0013-privileges-are-dropped-before-foreign-files-are-read.md).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// `LANDLOCK_CREATE_RULESET_VERSION`.
const VERSION: u32 = 1;
/// Landlock's access rights to execute, write, remove and create files of any kind, by its versions 1 to 3. Bits 2
/// and 3 (reading) are not among them.
const CHANGES: [u64; 3] = [0b1_1111_1111_0011, 0b11_1111_1111_0011, 0b111_1111_1111_0011];
/// `LANDLOCK_ACCESS_FS_EXECUTE`.
const EXECUTE: u64 = 1;
/// `LANDLOCK_RULE_PATH_BENEATH`.
const BENEATH: u32 = 1;
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
        change_no_files(None);
        keep_capabilities(READ);
    }
}

/// Drops all privileges of this process for good, except to change files below `folder`: no capability is left, and
/// nothing can be executed. Call it when this is the only thread. On kernels without Landlock, files outside of
/// `folder` can be changed as the user of the process may.
///
/// # Errors
/// If `folder` cannot be opened.
pub fn confine_to(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    // SAFETY: as above; the descriptor is open.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        change_no_files(Some(folder.as_raw_fd()));
        keep_capabilities(0);
    }
    Ok(())
}

/// Becomes the user and group with these numbers for good. Call it as root, when this is the only thread.
///
/// # Errors
/// If the kernel refuses it.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: numbers.
    let done = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(group, group, group) == 0
            && libc::setresuid(user, user, user) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A rule of Landlock, as the kernel lays it out.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: RawFd,
}

unsafe fn change_no_files(except_below: Option<RawFd>) {
    // SAFETY: the caller's; rulesets and rules are numbers, and the descriptor of a ruleset is owned here.
    unsafe {
        let none = std::ptr::null::<u64>();
        let version = libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION);
        let Ok(version @ 1..) = usize::try_from(version) else { return };
        let handled = CHANGES[version.min(CHANGES.len()) - 1];
        let size = size_of_val(&handled);
        let rules = libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0);
        let Some(rules) = i32::try_from(rules).ok().filter(|fd| *fd >= 0) else { return };
        if let Some(folder) = except_below {
            let rule = Beneath { allowed: handled & !EXECUTE, folder };
            libc::syscall(libc::SYS_landlock_add_rule, rules, BENEATH, &raw const rule, 0);
        }
        libc::syscall(libc::SYS_landlock_restrict_self, rules, 0);
        libc::close(rules);
    }
}

unsafe fn keep_capabilities(wanted: u32) {
    // Version and "this thread"; then effective, permitted, inheritable, for the lower and the upper 32 bits.
    let header = [CAPABILITIES, 0];
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: the caller's.
    unsafe {
        if libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) != 0 {
            return;
        }
        let [lower, upper] = &mut sets;
        let kept = lower[1] & wanted;
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

    #[test]
    fn a_thread_confined_to_a_folder_changes_files_there_and_nowhere_else() {
        let folder = std::env::temp_dir().join(format!("deadweight-to-{}", std::process::id()));
        let inside = folder.join("inside");
        fs::create_dir_all(&inside).unwrap();
        let outside = folder.join("outside");
        fs::write(&outside, "before").unwrap();
        let (there, other) = (inside.clone(), outside.clone());
        let status = std::thread::spawn(move || {
            assert!(confine_to(Path::new("/nowhere")).is_err());
            confine_to(&there).unwrap();
            fs::create_dir(there.join("new")).unwrap();
            fs::write(there.join("new/part"), "x").unwrap();
            fs::rename(there.join("new/part"), there.join("new/whole")).unwrap();
            assert_eq!(fs::read_to_string(&other).unwrap(), "before");
            // SAFETY: asks for a number.
            let landlock = unsafe {
                libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, VERSION)
            };
            if landlock > 0 {
                assert!(fs::write(&other, "x").is_err() && fs::remove_file(&other).is_err());
                assert!(std::process::Command::new("true").status().is_err());
            } else {
                eprintln!("SKIPPED: this kernel has no Landlock");
            }
            fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.join().unwrap();
        assert_eq!(fs::read_to_string(inside.join("new/whole")).unwrap(), "x");
        fs::remove_dir_all(&folder).unwrap();
        let field = |name| status.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim();
        assert_eq!(field("CapPrm:").trim_start_matches('0'), "", "{status}");
    }
}
