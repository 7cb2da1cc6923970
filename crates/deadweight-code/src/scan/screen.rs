//! What a function is worth reading for: a quick pass that leaves out only what `scan` would not find.
//!
//! It may ask for too much: then the complete pass takes longer. Its conditions are weaker forms of the rules:
//! an instruction of interest between a jump back and its target, a large constant before a call that copies, enough
//! loads and stores in straight code.

use super::passed::Passed;
use super::{Called, LEAST_COPIED, LEAST_ZEROED};
use crate::code::Code;
use crate::decode::{Sort, Way, quick, set};
use crate::instruction::Reg;
use deadweight_trace::syscall::Arch;

/// What is known of the code that a function calls or jumps to.
pub trait Targets {
    /// What the routine at an address, or behind a pointer there, decides; none of most code.
    fn called(&self, addr: u64) -> Option<Called>;
    /// Whether the function that begins at an address may be small (see [`super::small`]).
    fn may_be_small(&self, addr: u64) -> bool;
    /// What the part of a function at an address, which a compiler moved away, leads to.
    fn moved_part(&self, addr: u64) -> Option<Called>;
}

/// How far from its entry a function spills arguments.
const ENTRY: usize = 16;
/// The most instructions of a small function, see `roles::calls_of_small`.
const SMALL: usize = 64 + 16;

/// What `scan` may find in a function.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interest {
    /// Copies and clearing.
    pub(super) moves: bool,
    /// Bounds checks in a loop.
    pub(super) checks: bool,
    /// Single floating-point numbers are computed in a loop.
    pub(super) floats: bool,
    /// Anything else in a loop.
    pub(super) loops: bool,
    /// Signs that it was not optimised.
    pub(super) shape: bool,
}

impl Interest {
    /// What `code` is worth reading for; none if for nothing. Everything for architectures without a quick decoder.
    pub(super) fn of(code: &Code<'_>, targets: &impl Targets, passed: &mut Passed) -> Option<Self> {
        const ALL: Interest =
            Interest { moves: true, checks: true, floats: true, loops: true, shape: true };
        passed.clear();
        if code.arch != Arch::X86_64 {
            return Some(ALL);
        }
        let mut screen = Screen::new(code, targets, passed);
        if screen.run().is_none() {
            // Bytes that the table does not know: the complete decoder decides.
            return Some(ALL);
        }
        let found = screen.found();
        passed.is_complete = true;
        (found != Self::default()).then_some(found)
    }
}

/// Whether the function may be small: it has few instructions, and calls nothing that is not known by name.
#[must_use]
pub fn may_be_small(code: &Code<'_>, targets: &impl Targets) -> bool {
    let (mut rest, mut addr, mut count) = (code.bytes, code.addr.0, 0);
    while !rest.is_empty() {
        let Some((len, sort)) = quick(rest, addr) else { return true };
        count += 1;
        let calls = match sort {
            Sort::Call(to) => targets.called(to).is_none(),
            Sort::Block => true,
            _ => false,
        };
        if calls || count > SMALL {
            return false;
        }
        rest = &rest[len..];
        addr = addr.wrapping_add(len as u64);
    }
    true
}

struct Screen<'s, T> {
    code: &'s Code<'s>,
    targets: &'s T,
    passed: &'s mut Passed,
    /// Jumps back: the target, and where they are.
    back: Vec<(u64, u64)>,
    /// Instructions that are of interest in a loop.
    inside: Vec<u64>,
    /// Targets of calls, of which it is asked later whether they are small.
    calls: Vec<(u64, u64)>,
    /// What was found up to now; `checks` outside of loops too.
    found: Interest,
    /// Targets of branches that leave the function.
    away: Vec<u64>,
    straight: Straight,
    /// Whether a register that survives calls holds a large constant ...
    kept: bool,
    /// ... or any register a pointer to a routine that moves.
    pointer: bool,
    third: Third,
    /// Calls through registers with a third argument that may be a large constant.
    through: Vec<(u32, u32)>,
}

/// What the register of the third argument may hold: the size, for routines that move.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Third {
    /// No constant, or a small one.
    Small,
    /// A large constant or another register's value, unless it was overwritten.
    Large,
}

/// The register of the third argument: RDX.
const THIRD: Reg = Reg::general(2);

/// What straight code has done up to now.
#[derive(Copy, Clone, Debug, Default)]
struct Straight {
    start: u64,
    loads: u32,
    stores: u32,
    large: bool,
    stepped: bool,
    /// Whether it is a loop that counts down, and stores.
    repeats: bool,
}

impl<'s, T: Targets> Screen<'s, T> {
    fn new(code: &'s Code<'s>, targets: &'s T, passed: &'s mut Passed) -> Self {
        Self {
            code,
            targets,
            passed,
            back: Vec::new(),
            inside: Vec::new(),
            calls: Vec::new(),
            found: Interest::default(),
            away: Vec::new(),
            straight: Straight { start: code.addr.0, ..Straight::default() },
            kept: false,
            pointer: false,
            third: Third::Small,
            through: Vec::new(),
        }
    }

    /// Passes all instructions; none if it meets one that it does not know.
    fn run(&mut self) -> Option<()> {
        let (mut rest, mut addr, mut count) = (self.code.bytes, self.code.addr.0, 0);
        let mut offset = 0_u32;
        while !rest.is_empty() {
            let (len, sort) = quick(rest, addr)?;
            let end = addr.wrapping_add(len as u64);
            let behind = offset.checked_add(u32::try_from(len).ok()?)?;
            self.passed.note(offset, behind, sort);
            self.third(&rest[..len], offset, sort);
            offset = behind;
            self.pass(&rest[..len], addr, end, sort);
            self.found.shape |= sort == Sort::Spill && count < ENTRY;
            count += 1;
            rest = &rest[len..];
            addr = end;
        }
        Some(())
    }

    fn pass(&mut self, bytes: &[u8], addr: u64, end: u64, sort: Sort) {
        let stepped = std::mem::replace(&mut self.straight.stepped, sort == Sort::Step);
        let straight = &mut self.straight;
        match sort {
            Sort::Other | Sort::Third | Sort::Step | Sort::Stops => {}
            Sort::Scalar(_) | Sort::Packed(_) => {}
            Sort::Constant(value) => self.constant(bytes, value),
            Sort::Load(bytes) => straight.loads = straight.loads.saturating_add(bytes),
            Sort::Store(bytes) => straight.stores = straight.stores.saturating_add(bytes),
            Sort::Spill => straight.stores = straight.stores.saturating_add(8),
            Sort::Slow => self.inside.push(addr),
            Sort::Block => {
                self.found.moves = true;
                self.passed.sites.push((self.offset(addr), self.offset(end)));
            }
            Sort::To { target, falls } => self.jump((addr, end), target, falls, stepped),
            Sort::Call(target) => {
                self.calls(addr, target);
                self.settle(end);
            }
            Sort::Through(slot, way) => {
                let called = self.calls(addr, slot);
                self.pointer |= called == Some(Called::Moves);
                if way == Way::Loads
                    && called == Some(Called::Moves)
                    && let Some((register, _)) = set(bytes)
                {
                    self.passed.movers.insert(register);
                }
                let panics = matches!(called, Some(Called::BoundsPanic | Called::Other));
                self.passed.loads_panic |= way == Way::Loads && panics;
            }
            Sort::Leaves(_) => {
                self.found.moves |= self.pointer && (self.straight.large || self.kept);
                self.settle(end);
            }
        }
    }

    fn constant(&mut self, bytes: &[u8], value: u64) {
        /// The registers that survive calls: rbx, rbp, and r12 to r15 with a REX prefix.
        const SAVED: [u8; 6] = [3, 5, 4, 5, 6, 7];
        if value < u64::from(LEAST_COPIED) {
            return;
        }
        self.straight.large = true;
        let last = bytes.iter().find(|byte| **byte & 0xf8 == 0xb8 || **byte == 0xc7);
        let register = last.copied().unwrap_or_default() & 7;
        let high = bytes.first().is_some_and(|byte| byte & 0xf1 == 0x41);
        let saved = if high { &SAVED[2..] } else { &SAVED[..2] };
        self.kept |= last == Some(&0xc7) || saved.contains(&register);
    }

    /// Follows the third argument, and notes calls of routines that move as many bytes.
    fn third(&mut self, bytes: &[u8], offset: u32, sort: Sort) {
        // A jump may lead to code whose first call moves.
        let moves = |to: u64| {
            let called = self.targets.called(to).or_else(|| self.targets.moved_part(to));
            called == Some(Called::Moves)
        };
        match sort {
            Sort::Third => self.third = Third::Large,
            Sort::Constant(value) => {
                let Some((register, _)) = set(bytes) else { return };
                let is_large = value >= LEAST_COPIED.into();
                if register == THIRD {
                    self.third = if is_large { Third::Large } else { Third::Small };
                } else if is_large {
                    self.passed.constants.insert(register);
                }
            }
            Sort::Call(to)
            | Sort::To { target: to, falls: false }
            | Sort::Through(to, Way::Calls | Way::Jumps) => {
                if self.third != Third::Small && moves(to) {
                    let end = offset.saturating_add(u32::try_from(bytes.len()).unwrap_or(0));
                    self.passed.sites.push((offset, end));
                }
                self.third = Third::Small;
            }
            Sort::Leaves(way) => {
                if way != Way::Ends && self.third != Third::Small {
                    let end = offset.saturating_add(u32::try_from(bytes.len()).unwrap_or(0));
                    self.through.push((offset, end));
                }
                self.third = Third::Small;
            }
            Sort::Stops => self.third = Third::Small,
            _ => {}
        }
    }

    /// Notes a call of `target`.
    fn calls(&mut self, addr: u64, target: u64) -> Option<Called> {
        let called = self.targets.called(target);
        match called {
            // Go's routines of a fixed size need no constant.
            Some(Called::Moves) => {
                let fixed = self.code.abi == crate::Abi::Go;
                self.found.moves |= self.straight.large || self.kept || fixed;
            }
            Some(Called::BoundsPanic) => self.found.checks = true,
            Some(Called::GoAllocation) => self.inside.push(addr),
            Some(Called::Other) => {}
            None => self.calls.push((addr, target)),
        }
        called
    }

    fn jump(&mut self, (addr, end): (u64, u64), target: u64, falls: bool, stepped: bool) {
        let own = self.code.addr.0..self.code.addr.0.saturating_add(self.code.bytes.len() as u64);
        if own.contains(&target) && target <= addr {
            self.back.push((target, addr));
            // A loop that counts down moves its bytes many times.
            let same = target >= self.straight.start;
            let moves = stepped && same && self.straight.stores > 0;
            self.found.moves |= moves;
            self.straight.repeats |= moves;
        } else if !own.contains(&target) && falls {
            self.away.push(target);
        } else if !own.contains(&target) {
            self.calls(addr, target);
        }
        self.settle(end);
    }

    /// Straight code ends: notes whether it has moved enough.
    fn settle(&mut self, end: u64) {
        let Straight { loads, stores, start, repeats, .. } = self.straight;
        self.straight = Straight { start: end, ..Straight::default() };
        self.found.moves |= loads.min(stores) >= LEAST_COPIED || stores >= LEAST_ZEROED;
        self.passed.clears |= stores >= LEAST_ZEROED;
        if stores >= LEAST_COPIED || repeats {
            self.passed.sites.push((self.offset(start), self.offset(end)));
        }
    }

    /// The offset of an address in the function.
    fn offset(&self, addr: u64) -> u32 {
        u32::try_from(addr.wrapping_sub(self.code.addr.0)).unwrap_or(u32::MAX)
    }

    /// What was found, of loops only what is in one.
    fn found(mut self) -> Interest {
        self.settle(self.code.addr.0.saturating_add(self.code.bytes.len() as u64));
        if !self.passed.movers.is_empty() {
            self.passed.sites.append(&mut self.through);
        }
        self.passed.sites.sort_unstable();
        let spans = spans(std::mem::take(&mut self.back));
        for (first, last) in &spans {
            let span = (self.offset(*first), self.offset(*last));
            self.passed.spans.push(span);
        }
        let within = |addr: &u64| {
            let after = spans.partition_point(|(first, _)| first <= addr);
            after.checked_sub(1).is_some_and(|at| *addr <= spans[at].1)
        };
        let small = |(at, to): &(u64, u64)| within(at) && self.targets.may_be_small(*to);
        let leads = |to: &u64| self.targets.moved_part(*to) == Some(Called::BoundsPanic);
        let has_loop = !spans.is_empty();
        let computed = |(at, _): &(u32, _)| within(&self.code.addr.0.wrapping_add(u64::from(*at)));
        Interest {
            floats: has_loop && self.passed.scalars.iter().any(computed),
            checks: has_loop && (self.found.checks || self.away.iter().any(leads)),
            loops: self.inside.iter().any(within) || has_loop && self.calls.iter().any(small),
            ..self.found
        }
    }
}

/// Jumps back as stretches of code, in order and apart from each other.
fn spans(mut back: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    back.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (first, last) in back {
        match spans.last_mut().filter(|before| first <= before.1) {
            Some(before) => before.1 = before.1.max(last),
            None => spans.push((first, last)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Abi;
    use crate::tests::hex;
    use deadweight_trace::units::FileAddr;

    /// The code at 100h has this meaning, or may be small.
    struct At100(Option<Called>);

    impl Targets for At100 {
        fn called(&self, addr: u64) -> Option<Called> {
            self.0.filter(|_| addr == 0x100)
        }

        fn may_be_small(&self, addr: u64) -> bool {
            addr == 0x100
        }

        fn moved_part(&self, addr: u64) -> Option<Called> {
            self.called(addr)
        }
    }

    fn worth(code: &str, called: Option<Called>) -> bool {
        let bytes = hex(code);
        let code =
            Code { arch: Arch::X86_64, abi: Abi::Platform, addr: FileAddr(0), bytes: &bytes };
        Interest::of(&code, &At100(called), &mut Passed::default()).is_some()
    }

    #[test]
    fn a_function_without_anything_is_not_read() {
        // add eax, ecx; ret
        assert!(!worth("01c8c3", None));
        // A loop of additions.
        assert!(!worth("01c8ffc975fac3", None));
        // lock inc dword ptr [rdi]; ret: outside of a loop.
        assert!(!worth("f0ff07c3", None));
        // mov edx, 64; call; ret
        assert!(!worth("ba40000000e8f6000000c3", Some(Called::Moves)));
    }

    #[test]
    fn what_the_rules_look_for_is_read() {
        assert!(worth("ba00010000e8f6000000c3", Some(Called::Moves)));
        assert!(worth("f0ff07ffc975f9c3", None));
        assert!(worth("e8fb000000ffcb75f7c3", None));
        assert!(worth("31c04c39c0730848ffc0ffce75f4c3e8ec000000", Some(Called::BoundsPanic)));
        // The same with the panic in a part of the function that lies elsewhere.
        assert!(worth("4c39c00f83f7000000ffce75f3c3", Some(Called::BoundsPanic)));
        assert!(worth("f348abc3", None));
        let pieces: String =
            (0..8).map(|n| format!("0f1046{0:02x}0f1147{0:02x}", n * 16)).collect();
        assert!(worth(&format!("{pieces}c3"), None));
        // mov r14, [100h]; mov edx, 256; call r14: through a register
        assert!(worth("4c8b35f9000000ba0001000041ffd6c3", Some(Called::Moves)));
        assert!(worth("554889e5897dfc5dc3", None));
    }
}
