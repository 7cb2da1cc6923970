//! Binary trees in Rust from a bumpalo arena that is reset after each tree.

use bumpalo::Bump;

struct Node<'a>(Option<(&'a Node<'a>, &'a Node<'a>)>);

fn build(from: &Bump, depth: u32) -> &Node<'_> {
    from.alloc(Node((depth > 0).then(|| (build(from, depth - 1), build(from, depth - 1)))))
}

fn count(node: &Node<'_>) -> u64 {
    node.0.map_or(1, |(left, right)| 1 + count(left) + count(right))
}

fn main() {
    let mut dropped = Bump::new();
    binary_trees::run(
        |depth| {
            dropped.reset();
            count(build(&dropped, depth))
        },
        |depth| {
            // Kept to the program's end, as in the other forms.
            let kept: &'static Bump = Box::leak(Box::new(Bump::new()));
            let root = build(kept, depth);
            Box::new(move || count(root))
        },
    );
}
