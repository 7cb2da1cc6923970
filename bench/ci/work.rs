//! Work for the measurement of `deadweight ci`, as a Rust benchmark with a fixed number of operations. Does not measure.
//!
//! cfg(plant_time): 5 % more time; cfg(plant_allocation): one more allocation of each operation.
use std::hint::black_box;

/// What every build has of its own, such as a commit: another text of the same length.
#[used]
static VERSION: [u8; 4] = *if cfg!(again) { b"v002" } else { b"v001" };
const STEPS: u64 = if cfg!(plant_time) { 10_500 } else { 10_000 };

#[inline(never)]
fn work(mut s: u64) -> u64 {
    for i in 0..STEPS {
        s = black_box(s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
    }
    s
}

#[inline(never)]
fn operation(i: u64) -> u64 {
    let words: Vec<u64> = black_box(vec![i; 8]);
    if cfg!(plant_allocation) {
        black_box(words.clone());
    }
    work(words[7])
}

fn main() {
    let sum = (0..2000).map(operation).fold(0, u64::wrapping_add);
    println!("{}", sum != 1);
}
