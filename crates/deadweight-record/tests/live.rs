//! Real programs recorded on this machine, checked against what the kernel itself counted.
//!
//! Needs root (perf events of the whole machine). Without it, every test says why it was skipped.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
#![expect(clippy::print_stdout, reason = "a skipped test says so; a failed one shows what it saw")]

use deadweight_record::{Outcome, Plan, Request, record};
use deadweight_trace::raw::{RawEvent, RawKind, Sink};
use deadweight_trace::{Meta, Off};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// The parts of a recording that the tests check.
#[derive(Default)]
struct Seen {
    zero: u64,
    meta: Meta,
    last: u64,
    events: u64,
    /// Own tasks: born, became a program, died.
    births: BTreeSet<u32>,
    execs: Vec<(u32, String)>,
    formers: Vec<u32>,
    exits: BTreeSet<u32>,
    dead: BTreeSet<u32>,
    /// Nanoseconds on a CPU of own tasks, and since when each is on one.
    on_cpu: u64,
    on_since: BTreeMap<u32, u64>,
    calls: BTreeMap<u16, u64>,
    backs: u64,
    faults: u64,
    fault_ends: u64,
    samples: u64,
    stacks: u64,
    sites: BTreeMap<&'static str, u64>,
    /// What the task's latest event was that a site can follow.
    before: BTreeMap<u32, &'static str>,
    blocked: u64,
    blocked_with_site: u64,
    /// The longest wait of an own task in ns, and whether it has a stack.
    longest_wait: (u64, bool),
    off_since: BTreeMap<u32, (u64, bool)>,
    wakes: u64,
    mains: u64,
    maps: Vec<String>,
    descriptors: BTreeMap<i32, String>,
    probes: BTreeMap<String, u64>,
    lost: u64,
}

impl Sink for Seen {
    fn begin(&mut self, meta: &Meta) {
        self.zero = meta.zero;
        self.last = meta.zero;
    }

    fn event(&mut self, event: &RawEvent<'_>) {
        assert!(event.at >= self.last, "events are in order of time");
        self.last = event.at;
        self.events += 1;
        let task = event.task.0;
        let was_born = self.births.contains(&task);
        let own = self.births.is_empty() || was_born;
        match &event.kind {
            // Not the notes of other programs' threads.
            RawKind::Fork { child, .. } => self.births.extend(was_born.then_some(child.0)),
            RawKind::Exec { path, former } => {
                self.formers.push(former.0);
                // The first exec is the root's; the root has no recorded birth.
                self.births.insert(task);
                self.execs.push((task, (*path).to_owned()));
            }
            RawKind::Exit => _ = self.exits.insert(task),
            RawKind::On if own => {
                self.on_since.insert(task, event.at);
                if let Some((since, sited)) = self.off_since.remove(&task) {
                    self.longest_wait = self.longest_wait.max((event.at - since, sited));
                }
            }
            RawKind::Off { why, chain } => {
                let waits = *why == Off::Blocked;
                assert!(!(waits && chain.is_empty()), "a wait has a kernel stack");
                if let Some(since) = self.on_since.remove(&task) {
                    self.on_cpu += event.at - since;
                }
                if *why == Off::Dead {
                    self.dead.insert(task);
                }
                self.off_since.insert(task, (event.at, false));
                self.blocked += u64::from(*why == Off::Blocked);
                self.before.insert(task, if *why == Off::Blocked { "wait" } else { "made room" });
            }
            RawKind::Syscall { nr, .. } => {
                *self.calls.entry(*nr).or_default() += 1;
                self.before.insert(task, "call");
            }
            RawKind::Back { .. } => self.backs += 1,
            RawKind::Calls(calls) => {
                *self.calls.entry(calls.nr).or_default() += u64::from(calls.count);
                self.backs += u64::from(calls.count);
            }
            RawKind::Fault { .. } => {
                self.faults += 1;
                self.before.insert(task, "fault");
            }
            RawKind::FaultEnd { .. } => self.fault_ends += 1,
            RawKind::Sample { user, .. } => {
                self.samples += 1;
                self.stacks += u64::from(user.is_some_and(|u| !u.stack.is_empty()));
            }
            RawKind::Site(user) => {
                assert!(user.ip != 0 && user.sp != 0);
                let of = self.before.remove(&task).expect("a site follows its event");
                *self.sites.entry(of).or_default() += 1;
                self.off_since.entry(task).and_modify(|off| off.1 = true);
                self.blocked_with_site += u64::from(of == "wait");
            }
            RawKind::Wake { .. } => self.wakes += 1,
            RawKind::Main => self.mains += 1,
            RawKind::Map { path, .. } => self.maps.push((*path).to_owned()),
            RawKind::Fd { fd, what } => _ = self.descriptors.insert(*fd, (*what).to_owned()),
            RawKind::Probe { probe, .. } => {
                *self.probes.entry((*probe).to_owned()).or_default() += 1;
            }
            RawKind::Lost { count } => self.lost += count,
            _ => {}
        }
    }

    fn finish(&mut self, meta: Meta) {
        self.meta = meta;
    }
}

/// Records a command; none where recording is impossible.
fn unchecked(argv: &[&str]) -> Option<(Outcome, Seen)> {
    let plan = Plan::detect();
    if let Err(error) = plan.allows_recording() {
        println!("SKIPPED: {error}");
        return None;
    }
    let argv = argv.iter().map(OsString::from).collect();
    let request = Request { argv, ..Request::default() };
    let mut seen = Seen::default();
    let outcome = record(&request, &plan, &mut seen).unwrap();
    println!("{outcome:?}\n{:?}\nsites {:?}", seen.meta, seen.sites);
    Some((outcome, seen))
}

/// Records a command and checks what holds for any program whose tasks all end before it does.
fn recorded(argv: &[&str]) -> Option<(Outcome, Seen)> {
    let (outcome, seen) = unchecked(argv)?;
    assert_eq!((outcome.lost, seen.lost), (0, 0), "nothing was lost");
    assert_eq!(seen.births, seen.exits, "every task was born and died");
    // A zombie may be waited for, and so the root end, before it leaves its CPU for good.
    assert!(seen.dead.contains(&seen.meta.root.0) && seen.dead.is_subset(&seen.births));
    assert!(seen.meta.complete && seen.meta.start < seen.meta.end);
    assert!(seen.last <= seen.zero + seen.meta.end.0 + 10_000_000);
    Some((outcome, seen))
}

/// On-CPU time against the kernel's own count, which has a granularity and a convention of its
/// own: it starts to charge a woken task some µs before the switch.
fn on_cpu_matches(outcome: &Outcome, seen: &Seen, switches: u64) -> bool {
    let counted = outcome.usage.user.0 + outcome.usage.system.0;
    let steal = seen.meta.steal.0;
    let granted = counted / 20 + switches * 6000 + steal + 300_000;
    counted.abs_diff(seen.on_cpu) <= granted
}

/// Checks that.
fn assert_on_cpu_matches(outcome: &Outcome, seen: &Seen, switches: u64) {
    let counted = outcome.usage.user.0 + outcome.usage.system.0;
    assert!(
        on_cpu_matches(outcome, seen, switches),
        "on CPU {} ns, the kernel counted {counted}: {:?}, stolen {} ns, {switches} switches",
        seen.on_cpu,
        outcome.usage,
        seen.meta.steal.0
    );
}

/// A C program built for this test.
fn program(name: &str, flags: &[&str], source: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (code, binary) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&code, source).unwrap();
    let mut build = Command::new("cc");
    build.args(["-O1", "-g", "-pthread"]).args(flags).arg("-o").arg(&binary).arg(&code);
    assert!(build.status().unwrap().success());
    binary
}

#[test]
fn a_short_static_program() {
    let binary = program("nothing", &["-static"], "int main(void) { return 3; }");
    let attempt = || recorded(&[binary.to_str().unwrap()]);
    let Some((mut outcome, mut seen)) = attempt() else { return };
    if !on_cpu_matches(&outcome, &seen, 4) {
        // It lives a millisecond, and a hypervisor takes as much at times: not twice in a row.
        (outcome, seen) = attempt().unwrap();
    }
    assert_eq!(outcome.exit.code, 3);
    assert_eq!(seen.execs, [(seen.meta.root.0, binary.to_str().unwrap().to_owned())]);
    assert!(seen.maps.contains(&binary.to_str().unwrap().to_owned()), "{:?}", seen.maps);
    assert_eq!(seen.mains, 1);
    assert!(seen.descriptors.contains_key(&0) && seen.descriptors.contains_key(&2));
    assert_on_cpu_matches(&outcome, &seen, 4);
}

#[test]
fn a_shell_with_a_pipe_that_waits() {
    let Some((outcome, seen)) = recorded(&["sh", "-c", "sleep .1 | cat"]) else { return };
    assert!(outcome.wall.0 > 100_000_000);
    let names: Vec<_> = seen.execs.iter().map(|(_, p)| p.rsplit('/').next().unwrap()).collect();
    assert_eq!(names[0], "sh");
    assert!(names.contains(&"sleep") && names.contains(&"cat"), "{names:?}");
    assert_eq!(seen.mains, 3, "each program's start is seen");
    assert!(seen.wakes >= 3, "sleep by the clock, cat by sleep, sh by both");
    // Of those that follow each other within some 100 µs, as for the disk, some are left out.
    let stacks = seen.blocked_with_site;
    assert!(
        seen.longest_wait.1 && stacks >= 3,
        "rare waits have a stack: {stacks} of {}",
        seen.blocked
    );
    assert_on_cpu_matches(&outcome, &seen, 40);
}

#[test]
fn a_million_small_reads() {
    let source = r#"#include <fcntl.h>
#include <unistd.h>
int main(void) {
    int zero = open("/dev/zero", O_RDONLY);
    char byte;
    for (int i = 0; i < 1000000; i++) if (read(zero, &byte, 1) != 1) return 1;
    return 0;
}"#;
    let binary = program("reads", &[], source);
    let Some((outcome, seen)) = recorded(&[binary.to_str().unwrap()]) else { return };
    let read = u16::try_from(libc::SYS_read).unwrap();
    assert!((1_000_000..1_000_020).contains(&seen.calls[&read]));
    let calls: u64 = seen.calls.values().sum();
    // exec returns without a recorded entry, exit_group never returns.
    assert_eq!(seen.backs, calls);
    assert!(seen.meta.overhead.syscall_user + seen.meta.overhead.syscall_kernel > 0);
    assert!(seen.sites["call"] > 10, "{}", seen.sites["call"]);
    assert_on_cpu_matches(&outcome, &seen, 20);
}

#[test]
fn a_long_wait_after_many_short_ones_has_a_stack() {
    let source = r#"#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back)) return 1;
    if (!fork()) {
        close(there[1]);
        while (read(there[0], &byte, 1) == 1) if (write(back[1], &byte, 1) != 1) return 1;
        return 0;
    }
    for (int i = 0; i < 20000; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
    nanosleep(&(struct timespec){.tv_sec = 2}, 0);
    close(there[1]);
    wait(0);
    return 0;
}"#;
    let binary = program("waits", &[], source);
    let Some((_, seen)) = recorded(&[binary.to_str().unwrap()]) else { return };
    assert!(seen.blocked > 10_000, "{}", seen.blocked);
    assert!(seen.blocked_with_site < seen.blocked / 2);
    assert!(seen.longest_wait.0 >= 2_000_000_000 && seen.longest_wait.1, "{:?}", seen.longest_wait);
}

#[test]
fn a_thread_that_becomes_another_program() {
    let source = r#"#include <pthread.h>
#include <unistd.h>
static void *become(void *no) {
    execl("/bin/sh", "sh", "-c", "exit 9", (char *)0);
    return no;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, become, 0);
    pause();
}"#;
    let binary = program("becomes", &[], source);
    let Some((outcome, seen)) = unchecked(&[binary.to_str().unwrap()]) else { return };
    assert_eq!(outcome.exit.code, 9);
    let root = seen.meta.root.0;
    let former: Vec<_> = seen.formers.iter().map(|f| *f == root).collect();
    assert_eq!(former, [true, false], "the second exec was called by another thread");
    assert_eq!(seen.execs[1], (root, "/bin/sh".to_owned()));
}

#[test]
fn tasks_that_outlive_the_program_are_ignored() {
    let Some((outcome, seen)) = unchecked(&["sh", "-c", "sleep .5 & exit 4"]) else { return };
    assert_eq!(outcome.exit.code, 4);
    assert!(outcome.wall.0 < 400_000_000, "{}", outcome.wall);
    assert_eq!(seen.births.len(), 2);
    assert!(seen.exits.contains(&seen.meta.root.0) && seen.exits.len() < 3);
}

#[test]
fn threads_faults_and_samples() {
    let source = r#"#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static void *work(void *size) {
    char *memory = mmap(0, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, (size_t)size, MADV_NOHUGEPAGE);
    volatile unsigned long sum = 0;
    memset(memory, 1, (size_t)size);
    for (unsigned long i = 0; i < 60000000; i++) sum += i;
    munmap(memory, (size_t)size);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void *)(8ul << 20));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}"#;
    let binary = program("threads", &[], source);
    let Some((outcome, seen)) = recorded(&[binary.to_str().unwrap()]) else { return };
    assert_eq!(seen.births.len(), 4);
    assert_eq!(seen.mains, 1);
    assert!(seen.faults >= seen.fault_ends && seen.fault_ends > 3000);
    if cfg!(target_arch = "x86_64") {
        assert!(seen.sites["fault"] > 1, "some faults have a stack: {:?}", seen.sites);
    }
    let expected = seen.on_cpu / seen.meta.sample_period;
    assert!(seen.samples.abs_diff(expected) <= expected / 10 + 5, "{} {expected}", seen.samples);
    assert!(seen.stacks * 10 >= seen.samples * 9);
    assert_on_cpu_matches(&outcome, &seen, seen.blocked);
}
