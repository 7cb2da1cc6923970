//! Reads all functions, in several threads. Does not name what it finds.

use super::code_bytes::CodeBytes;
use super::functions::{Function, Functions};
use super::routines::Routines;
use super::threads::in_threads;
use deadweight_code::Code;
use deadweight_code::scan::{self, Called, Callees, Match, Passed, Targets};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use std::cell::RefCell;
use std::sync::OnceLock;

/// How many functions a thread takes at a time.
const CHUNK: usize = 64;
/// A function with more bytes is not small: eight for each of the few dozen instructions.
const LARGE: u32 = 512;

/// A match in a function.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    /// The function's number.
    pub(super) function: usize,
    pub(super) found: Match,
}

/// The matches of all functions.
pub(super) fn scan(
    functions: &Functions,
    routines: &Routines<'_>,
    code: &CodeBytes<'_>,
) -> Vec<Hit> {
    let small = std::iter::repeat_with(OnceLock::new).take(functions.list.len()).collect();
    let work = Work { functions, routines, code, small };
    in_threads(functions.list.len(), CHUNK, |range| {
        PASSED.with_borrow_mut(|passed| {
            let mut hits = Vec::new();
            range.for_each(|number| work.scan(number, passed, &mut hits));
            hits
        })
    })
    .concat()
}

thread_local! {
    /// Notes of a function, in memory that serves the next one too.
    static PASSED: RefCell<Passed> = RefCell::default();
}

struct Work<'w, 'd> {
    functions: &'w Functions,
    routines: &'w Routines<'d>,
    code: &'w CodeBytes<'d>,
    /// For each function whether it is small, once that was asked.
    small: Vec<OnceLock<Option<u32>>>,
}

impl<'d> Work<'_, 'd> {
    fn scan(&self, number: usize, passed: &mut Passed, hits: &mut Vec<Hit>) {
        let Some(code) = self.code_of(&self.functions.list[number]) else { return };
        let names = |addr: FileAddr| self.name(addr);
        let small = |addr: FileAddr| self.small(addr);
        let written = |addr: FileAddr| self.written(addr);
        let callees = Callees { names: &names, small: &small, written: &written };
        let found = scan::scan(&code, self, &callees, passed);
        hits.extend(found.into_iter().map(|found| Hit { function: number, found }));
    }

    fn code_of(&self, function: &Function) -> Option<Code<'d>> {
        let bytes = self.code.from(function.start)?.get(..usize::try_from(function.size).ok()?)?;
        Some(Code { arch: Arch::X86_64, abi: function.abi, addr: FileAddr(function.start), bytes })
    }

    fn name(&self, addr: FileAddr) -> Option<&'d str> {
        self.routines.name(addr.0, self.functions.begins(addr.0), self.code)
    }

    /// The function that begins at `addr`, unless it is too large to be small.
    fn beginning(&self, addr: u64) -> Option<(usize, Code<'d>)> {
        let at = self.functions.holding(addr)?;
        let function = &self.functions.list[at];
        let begins = function.start == addr && function.size <= LARGE;
        begins.then(|| self.code_of(function)).flatten().map(|code| (at, code))
    }

    /// The instructions of the function that begins at `addr`, if it is small.
    fn small(&self, addr: FileAddr) -> Option<u32> {
        let (at, code) = self.beginning(addr.0)?;
        *self.small[at].get_or_init(|| scan::small(&code, &|addr| self.name(addr)))
    }

    /// What a routine of a fixed size writes from `addr` on.
    fn written(&self, addr: FileAddr) -> u32 {
        let Some(at) = self.functions.holding(addr.0) else { return 0 };
        let Some(code) = self.code_of(&self.functions.list[at]) else { return 0 };
        let into = usize::try_from(addr.0 - code.addr.0).unwrap_or(usize::MAX);
        let bytes = code.bytes.get(into..).unwrap_or_default();
        scan::written(&Code { addr, bytes, ..code })
    }
}

impl Targets for Work<'_, '_> {
    fn called(&self, addr: u64) -> Option<Called> {
        self.routines.called(addr)
    }

    fn may_be_small(&self, addr: u64) -> bool {
        let Some((at, code)) = self.beginning(addr) else { return false };
        match self.small[at].get() {
            Some(small) => small.is_some(),
            None => scan::may_be_small(&code, self) && self.small(FileAddr(addr)).is_some(),
        }
    }

    fn moved_part(&self, addr: u64) -> Option<Called> {
        self.routines.moved_part(addr, self.code).map(|(_, called)| called)
    }
}
