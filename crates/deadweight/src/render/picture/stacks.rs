//! Time by stack as one tree: of a flame graph, its filters and its search.
//!
//! Nodes are the functions of stacks from the outside in, below their process. The smallest nodes are added to their
//! parents, so that the tree has a bounded size.

use super::cells::{Texts, cut};
use crate::render::page::{printable, shortened};
use deadweight_core::{OneRun, StackTime};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most nodes.
const NODES: usize = 2500;
/// Frames of a stack that are kept: half of them at each end.
const FRAMES: usize = 100;
/// Characters of a function's name that are kept.
const NAME: usize = 120;

/// A tree of stacks.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stacks {
    /// Its time.
    pub total: u64,
    /// Texts of its nodes.
    pub names: Vec<String>,
    /// Rows and threads: account, and the thread's name. Nodes refer to them.
    pub keys: Vec<(&'static str, String)>,
    /// Parents come before their children. The first is the root.
    pub nodes: Vec<Node>,
    /// Nodes that were added to their parents.
    pub left_out: usize,
}

/// Its parent, its name, and its own time by key: without that of its children.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node(pub usize, pub u32, pub Vec<(usize, u64)>);

/// A tree while it grows.
#[derive(Default)]
struct Growing {
    texts: Texts,
    parents: Vec<usize>,
    names: Vec<u32>,
    own: Vec<BTreeMap<usize, u64>>,
    totals: Vec<u64>,
    children: BTreeMap<(usize, u32), usize>,
}

impl Growing {
    fn node(&mut self, parent: usize, name: String) -> usize {
        let name = self.texts.number(name);
        let next = self.parents.len();
        let at = *self.children.entry((parent, name)).or_insert(next);
        if at == next {
            self.parents.push(parent);
            self.names.push(name);
            self.own.push(BTreeMap::new());
            self.totals.push(0);
        }
        at
    }

    /// The tree with only its largest nodes.
    fn finish(mut self, keys: Vec<(&'static str, String)>) -> Stacks {
        for at in (1..self.parents.len()).rev() {
            let total = self.totals[at];
            self.totals[self.parents[at]] += total;
        }
        // A child has at most its parent's time, and comes after it: no kept node loses its parent.
        let mut order: Vec<usize> = (0..self.parents.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(self.totals[*at]), *at));
        let mut kept: Vec<usize> = order.iter().take(NODES).copied().collect();
        kept.sort_unstable();
        let place: BTreeMap<usize, usize> =
            kept.iter().enumerate().map(|(i, at)| (*at, i)).collect();
        for at in (1..self.parents.len()).rev().filter(|at| !place.contains_key(at)) {
            for (key, ns) in std::mem::take(&mut self.own[at]) {
                *self.own[self.parents[at]].entry(key).or_default() += ns;
            }
        }
        let (words, mut used) = (self.texts.into_words(), Texts::default());
        let node = |at: &usize| {
            let parent = place.get(&self.parents[*at]).copied().unwrap_or(0);
            let name = words.get(self.names[*at] as usize).cloned().unwrap_or_default();
            let own = self.own[*at].iter().map(|(key, ns)| (*key, *ns)).collect();
            Node(parent, used.number(name), own)
        };
        let nodes = kept.iter().map(node).collect();
        let left_out = self.parents.len() - kept.len();
        let total = self.totals.first().copied().unwrap_or(0);
        Stacks { total, names: used.into_words(), keys, nodes, left_out }
    }
}

/// The tree of these stacks.
pub(super) fn tree(run: &OneRun<'_, '_>, stacks: &[StackTime]) -> Stacks {
    let mut growing = Growing::default();
    let root = growing.node(0, "all".to_owned());
    let mut keys: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    for stack in stacks {
        let process = cut(&run.process_name(stack.task));
        let thread = format!("{process} {}", run.timeline().task(stack.task).tid.0);
        let next = keys.len();
        let key = *keys.entry((stack.account.id(), thread)).or_insert(next);
        let mut at = growing.node(root, process);
        for name in names(run, stack) {
            at = growing.node(at, name);
        }
        *growing.own[at].entry(key).or_default() += stack.ns.0;
        growing.totals[at] += stack.ns.0;
    }
    let mut ordered: Vec<_> = keys.into_iter().map(|(key, at)| (at, key)).collect();
    ordered.sort_by_key(|(at, _)| *at);
    growing.finish(ordered.into_iter().map(|(_, key)| key).collect())
}

/// The functions of a stack from the outside in, with what happened innermost.
fn names(run: &OneRun<'_, '_>, stack: &StackTime) -> Vec<String> {
    let symbols = run.symbols();
    let mut names: Vec<String> = stack
        .frames(symbols)
        .map(|(location, frame)| {
            let name = symbols.name(frame.function);
            if !name.is_empty() {
                return shortened(&printable(name), NAME);
            }
            let image = symbols.images.get(location.image.index());
            let path = image.map_or("", |image| symbols.name(image.path));
            format!("{}+{:#x}", cut(path.rsplit('/').next().unwrap_or_default()), location.addr.0)
        })
        .collect();
    names.reverse();
    if names.len() > FRAMES {
        let inner = names.split_off(names.len() - FRAMES / 2);
        names.truncate(FRAMES / 2);
        names.push("…".to_owned());
        names.extend(inner);
    }
    let event =
        if stack.event.is_empty() { String::new() } else { format!("[{}]", cut(&stack.event)) };
    names.extend((!event.is_empty()).then_some(event));
    names
}
