//! A flame graph of two runs, coloured by what differs. Compares times only, and tests nothing.

use super::{Drawing, WIDTH, fitted, n};
use crate::render::picture::{Node, Stacks};
use crate::render::quantity::time;
use maud::html;
use std::collections::BTreeMap;

/// The height of a node.
const LEVEL: f64 = 19.0;
/// Narrower nodes are not drawn.
const NARROW: f64 = 0.6;

/// A function below the same callers in both: its times, and the functions that it calls.
#[derive(Default)]
struct Both {
    ns: [u64; 2],
    children: BTreeMap<String, usize>,
}

/// A node as it is drawn.
struct Placed {
    x: f64,
    width: f64,
    level: usize,
    name: String,
    ns: [u64; 2],
}

/// The drawing of the stacks of A and B.
#[must_use]
pub fn drawing(a: &Stacks, b: &Stacks, id: &str) -> Drawing {
    let nodes = both([a, b]);
    let whole = nodes[0].ns.iter().sum::<u64>().max(1) as f64;
    let mut placed = Vec::new();
    let mut open = vec![(0, "all".to_owned(), 0.0, 0)];
    while let Some((at, name, x, level)) = open.pop() {
        let width = nodes[at].ns.iter().sum::<u64>() as f64 / whole * WIDTH;
        if width < NARROW {
            continue;
        }
        placed.push(Placed { x, width, level, name, ns: nodes[at].ns });
        let mut next = x;
        for (name, child) in &nodes[at].children {
            open.push((*child, name.clone(), next, level + 1));
            next += nodes[*child].ns.iter().sum::<u64>() as f64 / whole * WIDTH;
        }
    }
    let levels = placed.iter().map(|node| node.level + 1).max().unwrap_or(1);
    let body = html! {
        @for node in &placed {
            g {
                title { (node.name) ": A " (time(node.ns[0])) ", B " (time(node.ns[1])) }
                rect.edge x=(n(node.x)) y=(n(node.level as f64 * LEVEL)) width=(n(node.width)) height=(n(LEVEL - 1.0))
                    fill=(colour(node.ns)) {}
                @if node.width > 28.0 {
                    text.on x=(n(node.x + 3.0)) y=(n(node.level as f64 * LEVEL + 13.0)) {
                        (fitted(&node.name, node.width - 5.0))
                    }
                }
            }
        }
    };
    Drawing {
        id: id.to_owned(),
        height: levels as f64 * LEVEL + 2.0,
        title: "Flame graph of both, coloured by what differs".to_owned(),
        text: format!("A {} and B {} by call stack", time(a.total), time(b.total)),
        body,
    }
}

/// Both trees as one.
fn both(sides: [&Stacks; 2]) -> Vec<Both> {
    let mut nodes = vec![Both::default()];
    let programs = sides.map(program);
    // Two builds under two names: what they call is to meet.
    let common = match &programs {
        [Some((_, a)), Some((_, b))] if a != b => Some(format!("{a}, {b}")),
        _ => None,
    };
    for (side, stacks) in sides.into_iter().enumerate() {
        let mut place = vec![0; stacks.nodes.len()];
        for (at, Node(parent, name, own)) in stacks.nodes.iter().enumerate() {
            if at > 0 {
                let own = || stacks.names.get(*name as usize).cloned().unwrap_or_default();
                let is_program = programs[side].as_ref().is_some_and(|(program, _)| *program == at);
                let name = common.clone().filter(|_| is_program).unwrap_or_else(own);
                let new = nodes.len();
                let into = *nodes[place[*parent]].children.entry(name).or_insert(new);
                if into == new {
                    nodes.push(Both::default());
                }
                place[at] = into;
            }
            let ns: u64 = own.iter().map(|(_, ns)| ns).sum();
            // Its callers have this time too.
            let mut up = at;
            loop {
                nodes[place[up]].ns[side] += ns;
                if up == 0 {
                    break;
                }
                up = stacks.nodes[up].0;
            }
        }
    }
    nodes
}

/// The node of the program with most of the time, and its name: programs are what lies below the root.
fn program(stacks: &Stacks) -> Option<(usize, String)> {
    let mut times: BTreeMap<usize, u64> = BTreeMap::new();
    for (at, Node(_, _, own)) in stacks.nodes.iter().enumerate().skip(1) {
        let mut up = at;
        while stacks.nodes[up].0 > 0 {
            up = stacks.nodes[up].0;
        }
        *times.entry(up).or_default() += own.iter().map(|(_, ns)| ns).sum::<u64>();
    }
    let (most, _) = times.into_iter().max_by_key(|(_, ns)| *ns)?;
    let Node(_, name, _) = &stacks.nodes[most];
    Some((most, stacks.names.get(*name as usize)?.clone()))
}

/// Red where B takes longer, blue where A does, light where they are about equal.
fn colour([a, b]: [u64; 2]) -> String {
    let difference = (b as f64 - a as f64) / (a + b).max(1) as f64;
    let light = 88.0 - 22.0 * difference.abs();
    let hue = if difference > 0.0 { 10 } else { 215 };
    format!("hsl({hue} {:.0}% {light:.0}%)", 15.0 + 60.0 * difference.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(nodes: Vec<Node>, names: &[&str]) -> Stacks {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Stacks { names, nodes, keys: vec![("net-work", "a 1".into())], ..Stacks::default() }
    }

    #[test]
    fn times_of_the_same_callers_meet() {
        let node = |parent, name, ns| Node(parent, name, vec![(0, ns)]);
        let a = stacks(vec![node(0, 0, 0), node(0, 1, 10), node(1, 2, 5)], &["all", "f", "g"]);
        let b = stacks(vec![node(0, 0, 0), node(0, 1, 7)], &["all", "f"]);
        let nodes = both([&a, &b]);
        let times: Vec<[u64; 2]> = nodes.iter().map(|node| node.ns).collect();
        assert_eq!(times, [[15, 7], [15, 7], [5, 0]]);
        let other = stacks(vec![node(0, 0, 0), node(0, 1, 4), node(1, 2, 3)], &["all", "new", "g"]);
        let times: Vec<[u64; 2]> = both([&a, &other]).iter().map(|node| node.ns).collect();
        assert_eq!(times, [[15, 7], [15, 7], [5, 3]], "another name of the program");
        let drawn = drawing(&a, &b, "x").body.into_string();
        assert!(drawn.contains("<title>g: A 5 ns, B 0 ns</title>"), "{drawn}");
    }
}
