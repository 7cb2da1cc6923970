//! One cost of several processes of a program: the workers of a server run the same line, and one change mends all.

use crate::facts::Facts;
use crate::facts::call_site::SITES;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use deadweight_report::report::{How, Site};
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// A class, a program, the cost's title and its first place.
pub(super) type Cost = (&'static str, String, String, String);

/// What the draft is about, whichever process it was seen in.
pub(super) fn cost(facts: &Facts<'_>, draft: &Draft) -> Cost {
    // Without a place it may be another cost in each process.
    let place = match draft.sites.first() {
        Some(site) => format!("{} {}:{} {}", site.function, site.file, site.line, site.image),
        None => format!("{:?}", draft.process),
    };
    (draft.class, facts.name(draft.process), draft.title.clone(), place)
}

/// Joins the drafts about one cost in different processes. The largest one speaks for all.
pub(super) fn join(facts: &Facts<'_>, drafts: Vec<Draft>) -> Vec<Draft> {
    let mut of_cost: BTreeMap<Cost, Vec<Draft>> = BTreeMap::new();
    for draft in drafts {
        of_cost.entry(cost(facts, &draft)).or_default().push(draft);
    }
    of_cost.into_values().flat_map(joined).collect()
}

fn joined(mut drafts: Vec<Draft>) -> Vec<Draft> {
    drafts.sort_by_key(|draft| (std::cmp::Reverse(draft.amount), draft.process));
    let mut processes: Vec<ProcessId> = drafts.iter().map(|draft| draft.process).collect();
    processes.sort_unstable();
    processes.dedup();
    // Several of one process are different costs.
    if processes.len() < 2 || processes.len() < drafts.len() {
        return drafts;
    }
    let mut all = drafts.into_iter();
    let Some(mut first) = all.next() else { return Vec::new() };
    for draft in all {
        add(&mut first.sites, first.amount, draft.sites, draft.amount);
        first.amount += draft.amount;
        first.saving += draft.saving;
        first.range = (first.range.0 + draft.range.0, first.range.1 + draft.range.1);
        if draft.how != first.how {
            first.how = How::Estimate;
        }
    }
    let all = things(processes.len() as u64, "process");
    first.evidence.insert(
        0,
        format!("{all} of the program do this: places and saving are of all of them, the sentence above is of the one with most"),
    );
    vec![first]
}

/// Adds the places of another process, by their part of the amount.
fn add(sites: &mut Vec<Site>, amount: Ns, more: Vec<Site>, its: Ns) {
    let all = (amount + its).0.max(1) as f64;
    for site in sites.iter_mut() {
        site.share *= amount.0 as f64 / all;
    }
    for mut site in more {
        site.share *= its.0 as f64 / all;
        let same = |s: &&mut Site| {
            (&s.function, &s.file, s.line, &s.image)
                == (&site.function, &site.file, site.line, &site.image)
        };
        match sites.iter_mut().find(same) {
            Some(known) => {
                known.share += site.share;
                known.count += site.count;
            }
            None => sites.push(site),
        }
    }
    sites.sort_by(|a, b| b.share.total_cmp(&a.share));
    sites.truncate(SITES);
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::weighed;

    /// A program whose two children, one after the other, sleep ten times each, called from `first` and `second`.
    fn napping(first: &str, second: &str) -> String {
        let child = |tid: u64, born: u64, from: &str| {
            let nap = |i: u64| {
                let at = born + 100_000 + i * 1_000_000;
                let by = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";
                format!(
                    "{at} off blocked clock_nanosleep 1 from {from} (a.c:7) <- main\n{} on woken-by {by}\n",
                    at + 900_000
                )
            };
            let (naps, end) = ((0..10).map(nap).collect::<String>(), born + 10_100_000);
            format!(
                "task {tid} app\n{} cpu1 on\n{naps}{end} exit\n{} off dead\n",
                born + 10_000,
                end + 50_000
            )
        };
        format!(
            "cpus 2\ntask 1 app\n0 exec /bin/app\n0 cpu0 on\n0 main\n10 fork 2\n20 off blocked wait4 : do_wait\n\
             10120000 cpu0 on woken-by 2\n20000000 fork 3\n20020000 off blocked wait4 : do_wait\n30120000 cpu0 on woken-by 3\n\
             31000000 exit\n31000000 off dead\n{}{}",
            child(2, 10, first),
            child(3, 20_000_000, second)
        )
    }

    #[test]
    fn one_cost_of_two_processes_is_one_finding() {
        let naps = |text: &str| {
            let all = weighed(text).findings;
            all.into_iter().filter(|finding| finding.class == "wait-sleep").collect::<Vec<_>>()
        };
        let one = naps(&napping("poll", "poll"));
        assert_eq!(one.len(), 1, "{one:?}");
        assert_eq!((one[0].sites.len(), one[0].sites[0].count), (1, 20), "{one:?}");
        assert!(one[0].evidence[0].starts_with("2 processes of the program"), "{one:?}");
        assert_eq!(naps(&napping("poll", "other")).len(), 2);
    }
}
