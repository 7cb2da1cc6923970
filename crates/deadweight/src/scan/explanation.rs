//! What `explain` says of the kinds of candidates that are no cost class. Those that are have the text of the class.

/// The text of each kind without a class.
const TEXTS: [(&str, &str); 2] =
    [("division", DIVISION), (super::kind::SCALAR_FLOATS, SCALAR_FLOATS)];

/// The kinds that have a text here.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(kind, _)| *kind)
}

/// The text of a kind.
#[must_use]
pub fn of(kind: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(name, _)| *name == kind).map(|(_, text)| *text)
}

const DIVISION: &str = "\
Division of integers in a loop.

# What it is
A loop divides by a value that the compiler did not know: 10 to 40 cycles where a multiplication takes 3.

# How deadweight knows
`deadweight scan` finds `div` or `idiv` in a loop. Whether the loop waits for it, only a run shows: the finding is
`slow-instructions`.

# What it is mistaken for
Divisors that differ each time: then the division is the work.

# What to do
A power of two, and a mask instead of a remainder; 32 bits instead of 64; the inverse, computed once outside the loop.
";

const SCALAR_FLOATS: &str = "\
Floating-point numbers one by one.

# What it is
A loop computes one floating-point number at a time, where a register of AVX2 (in nearly all x86-64 processors since 2015)
holds 8 numbers of 32 bits, or 4 of 64.

# How deadweight knows
`deadweight scan` finds an innermost loop of a single way, without calls, that only counters end. The numbers lie side by side
in memory, and no turn needs what another one computed, except for a sum (or product, or maximum). `1 double at a time, 4
fit` says how many. `a sum`: all numbers make one, in this order, and a compiler may not change the order, because the result
is rounded differently.

# What it is mistaken for
- A loop that makes few turns, or waits for memory: nothing is gained.
- Arrays that overlap: then a turn may need what another one stored.
- A version for old processors: the program may choose a faster one when it runs. That is known only by the names of both.
- A result that must be the same on all machines, to the last bit.
Loops with choices, with calls, over columns of a matrix, fields of structures, indexes or lists are not looked for.

# What to do
- C and C++: `-O3`, or `-O2 -ftree-vectorize` (GCC before version 12 does not vectorise at `-O2`, and later ones only where it is
  simple), with `-march=x86-64-v3`. `restrict` for arrays that do not overlap. For sums `-fassociative-math` or `-ffast-math`, for
  one loop `#pragma omp simd reduction(+:sum)` with `-fopenmp-simd`; or several sums, added at the end.
- Fortran: the same options; arrays never overlap there.
- Rust: iterators or slices of one length, so that no index is checked; `-C target-cpu=x86-64-v3`. Sums are never reordered: sum
  `chunks_exact(8)` into an array of 8 sums.
- Go never vectorises: assembly, or a library that has it (gonum's `f64`, for instance).
- Crystal: `--release`; without it nothing is vectorised. Sums in several variables.

# Seen in
`y[i] += a * x[i]` over 4096 floats in the first cache: 12 times as fast with `-O3 -mavx2 -mfma` as with `-O2` (GCC 12).
";

#[cfg(test)]
mod tests {
    use super::super::kind::KINDS;

    #[test]
    fn every_kind_without_a_class_has_a_text() {
        let without = KINDS.iter().filter(|kind| !kind.is_class).map(|kind| kind.name);
        assert!(without.eq(super::kinds()));
    }
}
