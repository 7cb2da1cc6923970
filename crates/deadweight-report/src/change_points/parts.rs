//! A history in parts that can be compared: it is cut where the machine or the method of measuring changes.
//!
//! Not for what these are: both are names. A history that alternates between machines is better kept as one history for
//! each.

use super::ChangePoint;
use serde::{Deserialize, Serialize};

/// How one value of a history was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The machine's fingerprint.
    pub machine: String,
    /// The id of the method.
    pub method: String,
}

/// A value that cannot be compared with those before it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSeries {
    /// The first value of the new part.
    pub index: usize,
    /// What changed.
    pub why: Why,
}

/// What changed between two values of a history.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The machine's fingerprint.
    Machine,
    /// The method of measuring.
    Method,
    /// Both.
    MachineAndMethod,
}

/// Where a history is cut, in order.
#[must_use]
pub fn cuts(origins: &[Origin]) -> Vec<NewSeries> {
    let pairs = (1..).zip(origins.windows(2));
    pairs
        .filter_map(|(index, pair)| {
            let why = match (pair[0].machine == pair[1].machine, pair[0].method == pair[1].method) {
                (true, true) => return None,
                (false, true) => Why::Machine,
                (true, false) => Why::Method,
                (false, false) => Why::MachineAndMethod,
            };
            Some(NewSeries { index, why })
        })
        .collect()
}

/// The change points of each part by itself, as indices of the whole series. Cuts are in order; one that is no index of
/// the series does not count.
pub fn in_parts(
    series: &[f64],
    cuts: &[NewSeries],
    find: impl Fn(&[f64]) -> Vec<ChangePoint>,
) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.iter().map(|cut| cut.index).chain(std::iter::once(series.len())) {
        let Some(part) = series.get(start..end) else { continue };
        found.extend(find(part).into_iter().map(|point| ChangePoint {
            index: start + point.index,
            earliest: start + point.earliest,
            latest: start + point.latest,
            ..point
        }));
        start = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_points::{Options, find_refined};

    fn origin(machine: &str, method: &str) -> Origin {
        Origin { machine: machine.into(), method: method.into() }
    }

    #[test]
    fn a_history_is_cut_where_machine_or_method_change() {
        let [a, b] = [origin("m1", "1"), origin("m2", "1")];
        let [c, d] = [origin("m2", "2"), origin("m1", "1")];
        let found = cuts(&[a.clone(), a, b.clone(), b, c, d]);
        let expected = [(2, Why::Machine), (4, Why::Method), (5, Why::MachineAndMethod)];
        assert_eq!(found, expected.map(|(index, why)| NewSeries { index, why }));
        assert_eq!(cuts(&[]), []);
    }

    #[test]
    fn a_new_machine_is_no_change_and_a_change_on_it_is() {
        let level = |i: i32| match i {
            0..20 => 100.0,
            20..40 => 150.0,
            _ => 165.0,
        };
        let series: Vec<f64> = (0..60).map(|i| level(i) + f64::from(i % 3)).collect();
        let find = |part: &[f64]| find_refined(part, &Options::refined());
        let cut = [NewSeries { index: 20, why: Why::Machine }];
        let found = in_parts(&series, &cut, find);
        assert_eq!(found.iter().map(|p| (p.earliest, p.index)).collect::<Vec<_>>(), [(40, 40)]);
        assert_eq!(in_parts(&series, &[], find).len(), 2);
        let outside = [NewSeries { index: 99, why: Why::Machine }];
        assert_eq!(in_parts(&series, &outside, find).len(), 2);
    }
}
