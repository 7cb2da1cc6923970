//! Functions that have a faster version for processors with AVX2, which is chosen when the program runs.
//!
//! By name only: `sum.default` and `sum.avx2` (compilers), `sum_c` and `ff_sum_avx2`, `sum_PRESCOTT` and `sum_HASWELL`.

use crate::names::symbol_table::FunctionSymbol;
use std::collections::HashSet;

/// What names of fast versions have in them, in small letters.
const FAST: [&str; 9] =
    ["avx", "fma", "haswell", "skylake", "zen", "x86_64_v3", "x86_64_v4", "icelake", "arch_x86"];

/// Where functions begin that have a faster version.
pub(super) fn with_faster(symbols: &[FunctionSymbol<'_>]) -> HashSet<u64> {
    let is_fast = |part: &str| FAST.iter().any(|word| part.starts_with(word));
    let mut fast: HashSet<String> = HashSet::new();
    for symbol in symbols {
        let name = symbol.name.to_ascii_lowercase();
        if FAST.iter().any(|word| name.contains(word)) {
            let parts: Vec<&str> = parts(&name).collect();
            let first = parts.iter().position(|part| is_fast(part));
            let kept = |at: usize| parts[..at].join("_");
            fast.extend(first.filter(|at| *at > 0).map(kept));
        }
    }
    let slow = symbols.iter().filter(|symbol| {
        let name = symbol.name.to_ascii_lowercase();
        let parts: Vec<&str> = parts(&name).collect();
        let shorter = (1..=parts.len()).rev().take(2).map(|count| parts[..count].join("_"));
        !parts.iter().any(|part| is_fast(part))
            && shorter.into_iter().any(|name| fast.contains(&name))
    });
    slow.map(|symbol| symbol.start).collect()
}

/// The parts of a name but for numbers, and what only says whose it is.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    name.split(['_', '.']).filter(move |part| !is_number(part) && *part != "ff")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_versions_are_recognised() {
        let names = [
            "sum.default.1",
            "sum.avx2.0",
            "scale_c",
            "ff_scale_avx2",
            "dot_k_PRESCOTT",
            "dot_k_HASWELL",
            "other",
            "other_c",
        ];
        let symbols: Vec<FunctionSymbol<'_>> = (0..)
            .zip(names)
            .map(|(start, name)| FunctionSymbol { start, end: start + 1, name })
            .collect();
        let mut slow: Vec<u64> = with_faster(&symbols).into_iter().collect();
        slow.sort_unstable();
        assert_eq!(slow, [0, 2, 4]);
    }
}
