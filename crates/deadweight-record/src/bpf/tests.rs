//! The programs on this machine's kernel, with calls of this process. As root.

use super::*;
use crate::perf::decode::{self, Body, Record};
use crate::perf::ring::Ring;
use crate::perf::schema::{Schema, fields};
use crate::perf::sys::{Event, Open, Scope, Source};
use crate::procfs::own_tid;
use perf_event_open_sys::bindings as abi;
use std::os::fd::AsRawFd;

/// The programs and their output. None, with a message, if they are not allowed.
pub(crate) struct Output {
    pub(crate) programs: Arc<Programs>,
    schema: Schema,
    records: Vec<RecordRing>,
    rings: Vec<Ring>,
    _events: Vec<Open>,
}

impl Output {
    /// Follows the calling thread.
    pub(crate) fn new() -> Option<Self> {
        Self::within(16 << 20)
    }

    /// The same, with this much memory for each ring.
    fn within(most: usize) -> Option<Self> {
        let opened = Self::open(most);
        if let Err(error) = &opened {
            // Elsewhere the programs themselves are at fault.
            let refused = unsafe { libc::geteuid() } != 0
                || !in_initial_pid_namespace()
                || !std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
            assert!(refused, "{error}");
            eprintln!("SKIPPED tests of BPF programs, which are not allowed here: {error}");
        }
        opened.ok()
    }

    fn open(most: usize) -> io::Result<Self> {
        let event = |source| Event::of_each(source, fields::BASE | fields::RAW);
        let cpus = crate::procfs::online_cpus();
        let (programs, _) = Programs::start_within(&cpus, most, |_| ())?;
        let mut schema = Schema::default();
        schema.set_programs();
        let (mut records, mut rings, mut events) = (vec![], vec![], vec![]);
        for cpu in cpus {
            let leader = event(Source::Dummy).open(Scope::AllTasks, cpu)?;
            rings.push(Ring::map(&leader, 1 << 20)?);
            records.push(programs.ring(cpu.cast_unsigned()));
            for role in SITE_ROLES {
                let event = event(Source::BpfOutput);
                let open = event.open(Scope::AllTasks, cpu)?;
                open.write_to(&leader)?;
                open.enable()?;
                schema.add(open.id, role, event.layout);
                programs.set_sites(role, cpu.cast_unsigned(), open.as_raw_fd())?;
                events.push(open);
            }
            for (major, counts) in [
                (false, abi::PERF_COUNT_SW_PAGE_FAULTS_MIN),
                (true, abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
            ] {
                let open = Event::of_each(Source::Software(counts), fields::BASE);
                let open = open.open(Scope::AllTasks, cpu)?;
                open.set_program(programs.fault_end(major).unwrap())?;
                open.enable()?;
                events.push(open);
            }
            events.push(leader);
        }
        programs.record(true);
        programs.follow(own_tid());
        Ok(Self { programs, schema, records, rings, _events: events })
    }

    /// Takes the records of this task, in order of time.
    pub(crate) fn take(&mut self, task: u32, mut each: impl FnMut(&Record<'_>)) {
        self.take_all(|record| {
            if record.task == task {
                each(record);
            }
        });
    }

    /// Takes all records of the programs.
    fn read(&self, bytes: &mut Vec<u8>) {
        for ring in &self.records {
            let before = bytes.len();
            assert!(ring.copy_to(bytes));
            RecordRing::as_perf_does(&mut bytes[before..], ring.cpu());
        }
    }

    /// Takes all records, in order of time.
    fn take_all(&mut self, each: impl FnMut(&Record<'_>)) {
        let mut bytes = Vec::new();
        self.read(&mut bytes);
        self.rings.iter_mut().for_each(|ring| ring.copy_to(&mut bytes));
        let mut all: Vec<_> = decode::records(&bytes, &self.schema).collect();
        all.sort_by_key(|record| record.at);
        all.iter().for_each(each);
    }

    /// The calls of this task: number, arguments and result of each, and the number of stacks.
    fn calls(&mut self, task: u32) -> (Vec<(u64, [u64; 6], i64)>, usize) {
        let (mut calls, mut open, mut sites) = (vec![], None, 0);
        let offsets = self.schema.offsets;
        self.take(task, |record| {
            let Body::Sample(sample) = &record.body else { return };
            let word = |at| sample.raw_u64(at).unwrap();
            match sample.role {
                Role::Enter => {
                    let args = std::array::from_fn(|i| word(offsets.enter_args + 8 * i));
                    open = Some((word(offsets.enter_nr), args));
                }
                Role::Leave => {
                    let result = word(offsets.leave_ret).cast_signed();
                    calls.extend(open.take().map(|(nr, args)| (nr, args, result)));
                }
                Role::CallSite => sites += 1,
                _ => {}
            }
        });
        (calls, sites)
    }
}

/// A child makes a call that no library makes, and nothing else. Returns its id.
fn calling_child() -> u32 {
    match unsafe { libc::fork() } {
        0 => unsafe {
            libc::syscall(libc::SYS_getpgid, -1);
            libc::_exit(0)
        },
        child => {
            assert!(child > 0);
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            child.cast_unsigned()
        }
    }
}

const GETPGID: u64 = libc::SYS_getpgid.cast_unsigned();

#[test]
fn a_call_is_recorded_with_its_arguments_and_its_result() {
    let Some(mut output) = Output::new() else { return };
    unsafe { libc::syscall(libc::SYS_getpgid, -1_i64, 2, 3, 4, 5, u64::MAX) };
    let (calls, sites) = output.calls(own_tid());
    let expected = (GETPGID, [u64::MAX, 2, 3, 4, 5, u64::MAX], -i64::from(libc::ESRCH));
    assert!(calls.contains(&expected), "{calls:?}");
    assert!(sites > 0);
}

#[test]
fn stacks_of_calls_come_in_a_burst_and_then_in_an_interval() {
    let Some(mut output) = Output::new() else { return };
    let start = std::time::Instant::now();
    (0..2000).for_each(|_| _ = unsafe { libc::syscall(libc::SYS_getpgid, -1) });
    let (calls, sites) = output.calls(own_tid());
    // Taking the records makes calls too.
    let quarters = usize::try_from(start.elapsed().as_micros() / 250).unwrap();
    assert!(calls.len() >= 2000);
    assert!((16..=quarters + 18).contains(&sites), "{sites} in {quarters}");
}

#[test]
fn after_many_stacks_the_interval_is_longer() {
    const MANY: usize = 2048;
    let Some(mut output) = Output::new() else { return };
    let mut stacks = Vec::new();
    while stacks.len() < MANY + 500 {
        (0..500).for_each(|_| _ = unsafe { libc::syscall(libc::SYS_getpgid, -1) });
        output.take(own_tid(), |record| {
            let is_site =
                matches!(&record.body, Body::Sample(sample) if sample.role == Role::CallSite);
            stacks.extend(is_site.then_some(record.at));
        });
    }
    let took = |stacks: &[u64]| (stacks[stacks.len() - 1] - stacks[0]) / stacks.len() as u64;
    let later = &stacks[MANY + 16..];
    // A burst of 16 may come at once.
    let least = 500_000 * (later.len() as u64 - 17) / later.len() as u64;
    assert!(took(later) >= least, "{} after {}", took(later), took(&stacks[..MANY]));
}

#[test]
fn children_of_followed_tasks_are_followed() {
    let Some(mut output) = Output::new() else { return };
    let child = calling_child();
    let (calls, _) = output.calls(child);
    assert!(calls.iter().any(|call| call.0 == GETPGID), "{calls:?}");
}

#[test]
fn children_of_other_tasks_are_not_followed_even_with_a_reused_id() {
    let Some(mut output) = Output::new() else { return };
    // Whatever id the next child gets, an earlier task with that id was followed, and this one is
    // not.
    output.programs.follow_all(true);
    let own_word = output.programs.followed.shared_word(8 * (own_tid() as usize / 64)).unwrap();
    own_word.fetch_and(!(1 << (own_tid() % 64)), Ordering::Relaxed);
    let child = calling_child();
    assert_eq!(output.calls(child).0, []);
}

/// A thread of its own touches fresh pages. Returns how many of these faults were recorded with beginning and end, and
/// how many records were lost.
fn touched(output: &mut Output, pages: usize) -> (usize, u64) {
    // Reading the records faults too.
    output.programs.follow_all(false);
    let programs = output.programs.clone();
    // Other programs' switches may have filled the rings.
    let mut before = Vec::new();
    output.read(&mut before);
    let (task, at) = std::thread::spawn(move || {
        programs.follow(own_tid());
        (own_tid(), touch(pages))
    })
    .join()
    .unwrap();
    let (mut open, mut whole, mut lost) = (None, 0, 0);
    for record in decode::records(&before, &output.schema) {
        lost += if let Body::Lost(count) = record.body { count } else { 0 };
    }
    let inside = |addr: &u64| (at..at + 4096 * pages as u64).contains(addr);
    output.take_all(|record| match &record.body {
        Body::Sample(sample) if sample.role == Role::Fault && record.task == task => {
            open = Some(sample.addr).filter(|_| !sample.kernel && sample.ip != 0);
        }
        Body::Sample(sample) if sample.role == Role::MinorEnd && record.task == task => {
            whole += usize::from(open.take().as_ref().is_some_and(inside));
        }
        Body::Lost(count) => lost += count,
        _ => {}
    });
    (whole, lost)
}

/// Touches fresh pages; returns the address of the first.
fn touch(pages: usize) -> u64 {
    let size = pages * 4096;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0) };
    unsafe { libc::madvise(at, size, libc::MADV_NOHUGEPAGE) };
    for page in 0..pages {
        unsafe { at.cast::<u8>().add(4096 * page).write_volatile(1) };
    }
    unsafe { libc::munmap(at, size) };
    at as u64
}

/// The smallest ring.
const SMALL: usize = 1 << 20;

#[test]
fn first_touches_are_faults_with_a_beginning_and_an_end() {
    let Some(mut output) = Output::new() else { return };
    assert_eq!(touched(&mut output, 100), (100, 0));
}

#[test]
fn records_cross_the_end_of_a_ring() {
    let Some(mut output) = Output::within(SMALL) else { return };
    // Each time a quarter of the ring: the ends of faults and of the ring meet in many ways.
    let each = (0..60).map(|_| touched(&mut output, 3000));
    let (whole, lost) = each.fold((0, 0), |sum, one| (sum.0 + one.0 as u64, sum.1 + one.1));
    // On a busy machine others' switches may fill the ring meanwhile.
    assert!(whole + lost >= 180_000, "{whole} {lost}");
}

#[test]
fn what_does_not_fit_into_a_ring_is_counted() {
    let Some(mut output) = Output::within(SMALL) else { return };
    let (mut first, mut then, mut lost) = (0, 0, 0);
    for _ in 0..10 {
        let (fitting, before) = touched(&mut output, 40_000);
        let (all, since) = touched(&mut output, 100);
        (first, then, lost) = (first + fitting, then + all, lost + before + since);
    }
    // On a busy machine others' switches take some of the room, and some losses are reported later.
    assert!(first < 400_000 && then > 500, "{first} {then} {lost}");
    assert!(lost > (400_000 - first) as u64 / 2, "{first} {then} {lost}");
}

#[test]
fn a_wait_has_its_switch_its_kernel_stack_and_who_ended_it() {
    let Some(mut output) = Output::new() else { return };
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // The number of the call that the thread is blocked in. It may block elsewhere before.
    let call = format!("/proc/self/task/{}/syscall", own_tid());
    let read = format!("{} ", libc::SYS_read);
    let child = std::thread::spawn(move || {
        while !std::fs::read_to_string(&call).unwrap().starts_with(&read) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // Not a close: a process that another test forks at this moment has the descriptor too.
        assert_eq!(std::io::Write::write(&mut writer, &[7]).unwrap(), 1);
        own_tid()
    });
    assert_eq!(std::io::Read::read(&mut reader, &mut [0]).unwrap(), 1);
    let waker = child.join().unwrap();
    let offsets = output.schema.offsets;
    let (mut waits, mut wakes) = (0, 0);
    output.take_all(|record| {
        let Body::Sample(sample) = &record.body else { return };
        let (mut kernel, mut user) = (vec![], vec![]);
        sample.split_chain(&mut kernel, &mut user);
        let has_stack = kernel.len() > 3 && user.is_empty();
        let blocked = sample.role == Role::Switch && sample.raw_u64(offsets.prev_state) == Some(1);
        waits += u64::from(record.task == own_tid() && blocked && has_stack);
        let wakes_this =
            sample.role == Role::Waking && sample.raw_u32(offsets.woken) == Some(own_tid());
        wakes += u64::from(record.task == waker && wakes_this && has_stack);
    });
    assert!(waits > 0 && wakes > 0, "{waits} {wakes}");
}

#[test]
fn a_task_that_left_its_cpu_has_no_records_there() {
    let Some(mut output) = Output::new() else { return };
    // Its stack is taken at each of these waits, after the switch; then the CPU may be idle.
    (0..12).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(8)));
    let offsets = output.schema.offsets;
    // The task may move: then its records are in several rings.
    let mut records = Vec::new();
    output.take_all(|record| {
        let Body::Sample(sample) = &record.body else { return };
        let next = sample.raw_u32(offsets.next_pid) == Some(own_tid());
        let waits = sample.raw_u64(offsets.prev_state) == Some(1);
        records.push((record.at, sample.role, record.task == own_tid(), next, waits));
    });
    records.sort_by_key(|record| record.0);
    let (mut off, mut waits, mut wrong) = (false, 0, 0);
    for (_, role, is_own, is_next, waiting) in records {
        match role {
            Role::Switch if is_own => (off, waits) = (true, waits + u32::from(waiting)),
            Role::Switch if is_next => off = false,
            Role::Timer | Role::TimerEnd | Role::Fault if is_own => wrong += u32::from(off),
            _ => {}
        }
    }
    assert!(waits >= 12 && wrong == 0, "{waits} {wrong}");
}
