//! synced_rows FILE ROWS: appends rows to a file and waits for the disk after each one.

use std::fs::File;
use std::io::Write;

fn append_row(table: &mut File, row: u32) -> std::io::Result<()> {
    writeln!(table, "{row},a row of some length to be stored for good")?;
    table.sync_data() // the wait for the disk
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let mut table = File::create(&arguments[1])?;
    for row in 0..arguments[2].parse().unwrap_or(0) {
        append_row(&mut table, row)?;
    }
    Ok(())
}
