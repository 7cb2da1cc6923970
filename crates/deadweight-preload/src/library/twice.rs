//! Some calls of functions of the C library are made twice: a cost that cannot be left out is measured by adding it once more.
//!
//! - In: calls of functions that do the same again and leave the same behind: copies between places that do not overlap, and
//!   searches for the end of a text. Which calls are meant, a variable says.
//! - Out: the same results, later.
//! - Must not know: what the calls are for.
//!
//! What it does not keep: the second call finds everything in the cache, so that it shows the least that one costs. A copy into
//! memory that another thread reads meanwhile is written twice.

use crate::real::{Real, real};
use crate::{c, kernel, loaded};
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::null;

/// The variable `TWICE` of the crate, with the `=` that follows a name. Its value is `2:PATH:CALLS`, or `1:PATH:CALLS` for calls
/// that stay one; calls are the addresses of their last bytes in the file, in hexadecimal, with commas between.
const VARIABLE: &CStr = c"DEADWEIGHT_TWICE=";
/// Calls that can be named.
const MOST: usize = 8;
/// Bytes of the longest path.
const PATH: usize = 4096;

/// What the assembly reads.
#[repr(C)]
struct Calls {
    count: u32,
    twice: u32,
    /// Addresses of the calls' last bytes in memory.
    at: [usize; MOST],
    /// The file that says that a call was made twice; null if that has been said, or nobody asks.
    file: *const c_char,
}

static mut CALLS: Calls = Calls { count: 0, twice: 0, at: [0; MOST], file: null() };

/// `dl_phdr_info`: its first two fields.
#[repr(C)]
struct Object {
    base: usize,
    name: *const c_char,
}

unsafe extern "C" {
    fn dl_iterate_phdr(
        each: unsafe extern "C" fn(*const Object, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
}

/// What is looked for among the objects of the process.
struct Wanted {
    path: *const u8,
    len: usize,
    base: usize,
}

/// Called by the constructor, while there is one thread.
pub(crate) unsafe fn start(environment: *const *const c_char, file: Option<*const c_char>) {
    crate::real::start();
    // Now: a program may call these where nothing can be looked up, as in a handler of a signal.
    for function in COPIES.iter().chain(SCANS).chain(SCANNED) {
        function.real.get(function.name);
    }
    let Some(text) = loaded::find(environment, VARIABLE) else { return };
    let text = text.cast::<u8>();
    let count = *text;
    let path = text.add(2);
    let mut len = 0;
    while *path.add(len) != 0 && *path.add(len) != b':' {
        len += 1;
    }
    if *path.add(len) == 0 {
        return;
    }
    let mut wanted = Wanted { path, len, base: usize::MAX };
    dl_iterate_phdr(compare, (&raw mut wanted).cast());
    if wanted.base == usize::MAX {
        return;
    }
    let calls = &mut *(&raw mut CALLS);
    let mut next = path.add(len + 1);
    while *next != 0 && (calls.count as usize) < MOST {
        let mut addr = 0_usize;
        while let Some(digit) = (*next as char).to_digit(16) {
            addr = addr << 4 | digit as usize;
            next = next.add(1);
        }
        calls.at[calls.count as usize] = wanted.base.wrapping_add(addr);
        calls.count += 1;
        next = next.add(usize::from(*next != 0));
    }
    calls.file = file.unwrap_or(null());
    calls.twice = u32::from(count == b'2');
}

/// Whether an object is the wanted one. The program itself has no name there.
unsafe extern "C" fn compare(object: *const Object, _: usize, data: *mut c_void) -> c_int {
    const READLINK: c_long = 89;
    let wanted = &mut *data.cast::<Wanted>();
    let mut own = [0_u8; PATH];
    let mut name = (*object).name.cast::<u8>();
    if name.is_null() || *name == 0 {
        let exe = c"/proc/self/exe".as_ptr() as usize;
        let len = kernel::call(READLINK, exe, own.as_mut_ptr() as usize, PATH - 1, 0);
        if len < 0 {
            return 0;
        }
        name = own.as_ptr();
    }
    let same = (0..wanted.len).all(|at| *name.add(at) == *wanted.path.add(at));
    if same && *name.add(wanted.len) == 0 {
        wanted.base = (*object).base;
        return 1;
    }
    0
}

/// A function of the C library. The assembly reads `real`, the first field.
#[repr(C)]
struct Function {
    real: Real,
    name: &'static CStr,
}

/// Says that a call was made twice, once.
unsafe extern "C" fn report() {
    let file = core::mem::replace(&mut (*(&raw mut CALLS)).file, null());
    if !file.is_null() {
        loaded::report(file, loaded::EFFECT);
    }
}

unsafe extern "C" fn find(function: &Function) -> *mut c_void {
    function.real.get(function.name)
}

macro_rules! functions {
    ($all:ident, $module:ident: $($name:ident)*) => {
        #[expect(non_upper_case_globals, reason = "they have the names of functions")]
        mod $module {
            $(pub(super) static $name: super::Function = super::Function {
                real: super::Real::new(),
                name: match super::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            };)*
        }
        static $all: &[&Function] = &[$(&$module::$name),*];
    };
}

macro_rules! twice {
    ($all:ident, $functions:ident, $overlap:literal: $($name:ident)*) => { functions!($all, $functions: $($name)*); $(
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    "mov r11, qword ptr [rip + {function}]",
                    "test r11, r11",
                    "je 5f",
                    "2:",
                    "mov r8d, dword ptr [rip + {calls}]",
                    "test r8d, r8d",
                    "je 4f",
                    // Is the caller one of those that are named? The return address follows the call.
                    "lea r9, [rip + {calls}]",
                    "mov r10, qword ptr [rsp]",
                    "3:",
                    "mov rax, r10",
                    "sub rax, qword ptr [r9 + r8 * 8]",
                    "cmp rax, 1",
                    "je 6f",
                    "dec r8d",
                    "jne 3b",
                    "4:",
                    "jmp r11",
                    // Once more, if that is wanted.
                    "6:",
                    "cmp dword ptr [r9 + 4], 0",
                    "je 4b",
                    $overlap,
                    "cmp qword ptr [r9 + 72], 0",
                    "jne 7f",
                    "8:",
                    "push rdi; push rsi; push rdx; push rcx; push r11",
                    "call r11",
                    "pop r11; pop rcx; pop rdx; pop rsi; pop rdi",
                    "jmp r11",
                    // It is the first that is made twice.
                    "7:",
                    "push rdi; push rsi; push rdx; push rcx; push r11",
                    "call {report}",
                    "pop r11; pop rcx; pop rdx; pop rsi; pop rdi",
                    "jmp 8b",
                    // A call before the constructor.
                    "5:",
                    "push rdi; push rsi; push rdx; push rcx; sub rsp, 8",
                    "lea rdi, [rip + {function}]",
                    "call {find}",
                    "mov r11, rax",
                    "add rsp, 8; pop rcx; pop rdx; pop rsi; pop rdi",
                    "jmp 2b",
                    function = sym $functions::$name,
                    calls = sym CALLS,
                    find = sym find,
                    report = sym report,
                )
            }
        };
    )* };
}

// A copy within itself is another one the second time.
twice!(COPIES, copies, "mov rax, rdi
    sub rax, rsi
    cmp rax, rdx
    jb 4b
    mov rax, rsi
    sub rax, rdi
    cmp rax, rdx
    jb 4b": memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk);

twice!(SCANS, scans, "": strlen strnlen rawmemchr);

/// Scans a text once more if this call is meant. Returns where the function is.
unsafe extern "C" fn scan_again(text: *const u8, back: usize, function: &Function) -> *mut c_void {
    let calls = &*(&raw const CALLS);
    let is_meant = |call: &usize| back.wrapping_sub(*call) == 1;
    if calls.twice != 0 && calls.at[..calls.count as usize].iter().any(is_meant) {
        let mut len = real_strlen(text);
        // The result must not be of no use.
        core::arch::asm!("/* {0} */", inout(reg) len, options(nostack));
        report();
    }
    function.real.get(function.name)
}

real!(fn strlen as real_strlen(text: *const u8) -> usize);

macro_rules! scanned {
    ($all:ident, $functions:ident: $($name:ident)*) => { functions!($all, $functions: $($name)*); $(
        const _: () = {
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    "push rax",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "mov rsi, qword ptr [rsp + 56]",
                    "lea rdx, [rip + {function}]",
                    "call {scan_again}",
                    "mov r11, rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rax",
                    "jmp r11",
                    function = sym $functions::$name,
                    scan_again = sym scan_again,
                )
            }
        };
    )* };
}

// They look for the end of their first text before they do anything: that alone is done twice.
scanned!(SCANNED, scanned: strcat strncat __strcat_chk __strncat_chk sscanf __isoc99_sscanf __isoc23_sscanf);
