//! Folded stacks: a line for each stack, with its time on the path in nanoseconds at the end.
//!
//! The frames before the stack are the row of the ledger, the process and, where it has a name of its own, the thread. So
//! the lowest layer of a flame graph is the ledger. Threads of the same name are one.

use crate::names::{frames, roots};
use deadweight_core::OneRun;
use std::collections::BTreeMap;

/// The wall time, stack by stack. The numbers add up to it exactly.
#[must_use]
pub fn folded(run: &OneRun<'_, '_>) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for time in run.path_stacks() {
        let mut words: Vec<String> = roots(run, &time).iter().map(|name| word(name)).collect();
        let stack = frames(run.symbols(), &time);
        words.extend(stack.iter().map(|frame| word(&frame.function)));
        *lines.entry(words.join(";")).or_default() += time.ns.0;
    }
    lines.into_iter().map(|(stack, ns)| format!("{stack} {ns}\n")).collect()
}

/// A frame without the character that separates frames. `#` would begin a comment.
fn word(name: &str) -> String {
    name.replace(';', ":").replace('#', "♯")
}

#[cfg(test)]
mod tests {
    use super::folded;
    use crate::tests::{TWO_THREADS, of_golden, of_text};
    use expect_test::expect;

    #[test]
    fn the_lowest_frame_is_the_row() {
        let text = of_text(TWO_THREADS, |_, run| folded(run));
        expect![[r#"
            exit;main;[freeing memory] 100
            net work;main;main;hash 530
            net work;main;worker;work;add 328
            start-up;main;[exec, linking and initialising] 20
            system calls;main;main;next;[read] 20
            system calls;main;worker;[futex] 2
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn the_lines_add_up_to_the_wall_time() {
        of_golden(|name, report, run| {
            let text = folded(run);
            let ns = |line: &str| line.rsplit_once(' ').map(|(_, ns)| ns.parse().unwrap_or(0));
            let sum: u64 = text.lines().filter_map(ns).sum();
            assert_eq!(sum, report.wall_ns, "{name}");
        });
    }
}
