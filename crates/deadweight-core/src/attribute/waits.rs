//! Accounts for a task without a CPU.

use super::{Charge, Scope};
use crate::account::{Slice, What};
use crate::facts::{Facts, overhead};
use crate::path::cpu_holder::{CpuHolder, LATE, held_up};
use crate::timeline::{Run, Task, WokenBy};
use deadweight_trace::units::Ns;

impl Charge<'_, '_> {
    /// How long the recorder held up the only task of the process that was waited for, if no wake-up was
    /// recorded; else 0.
    pub(super) fn held_up(&self, block: u32, slice: &Slice) -> Ns {
        let Facts { timeline, path, processes, .. } = self.facts;
        let block = &timeline.blocks[block as usize];
        if block.woken_by != WokenBy::Unseen {
            return Ns::ZERO;
        }
        match self.facts.peer(block).map(|peer| &*processes.get(peer).tasks) {
            Some([one]) => held_up(timeline, &path.subject, *one, slice.start, slice.end),
            _ => Ns::ZERO,
        }
    }

    /// Divides time off CPU by the holder of the CPU that the task then got.
    pub(super) fn ready(&mut self, task: &Task, index: usize, slice: Slice) {
        // Woken on an idle CPU: the time until it runs belongs to the wait. A long time means that the CPU was not idle, where
        // other programs are not recorded, or that a hypervisor had taken it.
        let waited = match index.checked_sub(1).map(|i| task.spans[i].run()) {
            Some(Run::Blocked(block)) => Some(What::Wait(block)),
            _ => None,
        };
        let mut start = slice.start;
        let mut parts = std::mem::take(&mut self.parts);
        parts.extend_from_slice(self.holders.of((slice.task, index), start, slice.end));
        for (ns, holder) in parts.drain(..) {
            let what = match (holder, waited) {
                (CpuHolder::Nobody, Some(wait)) if ns < LATE => wait,
                _ => What::Ready(holder),
            };
            let overhead = match holder {
                CpuHolder::Recorder => ns,
                // It would have given the CPU away sooner.
                CpuHolder::Own(holder) if self.scope == Scope::Path => {
                    let Facts { timeline, overhead: cost, .. } = self.facts;
                    let near = self.reached[holder.index()].0;
                    overhead::between(timeline, cost, (holder, near), (start, start + ns))
                }
                _ => Ns::ZERO,
            };
            self.add(&Slice { start, end: start + ns, what, ..slice }, overhead, &[]);
            start += ns;
        }
        self.parts = parts;
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::rows;

    #[test]
    fn a_cpu_that_is_late_after_a_wake_up_is_no_part_of_the_wait() {
        let rows_when_on_at = |on: u64| {
            let text = format!(
                "cpus 2
                task 1 pack
                    0 cpu0 on
                  100 off blocked write 1 : anon_pipe_write from emit (p.c:9) <- main
                 2000 woken-by 9 reader
                {on} cpu0 on
                9000000 exit
                9000000 off dead
                task 9 reader outside
                    0 cpu1 on"
            );
            rows(&text, 9)
        };
        // 900 µs; 3 ms.
        assert!(
            rows_when_on_at(902_000).contains("wait-output 901900"),
            "{}",
            rows_when_on_at(902_000)
        );
        let late = rows_when_on_at(3_002_000);
        assert!(late.contains("wait-output 1900") && late.contains("wait-cpu 3000000"), "{late}");
    }

    #[test]
    fn what_recording_cost_the_holder_of_the_cpu_is_no_wait() {
        let text = "cpus 1
            observer syscall-kernel 300
            task 1 main
                0 cpu0 on
               50 fork 2 thread
             1000 off preempted
             9000 cpu0 on
            10000 exit
            10000 off dead
            task 2 main
             1000 cpu0 on
             2000 syscall getpid
             5000 back 1
             9000 off preempted";
        let said = rows(text, 9);
        assert!(said.contains("wait-cpu 7700") && said.contains("observer 300"), "{said}");
    }
}
