//! Values of options, each checked when it is parsed.
//!
//! Does not define the options; see `cli`.

use clap::ValueEnum;
use deadweight_trace::Exit;
use std::str::FromStr;
use std::time::Duration;

/// How often to repeat.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// This many times, at least once.
    Count(u32),
    /// Until the median is known well enough.
    Auto,
}

impl FromStr for Runs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(0)) => Err("0 runs measure nothing: give 1 run or more".into()),
            (_, Ok(count)) => Ok(Self::Count(count)),
            (_, Err(_)) => Err("give a number of runs, or `auto`".into()),
        }
    }
}

/// Which failures of a command are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ignore {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// These exit codes.
    Codes(Vec<i32>),
}

impl FromStr for Ignore {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all-non-zero" {
            return Ok(Self::All);
        }
        let codes: Result<_, _> = text.split(',').map(str::parse).collect();
        codes.map(Self::Codes).map_err(|_| "give exit codes, such as 1,2, or `all-non-zero`".into())
    }
}

impl Ignore {
    /// Whether a run that ended like this counts as a success.
    #[must_use]
    pub fn passes(&self, exit: Exit) -> bool {
        match self {
            _ if exit == Exit::default() => true,
            Self::None => false,
            Self::All => true,
            Self::Codes(codes) => exit.signal.is_none() && codes.contains(&exit.code),
        }
    }
}

/// The order in which results are shown.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// As the commands are given.
    #[default]
    Auto,
    /// The same.
    Command,
    /// The fastest first.
    MeanTime,
}

/// The unit of times that are shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimeUnit {
    /// µs.
    Microsecond,
    /// ms.
    Millisecond,
    /// s.
    Second,
}

/// A process by its name, and its number among those of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Of {
    /// Its name.
    pub name: String,
    /// From 1, in order of birth.
    pub number: Option<usize>,
}

impl FromStr for Of {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.rsplit_once(':').map(|(n, k)| (n, k.parse::<usize>())) {
            Some((_, Ok(0))) => return Err("processes of one name are numbered from 1".into()),
            Some((name, Ok(number))) => (name, Some(number)),
            _ => (text, None),
        };
        if name.is_empty() {
            return Err("give the name of a process, such as `prog` or `prog:2`".into());
        }
        Ok(Self { name: name.to_owned(), number })
    }
}

impl std::fmt::Display for Of {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}:{number}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A time in a recording, in nanoseconds from the recording's own zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Moment(pub u64);

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ns = nanoseconds(text, 1.0)
            .ok_or("give a time such as 300, 20us, 1.5ms or 2s (plain numbers are ns)")?;
        if !(0.0..=1e18).contains(&ns) {
            return Err("a recording's times start at 0 and last less than 30 years".into());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e18")]
        Ok(Self(ns.round() as u64))
    }
}

/// How long to stay attached to a program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stay(pub Duration);

impl FromStr for Stay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// Attaching itself takes a part of less.
        const LEAST: f64 = 10e6;
        let ns = nanoseconds(text, 1e9)
            .ok_or("give a time such as 5, 5s or 300ms (plain numbers are seconds)")?;
        match ns {
            _ if ns.is_nan() || ns < LEAST => {
                Err("this is too short to see anything: give 10ms or more, such as 5s".into())
            }
            _ if ns > 1e18 => Err("this is longer than 30 years: give less, such as 5s".into()),
            _ => Ok(Self(Duration::from_secs_f64(ns / 1e9))),
        }
    }
}

/// The time in nanoseconds, where a plain number counts units of `plain` nanoseconds.
fn nanoseconds(text: &str, plain: f64) -> Option<f64> {
    const UNITS: [(&str, f64); 5] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let unit = UNITS.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let (number, scale) = unit.unwrap_or((text, plain));
    number.trim().parse().ok().map(|value: f64| value * scale)
}

/// A number of bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        /// The facts and names of any recording need this.
        const LEAST: u64 = 64 << 10;
        let bare = text.trim_end_matches('B').trim_end_matches('i');
        let (number, shift) = match bare.char_indices().last() {
            Some((at, 'k' | 'K')) => (&bare[..at], 10),
            Some((at, 'M')) => (&bare[..at], 20),
            Some((at, 'G')) => (&bare[..at], 30),
            _ => (bare, 0),
        };
        let size = number.trim().parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
        let size = size.ok_or("give a size such as 500K, 20M or 2G (plain numbers are bytes)")?;
        if size < LEAST {
            return Err("a recording needs 64K at least".into());
        }
        Ok(Self(size))
    }
}
