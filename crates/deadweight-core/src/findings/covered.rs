//! Findings that go with another one, because their time is in the call that the other one leaves out.
//!
//! A file that is loaded for each item is also parsed, and allocates: that is one cost with one
//! remedy, not four.

use deadweight_report::report::{Finding, Site};
use deadweight_report::wording::time;
use deadweight_trace::units::Ns;

/// The remedy of these classes leaves out a whole call of the program's line ...
const WHOLE_CALLS: &[&str] = &["repeated-syscalls", "text-conversion"];
/// ... and with it these costs inside it, each with the word for it.
const INSIDE: &[(&str, &str)] = &[
    ("allocation", "allocating"),
    ("buffer-copies", "copying"),
    ("gc", "collecting garbage"),
    ("hashing", "hashing"),
    ("memory-churn", "giving memory back"),
    ("rescans", "searching text"),
    ("struct-copies", "copying values"),
    ("zeroing", "zeroing"),
];
/// So much of a finding must be at the lines of the other one: the rest is little.
const MOST: f64 = 0.75;

/// Removes the findings that go with a larger one. They become evidence of that one.
pub(super) fn remove_covered(findings: &mut Vec<Finding>) {
    for at in 0..findings.len() {
        let Some(covering) = findings.get(at) else { break };
        if !WHOLE_CALLS.contains(&covering.class.as_str()) {
            continue;
        }
        let covering = covering.clone();
        let mut parts = Vec::new();
        findings.retain(|finding| {
            let word = word(&covering, finding);
            parts.extend(word.map(|word| format!("{word} ({})", time(Ns(finding.amount_ns)))));
            word.is_none()
        });
        if let Some(covering) =
            findings.iter_mut().find(|f| **f == covering).filter(|_| !parts.is_empty())
        {
            covering
                .evidence
                .push(format!("part of this cost: {} at the same line", parts.join(", ")));
        }
    }
}

/// The word for a finding, if it goes with `covering`.
fn word(covering: &Finding, finding: &Finding) -> Option<&'static str> {
    let (_, word) = INSIDE.iter().find(|(class, _)| *class == finding.class)?;
    let there = |site: &&Site| covering.sites.iter().any(|of| is_one_line(of, site));
    let inside: f64 = finding.sites.iter().filter(there).map(|site| site.share).sum();
    let goes = covering.process == finding.process
        && covering.saving_ns >= finding.saving_ns
        && inside >= MOST;
    goes.then_some(*word)
}

fn is_one_line(a: &Site, b: &Site) -> bool {
    a.line > 0 && (&a.file, a.line) == (&b.file, b.line)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    /// The findings of a program that loads a file for each of 1000 messages, and allocates in a
    /// function that is called at this line.
    fn loading(line: u32) -> Vec<(String, String)> {
        let message = |at: u64| {
            let stack = "load @libc.so.6 <- template (mail.c:29) <- main (mail.c:50)";
            let fd = match (at / 900) % 7 {
                0 => format!("{} fd 3 /site/{}.conf\n", at + 305, at / 900 % 12),
                _ => String::new(),
            };
            let inside = if (at / 900).is_multiple_of(2) { "malloc" } else { "free" };
            format!(
                "{at} syscall openat 0 1 0 from {stack}\n{} back 3\n{fd}{} syscall read 3 512\n{} back 41\n\
                 {} syscall close 3\n{} back 0\n\
                 {} sample {inside} @libc.so.6 <- load @libc.so.6 <- template (mail.c:{line}) <- main (mail.c:50)\n",
                at + 300,
                at + 310,
                at + 400,
                at + 410,
                at + 500,
                at + 700,
            )
        };
        let messages = repeat(1000, 0, 900, message);
        let text = format!(
            "image mail path /bin/mail language C\nimage libc.so.6 path /lib/libc.so.6\nsample-period 900\ntask 1 mail\n0 on\n0 exec /bin/mail\n0 main\n{messages}900000 exit\n900000 off dead"
        );
        let findings = weighed(&text).findings.into_iter();
        findings.map(|f| (f.class, f.evidence.join("; "))).collect()
    }

    #[test]
    fn allocating_in_a_repeated_call_is_found_with_the_call() {
        let found = loading(29);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "repeated-syscalls");
        assert!(
            found[0].1.ends_with("part of this cost: allocating (420 µs) at the same line"),
            "{found:?}"
        );
    }

    #[test]
    fn allocating_at_another_line_stays_a_finding() {
        let classes: Vec<String> = loading(31).into_iter().map(|(class, _)| class).collect();
        assert_eq!(classes, ["repeated-syscalls", "allocation"]);
    }
}
