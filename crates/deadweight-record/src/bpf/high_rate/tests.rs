//! Counting on this machine's kernel, with calls of this thread. As root.

use super::*;
use crate::bpf::tests::Output;
use crate::procfs::affinity::Affinity;
use std::sync::atomic::AtomicBool;

/// The programs with counting, for this thread. None, with a message, if they are not allowed.
struct Bench {
    output: Output,
    /// Stacks of calls among the records of [`Self::counts`].
    sites: u64,
    /// Time in the counted calls.
    inside: u64,
    counting: Counting,
}

impl Bench {
    fn new() -> Option<Self> {
        let output = Output::new()?;
        let counting = Counting::start(output.programs.clone());
        Some(Self { output, sites: 0, inside: 0, counting })
    }

    fn begin(&self) {
        self.counting.begin(own_tid());
    }

    /// Records of calls of this number: entries, returns, open calls, counted calls.
    fn counts(&mut self, nr: libc::c_long) -> [u64; 4] {
        let mut counts = [0; 4];
        let mut in_call = false;
        self.output.take(own_tid(), |record| {
            let Body::Sample(sample) = &record.body else { return };
            match sample.role {
                Role::Enter => {
                    in_call = sample.raw_u64(0) == Some(nr.cast_unsigned());
                    counts[0] += u64::from(in_call);
                }
                Role::Leave => counts[1] += u64::from(std::mem::take(&mut in_call)),
                Role::CallSite => self.sites += 1,
                _ => {
                    let record = CountRecord(sample.raw);
                    if let Some((open, _)) = record.open_call() {
                        in_call = libc::c_long::from(open) == nr;
                        counts[2] += u64::from(in_call);
                    }
                    for call in record.counts().filter(|a| libc::c_long::from(a.nr) == nr) {
                        counts[3] += u64::from(call.count);
                        self.inside += call.inside;
                    }
                    assert_eq!(record.missed(), 0);
                }
            }
        });
        counts
    }
}

/// An empty call that no library makes by itself.
fn call() {
    unsafe { libc::syscall(libc::SYS_getpgid, 0) };
}

#[test]
fn counting_costs_something_on_a_thread_that_is_not_followed() {
    let Some(bench) = Bench::new() else { return };
    bench.output.programs.follow_all(false);
    let unrecorded = Unrecorded { empty: 1.0, short: 2.0 };
    let Cost { user, kernel } = cost(&bench.output.programs, unrecorded);
    assert!(user + kernel > 0, "{user} {kernel}");
}

#[test]
fn each_call_is_either_recorded_or_counted() {
    let Some(mut bench) = Bench::new() else { return };
    bench.begin();
    (0..100_000).for_each(|_| call());
    // Another kind of call has the counts output.
    unsafe { libc::syscall(libc::SYS_getppid, 0) };
    drop(std::fs::File::open("/dev/null"));
    let [entered, left, open, counted] = bench.counts(libc::SYS_getpgid);
    assert_eq!(entered + open + counted, 100_000, "{entered} {left} {open} {counted}");
    assert_eq!(entered + open, left, "{entered} {left} {open} {counted}");
    assert!(counted > 90_000, "{counted}");
    assert!(bench.sites > 0);
}

#[test]
fn no_other_task_is_counted() {
    let Some(mut bench) = Bench::new() else { return };
    bench.counting.begin(1);
    (0..1000).for_each(|_| call());
    assert_eq!(bench.counts(libc::SYS_getpgid), [1000, 1000, 0, 0]);
}

#[test]
fn a_task_on_the_same_cpu_is_not_counted() {
    let Some(mut bench) = Bench::new() else { return };
    let cpu = Affinity::of_this_thread().cpus().next().and_then(Affinity::only).unwrap();
    let (done, other) = (Arc::new(AtomicBool::new(false)), cpu);
    let until = done.clone();
    assert!(cpu.apply_to(0));
    let other = std::thread::spawn(move || {
        assert!(other.apply_to(0));
        while !until.load(Ordering::Relaxed) {
            call();
        }
    });
    // New threads of this process are followed, too, and would fill the ring buffers.
    bench.counting.programs.follow_all(false);
    bench.counting.programs.follow(own_tid());
    bench.begin();
    (0..100_000).for_each(|_| call());
    done.store(true, Ordering::Relaxed);
    drop(std::fs::File::open("/dev/null"));
    other.join().unwrap();
    let [entered, left, open, counted] = bench.counts(libc::SYS_getpgid);
    assert_eq!(entered + open + counted, 100_000, "{entered} {left} {open} {counted}");
    assert!(counted > 90_000, "{counted}");
}

#[test]
fn a_call_that_wakes_or_waits_is_recorded_alone() {
    let Some(mut bench) = Bench::new() else { return };
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let echo = std::thread::spawn(move || {
        sender.send(own_tid()).unwrap();
        let mut byte = [0];
        while std::io::Read::read(&mut reader, &mut byte).is_ok_and(|read| read == 1) {}
    });
    let echoes = format!("/proc/self/task/{}/stat", receiver.recv().unwrap());
    let sleeps = || std::fs::read_to_string(&echoes).unwrap().contains(") S ");
    bench.begin();
    for _ in 0..5 {
        (0..1000).for_each(|_| call());
        while !sleeps() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::io::Write::write_all(&mut writer, &[1]).unwrap();
    }
    drop(writer);
    echo.join().unwrap();
    let [entered, left, open, counted] = bench.counts(libc::SYS_write);
    assert_eq!((entered + open, left, counted), (5, 5, 0), "{entered} {open}");
}

#[test]
fn the_cost_is_measured() {
    let Some(bench) = Bench::new() else { return };
    let Cost { user, kernel } = bench.counting.cost(Unrecorded { empty: 1.0, short: 1.0 });
    assert!(kernel > 0 && user > 0, "{user} {kernel}");
}

#[test]
fn a_task_that_often_waits_or_wakes_is_no_longer_counted() {
    let Some(mut bench) = Bench::new() else { return };
    let (mut there, mut back) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let echo = std::thread::spawn(move || {
        let mut byte = [0];
        while std::io::Read::read(&mut there.0, &mut byte).is_ok_and(|read| read == 1) {
            std::io::Write::write_all(&mut back.1, &byte).unwrap();
        }
    });
    bench.begin();
    for _ in 0..20 {
        std::io::Write::write_all(&mut there.1, &[1]).unwrap();
        std::io::Read::read_exact(&mut back.0, &mut [0]).unwrap();
    }
    (0..1000).for_each(|_| call());
    drop(there.1);
    echo.join().unwrap();
    assert_eq!(bench.counts(libc::SYS_getpgid), [1000, 1000, 0, 0]);
}

#[test]
fn long_calls_among_short_ones_keep_their_time() {
    let Some(mut bench) = Bench::new() else { return };
    // The same call with the same result, short and after a path walk of some 50 µs.
    let (short, long) = (c"/".to_owned(), std::ffi::CString::new("/.".repeat(2000)).unwrap());
    let look = |path: &std::ffi::CStr| {
        let start = std::time::Instant::now();
        let at = libc::AT_FDCWD;
        let found = unsafe { libc::syscall(libc::SYS_faccessat, at, path.as_ptr(), libc::F_OK) };
        assert_eq!(found, 0);
        u64::try_from(start.elapsed().as_nanos()).unwrap()
    };
    bench.begin();
    let (mut all, mut shortest) = (0, u64::MAX);
    for _ in 0..100 {
        let took = look(&long);
        shortest = shortest.min(took);
        all += took + (0..10).map(|_| look(&short)).sum::<u64>();
    }
    drop(std::fs::File::open("/dev/null"));
    let [_, _, _, counted] = bench.counts(libc::SYS_faccessat);
    assert!(counted > 500, "{counted}");
    // One in 11 is long. From outside they look longer.
    let (inside, least) = (bench.inside, counted / 11 * shortest * 9 / 10);
    assert!((least..all).contains(&inside), "{counted} {shortest} {inside} {all}");
}

#[test]
fn a_task_that_is_no_longer_counted_is_recorded() {
    let Some(mut bench) = Bench::new() else { return };
    bench.begin();
    (0..1000).for_each(|_| call());
    bench.counting.end(own_tid());
    (0..100).for_each(|_| call());
    let [entered, left, open, counted] = bench.counts(libc::SYS_getpgid);
    assert!(counted < 1000 && entered >= 100, "{entered} {left} {open} {counted}");
}

#[test]
fn a_task_is_no_longer_counted_if_other_calls_keep_interrupting() {
    let Some(mut bench) = Bench::new() else { return };
    bench.begin();
    for _ in 0..200 {
        call();
        // No call that is counted.
        unsafe { libc::syscall(libc::SYS_sched_yield) };
    }
    let [entries, returns, _, counted] = bench.counts(libc::SYS_getpgid);
    assert_eq!((entries + counted, returns), (200, entries));
    assert!((1..20).contains(&counted), "{counted} calls were counted");
}

#[test]
fn the_pauses_of_a_task_double() {
    let mut paused = (0, 0);
    let at: Vec<_> = (0..9_000).filter(|ms| pause(&mut paused, ms * 1_000_000)).collect();
    assert_eq!(at[..4], [0, 1, 3, 7]);
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= 1000));
}
