//! `rows F…`: recordings and reports as tables. Formats are made by `deadweight-tables`.
//!
//! One input is in memory at a time, and rows are written while they come in.

mod inputs;
mod outputs;

use super::weighing::report_in;
use crate::cli::Rows;
use crate::failure::Failure;
use deadweight_report::tables::{OURS, Origin, Tables, failed, tables};
use deadweight_tables::{Writer, run_id};
use inputs::Input;
use std::io;

/// Exit code when inputs could not be read.
const FAILED: u8 = 1;

pub(crate) fn rows(options: &Rows) -> Result<u8, Failure> {
    let inputs = inputs::all(&options.inputs)?;
    let mut writer = outputs::open(options)?;
    // Inputs may be of others: from here on they are only read, and only what is open is written.
    deadweight_record::confine();
    let written = write(&inputs, options, &mut *writer);
    // Also after a failure, so that files have an end.
    let finished = writer.finish().map_err(|source| unwritten(options, source));
    let damaged = written?;
    finished?;
    let Some(first) = damaged.first() else { return Ok(0) };
    super::say(&format!(
        "deadweight: {} of {} inputs could not be read, and their rows of `runs` say why; the first: {first}",
        damaged.len(),
        inputs.len()
    ));
    Ok(FAILED)
}

/// Writes the rows of all inputs. Out: why some could not be read.
fn write(
    inputs: &[Input],
    options: &Rows,
    writer: &mut dyn Writer,
) -> Result<Vec<String>, Failure> {
    let mut damaged = Vec::new();
    for input in inputs {
        let (tables, why) = read(input, options);
        writer.add(tables).map_err(|source| unwritten(options, source))?;
        match why {
            Some(failure) if options.strict => return Err(failure),
            Some(failure) => damaged.push(failure.to_string()),
            None => {}
        }
    }
    Ok(damaged)
}

/// The rows of an input, and why it could not be read.
fn read(input: &Input, options: &Rows) -> (Tables, Option<Failure>) {
    let origin = Origin {
        workload: options.workload.clone().unwrap_or_default(),
        commit: options.commit.clone(),
        time: input.time,
        kind: OURS.into(),
        source: input.name(),
        ..Origin::default()
    };
    let bytes = match input.bytes() {
        Ok(bytes) => bytes,
        // Nothing can be said of its content: the id is empty.
        Err(failure) => return (failed("", &origin, &why(&failure, input)), Some(failure)),
    };
    let run = run_id(&bytes);
    match report_in(&bytes, &input.path, None) {
        Ok(report) => {
            let workload = options.workload.as_ref().unwrap_or(&report.subject.name).clone();
            (tables(&run, &report, &Origin { workload, ..origin }), None)
        }
        Err(failure) => (failed(&run, &origin, &why(&failure, input)), Some(failure)),
    }
}

/// The failure without the name of the input, which has a column of its own: equal reasons are equal.
fn why(failure: &Failure, input: &Input) -> String {
    let text = failure.to_string();
    let name = format!("{} ", input.name());
    text.strip_prefix(&name).map(str::to_owned).unwrap_or(text)
}

fn unwritten(options: &Rows, source: io::Error) -> Failure {
    let to = match options.output.to_str() {
        Some("-") => "standard output".into(),
        _ => options.output.display().to_string(),
    };
    Failure::Write { what: "the tables", to, source }
}
