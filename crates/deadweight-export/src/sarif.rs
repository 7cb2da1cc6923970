//! Findings as SARIF 2.1.0: each at its lines, with its saving, how that is known, and what to do.
//!
//! Not for the ledger: its rows are no findings.

use crate::names::plain;
use deadweight_core::cost;
use deadweight_report::regressions::{Change, Judgement};
use deadweight_report::report::{Finding, How, Report, Site};
use deadweight_report::wording::{percent, time};
use deadweight_trace::units::Ns;
use serde_json::json;
use serde_sarif::sarif::{
    ArtifactLocation, Invocation, Location, LogicalLocation, Message, MultiformatMessageString,
    PhysicalLocation, PropertyBag, Region, ReportingDescriptor, Result as Found, ResultLevel, Run,
    SCHEMA_URL, Sarif, Tool, ToolComponent,
};
use std::collections::BTreeMap;

/// A saving of at least this share of the wall time is a warning, a smaller one a note.
const MATTERS: f64 = 0.1;

/// The findings of a report as JSON.
///
/// # Errors
/// Never: all values have a JSON form.
pub fn sarif(report: &Report) -> serde_json::Result<String> {
    let classes: Vec<&str> = cost::ids().collect();
    let driver = ToolComponent::builder()
        .name("deadweight")
        .version(report.deadweight.clone())
        .rules(classes.iter().map(|class| rule(class)).collect::<Vec<_>>())
        .build();
    let results = report.findings.iter().map(|finding| result(report, finding, &classes));
    let invocation = Invocation::builder()
        .execution_successful(true)
        .command_line(plain(&report.command.join(" ")).into_owned())
        .build();
    let run = Run::builder()
        .tool(Tool::builder().driver(driver).build())
        .invocations(vec![invocation])
        .results(results.collect::<Vec<_>>())
        .build();
    let log = Sarif::builder().schema(SCHEMA_URL).version(json!("2.1.0")).runs(vec![run]).build();
    Ok(format!("{}\n", serde_json::to_string_pretty(&log)?))
}

/// The regressions of judged versions as JSON, each with the report of the version that was judged.
///
/// # Errors
/// Never: all values have a JSON form.
pub fn regressions(judged: &[(&Judgement, &Report)]) -> serde_json::Result<String> {
    const RULE: &str = "regression";
    let text = "It got worse than the version it was compared with, by more than its limit.";
    let rule = ReportingDescriptor::builder()
        .id(RULE)
        .short_description(MultiformatMessageString::builder().text(text).build())
        .build();
    let driver = ToolComponent::builder()
        .name("deadweight ci")
        .version(env!("CARGO_PKG_VERSION"))
        .rules(vec![rule])
        .build();
    let mut results = Vec::new();
    for (judgement, report) in judged {
        let red = judgement.changes.iter().filter(|change| change.state.is_red());
        for change in red {
            let binary = Site { image: report.subject.image.clone(), ..Site::default() };
            let sites = if change.sites.is_empty() { vec![binary] } else { change.sites.clone() };
            let message = Message::builder().text(grown(judgement, change)).build();
            let result = Found::builder()
                .rule_id(RULE)
                .level(ResultLevel::Error)
                .message(message)
                .locations(sites.iter().map(location).collect::<Vec<_>>());
            results.push(result.build());
        }
    }
    let tool = Tool::builder().driver(driver).build();
    let run = Run::builder().tool(tool).results(results).build();
    let log = Sarif::builder().schema(SCHEMA_URL).version(json!("2.1.0")).runs(vec![run]).build();
    Ok(format!("{}\n", serde_json::to_string_pretty(&log)?))
}

/// What is noted about a place: no finding, and no measured time.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// The rule: a cost class, or a name of its own.
    pub rule: String,
    /// What the rule finds; shown where it is no cost class.
    pub title: String,
    /// What is noted.
    pub text: String,
    /// Where.
    pub site: Site,
}

/// Notes as JSON. `tool` made them.
///
/// # Errors
/// Never: all values have a JSON form.
pub fn notes(tool: &str, notes: &[Note]) -> serde_json::Result<String> {
    let mut rules: BTreeMap<&str, ReportingDescriptor> = BTreeMap::new();
    let mut results = Vec::new();
    for note in notes {
        let is_class = || cost::ids().any(|class| class == note.rule);
        let other = || {
            let title = MultiformatMessageString::builder().text(&*note.title).build();
            ReportingDescriptor::builder().id(&*note.rule).short_description(title).build()
        };
        let new = || if is_class() { rule(&note.rule) } else { other() };
        rules.entry(&note.rule).or_insert_with(new);
        let result = Found::builder()
            .rule_id(note.rule.clone())
            .level(ResultLevel::Note)
            .message(Message::builder().text(plain(&note.text).into_owned()).build())
            .locations(vec![location(&note.site)]);
        results.push(result.build());
    }
    let driver = ToolComponent::builder()
        .name(tool)
        .version(env!("CARGO_PKG_VERSION"))
        .rules(rules.into_values().collect::<Vec<_>>())
        .build();
    let tool = Tool::builder().driver(driver).build();
    let run = Run::builder().tool(tool).results(results).build();
    let log = Sarif::builder().schema(SCHEMA_URL).version(json!("2.1.0")).runs(vec![run]).build();
    Ok(format!("{}\n", serde_json::to_string_pretty(&log)?))
}

/// `json: allocations grew by 2.0 % (limit 0.5 %)`.
fn grown(judgement: &Judgement, change: &Change) -> String {
    let [growth, limit] = [change.growth, change.limit].map(|part| part * 100.0);
    let (workload, label) = (&judgement.workload, change.label());
    let text =
        format!("{workload}: {label} grew by {growth:.1} % (limit {limit:.1} %). {}", change.why);
    plain(text.trim()).into_owned()
}

fn rule(class: &str) -> ReportingDescriptor {
    let explanation = cost::explain(class).unwrap_or_default();
    let section = explanation.split_once("# What it is\n").map_or("", |(_, rest)| rest);
    let said = section.split("\n\n").next().unwrap_or("").replace('\n', " ");
    let short = explanation.lines().find(|line| !line.is_empty()).unwrap_or(class);
    let text = |text: &str| MultiformatMessageString::builder().text(text).build();
    let help = MultiformatMessageString::builder().text(&*explanation).markdown(&*explanation);
    ReportingDescriptor::builder()
        .id(class)
        .short_description(text(short))
        .full_description(text(&said))
        .help(help.build())
        .build()
}

fn result(report: &Report, finding: &Finding, classes: &[&str]) -> Found {
    let matters = finding.saving_share >= MATTERS && finding.how != How::Candidate;
    let rule = classes.iter().position(|class| *class == finding.class);
    let mut found = Found::builder()
        .rule_id(finding.class.clone())
        .level(if matters { ResultLevel::Warning } else { ResultLevel::Note })
        .message(Message::builder().text(message(report, finding)).build())
        .locations(finding.sites.iter().map(location).collect::<Vec<_>>())
        .properties(properties(finding))
        .build();
    found.rule_index = rule.and_then(|index| i64::try_from(index).ok());
    found
}

/// What was found, what it saves, and what to do.
fn message(report: &Report, finding: &Finding) -> String {
    let known = match finding.how {
        How::Exact => "exact",
        How::Estimate => "estimate",
        How::Candidate => "possible, not promised",
        How::Measured => "measured",
    };
    let saving = Ns(finding.saving_ns);
    let (time, share) = (time(saving), percent(saving, Ns(report.net_ns)));
    let Finding { title, text, remedy, .. } = finding;
    plain(&format!("{title}: saves {time}, {share} ({known}). {text} Do: {remedy}")).into_owned()
}

/// The numbers, for scripts. Shares are of the run without tracing and without other programs.
fn properties(finding: &Finding) -> PropertyBag {
    let numbers = [
        ("process", json!(plain(&finding.process))),
        ("how", json!(finding.how)),
        ("amountNs", json!(finding.amount_ns)),
        ("savingNs", json!(finding.saving_ns)),
        ("savingShare", json!(finding.saving_share)),
        ("savingShareLow", json!(finding.low)),
        ("savingShareHigh", json!(finding.high)),
        ("evidence", json!(finding.evidence.iter().map(|text| plain(text)).collect::<Vec<_>>())),
    ];
    let numbers = numbers.into_iter().map(|(name, value)| (name.to_owned(), value));
    PropertyBag::builder().additional_properties(numbers.collect::<BTreeMap<_, _>>()).build()
}

fn location(site: &Site) -> Location {
    let function = LogicalLocation::builder()
        .fully_qualified_name(plain(&site.function).into_owned())
        .kind("function")
        .build();
    // Without a source file, the binary.
    let path = if site.file.is_empty() { &site.image } else { &site.file };
    let mut physical = PhysicalLocation::builder()
        .artifact_location(ArtifactLocation::builder().uri(uri(path)).build())
        .build();
    if site.line > 0 && !site.file.is_empty() {
        physical.region = Some(Region::builder().start_line(i64::from(site.line)).build());
    }
    let functions = if site.function.is_empty() { Vec::new() } else { vec![function] };
    let mut location = Location::builder().logical_locations(functions).build();
    // What is no file (`[vdso]`) has no address of its own.
    if !path.is_empty() && !path.starts_with('[') {
        location.physical_location = Some(physical);
    }
    location
}

/// A path as a URI: relative paths stay relative, to the folder of the sources.
fn uri(path: &str) -> String {
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    let mut uri = scheme.to_owned();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::{sarif, uri};
    use crate::tests::of_golden;
    use serde_json::Value;

    #[test]
    fn each_finding_is_a_result_of_a_known_rule_with_its_saving() {
        of_golden(|name, report, _| {
            let log: Value = serde_json::from_str(&sarif(report).unwrap()).unwrap();
            let run = &log["runs"][0];
            let results = run["results"].as_array().unwrap();
            assert_eq!(results.len(), report.findings.len(), "{name}");
            for (result, finding) in results.iter().zip(&report.findings) {
                let rule = result["ruleIndex"].as_u64().and_then(|at| usize::try_from(at).ok());
                let rule = &run["tool"]["driver"]["rules"][rule.unwrap()];
                assert_eq!(rule["id"], finding.class.as_str());
                assert_eq!(result["properties"]["savingNs"], finding.saving_ns);
                assert_eq!(result["locations"].as_array().unwrap().len(), finding.sites.len());
            }
        });
    }

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("/src/a b#1.c"), "file:///src/a%20b%231.c");
        assert_eq!(uri("src/größe.c"), "src/gr%C3%B6%C3%9Fe.c");
    }
}
