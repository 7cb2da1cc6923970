//! The rules of a gate, from `deadweight.toml`: workloads, limits, and accepted changes with a reason and an end.
//!
//! - In: the file's text.
//! - Out: [`Policy`]. An unknown key is an error that says which key was probably meant: a limit that is silently
//!   ignored would be worse than none.
//! - Must not know: what was measured.

use super::{Change, Kind, State};
use crate::account::AccountId;
use crate::wording::nearest;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The names of all counts but those that benchmarks print.
const COUNTS: [&str; 9] = [
    "calls",
    "bytes-read",
    "bytes-written",
    "page-faults",
    "processes",
    "threads",
    "execs",
    "allocations",
    "allocated-bytes",
];
/// The growth of the time that counts, where the file says nothing.
pub const TIME: f64 = 0.02;
/// The same of a count: more than rounding, less than one more of a hundred.
pub const COUNT: f64 = 0.005;

/// All rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Limits of all workloads.
    limits: Given,
    /// The workloads, by name.
    pub workloads: BTreeMap<String, Workload>,
    /// Changes that are accepted.
    pub accepted: Vec<Accepted>,
}

/// A program to be judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// The command of the known version.
    pub base: Option<String>,
    /// The command of the version to be judged.
    pub head: Option<String>,
    /// The process inside of them that is judged (`NAME` or `NAME:K`).
    pub of: Option<String>,
    /// A shell command before each run.
    pub prepare: Option<String>,
    limits: Given,
}

/// Limits as written; `None` inside is `"off"`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Given {
    time: Option<f64>,
    cpu: Option<Option<f64>>,
    rows: BTreeMap<String, Option<f64>>,
    counts: BTreeMap<String, Option<f64>>,
}

/// The limits of one workload: the growth from which a change counts, as a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Of the time.
    pub time: f64,
    /// Of the CPU time; none: not judged.
    pub cpu: Option<f64>,
    /// Of rows that have one, as a part of the base's wall time; none: not judged.
    pub rows: BTreeMap<String, Option<f64>>,
    counts: BTreeMap<String, Option<f64>>,
}

impl Limits {
    /// The limit of a count; none if it is not judged.
    #[must_use]
    pub fn of_count(&self, name: &str) -> Option<f64> {
        let all = self.counts.get("all").copied().unwrap_or(Some(COUNT));
        self.counts.get(name).copied().unwrap_or(all)
    }
}

/// A change that may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Which workload; empty: all.
    pub workload: String,
    /// What grows.
    pub kind: Kind,
    /// Its name, as in [`Change`].
    pub name: String,
    /// By how much at most, in thousandths; none: by any amount.
    up_to: Option<u32>,
    /// Why.
    pub reason: String,
    /// The last day, as `2026-12-31`.
    pub until: String,
}

/// What is wrong with the file, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

type Read<T> = Result<T, PolicyError>;

fn wrong<T>(text: String) -> Read<T> {
    Err(PolicyError(text))
}

impl Policy {
    /// Reads the file's text.
    ///
    /// # Errors
    /// If it is not TOML, has an unknown key, or a value of another form.
    pub fn read(text: &str) -> Read<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            PolicyError(error.to_string().trim_end().replace('\n', " "))
        })?;
        known(&table, "the file", &["limits", "workload", "accepted"])?;
        let limits = match table.get("limits") {
            Some(value) => given(as_table(value, "[limits]")?, "[limits]", &[])?,
            None => Given::default(),
        };
        let mut workloads = BTreeMap::new();
        if let Some(value) = table.get("workload") {
            for (name, value) in as_table(value, "[workload]")? {
                let place = format!("[workload.{name}]");
                workloads.insert(name.clone(), workload(as_table(value, &place)?, &place)?);
            }
        }
        let accepted = match table.get("accepted") {
            None => Vec::new(),
            Some(Value::Array(all)) => all.iter().map(accepted).collect::<Read<_>>()?,
            Some(_) => return wrong("`accepted` must be a list: write [[accepted]]".into()),
        };
        Ok(Self { limits, workloads, accepted })
    }

    /// The limits of a workload: its own, else those of all, else the usual ones.
    #[must_use]
    pub fn limits(&self, workload: &str) -> Limits {
        let own = self.workloads.get(workload).map(|of| of.limits.clone()).unwrap_or_default();
        let mut rows = self.limits.rows.clone();
        rows.extend(own.rows);
        let mut counts = self.limits.counts.clone();
        counts.extend(own.counts);
        let time = own.time.or(self.limits.time).unwrap_or(TIME);
        let cpu = own.cpu.or(self.limits.cpu).unwrap_or(Some(time));
        Limits { time, cpu, rows, counts }
    }

    /// Marks a change as accepted if a rule says so and has not ended.
    pub(super) fn accept(&self, workload: &str, today: &str, change: &mut Change) {
        if !change.state.is_red() {
            return;
        }
        let rule = self.accepted.iter().find(|rule| rule.is_about(workload, change));
        let Some(rule) = rule else { return };
        let most = rule.up_to.map(|thousandths| f64::from(thousandths) / 1000.0);
        change.why = match most {
            _ if today > rule.until.as_str() => {
                format!("it was accepted until {}: {}", rule.until, rule.reason)
            }
            Some(most) if change.growth > most => {
                format!("accepted is a growth of up to {:.1} %: {}", most * 100.0, rule.reason)
            }
            _ => {
                change.state = State::Accepted;
                format!("accepted until {}: {}", rule.until, rule.reason)
            }
        };
    }
}

impl Accepted {
    fn is_about(&self, workload: &str, change: &Change) -> bool {
        let here = self.workload.is_empty() || self.workload == workload;
        here && self.kind == change.kind && (self.name.is_empty() || self.name == change.name)
    }
}

/// Refuses keys that mean nothing.
fn known(table: &Table, place: &str, keys: &[&str]) -> Read<()> {
    let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let meant = match nearest(key, keys.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it may have {}", keys.join(", ")),
    };
    wrong(format!("{place} has an unknown key `{key}`; {meant}"))
}

fn as_table<'v>(value: &'v Value, place: &str) -> Read<&'v Table> {
    value.as_table().map_or_else(|| wrong(format!("{place} must be a table")), Ok)
}

fn text(table: &Table, key: &str, place: &str) -> Read<Option<String>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => wrong(format!("{place}: `{key}` must be a text in quotes")),
    }
}

fn workload(table: &Table, place: &str) -> Read<Workload> {
    let limits = given(table, place, &["base", "head", "of", "prepare"])?;
    let text = |key| text(table, key, place);
    Ok(Workload {
        base: text("base")?,
        head: text("head")?,
        of: text("of")?,
        prepare: text("prepare")?,
        limits,
    })
}

/// The limits in a table that may have other keys too.
fn given(table: &Table, place: &str, others: &[&str]) -> Read<Given> {
    known(table, place, &[&["time", "cpu", "rows", "counts"], others].concat())?;
    let time = table.get("time").map(|value| limit(value, &format!("{place}: `time`")));
    let Some(time) = time.transpose()?.map_or(Some(None), |time| time.map(Some)) else {
        return wrong(format!("{place}: `time` cannot be off: leave the workload out instead"));
    };
    let cpu = table.get("cpu").map(|value| limit(value, &format!("{place}: `cpu`"))).transpose()?;
    let rows = limits(table, "rows", place)?;
    rows.keys().try_for_each(|name| a_row(name, place))?;
    let counts = limits(table, "counts", place)?;
    counts.keys().filter(|name| *name != "all").try_for_each(|name| a_count(name, place))?;
    Ok(Given { time, cpu, rows, counts })
}

/// Refuses a name that no row has.
fn a_row(name: &str, place: &str) -> Read<()> {
    let accounts: Vec<&str> = AccountId::all().map(AccountId::id).collect();
    if accounts.contains(&name) {
        return Ok(());
    }
    let meant = nearest(name, accounts.iter().copied());
    let meant = meant
        .map_or("deadweight explain lists them".into(), |row| format!("did you mean `{row}`?"));
    wrong(format!("{place}: no row is called `{name}`; {meant}"))
}

/// Refuses a name that no count has. One of a benchmark has its unit (`Parse misses/op`).
fn a_count(name: &str, place: &str) -> Read<()> {
    if COUNTS.contains(&name) || name.contains(['/', ' ']) {
        return Ok(());
    }
    let meant = nearest(name, COUNTS.into_iter().chain(["all"]));
    let meant = meant.map_or_else(
        || format!("there are {} and all", COUNTS.join(", ")),
        |name| format!("did you mean `{name}`?"),
    );
    wrong(format!("{place}: no count is called `{name}`; {meant}"))
}

fn limits(table: &Table, key: &str, place: &str) -> Read<BTreeMap<String, Option<f64>>> {
    let Some(value) = table.get(key) else { return Ok(BTreeMap::new()) };
    let place = format!("{place}: `{key}`");
    let each = as_table(value, &place)?.iter();
    each.map(|(name, value)| Ok((name.clone(), limit(value, &format!("{place}.{name}"))?)))
        .collect()
}

/// `"2 %"`, or `"off"`: none.
fn limit(value: &Value, place: &str) -> Read<Option<f64>> {
    let text = value.as_str().unwrap_or_default();
    if text == "off" {
        return Ok(None);
    }
    match percent(text) {
        Some(part) => Ok(Some(part)),
        None => wrong(format!("{place} must be a text such as \"2 %\" or \"off\"")),
    }
}

fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100_000.0).contains(&number).then_some(number / 100.0)
}

/// One `[[accepted]]`.
fn accepted(value: &Value) -> Read<Accepted> {
    const PLACE: &str = "[[accepted]]";
    const KINDS: [(&str, Kind); 3] =
        [("time", Kind::Time), ("count", Kind::Count), ("row", Kind::Row)];
    let table = as_table(value, PLACE)?;
    known(table, PLACE, &["workload", "time", "count", "row", "up-to", "reason", "until"])?;
    let given: Vec<_> = KINDS.iter().filter(|(key, _)| table.contains_key(*key)).collect();
    let [(key, kind)] = given.as_slice() else {
        return wrong(format!(
            "{PLACE} must say what grows, one of: time = \"wall\", count = \"allocations\", row = \"allocation\""
        ));
    };
    let needed = |key: &str| match text(table, key, PLACE)? {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => wrong(format!("{PLACE} needs `{key}`")),
    };
    let name = needed(key)?;
    match kind {
        Kind::Row => a_row(&name, PLACE)?,
        Kind::Count => a_count(&name, PLACE)?,
        Kind::Time => {}
    }
    let until = match table.get("until") {
        Some(Value::Datetime(at)) => at.date.map(|date| date.to_string()),
        _ => None,
    };
    let Some(until) = until else {
        return wrong(format!("{PLACE} needs `until`, a date such as 2026-12-31 without quotes"));
    };
    let up_to = match table.get("up-to") {
        None => None,
        Some(value) => limit(value, &format!("{PLACE}: `up-to`"))?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 1e6, not negative"
    )]
    let thousandths = |part: f64| (part * 1000.0).round() as u32;
    Ok(Accepted {
        workload: text(table, "workload", PLACE)?.unwrap_or_default(),
        kind: *kind,
        name,
        up_to: up_to.map(thousandths),
        reason: needed("reason")?,
        until,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Policy::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_workloads_own_limits_come_before_those_of_all() {
        let policy = Policy::read(
            r#"
            [limits]
            time = "3 %"
            counts.calls = "off"
            [workload.parse]
            base = "./old"
            head = "./new"
            time = "1.5%"
            rows.allocation = "1 %"
            "#,
        )
        .unwrap();
        let (parse, other) = (policy.limits("parse"), policy.limits("other"));
        assert!((parse.time - 0.015).abs() < 1e-9 && (other.time - 0.03).abs() < 1e-9);
        assert_eq!((parse.of_count("calls"), parse.of_count("threads")), (None, Some(COUNT)));
        assert_eq!((parse.rows.len(), other.rows.len()), (1, 0));
        assert_eq!(policy.workloads["parse"].head.as_deref(), Some("./new"));
        assert!((Policy::default().limits("x").time - TIME).abs() < 1e-9);
    }

    #[test]
    fn mistakes_are_refused_with_what_was_probably_meant() {
        for (text, said) in [
            ("[limit]\n", "did you mean `limits`?"),
            (
                "[workload.a]\ntim = '2 %'",
                "[workload.a] has an unknown key `tim`; did you mean `time`?",
            ),
            ("[limits]\ntime = 2", "must be a text such as \"2 %\""),
            ("[limits]\ntime = 'off'", "cannot be off"),
            ("[limits.rows]\nallocations = '1 %'", "did you mean `allocation`?"),
            ("[limits.counts]\ncall = '1 %'", "did you mean `calls`?"),
            ("[limits.counts]\nbogus = '1 %'", "no count is called `bogus`; there are calls,"),
            ("[[accepted]]\nrow = 'gc'\nreason = 'r'", "needs `until`"),
            ("[[accepted]]\nreason = 'r'\nuntil = 2026-12-31", "must say what grows"),
            ("[[accepted]]\nrow = 'gc'\nuntil = 2026-12-31", "needs `reason`"),
            (
                "[[accepted]]\nrow = 'gcc'\nreason = 'r'",
                "[[accepted]]: no row is called `gcc`; did you mean `gc`?",
            ),
            ("[[accepted]]\ncount = 'threds'\nreason = 'r'", "did you mean `threads`?"),
            ("accepted = 1", "must be a list"),
            ("a = ", "TOML"),
        ] {
            assert!(refused(text).contains(said), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn an_accepted_change_has_an_end_and_a_bound() {
        let policy = Policy::read(
            "[[accepted]]\nworkload = 'w'\ncount = 'allocations'\nup-to = '10 %'\nreason = 'copies names'\n\
             until = 2026-12-31",
        )
        .unwrap();
        let judged = |workload: &str, today: &str, growth| {
            let mut change = Change {
                kind: Kind::Count,
                name: "allocations".into(),
                growth,
                state: State::Regressed,
                ..Change::default()
            };
            policy.accept(workload, today, &mut change);
            (change.state, change.why)
        };
        assert_eq!(judged("w", "2026-12-31", 0.1).0, State::Accepted);
        assert!(judged("w", "2027-01-01", 0.1).1.contains("it was accepted until 2026-12-31"));
        assert!(judged("w", "2026-12-01", 0.11).1.contains("up to 10.0 %"));
        assert_eq!(judged("other", "2026-12-01", 0.1), (State::Regressed, String::new()));
    }
}
