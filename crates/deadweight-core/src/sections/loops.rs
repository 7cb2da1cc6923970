//! Why hot loops take their time, in all detail (`--why`): how fast they turn, what their samples wait for, and which signs
//! there are of each reason, also where no cost class speaks.

use crate::account::inside::Function;
use crate::cost;
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_own};
use crate::facts::hot_loops::memory::{LINE, Reached};
use crate::facts::hot_loops::reason::{Reason, SLOW, Signs};
use crate::facts::hot_loops::speed::Speed;
use crate::facts::hot_loops::{self, HotLoop, LoopSample};
use crate::facts::processes::ProcessId;
use crate::inspect::shares::sampled_sites;
use deadweight_code::machine_code::FunctionId;
use deadweight_report::report::{LoopReading, LoopSign, LoopWait, Loops};
use deadweight_report::wording::{bytes, things};
use deadweight_trace::ids::StackId;
use deadweight_trace::units::FileAddr;
use std::collections::BTreeMap;

/// Loops, and instructions of each, that are shown.
const LOOPS: usize = 5;
const WAITS: usize = 6;
/// Loops with a smaller part of all samples, and instructions with a smaller part of a loop's, are left out.
const FEW: f64 = 0.03;
/// A turn that takes a smaller part of what its instructions need shows that they need less.
const FASTEST: f64 = 0.8;
/// From this part of its samples on, far memory is worth a word.
const MUCH: f64 = 0.5;
/// From this part of its samples on, lines that threads share are a loop's reason.
const SHARED: f64 = 0.25;
/// A turn whose instructions could begin in so many times less time waits for a chain of results.
const CHAINED: f64 = 2.0;

/// The loops of the subject's processes, with `within` those that ran under this function.
pub(crate) fn loops(facts: &Facts<'_>, within: Option<&str>) -> Loops {
    let function = within.map(|name| Function::named(facts.symbols(), name));
    let counts = |stack: StackId| {
        let under = |function| Function::holds(function, facts.symbols(), CallSite::Stack(stack));
        function.as_ref().is_none_or(under)
    };
    let (mut samples, mut found) = (0, Vec::new());
    for process in facts.processes.ids().filter(|id| facts.processes.get(*id).own) {
        let (all, loops) = hot_loops::within(facts, process, (FEW, |_| true), counts);
        samples += all;
        found.extend(loops.into_iter().map(|hot| (process, hot)));
    }
    // A loop of a short process has little of the command's time.
    let enough = samples >= hot_loops::SAMPLES;
    found.retain(|(_, hot)| enough && hot.samples.len() as f64 >= FEW * samples as f64);
    found.sort_by_key(|(_, hot)| std::cmp::Reverse(hot.samples.len()));
    found.truncate(LOOPS);
    let all: Vec<_> = found.iter().map(|(process, hot)| reading(facts, *process, hot)).collect();
    let cannot = if all.is_empty() { cannot(facts, samples) } else { String::new() };
    Loops { samples: samples as u64, all, cannot }
}

/// Why there is no loop.
fn cannot(facts: &Facts<'_>, samples: usize) -> String {
    if facts.timeline.registers.is_empty() {
        return "the recording has no registers at its samples: only recordings with perf events have them".into();
    }
    match samples {
        0 => "no sample of the program's own code is in it".into(),
        1..hot_loops::SAMPLES => format!(
            "it has {} of the program's own code, and a loop needs {}: run it for longer",
            things(samples as u64, "sample"),
            hot_loops::SAMPLES
        ),
        _ => format!(
            "none of its loops has {:.0} % of the {samples} samples, or their machine code is not known",
            FEW * 100.0
        ),
    }
}

fn reading(facts: &Facts<'_>, process: ProcessId, hot: &HotLoop) -> LoopReading {
    let mut places = Weights::new();
    for sample in hot.samples.iter().filter(|sample| sample.function == hot.function) {
        places.entry(CallSite::Stack(sample.stack)).or_default().amount += 1;
    }
    let site = sampled_sites(facts.symbols(), &places).into_iter().next().unwrap_or_default();
    let shared = cost::falsely_shared(facts, process, &hot.samples);
    let sign = |(of, share): (&str, f64)| LoopSign { of: of.to_owned(), share };
    let signs = Signs::of(facts, hot).shares(hot);
    let (class, reason) = reason(hot, shared, signs[0].1);
    let signs = signs.into_iter();
    let signs = signs.chain([("shared lines", shared)]).map(sign);
    let enough = hot.samples.len() >= hot_loops::SAMPLES;
    LoopReading {
        process: facts.name(process),
        function: match site.function.as_str() {
            "" => facts.symbols().name(facts.machine.code(hot.function).name).to_owned(),
            _ => site.function,
        },
        file: site.file,
        line: site.line,
        samples: hot.samples.len() as u64,
        turn_ns: hot.speed.map(|speed| speed.turn),
        // What is faster than it can be has other needs than are known.
        least_ns: hot.speed.filter(|s| s.ratio() >= FASTEST).map(|speed| speed.least_here()),
        class: class.to_owned(),
        reason,
        signs: if enough { signs.collect() } else { Vec::new() },
        waits: if enough { waits(facts, hot) } else { Vec::new() },
    }
}

/// The cost class of a loop's reason, and the reason in words.
fn reason(hot: &HotLoop, shared: f64, far: f64) -> (&'static str, String) {
    if shared >= SHARED {
        return ("false-sharing", "its threads write to one cache line".into());
    }
    let named = |class, words: &str| (class, words.to_owned());
    match (&hot.reason, hot.speed.map(|speed| speed.ratio_here())) {
        (Some(Reason::Memory(_)), _) => named("cache-misses", "it waits for memory"),
        (Some(Reason::Branches(_)), _) => {
            named("branch-misses", "its branches go where the CPU does not expect")
        }
        (Some(Reason::Divisions(_)), _) => named(
            "slow-instructions",
            "it waits for divisions that another computation can replace",
        ),
        (Some(Reason::Pages(_)), _) => named("small-pages", "it uses little of each of many pages"),
        (None, _) if hot.samples.len() < hot_loops::SAMPLES => (
            "",
            format!(
                "too few samples to tell ({}, and {} are needed): a longer run has more",
                hot.samples.len(),
                hot_loops::SAMPLES
            ),
        ),
        (None, Some(ratio)) if ratio < SLOW && far >= MUCH => named(
            "",
            "it is hardly slower than its instructions need, and most samples wait for far memory",
        ),
        (None, Some(ratio)) if ratio < SLOW && hot.speed.is_some_and(is_chained) => named(
            "",
            "it is as fast as its instructions can follow each other: each turn needs what the one before computed. \
             Independent work side by side, such as several sums, makes it faster",
        ),
        (None, Some(ratio)) if ratio < SLOW => {
            named("", "it is not slow: only fewer or other instructions make it faster")
        }
        (None, Some(_)) => named("", "it is slow, and the samples do not show why"),
        (None, None) => named(
            "",
            "how long a turn takes is not known, because no register shows how often it turned: so no reason is given",
        ),
    }
}

/// Whether a turn's instructions could begin in much less time, if they did not need each other's results.
fn is_chained(speed: Speed) -> bool {
    speed.least >= CHAINED * speed.begun
}

/// The instructions that samples wait for, most first.
fn waits(facts: &Facts<'_>, hot: &HotLoop) -> Vec<LoopWait> {
    let mut at: BTreeMap<(FunctionId, FileAddr), Vec<&LoopSample>> = BTreeMap::new();
    for sample in &hot.samples {
        at.entry((sample.function, sample.waited)).or_default().push(sample);
    }
    let mut at: Vec<_> = at.into_iter().collect();
    at.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.len()));
    let part = |samples: &[&LoopSample]| samples.len() as f64 / hot.samples.len().max(1) as f64;
    let notable = at.iter().filter(|(_, samples)| part(samples) >= FEW).take(WAITS);
    notable
        .map(|((function, addr), samples)| {
            let first = samples.first().map_or(StackId(0), |sample| sample.stack);
            let (file, line) = line(facts, (*function, *addr), first);
            let by = samples.iter().find_map(|sample| sample.access).map(|access| access.by);
            let reached = hot.reached.iter().find(|reached| Some(reached.by) == by);
            LoopWait {
                instruction: text(facts, *function, *addr),
                file,
                line,
                share: part(samples),
                memory: reached.map_or(String::new(), memory),
            }
        })
        .collect()
}

/// The line of an instruction, where that is known; else that of the sample behind it.
fn line(
    facts: &Facts<'_>,
    (function, addr): (FunctionId, FileAddr),
    sample: StackId,
) -> (String, u32) {
    let symbols = facts.symbols();
    let itself = facts.machine.location(facts.machine.code(function).image, addr);
    let location = itself.or_else(|| symbols.stack(sample).first().copied());
    let location = location.and_then(|at| symbols.locations.get(at.index()));
    let frame = location.and_then(|at| {
        at.frames.iter().find(|frame| is_own(symbols, at, frame)).or(at.frames.first())
    });
    frame.map_or((String::new(), 0), |frame| (symbols.name(frame.file).to_owned(), frame.line))
}

/// An instruction as text.
fn text(facts: &Facts<'_>, function: FunctionId, addr: FileAddr) -> String {
    let code = facts.machine.function(function);
    let lines = facts.machine.reading(function, |bytes, names| code.lines(bytes, names, &[]));
    lines.into_iter().find(|line| line.addr == addr).map_or(String::new(), |line| line.text)
}

/// What the addresses of an access show.
fn memory(reached: &Reached) -> String {
    if reached.lines < 2.0 {
        return "always the same line".into();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let size = bytes(reached.footprint() as u64);
    let order = match (reached.spacing, reached.in_order) {
        (Some(spacing), _) => {
            format!("{spacing} bytes apart, {:.0} of {LINE} bytes of a line used", reached.used)
        }
        (None, true) => "in order".to_owned(),
        (None, false) if reached.chased => "each address comes from the access before".to_owned(),
        (None, false) => "in no order".to_owned(),
    };
    format!("{order}; {size} of lines or more")
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::looping;
    use crate::{Weighing, weigh};
    use deadweight_report::report::Loops;
    use deadweight_trace::Trace;
    use expect_test::expect;

    // 0: addss xmm0, [rdx]; 4: add rdx, rdi; 7: add eax, 1; a: cmp eax, esi; c: jne 0; e: ret
    const COLUMN: &str = "code sum @0x1000 f30f5802 4801fa 83c001 39f0 75f2 c3";

    /// A sum of numbers that are `stride` bytes apart, with a thousand turns from one sample to the next.
    fn column(count: u64, stride: u64) -> String {
        looping(COLUMN, count, |i| {
            let at = i * 1000 % 1_000_000;
            let stack = "sum (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(0, at), (2, 0x7f00_0000_0000 + at * stride), (7, stride)])
        })
    }

    fn asked(text: &str, inside: Option<&str>) -> Loops {
        let traces = [Trace::from_text(text).unwrap()];
        let weighing = Weighing { traces: &traces, inside, why: true, ..Weighing::default() };
        weigh(&weighing).unwrap().loops.unwrap()
    }

    /// A line for each loop.
    fn read(text: &str, inside: Option<&str>) -> String {
        let loops = asked(text, inside);
        let mut lines = vec![format!("{} samples {}", loops.samples, loops.cannot)];
        for one in &loops.all {
            let turn = one.turn_ns.zip(one.least_ns);
            let turn = turn.map(|(turn, least)| format!("{turn:.1} ns for {least:.1}"));
            lines.push(format!(
                "{}:{} {} [{}] {}; {}",
                one.function,
                one.line,
                one.samples,
                one.class,
                one.reason,
                turn.unwrap_or_default()
            ));
            let waits = one.waits.iter();
            lines
                .extend(waits.map(|w| format!("  {:.2} {}: {}", w.share, w.instruction, w.memory)));
            let signs: Vec<String> =
                one.signs.iter().map(|s| format!("{} {:.2}", s.of, s.share)).collect();
            lines.push(format!("  {}", signs.join(", ")));
        }
        lines.join("\n")
    }

    #[test]
    fn a_slow_loop_is_read_in_detail() {
        expect![[r#"
            100 samples 
            sum:5 100 [cache-misses] it waits for memory; 10.0 ns for 1.2
              1.00 addss xmm0, [rdx]: 4096 bytes apart, 4 of 64 bytes of a line used; 6.0 MiB of lines or more
              far memory 1.00, branches 0.00, divisions 0.00, small pages 0.00, shared lines 0.00"#]].assert_eq(&read(&column(100, 4096), None));
    }

    /// What no class may speak of has its figures too.
    #[test]
    fn a_loop_that_is_not_slow_has_its_figures() {
        let fast = looping(COLUMN, 100, |i| {
            let at = i * 8000 % 8_000_000;
            let stack = "sum (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(0, at), (2, 0x7f00_0000_0000 + at * 4), (7, 4)])
        });
        expect![[r#"
            100 samples 
            sum:5 100 [] it is as fast as its instructions can follow each other: each turn needs what the one before computed. Independent work side by side, such as several sums, makes it faster; 1.2 ns for 1.2
              1.00 addss xmm0, [rdx]: 4 bytes apart, 64 of 64 bytes of a line used; 3.0 MiB of lines or more
              far memory 0.00, branches 0.00, divisions 0.00, small pages 0.00, shared lines 0.00"#]].assert_eq(&read(&fast, None));
    }

    #[test]
    fn only_samples_under_a_function_count() {
        let other = column(100, 4096).replacen("main (s.c:9)", "idle (s.c:20)", 50);
        assert_eq!(asked(&other, None).samples, 100);
        let under = asked(&other, Some("idle"));
        assert_eq!((under.samples, under.all[0].samples), (50, 50));
    }

    #[test]
    fn what_cannot_be_said_has_its_reason() {
        let few = column(30, 4096);
        let few = asked(&few, None);
        assert!(few.all.is_empty() && few.cannot.starts_with("it has 30 samples"), "{few:?}");
        let half = column(50, 4096).replacen("sum (s.c:5) @0x1004", "idle (s.c:20)", 20);
        let half = asked(&half, None);
        assert!(half.all[0].reason.starts_with("too few samples to tell (30,"), "{half:?}");
        let lines = column(100, 4096);
        let without: Vec<&str> = lines.lines().filter(|l| !l.contains(" registers ")).collect();
        assert!(asked(&without.join("\n"), None).cannot.contains("no registers"));
    }

    #[test]
    fn without_the_question_there_is_no_answer() {
        let traces = [Trace::from_text(&column(100, 4096)).unwrap()];
        let report = weigh(&Weighing { traces: &traces, ..Weighing::default() }).unwrap();
        assert_eq!(report.loops, None);
    }
}
