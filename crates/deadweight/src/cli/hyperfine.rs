//! Options of `compare` that people bring from hyperfine: same letters, same meaning.
//!
//! Not for what they do: that is `running`.

use super::values::{Sort, TimeUnit};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const AROUND: &str = "Around the runs of commands";
const EXPORT: &str = "Exports in hyperfine's forms";

/// What hyperfine's users know.
#[derive(Clone, Debug, Default, Args)]
pub struct HyperfineOptions {
    /// A shell command before the first run of each command.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub setup: Option<OsString>,
    /// A shell command before each run, in nobody's time. Once for all commands, or once for each.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub prepare: Vec<OsString>,
    /// A shell command after each run. Once for all commands, or once for each.
    #[arg(short = 'C', long, value_name = "COMMAND", help_heading = AROUND)]
    pub conclude: Vec<OsString>,
    /// A shell command after the last run of each command.
    #[arg(short, long, value_name = "COMMAND", help_heading = AROUND)]
    pub cleanup: Option<OsString>,
    /// Each command with `{VAR}` replaced by MIN, MIN + 1, ... MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"],
        allow_hyphen_values = true, conflicts_with = "parameter_list", help_heading = AROUND)]
    pub parameter_scan: Vec<String>,
    /// The step of --parameter-scan.
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan",
        help_heading = AROUND)]
    pub parameter_step_size: Option<String>,
    /// Each command with `{VAR}` replaced by each of these; given again, by all combinations.
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "A,B,..."],
        allow_hyphen_values = true, help_heading = AROUND)]
    pub parameter_list: Vec<String>,
    /// Execute commands themselves, without a shell: words and quotes, but no pipes or redirections.
    #[arg(short = 'N', long, help_heading = AROUND)]
    pub no_shell: bool,
    /// The shell that runs commands, with its options; `none` is -N, `default` is `/bin/sh`.
    #[arg(short = 'S', long, value_name = "SHELL", conflicts_with = "no_shell",
        help_heading = AROUND)]
    pub shell: Option<String>,
    /// The command that others are compared with: the same as giving it first.
    #[arg(long, value_name = "COMMAND", help_heading = AROUND)]
    pub reference: Option<OsString>,
    /// What to call it.
    #[arg(long, value_name = "NAME", requires = "reference", help_heading = AROUND)]
    pub reference_name: Option<String>,
    /// What commands read: a file, or `null`. Otherwise all of them read what deadweight is given.
    #[arg(long, value_name = "FILE|null", help_heading = AROUND)]
    pub input: Option<PathBuf>,
    /// Where commands write: `null`, `pipe`, `inherit` or a file; once for all, or once for each.
    /// Otherwise into the same kind of file as deadweight's own output, where it is compared.
    #[arg(long, value_name = "WHERE", help_heading = AROUND)]
    pub output: Vec<OsString>,
    /// Show what commands write: the same as `--output inherit`.
    #[arg(long, conflicts_with = "output", help_heading = AROUND)]
    pub show_output: bool,
    /// How the result looks: `basic` and `nocolor` without colours, `color` with, `none` not at all.
    #[arg(long, value_name = "STYLE", hide_possible_values = true, help_heading = AROUND,
        value_parser = ["auto", "basic", "full", "nocolor", "color", "none"])]
    pub style: Option<String>,
    /// The order of tables for other programs, and here: `command` is that of the command line, `mean-time`
    /// the fastest first.
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_default_value = true,
        help_heading = AROUND)]
    pub sort: Sort,
    /// `microsecond`, `millisecond` or `second`, here and in tables for other programs, but not in CSV
    /// and JSON. Otherwise what fits.
    #[arg(short = 'u', long, value_name = "UNIT", help_heading = AROUND)]
    pub time_unit: Option<TimeUnit>,
    /// Never fewer runs of each than this.
    #[arg(short, long, value_name = "N", conflicts_with = "runs", help_heading = AROUND)]
    pub min_runs: Option<u32>,
    /// Never more runs of each than this.
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
    /// An option that is given and only of use for commands that are run.
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
