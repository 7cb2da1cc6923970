//! atomics: references that one thread counts with atomic operations. Fast: without.
#[cfg(fast)]
use std::rc::Rc as Shared;
#[cfg(not(fast))]
use std::sync::Arc as Shared;

fn main() {
    let shapes: Vec<Shared<[u32; 4]>> = (0..64).map(|i| Shared::new([i; 4])).collect();
    let (mut sum, mut x) = (0u32, 1u32);
    for _ in 0..8_000_000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let shape = std::hint::black_box(Shared::clone(&shapes[(x >> 26) as usize]));
        sum = sum.wrapping_add(shape[1] ^ x);
    }
    println!("{sum}");
}
