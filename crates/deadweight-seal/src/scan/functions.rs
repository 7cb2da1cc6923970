//! Where the functions of a file begin and end.
//!
//! From Go's table, from unwind tables, which separate the parts of a function, and from symbols; the first that knows a
//! piece of code has it. Does not know names.

use super::code_bytes::CodeBytes;
use crate::cfi::CallFrames;
use crate::code::LARGEST;
use crate::names::pclntab;
use crate::names::symbol_table::FunctionSymbol;
use deadweight_code::Abi;
use deadweight_trace::hash::ByFast;
use object::ReadRef;
use std::collections::HashSet;

/// All functions, in order of address, none overlapping another.
#[derive(Default)]
pub(super) struct Functions {
    pub(super) list: Vec<Function>,
    /// Where they begin.
    starts: HashSet<u64, ByFast>,
    /// How many were too large.
    large: usize,
}

/// The bounds of a function, or of a part of one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) start: u64,
    pub(super) size: u32,
    pub(super) abi: Abi,
}

impl Functions {
    pub(super) fn of<'d, R: ReadRef<'d>>(
        file: &object::File<'d, R>,
        symbols: &[FunctionSymbol<'_>],
        frames: Option<&CallFrames>,
        code: &CodeBytes<'_>,
    ) -> Self {
        // A source's number is its rank: bounds of the first one count.
        let mut bounds: Vec<(u64, u8, u64)> = Vec::new();
        if let Some(go) = pclntab::Table::read(file) {
            bounds.extend(go.functions().map(|(start, end)| (start, 0, end)));
        }
        bounds.extend(frames.into_iter().flat_map(CallFrames::functions).map(|(s, e)| (s, 1, e)));
        let symbols = symbols.iter().filter(|symbol| symbol.end > symbol.start);
        bounds.extend(symbols.map(|symbol| (symbol.start, 2, symbol.end)));
        bounds.sort_unstable();
        let mut functions = Self::default();
        let mut reached = 0;
        for (start, rank, end) in bounds {
            let inside = code.from(start).filter(|_| start >= reached && !code.is_stub(start));
            let Some(bytes) = inside else { continue };
            let size = end.saturating_sub(start).min(bytes.len() as u64);
            reached = start.saturating_add(size);
            match u32::try_from(size) {
                Ok(size) if u64::from(size) <= LARGEST => {
                    let abi = if rank == 0 { Abi::Go } else { Abi::Platform };
                    functions.starts.insert(start);
                    functions.list.push(Function { start, size, abi });
                }
                _ => functions.large += 1,
            }
        }
        functions
    }

    /// Whether a function begins at `addr`.
    pub(super) fn begins(&self, addr: u64) -> bool {
        self.starts.contains(&addr)
    }

    /// The number of the function that holds `addr`.
    pub(super) fn holding(&self, addr: u64) -> Option<usize> {
        let at = self.list.partition_point(|f| f.start <= addr).checked_sub(1)?;
        (addr - self.list[at].start < u64::from(self.list[at].size)).then_some(at)
    }

    /// What is said of functions that were left out.
    pub(super) fn left_out(&self) -> Option<String> {
        (self.large > 0).then(|| {
            format!(
                "has {} functions of more than {} KiB, which were left out: they are generated",
                self.large,
                LARGEST >> 10
            )
        })
    }
}
