//! Looks up a unit for every reading; each look-up clones a reference-counted pointer.
use std::sync::Arc;

struct Unit {
    scale: u64,
    offset: u64,
}

struct Units {
    all: Vec<Arc<Unit>>,
}

impl Units {
    #[inline(never)]
    fn of(&self, at: usize) -> Arc<Unit> {
        self.all[at % self.all.len()].clone() // the line to name
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000_000);
    let all = (0..64).map(|i| Arc::new(Unit { scale: i, offset: i * 3 })).collect();
    let units = Units { all };
    let mut sum = 0_u64;
    for at in 0..rounds {
        let unit = units.of(at);
        sum = sum.wrapping_add(unit.scale * 7 + unit.offset);
    }
    println!("{sum}");
}
