//! What library functions do on the way to system calls: locks, states of the runtime, buffers. It goes away with the calls.
//!
//! - In: the places of calls.
//! - Out: the process' own time in the functions that mostly lead to these calls.
//! - Must not know: names of functions. A function that does more beside the calls than for them, such as one that
//!   formats what is then written, is left out; what it calls on the way is not.

use super::entry_cost::EntryPoints;
use crate::facts::call_site::{CallSite, Weights, amount, called_from};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_trace::ids::NameId;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// A line of the program: function, file, number.
type Line = (NameId, NameId, u32);

/// A library function on the way, with those that it calls on the way.
#[derive(Default)]
struct Function {
    /// The time of the calls that it makes itself.
    calls: Ns,
    /// The own time below it that is in none of the functions on the way.
    beside: Ns,
    calling: BTreeMap<NameId, Function>,
}

impl Function {
    /// The own time that is on the way, and that with the calls.
    fn on_the_way(&self) -> (Ns, Ns) {
        let below = self.calling.values().map(Self::on_the_way);
        let (own, all) =
            below.fold((Ns::ZERO, self.calls), |sum, (own, all)| (sum.0 + own, sum.1 + all));
        let more = if self.beside <= all { self.beside } else { Ns::ZERO };
        (own + more, all + more)
    }
}

/// The own time of a process on the way to the calls at these places, which take `ns`. Without the entry to the kernel: recording
/// takes time there, and `entry_cost` knows it.
pub(super) fn time(found: &Inspection<'_, '_>, process: ProcessId, places: &Weights, ns: Ns) -> Ns {
    let symbols = found.facts.symbols();
    let mut ways: BTreeMap<Line, Function> = BTreeMap::new();
    let all = amount(places).max(1);
    for (site, weight) in places {
        let Some(line) = called_from(symbols, *site) else { continue };
        let mut at = ways.entry(line).or_default();
        for function in from_the_line(symbols, *site) {
            at = at.calling.entry(function).or_default();
        }
        at.calls += ns.part(weight.amount as f64 / all as f64);
    }
    let entries = EntryPoints::of(symbols, places);
    for entry in found.wall.user_time_of(process) {
        for (site, weight) in &entry.samples {
            let Some(way) = called_from(symbols, *site).and_then(|line| ways.get_mut(&line)) else {
                continue;
            };
            if !entries.include(*site) {
                let part = weight.amount as f64 / entry.sampled().max(1) as f64;
                add(way, &from_the_line(symbols, *site), entry.ns.part(part));
            }
        }
    }
    let lines = ways.values().flat_map(|line| line.calling.values());
    lines.map(|function| function.on_the_way().0).sum()
}

/// Adds the time of a sample to the innermost function on the way that it is below.
fn add(line: &mut Function, functions: &[NameId], ns: Ns) {
    let mut at = line;
    for function in functions {
        if !at.calling.contains_key(function) {
            break;
        }
        at = at.calling.entry(*function).or_default();
    }
    at.beside += ns;
}

/// The library functions from the program's own line inwards.
fn from_the_line(symbols: &Symbols, site: CallSite) -> Vec<NameId> {
    let frames = site.library_frames(symbols);
    let mut functions: Vec<NameId> = frames.map(|(_, frame)| frame.function).collect();
    functions.reverse();
    functions
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    const LINE: &str = "fmt.Fprintf (/usr/local/go/src/fmt/print.go:9) <- main.main (m.go:9)";
    const WRITE: &str = "os.(*File).Write (/usr/local/go/src/os/file.go:9)";

    /// Prints 1000 lines, 200 of 1000 ns each in the call; where the program was sampled in between, in turn. The upper end of what
    /// tiny writes cost, in percent.
    fn most(between: &[&str]) -> f64 {
        let turn = |at: u64| {
            let sampled = between[usize::try_from(at / 1000).unwrap() % between.len()];
            format!(
                "{at} sample {sampled}\n\
                 {} syscall write 3 20 from syscall.write (/usr/local/go/src/syscall/z.go:9) @0x1000 <- {WRITE} <- {LINE}\n{} back 20\n",
                at + 500,
                at + 700
            )
        };
        let end = 1000 * 1000;
        let report = weighed(&format!(
            "image app path /bin/app language Go\nsample-period 1000\ntask 1 app\n0 fd 3 /tmp/out\n0 on\n0 exec /bin/app\n\
             0 main\n{}{end} exit\n{end} off dead",
            repeat(1000, 0, 1000, turn)
        ));
        let found = report.findings.iter().find(|found| found.class == "tiny-writes").unwrap();
        (found.high * 100.0).round()
    }

    #[test]
    fn what_leads_to_the_calls_counts_and_what_is_formatted_does_not() {
        let formats = format!("fmt.doPrintf (/usr/local/go/src/fmt/print.go:99) @0x2000 <- {LINE}");
        let locks = format!(
            "internal/poll.(*fdMutex).rwlock (/usr/local/go/src/internal/poll/fd.go:9) @0x3000 <- {WRITE} <- {LINE}"
        );
        let own = "main.main (m.go:8) @0x4000";
        let little = most(&[&formats, &formats, &formats, &formats, own]);
        let some = most(&[&formats, &formats, &formats, &formats, &locks]);
        // A fifth of the own time.
        assert!(little < 50.0 && (10.0..22.0).contains(&(some - little)), "{little} {some}");
    }
}
