//! Functions that run as they are, after everything is in its place.
//!
//! A gate is a few instructions: it looks whether there is anything to do, and jumps to the function. The
//! function sees the caller's registers and stack, so that `vfork` and functions with any number of arguments
//! have gates, too.

use super::real::Real;
use super::table::{self, ACTIVE, Kind, Locked, PLAIN_OUTPUT, THREADS};
use super::{classify, owing, settle, stdio};
use crate::c;
use core::arch::naked_asm;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::Ordering;

/// The six arguments in registers.
type Arguments = [usize; 6];

/// What is done before the function. The assembly reads `real`, the first field.
#[repr(C)]
struct Gate {
    real: Real,
    before: unsafe fn(&Arguments),
    name: &'static CStr,
}

/// Where the gate leads.
unsafe extern "C" fn pass(arguments: &Arguments, gate: &Gate) -> *mut c_void {
    let errno = *c::__errno_location();
    (gate.before)(arguments);
    c::set_errno(errno);
    gate.real.get(gate.name)
}

macro_rules! gate {
    ($before:path, $first:literal: $($name:ident)*) => { $(
        const _: () = {
            static GATE: Gate = Gate {
                real: Real::new(),
                before: $before,
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
            };
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name() {
                naked_asm!(
                    $first,
                    "jne 2f",
                    "mov r11, qword ptr [rip + {gate}]",
                    "test r11, r11",
                    "je 2f",
                    "jmp r11",
                    "2:",
                    "push rax",
                    "push r9",
                    "push r8",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    "push rdi",
                    // Numbers to print: what is done before may use these registers.
                    "sub rsp, 128",
                    "movaps [rsp], xmm0",
                    "movaps [rsp + 16], xmm1",
                    "movaps [rsp + 32], xmm2",
                    "movaps [rsp + 48], xmm3",
                    "movaps [rsp + 64], xmm4",
                    "movaps [rsp + 80], xmm5",
                    "movaps [rsp + 96], xmm6",
                    "movaps [rsp + 112], xmm7",
                    "lea rdi, [rsp + 128]",
                    "lea rsi, [rip + {gate}]",
                    "call {pass}",
                    "mov r11, rax",
                    "movaps xmm0, [rsp]",
                    "movaps xmm1, [rsp + 16]",
                    "movaps xmm2, [rsp + 32]",
                    "movaps xmm3, [rsp + 48]",
                    "movaps xmm4, [rsp + 64]",
                    "movaps xmm5, [rsp + 80]",
                    "movaps xmm6, [rsp + 96]",
                    "movaps xmm7, [rsp + 112]",
                    "add rsp, 128",
                    "pop rdi",
                    "pop rsi",
                    "pop rdx",
                    "pop rcx",
                    "pop r8",
                    "pop r9",
                    "pop rax",
                    "jmp r11",
                    "/* {active} {plain} */",
                    gate = sym GATE,
                    pass = sym pass,
                    active = sym ACTIVE,
                    plain = sym PLAIN_OUTPUT,
                )
            }
        };
    )* };
}

macro_rules! if_active {
    ($before:path: $($name:ident)*) => {
        gate!($before, "cmp dword ptr [rip + {active}], 0": $($name)*);
    };
}

macro_rules! if_plain_output {
    ($before:path: $($name:ident)*) => {
        gate!($before, "cmp dword ptr [rip + {plain}], 0": $($name)*);
    };
}

macro_rules! always {
    ($before:path: $($name:ident)*) => {
        // Leaves "not equal": rsp is never 0.
        gate!($before, "test rsp, rsp": $($name)*);
    };
}

unsafe fn everything(_: &Arguments) {
    settle::all();
}

// Another process gets the descriptors, looks at them, or is waited for; or the offset is used.
if_active!(everything:
    vfork _Fork clone daemon forkpty execve execv execvp execvpe execl execlp execle fexecve execveat
    posix_spawn posix_spawnp system popen wordexp
    _exit _Exit quick_exit abort __assert_fail __assert __assert_perror_fail __stack_chk_fail __chk_fail
    raise kill killpg tgkill pthread_kill sigqueue
    wait waitpid wait3 wait4 waitid pause sigsuspend sigwait sigwaitinfo sigtimedwait
    poll ppoll __poll_chk select pselect epoll_wait epoll_pwait epoll_pwait2 ioctl
    flock lockf lockf64 msgsnd msgrcv semop semtimedop sem_post sem_wait sem_timedwait sem_trywait
    mq_send mq_receive mq_timedsend mq_timedreceive
    dprintf vdprintf __dprintf_chk __vdprintf_chk
    sendmsg sendmmsg sendfile sendfile64 splice tee vmsplice copy_file_range
    readv writev preadv pwritev preadv64 pwritev64 preadv2 pwritev2 pwrite pwrite64
    aio_write aio_write64 aio_read aio_read64 lio_listio lio_listio64
    ftruncate ftruncate64 truncate truncate64 fallocate fallocate64 posix_fallocate posix_fallocate64
);

unsafe fn pending_writes(_: &Arguments) {
    settle::all_writes();
}

// The file is looked at by its name or another descriptor, time passes, or a stream loses what it holds.
if_active!(pending_writes:
    open open64 openat openat64 __open_2 __open64_2 __openat_2 __openat64_2 creat creat64 fopen fopen64
    stat lstat fstat fstatat stat64 lstat64 fstat64 fstatat64 statx
    __xstat __lxstat __fxstat __fxstatat __xstat64 __lxstat64 __fxstat64 __fxstatat64
    rename renameat renameat2 link linkat msync fsync fdatasync sync syncfs sync_file_range
    pread pread64 __pread_chk __pread64_chk futimens futimes utimensat utimes utime
    nanosleep clock_nanosleep usleep sleep __fpurge fpurge __fpending
    dlopen setrlimit setrlimit64 prlimit prlimit64
    send sendto recv recvfrom recvmsg connect accept accept4 shutdown
);

unsafe fn map(arguments: &Arguments) {
    const SHARED: usize = 1;
    settle::all_writes();
    let fd = arguments[4] as c_int;
    // From now on bytes come and go without a call.
    if arguments[3] & SHARED != 0
        && table::has_place(fd)
        && let Some(mut table) = Locked::get()
    {
        classify::exclude(&mut table, fd);
    }
}

always!(map: mmap mmap64);

unsafe fn system_call(arguments: &Arguments) {
    // futex, gettid, getrandom: they move no bytes, and locks are made of the first.
    if !matches!(arguments[0], 202 | 186 | 318) {
        settle::all();
    }
}

if_active!(system_call: syscall);

unsafe fn descriptors(arguments: &Arguments) {
    // Standard output and standard error become one file: what goes to them keeps its order.
    if arguments[1] == 2 || (arguments[1] == 1 && classify::is_same_as_error(arguments[0] as c_int))
    {
        stdio::stop();
    }
    owing::pay();
    let Some(mut table) = Locked::get() else { return };
    for fd in [arguments[0] as c_int, arguments[1] as c_int] {
        if table::has_place(fd) {
            let entry = &mut table.entries[fd as usize];
            settle::one(entry, fd);
            entry.forget();
        }
    }
    // What is the same file as standard error is another question now.
    if arguments[1] == 2 {
        settle::each(&mut table);
        table.forget_all();
    }
}

always!(descriptors: dup2 dup3);

unsafe fn first_descriptor(arguments: &Arguments) {
    descriptors(&[arguments[0], usize::MAX, 0, 0, 0, 0]);
}

always!(first_descriptor: dup fdopen);

unsafe fn control(arguments: &Arguments) {
    // F_GETFD, F_SETFD, F_GETFL.
    if !matches!(arguments[1] as c_int, 1..=3) {
        first_descriptor(arguments);
    }
}

always!(control: fcntl fcntl64);

unsafe fn all_descriptors(_: &Arguments) {
    settle::all();
    if let Some(mut table) = Locked::get() {
        for entry in &mut table.entries {
            entry.forget();
        }
    }
}

always!(all_descriptors: close_range closefrom fcloseall);

unsafe fn closing(arguments: &Arguments) {
    stdio::closing(arguments[0] as *mut c_void);
}

unsafe fn reopening(arguments: &Arguments) {
    stdio::closing(arguments[2] as *mut c_void);
}

always!(closing: fclose pclose);
always!(reopening: freopen freopen64);

unsafe fn thread(_: &Arguments) {
    if THREADS.load(Ordering::Relaxed) {
        return;
    }
    stdio::stop();
    settle::all();
    THREADS.store(true, Ordering::Relaxed);
    if let Some(mut table) = Locked::get() {
        for entry in table.entries.iter_mut().filter(|entry| entry.kind == Kind::Pipe) {
            entry.forget();
        }
    }
}

always!(thread: pthread_create thrd_create);

/// The stream may have to read, and that may wait for an answer to what is pending.
unsafe fn wait_for(stream: usize, enough: impl FnOnce(&[u8]) -> bool) {
    let stream = stdio::input(stream as *mut c_void);
    if !enough(stdio::ahead(stream)) {
        settle::all_writes();
        stdio::reading(stream);
    }
}

fn has_line(ahead: &[u8]) -> bool {
    ahead.contains(&b'\n')
}

fn has_byte(ahead: &[u8]) -> bool {
    !ahead.is_empty()
}

/// No number or word of a formatted input is longer.
fn has_word(ahead: &[u8]) -> bool {
    ahead.len() >= 512
}

unsafe fn byte(arguments: &Arguments) {
    wait_for(arguments[0], has_byte);
}
unsafe fn standard_byte(_: &Arguments) {
    wait_for(0, has_byte);
}
unsafe fn line_third(arguments: &Arguments) {
    wait_for(arguments[2], has_line);
}
unsafe fn line_fourth(arguments: &Arguments) {
    wait_for(arguments[3], has_line);
}
unsafe fn word(arguments: &Arguments) {
    wait_for(arguments[0], has_word);
}
unsafe fn standard_word(_: &Arguments) {
    wait_for(0, has_word);
}
unsafe fn block(arguments: &Arguments) {
    let bytes = arguments[1].saturating_mul(arguments[2]);
    wait_for(arguments[3], |ahead| ahead.len() >= bytes);
}
unsafe fn checked_block(arguments: &Arguments) {
    let bytes = arguments[2].saturating_mul(arguments[3]);
    wait_for(arguments[4], |ahead| ahead.len() >= bytes);
}

if_active!(byte: fgetc getc _IO_getc getc_unlocked fgetc_unlocked __uflow __underflow fgetwc getwc getw);
if_active!(standard_byte: getchar getchar_unlocked getwchar);
if_active!(line_third: fgets fgets_unlocked getline fgetws);
if_active!(line_fourth: getdelim __getdelim __fgets_chk __fgets_unlocked_chk);
if_active!(word: fscanf vfscanf __isoc99_fscanf __isoc99_vfscanf __isoc23_fscanf __isoc23_vfscanf);
if_active!(standard_word: gets __gets_chk scanf vscanf __isoc99_scanf __isoc99_vscanf __isoc23_scanf __isoc23_vscanf);
if_active!(block: fread fread_unlocked);
if_active!(checked_block: __fread_chk __fread_unlocked_chk);

unsafe fn plain_output(_: &Arguments) {
    PLAIN_OUTPUT.store(0, Ordering::Relaxed);
    if let Some(mut table) = Locked::get() {
        settle::write_out(&mut table.entries[1], 1);
    }
}

// The program goes over from plain calls on standard output to its stream: what is pending comes first.
if_plain_output!(plain_output:
    printf vprintf puts putchar putchar_unlocked fwrite fwrite_unlocked fputs fputs_unlocked
    fputc fputc_unlocked putc putc_unlocked _IO_putc fprintf vfprintf putw __overflow
    __printf_chk __vprintf_chk __fprintf_chk __vfprintf_chk
    wprintf vwprintf fwprintf vfwprintf putwchar fputwc putwc fputws
);
