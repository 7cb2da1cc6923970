//! What both Rust forms share: how many trees of which depth, and what is printed; as `report.go`.

/// Runs the benchmark to the depth in the first argument. `count` builds, counts and drops a tree;
/// `keep` builds one that stays, and says how to count it.
pub fn run(mut count: impl FnMut(u32) -> u64, keep: impl FnOnce(u32) -> Box<dyn Fn() -> u64>) {
    const LEAST: u32 = 4;
    let depth = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10);
    let most = LEAST.saturating_add(2).max(depth);
    println!("stretch tree of depth {}\t check: {}", most + 1, count(most + 1));
    let kept = keep(most);
    for depth in (LEAST..=most).step_by(2) {
        let trees = 1_u64 << (most - depth + LEAST);
        let nodes: u64 = (0..trees).map(|_| count(depth)).sum();
        println!("{trees}\t trees of depth {depth}\t check: {nodes}");
    }
    println!("long lived tree of depth {most}\t check: {}", kept());
}
