//! What one turn of a loop computes, if the next turns need nothing of it but a sum.
//!
//! Anything that the rules do not know is a reason for silence.

use super::memory::Used;
use crate::decode;
use crate::function::Function;
use crate::instruction::{Division, Float, Instruction, Kind, Memory, Operation, Reg, Registers};
use crate::{Code, Cycle, Pattern, Step};
use deadweight_trace::units::FileAddr;

/// A turn of an innermost loop of a single way.
pub(super) struct Turn<'t, 'f> {
    pub(super) code: &'t Code<'t>,
    pub(super) function: &'f Function,
    pub(super) cycle: Cycle<'f>,
    pub(super) instructions: &'t [&'f Instruction],
}

/// What it computes.
pub(super) struct Computed {
    /// The first operation.
    pub(super) at: u64,
    pub(super) operations: u32,
    pub(super) double: bool,
    pub(super) reduces: bool,
    /// How many numbers it takes of an array.
    pub(super) numbers: u64,
}

/// What is known at one instruction.
struct State {
    /// Registers with values that depend on loaded ones; integers only.
    data: Registers,
    /// Registers with sums that the turn before began.
    sums: Registers,
    /// How these are made.
    way: Option<Operation>,
    /// Fixed places that are stored to: base, index, scale and offset.
    kept: Vec<Place>,
    memory: Used,
    /// Whether numbers of arrays are used.
    is_of_array: bool,
    found: Option<Computed>,
}

type Place = (Option<Reg>, Option<Reg>, u8, i64);

fn place(memory: &Memory) -> Place {
    (memory.base, memory.index, memory.scale, memory.offset)
}

impl Turn<'_, '_> {
    /// The registers that count, with their steps.
    pub(super) fn counters(&self) -> Vec<(Reg, i64)> {
        let by = |(register, step)| match step {
            Step::By(by) => Some((register, by)),
            Step::Of(..) => None,
        };
        self.cycle.counters().into_iter().filter_map(by).collect()
    }

    /// What the turn computes; none if it could not be done for several at once.
    pub(super) fn computed(&self) -> Option<Computed> {
        let carried = self.carried();
        let counters: Registers =
            self.counters().into_iter().map(|(register, _)| register).collect();
        if carried.iter().any(|register| !register.is_vector() && !counters.has(register)) {
            return None;
        }
        let mut state = State {
            data: Registers::default(),
            sums: carried.iter().filter(|register| register.is_vector()).collect(),
            way: None,
            kept: Vec::new(),
            memory: Used::new(),
            is_of_array: false,
            found: None,
        };
        for instruction in self.instructions {
            if let Some((memory, Pattern::Fixed)) = self.memory(instruction)
                && memory.written
            {
                state.kept.push(place(&memory));
            }
        }
        for instruction in self.instructions {
            self.pass(&mut state, instruction)?;
            state.memory.pass(instruction);
        }
        let State { memory, is_of_array, found, .. } = state;
        let mut found =
            found.filter(|_| is_of_array && memory.is_dense() && !memory.is_chained())?;
        found.numbers = memory.numbers(if found.double { 8 } else { 4 });
        Some(found)
    }

    /// The registers whose values of the turn before are used.
    fn carried(&self) -> Registers {
        let (mut carried, mut written) = (Registers::default(), Registers::default());
        for instruction in self.instructions {
            carried = carried.and(self.sources(instruction).without(written));
            written = written.and(instruction.writes);
        }
        carried.without(carried.without(written))
    }

    fn float(&self, instruction: &Instruction) -> Option<Float> {
        let may = instruction.kind == Kind::Compute;
        may.then(|| decode::float(self.code, instruction)).flatten()
    }

    /// The registers whose values count.
    fn sources(&self, instruction: &Instruction) -> Registers {
        let general: Registers = instruction.reads.iter().filter(|r| !r.is_vector()).collect();
        let vectors = instruction.reads.without(general);
        match (instruction.kind, self.float(instruction)) {
            (_, Some(float)) => general.and(float.sources),
            // The rest of the register stays.
            (Kind::Move, _) => instruction.data[1].into_iter().collect(),
            (Kind::Load, _) => general,
            _ => general.and(vectors),
        }
    }

    /// The memory that an instruction uses, and how its address moves.
    fn memory(&self, instruction: &Instruction) -> Option<(Memory, Pattern)> {
        let access = self.function.access(FileAddr(instruction.addr), Some(&self.cycle))?;
        Some((access.memory, access.pattern))
    }

    fn pass(&self, state: &mut State, instruction: &Instruction) -> Option<()> {
        use Kind::{
            Address, Advance, Branch, Compare, Compute, Constant, Jump, Load, Move, Nop, Store,
        };
        let float = self.float(instruction);
        let vectors = |set: Registers| set.iter().any(Reg::is_vector);
        let known = match instruction.kind {
            Load | Store | Move | Constant(_) | Advance(_) | Address | Nop => true,
            Kind::StoreZero | Kind::StoreConstant | Branch(_) | Jump(Some(_)) => true,
            Compare => !vectors(instruction.reads) && !instruction.reads.meets(state.data),
            Compute => {
                let of_integers = !vectors(instruction.reads.and(instruction.writes));
                let divides =
                    matches!(decode::division(self.code, instruction), Some(Division::Integer(_)));
                float.is_some_and(|float| !float.packed && !float.wide) || of_integers && !divides
            }
            _ => false,
        };
        if !known {
            return None;
        }
        let fixed = self.address(state, instruction)?;
        if instruction.kind == Nop {
            return Some(());
        }
        if let Some(float) = float {
            count(state, instruction, &float);
            self.is_of_counter_or_data(state, instruction, &float).then_some(())?;
        }
        self.carry(state, instruction, float.as_ref(), fixed)?;
        // Integers of an array, and what depends on them.
        let loads = matches!(instruction.kind, Load | Compute) && instruction.memory.is_some();
        let depends = instruction.reads.meets(state.data) || vectors(self.sources(instruction));
        let made: Registers = instruction.writes.iter().filter(|r| !r.is_vector()).collect();
        let becomes = depends || loads && fixed.is_none();
        state.data = state.data.without(made);
        state.data = state.data.and(if becomes { made } else { Registers::default() });
        Some(())
    }

    /// Notes the memory that an instruction uses, and returns its place if that is the same in all turns; none if the turns do not use it in
    /// order.
    fn address(&self, state: &mut State, instruction: &Instruction) -> Option<Option<Place>> {
        let Some((memory, pattern)) = self.memory(instruction) else { return Some(None) };
        let address: Registers = [memory.base, memory.index].into_iter().flatten().collect();
        if address.meets(state.data) || memory.size == 0 {
            return None;
        }
        match pattern {
            Pattern::Fixed => Some(Some(place(&memory))),
            Pattern::Strided(Step::By(step)) if memory.size <= 8 => {
                state.memory.add(&memory, step);
                let vector = instruction.reads.and(instruction.writes).iter().any(Reg::is_vector);
                state.is_of_array |= vector && memory.size >= 4;
                Some(None)
            }
            _ => None,
        }
    }

    /// Whether an integer that becomes a floating-point number is a counter, or comes from an array.
    fn is_of_counter_or_data(
        &self,
        state: &State,
        instruction: &Instruction,
        float: &Float,
    ) -> bool {
        let address = instruction
            .memory
            .map_or_else(Registers::default, |m| [m.base, m.index].into_iter().flatten().collect());
        let general = instruction.reads.without(address).iter().filter(|r| !r.is_vector());
        let counters = || self.counters();
        let mut from = general.filter(|_| float.operation == Operation::Convert);
        from.all(|register| {
            state.data.has(register)
                || self.cycle.is_constant(register)
                || counters().iter().any(|(counter, _)| *counter == register)
        })
    }

    /// Follows the sums; none if they are used for anything else.
    fn carry(
        &self,
        state: &mut State,
        instruction: &Instruction,
        float: Option<&Float>,
        fixed: Option<Place>,
    ) -> Option<()> {
        let sources = self.sources(instruction);
        let kept = fixed.is_some_and(|place| state.kept.contains(&place));
        let loads_sum = kept && instruction.memory.is_some_and(|m| m.read && !m.written);
        let uses = sources.iter().filter(|r| state.sums.has(*r)).count()
            + usize::from(loads_sum && float.is_some());
        let written: Registers = instruction.writes.iter().filter(|r| r.is_vector()).collect();
        let mut goes_on = loads_sum;
        match (instruction.kind, float) {
            _ if uses == 0 => {}
            (Kind::Move, _) => goes_on = true,
            (Kind::Store, _) if kept => {}
            (_, Some(float)) if uses == 1 => {
                let way = match float.operation {
                    Operation::MultiplyAdd => {
                        float.addend.filter(|addend| state.sums.has(*addend) || loads_sum)?;
                        Operation::Add
                    }
                    Operation::Add | Operation::Multiply | Operation::Least => float.operation,
                    _ => return None,
                };
                // The number with itself.
                let both = float.sources.iter().count() + usize::from(instruction.memory.is_some());
                if both < 2 || *state.way.get_or_insert(way) != way {
                    return None;
                }
                goes_on = true;
                if let Some(found) = &mut state.found {
                    found.reduces = true;
                }
            }
            _ => return None,
        }
        state.sums = state.sums.without(written);
        if goes_on {
            state.sums = state.sums.and(written);
        }
        Some(())
    }
}

/// Counts the operations of an instruction.
fn count(state: &mut State, instruction: &Instruction, float: &Float) {
    let operations = match float.operation {
        Operation::Bits => return,
        Operation::MultiplyAdd => 2,
        _ => 1,
    };
    let (at, double, reduces, numbers) = (instruction.addr, false, false, 1);
    let found = state.found.get_or_insert(Computed { at, operations: 0, double, reduces, numbers });
    found.operations = found.operations.saturating_add(operations);
    found.double |= float.double;
}
