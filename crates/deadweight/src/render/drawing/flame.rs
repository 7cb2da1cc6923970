//! Flame graphs, from the outermost function down: width is time, colour the row that most of it is in.

use super::ledger::class;
use super::{Drawing, WIDTH, fitted, n};
use crate::render::picture::{Node, Stacks};
use crate::render::quantity::{percent, time};
use maud::html;
use std::collections::BTreeMap;

/// The height of a node.
const LEVEL: f64 = 19.0;
/// Narrower nodes are not drawn.
const NARROW: f64 = 0.6;

/// A node as it is drawn.
struct Placed<'s> {
    x: f64,
    width: f64,
    level: usize,
    name: &'s str,
    account: &'s str,
    ns: u64,
}

/// The drawing of stacks.
#[must_use]
pub fn drawing(stacks: &Stacks, what: &str) -> Drawing {
    let placed = placed(stacks);
    let levels = placed.iter().map(|node| node.level + 1).max().unwrap_or(0);
    let total = stacks.total.max(1) as f64;
    let body = html! {
        g.nodes {
            @for node in &placed {
                g {
                    title { (node.name) ": " (time(node.ns)) ", " (percent(node.ns as f64 / total)) }
                    rect class={ "edge a-" (class(node.account)) } x=(n(node.x)) y=(n(node.level as f64 * LEVEL))
                        width=(n(node.width)) height=(n(LEVEL - 1.0)) {}
                    @if node.width > 28.0 {
                        text.on x=(n(node.x + 3.0)) y=(n(node.level as f64 * LEVEL + 13.0)) {
                            (fitted(node.name, node.width - 5.0))
                        }
                    }
                }
            }
        }
    };
    Drawing {
        id: "flame-drawing".to_owned(),
        height: (levels as f64 * LEVEL).max(LEVEL) + 2.0,
        title: format!("Flame graph of the {what}"),
        text: format!("{} by call stack, outermost function on top", time(stacks.total)),
        body,
    }
}

fn placed(stacks: &Stacks) -> Vec<Placed<'_>> {
    let count = stacks.nodes.len();
    let mut totals = vec![0_u64; count];
    let mut accounts: Vec<BTreeMap<&str, u64>> = vec![BTreeMap::new(); count];
    for at in (0..count).rev() {
        let Node(parent, _, own) = &stacks.nodes[at];
        for (key, ns) in own {
            let account = stacks.keys.get(*key).map_or("", |key| key.0);
            *accounts[at].entry(account).or_default() += ns;
            totals[at] += ns;
        }
        if at > 0 {
            let (sum, by_account) = (totals[at], accounts[at].clone());
            totals[*parent] += sum;
            for (account, ns) in by_account {
                *accounts[*parent].entry(account).or_default() += ns;
            }
        }
    }
    let mut places: Vec<(f64, usize)> = vec![(0.0, 0); count];
    // Where the next child of each node begins.
    let mut next: Vec<f64> = vec![0.0; count];
    let mut placed = Vec::new();
    let scale = WIDTH / stacks.total.max(1) as f64;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| {
        (depth(stacks, *at), stacks.nodes[*at].0, std::cmp::Reverse(totals[*at]), *at)
    });
    for at in order {
        let Node(parent, name, _) = &stacks.nodes[at];
        let width = totals[at] as f64 * scale;
        let (x, level) = if at == 0 { (0.0, 0) } else { (next[*parent], places[*parent].1 + 1) };
        places[at] = (x, level);
        next[at] = x;
        if at > 0 {
            next[*parent] += width;
        }
        if width >= NARROW {
            let most = accounts[at].iter().max_by_key(|(_, ns)| **ns);
            placed.push(Placed {
                x,
                width,
                level,
                name: stacks.names.get(*name as usize).map_or("", String::as_str),
                account: most.map_or("", |(account, _)| account),
                ns: totals[at],
            });
        }
    }
    placed
}

fn depth(stacks: &Stacks, mut at: usize) -> usize {
    let mut depth = 0;
    while at > 0 {
        at = stacks.nodes[at].0;
        depth += 1;
    }
    depth
}
