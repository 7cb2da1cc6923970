//! Who sends messages in parts: writes on a connection that follow each other without a read between, before a read.

use crate::facts::Facts;
use crate::facts::call_site::frames::{Frame, own_frames, site_at};
use crate::facts::processes::ProcessId;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::transfer::Transfer;
use deadweight_report::report::Site;
use deadweight_trace::ids::{CallId, StackId};
use deadweight_trace::symbols::Symbols;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The sender has this part of the messages in parts that stalled, at least.
const MOST: f64 = 0.8;

/// So many places are shown.
const SITES: usize = 4;

/// A process that sends messages in parts.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) process: ProcessId,
    /// How many messages were sent in parts.
    pub(super) messages: u64,
    /// The stacks of two parts of the same message, with how often.
    pairs: BTreeMap<[StackId; 2], u64>,
}

impl Sender {
    pub(super) fn new(process: ProcessId) -> Self {
        Self { process, messages: 0, pairs: BTreeMap::new() }
    }

    /// The process of the command that sends messages in parts as often as `receiver` waits for the rest of one.
    pub(super) fn of(facts: &Facts<'_>, receiver: ProcessId, stalls: u64) -> Option<Self> {
        let mut found: BTreeMap<ProcessId, Self> = BTreeMap::new();
        let mut parts: BTreeMap<(ProcessId, u32), Vec<StackId>> = BTreeMap::new();
        for (index, call) in facts.timeline.calls.iter().enumerate() {
            let id = facts.call_groups.id(CallId::at(index));
            let Some(group) = id.map(|id| facts.call_groups.get(id)) else { continue };
            let is_socket = group.kind == Some(ObjectKind::Socket) && group.process != receiver;
            let Some(object) = call.object().filter(|_| is_socket) else { continue };
            let sent = parts.entry((group.process, object)).or_default();
            match group.transfer {
                Some(Transfer::Gives) => sent.push(call.site),
                Some(Transfer::Takes) if sent.len() > 1 => {
                    found
                        .entry(group.process)
                        .or_insert_with(|| Self::new(group.process))
                        .add(sent);
                    sent.clear();
                }
                Some(Transfer::Takes) => sent.clear(),
                _ => {}
            }
        }
        let most = found.into_values().max_by_key(|sender| sender.messages)?;
        let own = facts.processes.get(most.process).own;
        (own && most.messages as f64 >= stalls as f64 * MOST).then_some(most)
    }

    /// Counts a message that was sent in these parts.
    pub(super) fn add(&mut self, sent: &[StackId]) {
        self.messages += 1;
        for pair in sent.windows(2).filter(|pair| !pair.contains(&StackId(0))) {
            *self.pairs.entry([pair[0], pair[1]]).or_default() += 1;
        }
    }

    /// Where the parts are sent, the most frequent first: at the lines where the two stacks differ, so that a function
    /// that only writes is not the place.
    pub(super) fn sites(&self, symbols: &Symbols) -> Vec<Site> {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(_, count)| Reverse(**count));
        let mut sites: Vec<Site> = Vec::new();
        for ([one, two], count) in pairs {
            let [one, two] = [one, two].map(|stack| own_frames(symbols, *stack));
            let same = |(a, b): &(&Frame<'_>, &Frame<'_>)| a.1 == b.1;
            let depth = one.iter().zip(&two).take_while(same).count();
            for frames in [&one, &two] {
                let at = depth.min(frames.len().saturating_sub(1));
                let Some(site) = site_at(symbols, frames, at) else { continue };
                if !sites.iter().any(|known| (known.line, &known.file) == (site.line, &site.file)) {
                    sites.push(Site { count: *count, ..site });
                }
            }
        }
        sites.truncate(SITES);
        let all = sites.len().max(1) as f64;
        sites.iter_mut().for_each(|site| site.share = 1.0 / all);
        sites
    }
}
