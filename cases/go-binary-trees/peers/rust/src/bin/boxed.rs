//! Binary trees in Rust, each node in a `Box` of its own.

struct Node(Option<(Box<Node>, Box<Node>)>);

fn build(depth: u32) -> Box<Node> {
    Box::new(Node((depth > 0).then(|| (build(depth - 1), build(depth - 1)))))
}

fn count(node: &Node) -> u64 {
    node.0.as_ref().map_or(1, |(left, right)| 1 + count(left) + count(right))
}

fn main() {
    binary_trees::run(
        |depth| count(&build(depth)),
        |depth| {
            let root = build(depth);
            Box::new(move || count(&root))
        },
    );
}
