//! The sides of `compare` on the command line: with parameters filled in, named, and each with the
//! commands before and after its runs. Does not run them.

use crate::cli::{Color, Compare};
use crate::failure::Failure;
use crate::running::hooks::Hooks;
use crate::running::parameters::{self, Chosen, combinations, fill};
use crate::running::program;
use std::ffi::OsString;
use std::path::PathBuf;

/// A side.
#[derive(Clone, Debug)]
pub(super) struct Side {
    /// A command, or a file.
    pub(super) words: OsString,
    /// Its name, for the user.
    pub(super) name: String,
    /// Commands before and after its runs.
    pub(super) hooks: Hooks,
    /// The file for its output, if one is given.
    pub(super) output: Option<PathBuf>,
    /// The values that were put into it.
    pub(super) chosen: Chosen,
}

impl Side {
    /// The words to execute, if it is a command.
    pub(super) fn argv(&self, options: &Compare) -> Result<Vec<OsString>, Failure> {
        let line = self.words.to_string_lossy();
        match options.hyperfine.shell.as_deref() {
            Some("none") => words(&line),
            _ if options.hyperfine.no_shell => words(&line),
            None | Some("default") => Ok(program::argv(std::slice::from_ref(&self.words))),
            Some(shell) => {
                let mut argv = words(shell)?;
                argv.extend(["-c".into(), self.words.clone()]);
                Ok(argv)
            }
        }
    }
}

fn words(line: &str) -> Result<Vec<OsString>, Failure> {
    let words = shell_words::split(line)
        .map_err(|error| Failure::Unknown(format!("cannot split `{line}` into words: {error}")))?;
    if words.is_empty() {
        return Err(Failure::Unknown("an empty command cannot be run".into()));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The same options, with hyperfine's synonyms replaced by deadweight's own options.
pub(super) fn usual(options: &Compare) -> Compare {
    let mut options = options.clone();
    if let Some(reference) = options.hyperfine.reference.take() {
        options.sides.insert(0, reference.clone());
        let named = options.hyperfine.reference_name.take();
        if named.is_some() || !options.names.is_empty() {
            let name = named.unwrap_or_else(|| reference.to_string_lossy().into_owned());
            options.names.insert(0, name);
        }
    }
    if options.hyperfine.show_output {
        options.hyperfine.output = vec!["inherit".into()];
    }
    match options.hyperfine.style.as_deref() {
        Some("none") => options.quiet = true,
        Some("basic" | "nocolor") => options.style.no_color = true,
        Some("color") => options.style.color = Color::Always,
        _ => {}
    }
    options
}

/// Every side with every combination of parameters, in hyperfine's order.
pub(super) fn sides(options: &Compare) -> Result<Vec<Side>, Failure> {
    let hyperfine = &options.hyperfine;
    let step = hyperfine.parameter_step_size.as_deref();
    let combinations = combinations(&hyperfine.parameter_scan, step, &hyperfine.parameter_list)
        .map_err(Failure::Unknown)?;
    let all = combinations.len() * options.sides.len();
    if let Some(name) = options.names.get(all) {
        return Err(Failure::Unknown(format!(
            "there are more names than sides to compare: no side is left for `{name}`"
        )));
    }
    let prepare = one_each("--prepare", &hyperfine.prepare, options.sides.len())?;
    let conclude = one_each("--conclude", &hyperfine.conclude, options.sides.len())?;
    let output = one_each("--output", &hyperfine.output, options.sides.len())?;
    let mut sides = Vec::with_capacity(all);
    for chosen in combinations {
        let filled = |line: Option<&OsString>| line.map(|line| fill(line, &chosen));
        for (at, words) in options.sides.iter().enumerate() {
            let of_all = options.names.get(sides.len()).filter(|_| options.names.len() == all);
            let given = of_all.or(options.names.get(at)).map(OsString::from);
            sides.push(Side {
                words: fill(words, &chosen),
                name: parameters::name(given.as_ref().unwrap_or(words), &chosen),
                hooks: Hooks {
                    setup: filled(hyperfine.setup.as_ref()),
                    prepare: filled(prepare[at]),
                    conclude: filled(conclude[at]),
                    cleanup: filled(hyperfine.cleanup.as_ref()),
                },
                output: filled(output[at]).map(PathBuf::from),
                chosen: chosen.clone(),
            });
        }
    }
    Ok(sides)
}

/// An option given once for all commands, or once for each.
fn one_each<'l>(
    option: &str,
    lines: &'l [OsString],
    commands: usize,
) -> Result<Vec<Option<&'l OsString>>, Failure> {
    match lines {
        [] => Ok(vec![None; commands]),
        [all] => Ok(vec![Some(all); commands]),
        each if each.len() == commands => Ok(each.iter().map(Some).collect()),
        _ => Err(Failure::Unknown(format!(
            "{option} is given {} times for {commands} commands: give it once, or once for each",
            lines.len()
        ))),
    }
}
