//! Numbers as words for the sentences of notes, findings and hazards.
//!
//! Not for tables with columns, bars and colours; see `render` in `deadweight`.

use deadweight_trace::units::Ns;

/// `n` in groups of three digits: `4 003`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `n` with a noun: `1 call`, `4 003 calls`, `2 switches`. The plural of `one` has an `s`, or `es`.
pub fn things(n: u64, one: &str) -> String {
    let plural = if one.ends_with("ch") || one.ends_with("ss") { "es" } else { "s" };
    format!("{} {one}{}", count(n), if n == 1 { "" } else { plural })
}

/// A duration to three digits: `426 ns`, `12.1 µs`, `1.69 ms`, `2.50 s`.
pub fn time(ns: Ns) -> String {
    let scaled = |unit: u64, name: &str| {
        let value = ns.0 as f64 / unit as f64;
        let digits = if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        };
        format!("{value:.digits$} {name}")
    };
    match ns.0 {
        0..1_000 => format!("{} ns", ns.0),
        1_000..1_000_000 => scaled(1_000, "µs"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "ms"),
        _ => scaled(1_000_000_000, "s"),
    }
}

/// An amount of memory or data: `1 byte`, `160 bytes`, `64 KiB`, `2.4 MiB`.
pub fn bytes(n: u64) -> String {
    let scaled = |shift: u32, name: &str| {
        let value = n as f64 / (1u64 << shift) as f64;
        let digits = usize::from(value < 9.95 && !n.is_multiple_of(1 << shift));
        format!("{value:.digits$} {name}")
    };
    match n {
        0..4096 => things(n, "byte"),
        4096..1_048_576 => scaled(10, "KiB"),
        1_048_576..1_073_741_824 => scaled(20, "MiB"),
        _ => scaled(30, "GiB"),
    }
}

/// `part` of `whole` in whole percent, `below 1 %` where that would be 0.
pub fn percent(part: Ns, whole: Ns) -> String {
    let share = 100.0 * part.share_of(whole);
    if share > 0.0 && share < 0.5 { "below 1 %".into() } else { format!("{share:.0} %") }
}

/// A word as a shell reads it.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./:,@%^".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The word that differs from `word` in two letters at most, if the rest is enough to tell.
#[must_use]
pub fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let few = (word.chars().count() / 3).min(2);
    let near = among.map(|other| (distance(word, other), other)).min_by_key(|(far, _)| *far);
    near.filter(|(far, _)| *far <= few).map(|(_, other)| other)
}

/// How many letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(things(4003, "call"), "4 003 calls");
        assert_eq!(things(1, "byte"), "1 byte");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(time(Ns(426)), "426 ns");
        assert_eq!(time(Ns(12_100)), "12.1 µs");
        assert_eq!(time(Ns(1_690_000)), "1.69 ms");
        assert_eq!(time(Ns(999_999)), "1000 µs");
        assert_eq!(bytes(65536), "64 KiB");
        assert_eq!(bytes(2_500_000), "2.4 MiB");
        assert_eq!(percent(Ns(3), Ns(1000)), "below 1 %");
    }
}
