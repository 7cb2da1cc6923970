//! The places of a finding about a collector: lines of the program's own code. Not the collector's functions.

use super::CLASS;
use crate::account::AccountId;
use crate::facts::call_site::{Weights, add, amount};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::{Share, sampled_sites};
use deadweight_report::report::Site;

/// Below this part of the collector's time a place explains nothing of it.
const LITTLE: f64 = 0.05;

/// Where the program's own code allocates or helps the collector: the lines to change.
pub(super) fn sites(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Site> {
    let language = found.facts.processes.get(process).language.as_str();
    // GHC's code has a stack of its own: the C stack ends at the scheduler, which is no line to change.
    if language == "Haskell" {
        return Vec::new();
    }
    let (all, own) = weights(found, process);
    let mut sites = sampled_sites(found.facts.symbols(), &own);
    // There the collector runs where the program allocates: what has no line of an extension is the script's.
    if matches!(language, "Python" | "Ruby") {
        let part = amount(&own) as f64 / amount(&all).max(1) as f64;
        sites.iter_mut().for_each(|site| site.share *= part);
        sites.retain(|site| site.share >= LITTLE);
    }
    sites
}

/// What the collector and the allocator took at which stack, and what of it is below the program's own code. A collector
/// on threads of its own has no such stacks: the allocations say what it has to collect.
fn weights(found: &Inspection<'_, '_>, process: ProcessId) -> (Weights, Weights) {
    let mut all = Weights::new();
    for class in [CLASS.id, "allocation"] {
        if let Some(share) = Share::of(found.cpu, AccountId::of_class(class), process) {
            add(&mut all, &share.places);
        }
    }
    let mut own = all.clone();
    own.retain(|site, _| site.stack().is_some_and(|stack| found.facts.sample(stack).own.is_some()));
    (all, own)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::weighed;
    use std::fmt::Write;

    /// A script that allocates `of_ten` times in ten in an extension, and else in its own code.
    fn collects(of_ten: u64) -> Vec<String> {
        let mut text =
            "image python3 path /usr/bin/python3 language Python\ntask 1 python3\n0 cpu0 on\n\
            0 exec /usr/bin/python3\n0 main\n"
                .to_owned();
        for at in (500..100_000).step_by(1000) {
            let load = if at / 1000 % 10 < of_ten { "load (fast.c:7) @fast.so <- " } else { "" };
            let inner = ["visit_decref <- gc_collect_main", "_PyEval_EvalFrameDefault"];
            let inner = inner[usize::from(at / 1000 % 20 >= 10)].replace(" <- ", " @python3 <- ");
            let below = "_PyEval_EvalFrameDefault @python3 <- main @python3";
            writeln!(text, "{at} sample {inner} @python3 <- {load}{below}").unwrap();
        }
        text.push_str("100000 exit\n100000 off dead");
        let findings = weighed(&text).findings;
        let finding = findings.iter().find(|finding| finding.class == "gc").expect("gc");
        finding.sites.iter().map(|s| format!("{}:{} {:.1}", s.function, s.line, s.share)).collect()
    }

    #[test]
    fn lines_of_an_extension_have_their_own_part() {
        assert_eq!(collects(10), ["load:7 1.0"]);
        assert_eq!(collects(5), ["load:7 0.5"]);
        assert!(collects(0).is_empty());
    }
}
