//! What a polling loop sees between its sleeps. A sleep before a look that finds nothing was needed: what is waited for had
//! not happened by then, however long the loop had slept. Only a sleep before a look that finds something may have been too
//! long, by at most its length.

use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::timeline::transfer::Transfer;
use deadweight_trace::ids::CallId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Linux's errors for "not yet": nothing is there, no such file, the lock file exists, another has it, nobody listens.
const EAGAIN: i64 = 11;
const ENOENT: i64 = 2;
const EEXIST: i64 = 17;
const EBUSY: i64 = 16;
const ECONNREFUSED: i64 = 111;
/// The standard output and the standard error: what is written there asks nobody for more.
const OUTPUTS: [u64; 2] = [1, 2];
/// So many of the looks find nothing: fewer show no loop that waits for something.
const VAIN: f64 = 0.25;

/// The sleeps before looks that found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looks {
    /// How many there are.
    pub(super) found: u64,
    /// How many looks found nothing.
    pub(super) vain: u64,
    /// Whether the process answers what it finds: else nothing depends on when it finds it, but for the last.
    pub(super) answers: bool,
    /// The length of those sleeps that ended later because of the loop: of all of them, where the process answers what it
    /// finds; else of the last.
    pub(super) late: Ns,
}

/// What a call that looks for something says: whether it finds nothing. None for other calls.
fn is_vain(name: &str, ret: i64) -> Option<bool> {
    let fails = |with: &[i64]| ret < 0 && with.contains(&-ret);
    match name {
        "connect" => Some(fails(&[ECONNREFUSED, ENOENT, EAGAIN])),
        "open" | "openat" | "stat" | "lstat" | "newfstatat" | "statx" | "access" | "faccessat"
        | "faccessat2" | "mkdir" | "mkdirat" | "link" | "linkat" | "rename" | "renameat"
        | "renameat2" => Some(fails(&[ENOENT, EEXIST])),
        "flock" | "fcntl" => Some(fails(&[EAGAIN, EBUSY])),
        "wait4" => Some(ret == 0),
        "accept" | "accept4" => Some(fails(&[EAGAIN])),
        _ => match Transfer::of(name)? {
            Transfer::Takes => Some(ret == 0 || fails(&[EAGAIN])),
            Transfer::Asks => Some(ret == 0),
            _ => None,
        },
    }
}

/// What the calls after one sleep and before the next show.
#[derive(Default)]
struct Gap {
    /// By the call's name: whether each found nothing.
    vain: BTreeMap<&'static str, bool>,
    /// Whether something is sent to anybody.
    gives: bool,
}

/// What a process sees between these sleeps, each with its start and its end, in order. None if none of its calls finds
/// something at one time and nothing at others.
pub(super) fn between(facts: &Facts<'_>, process: ProcessId, sleeps: &[(Ns, Ns)]) -> Option<Looks> {
    let mut gaps: Vec<Gap> = sleeps.iter().map(|_| Gap::default()).collect();
    for (at, call) in facts.timeline.calls.iter().enumerate() {
        let Some(group) = facts.call_groups.id(CallId::at(at)) else { continue };
        let group = facts.call_groups.get(group);
        let (Some(ret), true) = (call.ret(), group.process == process) else { continue };
        let after = sleeps.partition_point(|(_, end)| *end <= call.start);
        let Some(gap) = after.checked_sub(1).map(|sleep| &mut gaps[sleep]) else { continue };
        let moved = group.transfer == Some(Transfer::Gives) && ret > 0;
        gap.gives |= moved && !OUTPUTS.contains(&facts.timeline.args(call)[0]);
        if let Some(vain) = is_vain(group.name, ret) {
            let all = gap.vain.entry(group.name).or_insert(true);
            *all &= vain;
        }
    }
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (name, vain) in gaps.iter().flat_map(|gap| &gap.vain) {
        counts.entry(name).or_default()[usize::from(*vain)] += 1;
    }
    let looks = counts
        .into_iter()
        .filter(|(_, [found, vain])| *found > 0 && *vain as f64 >= VAIN * sleeps.len() as f64);
    let (name, [found, vain]) = looks.max_by_key(|(_, [_, vain])| *vain)?;
    let finds = |gap: &Gap| gap.vain.get(name) == Some(&false);
    let before: Vec<(Ns, bool)> = sleeps
        .iter()
        .zip(&gaps)
        .filter(|(_, gap)| finds(gap))
        .map(|((start, end), gap)| (*end - *start, gap.gives))
        .collect();
    let answers = before.iter().any(|(_, gives)| *gives);
    let late = if answers {
        before.iter().map(|(length, _)| *length).sum()
    } else {
        before.last().map_or(Ns::ZERO, |(length, _)| *length)
    };
    Some(Looks { found, vain, answers, late })
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::found;
    use std::fmt::Write;

    const MS: u64 = 1_000_000;

    /// 30 sleeps of 10 ms; after each a read that returns `read(turn)`, and after one that finds something this call.
    fn follower(read: impl Fn(u64) -> i64, then: &str) -> String {
        let mut turns = String::new();
        for turn in 0..30 {
            let at = turn * 11_370_000 + MS;
            let woken = at + 10 * MS;
            writeln!(
                turns,
                "{at} off blocked clock_nanosleep 1 from sleep <- follow (tail.c:9) <- main
                 {woken} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0\n{} syscall read 3 4096\n{} back {}",
                woken + 10,
                woken + 20,
                woken + 30,
                read(turn)
            )
            .unwrap();
            if read(turn) > 0 && !then.is_empty() {
                writeln!(turns, "{} syscall {then}\n{} back 40", woken + 40, woken + 50).unwrap();
            }
        }
        let end = 342 * MS;
        format!("task 1 tail\n0 on\n0 main\n{turns}{end} exit\n{end} off dead")
    }

    #[test]
    fn what_another_program_writes_in_its_own_time_is_refused() {
        let third = |turn| if turn % 3 == 2 { 40 } else { 0 };
        assert_eq!(found(&follower(third, "")), "");
        assert_eq!(found(&follower(third, "write 1 40")), "");
    }

    #[test]
    fn a_question_for_the_next_after_each_find_is_found_with_the_sleeps_before_finds() {
        let third = |turn| if turn % 3 == 2 { 40 } else { 0 };
        let said = found(&follower(third, "sendto 3 40"));
        assert!(said.starts_with("wait-sleep 15 % (0..37) @ follow:9"), "{said}");
    }

    #[test]
    fn a_pause_before_what_is_there_each_time_is_found() {
        let said = found(&follower(|_| 40, ""));
        assert!(said.starts_with("wait-sleep 88 % (88..88) @ follow:9"), "{said}");
    }
}
