//! Checks that the sections of perf.data lie in the file, and that what they count fits in them: the reader allocates
//! what sizes and counts state.
//!
//! Does not read what else is in them.

/// Bytes of the header, and of a section's place.
const HEADER: usize = 104;
const PLACE: usize = 16;
/// Bytes of an event's attributes: at least as in the first version (`PERF_ATTR_SIZE_VER0`), and not many more than now,
/// as the kernel's structure grows.
const ATTRIBUTES: std::ops::RangeInclusive<u64> = 64..=4096;
/// Numbers of the sections with the command's words and the events, as in perf's `header.h`.
const COMMAND: usize = 11;
const EVENTS: usize = 12;

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
    if number(64) != 0 {
        return Err("it is of an old perf, which named its events in another place");
    }
    let attribute = number(16);
    let [attributes, data] = [24, 40].map(|at| (number(at), number(at + 8)));
    for place in [attributes, data] {
        inside(bytes, place)?;
    }
    if !ATTRIBUTES.contains(&attribute) {
        return Err("its events have attributes of no possible size");
    }
    // Each event's attributes end with the place of its ids.
    for index in 0..attributes.1 / attribute {
        let end = attributes.0 + (index + 1) * attribute;
        inside(bytes, place(bytes, end - PLACE as u64)?)?;
    }
    let features = (0..64 * 4).filter(|bit| number(72 + bit / 64 * 8) >> (bit % 64) & 1 == 1);
    for (index, feature) in features.enumerate() {
        let at = place(bytes, data.0 + data.1 + (index * PLACE) as u64)?;
        let section = inside(bytes, at)?;
        let fits = match feature {
            COMMAND => words_fit(section),
            EVENTS => events_fit(section),
            _ => Some(()),
        };
        fits.ok_or("it counts more than it holds")?;
    }
    Ok(())
}

/// A count, and so many words, each behind its length.
fn words_fit(section: &[u8]) -> Option<()> {
    let mut at = 4;
    for _ in 0..count(section, 0)? {
        at += 4 + count(section, at)?;
        section.get(at..)?;
    }
    Some(())
}

/// A count and the size of attributes; then for each event its attributes, a count of ids, its name behind the length
/// of that, and the ids.
fn events_fit(section: &[u8]) -> Option<()> {
    let attributes = count(section, 4)?;
    let possible = ATTRIBUTES.contains(&(attributes as u64));
    let mut at = 8;
    for _ in 0..count(section, 0).filter(|_| possible)? {
        at += attributes;
        let (ids, name) = (count(section, at)?, count(section, at + 4)?);
        at += 8 + name + 8 * ids;
        section.get(at..)?;
    }
    Some(())
}

/// The number of 32 bits at `at`.
fn count(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
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

/// The bytes of a section.
fn inside(bytes: &[u8], (start, size): (u64, u64)) -> Result<&[u8], &'static str> {
    let [start, size] = [start, size].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let section = start.checked_add(size).and_then(|end| bytes.get(start..end));
    section.ok_or("a part of it is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn a_count_of_words_fits_or_is_refused() {
        assert_eq!(words_fit(&words(&[2, 4, 0, 4, 0])), Some(()));
        assert_eq!(words_fit(&words(&[0])), Some(()));
        for wrong in [&[3, 4, 0, 4, 0][..], &[2, 4, 0, 8, 0], &[u32::MAX, 0], &[1, u32::MAX], &[]] {
            assert_eq!(words_fit(&words(wrong)), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_count_of_events_fits_or_is_refused() {
        // One event with 64 bytes of attributes, two ids, and a name of 4 bytes.
        let event = |head: &[u32], tail: &[u32]| {
            events_fit(&[words(head), vec![0; 64], words(tail)].concat())
        };
        let tail = [2, 4, 0, 1, 0, 2, 0];
        assert_eq!(event(&[1, 64], &tail), Some(()));
        for head in [[2, 64], [u32::MAX, 64], [1, 0], [1, 60], [1, 128], [1, u32::MAX]] {
            assert_eq!(event(&head, &tail), None, "{head:?}");
        }
        for tail in
            [[3, 4, 0, 1, 0, 2, 0], [u32::MAX, 4, 0, 1, 0, 2, 0], [2, u32::MAX, 0, 1, 0, 2, 0]]
        {
            assert_eq!(event(&[1, 64], &tail), None, "{tail:?}");
        }
    }
}
