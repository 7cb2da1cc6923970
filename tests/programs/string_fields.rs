//! Measures the rows of a table: every cell becomes a String, every row a Vec.

struct Row {
    cells: Vec<String>,
}

fn split(line: &str) -> Row {
    Row { cells: line.split(',').map(|cell| cell.to_string()).collect() } // the line to name
}

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(300);
    let table: Vec<String> = (0..1000)
        .map(|i| (0..12).map(|k| format!("cell-{}", i * k)).collect::<Vec<_>>().join(","))
        .collect();
    let mut width = 0;
    for _ in 0..rounds {
        for line in &table {
            let row = split(line);
            width += row.cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
        }
    }
    println!("{width}");
}
