//! Dynamic calls, closures, generic code and a thread, for unwinding.
use std::collections::HashMap;
use std::hint::black_box;

trait Shape {
    fn area(&self, n: u64) -> u64;
}
struct Sorted(Vec<u64>);
struct Named(HashMap<u64, String>);

impl Shape for Sorted {
    fn area(&self, n: u64) -> u64 {
        let mut v: Vec<u64> = self.0.iter().map(|x| x.wrapping_mul(n)).collect();
        v.sort_by(|a, b| b.cmp(a));
        v[n as usize % v.len()]
    }
}
impl Shape for Named {
    fn area(&self, n: u64) -> u64 {
        (0..200).map(|i| self.0.get(&(i * n % 1000)).map_or(0, |s| s.len() as u64)).sum()
    }
}

#[inline(never)]
fn deep(depth: u32, shape: &dyn Shape, n: u64) -> u64 {
    if depth == 0 {
        return shape.area(n);
    }
    let scratch = black_box([n; 16]);
    deep(depth - 1, shape, n + scratch[3] % 3).wrapping_add(scratch[1])
}

fn main() {
    let sorted = Sorted((0..3000).map(|x| x * 7919 % 3001).collect());
    let named = Named((0..1000).map(|i| (i, format!("{i:?}"))).collect());
    let thread = std::thread::spawn(move || {
        (0..6000).fold(0u64, |sum, i| sum.wrapping_add(deep(10, &sorted, i + 1)))
    });
    let sum = (0..20_000).fold(0u64, |sum, i| sum.wrapping_add(deep(5, &named, i + 1)));
    println!("{}", sum.wrapping_add(thread.join().unwrap()));
}
