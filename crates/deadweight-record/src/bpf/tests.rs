//! The programs on this machine's kernel, with calls of this process. As root.

use super::*;
use crate::perf::decode::{self, Body, Record};
use crate::perf::ring::Ring;
use crate::perf::schema::{Schema, fields};
use crate::perf::sys::{Event, Open, Scope, Source};
use crate::procfs::own_tid;
use std::os::fd::AsRawFd;

/// The programs and their output. None, with a message, if they are not allowed.
pub(crate) struct Output {
    pub(crate) programs: Arc<Programs>,
    schema: Schema,
    rings: Vec<Ring>,
    _events: Vec<Open>,
}

impl Output {
    /// Follows the calling thread.
    pub(crate) fn new() -> Option<Self> {
        let opened = Self::open();
        if let Err(error) = &opened {
            eprintln!("skipped: BPF programs are not allowed here: {error}");
        }
        opened.ok()
    }

    fn open() -> io::Result<Self> {
        let event = |source| Event::of_each(source, fields::BASE | fields::RAW);
        let cpus = crate::procfs::online_cpus();
        let programs = Programs::start(&cpus)?;
        let mut schema = Schema::new(Programs::with_record_offsets(Offsets::default()));
        let (mut rings, mut events) = (vec![], vec![]);
        for cpu in cpus {
            let leader = event(Source::Dummy).open(Scope::AllTasks, cpu)?;
            rings.push(Ring::map(&leader, 1 << 20)?);
            for role in OUTPUT_ROLES {
                let event = event(Source::BpfOutput);
                let open = event.open(Scope::AllTasks, cpu)?;
                open.write_to(&leader)?;
                open.enable()?;
                schema.add(open.id, role, event.layout);
                programs.set_output(role, cpu.cast_unsigned(), open.as_raw_fd())?;
                events.push(open);
            }
            events.push(leader);
        }
        programs.follow(own_tid());
        Ok(Self { programs, schema, rings, _events: events })
    }

    /// Takes the records of this task, in order of time.
    pub(crate) fn take(&mut self, task: u32, mut each: impl FnMut(&Record<'_>)) {
        let mut bytes = Vec::new();
        self.rings.iter_mut().for_each(|ring| ring.copy_to(&mut bytes));
        let records = decode::records(&bytes, &self.schema);
        let mut all: Vec<_> = records.filter(|record| record.task == task).collect();
        all.sort_by_key(|record| record.at);
        all.iter().for_each(&mut each);
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
    let quarters = usize::try_from(start.elapsed().as_micros() / 250).unwrap();
    let (calls, sites) = output.calls(own_tid());
    assert!(calls.len() >= 2000);
    assert!((16..=quarters + 18).contains(&sites), "{sites} in {quarters}");
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
