//! Walks a list whose nodes lie in random order. With the argument `ordered` they lie in the order of the list.
//!
//! Not for lists of pointers: the nodes are linked by indexes.

struct Node {
    next: u32,
    value: u32,
    rest: [u64; 6],
}

fn walk(nodes: &[Node]) -> u64 {
    let (mut at, mut sum) = (0, 0_u64);
    loop {
        let node = &nodes[at as usize];
        sum = sum.wrapping_add(u64::from(node.value)); // the line to name, or its neighbours
        at = node.next;
        if at == 0 {
            return sum;
        }
    }
}

fn main() {
    let ordered = std::env::args().nth(1).is_some_and(|order| order == "ordered");
    let count = 1_u32 << 20;
    let mut order: Vec<u32> = (0..count).collect();
    let mut random = 88_172_645_463_325_252_u64;
    for i in (2..order.len()).rev().filter(|_| !ordered) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        order.swap(i, 1 + (random % (i as u64 - 1)) as usize);
    }
    let mut nodes: Vec<Node> = (0..count).map(|i| Node { next: 0, value: i, rest: [1; 6] }).collect();
    for pair in order.windows(2) {
        nodes[pair[0] as usize].next = pair[1];
    }
    let rounds = if ordered { 60 } else { 4 };
    let sum: u64 = (0..rounds).map(|_| walk(&nodes)).fold(0, u64::wrapping_add);
    println!("{}", sum + nodes[5].rest[3]);
}
