//! Typical costs of Rust programs: the first argument selects one, the second says how often.

use std::collections::VecDeque;
use std::env::args;
use std::hint::black_box;

/// Clears a whole line and paints a part of it.
#[inline(never)]
fn line(width: usize, shade: u8) -> u64 {
    let mut line = vec![0_u8; 60_000]; // the line to clear
    line[..width].fill(shade);
    line[..width].iter().step_by(97).map(|byte| u64::from(*byte)).sum()
}

#[derive(Clone, Copy)]
struct Job {
    id: u64,
    payload: [u32; 200],
}

/// Moves large jobs out of their queue and back.
#[inline(never)]
fn jobs(queue: &mut VecDeque<Job>, count: usize) -> u64 {
    let mut sum = 0;
    for i in 0..count {
        let mut job = queue.pop_front().expect("it is never empty"); // the job to name
        job.id += 1;
        sum += u64::from(job.payload[i % 200]) + job.id;
        queue.push_back(job); // the job to name
    }
    sum
}

/// Takes each word from the front of a text, and moves the rest down.
#[inline(never)]
fn words(text: &str) -> usize {
    let mut rest = text.as_bytes().to_vec();
    let mut found = 0;
    while let Some(end) = rest.iter().position(|byte| *byte == b' ') {
        found += usize::from(end > 2);
        rest.drain(..=end); // the rest to move
    }
    found
}

trait Shade {
    fn of(&self, value: u32) -> u32;
}

struct Darker(u32);

impl Shade for Darker {
    fn of(&self, value: u32) -> u32 {
        value.wrapping_mul(self.0) >> 8
    }
}

struct Lighter(u32);

impl Shade for Lighter {
    fn of(&self, value: u32) -> u32 {
        value.wrapping_add(self.0)
    }
}

/// Calls a small method for every pixel, through a trait object.
#[inline(never)]
fn pixels(row: &mut [u32], shade: &dyn Shade) {
    for pixel in row {
        *pixel = shade.of(*pixel) ^ 17; // the pixel to name
    }
}

fn main() {
    let cost = args().nth(1).unwrap_or_default();
    let count = args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1);
    let sum = match cost.as_str() {
        "lines" => (0..count).map(|i| line(500 + i % 500, black_box(i as u8))).sum(),
        "jobs" => {
            let job = |id| Job { id, payload: [id as u32 * 3; 200] };
            jobs(&mut (0..300).map(job).collect(), count)
        }
        "words" => {
            let text = "of and the word again ".repeat(3_000);
            (0..count).map(|_| words(black_box(&text)) as u64).sum()
        }
        "pixels" => {
            let mut row: Vec<u32> = (0..4096).collect();
            let shades: [Box<dyn Shade>; 2] = [Box::new(Darker(250)), Box::new(Lighter(9))];
            (0..count).for_each(|i| pixels(&mut row, black_box(&*shades[i / 3 % 2])));
            u64::from(row[77])
        }
        _ => 0_u64,
    };
    println!("{sum}");
}
