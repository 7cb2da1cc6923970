//! `{VAR}` in commands: every combination of the values that the user lists or gives as a range. Runs nothing.

use std::ffi::OsString;

/// More commands than this are a typing error.
const MOST: usize = 1000;

/// Parameters of one command: names, each with the value that replaces `{NAME}`.
pub type Chosen = Vec<(String, String)>;

/// Every combination; the first parameter changes fastest. Without parameters, one empty combination.
/// `scan` is name, least and most; `lists` are pairs of a name and values with commas.
///
/// # Errors
/// If a number is invalid, a range is empty, a name comes twice or there are too many combinations.
pub fn combinations(
    scan: &[String],
    step: Option<&str>,
    lists: &[String],
) -> Result<Vec<Chosen>, String> {
    let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
    if let [name, least, most] = scan {
        parameters.push((name.clone(), range(least, most, step)?));
    }
    for pair in lists.chunks_exact(2) {
        let values = pair[1].split(',').map(str::to_owned).collect();
        parameters.push((pair[0].clone(), values));
    }
    let mut all: Vec<Chosen> = vec![Vec::new()];
    for (name, values) in parameters {
        if all.iter().any(|chosen| chosen.iter().any(|(known, _)| *known == name)) {
            return Err(format!("the parameter `{name}` is given twice"));
        }
        if all.len() * values.len() > MOST {
            return Err(format!("more than {MOST} combinations of parameters"));
        }
        let with = |value: &String| {
            let pair = (name.clone(), value.clone());
            all.iter().map(move |chosen| [chosen.as_slice(), std::slice::from_ref(&pair)].concat())
        };
        all = values.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// The text with each `{NAME}` replaced by its value.
#[must_use]
pub fn fill(text: &OsString, chosen: &Chosen) -> OsString {
    // A text that is not UTF-8 is left as it is.
    let Some(text) = text.to_str() else { return text.clone() };
    let filled = chosen
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value));
    filled.into()
}

/// The name of a command, with the values that its text does not use.
#[must_use]
pub fn name(text: &OsString, chosen: &Chosen) -> String {
    let plain = text.to_string_lossy();
    let unseen = chosen.iter().filter(|(name, _)| !plain.contains(&format!("{{{name}}}")));
    let unseen: Vec<String> = unseen.map(|(name, value)| format!("{name} = {value}")).collect();
    let filled = fill(text, chosen).to_string_lossy().into_owned();
    if unseen.is_empty() { filled } else { format!("{filled} ({})", unseen.join(", ")) }
}

fn range(least: &str, most: &str, step: Option<&str>) -> Result<Vec<String>, String> {
    let texts = [least, most, step.unwrap_or("1")];
    if step.is_none() && texts.iter().any(|text| text.contains('.')) {
        return Err("numbers with a point need a step: give --parameter-step-size".into());
    }
    let behind_point = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let places = texts.iter().map(|text| behind_point(text)).max().unwrap_or(0);
    let scaled = |text: &str| -> Result<i128, String> {
        let digits = text.replacen('.', "", 1) + &"0".repeat(places - behind_point(text));
        let number = digits.parse::<i64>().map(i128::from);
        number.map_err(|_| format!("`{text}` is not a number"))
    };
    let (least, most, step) = (scaled(least)?, scaled(most)?, scaled(texts[2])?);
    if step <= 0 || least > most {
        return Err("the range is empty: MIN must not be above MAX, and the step above 0".into());
    }
    let count = (most - least) / step + 1;
    if usize::try_from(count).map_or(true, |count| count > MOST) {
        return Err(format!("more than {MOST} values from MIN to MAX"));
    }
    let print = |value: i128| {
        let sign = if value < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
        let (whole, rest) = digits.split_at(digits.len() - places);
        let point = if places > 0 { "." } else { "" };
        format!("{sign}{whole}{point}{rest}")
    };
    Ok((0..count).map(|i| print(least + i * step)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ranges_are_counted_without_rounding() {
        assert_eq!(range("1", "3", None).unwrap(), ["1", "2", "3"]);
        assert_eq!(range("-1", "1", None).unwrap(), ["-1", "0", "1"]);
        assert_eq!(range("0.1", "0.5", Some("0.2")).unwrap(), ["0.1", "0.3", "0.5"]);
        assert_eq!(range("1", "2", Some("0.25")).unwrap().last().unwrap(), "2.00");
        for (least, most, step) in
            [("0.1", "1", None), ("2", "1", None), ("1", "2", Some("0")), ("a", "2", None)]
        {
            assert!(range(least, most, step).is_err(), "{least} {most}");
        }
        assert!(range("0", "9223372036854775807", None).is_err());
        assert!(range("-9223372036854775808", "9223372036854775807", None).is_err());
    }

    #[test]
    fn all_combinations_the_first_fastest() {
        let all = combinations(&[], None, &owned(&["a", "1,2", "b", "x,y"])).unwrap();
        let filled: Vec<_> = all.iter().map(|chosen| fill(&"{a}{b}".into(), chosen)).collect();
        assert_eq!(filled, ["1x", "2x", "1y", "2y"]);
        assert_eq!(combinations(&[], None, &[]).unwrap(), [Vec::new()]);
        assert!(combinations(&[], None, &owned(&["a", "1", "a", "2"])).is_err());
        assert_eq!(name(&"run {a}".into(), &all[1]), "run 2 (b = x)");
    }
}
