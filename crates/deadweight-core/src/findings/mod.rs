//! From a class' draft to a finding with its place, its saving and advice.
//!
//! - In: an inspection.
//! - Out: findings, best first, with what can be removed from the binary to try them (`removals`).
//! - Must not know: single costs; see `cost`.

mod covered;
mod removals;
mod same_place;

use crate::account::AccountId;
use crate::attribute;
use crate::cost::{CLASSES, helps_by_environment};
use crate::facts::Facts;
use crate::facts::call_site::{is_interpreted, is_system_image};
use crate::inspect::shares::Own;
use crate::inspect::{Draft, Inspection, parts_of_tasks};
use crate::path::whatif::WhatIf;
use covered::remove_covered;
use deadweight_report::account::UNRECORDED;
use deadweight_report::report::{Finding, How, Site};
use deadweight_trace::symbols::Image;
use deadweight_trace::units::Ns;
use removals::removals;
use same_place::{Cost, cost, join};
use std::collections::BTreeMap;

/// A finding below this share of the wall time is not worth showing.
const WORTH: f64 = 0.02;
/// A server that is busy for a smaller part of the time has no finding.
const BUSY: f64 = 0.01;
/// A cost that is measured by samples is shown if it has at least this many.
const SAMPLES: u64 = 8;
/// A replay that is this far off with nothing removed does not predict a removal.
const DOUBTFUL: f64 = 0.1;

/// Ends of a range that are nearer, also as a part of the saving, are one value.
const NARROW: f64 = 0.01;
const NARROW_PART: f64 = 0.1;
/// The part of the remaining time that goes away besides: caches are warmer, code around it is simpler. Of 212 predictions for 106
/// pairs of programs, 73 % had the real saving, which is known to a point, in the range of their class, and 89 % with these three: they
/// were chosen by those programs.
const MORE_OF_THE_REST: f64 = 0.15;
/// It is at most this part of the cost.
const MORE_OF_THE_COST: f64 = 0.25;
/// The part of the saving that may stay: what takes its place costs something.
const LESS: f64 = 0.1;

/// Less time without records changes no range.
const HOLES: f64 = 0.01;

/// What an interpreter does in its own code and memory belongs to these classes; a script's author can change it only
/// where an extension or compiled code of the script does it.
const OF_CODE: &[&str] = &[
    "allocation",
    "atomics",
    "bounds-checks",
    "buffer-copies",
    "exceptions",
    "hashing",
    "memory-churn",
    "missed-inlining",
    "rescans",
    "struct-copies",
    "text-conversion",
    "zeroing",
];

/// All findings of a run, best first. Shares are of the wall time without tracing overhead and the time of
/// other programs: that is what a quiet run without recording would save.
pub(crate) fn inspect(inspection: &Inspection<'_, '_>) -> Vec<Finding> {
    let net = inspection.wall.net();
    let facts = inspection.facts;
    // A server that has hardly anything to do makes nobody wait.
    if facts.path.subject.service.is_some() && net.share_of(inspection.wall.total) < BUSY {
        return Vec::new();
    }
    let mut drafts: Vec<Draft> =
        CLASSES.iter().flat_map(|class| (class.inspect)(inspection)).collect();
    let mut most: BTreeMap<Cost, Ns> = BTreeMap::new();
    for draft in &drafts {
        *most.entry(cost(facts, draft)).or_default() += draft.saving.max(draft.range.1);
    }
    drafts.retain(|draft| most[&cost(facts, draft)].share_of(net) >= WORTH);
    drafts.retain(|draft| draft.has_enough_samples(inspection));
    drafts.retain(|draft| {
        draft.helps_by_environment(facts)
            || !draft.is_of_interpreter(facts) && !draft.is_of_package(facts)
    });
    let subject = &facts.path.subject;
    let is_replayed = subject.tasks() > 1 && subject.service.is_none();
    if is_replayed && drafts.iter().any(|draft| draft.moves) {
        let cpus = facts.trace.meta.cpus;
        let whatif = WhatIf::new(facts.timeline, subject, cpus);
        if whatif.error() < DOUBTFUL {
            let replayed = |draft: &&mut Draft| draft.moves && draft.can_be_replayed(facts);
            drafts.iter_mut().filter(replayed).for_each(|d| d.limit(inspection, &whatif));
        }
    }
    let mut found: Vec<Finding> = join(facts, drafts)
        .into_iter()
        .map(|draft| draft.finish(inspection, net))
        .filter(|finding| finding.saving_share.max(finding.high / 2.0) >= WORTH)
        .collect();
    // What another tool recorded has holes everywhere: between its samples.
    let holes = if facts.trace.meta.records_calls() {
        inspection.wall.of(UNRECORDED).share_of(net).min(1.0)
    } else {
        0.0
    };
    for finding in &mut found {
        widen(finding);
        finding.high = with_holes(finding.high, holes);
    }
    sort(&mut found);
    remove_covered(&mut found);
    found
}

/// Widens the range of a prediction by what a change of the source moves beside the cost itself. What is known to be one
/// value (a pause that nothing else overlaps) stays one.
fn widen(finding: &mut Finding) {
    if finding.high - finding.low < NARROW.min(finding.saving_share * NARROW_PART) {
        return;
    }
    finding.low *= 1.0 - LESS;
    let more = (1.0 - finding.high) * MORE_OF_THE_REST;
    finding.high += more.min(finding.high * MORE_OF_THE_COST);
}

/// The upper end of a range where this part of the time is not recorded: it may be like the rest.
fn with_holes(high: f64, holes: f64) -> f64 {
    if holes < HOLES { high } else { (high / (1.0 - holes).max(f64::EPSILON)).min(1.0) }
}

/// Best first: by predicted saving, then by name so that the order is always the same. A candidate (it may
/// save something) counts half, and comes after everything that was measured.
pub(crate) fn sort(findings: &mut [Finding]) {
    let expected = |finding: &Finding| match finding.how {
        How::Candidate => finding.saving_share / 2.0,
        _ => finding.saving_share,
    };
    findings
        .sort_by(|a, b| expected(b).total_cmp(&expected(a)).then_with(|| a.class.cmp(&b.class)));
    let measured = findings.iter().rposition(|finding| finding.how == How::Measured);
    if let Some(last) = measured {
        findings[..=last].sort_by_key(|finding| finding.how == How::Candidate);
    }
}

/// Folders of an interpreter in which its own extensions and installed packages are.
const PACKAGES: &[&str] =
    &["/lib-dynload/", "/site-packages/", "/dist-packages/", "/node_modules/", "/gems/"];

impl Draft {
    /// Whether its samples are more than chance: a few of a short run are not. Counted are the samples of
    /// its account, or as many as its amount stands for where the code decides the part.
    fn has_enough_samples(&self, found: &Inspection<'_, '_>) -> bool {
        let account = AccountId::of_class(self.class);
        let entries = found.cpu.of_process(account, self.process);
        let seen: u64 = entries.flat_map(|e| e.samples.values()).map(|w| w.amount).sum();
        let own = Own::of(found.wall, self.process);
        let stands_for = self.amount.share_of(own.ns) * own.samples as f64;
        !account.is_sampled() || seen == 0 || seen >= SAMPLES || stands_for >= SAMPLES as f64
    }

    /// Whether a setting of the environment helps, without a change of the code.
    fn helps_by_environment(&self, facts: &Facts<'_>) -> bool {
        self.class == "memory-churn" && helps_by_environment(facts, self.process)
    }

    /// Whether it accuses the code of an interpreter or of a package for it, which is not the author's.
    fn is_of_interpreter(&self, facts: &Facts<'_>) -> bool {
        let symbols = facts.symbols();
        let runs_scripts = |image: &&Image| is_interpreted(symbols.name(image.language));
        let of_author = |site: &Site| {
            if PACKAGES.iter().any(|folder| site.image.contains(folder)) {
                return false;
            }
            let mut interpreters = symbols.images.iter().filter(runs_scripts);
            !is_system_image(&site.image)
                && !interpreters.any(|image| symbols.name(image.path) == site.image)
        };
        is_interpreted(&facts.processes.get(self.process).language)
            && OF_CODE.contains(&self.class)
            && !self.sites.iter().any(of_author)
    }

    /// Whether it accuses the code of an installed package without debug information: its user does
    /// not change its code.
    fn is_of_package(&self, facts: &Facts<'_>) -> bool {
        const FOLDERS: &[&str] = &[
            "/usr/bin/",
            "/usr/sbin/",
            "/usr/lib",
            "/usr/games/",
            "/bin/",
            "/sbin/",
            "/lib/",
            "/lib64/",
        ];
        let symbols = facts.symbols();
        let is_installed = |path: &str| {
            let image = symbols.images.iter().find(|image| symbols.name(image.path) == path);
            image.is_some_and(|image| !image.has_lines)
                && FOLDERS.iter().any(|folder| path.starts_with(folder))
        };
        let own = facts.processes.get(self.process).image;
        let own = own.and_then(|image| symbols.images.get(image.index()));
        let of_code = OF_CODE.contains(&self.class) || self.class == "first-touch";
        of_code
            && own.is_some_and(|image| is_installed(symbols.name(image.path)))
            && self.sites.iter().all(|site| site.image.is_empty() || is_installed(&site.image))
    }

    /// Whether the recorded graph has the edges that depend on the draft's slices. Go's scheduler hands
    /// goroutines from thread to thread through memory: there only waits leave edges.
    fn can_be_replayed(&self, facts: &Facts<'_>) -> bool {
        facts.processes.get(self.process).language != "Go" || self.class.starts_with("wait-")
    }

    /// Limits the saving to what does not just move the wait elsewhere: to how much shorter the replay is
    /// when all slices of its account in its process take no time.
    fn limit(&mut self, found: &Inspection<'_, '_>, whatif: &WhatIf<'_>) {
        let facts = found.facts;
        let account = AccountId::of_class(self.class);
        let parts = parts_of_tasks(facts, account, self.process);
        let removal = |task, index, length: Ns| {
            if facts.processes.of(task) != self.process {
                return Ns::ZERO;
            }
            match attribute::account_of_span(facts, task, index) {
                Some(charged) if charged == account => length,
                Some(charged) if charged.is_sampled() => {
                    length.part(parts.get(&task).copied().unwrap_or_default())
                }
                _ => Ns::ZERO,
            }
        };
        let shrinks = whatif.saving(&removal).high;
        if shrinks < self.amount && self.amount > Ns::ZERO {
            let part = |ns: Ns| ns.scaled(shrinks.0, self.amount.0);
            // A wait overlapped by own work was already counted without the overlap.
            self.saving = self.saving.min(part(self.amount.max(self.saving)));
            self.range = (self.range.0.min(self.saving), self.range.1);
        }
    }

    fn finish(self, found: &Inspection<'_, '_>, net: Ns) -> Finding {
        let facts = found.facts;
        let saving = self.saving.min(net);
        Finding {
            class: self.class.to_owned(),
            title: self.title,
            text: self.text,
            process: facts.name(self.process),
            amount_ns: self.amount.0,
            saving_ns: saving.0,
            saving_share: saving.share_of(net),
            low: self.range.0.min(saving).share_of(net),
            high: self.range.1.max(saving).min(net).share_of(net),
            how: match self.how {
                How::Exact if !facts.is_whole() => How::Estimate,
                how => how,
            },
            sites: self.sites,
            evidence: self.evidence,
            remedy: self.remedy,
            removals: removals(found, self.class, self.process),
            proofs: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Finding, How, sort, widen};
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;

    #[test]
    fn a_range_is_widened_and_one_value_is_not() {
        let widened = |low, saving_share, high| {
            let mut finding = Finding { low, saving_share, high, ..Finding::default() };
            widen(&mut finding);
            format!("{:.1} to {:.1} %", finding.low * 100.0, finding.high * 100.0)
        };
        assert_eq!(widened(0.40, 0.50, 0.60), "36.0 to 66.0 %");
        // No more than a quarter of the cost, and never more than all.
        assert_eq!(widened(0.02, 0.04, 0.08), "1.8 to 10.0 %");
        assert_eq!(widened(0.50, 0.99, 1.00), "45.0 to 100.0 %");
        assert_eq!(widened(0.75, 0.75, 0.755), "75.0 to 75.5 %");
        assert_eq!(widened(0.020, 0.025, 0.029), "1.8 to 3.6 %");
    }

    #[test]
    fn what_is_not_recorded_may_be_like_the_rest() {
        let range = |lost: &str| {
            let text = format!(
                "task 1 app\n0 on\n100 off blocked clock_nanosleep\n400 on\n410 syscall getpid\n420 back\n{lost}1000 exit\n\
                 1000 off dead"
            );
            let trace = Trace::from_text(&text).unwrap();
            let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
            let found = report.findings.iter().find(|finding| finding.class == "wait-sleep");
            found.map(|f| format!("{:.0} to {:.0} %", f.low * 100.0, f.high * 100.0)).unwrap()
        };
        assert_eq!(range(""), "30 to 30 %");
        // All from the call on: 58 % of the time.
        assert_eq!(range("920 lost 5\n"), "30 to 71 %");
    }

    #[test]
    fn a_candidate_is_never_before_what_was_measured() {
        let finding = |class: &str, how, saving_share| Finding {
            class: class.into(),
            how,
            saving_share,
            ..Finding::default()
        };
        let order = |mut findings: Vec<Finding>| {
            sort(&mut findings);
            findings.into_iter().map(|finding| finding.class).collect::<Vec<_>>().join(" ")
        };
        let candidate = || finding("candidate", How::Candidate, 0.9);
        let small = || finding("small", How::Estimate, 0.1);
        let estimate = || finding("estimate", How::Estimate, 0.4);
        let measured = finding("measured", How::Measured, 0.2);
        let all = vec![small(), candidate(), measured, estimate()];
        assert_eq!(order(all), "estimate measured candidate small");
        // Without anything measured it counts half.
        assert_eq!(order(vec![estimate(), candidate(), small()]), "candidate estimate small");
    }

    /// The findings of a script that spends most of its time in `malloc` and `free`, called by this function.
    fn allocating(caller: &str) -> Vec<String> {
        let mut text = String::from(
            "image python3 path /bin/python3 language Python\nimage libc.so.6 path /lib/libc.so.6\n\
             image fast.cpython-311.so path /app/fast.cpython-311.so language C\n\
             sample-period 1000\ntask 1 python3\n0 on\n0 exec /bin/python3\n0 main\n",
        );
        for at in (500..100_000).step_by(1000) {
            let inside = ["malloc @libc.so.6 <- ", "free @libc.so.6 <- ", ""][at / 1000 % 3];
            let below = "_PyEval_EvalFrameDefault @python3 <- main @python3";
            text.push_str(&format!("{at} sample {inside}{caller} <- {below}\n"));
        }
        text.push_str("100000 exit\n100000 off dead");
        let trace = Trace::from_text(&text).unwrap();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        report.findings.into_iter().map(|finding| finding.class).collect()
    }

    #[test]
    fn the_author_of_a_script_sees_extensions_and_not_the_interpreter() {
        assert_eq!(allocating("parse @fast.cpython-311.so"), ["allocation"]);
        let package = "parse @/usr/lib/python3/dist-packages/fast.cpython-311.so";
        assert!(allocating(package).is_empty());
        assert!(allocating("list_append @python3").is_empty());
    }
}
