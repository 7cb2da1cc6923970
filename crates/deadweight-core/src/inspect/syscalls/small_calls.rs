//! The calls of a finding about many small reads or writes: its words, amount, places and saving are of the same
//! calls.
//!
//! A program has a group of calls for each connection; a finding is about all that cost time on the path. Where only
//! a part of their calls lies on the path, the evidence says so. Which groups are too small is the cost classes'.

use super::{LibraryCode, interpreter};
use crate::account::{Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{Weights, add, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::timeline::descriptors::ObjectKind;
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{bytes, count, things};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The block size that a remedy recommends.
const BLOCK: u64 = 65_536;
/// What remains per byte: copying from the page cache, at 10 GB/s.
const NS_PER_10_BYTES: u64 = 1;
/// Calls without a duration lie on no path. The evidence mentions them if they are more than one in this many.
const WITHOUT_DURATION: u64 = 50;

/// How many calls a group would need in blocks: one where calls cannot be merged, see [`CallGroup::mergeable`].
pub(crate) fn needed(group: &CallGroup) -> u64 {
    let merged = part(group.bytes, group.mergeable, group.calls);
    group.calls - group.mergeable + merged / BLOCK
}

/// `whole * part / all`.
fn part(whole: u64, part: u64, all: u64) -> u64 {
    let part = u128::from(whole) * u128::from(part) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// What bytes pass through, as far as advice depends on it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    /// Standard input or output.
    Standard,
    /// Standard error, which languages do not buffer.
    Error,
    /// A connection.
    Socket,
    /// A file or pipe that the program opened.
    Opened,
}

impl Stream {
    fn of(group: &CallGroup) -> Self {
        match group.kind {
            Some(ObjectKind::Socket) => Self::Socket,
            _ if group.standard_error => Self::Error,
            _ if group.standard => Self::Standard,
            _ => Self::Opened,
        }
    }
}

/// Small calls, summed over groups.
#[derive(Debug, Default)]
pub(crate) struct SmallCalls {
    /// Their time on the path.
    pub(crate) ns: Ns,
    /// How many began on the path.
    pub(crate) on_path: u64,
    /// Where they were made.
    pub(crate) places: Weights,
    names: BTreeSet<&'static str>,
    /// How many of them the kernel counted together: of those, few were timed.
    counted: u64,
    /// How many there were, on the path or not, with the bytes asked for and moved.
    count: u64,
    asked: u64,
    bytes: u64,
    sizes: Option<(u64, u64)>,
    needed: u64,
    /// How many there were on each kind of stream.
    streams: BTreeMap<Stream, u64>,
    /// The call sites of all the groups' calls.
    known: Weights,
}

impl SmallCalls {
    /// The calls of these entries; none if there are none.
    pub(crate) fn of<'e>(
        facts: &Facts<'_>,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Option<Self> {
        let mut calls = Self::default();
        for entry in entries {
            calls.ns += entry.ns;
            add(&mut calls.places, &entry.all_places());
            if let Detail::Calls(group) = entry.detail {
                calls.add(facts.call_groups.get(group), entry.count);
            }
        }
        if !calls.places.keys().any(|site| site.is_known()) {
            // Of high-rate calls few stacks are taken, perhaps none on the path.
            calls.places = std::mem::take(&mut calls.known);
        }
        (calls.on_path > 0).then_some(calls)
    }

    fn add(&mut self, group: &CallGroup, on_path: u64) {
        self.names.insert(group.name);
        self.counted = self.counted.saturating_add(group.counted);
        self.on_path += on_path.min(group.calls);
        self.count += group.calls;
        self.asked = self.asked.saturating_add(group.asked);
        self.bytes = self.bytes.saturating_add(group.bytes);
        self.needed += needed(group);
        *self.streams.entry(Stream::of(group)).or_default() += on_path;
        if let Some((low, high)) = group.sizes {
            let (least, most) = self.sizes.unwrap_or((low, high));
            self.sizes = Some((least.min(low), most.max(high)));
        }
        add(&mut self.known, &group.all_places());
    }

    /// The saving in the kernel, on the path, if they became calls of [`BLOCK`].
    pub(crate) fn saved(&self) -> Ns {
        let on_path = |whole: u64| part(whole, self.on_path, self.count);
        let kept = part(self.ns.0, self.needed.min(self.count), self.count);
        self.ns - Ns(kept.saturating_add(on_path(self.bytes) * NS_PER_10_BYTES / 10))
    }

    /// Library code around them, from the same lines: some of it goes with the calls.
    pub(crate) fn around(&self, found: &Inspection<'_, '_>, process: ProcessId) -> LibraryCode {
        LibraryCode::around(found, process, &self.places, self.ns)
    }

    /// What an interpreter does around them, some of which goes with them.
    pub(crate) fn interpreted(&self, found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
        interpreter::around(found, process, &self.places)
    }

    /// Their number and size, and how many would do.
    pub(crate) fn text(&self) -> String {
        let names: Vec<&str> = self.names.iter().copied().collect();
        let were = if names.len() > 1 { "were" } else { "was" };
        format!(
            "{} {were} called {} for {}; {} of up to 64 KiB would do the same.",
            names.join(" and "),
            things(self.count, "time"),
            self.sizes(),
            things(self.needed, "call"),
        )
    }

    /// The sizes asked for, as words of a sentence.
    fn sizes(&self) -> String {
        match self.sizes {
            Some((low, high)) if low == high => format!("{} each", bytes(low)),
            Some((low, high)) => {
                let mean = self.asked / self.count.max(1);
                let high = bytes(high);
                let low = if high.ends_with("bytes") { low.to_string() } else { bytes(low) };
                format!("{low} to {high}, {} on average", bytes(mean))
            }
            None => "unknown sizes".to_owned(),
        }
    }

    /// What most of them read or write.
    pub(crate) fn stream(&self) -> Stream {
        let most = self.streams.iter().max_by_key(|(_, calls)| **calls);
        most.map_or(Stream::Opened, |(stream, _)| *stream)
    }

    /// How their time is known.
    pub(crate) fn how(&self) -> How {
        if self.counted * 2 > self.count { How::Estimate } else { How::Exact }
    }

    /// Their bytes, and how many lie on the path. The time of one stands at its place.
    pub(crate) fn evidence(&self) -> Option<String> {
        let part = match self.count - self.on_path {
            missing if missing <= self.count / WITHOUT_DURATION => String::new(),
            _ => format!(", {} of them on the critical path", count(self.on_path)),
        };
        (self.bytes > 0)
            .then(|| format!("{}, {} in all{part}", things(self.count, "call"), bytes(self.bytes)))
    }

    /// The places, heaviest first.
    pub(crate) fn sites(&self, facts: &Facts<'_>) -> Vec<Site> {
        sites(facts.symbols(), &self.places, self.count)
    }
}
