//! Follows a chain of indexes through a large table: each check waits for the load of its index.
fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(6_000_000_u64);
    let size = 1_usize << 22;
    let mut next: Vec<u32> = (0..size as u32).collect();
    // One cycle through all entries, in a random order.
    let mut seed = 1_u64;
    for last in (1..size).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next.swap(last, (seed >> 33) as usize % last);
    }
    println!("{}", follow(&next, rounds));
}

#[inline(never)]
fn follow(next: &[u32], rounds: u64) -> u64 {
    let (mut at, mut sum) = (0_u32, 0_u64);
    for _ in 0..rounds {
        at = next[at as usize];
        sum += u64::from(at);
    }
    sum
}
