//! Time that samples show to be other than its span says: the kernel's work for recording, and the kernel's
//! own work where its calls are not all recorded.
//!
//! `facts::overhead` gives the overhead per event.

use super::Charge;
use crate::account::{AccountId, Detail, Entry, KERNEL_OTHER, NET_WORK, OBSERVER};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Fewer samples may be chance. For calls that start or end a task or a program, all samples count; for others only
/// those in the kernel's work for recording.
const SEEN: u64 = 8;

/// Samples of one kind of entry, summed over all processes, because a process that lives for 0.1 ms has at most one
/// sample.
#[derive(Copy, Clone, Default)]
struct Sampled {
    ns: Ns,
    /// The calibrated overhead already taken out, except the cost of the samples themselves: a sample cannot show its
    /// own cost.
    overhead: Ns,
    samples: u64,
    for_recording: u64,
}

impl Sampled {
    /// Time for recording that the calibration did not know.
    fn unknown(&self) -> Ns {
        let gross = self.ns + self.overhead;
        let seen = gross.scaled(self.for_recording, self.samples.max(1));
        Ns(seen.0.saturating_sub(self.overhead.0)).min(self.ns)
    }
}

impl Charge<'_, '_> {
    /// Births, execs, deaths and events whose stack is taken cost more than the calibration knows: there samples
    /// show which part of the time was the kernel's work for recording.
    pub(super) fn take_out_recording(&mut self) {
        let mut kinds: BTreeMap<(AccountId, &str), Sampled> = BTreeMap::new();
        for entry in &self.entries {
            let Some(kind) = kind(self.facts, entry) else { continue };
            let (samples, for_recording) = entry.recording;
            let sampling = Ns(samples.saturating_mul(self.facts.overhead.sample));
            let sum = kinds.entry((entry.account, kind)).or_default();
            sum.ns += entry.ns;
            sum.overhead += entry.overhead - sampling.min(entry.overhead);
            sum.samples += samples;
            sum.for_recording += for_recording;
        }
        kinds.retain(|(_, kind), sum| {
            let shown = if is_birth(kind) { sum.samples } else { sum.for_recording };
            shown >= SEEN
        });
        let facts = self.facts;
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            let Some(kind) = kind(facts, entry) else { continue };
            if entry.account == NET_WORK {
                // These samples show nothing of the program's own code.
                entry.recording = (entry.recording.0 - entry.recording.1, 0);
            }
            let Some(sum) = kinds.get(&(entry.account, kind)) else { continue };
            let part = entry.ns.scaled(sum.unknown().0, sum.ns.0.max(1)).min(entry.ns);
            entry.ns -= part;
            entry.alone = entry.alone.min(entry.ns);
            let process = entry.process;
            self.entry((OBSERVER, process, Detail::Plain)).ns += part;
        }
    }

    /// Where calls are not all recorded, the time between recorded calls is not all the program's own. The
    /// kernel's part of it is its part of the clock's ticks, without ticks due to tracing.
    pub(super) fn take_out_kernel(&mut self) {
        let period = self.facts.trace.meta.sample_period;
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            if entry.account != NET_WORK || entry.in_kernel == 0 {
                continue;
            }
            let (all, kernel) = (entry.recording.0, entry.in_kernel);
            let for_tracing = (entry.overhead.0.checked_div(period).unwrap_or(0)).min(kernel);
            let part = entry.ns.scaled(kernel - for_tracing, all - for_tracing).min(entry.ns);
            entry.ns -= part;
            entry.alone = entry.alone.min(entry.ns);
            entry.recording.0 = all - kernel;
            let process = entry.process;
            let other = self.entry((KERNEL_OTHER, process, Detail::Plain));
            (other.ns, other.alone) = (other.ns + part, other.alone + part);
            other.in_kernel += kernel - for_tracing;
        }
    }
}

/// What an entry has in common with those of other processes; none of time off CPU.
fn kind(facts: &Facts<'_>, entry: &Entry) -> Option<&'static str> {
    match entry.detail {
        _ if entry.account == OBSERVER => None,
        // Where in a batch of counted calls the kernel recorded is not known; their calibration knows what it costs.
        Detail::Calls(group) if is_counted(facts.call_groups.get(group)) => None,
        Detail::Calls(group) => Some(facts.call_groups.get(group).name),
        Detail::Faults => Some("fault"),
        Detail::Plain => Some(""),
        Detail::Waits(..) | Detail::Held(_) => None,
    }
}

/// Whether most of these calls were counted by the kernel, and not recorded one by one.
fn is_counted(group: &CallGroup) -> bool {
    group.counted * 2 > group.calls
}

/// Whether a system call starts or ends a task or a program.
fn is_birth(call: &str) -> bool {
    const BIRTHS: [&str; 8] =
        ["clone", "clone3", "fork", "vfork", "execve", "execveat", "exit", "exit_group"];
    BIRTHS.contains(&call)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, rows};

    const RECORDING: &str = "perf_event_alloc < inherit_event.isra.0 < copy_process";
    const FORKING: &str = "copy_page_range < dup_mmap < copy_process";

    /// Ten calls of 800 ns. A timer interrupts each; of so many it interrupts the kernel's work for recording.
    fn calls(name: &str, for_recording: u64) -> String {
        let call = |at: u64| {
            let stack = if at / 1000 <= for_recording { RECORDING } else { FORKING };
            format!(
                "{at} syscall {name}\n{} timer\n{} sample kernel main : {stack}\n{} timer-end\n{} back 2\n",
                at + 300,
                at + 310,
                at + 320,
                at + 800
            )
        };
        let calls = repeat(10, 1000, 1000, call);
        rows(&format!("task 1 main\n0 on\n{calls}12000 exit\n12000 off dead"), 9)
    }

    fn observed(rows: &str) -> u64 {
        let row = rows.lines().find_map(|row| row.strip_prefix("observer "));
        row.and_then(|row| row.split(' ').next()?.parse().ok()).unwrap_or(0)
    }

    #[test]
    fn a_sample_in_the_timers_interrupt_shows_what_it_interrupted() {
        // Half of ten forks of 780 ns.
        assert_eq!(observed(&calls("clone", 5)), 3900);
        assert_eq!(observed(&calls("clone", 0)), 0);
    }

    #[test]
    fn samples_of_children_that_live_shortly_count_together() {
        let child = |at: u64| {
            let (tid, stack) = (at / 1000 + 1, if at / 1000 <= 5 { RECORDING } else { FORKING });
            // Only one in two has a sample.
            let sample = format!(
                "{} timer\n{} sample kernel main : {stack}\n{} timer-end\n",
                at + 300,
                at + 310,
                at + 320
            );
            let sample = if at.is_multiple_of(2000) { "" } else { &sample };
            format!(
                "task {tid} main\n{at} on\n{} syscall exit_group 0\n{sample}{} exit\n{} off dead\n",
                at + 10,
                at + 810,
                at + 820
            )
        };
        let forks = repeat(20, 1000, 1000, |at| format!("{} fork {}\n", at - 100, at / 1000 + 1));
        let children = repeat(20, 1000, 1000, child);
        let text = format!(
            "cpus 2\ntask 1 main\n0 on\n{forks}30000 off blocked wait4 : do_wait\n31000 on woken-by 21\n32000 exit\n32000 off dead\n{}",
            children.replace(" on\n", " cpu1 on\n")
        );
        let trace = deadweight_trace::Trace::from_text(&text).unwrap();
        let weighing = crate::Weighing { traces: &[trace], ..crate::Weighing::default() };
        let report = crate::weigh(&weighing).unwrap();
        let row = report.cpu_ledger.iter().find(|row| row.account == "observer");
        // Three of ten samples: as much of all 15.8 µs in these calls, not three whole calls.
        assert_eq!(row.map(|row| row.ns), Some(4740));
    }

    #[test]
    fn a_few_samples_of_other_calls_are_chance() {
        assert_eq!(observed(&calls("getpid", 5)), 0);
        assert_eq!(observed(&calls("getpid", 9)), 7020);
    }
}
