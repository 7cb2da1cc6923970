//! Options of `compare` that are hyperfine's: same letters, same meaning.
//!
//! Does not carry them out; see `running`.

use super::values::{Sort, TimeUnit};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const AROUND: &str = "hyperfine's options for runs";
const EXPORT: &str = "Exports in hyperfine's formats";

/// hyperfine's options.
#[derive(Clone, Debug, Default, Args)]
pub struct HyperfineOptions {
    /// Shell command to run before the first run of each command.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub setup: Option<OsString>,
    /// Shell command to run before each run; it is not timed. Give it once, or once for each command.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub prepare: Vec<OsString>,
    /// Shell command to run after each run. Give it once, or once for each command.
    #[arg(short = 'C', long, value_name = "COMMAND", help_heading = AROUND)]
    pub conclude: Vec<OsString>,
    /// Shell command to run after the last run of each command.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub cleanup: Option<OsString>,
    /// Run each command with `{VAR}` replaced by MIN, MIN + 1, ... MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"],
        allow_hyphen_values = true, conflicts_with = "parameter_list", help_heading = AROUND)]
    pub parameter_scan: Vec<String>,
    /// The step of --parameter-scan.
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan",
        help_heading = AROUND)]
    pub parameter_step_size: Option<String>,
    /// Run each command with `{VAR}` replaced by each value; with several lists, by all combinations.
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "A,B,..."],
        allow_hyphen_values = true, help_heading = AROUND)]
    pub parameter_list: Vec<String>,
    /// Execute commands without a shell: words and quotes, but no pipes or redirections.
    #[arg(short = 'N', long, help_heading = AROUND)]
    pub no_shell: bool,
    /// The shell that runs commands, with its options; `none` is -N, `default` is `/bin/sh`.
    #[arg(short = 'S', long, value_name = "SHELL", conflicts_with = "no_shell",
        help_heading = AROUND)]
    pub shell: Option<String>,
    /// The command that others are compared with, as if it were given first.
    #[arg(long, value_name = "COMMAND", help_heading = AROUND)]
    pub reference: Option<OsString>,
    /// A name for the reference.
    #[arg(long, value_name = "NAME", requires = "reference", help_heading = AROUND)]
    pub reference_name: Option<String>,
    /// Standard input of commands: a file, or `null`. Default: all of them read deadweight's input.
    #[arg(long, value_name = "FILE|null", help_heading = AROUND)]
    pub input: Option<PathBuf>,
    /// Standard output of commands: `null`, `pipe`, `inherit` or a file. Give it once, or once for each
    /// command. Default: a file, pipe or terminal like deadweight's own output, where outputs are compared.
    #[arg(long, value_name = "WHERE", help_heading = AROUND)]
    pub output: Vec<OsString>,
    /// Show what commands write: the same as `--output inherit`.
    #[arg(long, conflicts_with = "output", help_heading = AROUND)]
    pub show_output: bool,
    /// Style of the result: `basic` and `nocolor` without colours, `color` with colours, `none` prints nothing.
    #[arg(long, value_name = "STYLE", hide_possible_values = true, help_heading = AROUND,
        value_parser = ["auto", "basic", "full", "nocolor", "color", "none"])]
    pub style: Option<String>,
    /// Order of the results and of exported tables: `command` (as on the command line) or `mean-time` (the
    /// fastest first).
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true,
        help_heading = AROUND)]
    pub sort: Sort,
    /// Unit of times: `microsecond`, `millisecond` or `second`, here and in exported tables, but not in CSV
    /// and JSON. Default: the unit that fits.
    #[arg(short = 'u', long, value_name = "UNIT", help_heading = AROUND)]
    pub time_unit: Option<TimeUnit>,
    /// The least number of runs of each command.
    #[arg(short, long, value_name = "N", conflicts_with = "runs", help_heading = AROUND)]
    pub min_runs: Option<u32>,
    /// The largest number of runs of each command.
    #[arg(short = 'M', long, value_name = "N", conflicts_with = "runs", help_heading = AROUND)]
    pub max_runs: Option<u32>,
    /// Times of the commands as CSV to FILE; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = EXPORT)]
    pub export_csv: Option<PathBuf>,
    /// Times of the commands as a Markdown table.
    #[arg(long, value_name = "FILE", help_heading = EXPORT)]
    pub export_markdown: Option<PathBuf>,
    /// Times of the commands as an AsciiDoc table.
    #[arg(long, value_name = "FILE", help_heading = EXPORT)]
    pub export_asciidoc: Option<PathBuf>,
    /// Times of the commands as a table for Emacs' org-mode.
    #[arg(long, value_name = "FILE", help_heading = EXPORT)]
    pub export_orgmode: Option<PathBuf>,
    /// Times of the commands as hyperfine's JSON, readable as its schema 1 and as schema 2.
    #[arg(long, value_name = "FILE", help_heading = EXPORT)]
    pub export_hyperfine: Option<PathBuf>,
}

impl HyperfineOptions {
    /// A given option that only makes sense if commands are run.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.setup.is_some(), "--setup"),
            (!self.prepare.is_empty(), "--prepare"),
            (!self.conclude.is_empty(), "--conclude"),
            (self.cleanup.is_some(), "--cleanup"),
            (!self.parameter_scan.is_empty(), "--parameter-scan"),
            (!self.parameter_list.is_empty(), "--parameter-list"),
            (self.no_shell, "-N"),
            (self.shell.is_some(), "--shell"),
            (self.show_output, "--show-output"),
            (self.input.is_some(), "--input"),
            (!self.output.is_empty(), "--output"),
            (self.export_csv.is_some(), "--export-csv"),
            (self.export_markdown.is_some(), "--export-markdown"),
            (self.export_asciidoc.is_some(), "--export-asciidoc"),
            (self.export_orgmode.is_some(), "--export-orgmode"),
            (self.sort != Sort::Auto, "--sort"),
            (self.time_unit.is_some(), "--time-unit"),
            (self.export_hyperfine.is_some(), "--export-hyperfine"),
        ];
        given.into_iter().find(|(given, _)| *given).map(|(_, option)| option)
    }
}
