//! Divides the program's own time among the classes that claim its samples.
//!
//! `cost` knows what a class claims; `facts::user_time` reads the stacks.

use super::Charge;
use crate::account::Detail;
use crate::account::{AccountId, NET_WORK};
use crate::facts::call_site::{Weights, amount};
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

impl Charge<'_, '_> {
    /// Divides the program's own time among the classes that claim its samples. Samples without a stack
    /// stay net work.
    pub(super) fn divide_user_time(&mut self) {
        for at in 0..self.entries.len() {
            if self.entries[at].account != NET_WORK {
                continue;
            }
            let process = self.entries[at].process;
            let mut parts: BTreeMap<AccountId, Weights> = BTreeMap::new();
            for (site, weight) in std::mem::take(&mut self.entries[at].samples) {
                let account = self.facts.account_of_sample(site);
                let site = site.stack().map_or(site, |stack| self.facts.site_of_sample(stack));
                parts.entry(account).or_default().insert(site, weight);
            }
            let all = self.entries[at].recording.0;
            let known: u64 = parts.values().map(amount).sum();
            let mut shares: Vec<u64> = parts.values().map(amount).collect();
            shares.push(all.saturating_sub(known));
            let times = apportion(self.entries[at].ns.0, &shares);
            for ((account, samples), ns) in parts.into_iter().zip(times) {
                if account == NET_WORK {
                    self.entries[at].samples = samples;
                    continue;
                }
                let (ns, count) = (Ns(ns), amount(&samples));
                let whole = &mut self.entries[at];
                (whole.ns, whole.alone) = (whole.ns - ns, whole.alone - ns);
                // Samples in a hidden kernel were taken out before; a foreign trace may give them a stack.
                whole.recording.0 = whole.recording.0.saturating_sub(count);
                let opened = self.entry((account, process, Detail::Plain));
                (opened.ns, opened.alone) = (opened.ns + ns, opened.alone + ns);
                opened.recording.0 += count;
                opened.samples = samples;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Weighing, weigh};
    use deadweight_trace::Trace;

    #[test]
    fn samples_of_a_hidden_kernel_that_have_a_stack_still_add_up() {
        let text = "task 1 main\n0 exec /bin/a\n0 on\n10 main\n\
                    20 sample kernel memset <- main\n30 sample memset <- main\n\
                    40 sample kernel memset <- main\n100 exit\n100 off dead";
        let trace = Trace::from_text(text).unwrap();
        let traces = std::slice::from_ref(&trace);
        let report = weigh(&Weighing { traces, ..Weighing::default() }).unwrap();
        assert_eq!(report.ledger.iter().map(|row| row.ns).sum::<u64>(), report.wall_ns);
    }
}
