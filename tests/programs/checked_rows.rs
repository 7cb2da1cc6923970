//! Smooths a field again and again; every access of a row checks its index.
struct Field {
    rows: Vec<Vec<f32>>,
    next: Vec<Vec<f32>>,
}

impl Field {
    #[inline(never)]
    fn smooth(&mut self, width: usize) {
        for y in 1..self.rows.len() - 1 {
            for x in 1..width - 1 {
                // The line to name.
                let sides = self.rows[y][x - 1] + self.rows[y][x + 1] + self.rows[y - 1][x] + self.rows[y + 1][x];
                self.next[y][x] = 0.5 * self.rows[y][x] + 0.125 * sides;
            }
        }
        std::mem::swap(&mut self.rows, &mut self.next);
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1500);
    let width = 500;
    let rows: Vec<Vec<f32>> =
        (0..300).map(|y| (0..width).map(|x| ((x * 7 + y * 13) % 101) as f32).collect()).collect();
    let mut field = Field { next: rows.clone(), rows };
    for _ in 0..rounds {
        field.smooth(width);
    }
    println!("{:.3}", field.rows[150][250]);
}
