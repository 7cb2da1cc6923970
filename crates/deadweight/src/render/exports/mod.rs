//! Times of compared commands in hyperfine's formats: JSON, CSV, and tables (`markup`).
//!
//! The JSON can be read as schema 1 (`times`, `mean`, ...) and as schema 2 (`measurements`). deadweight's
//! own JSON holds the comparison; see `super::json`.

pub mod markup;

use super::page::printable;
use deadweight_core::CleanRun;
use serde_json::{Value, json};

/// A command's clean runs.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// As it was run.
    pub command: String,
    /// Its name, for the user.
    pub name: String,
    /// The values that were put into it.
    pub parameters: Vec<(String, String)>,
    /// In order of running; at least one.
    pub runs: Vec<CleanRun>,
}

/// Seconds.
#[derive(Copy, Clone, Debug, Default)]
struct Summary {
    mean: f64,
    /// `None` for a single run.
    deviation: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

impl Summary {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let mean = mean(values);
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let half = sorted.len() / 2;
        let middle = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[half]);
        let several = values.len() > 1;
        let deviation = several.then(|| (squares / (values.len() as f64 - 1.0)).sqrt());
        Self { mean, deviation, median: middle, min: *min, max: *max }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len().max(1)) as f64
}

impl Timed {
    fn seconds(&self, of: impl Fn(&CleanRun) -> u64) -> Vec<f64> {
        self.runs.iter().map(|run| of(run) as f64 / 1e9).collect()
    }

    fn wall(&self) -> Vec<f64> {
        self.seconds(|run| run.wall.0)
    }
}

/// hyperfine's JSON.
#[must_use]
pub fn hyperfine(all: &[Timed]) -> String {
    let results: Vec<Value> = all.iter().map(result).collect();
    let file = json!({
        "schema_version": 2,
        "primary_metric": "time_wall_clock",
        "results": results,
    });
    super::json::escaped(&format!("{file:#}"))
}

fn result(timed: &Timed) -> Value {
    let wall = timed.wall();
    let (user, system) = (timed.seconds(|r| r.user.0), timed.seconds(|r| r.system.0));
    let Summary { mean: average, deviation, median, min, max } = Summary::of(&wall);
    let seconds = |value: f64| json!({ "value": value, "unit": "second" });
    let code = |run: &CleanRun| run.exit.signal.is_none().then_some(run.exit.code);
    let measurements: Vec<Value> = timed
        .runs
        .iter()
        .enumerate()
        .map(|(i, run)| {
            json!({
                "time_wall_clock": seconds(wall[i]),
                "time_cpu": seconds(user[i] + system[i]),
                "time_user": seconds(user[i]),
                "time_system": seconds(system[i]),
                "memory_peak_resident": { "value": run.max_rss, "unit": "byte" },
                "exit_code": code(run),
            })
        })
        .collect();
    let mut result = json!({
        "command": timed.command,
        "mean": average,
        "stddev": deviation,
        "median": median,
        "user": mean(&user),
        "system": mean(&system),
        "min": min,
        "max": max,
        "times": wall,
        "memory_usage_byte": timed.runs.iter().map(|run| run.max_rss).collect::<Vec<_>>(),
        "exit_codes": timed.runs.iter().map(code).collect::<Vec<_>>(),
        "measurements": measurements,
    });
    if timed.name != timed.command {
        result["name"] = json!(timed.name);
    }
    for (name, value) in &timed.parameters {
        // As in schema 1: the bare value, which readers of both schemas accept.
        result["parameters"][name] = json!(value);
    }
    result
}

/// A line per command.
#[must_use]
pub fn csv(all: &[Timed]) -> String {
    let names = all.first().map(|timed| timed.parameters.as_slice()).unwrap_or_default();
    let mut text = String::from("command,mean,stddev,median,user,system,min,max");
    for (name, _) in names {
        text.push_str(&format!(",{}", quoted(&format!("parameter_{name}"))));
    }
    text.push('\n');
    for timed in all {
        let Summary { mean: average, deviation, median, min, max } = Summary::of(&timed.wall());
        let user = mean(&timed.seconds(|run| run.user.0));
        let system = mean(&timed.seconds(|run| run.system.0));
        let deviation = deviation.map(|d| d.to_string()).unwrap_or_default();
        let name = quoted(&timed.name);
        text.push_str(&format!(
            "{name},{average},{deviation},{median},{user},{system},{min},{max}"
        ));
        for (_, value) in &timed.parameters {
            text.push_str(&format!(",{}", quoted(value)));
        }
        text.push('\n');
    }
    text
}

/// A field, in quotes where it needs them.
fn quoted(field: &str) -> String {
    // Names were chosen by others, and a table may end up on a terminal.
    let field = &*printable(field);
    if field.contains([',', '"']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

#[cfg(test)]
mod tests {
    use super::markup::Markup;
    use super::*;
    use crate::render::comparison::Shown;
    use deadweight_report::benchmarks::json::read;
    use deadweight_trace::units::Ns;

    fn timed(name: &str, ms: &[u64]) -> Timed {
        let run = |ms: &u64| CleanRun { wall: Ns(ms * 1_000_000), ..CleanRun::default() };
        let runs = ms.iter().map(run).collect();
        Timed { command: name.into(), name: name.into(), runs, ..Timed::default() }
    }

    #[test]
    fn what_is_written_as_hyperfines_can_be_read_as_either_schema() {
        let text = hyperfine(&[timed("ls", &[10, 20, 60])]);
        let read_times = |text: &str| read(text, "").unwrap().unwrap().measured;
        let both = read_times(&text);
        assert_eq!(both.len(), 3);
        assert_eq!(both[2].values, [(0.06, "sec".to_owned())]);
        let mut value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["results"][0]["mean"], 0.03);
        assert_eq!(value["results"][0]["median"], 0.02);
        value["results"][0].as_object_mut().unwrap().remove("times");
        assert_eq!(read_times(&value.to_string()), both, "by its measurements");
    }

    #[test]
    fn hostile_names_reach_neither_a_terminal_nor_the_next_row() {
        let all = [timed("a\n| `x`\u{1b}[31m\u{202e}\u{9b}K,\r\"", &[10, 12])];
        let tables = [Markup::Markdown, Markup::AsciiDoc, Markup::Org];
        let tables = tables.map(|markup| markup::table(&all, markup, Shown::default()));
        for text in [csv(&all), hyperfine(&all)].iter().chain(&tables) {
            let bad = |c: &char| *c != '\n' && !super::super::page::is_printable(*c);
            assert_eq!(text.chars().find(bad), None, "{text:?}");
        }
        assert_eq!(csv(&all).lines().count(), 2);
        assert_eq!(tables[0].lines().count(), 3, "{}", tables[0]);
        assert!(tables[0].contains("`` a\\n\\| `x`"), "{}", tables[0]);
    }

    #[test]
    fn a_table_for_spreadsheets() {
        let mut all = [timed("a, \"b\"", &[10, 12])];
        all[0].parameters = vec![("n".into(), "1".into())];
        assert_eq!(
            csv(&all).lines().collect::<Vec<_>>()[..2],
            [
                "command,mean,stddev,median,user,system,min,max,parameter_n",
                "\"a, \"\"b\"\"\",0.011,0.0014142135623730952,0.011,0,0,0.01,0.012,1"
            ]
        );
    }
}
