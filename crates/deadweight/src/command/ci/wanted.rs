//! What is to be judged: the two commands of the command line, or the workloads of the file of rules.

use crate::cli::Ci;
use crate::failure::Failure;
use crate::running::hooks::Hooks;
use crate::running::program;
use deadweight_report::regressions::policy::{Policy, Workload};
use deadweight_report::wording::nearest;
use std::ffi::OsString;

/// Two versions of a program.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Its name.
    pub(super) name: String,
    /// The command of the known version.
    pub(super) base: Vec<OsString>,
    /// The command of the version to be judged.
    pub(super) head: Vec<OsString>,
    /// The process inside of them.
    pub(super) of: Option<String>,
    /// What runs before each run.
    pub(super) hooks: Hooks,
}

pub(super) fn wanted(options: &Ci, policy: &Policy, config: &str) -> Result<Vec<Wanted>, Failure> {
    if let (Some(base), Some(head)) = (&options.base, &options.head) {
        let name = options.workload.clone().unwrap_or_else(|| usual_name(head));
        let rules = policy.workloads.get(&name).cloned().unwrap_or_default();
        return Ok(vec![one(options, name, base.clone(), head.clone(), &rules)?]);
    }
    if let Some(name) =
        options.workload.as_ref().filter(|name| !policy.workloads.contains_key(*name))
    {
        let known = policy.workloads.keys().map(String::as_str);
        let meant = nearest(name, known)
            .map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        return Err(Failure::Unknown(format!("{config} has no workload `{name}`{meant}")));
    }
    let chosen = policy
        .workloads
        .iter()
        .filter(|(name, _)| options.workload.as_ref().is_none_or(|of| of == *name));
    let mut found = Vec::new();
    for (name, rules) in chosen {
        let (Some(base), Some(head)) = (&rules.base, &rules.head) else {
            let why =
                format!("{config}: [workload.{name}] needs `base` and `head`, commands in quotes");
            return Err(Failure::Unknown(why));
        };
        found.push(one(options, name.clone(), base.into(), head.into(), rules)?);
    }
    if found.is_empty() {
        return Err(Failure::Unknown(format!(
            "there is nothing to judge: give --base COMMAND --head COMMAND, or workloads in {config}"
        )));
    }
    Ok(found)
}

fn one(
    options: &Ci,
    name: String,
    base: OsString,
    head: OsString,
    rules: &Workload,
) -> Result<Wanted, Failure> {
    let of = options.of.as_ref().map(ToString::to_string).or_else(|| rules.of.clone());
    let hooks = Hooks { prepare: rules.prepare.as_ref().map(OsString::from), ..Hooks::default() };
    let argv = |command: &OsString| argv(command, &options.arguments);
    Ok(Wanted { name, base: argv(&base)?, head: argv(&head)?, of, hooks })
}

/// The words of a command, with the arguments that both versions get.
fn argv(command: &OsString, arguments: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let line = command.to_string_lossy();
    // Without a shell in front there is less to measure beside the program.
    let plain = !line.contains(|c: char| "|&;<>()$`\\\"'*?[]#~{}=\n".contains(c));
    if arguments.is_empty() && !plain {
        return Ok(program::argv(std::slice::from_ref(command)));
    }
    let mut words: Vec<OsString> = match std::path::Path::new(command).is_file() {
        true => vec![command.clone()],
        false => shell_words::split(&line)
            .map_err(|error| {
                Failure::Unknown(format!("cannot split `{line}` into words: {error}"))
            })?
            .into_iter()
            .map(OsString::from)
            .collect(),
    };
    if words.is_empty() {
        return Err(Failure::Unknown("an empty command cannot be run".into()));
    }
    words.extend_from_slice(arguments);
    Ok(words)
}

/// The name of the program that a command begins with.
fn usual_name(command: &OsString) -> String {
    let line = command.to_string_lossy();
    let first = line.split_whitespace().next().unwrap_or("program");
    first.rsplit('/').next().unwrap_or(first).to_owned()
}
