//! The replay of descriptors, driven as the timeline drives it.

use super::*;
use deadweight_trace::syscall::number;

/// When `/proc` was read, and when calls began.
const BEFORE: Ns = Ns(1);
const LATER: Ns = Ns(2);
const SHELL: Tid = Tid(1);
const LEFT: Tid = Tid(2);
const RIGHT: Tid = Tid(3);

fn call(d: &mut Descriptors<'_>, process: Tid, name: &str, args: [u64; 4], ret: i64) {
    let nr = number(Arch::X86_64, name).expect("a call of that name");
    d.returned(process, nr, &args, ret, LATER);
}

fn object(d: &Descriptors<'_>, process: Tid, name: &str, fd: u64) -> Option<u32> {
    d.object_of(process, number(Arch::X86_64, name).expect("a call of that name"), &[fd, 0, 0, 0])
}

#[test]
fn both_ends_of_a_shells_pipe_are_one_object() {
    let mut symbols = Symbols::default();
    let (tty, name) = (symbols.intern("/dev/pts/0"), symbols.intern("pipe:[7]"));
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    for fd in 0..3 {
        d.seen(SHELL, fd, tty, BEFORE);
    }
    call(&mut d, SHELL, "pipe2", [0; 4], 0);
    d.forked(SHELL, LEFT);
    call(&mut d, LEFT, "dup2", [4, 1, 0, 0], 1);
    call(&mut d, LEFT, "close", [4, 0, 0, 0], 0);
    d.executed(LEFT);
    d.seen(LEFT, 1, name, BEFORE);
    d.forked(SHELL, RIGHT);
    call(&mut d, RIGHT, "dup2", [3, 0, 0, 0], 0);
    d.executed(RIGHT);
    d.seen(RIGHT, 0, name, BEFORE);
    let written = object(&d, LEFT, "write", 1).expect("known");
    assert_eq!(object(&d, RIGHT, "read", 0), Some(written));
    assert_eq!(d.kind(written), Some(ObjectKind::Pipe));
    assert_eq!(d.objects.all[written as usize].name, name);
    assert_ne!(object(&d, LEFT, "write", 2), Some(written));
}

#[test]
fn exec_closes_what_was_marked_and_nothing_else() {
    let symbols = Symbols::default();
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    call(&mut d, LEFT, "openat", [0, 0, CLOEXEC, 0], 3);
    call(&mut d, LEFT, "openat", [0, 0, 0, 0], 4);
    call(&mut d, LEFT, "fcntl", [4, 1030, 0, 0], 5);
    call(&mut d, LEFT, "fcntl", [5, 2, 0, 0], 0);
    d.executed(LEFT);
    assert_eq!(object(&d, LEFT, "read", 3), None);
    assert!(object(&d, LEFT, "read", 4).is_some());
    assert_eq!(object(&d, LEFT, "read", 5), object(&d, LEFT, "read", 4));
}

#[test]
fn proc_overrules_a_wrong_guess() {
    let mut symbols = Symbols::default();
    let name = symbols.intern("socket:[9]");
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    call(&mut d, LEFT, "pipe", [0; 4], 0);
    let guessed = object(&d, LEFT, "read", 3);
    d.seen(LEFT, 3, name, BEFORE);
    let seen = object(&d, LEFT, "read", 3).expect("known");
    assert_ne!(Some(seen), guessed);
    assert_eq!(d.kind(seen), Some(ObjectKind::Socket));
    assert_eq!(object(&d, LEFT, "read", 4), guessed);
}

#[test]
fn a_standard_descriptor_that_was_closed_is_free() {
    let mut symbols = Symbols::default();
    let (tty, nothing) = (symbols.intern("/dev/pts/0"), symbols.intern(""));
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    d.seen(SHELL, 0, nothing, BEFORE);
    d.seen(SHELL, 1, tty, BEFORE);
    assert_eq!(object(&d, SHELL, "read", 0), None);
    assert_eq!(object(&d, SHELL, "read", 2).and_then(|o| d.kind(o)), Some(ObjectKind::Unknown));
    call(&mut d, SHELL, "pipe", [0; 4], 0);
    assert_eq!(object(&d, SHELL, "read", 0), object(&d, SHELL, "write", 3));
}

#[test]
fn the_lowest_free_number_is_the_next() {
    let symbols = Symbols::default();
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    for fd in 0..5 {
        call(&mut d, LEFT, "openat", [0; 4], fd);
    }
    call(&mut d, LEFT, "close_range", [1, 2, 0, 0], 0);
    assert_eq!(d.lowest_free(LEFT), 1);
    call(&mut d, LEFT, "pipe", [0; 4], 0);
    assert_eq!(object(&d, LEFT, "read", 1), object(&d, LEFT, "write", 2));
    assert_eq!(d.lowest_free(LEFT), 5);
}

#[test]
fn a_device_opened_again_has_its_name_from_the_start() {
    let mut symbols = Symbols::default();
    let null = symbols.intern("/dev/null");
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    d.seen(LEFT, 2, null, BEFORE);
    call(&mut d, LEFT, "openat", [0, 0, 1, 0], 3);
    call(&mut d, LEFT, "dup2", [3, 1, 0, 0], 1);
    let before = object(&d, LEFT, "write", 1).expect("known");
    d.seen(LEFT, 1, null, BEFORE);
    let after = object(&d, LEFT, "write", 1).expect("known");
    assert_eq!(d.objects.all[before as usize], d.objects.all[after as usize]);
    assert_eq!(object(&d, LEFT, "write", 2), Some(after));
}

#[test]
fn a_descriptor_found_before_its_call_returned_is_not_opened_again() {
    let mut symbols = Symbols::default();
    let (name, file) = (symbols.intern("pipe:[7]"), symbols.intern("/etc/hosts"));
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    d.seen(SHELL, 3, name, LATER);
    d.seen(SHELL, 4, name, LATER);
    call(&mut d, SHELL, "pipe2", [0; 4], 0);
    let pipe = object(&d, SHELL, "read", 3);
    assert!(pipe.is_some() && object(&d, SHELL, "write", 4) == pipe);
    assert_eq!([5, 6].map(|fd| object(&d, SHELL, "read", fd)), [None; 2]);
    d.seen(SHELL, 5, file, LATER);
    let opened = object(&d, SHELL, "read", 5);
    call(&mut d, SHELL, "openat", [0; 4], 5);
    assert_eq!(object(&d, SHELL, "read", 5), opened);
    // A descriptor that was there before is not new.
    call(&mut d, LEFT, "dup2", [0, 3, 0, 0], 3);
    d.seen(LEFT, 4, name, BEFORE);
    d.seen(LEFT, 5, name, BEFORE);
    call(&mut d, LEFT, "pipe2", [0; 4], 0);
    assert_ne!(object(&d, LEFT, "read", 6), object(&d, LEFT, "read", 5));
    assert_eq!(object(&d, LEFT, "read", 6), object(&d, LEFT, "write", 7));
}

#[test]
fn who_made_a_connection_is_known_from_its_call_and_from_the_name() {
    let mut symbols = Symbols::default();
    let names = ["socket:[7]", "socket:[8]:accepted", "socket:[8]", "socket:[9]:connected"];
    let [taken, server, again, client] = names.map(|name| symbols.intern(name));
    let mut d = Descriptors::new(&symbols, Arch::X86_64);
    call(&mut d, LEFT, "accept4", [3, 0, 0, 0], 4);
    d.seen(LEFT, 4, taken, BEFORE);
    assert!(!d.objects.origins_recorded);
    d.seen(LEFT, 5, server, BEFORE);
    d.seen(RIGHT, 9, again, BEFORE);
    d.seen(LEFT, 6, client, BEFORE);
    assert!(d.objects.origins_recorded);
    call(&mut d, LEFT, "socketpair", [1, 1, 0, 0], 0);
    let origin = |fd| d.objects.get(object(&d, LEFT, "read", fd)?).map(|object| object.origin);
    assert_eq!(
        [4, 5, 6, 7].map(origin),
        [Origin::Accepted, Origin::Accepted, Origin::Connected, Origin::Neither].map(Some)
    );
    assert_eq!(object(&d, RIGHT, "read", 9), object(&d, LEFT, "read", 5), "one connection");
}
