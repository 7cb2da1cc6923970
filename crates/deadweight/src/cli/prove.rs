//! Options of proofs: which costs are left out, and for how long.

use super::Stay;
use clap::Args;
use deadweight_core::cost;
use deadweight_report::wording::nearest;
use std::str::FromStr;

/// Whether savings are measured.
#[derive(Clone, Debug, Args)]
pub struct Prove {
    /// Prove the best findings: run the command in pairs, once as it is and once with a cost left out, at least 9 pairs for each,
    /// and report the measured saving. What can be left out, and by what means: `--list-proofs`. Implies `-r auto`, so the command
    /// must be safe to repeat. If standard output, standard error or exit status differ, nothing is promised; files that it writes
    /// are not compared. The last run is the program as it is, also after Ctrl-C. Its file is never changed. `--prove=wait-disk,gc` proves
    /// only findings of these classes. With `--pid`: says what could be left out of a run of its command.
    #[arg(long, group = "repeating", num_args = 0..=1, require_equals = true, value_name = "CLASS,...",
        default_missing_value = "all")]
    pub prove: Option<Classes>,
    /// How long all proofs together may take.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "prove")]
    pub prove_budget: Stay,
    /// List what `--prove` can leave out, how, and what else that changes. Runs nothing.
    #[arg(long, exclusive = true)]
    pub list_proofs: bool,
}

/// The classes whose findings are proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classes {
    /// All.
    All,
    /// These.
    These(Vec<String>),
}

impl Classes {
    /// Whether findings of this class are proved.
    #[must_use]
    pub fn contain(&self, class: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(classes) => classes.iter().any(|c| c == class),
        }
    }
}

impl FromStr for Classes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let known = |class: &str| match cost::ids().any(|id| id == class) {
            true => Ok(class.to_owned()),
            false => Err(match nearest(class, cost::ids()) {
                Some(id) => format!("`{class}` is no cost; `{id}` is one"),
                None => format!("`{class}` is no cost; `deadweight explain` lists them"),
            }),
        };
        text.split(',').map(known).collect::<Result<_, _>>().map(Self::These)
    }
}
