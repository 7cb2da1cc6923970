//! The programs on this machine's kernel, with perf events of our own thread alone. As root.

use super::*;
use crate::affinity::Affinity;
use crate::perf::schema::{Layout, fields};
use crate::perf::sys::{Event, Every, Open, STACK_BYTES, Source, Whom};
use crate::perf::tracefs::Tracefs;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// All that counting needs, for this thread; none, loudly, where it cannot be had.
struct Bench {
    schema: Schema,
    rings: Vec<Ring>,
    /// Records of the user half that [`Self::seen`] met.
    sites: u64,
    /// Time in the calls that it met as counted.
    inside: u64,
    _events: Vec<Open>,
    counting: Counting,
}

fn event(source: Source) -> Event {
    Event {
        source,
        every: Every::Count(1),
        layout: Layout { fields: fields::BASE | fields::RAW, registers: 0 },
        dump: STACK_BYTES,
        no_kernel: false,
        no_kernel_chain: false,
        no_user_chain: false,
    }
}

impl Bench {
    fn new() -> Option<Self> {
        let made = Self::made();
        if let Err(error) = &made {
            eprintln!("skipped: dense calls cannot be counted here: {error}");
        }
        made.ok()
    }

    fn made() -> io::Result<Self> {
        let tracefs = Tracefs::open().map_err(io::Error::other)?;
        let id = |name| Ok::<_, io::Error>(Source::Tracepoint(tracefs.tracepoint(name)?.id));
        let me = Whom::Alone(unsafe { libc::gettid() });
        let mut schema = Schema::new(Offsets::default());
        let (mut rings, mut events, mut at, mut telling) = (vec![], vec![], vec![], vec![]);
        for cpu in crate::proc::online_cpus() {
            let leader = event(Source::Dummy).open(Whom::Everyone, cpu)?;
            rings.push(Ring::map(&leader, 1 << 20)?);
            for (role, source, whom) in [
                (Role::Enter, id("raw_syscalls/sys_enter")?, me),
                (Role::Leave, id("raw_syscalls/sys_exit")?, me),
                (Role::Dense, Source::Told, Whom::Everyone),
                (Role::DenseSite, Source::Told, Whom::Everyone),
            ] {
                let event = event(source);
                let open = event.open(whom, cpu)?;
                open.write_to(&leader)?;
                open.enable()?;
                schema.add(open.id, role, event.layout);
                match role {
                    Role::Dense => telling.push((cpu.cast_unsigned(), [open.as_raw_fd(); 2])),
                    Role::DenseSite => telling.last_mut().unwrap().1[1] = open.as_raw_fd(),
                    _ => at.push(open.as_raw_fd()),
                }
                events.push(open);
            }
            events.push(leader);
        }
        let counting = Counting::load([at[0], at[1]], &telling, Offsets::default())?;
        Ok(Self { schema, rings, sites: 0, inside: 0, _events: events, counting })
    }

    fn begin(&self) {
        self.counting.begin(unsafe { libc::gettid() }.cast_unsigned());
    }

    /// What the rings say of calls of this number: entries, returns, calls told open, calls counted.
    fn seen(&mut self, nr: libc::c_long) -> [u64; 4] {
        let mut seen = [0; 4];
        let mut in_it = false;
        let mut records = Vec::new();
        for ring in &mut self.rings {
            ring.copy_to(&mut records);
        }
        let mut rest = &records[..];
        let mut all = Vec::new();
        while let Some(length) = decode::length(rest) {
            all.extend(decode::record(rest, &self.schema));
            rest = &rest[length..];
        }
        all.sort_by_key(|record| record.at);
        for record in all {
            let Body::Sample(sample) = record.body else { continue };
            match sample.role {
                Role::Enter => {
                    in_it = sample.raw_u64(8) == Some(nr.cast_unsigned());
                    seen[0] += u64::from(in_it);
                }
                Role::Leave => seen[1] += u64::from(std::mem::take(&mut in_it)),
                Role::DenseSite => self.sites += 1,
                _ => {
                    let told = Told(sample.raw);
                    if let Some((open, _)) = told.open_call() {
                        in_it = libc::c_long::from(open) == nr;
                        seen[2] += u64::from(in_it);
                    }
                    let alike = told.counted().filter(|alike| libc::c_long::from(alike.nr) == nr);
                    let mut inside = 0;
                    for alike in alike {
                        seen[3] += u64::from(alike.count);
                        inside += alike.inside;
                    }
                    self.inside += inside;
                    assert_eq!(told.missed(), 0);
                }
            }
        }
        seen
    }
}

/// An empty call that no library makes by itself.
fn call() {
    unsafe { libc::syscall(libc::SYS_getpgid, 0) };
}

#[test]
fn each_call_is_either_recorded_or_counted() {
    let Some(mut bench) = Bench::new() else { return };
    bench.begin();
    (0..100_000).for_each(|_| call());
    // Another kind tells what was counted until then.
    unsafe { libc::syscall(libc::SYS_getppid, 0) };
    drop(std::fs::File::open("/dev/null"));
    let [entered, left, open, counted] = bench.seen(libc::SYS_getpgid);
    assert_eq!(entered + open + counted, 100_000, "{entered} {left} {open} {counted}");
    assert_eq!(entered + open, left, "{entered} {left} {open} {counted}");
    assert!(counted > 90_000, "{counted}");
    assert!(bench.sites > 0);
}

#[test]
fn nobody_else_is_counted() {
    let Some(mut bench) = Bench::new() else { return };
    bench.counting.begin(1);
    (0..1000).for_each(|_| call());
    assert_eq!(bench.seen(libc::SYS_getpgid), [1000, 1000, 0, 0]);
}

#[test]
fn who_shares_a_cpu_with_the_counted_is_not_counted() {
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
    bench.begin();
    (0..100_000).for_each(|_| call());
    done.store(true, Ordering::Relaxed);
    drop(std::fs::File::open("/dev/null"));
    other.join().unwrap();
    let [entered, left, open, counted] = bench.seen(libc::SYS_getpgid);
    assert_eq!(entered + open + counted, 100_000, "{entered} {left} {open} {counted}");
    assert!(counted > 90_000, "{counted}");
}

#[test]
fn a_call_that_wakes_or_waits_is_told_by_itself() {
    let Some(mut bench) = Bench::new() else { return };
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let echo = std::thread::spawn(move || {
        tell.send(unsafe { libc::gettid() }).unwrap();
        let mut byte = [0];
        while std::io::Read::read(&mut reader, &mut byte).is_ok_and(|read| read == 1) {}
    });
    let echoes = format!("/proc/self/task/{}/stat", told.recv().unwrap());
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
    let [entered, left, open, counted] = bench.seen(libc::SYS_write);
    assert_eq!((entered + open, left, counted), (5, 5, 0), "{entered} {open}");
}

#[test]
fn what_it_costs_is_measured() {
    let Some(bench) = Bench::new() else { return };
    let Cost { user, kernel } = bench.counting.cost(1.0);
    assert!(kernel > 0 && user > 0, "{user} {kernel}");
}

#[test]
fn who_waits_or_wakes_often_is_counted_no_more() {
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
    assert_eq!(bench.seen(libc::SYS_getpgid), [1000, 1000, 0, 0]);
}

#[test]
fn long_calls_among_short_ones_keep_their_time() {
    let Some(mut bench) = Bench::new() else { return };
    // The same call with the same result, at once and after a walk of some 50 µs.
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
    let [_, _, _, counted] = bench.seen(libc::SYS_faccessat);
    assert!(counted > 500, "{counted}");
    // One in 11 is long. From outside they look longer.
    let (inside, least) = (bench.inside, counted / 11 * shortest * 9 / 10);
    assert!((least..all).contains(&inside), "{counted} {shortest} {inside} {all}");
}
