//! Three stages of a pipeline send each number through a channel; with `batches`, fifty thousand at a time.
use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

const NUMBERS: u64 = 400_000;

fn mixed(value: u64) -> u64 {
    let value = value ^ (value << 13);
    let value = value ^ (value >> 7);
    value ^ (value << 17)
}

fn one_by_one() -> u64 {
    let (to_middle, middle): (SyncSender<u64>, Receiver<u64>) = sync_channel(64);
    let (to_end, end) = sync_channel(64);
    thread::spawn(move || (1..=NUMBERS).for_each(|n| to_middle.send(mixed(n)).unwrap()));
    thread::spawn(move || {
        for value in middle {
            to_end.send(value % 1000).unwrap();
        }
    });
    let mut sum = 0;
    for value in end { // the line to name
        sum += value;
    }
    sum
}

fn in_batches() -> u64 {
    let (to_middle, middle): (SyncSender<Vec<u64>>, Receiver<Vec<u64>>) = sync_channel(64);
    let (to_end, end) = sync_channel(64);
    // A hundred times as many.
    thread::spawn(move || {
        for first in (1..=NUMBERS * 100).step_by(50_000) {
            to_middle.send((first..first + 50_000).map(mixed).collect()).unwrap();
        }
    });
    thread::spawn(move || {
        for values in middle {
            to_end.send(values.iter().map(|value| value % 1000).sum::<u64>()).unwrap();
        }
    });
    end.iter().sum()
}

fn main() {
    let batches = std::env::args().any(|word| word == "batches");
    let sum = if batches { in_batches() } else { one_by_one() };
    println!("{}", black_box(sum));
}
