//! Where a launcher starts programs, and what to do instead: each kind has its own way to give a program many items.

use crate::facts::Facts;
use crate::facts::processes::{Process, ProcessId, SHELL, SHELLS};
use deadweight_report::report::Site;

/// The place in a script; only shells have one.
pub(super) fn site(facts: &Facts<'_>, launcher: ProcessId, count: u64) -> Option<Site> {
    let process = facts.processes.get(launcher);
    // A script may be executed itself, or be given to its shell, as a file or a text.
    let function = match process.name.as_str() {
        name if SHELLS.contains(&name) => format!("any line that {name} runs"),
        name => format!("any line of {name}"),
    };
    is_shell(process).then(|| Site { function, share: 1.0, count, ..Site::default() })
}

/// What to do where this launcher starts a program again and again.
pub(super) fn remedy(launcher: &Process, name: &str) -> String {
    match launcher.name.as_str() {
        "find" => format!(
            "If {name} takes several files per call, end the command with `+`, as in `-exec {name} {{}} +`: find then \
             starts it once for many files. Or use what find does itself, such as -delete or -printf, where it has it."
        ),
        "xargs" => format!(
            "If {name} takes several items per call, let xargs give it more: without -n 1, -L 1 and -I, or with -n 500. \
             Or use a program that reads the whole list from its standard input."
        ),
        "parallel" => format!(
            "If {name} takes several items per call, let parallel give it more, such as -n 500. Or use a program that \
             reads the whole list from its standard input."
        ),
        "make" | "gmake" => format!(
            "Let one recipe do many files, if {name} takes several per call. A variable that is set with = runs its \
             $(shell ...) each time that it is used; set with := it runs once."
        ),
        "fish" => of_shell(name, "string, math and read", "end"),
        _ if is_shell(launcher) => {
            of_shell(name, "${x##*/}, ${x%.*}, $((a + b)), case and read", "done")
        }
        _ => format!(
            "Start {name} once for many items, if it takes several per call or reads them from its standard input; or do \
             its work without another program."
        ),
    }
}

/// `busybox xargs` is no shell, and has the same name as `busybox sh`.
fn is_shell(launcher: &Process) -> bool {
    launcher.language == SHELL && launcher.name != "busybox"
}

fn of_shell(name: &str, own: &str, end: &str) -> String {
    format!(
        "Use what the shell does itself, such as {own}, where it can do the same. Or start {name} once for all items: \
         behind the loop (`{end} | {name} ...`) if it reads lines, or with many arguments if it takes several."
    )
}
