//! Call frame information: how to get from a code address to its caller's frame (`.eh_frame`,
//! `.debug_frame`).
//!
//! - In: the unwind sections of a file (`sections`).
//! - Out: one cached [`Rule`] per address, and bounds of functions.
//! - Must not know: how stacks are walked; see `unwind`.
//!
//! Index and rules are by file address: all processes that map the file share them.

mod sections;

use deadweight_trace::hash::ByFast;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, Evaluation,
    EvaluationResult, LittleEndian, Register, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection, Value,
};
use std::collections::HashMap;

pub(crate) use sections::call_frames;
pub use sections::unwind_rules;

/// The most rules that are cached per image; then the cache is cleared.
const MOST_RULES: usize = 1 << 18;

/// How many steps an expression may take: those of compilers take about ten.
const MOST_STEPS: u32 = 200;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// The registers of an architecture by their DWARF numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Machine {
    fn stack_pointer(self) -> Register {
        match self {
            Self::X86_64 => Register(7),
            Self::Aarch64 => Register(31),
        }
    }

    fn frame_pointer(self) -> Register {
        match self {
            Self::X86_64 => Register(6),
            Self::Aarch64 => Register(29),
        }
    }

    /// The column of the return address; on Arm it is a register that a leaf still holds.
    fn return_address(self) -> Register {
        match self {
            Self::X86_64 => Register(16),
            Self::Aarch64 => Register(30),
        }
    }
}

/// Where the value of a register of the caller is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Unchanged.
    Same,
    /// In memory, this far from the frame's address.
    At(i64),
    /// In memory, at the address that an expression gives.
    AtExpression(UnwindExpression<usize>),
    /// Undefined: for the return address it means that there is no caller.
    Undefined,
}

/// The canonical frame address: the stack pointer before the call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Stack pointer plus this.
    Stack(i64),
    /// Frame pointer plus this.
    Pointer(i64),
    /// By an expression.
    Expression(UnwindExpression<usize>),
}

/// How to undo one call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The frame's address.
    pub(crate) frame: Frame,
    /// Where the return address is.
    pub(crate) caller: Saved,
    /// Where the caller's frame pointer is.
    pub(crate) frame_pointer: Saved,
    /// Whether it is a signal frame: its caller was interrupted and did not call.
    pub(crate) signal: bool,
    /// The section that holds the expressions.
    section: Kind,
}

/// The section: offsets of entries are per section.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    EhFrame,
    DebugFrame,
}

/// An entry of an index: a function's bounds and where its unwind instructions are.
#[derive(Copy, Clone, Debug)]
struct Entry {
    start: u64,
    end: u64,
    offset: usize,
    section: Kind,
}

/// The unwind sections of an image.
#[derive(Debug)]
pub(crate) struct CallFrames {
    machine: Machine,
    eh_frame: Vec<u8>,
    debug_frame: Vec<u8>,
    bases: BaseAddresses,
    entries: Vec<Entry>,
    /// Whether a section could not be read to its end.
    pub(crate) is_damaged: bool,
    rules: HashMap<u64, Option<Rule>, ByFast>,
}

/// An unwind section as read from a file, with the address that the file gives it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Its address.
    pub(crate) address: u64,
    /// Its bytes, decompressed.
    pub(crate) bytes: Vec<u8>,
}

impl CallFrames {
    /// Indexes the sections. Invalid entries are skipped. `text` and `got` are the
    /// addresses of those sections, which entries may be relative to.
    pub(crate) fn new(
        machine: Machine,
        eh_frame: Section,
        debug_frame: Section,
        text: u64,
        got: u64,
    ) -> Self {
        let bases =
            BaseAddresses::default().set_eh_frame(eh_frame.address).set_text(text).set_got(got);
        let mut entries = Vec::new();
        let eh = list(&eh_section(&eh_frame.bytes), &bases, Kind::EhFrame, &mut entries);
        let debug =
            list(&debug_section(&debug_frame.bytes), &bases, Kind::DebugFrame, &mut entries);
        // If both sections describe a function, either is good.
        entries.sort_by_key(|entry| entry.start);
        Self {
            machine,
            eh_frame: eh_frame.bytes,
            debug_frame: debug_frame.bytes,
            bases,
            entries,
            is_damaged: !(eh && debug),
            rules: HashMap::default(),
        }
    }

    /// Whether no function is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bounds of the function that holds `address`.
    pub(crate) fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        self.entry(address).map(|entry| (entry.start, entry.end))
    }

    /// The bounds of all functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (u64, u64)> {
        self.entries.iter().map(|entry| (entry.start, entry.end))
    }

    /// How to undo the call that is active at `address`.
    pub(crate) fn rule(
        &mut self,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Rule> {
        if let Some(rule) = self.rules.get(&address) {
            return *rule;
        }
        let rule = self.entry(address).and_then(|entry| match entry.section {
            Kind::EhFrame => self.derive(eh_section(&self.eh_frame), &entry, address, context),
            Kind::DebugFrame => {
                self.derive(debug_section(&self.debug_frame), &entry, address, context)
            }
        });
        if self.rules.len() >= MOST_RULES {
            self.rules.clear();
        }
        self.rules.insert(address, rule);
        rule
    }

    /// The value of an expression of `rule`; `start` is pushed first, `register` and `memory` are its inputs.
    pub(crate) fn evaluate(
        &self,
        rule: &Rule,
        expression: UnwindExpression<usize>,
        start: Option<u64>,
        register: impl Fn(Register) -> Option<u64>,
        memory: impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let bytes = match rule.section {
            Kind::EhFrame => expression.get(&eh_section(&self.eh_frame)),
            Kind::DebugFrame => expression.get(&debug_section(&self.debug_frame)),
        };
        let encoding =
            gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let mut evaluation = Evaluation::new(bytes.ok()?.0, encoding);
        evaluation.set_max_iterations(MOST_STEPS);
        if let Some(start) = start {
            evaluation.set_initial_value(start);
        }
        let mut step = evaluation.evaluate().ok()?;
        loop {
            step = match step {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register: number, .. } => {
                    evaluation.resume_with_register(Value::Generic(register(number)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(memory(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().first()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        }
    }

    /// The architecture that the rules are for.
    pub(crate) fn machine(&self) -> Machine {
        self.machine
    }

    fn entry(&self, address: u64) -> Option<Entry> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        // An empty or unrelated entry may lie between: search backwards over a few.
        self.entries[..after].iter().rev().take(4).find(|entry| address < entry.end).copied()
    }

    fn derive<'a, S: UnwindSection<Bytes<'a>>>(
        &self,
        section: S,
        entry: &Entry,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Rule> {
        let entry_kind = entry.section;
        let entry = section
            .fde_from_offset(&self.bases, S::Offset::from(entry.offset), S::cie_from_offset)
            .ok()?;
        let row =
            entry.unwind_info_for_address(&section, &self.bases, context, address).ok()?.clone();
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => match *register {
                r if r == self.machine.stack_pointer() => Frame::Stack(*offset),
                r if r == self.machine.frame_pointer() => Frame::Pointer(*offset),
                _ => return None,
            },
            CfaRule::Expression(expression) => Frame::Expression(*expression),
        };
        let caller = saved(row.register(self.machine.return_address()))?;
        let caller = match (self.machine, caller) {
            // The call pushed it: `Same` can only mean that the table has no rule.
            (Machine::X86_64, Saved::Same) => Saved::At(-8),
            (_, caller) => caller,
        };
        let frame_pointer = saved(row.register(self.machine.frame_pointer()))?;
        let signal = entry.is_signal_trampoline();
        Some(Rule { frame, caller, frame_pointer, signal, section: entry_kind })
    }
}

fn saved(rule: Option<RegisterRule<usize>>) -> Option<Saved> {
    match rule {
        None | Some(RegisterRule::SameValue) => Some(Saved::Same),
        Some(RegisterRule::Undefined) => Some(Saved::Undefined),
        Some(RegisterRule::Offset(offset)) => Some(Saved::At(offset)),
        Some(RegisterRule::Expression(expression)) => Some(Saved::AtExpression(expression)),
        _ => None,
    }
}

fn eh_section(bytes: &[u8]) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

fn debug_section(bytes: &[u8]) -> DebugFrame<Bytes<'_>> {
    let mut section = DebugFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

/// Lists a section's functions. Each shared header (CIE) is parsed once, even a broken one: otherwise a hostile file
/// could make the time quadratic. Returns whether the section could be read to its end.
fn list<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    kind: Kind,
    entries: &mut Vec<Entry>,
) -> bool {
    let mut headers = HashMap::new();
    let mut rest = section.entries(bases);
    loop {
        let entry = match rest.next() {
            Ok(Some(entry)) => entry,
            Ok(None) => return true,
            Err(_) => return false,
        };
        let CieOrFde::Fde(partial) = entry else { continue };
        let entry = partial.parse(|section, bases, offset| {
            let key: usize = gimli::UnwindOffset::into(offset);
            headers.entry(key).or_insert_with(|| section.cie_from_offset(bases, offset)).clone()
        });
        if let Ok(entry) = entry
            && entry.initial_address() < entry.end_address()
        {
            entries.push(Entry {
                start: entry.initial_address(),
                end: entry.end_address(),
                offset: entry.offset(),
                section: kind,
            });
        }
    }
}
