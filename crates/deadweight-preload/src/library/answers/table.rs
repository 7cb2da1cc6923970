//! The answers that are known.

use crate::c;
use crate::spin::Spin;
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicU64, Ordering};

/// A longer path is always asked about.
const PATH: usize = 224;
/// The longest answer: that of `statx`.
const ANSWER: usize = 256;
const PLACES: usize = 1024;
/// So many files that may change are known. With more of them there are no answers.
const CHANGING: usize = 64;

#[repr(C)]
struct Known {
    /// The age that it belongs to. Answers of another age are forgotten.
    age: u64,
    question: u64,
    len: usize,
    path: [u8; PATH],
    /// As the kernel returns it: an error number below zero.
    result: isize,
    answer: [u8; ANSWER],
}

struct Table {
    known: [Known; PLACES],
    changing: [u64; CHANGING],
    count: usize,
}

struct Guarded(UnsafeCell<Table>);

// SAFETY: only who has the lock touches it.
unsafe impl Sync for Guarded {}

// SAFETY: numbers, for which zero is a value.
static TABLE: Guarded = Guarded(UnsafeCell::new(unsafe { core::mem::zeroed() }));
static LOCK: Spin = Spin::new();
/// From 1: no answer is of age 0.
static AGE: AtomicU64 = AtomicU64::new(1);

/// Called while there is one thread.
pub(super) unsafe fn start() {
    LOCK.survive_forks();
}

/// From now on all answers are new.
pub(super) fn forget() {
    AGE.fetch_add(1, Ordering::AcqRel);
}

unsafe fn bytes<'p>(path: *const c_char) -> Option<&'p [u8]> {
    if path.is_null() {
        return None;
    }
    let len = (0..PATH).find(|at| *path.add(*at) == 0).filter(|len| *len > 0)?;
    Some(core::slice::from_raw_parts(path.cast(), len))
}

/// FNV-1a.
fn hash(question: u64, path: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    path.iter().fold(0xcbf2_9ce4_8422_2325 ^ question, step)
}

/// A file may change from now on.
pub(super) unsafe fn changes(path: *const c_char) {
    forget();
    if !LOCK.lock() {
        return;
    }
    let table = &mut *TABLE.0.get();
    let hash = bytes(path).map_or(0, |path| hash(0, path));
    if !table.changing[..table.count.min(CHANGING)].contains(&hash) {
        if let Some(place) = table.changing.get_mut(table.count) {
            *place = hash;
        }
        table.count = table.count.saturating_add(1);
    }
    LOCK.unlock();
}

/// The answer to a question about a path, which is `size` bytes at `to`: the one that is known, or what `ask` returns.
pub(super) unsafe fn answer(
    question: u64,
    path: *const c_char,
    (to, size): (*mut u8, usize),
    ask: impl Fn() -> isize,
) -> c_int {
    let Some(path) = bytes(path).filter(|_| size <= ANSWER) else { return as_result(ask()) };
    let age = AGE.load(Ordering::Acquire);
    let at = hash(question, path) as usize % PLACES;
    if !LOCK.lock() {
        return as_result(ask());
    }
    let table = &mut *TABLE.0.get();
    let may_change = table.count > CHANGING
        || table.changing[..table.count.min(CHANGING)].contains(&hash(0, path));
    let known = &mut table.known[at];
    let same = known.age == age && known.question == question && known.path[..known.len] == *path;
    if same && !may_change {
        let result = known.result;
        if result == 0 {
            core::ptr::copy_nonoverlapping(known.answer.as_ptr(), to, size);
        }
        LOCK.unlock();
        return as_result(result);
    }
    LOCK.unlock();
    let result = ask();
    if may_change || !LOCK.lock() {
        return as_result(result);
    }
    let known = &mut (&mut *TABLE.0.get()).known[at];
    (known.age, known.question, known.len, known.result) = (0, question, path.len(), result);
    known.path[..path.len()].copy_from_slice(path);
    if result == 0 {
        core::ptr::copy_nonoverlapping(to, known.answer.as_mut_ptr(), size);
    }
    known.age = age;
    LOCK.unlock();
    as_result(result)
}

unsafe fn as_result(result: isize) -> c_int {
    if result < 0 {
        c::set_errno(c_int::try_from(-result).unwrap_or(0));
        return -1;
    }
    0
}
