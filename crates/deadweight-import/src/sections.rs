//! Checks that the sections of perf.data lie in the file: the reader allocates what their sizes state.
//!
//! Does not read what is in them.

/// Bytes of the header, and of a section's place.
const HEADER: usize = 104;
const PLACE: usize = 16;
/// Bytes of an event's attributes, at most: the kernel's structure grows.
const ATTRIBUTES: u64 = 4096;

/// Why a section cannot be where the file says.
pub(crate) fn check(bytes: &[u8]) -> Result<(), &'static str> {
    if !bytes.starts_with(b"PERFILE2") {
        return Err("it does not begin as such a file does");
    }
    let header = bytes.get(..HEADER).ok_or("its header is cut off")?;
    let number = |at: usize| number(header, at).unwrap_or(u64::MAX);
    if number(8) != HEADER as u64 {
        // As `perf record -o -` writes it: records without a table of sections.
        return Err("it was written to a pipe: write it to a file with `perf record -o FILE`");
    }
    let attribute = number(16);
    let [attributes, data] = [24, 40].map(|at| (number(at), number(at + 8)));
    for place in [attributes, data] {
        inside(bytes, place)?;
    }
    if !(PLACE as u64..=ATTRIBUTES).contains(&attribute) {
        return Err("its events have attributes of no possible size");
    }
    // Each event's attributes end with the place of its ids.
    for index in 0..attributes.1 / attribute {
        let end = attributes.0 + (index + 1) * attribute;
        inside(bytes, place(bytes, end - PLACE as u64)?)?;
    }
    let features: u32 = (0..4).map(|word| number(72 + 8 * word).count_ones()).sum();
    for index in 0..u64::from(features) {
        inside(bytes, place(bytes, data.0 + data.1 + index * PLACE as u64)?)?;
    }
    Ok(())
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The section whose place is stated at `at`.
fn place(bytes: &[u8], at: u64) -> Result<(u64, u64), &'static str> {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    let both = number(bytes, at).zip(number(bytes, at.saturating_add(8)));
    both.ok_or("its table of sections is cut off")
}

fn inside(bytes: &[u8], (start, size): (u64, u64)) -> Result<(), &'static str> {
    let fits = start.checked_add(size).is_some_and(|end| end <= bytes.len() as u64);
    if fits { Ok(()) } else { Err("a part of it is cut off") }
}
