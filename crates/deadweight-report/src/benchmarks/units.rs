//! Units of measurements: converted to seconds and bytes, printed with a fitting prefix.
//!
//! Units are spelled as in Go's benchmark format. Not for times of recordings, which are integers with a type.

use serde::{Deserialize, Serialize};

/// What is known about a unit beyond its name.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitProperties {
    /// Every measurement has the same value: code sizes, instruction counts.
    pub exact: bool,
    /// Which values are better, where the source says so.
    pub better: Option<Better>,
}

/// Which values are better.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Times, sizes.
    Lower,
    /// Speeds.
    Higher,
}

/// The words of a unit, and whether each is in the denominator.
fn words(unit: &str) -> Vec<(std::ops::Range<usize>, bool)> {
    let (mut found, mut below, mut start) = (Vec::new(), false, None);
    for (at, c) in unit.char_indices().chain([(unit.len(), ' ')]) {
        if !matches!(c, '*' | '/' | '-') && !c.is_whitespace() {
            start.get_or_insert(at);
            continue;
        }
        found.extend(start.take().map(|from| (from..at, below)));
        match c {
            '*' => below = false,
            '/' => below = true,
            _ => {}
        }
    }
    found
}

/// The unit in seconds and bytes, and the factor for its values.
#[must_use]
pub fn tidied(unit: &str) -> (String, f64) {
    let (mut tidy, mut factor) = (unit.to_owned(), 1.0);
    for (range, below) in words(unit).into_iter().rev().filter(|(_, below)| !below) {
        debug_assert!(!below, "filtered");
        match &unit[range.clone()] {
            "ns" => {
                tidy.replace_range(range, "sec");
                factor *= 1e-9;
            }
            "MB" => {
                tidy.replace_range(range, "B");
                factor *= 1e6;
            }
            _ => {}
        }
    }
    (tidy, factor)
}

/// The units of how long a benchmark takes: per operation, or as a whole.
pub const DURATIONS: [&str; 2] = ["sec/op", "sec"];

/// Whether a unit is a time per something, in seconds.
#[must_use]
pub fn is_time(unit: &str) -> bool {
    unit == "sec" || unit.starts_with("sec/")
}

/// Which values of a unit are better; None where that is not known.
#[must_use]
pub fn better(unit: &str, facts: UnitProperties) -> Option<Better> {
    let counts = ["sec", "ns", "B", "bytes", "allocs"];
    let above = |word: &str| {
        words(unit).into_iter().any(|(range, below)| !below && unit.get(range) == Some(word))
    };
    facts.better.or(match unit {
        unit if unit.ends_with("/s") || unit.ends_with("/sec") => Some(Better::Higher),
        _ if counts.into_iter().any(above) => Some(Better::Lower),
        _ => None,
    })
}

/// How values are printed: four significant digits of the smallest, a prefix for all.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Scale {
    digits: usize,
    factor: f64,
    prefix: &'static str,
}

/// Powers of ten, of 10^12 to 10^-9.
const DECIMAL: [(i32, &str); 8] =
    [(12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "µ"), (-9, "n")];
/// Powers of two. Bytes are not divided.
const BINARY: [(i32, &str); 5] = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"), (0, "")];
/// From these values on, a value rounds to 100.0, 10.00, 1.000.
const ROUNDS_UP: [(f64, usize); 3] = [(99.995, 1), (9.9995, 2), (0.99995, 3)];
/// More digits behind the point than this are never printed.
const MOST_DIGITS: usize = 10;

impl Scale {
    /// The scale that the values in `unit` share.
    #[must_use]
    pub fn common(values: impl IntoIterator<Item = f64>, unit: &str) -> Self {
        let sizes = values.into_iter().map(f64::abs).filter(|v| *v != 0.0);
        let least = sizes.fold(f64::INFINITY, f64::min);
        if !least.is_finite() {
            return Self { digits: 3, factor: 1.0, prefix: "" };
        }
        let is_binary = words(unit)
            .into_iter()
            .any(|(range, below)| !below && ["B", "MB", "bytes"].contains(&&unit[range]));
        let steps: Vec<(f64, &'static str)> = if is_binary {
            BINARY.iter().map(|(power, prefix)| (2_f64.powi(*power), *prefix)).collect()
        } else {
            DECIMAL.iter().map(|(power, prefix)| (power_of_ten(*power), *prefix)).collect()
        };
        for (factor, prefix) in &steps {
            for (from, digits) in ROUNDS_UP {
                if least >= from * factor {
                    return Self { digits, factor: *factor, prefix };
                }
            }
        }
        let (factor, prefix) = steps.last().copied().unwrap_or((1.0, ""));
        let shows = |digits: &usize| {
            let digits = i32::try_from(*digits).unwrap_or(0);
            least / factor >= 9.9995 * power_of_ten(2 - digits)
        };
        let digits = (3..MOST_DIGITS).find(shows).unwrap_or(MOST_DIGITS);
        Self { digits, factor, prefix }
    }

    /// A value in it.
    #[must_use]
    pub fn print(self, value: f64) -> String {
        format!("{:.*}{}", self.digits, value / self.factor, self.prefix)
    }
}

/// The nearest number to a power of ten: multiplying would drift.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_seconds_and_bytes() {
        assert_eq!(tidied("ns/op"), ("sec/op".into(), 1e-9));
        assert_eq!(tidied("p99-ns"), ("p99-sec".into(), 1e-9));
        assert_eq!(tidied("MB/s"), ("B/s".into(), 1e6));
        assert_eq!(tidied("ops/ns"), ("ops/ns".into(), 1.0), "below the line it stays");
        assert_eq!(tidied("answers"), ("answers".into(), 1.0), "part of a word");
    }

    #[test]
    fn faster_and_smaller_are_better() {
        let plain = |unit| better(unit, UnitProperties::default());
        assert_eq!(plain("sec/op"), Some(Better::Lower));
        assert_eq!(plain("B/op"), Some(Better::Lower));
        assert_eq!(plain("B/s"), Some(Better::Higher));
        assert_eq!(plain("widgets"), None);
        let stated = UnitProperties { better: Some(Better::Higher), ..UnitProperties::default() };
        assert_eq!(better("widgets", stated), Some(Better::Higher));
    }

    #[test]
    fn four_digits_and_a_prefix_for_the_smallest() {
        let print = |value: f64, unit| Scale::common([value], unit).print(value);
        assert_eq!(print(1.718e-6, "sec/op"), "1.718µ");
        assert_eq!(print(99.994, "x"), "99.99");
        assert_eq!(print(99.996, "x"), "100.0");
        assert_eq!(print(0.0, "x"), "0.000");
        assert_eq!(print(5e-13, "sec/op"), "0.0005000n");
        assert_eq!(print(1020.0 * 1024.0, "B/s"), "1020.0Ki");
        assert_eq!(print(1.5 * 1_048_576.0, "B/s"), "1.500Mi");
        assert_eq!(print(1500.0, "sec/op"), "1.500k");
        assert_eq!(Scale::common([44.4e-9, 2346.5e-9], "sec/op").print(2346.5e-9), "2346.50n");
    }
}
