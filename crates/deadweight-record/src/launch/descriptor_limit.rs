//! The limit of open descriptors. The recorder needs some twenty for each CPU, which exceeds the usual limit of 1024
//! from about fifty CPUs on. The program gets back the limit that the recorder was started with.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// The limit before [`raise`] changed it.
static AT_START: OnceLock<Option<libc::rlimit>> = OnceLock::new();

/// A lower hard limit becomes this: root may do so.
const ENOUGH: libc::rlim_t = 65_536;

/// Raises the soft limit to the hard one, which needs no privilege, or further if that is low. If the kernel refuses,
/// opening events fails later.
pub(crate) fn raise() {
    AT_START.get_or_init(|| {
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
        // SAFETY: the calls fill in and read one structure of plain numbers.
        unsafe {
            if libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) != 0 {
                return None;
            }
            let before = limit.assume_init();
            let up_to = |most| libc::rlimit { rlim_cur: most, rlim_max: most };
            let changed = [before.rlim_max.max(ENOUGH), before.rlim_max]
                .into_iter()
                .any(|most| libc::setrlimit(libc::RLIMIT_NOFILE, &up_to(most)) == 0);
            changed.then_some(before)
        }
    });
}

/// The number of descriptors that the recorder may have open.
pub(crate) fn most_files() -> usize {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: fills in a structure of plain numbers.
    let limit = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr());
        limit.assume_init()
    };
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
}

/// The limit that the program must start with, if it differs from the recorder's.
pub(crate) fn of_program() -> Option<libc::rlimit> {
    AT_START.get().copied().flatten()
}
