//! The basic blocks of a function, which of them lead to which, and its natural loops as blocks.
//!
//! Knows no instructions: only how each block ends. So the same loops are found from complete instructions
//! ([`super::nest`]) and from a quick pass ([`crate::scan`]). Lists are flat: a binary has a hundred thousand functions.

/// Steps of searches per block, after which a function is left without loops: no compiler's code needs as many.
const STEPS: usize = 2_000;

/// No block.
const NONE: usize = usize::MAX;

/// How a block ends.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// The block that it jumps or branches to, if that is known and in the function.
    pub(crate) target: Option<usize>,
    /// Whether the next block follows.
    pub(crate) falls: bool,
    /// Whether it may go anywhere: by a table of jumps.
    pub(crate) anywhere: bool,
}

/// A natural loop, as blocks.
pub(crate) struct Blocks {
    pub(crate) head: usize,
    /// In order.
    pub(crate) members: Vec<usize>,
    /// Those that every turn passes, in the order in which it does.
    pub(crate) always: Vec<usize>,
}

impl Blocks {
    /// Whether a block is in it.
    pub(crate) fn holds(&self, block: usize) -> bool {
        self.members.binary_search(&block).is_ok()
    }
}

/// For each block a list of others, in the order in which they were added.
struct Lists {
    /// The first and the last entry of each block.
    of: Vec<(usize, usize)>,
    /// A block, and the entry that follows.
    entries: Vec<(usize, usize)>,
}

impl Lists {
    fn new(blocks: usize) -> Self {
        Self { of: vec![(NONE, NONE); blocks], entries: Vec::with_capacity(blocks * 2) }
    }

    fn push(&mut self, block: usize, to: usize) {
        let new = self.entries.len();
        self.entries.push((to, NONE));
        let (first, last) = &mut self.of[block];
        match self.entries.get_mut(*last) {
            Some(before) => before.1 = new,
            None => *first = new,
        }
        *last = new;
    }

    fn of(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.of[block].0;
        std::iter::from_fn(move || {
            let (to, after) = *self.entries.get(next)?;
            next = after;
            Some(to)
        })
    }
}

/// The basic blocks of a function. Calls do not end one.
pub(crate) struct Graph {
    next: Lists,
    before: Lists,
}

impl Graph {
    /// The graph of blocks that end so, in order of address.
    pub(crate) fn of(ends: &[End]) -> Self {
        let mut graph = Self { next: Lists::new(ends.len()), before: Lists::new(ends.len()) };
        let mut led = vec![false; ends.len()];
        for (block, end) in ends.iter().enumerate() {
            let behind = (end.falls && block + 1 < ends.len()).then_some(block + 1);
            for to in [end.target, behind].into_iter().flatten() {
                graph.edge(block, to);
                led[to] = true;
            }
        }
        let jumps: Vec<usize> = (0..ends.len()).filter(|block| ends[*block].anywhere).collect();
        let cases = (1..led.len()).filter(|block| !led[*block] && !jumps.is_empty());
        for case in cases {
            let behind = jumps.partition_point(|jump| *jump < case);
            let before = behind.checked_sub(1).map(|n| jumps[n]);
            let after = jumps.get(behind).copied().filter(|jump| *jump != case);
            let back_to = |jump: usize| graph.leads(case, jump);
            let later = after.filter(|_| !before.is_some_and(back_to)).filter(|to| back_to(*to));
            if let Some(from) = later.or(before) {
                graph.edge(from, case);
            }
        }
        graph
    }

    /// The blocks that may run after a block.
    pub(crate) fn next(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        self.next.of(block)
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.next.push(from, to);
        self.before.push(to, from);
    }

    /// Whether a block leads to another, by few steps.
    fn leads(&self, from: usize, to: usize) -> bool {
        /// A case of a switch in a loop is soon at its next turn.
        const FAR: usize = 64;
        // Each block is opened once.
        let (mut seen, mut known) = ([from; FAR], 1);
        let (mut open, mut left) = ([from; FAR], 1);
        while left > 0 {
            left -= 1;
            let block = open[left];
            if block == to {
                return true;
            }
            for to in self.next.of(block) {
                if known < FAR && !seen[..known].contains(&to) {
                    (seen[known], open[left]) = (to, to);
                    (known, left) = (known + 1, left + 1);
                }
            }
        }
        false
    }

    /// How many natural loops are around each block. `resumes` as for [`Graph::loops`].
    pub(crate) fn depths(&self, resumes: bool) -> Vec<u32> {
        let mut depths = vec![0; self.next.of.len()];
        for blocks in self.search(resumes, false).unwrap_or_default() {
            blocks.members.iter().for_each(|block| depths[*block] += 1);
        }
        depths
    }

    /// The natural loops; none if the search takes too long. `resumes`: the first block is also where the function starts
    /// again, as Go's functions do once their stack has grown.
    pub(crate) fn loops(&self, resumes: bool) -> Option<Vec<Blocks>> {
        self.search(resumes, true)
    }

    /// The same; the blocks that each turn passes only if asked for.
    fn search(&self, resumes: bool, with_turns: bool) -> Option<Vec<Blocks>> {
        let count = self.next.of.len();
        let order = self.order();
        let mut number = vec![NONE; count];
        order.iter().enumerate().for_each(|(n, block)| number[*block] = n);
        // Without a way back to an earlier block there is no loop.
        let goes_back = |head: &usize| {
            let mut from = self.before.of(*head).map(|from| number[from]);
            from.any(|from| from != NONE && from >= number[*head])
        };
        if !order.iter().any(goes_back) {
            return Some(Vec::new());
        }
        let mut steps = STEPS.saturating_mul(order.len());
        let dominators = self.dominators(&order, &number, &mut steps)?;
        let mut found = Vec::new();
        // The head of the loop that a block was last found in.
        let mut within = vec![NONE; count];
        let (mut back, mut open) = (Vec::new(), Vec::new());
        for head in order.iter().copied().filter(|head| *head != 0 || !resumes) {
            back.clear();
            for from in self.before.of(head) {
                if dominates(head, from, &dominators, &number, &mut steps)? {
                    back.push(from);
                }
            }
            if back.is_empty() {
                continue;
            }
            let mut members = vec![head];
            within[head] = head;
            open.clone_from(&back);
            while let Some(block) = open.pop() {
                steps = steps.checked_sub(1)?;
                if number[block] != NONE && std::mem::replace(&mut within[block], head) != head {
                    members.push(block);
                    open.extend(self.before.of(block));
                }
            }
            members.sort_unstable();
            let always = match with_turns {
                true => on_all_ways(head, &back, (&dominators, &number), &mut steps)?,
                false => Vec::new(),
            };
            found.push(Blocks { head, members, always });
        }
        Some(found)
    }

    /// The blocks that the entry leads to, each before those that it dominates.
    fn order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.next.of.len());
        let mut seen = vec![false; self.next.of.len()];
        let first = |block: usize| self.next.of[block].0;
        let mut open = vec![(0, first(0))];
        seen[0] = true;
        while let Some((block, entry)) = open.last_mut() {
            match self.next.entries.get(*entry).copied() {
                Some((to, after)) => {
                    *entry = after;
                    if !std::mem::replace(&mut seen[to], true) {
                        open.push((to, first(to)));
                    }
                }
                None => {
                    order.push(*block);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// The immediate dominator of each block (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm).
    fn dominators(
        &self,
        order: &[usize],
        number: &[usize],
        steps: &mut usize,
    ) -> Option<Vec<usize>> {
        let mut dominators = vec![NONE; self.next.of.len()];
        dominators[0] = 0;
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for block in order.iter().copied().skip(1) {
                let mut common = NONE;
                for from in self.before.of(block).filter(|b| dominators[*b] != NONE) {
                    let mut other = from;
                    if common == NONE {
                        common = from;
                    }
                    while common != other {
                        *steps = steps.checked_sub(1)?;
                        let later =
                            if number[common] > number[other] { &mut common } else { &mut other };
                        *later = dominators[*later];
                    }
                }
                changed |= std::mem::replace(&mut dominators[block], common) != common;
            }
        }
        Some(dominators)
    }
}

/// The blocks that every way from `head` to the blocks that lead back to it passes, in order; none if the search takes
/// too long.
fn on_all_ways(
    head: usize,
    back: &[usize],
    (dominators, number): (&[usize], &[usize]),
    steps: &mut usize,
) -> Option<Vec<usize>> {
    // The last block that all of them have in common.
    let (mut common, others) = back.split_first().map(|(first, others)| (*first, others))?;
    for mut other in others.iter().copied() {
        while common != other {
            *steps = steps.checked_sub(1)?;
            let later = if number[common] > number[other] { &mut common } else { &mut other };
            *later = dominators[*later];
        }
    }
    let up = || {
        std::iter::successors(Some(common), |block| (*block != head).then(|| dominators[*block]))
    };
    let length = up().take(*steps + 1).count();
    *steps = steps.checked_sub(length)?;
    let mut all = Vec::with_capacity(length);
    all.extend(up());
    all.reverse();
    Some(all)
}

/// Whether every path from the entry to `block` passes `head`; none if the search takes too long.
fn dominates(
    head: usize,
    mut block: usize,
    dominators: &[usize],
    number: &[usize],
    steps: &mut usize,
) -> Option<bool> {
    if number[block] == NONE {
        return Some(false);
    }
    while number[block] > number[head] {
        *steps = steps.checked_sub(1)?;
        block = dominators[block];
    }
    Some(block == head)
}
