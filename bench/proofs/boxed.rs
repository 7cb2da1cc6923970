//! allocation: a box for each value. Fast: values.

#[cfg(not(fast))]
fn make(x: u32) -> Box<[u32; 6]> {
    Box::new([x, x ^ 1, x ^ 2, x ^ 3, x ^ 4, x ^ 5])
}

#[cfg(fast)]
fn make(x: u32) -> [u32; 6] {
    [x, x ^ 1, x ^ 2, x ^ 3, x ^ 4, x ^ 5]
}

fn main() {
    let (mut x, mut sum) = (1u32, 0u32);
    let mut held = Vec::with_capacity(100);
    for _ in 0..80_000 {
        for _ in 0..100 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            held.push(std::hint::black_box(make(x)));
        }
        sum = held.iter().fold(sum, |sum, value| sum.wrapping_add(value[3]));
        held.clear();
    }
    println!("{sum}");
}
