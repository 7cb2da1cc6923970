//! Costs of text in Rust programs: the first argument selects one, the second says how often.

use std::collections::HashMap;
use std::env::args;
use std::fmt::Write;
use std::hint::black_box;
use std::panic::catch_unwind;

/// Adds up by a key that is made as text for each item.
#[inline(never)]
fn cells(count: u64) -> u64 {
    let mut sums: HashMap<String, u64> = HashMap::new();
    for i in 0..count {
        let key = format!("{}:{}", i % 97, i % 31); // the key to name
        *sums.entry(key).or_default() += i;
    }
    sums.values().fold(0, |all, sum| all ^ sum)
}

fn checked(value: u64) -> u64 {
    if value % 2 == 0 {
        std::panic::panic_any(value); // the panic to name
    }
    value * 3
}

/// Goes on after values that are refused by a panic.
#[inline(never)]
fn accepted(count: u64) -> u64 {
    std::panic::set_hook(Box::new(|_| {}));
    (0..count).filter_map(|i| catch_unwind(|| checked(black_box(i))).ok()).sum()
}

/// Takes each character by its number, which counts from the start of the text.
#[inline(never)]
fn letters(text: &str) -> u64 {
    let mut sum = 0;
    for i in 0..text.len() {
        sum += u64::from(text.chars().nth(i).map_or(0, u32::from)); // the character to name
    }
    sum
}

/// Looks at each place for a comment that began before it.
#[inline(never)]
fn lines(text: &str) -> usize {
    let mut sum = 0;
    for (at, _) in text.match_indices('=') {
        sum += text[..at].find('#').unwrap_or(at); // the search to name
    }
    sum
}

/// Keeps each name once, in a list that is searched for it.
#[inline(never)]
fn known(count: u64) -> u64 {
    let mut names: Vec<String> = Vec::new();
    for i in 0..count {
        let name = format!("name {}", i * 7919 % 20_000);
        if !names.contains(&name) { // the list to name
            names.push(name);
        }
    }
    names.len() as u64
}

fn main() {
    let cost = args().nth(1).unwrap_or_default();
    let count = args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1);
    let mut text = String::new();
    let sum = match cost.as_str() {
        "cells" => cells(count),
        "accepted" => accepted(count),
        "known" => known(count),
        "letters" => {
            (0..count).for_each(|i| write!(text, "{i},").expect("it is memory"));
            letters(black_box(&text))
        }
        "lines" => {
            (0..count).for_each(|i| write!(text, "let name_{i} = value_{i};\n").expect("it is memory"));
            lines(black_box(&text)) as u64
        }
        _ => 0,
    };
    println!("{sum}");
}
