//! Work of the program's own initialisers, before main.

use super::{CLASS, LARGE, LONG};
use crate::account::EXIT;
use crate::facts::processes::ProcessId;
use crate::inspect::page_faults::faults_of;
use crate::inspect::shares::sampled_sites;
use crate::inspect::{Draft, Inspection};
use deadweight_report::report::How;
use deadweight_report::wording::time;
use deadweight_trace::units::Ns;

/// A finding for each process whose initialisers take much of the wall time.
pub(super) fn drafts(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let processes = found.facts.processes.ids();
    let own = processes.filter(|id| found.facts.processes.get(*id).own);
    own.filter_map(|id| draft(found, id)).collect()
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let ran = facts.processes.get(process).initialisers.as_ref()?;
    let on_path = |from: Ns, to: Ns| {
        let of_process = facts.path.pieces.iter().filter(|p| facts.processes.of(p.task) == process);
        let all: Ns = of_process.map(|p| p.end.min(to) - p.start.max(from)).sum();
        let waits = facts.path.waits(facts.timeline).filter(|(.., task, block)| {
            facts.processes.of(*task) == process && facts.waits_for_recording(*block)
        });
        all - waits.map(|(start, end, ..)| end.min(to) - start.max(from)).sum::<Ns>()
    };
    // The cost of recording, but for waits, is the same in each part.
    let net = |ns: Ns| found.wall.net().part(ns.share_of(on_path_of_all(found)));
    let amount = net(on_path(ran.from, ran.to));
    if amount < LONG || amount.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let after = net(on_path(ran.to, Ns::MAX));
    let freed = freed_at_the_end(found, process, (ran.from, ran.to));
    let name = facts.name(process);
    let language = facts.processes.get(process).language.as_str();
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "initialisers take much of a short run".into(),
        text: format!(
            "{name} spent {} in its own initialisers, before main; the rest of the run took {}.",
            time(amount),
            time(after)
        ),
        amount,
        saving: amount + freed,
        range: (amount - (after - freed), amount + freed),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &ran.places),
        evidence: evidence(freed),
        remedy: remedy(language).into(),
    })
}

/// The part of the process's end that frees the pages that it first touched in this time.
fn freed_at_the_end(found: &Inspection<'_, '_>, process: ProcessId, (from, to): (Ns, Ns)) -> Ns {
    let facts = found.facts;
    let tasks = &facts.processes.get(process).tasks;
    let met = tasks.iter().flat_map(|task| faults_of(facts, *task));
    let (then, all) = met
        .fold((0, 0), |(then, all), (at, _)| (then + usize::from(from <= at && at < to), all + 1));
    let end: Ns = found.wall.of_process(EXIT, process).map(|e| e.ns).sum();
    end.part(then as f64 / f64::from(all.max(1)))
}

fn evidence(freed: Ns) -> Vec<String> {
    let mut evidence = vec![
        "the lower bound assumes that making what main needs takes no longer than main itself"
            .into(),
    ];
    if freed >= LONG.part(0.1) {
        let freed = time(freed);
        evidence.push(format!("{freed} more at the end, to free the memory that they took"));
    }
    evidence
}

/// The wall time without waits for recording.
fn on_path_of_all(found: &Inspection<'_, '_>) -> Ns {
    let waits = found.facts.path.waits(found.facts.timeline);
    let recording = waits.filter(|(.., block)| found.facts.waits_for_recording(*block));
    found.wall.total - recording.map(|(start, end, ..)| end - start).sum::<Ns>()
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Go" => {
            "Compute package variables on first use: var rules = sync.OnceValue(compile), then rules() \
             where they are needed."
        }
        "C++" => {
            "Make static objects on first use: a function that returns a local static, instead of an \
             object at namespace scope."
        }
        _ => "Initialise on first use, instead of before main.",
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat, rows};
    use expect_test::expect;

    /// A run of 20 ms whose samples until `main_at` have this stack.
    fn tool(language: &str, stack: &str, main_at: u64, probe: bool) -> String {
        let early =
            repeat(main_at / 100_000 - 5, 500_000, 100_000, |at| format!("{at} sample {stack}\n"));
        let late = repeat((20_000_000 - main_at) / 100_000, main_at + 50_000, 100_000, |at| {
            format!("{at} sample main.main (m.go:30)\n")
        });
        let main = if probe { format!("{main_at} main\n") } else { String::new() };
        format!(
            "image tool path /bin/tool language {language}\nsample-period 100000\ntask 1 tool\n0 on\n\
             10 exec /bin/tool\n{early}{main}{late}20000000 exit\n20000000 off dead"
        )
    }

    const GO: &str = "regexp.compile (/usr/local/go/src/regexp/r.go:8) <- main.rules (m.go:22) <- \
                      main.init (m.go:16) <- runtime.doInit1 (/usr/local/go/src/runtime/proc.go:9) <- \
                      runtime.main (/usr/local/go/src/runtime/proc.go:10)";

    #[test]
    fn package_variables_are_found_with_and_without_a_probe_at_main() {
        expect![[r#"
            start-up 88 % (70..89) @ main.rules:22: tool spent 17.5 ms in its own initialisers, before main; the rest of the run took 2.00 ms.
        "#]].assert_eq(&found(&tool("Go", GO, 18_000_000, true)));
        expect![[r#"
            start-up 87 % (69..89) @ main.rules:22: tool spent 17.4 ms in its own initialisers, before main; the rest of the run took 2.10 ms.
        "#]].assert_eq(&found(&tool("Go", GO, 18_000_000, false)));
        expect![[r#"
            text-conversion 17500000
            net-work 2000000
            start-up 500000 exec, linking and initialising
        "#]]
        .assert_eq(&rows(&tool("Go", GO, 18_000_000, true), 3));
    }

    #[test]
    fn static_objects_are_found() {
        let stack = "Table::Table (t.cpp:8) <- _GLOBAL__sub_I_table (t.cpp:20) <- __libc_csu_init";
        expect![[r#"
            start-up 73 % (43..77) @ Table::Table:8: tool spent 14.5 ms in its own initialisers, before main; the rest of the run took 5.00 ms.
        "#]].assert_eq(&found(&tool("C++", stack, 15_000_000, true)));
    }

    #[test]
    fn the_c_librarys_entry_is_no_end_and_a_library_that_main_loads_is_refused() {
        let stack = "Table::Table (t.cpp:8) <- _GLOBAL__sub_I_table (t.cpp:20) <- call_init";
        let text = tool("C++", stack, 15_000_000, false)
            .replace("10 exec /bin/tool\n", "10 exec /bin/tool\n20 main\n");
        assert!(found(&text).contains("in its own initialisers"), "{}", found(&text));
        let loaded = text.replace("<- call_init", "<- call_init <- dlopen <- main (t.cpp:30)");
        assert!(!found(&loaded).contains("in its own initialisers"), "{}", found(&loaded));
    }

    #[test]
    fn the_runtime_and_short_initialisers_are_refused() {
        let runtime = GO.replace(
            "main.rules (m.go:22) <- main.init (m.go:16)",
            "regexp.init (/usr/local/go/src/regexp/r.go:1)",
        );
        assert!(!found(&tool("Go", &runtime, 18_000_000, false)).contains("initialisers"));
        assert!(!found(&tool("Go", GO, 2_000_000, true)).contains("initialisers"));
    }
}
