//! Scans a binary and prints how long that took, for work on its speed.
//!
//! `cargo run --release -p deadweight-seal --example scan -- FILE [all]`; `all` prints every place, so that two versions
//! can be compared. Not for users: `deadweight scan` is.
#![expect(clippy::print_stdout, reason = "an example that prints")]

use deadweight_seal::Binary;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let start = Instant::now();
    let binary = Binary::open(Path::new(&path))?;
    let scan = binary.scan()?;
    let (seconds, megabytes) = (start.elapsed().as_secs_f64(), scan.bytes as f64 / 1e6);
    if std::env::args().nth(2).is_some() {
        scan.sites.iter().for_each(|site| println!("{site:?}"));
        println!("{:?}", scan.info);
        println!("{:?}", scan.warnings);
        return Ok(());
    }
    println!("{} functions, {megabytes:.1} MB, {} sites", scan.functions, scan.sites.len());
    println!("{seconds:.2} s, {:.0} MB/s", megabytes / seconds);
    Ok(())
}
