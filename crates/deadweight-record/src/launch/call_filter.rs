//! System calls that return 0 and do nothing: a seccomp filter of the program and its descendants.
//!
//! The kernel runs the filter at each call; for calls that it always allows it remembers that. The program has the same filter in
//! the runs that it is compared with, where it lets the calls pass: so the filter's own cost is in both. Static programs and Go's are
//! reached too.

use deadweight_trace::syscall;
use deadweight_trace::syscall::Arch;
use std::io;
use std::mem::offset_of;

/// The layout of what a filter reads.
type Data = libc::seccomp_data;

/// The architecture whose numbers the filter knows, as the kernel names it (`linux/audit.h`).
#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH: u32 = 0xc000_00b7;

/// Loads four bytes of the data.
const LOAD: u16 = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
/// Compares them with a constant.
const EQUALS: u16 = code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K);
/// Ends with a constant.
const RETURN: u16 = code(libc::BPF_RET | libc::BPF_K);

/// The code of a step: `linux/bpf_common.h` defines its bits as plain numbers.
#[expect(clippy::cast_possible_truncation, reason = "the bits are below 256")]
const fn code(bits: u32) -> u16 {
    bits as u16
}

/// System calls that are skipped, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// The calls.
    pub calls: Vec<FilteredCall>,
    /// Whether they are skipped. If not, the filter costs the same and changes nothing.
    pub skips: bool,
}

/// A system call of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteredCall {
    /// Its name.
    pub name: String,
    /// Only with this value of an argument: its position from 0, and its lower 32 bits.
    pub only: Option<(u8, u32)>,
}

/// A filter made ready for a child.
pub(super) struct Prepared(Vec<libc::sock_filter>);

impl CallFilter {
    /// Makes the filter's program.
    pub(super) fn prepare(&self) -> Prepared {
        let step = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
        // Continues with the next step where it is equal; where it is not, skips so many.
        let when = |k, skips| libc::sock_filter { code: EQUALS, jt: 0, jf: skips, k };
        let offset = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let number = offset(offset_of!(Data, nr));
        let action = if self.skips { libc::SECCOMP_RET_ERRNO } else { libc::SECCOMP_RET_ALLOW };
        let mut program = vec![
            step(LOAD, offset(offset_of!(Data, arch))),
            libc::sock_filter { code: EQUALS, jt: 1, jf: 0, k: AUDIT_ARCH },
            step(RETURN, libc::SECCOMP_RET_ALLOW),
            step(LOAD, number),
        ];
        for call in &self.calls {
            let Some(nr) = syscall::number(Arch::HOST, &call.name) else { continue };
            match call.only {
                None => program.extend([when(nr.into(), 1), step(RETURN, action)]),
                Some((position, value)) => {
                    let at = offset_of!(Data, args) + 8 * usize::from(position);
                    program.extend([
                        when(nr.into(), 4),
                        step(LOAD, offset(at)),
                        when(value, 1),
                        step(RETURN, action),
                        step(LOAD, number),
                    ]);
                }
            }
        }
        program.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
        Prepared(program)
    }
}

impl Prepared {
    /// Installs it. Without rights the program can then no longer get others by executing a file that has them.
    ///
    /// # Safety
    /// Call it only in the child: it cannot be undone.
    ///
    /// # Errors
    /// The error number, if the kernel does not allow filters.
    pub(super) unsafe fn install(&self) -> Result<(), i32> {
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: plain system calls on a program that outlives them.
        unsafe {
            let install = || {
                let (set, flags) =
                    (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
                libc::syscall(libc::SYS_seccomp, set, flags, &raw const program)
            };
            if install() == 0 {
                return Ok(());
            }
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install() == 0 {
                return Ok(());
            }
            Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, run_clean};
    use std::ffi::OsString;
    use std::time::Duration;

    /// How long a shell's sleep takes under this filter.
    fn slept(only: Option<(u8, u32)>, skips: bool) -> Duration {
        let calls = ["clock_nanosleep", "nanosleep"];
        let calls = calls.map(|name| FilteredCall { name: name.to_owned(), only }).into();
        let argv = ["sleep", "0.3"].map(OsString::from).into();
        let filter = Some(CallFilter { calls, skips });
        let request = Request { argv, filter, ..Request::default() };
        let ran = run_clean(&request).expect("sleep is there");
        assert_eq!(ran.exit.code, 0);
        Duration::from_nanos(ran.wall.0)
    }

    #[test]
    fn a_skipped_call_returns_at_once() {
        let whole = Duration::from_millis(300);
        assert!(slept(None, true) < whole);
        assert!(slept(None, false) >= whole, "a filter that lets it pass");
        // The first argument is a clock: 0 or 1.
        assert!(slept(Some((0, 7)), true) >= whole, "another argument");
    }

    #[test]
    fn unknown_calls_are_left_out_of_the_filter() {
        let call = |name: &str, only| FilteredCall { name: name.into(), only };
        let filter = CallFilter {
            calls: vec![
                call("no_such_call", None),
                call("fsync", None),
                call("madvise", Some((2, 4))),
            ],
            skips: true,
        };
        let Prepared(program) = filter.prepare();
        assert_eq!(program.len(), 4 + 2 + 5 + 1);
    }
}
