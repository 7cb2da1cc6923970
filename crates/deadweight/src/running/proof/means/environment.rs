//! Variables of the environment that a runtime or library obeys.

use super::{About, Sides};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_record::memory_left;
use deadweight_report::report::{HALF_OF_MEMORY, Means};
use std::ffi::OsString;

pub(super) const ABOUT: About = About {
    means: Means::Environment,
    classes: &["first-touch", "gc", "memory-churn", "parallel-overhead", "small-pages"],
    how: "a variable that the language's runtime or glibc obeys: GOGC=400 with a memory limit, GC_FREE_SPACE_DIVISOR, GLIBC_TUNABLES, OMP_THREAD_LIMIT=1, RAYON_NUM_THREADS=1",
    besides: "memory, and with it page faults and the cache; child processes get the variable too",
    noticed: "output, exit status, CPU time, largest memory; a variable that is not obeyed saves nothing, which withdraws nothing",
};

/// Its value is a list: an existing one is extended.
const LIST: &str = "GLIBC_TUNABLES";

/// The sides: without and with the variables.
pub(super) fn sides(variables: &[(String, String)], options: &RunOptions) -> Sides {
    let mut without = options.clone();
    without.changes = changed(variables, options);
    Sides::new(options.clone(), without)
}

/// The run's changes with these variables.
pub(super) fn changed(variables: &[(String, String)], options: &RunOptions) -> RunChanges {
    let mut changes = options.changes.clone();
    for (name, value) in variables {
        let mut text = OsString::new();
        if let Some(before) =
            std::env::var_os(name).filter(|before| name == LIST && !before.is_empty())
        {
            text.push(before);
            text.push(":");
        }
        match value.as_str() {
            HALF_OF_MEMORY => text.push((memory_left() / 2).to_string()),
            value => text.push(value),
        }
        changes.environment.push((name.into(), text));
    }
    changes
}
