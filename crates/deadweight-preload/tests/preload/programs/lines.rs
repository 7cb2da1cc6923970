//! Writes lines from two threads, one after the other; standard output of Rust writes each at once.

use std::io::{BufRead, Read, Write};

fn main() {
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        print!("{line}");
        line.clear();
    }
    let thread = std::thread::spawn(|| {
        for number in 0..1000 {
            println!("thread {number}");
        }
    });
    thread.join().unwrap();
    let path = std::env::args().nth(1).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    for number in 0..1000_u32 {
        file.write_all(&number.to_le_bytes()).unwrap();
    }
    drop(file);
    let sum: u32 = std::fs::File::open(&path).unwrap().bytes().map(|b| u32::from(b.unwrap())).sum();
    println!("{sum}");
    let status = std::process::Command::new("echo").arg("a child").status().unwrap();
    println!("{status}");
}
