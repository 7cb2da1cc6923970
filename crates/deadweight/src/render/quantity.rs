//! Times, shares and counts as text: three significant digits, one unit.
//!
//! The rows of a table share one [`Scale`], so that the shown numbers add up. Does no rounding of sums; see
//! `deadweight_report::stats::apportion`.

use crate::cli::TimeUnit;
use std::time::Duration;

/// A unit of time and how many decimals to show.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    unit: &'static str,
    /// Nanoseconds of the last digit shown.
    step: u64,
    decimals: usize,
}

impl Scale {
    /// The scale on which `largest`, in ns, has three significant digits (whole nanoseconds at
    /// the finest).
    #[must_use]
    pub fn for_largest(largest: u64) -> Self {
        const UNITS: [(&str, u64); 3] = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)];
        for (unit, size) in UNITS {
            for (decimals, step) in [(0, size), (1, size / 10), (2, size / 100)] {
                // A value that the next finer step rounds up to three digits has three digits.
                if largest.saturating_add(step / 20) >= step.saturating_mul(100) {
                    return Self { unit, step, decimals };
                }
            }
        }
        Self { unit: "ns", step: 1, decimals: 0 }
    }

    /// The same in this unit, if one is given.
    #[must_use]
    pub fn of(unit: Option<TimeUnit>, largest: u64) -> Self {
        let (unit, size) = match unit {
            None => return Self::for_largest(largest),
            Some(TimeUnit::Second) => ("s", 1_000_000_000),
            Some(TimeUnit::Millisecond) => ("ms", 1_000_000),
            Some(TimeUnit::Microsecond) => ("µs", 1_000),
        };
        let (mut step, mut decimals) = (size, 0);
        while step > 1 && largest.saturating_add(step / 20) < 100 * step {
            (step, decimals) = (step / 10, decimals + 1);
        }
        Self { unit, step, decimals }
    }

    /// The scale for a table whose rows add up to `total`: on it, half a percent of the total is
    /// still more than nothing.
    #[must_use]
    pub fn for_table(total: u64) -> Self {
        let scale = Self::for_largest(total);
        if scale.steps(total) >= 200 || scale.step < 10 {
            return scale;
        }
        Self { step: scale.step / 10, decimals: scale.decimals + 1, ..scale }
    }

    /// How many steps `ns` is, rounded.
    #[must_use]
    pub fn steps(self, ns: u64) -> u64 {
        ns.saturating_add(self.step / 2) / self.step
    }

    /// A number of steps as text without its unit.
    #[must_use]
    pub fn digits(self, steps: u64) -> String {
        let base = 10_u64.pow(u32::try_from(self.decimals).unwrap_or(0));
        if self.decimals == 0 {
            return steps.to_string();
        }
        format!("{}.{:0width$}", steps / base, steps % base, width = self.decimals)
    }

    /// The unit's name.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.unit
    }
}

/// A time with its unit, three significant digits: `2.02 ms`, `371 µs`, `0 ns`.
#[must_use]
pub fn time(ns: u64) -> String {
    time_in(None, ns)
}

/// A time that may be a part of a nanosecond, likewise: `0.331 ns`, `37.2 ns`. Whole ones are as of [`time`].
#[must_use]
pub fn fine_time(ns: f64) -> String {
    const LARGE: f64 = 99.95;
    if ns.fract() == 0.0 || !(0.0..LARGE).contains(&ns) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let ns = ns.round() as u64;
        return time(ns);
    }
    let decimals = match ns {
        ns if ns >= 9.995 => 1,
        ns if ns >= 0.9995 => 2,
        _ => 3,
    };
    format!("{ns:.decimals$} ns")
}

/// The same in this unit, if one is given.
#[must_use]
pub fn time_in(unit: Option<TimeUnit>, ns: u64) -> String {
    let scale = Scale::of(unit, ns);
    format!("{} {}", scale.digits(scale.steps(ns)), scale.unit)
}

/// A duration likewise.
#[must_use]
pub fn duration(duration: Duration) -> String {
    time(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// A time in the unit of another, without the unit: the `2.02` of `1.69 ms of 2.02`.
#[must_use]
pub fn beside(ns: u64, scale: Scale) -> String {
    scale.digits(scale.steps(ns))
}

/// A count in groups of three: `4 003`.
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(c);
    }
    text
}

/// A share as a percentage: whole from 10 % on, one decimal below.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() >= 9.95 || percent.abs() < 0.05 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_significant_digits() {
        let shown: Vec<String> =
            [0, 7, 999, 1000, 9_994, 9_995, 99_949, 99_950, 999_499, 999_500, 2_020_000]
                .map(time)
                .into();
        assert_eq!(
            shown,
            [
                "0 ns", "7 ns", "999 ns", "1.00 µs", "9.99 µs", "10.0 µs", "99.9 µs", "100 µs",
                "999 µs", "1.00 ms", "2.02 ms"
            ]
        );
        assert_eq!(time(59_999_000_000), "60.0 s");
        assert_eq!(time(4_321_000_000_000), "4321 s");
        assert_eq!(time(u64::MAX), "18446744073 s");
    }

    #[test]
    fn a_unit_that_is_asked_for_is_kept() {
        let shown = |unit, ns| time_in(Some(unit), ns);
        assert_eq!(shown(TimeUnit::Second, 2_020_000), "0.00202 s");
        assert_eq!(shown(TimeUnit::Microsecond, 2_020_000), "2020 µs");
        assert_eq!(shown(TimeUnit::Millisecond, 7), "0.000007 ms");
        assert_eq!(shown(TimeUnit::Second, u64::MAX), "18446744073 s");
    }

    #[test]
    fn every_time_shows_what_it_is_within_half_a_percent() {
        let mut ns = 1000_u64;
        while ns < 900_000_000_000 {
            let text = time(ns);
            let (number, unit) = text.split_once(' ').unwrap();
            let size = match unit {
                "s" => 1e9,
                "ms" => 1e6,
                _ => 1e3,
            };
            let shown: f64 = number.parse::<f64>().unwrap() * size;
            assert!((shown - ns as f64).abs() <= ns as f64 * 0.005_001, "{ns} {text}");
            ns += ns / 97 + 1;
        }
    }

    #[test]
    fn tables_show_half_a_percent() {
        let total = |ns: u64| {
            let scale = Scale::for_table(ns);
            assert!(scale.steps(ns / 200) > 0, "{ns}");
            format!("{} {}", scale.digits(scale.steps(ns)), scale.unit())
        };
        assert_eq!(total(10_640_000_000), "10.64 s");
        assert_eq!(total(2_020_000), "2.02 ms");
        assert_eq!(total(1_020_000), "1.020 ms");
        assert_eq!(total(150_000), "150.0 µs");
        let mut ns = 10_000;
        while ns < 1_000_000_000_000 {
            total(ns);
            ns += ns / 89 + 1;
        }
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!([0, 999, 4003, 1_000_000].map(count), ["0", "999", "4 003", "1 000 000"]);
        assert_eq!(
            [0.0, 0.0004, 0.007, 0.0996, 0.84, 1.0].map(percent),
            ["0 %", "0 %", "0.7 %", "10 %", "84 %", "100 %"]
        );
    }
}
