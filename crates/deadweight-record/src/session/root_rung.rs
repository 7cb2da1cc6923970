//! The events of the root rung where BPF programs are not allowed: the machine's switches and wake-ups, the program's
//! calls and faults.
//!
//! `session` opens them.

use super::SITES_PER_SECOND;
use crate::error::Error;
use crate::perf::schema::{Offsets, Role, fields};
use crate::perf::sys::{Event, Every, Source};
use crate::perf::tracefs::Tracefs;
use perf_event_open_sys::bindings as abi;
use std::io;

/// User stacks at waits per second, task and CPU: more than at calls, because a wait is missed if it follows another
/// within a period, and it may be the long one.
const WAITS_PER_SECOND: u64 = 4000;
/// Fields of records with user registers and stack.
const USER_STATE: u64 = fields::BASE | fields::CHAIN | fields::REGISTERS | fields::STACK;

fn tracepoint(tracefs: &Tracefs, name: &str, what: u64) -> io::Result<Event> {
    Ok(Event::of_each(Source::Tracepoint(tracefs.tracepoint(name)?.id), what))
}

/// Role, event, and whether the recording is useless without it.
pub(super) fn wide_events(tracefs: &Tracefs) -> Vec<(Role, io::Result<Event>, bool)> {
    let chained = |name| {
        tracepoint(tracefs, name, fields::BASE | fields::RAW | fields::CHAIN)
            .map(|event| Event { no_user_chain: true, ..event })
    };
    let raw = fields::BASE | fields::RAW;
    let major = Source::Software(abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ);
    vec![
        (Role::Switch, chained("sched/sched_switch"), true),
        (Role::Waking, chained("sched/sched_waking"), true),
        (Role::Exec, tracepoint(tracefs, "sched/sched_process_exec", raw), false),
        // The address only makes its records longer than those of `MinorEnd`: see `Schema`.
        (Role::MajorEnd, Ok(Event::of_each(major, fields::BASE | fields::ADDR)), false),
        (Role::Timer, tracepoint(tracefs, "irq_vectors/local_timer_entry", fields::BASE), false),
        (Role::TimerEnd, tracepoint(tracefs, "irq_vectors/local_timer_exit", fields::BASE), false),
    ]
}

/// An event with which BPF programs have user registers and stack recorded.
pub(super) fn site_event() -> Event {
    Event { no_kernel_chain: true, ..Event::of_each(Source::BpfOutput, USER_STATE) }
}

/// The events of a task.
pub(super) fn task_events(tracefs: &Tracefs) -> Vec<(Role, io::Result<Event>)> {
    let raw = fields::BASE | fields::RAW;
    let user = USER_STATE;
    let faults = Source::Software(abi::PERF_COUNT_SW_PAGE_FAULTS);
    let minor = Source::Software(abi::PERF_COUNT_SW_PAGE_FAULTS_MIN);
    let often = |rate: u64| {
        move |event| Event { every: Every::PerSecond(rate), no_kernel_chain: true, ..event }
    };
    let (site, wait) = (often(SITES_PER_SECOND), often(WAITS_PER_SECOND));
    vec![
        // Not the kernel's count of faults: `Fault` counts them already, see `Schema`.
        (Role::FaultSite, tracepoint(tracefs, "exceptions/page_fault_user", user).map(site)),
        (Role::WaitSite, tracepoint(tracefs, "sched/sched_switch", user).map(wait)),
        (Role::Fault, Ok(Event::of_each(faults, fields::BASE | fields::IP | fields::ADDR))),
        (Role::MinorEnd, Ok(Event::of_each(minor, fields::BASE))),
        (Role::CallSite, tracepoint(tracefs, "raw_syscalls/sys_enter", user).map(site)),
        (Role::Enter, tracepoint(tracefs, "raw_syscalls/sys_enter", raw)),
        (Role::Leave, tracepoint(tracefs, "raw_syscalls/sys_exit", raw)),
    ]
}

/// The offsets of the needed fields in this kernel's tracepoints.
pub(super) fn offsets(tracefs: &Tracefs) -> Result<Offsets, Error> {
    let find = |name: &str| {
        tracefs.tracepoint(name).map_err(|source| Error::System {
            what: format!("cannot read the description of the tracepoint {name}"),
            source,
        })
    };
    let usual = Offsets::default();
    let switch = find("sched/sched_switch")?;
    let waking = find("sched/sched_waking")?;
    let exec = find("sched/sched_process_exec")?;
    let enter = find("raw_syscalls/sys_enter")?;
    let leave = find("raw_syscalls/sys_exit")?;
    Ok(Offsets {
        prev_pid: switch.offset("prev_pid", usual.prev_pid),
        prev_state: switch.offset("prev_state", usual.prev_state),
        next_comm: switch.offset("next_comm", usual.next_comm),
        next_pid: switch.offset("next_pid", usual.next_pid),
        woken: waking.offset("pid", usual.woken),
        filename: exec.offset("filename", usual.filename),
        old_pid: exec.offset("old_pid", usual.old_pid),
        enter_nr: enter.offset("id", usual.enter_nr),
        enter_args: enter.offset("args", usual.enter_args),
        leave_ret: leave.offset("ret", usual.leave_ret),
    })
}
