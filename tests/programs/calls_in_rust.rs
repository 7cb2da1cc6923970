//! 200 000 calls of `parse`, each with two allocations, 124 bytes in all; one of them grows to 200.

use std::hint::black_box;

#[inline(never)]
fn parse(i: usize) -> usize {
    let key = black_box(Box::new([i; 3])); // 24 bytes
    let mut value: Vec<u8> = Vec::with_capacity(100); // the line to name
    value.resize(100, 1);
    black_box(&mut value).reserve_exact(100);
    key[i % 3] + usize::from(value[i % 100])
}

fn main() {
    let sum: usize = (0..200_000).map(|i| parse(black_box(i))).sum();
    println!("{sum}");
}
