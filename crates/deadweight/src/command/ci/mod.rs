//! `ci`: judges a new version of a program against the known one, for a gate in CI.
//!
//! The rules are in `deadweight_report::regressions`; how commands alternate, in `running`.

mod github;
mod layout;
mod measure;
mod same;
mod wanted;

use super::archive::now;
use super::destination::Destination;
use super::page;
use crate::cli::Ci;
use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::render::history::day;
use crate::render::{self, judgement};
use deadweight_report::regressions::policy::Policy;
use deadweight_report::regressions::{Case, Judgement, State, judge, same_program};
use deadweight_report::report::Report;
use std::path::Path;
use wanted::Wanted;

/// Exit code when something is worse.
const REGRESSED: u8 = 1;
/// The file of rules, where none is named.
const CONFIG: &str = "deadweight.toml";

/// A judgement, and the report of the version that was judged.
struct Judged {
    judgement: Judgement,
    head: Report,
}

/// Files for the result, opened before anything runs.
struct Outputs {
    json: Option<Destination>,
    comment: Option<Destination>,
    sarif: Option<Destination>,
}

impl Outputs {
    fn open(options: &Ci) -> Result<Self, Failure> {
        let open = |what, path: &Option<std::path::PathBuf>| {
            path.as_deref().map(|path| Destination::open(what, path)).transpose()
        };
        Ok(Self {
            json: open("the judgements", &options.export_json)?,
            comment: open("the comment", &options.comment)?,
            sarif: open("the regressions", &options.sarif)?,
        })
    }

    fn write(self, judged: &[Judged], config: &str) -> Result<(), Failure> {
        let judgements: Vec<&Judgement> = judged.iter().map(|one| &one.judgement).collect();
        let failed = |what| {
            move |source: serde_json::Error| Failure::Write {
                what,
                to: "JSON".into(),
                source: source.into(),
            }
        };
        let json = self.json.map_or(Ok(()), |to| {
            let text =
                serde_json::to_string_pretty(&judgements).map_err(failed("the judgements"))?;
            to.write(&render::json::escaped(&text))
        });
        let comment = self
            .comment
            .map_or(Ok(()), |to| to.write(&judgement::markdown::comment(&judgements, config)));
        let sarif = self.sarif.map_or(Ok(()), |to| {
            let pairs: Vec<_> = judged.iter().map(|one| (&one.judgement, &one.head)).collect();
            let text =
                deadweight_export::sarif::regressions(&pairs).map_err(failed("the regressions"))?;
            to.write(&text)
        });
        json.and(comment).and(sarif)
    }
}

pub(crate) fn ci(options: &Ci) -> Result<u8, Failure> {
    let (config, policy) = policy(options.config.as_deref())?;
    let wanted = wanted::wanted(options, &policy, &config)?;
    for rule in &policy.accepted {
        let is_known = |name| {
            policy.workloads.contains_key(name) || wanted.iter().any(|one| one.name == *name)
        };
        if !rule.workload.is_empty() && !is_known(&rule.workload) {
            super::say(&format!(
                "deadweight: {config} accepts a change of the workload `{}`, which is not judged here",
                rule.workload
            ));
        }
    }
    let outputs = Outputs::open(options)?;
    let mut recorder = None;
    let mut judged = Vec::with_capacity(wanted.len());
    for one in &wanted {
        let done = judge_one(options, &policy, one, &mut recorder);
        judged.push(done.inspect_err(|_| {
            if wanted.len() > 1 {
                super::say(&format!("deadweight: the workload {} cannot be judged:", one.name));
            }
        })?);
    }
    let judgements: Vec<&Judgement> = judged.iter().map(|one| &one.judgement).collect();
    if !options.quiet {
        let text = judgement::terminal(
            &judgements,
            page::page(&std::io::stdout(), &options.style),
            &config,
        );
        match super::print("the judgement", &text) {
            Err(failure) if failure.is_broken_pipe() => {}
            printed => printed?,
        }
    }
    let github = github::tell(&judgements, &config);
    outputs.write(&judged, &config)?;
    github?;
    let any = |state| judgements.iter().any(|one| one.state == state);
    Ok(match (any(State::Regressed), options.strict && any(State::Inconclusive)) {
        (true, _) => REGRESSED,
        (_, true) => crate::failure::OURS,
        _ => 0,
    })
}

/// The rules, and the name of their file.
fn policy(given: Option<&Path>) -> Result<(String, Policy), Failure> {
    let path = given.unwrap_or(Path::new(CONFIG));
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Err(error) if given.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((name, Policy::default()));
        }
        read => read.map_err(|source| Failure::Read { path: path.to_owned(), source })?,
    };
    let policy =
        Policy::read(&text).map_err(|error| Failure::Unknown(format!("{name}: {error}")))?;
    Ok((name, policy))
}

/// Judges one workload; measures again what is suspect.
fn judge_one(
    options: &Ci,
    policy: &Policy,
    wanted: &Wanted,
    recorder: &mut Option<Recorder>,
) -> Result<Judged, Failure> {
    if same::is_same_program(&wanted.base, &wanted.head) {
        return Ok(Judged { judgement: same_program(&wanted.name), head: Report::default() });
    }
    let recorder = match recorder {
        Some(ready) => ready,
        None => recorder.insert(Recorder::ready()?),
    };
    let layout = options.layout.map(|n| layout::noise(options, wanted, n)).transpose()?;
    let today = day(now());
    let case = Case { workload: &wanted.name, policy, today: &today, layout };
    let first = measure::measure(options, wanted, recorder)?;
    let mut judgement = judge(&case, &first);
    if judgement.is_suspect() {
        judgement = judgement.confirmed_by(&case, &measure::measure(options, wanted, recorder)?);
    }
    Ok(Judged { judgement, head: first.head.report })
}
