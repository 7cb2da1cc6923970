//! Counts articles by number, in a map with the default hasher.

use std::collections::HashMap;

fn count(stock: &mut HashMap<u32, u32>, article: u32) {
    *stock.entry(article).or_insert(0) += 1; // the line to name
}

fn main() {
    let sales: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000_000);
    let mut stock = HashMap::new();
    let mut article = 1_u32;
    for _ in 0..sales {
        article = article.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        count(&mut stock, article >> 22);
    }
    println!("{} {}", stock.len(), stock.values().max().unwrap_or(&0));
}
