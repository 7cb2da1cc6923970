//! Environment variables that are asked for again and again: each question goes through all of them, from the first one on.

use super::CLASS;
use crate::facts::call_site::is_interpreted;
use crate::facts::processes::ProcessId;
use crate::inspect::shares::{Chosen, sampled_sites};
use crate::inspect::{Draft, Inspection};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.08;
/// The part of the time that goes away, least and typical: one question remains.
const LEAST: f64 = 0.8;
const TYPICAL: f64 = 0.97;
/// Functions that ask.
const ASKS: &[&str] = &["getenv", "secure_getenv", "__GI_getenv"];

pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    if is_interpreted(&facts.processes.get(process).language) {
        return None;
    }
    let chosen = Chosen::of(found, process, |stack| {
        let sample = found.facts.sample(stack);
        sample.own.is_some() && sample.library().any(|(name, _)| ASKS.contains(&name))
    });
    let (net, ns) = (found.wall.net(), chosen.ns);
    if ns.share_of(net) < LARGE {
        return None;
    }
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "the environment searched for each question".into(),
        text: format!(
            "{} spent {} of its {} ({}) in getenv, which goes through all variables each time.",
            facts.name(process),
            time(ns),
            time(net),
            percent(ns, net),
        ),
        amount: ns,
        saving: ns.part(TYPICAL),
        range: (ns.part(LEAST), ns),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &chosen.places),
        evidence: vec![format!("{} in getenv", things(chosen.samples, "sample"))],
        remedy: "Ask once, at the start, and keep the answer in a variable (a static, OnceLock)."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{computing, found};
    use expect_test::expect;

    const ASKED: &str = "getenv @libc.so.6 <- verbose (v.c:4) <- main (v.c:9)";

    #[test]
    fn a_variable_that_is_asked_for_again_and_again_is_found() {
        let text = computing("C", &[(70, ASKED), (30, "main (v.c:10)")]);
        expect![[r#"
            rescans 68 % (50..74) @ verbose:4: app spent 69.7 µs of its 100 µs (70 %) in getenv, which goes through all variables each time.
        "#]]
        .assert_eq(&found(&text));
    }

    #[test]
    fn a_few_questions_and_those_of_an_interpreter_are_refused() {
        assert_eq!(found(&computing("C", &[(5, ASKED), (95, "main (v.c:10)")])), "");
        assert_eq!(found(&computing("Python", &[(70, ASKED), (30, "main (v.c:10)")])), "");
    }
}
