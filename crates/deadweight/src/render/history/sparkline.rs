//! A series as one line of small bars.
//!
//! Knows no history.

/// Bars of a terminal that shows them, lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const SIGNS: [char; 8] = ['_', '.', '-', '~', '=', '+', '*', '#'];
/// The bars span at least this part of the largest value: noise alone stays flat.
const LEAST_SPAN: f64 = 0.04;

/// The values in at most `width` columns: the median of neighbours where there are more.
pub(super) fn sparkline(values: &[f64], width: usize, unicode: bool) -> String {
    let columns = values.len().min(width.max(1));
    let part = |column: usize| {
        let edge = |column: usize| column * values.len() / columns;
        let mut part = values[edge(column)..edge(column + 1)].to_vec();
        part.sort_by(f64::total_cmp);
        part.get(part.len() / 2).copied().unwrap_or(0.0)
    };
    let shown: Vec<f64> = (0..columns).map(part).collect();
    let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shown.iter().copied().fold(0.0, f64::max);
    let span = (high - low).max(high * LEAST_SPAN).max(f64::MIN_POSITIVE);
    let start = f64::midpoint(low, high) - span / 2.0;
    let signs = if unicode { BARS } else { SIGNS };
    let bar = |value: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 8")]
        let level = ((value - start) / span * 8.0).clamp(0.0, 7.0) as usize;
        signs[level]
    };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn bars_rise_with_the_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 80, true), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[100.0, 200.0, 100.0], 80, false), "_#_");
        // Noise of 1 % is not as large as a change.
        assert_eq!(sparkline(&[1000.0, 1010.0, 1000.0], 80, true), "▄▅▄");
        assert_eq!(sparkline(&[], 80, true), "");
        assert_eq!(sparkline(&[0.0, 0.0], 80, true).chars().count(), 2);
    }

    #[test]
    fn many_values_share_a_column() {
        let values: Vec<f64> = (0..100).map(|i| if i < 50 { 100.0 } else { 200.0 }).collect();
        assert_eq!(sparkline(&values, 4, true), "▁▁██");
    }
}
