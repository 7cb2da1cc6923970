//! Loops in which a program spends much of its own time, with what the registers at their samples show: how fast they
//! turn, and which memory they touch.
//!
//! - In: samples with registers, and the machine code around them.
//! - Out: [`HotLoop`]s, with the [`LoopSample`]s of each, and why it is slow, if it is.
//! - Must not know: the classes. They say what to do about a slow loop, and what that saves.
//!
//! A sampling interrupt comes after the instruction that took the time. So the registers are those after it: an address
//! that the instruction itself replaced is lost, except in a chain of pointers, where what it loaded is the next one.
//! A loop that calls a function without a loop of its own has the samples of that too.

pub(crate) mod divisions;
pub(crate) mod memory;
pub(crate) mod reason;
pub(crate) mod searches;
pub(crate) mod speed;
mod trips;

use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::timeline::Registers;
use deadweight_code::instruction::{Memory, Reg};
use deadweight_code::machine_code::FunctionId;
use deadweight_code::{Access, Cycle, Function, Pattern, Step};
use deadweight_report::account::{AccountId, NET_WORK};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::{FileAddr, Ns};
use memory::Reached;
use reason::Reason;
use speed::Speed;
use std::collections::BTreeMap;

/// A loop has this part of the samples of its process, at least, and so many.
const SHARE: f64 = 0.1;
pub(crate) const SAMPLES: usize = 40;
/// How many callers of the innermost function may hold the loop.
const CALLERS: usize = 2;
/// How many instructions after a load may wait for it.
const AFTER: usize = 4;

/// A sample with what its registers show.
#[derive(Clone, Debug)]
pub(crate) struct LoopSample {
    /// Whose.
    pub(crate) task: TaskId,
    /// When.
    pub(crate) at: Ns,
    /// Where.
    pub(crate) stack: StackId,
    /// The function that it was taken in.
    pub(crate) function: FunctionId,
    /// The address of the instruction that it waited for.
    pub(crate) waited: FileAddr,
    /// The general registers.
    pub(crate) general: [u64; 32],
    /// The memory that it waited for.
    pub(crate) access: Option<Accessed>,
}

/// An access to memory with its address.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Accessed {
    /// The instruction.
    pub(crate) by: (FunctionId, FileAddr),
    /// What it does.
    pub(crate) access: Access,
    /// The address that it used, or that the next turn of a chain of pointers uses.
    pub(crate) address: u64,
}

/// A loop with much of a process's time.
#[derive(Clone, Debug)]
pub(crate) struct HotLoop {
    /// The function with the loop.
    pub(crate) function: FunctionId,
    /// The first instruction of its turns.
    pub(crate) head: FileAddr,
    /// Its samples, and those in functions that it calls, by task in order of time.
    pub(crate) samples: Vec<LoopSample>,
    /// How fast it turns, where a register shows that.
    pub(crate) speed: Option<Speed>,
    /// The memory that it waits for, by instruction, most samples first.
    pub(crate) reached: Vec<Reached>,
    /// Why it is slow, if it is.
    pub(crate) reason: Option<Reason>,
}

impl HotLoop {
    /// The loop in its function.
    pub(crate) fn cycle<'f>(&self, facts: &'f Facts<'_>) -> Option<Cycle<'f>> {
        facts.machine.function(self.function).cycle_at(self.head)
    }

    /// Whether samples were taken in functions that it calls.
    pub(crate) fn calls(&self) -> bool {
        self.samples.iter().any(|sample| sample.function != self.function)
    }

    /// Whether most samples wait for one load after the other, where it is not known how much memory these reach, or for loads
    /// in no order that reach more than the second cache.
    pub(crate) fn waits_for_loads(&self, facts: &Facts<'_>) -> bool {
        let far = memory::cache(facts, 2);
        let is_far = |reached: &Reached| !reached.in_order && reached.footprint() >= far;
        let open = self.reached.iter().filter(|r| r.is_chase_of_unknown_reach() || is_far(r));
        open.map(|reached| reached.samples).sum::<usize>() * 2 >= self.samples.len()
    }

    /// The samples that meet a condition, as a part of all in 0..=1.
    pub(crate) fn part(&self, meets: impl Fn(&LoopSample) -> bool) -> f64 {
        let met = self.samples.iter().filter(|sample| meets(sample)).count();
        met as f64 / self.samples.len().max(1) as f64
    }
}

/// The samples of a process's own code that have registers, with the memory that they waited for, in and outside of
/// loops.
pub(crate) fn with_access(facts: &Facts<'_>, process: ProcessId) -> Vec<LoopSample> {
    let mut places = Places::default();
    let mut found: Vec<LoopSample> = own_samples(facts, process)
        .filter_map(|(registers, at, stack)| {
            Some(places.of(facts, stack)?.sample(registers, (at, stack)))
        })
        .collect();
    found.sort_by_key(|sample| (sample.task, sample.at));
    found
}

/// A sample with registers, wherever it was taken.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WithRegisters {
    /// Whose.
    pub(crate) task: TaskId,
    /// When.
    pub(crate) at: Ns,
    /// Where.
    pub(crate) stack: StackId,
    /// The general registers.
    pub(crate) general: [u64; 32],
    /// The memory that it waited for.
    pub(crate) access: Option<Accessed>,
    /// The innermost loop around it, as the function and the loop's first instruction.
    pub(crate) within: Option<(FunctionId, FileAddr)>,
}

/// The samples of a process with registers whose stacks are wanted, in order of time for each task.
pub(crate) fn with_registers(
    facts: &Facts<'_>,
    process: ProcessId,
    mut wanted: impl FnMut(StackId) -> bool,
) -> Vec<WithRegisters> {
    let mut places = Places::default();
    let mut found: Vec<_> = own_samples(facts, process)
        .filter(|(.., stack)| wanted(*stack))
        .map(|(registers, at, stack)| {
            let place = places.of(facts, stack);
            let sample = place.map(|place| place.in_loop(registers, (at, stack)));
            let access = sample.and_then(|sample| sample.access);
            let within = place.and_then(|place| place.within);
            let Registers { task, general, .. } = *registers;
            WithRegisters { task, at, stack, general, access, within }
        })
        .collect();
    found.sort_by_key(|sample| (sample.task, sample.at));
    found
}

/// The hot loops of a process.
pub(crate) fn gather(facts: &Facts<'_>, process: ProcessId) -> Vec<HotLoop> {
    let (_, mut loops) = within(facts, process, (SHARE, is_of_loops), |_| true);
    loops.retain(|hot| hot.samples.len() >= SAMPLES);
    loops
}

/// The number of a process's samples with registers whose stacks count, and the loops with this part of those in accounts
/// that may be of loops, also where they are few.
pub(crate) fn within(
    facts: &Facts<'_>,
    process: ProcessId,
    (part, may): (f64, fn(AccountId) -> bool),
    counts: impl Fn(StackId) -> bool,
) -> (usize, Vec<HotLoop>) {
    let (mut all, mut places) = (0_usize, Places::default());
    let mut loops: BTreeMap<(FunctionId, FileAddr), Vec<LoopSample>> = BTreeMap::new();
    for (registers, at, stack) in own_samples(facts, process).filter(|(.., stack)| counts(*stack)) {
        all += 1;
        if may(facts.account_of_sample(CallSite::Stack(stack)))
            && let Some(place) = places.of(facts, stack)
            && let Some(within) = place.within
        {
            loops.entry(within).or_default().push(place.in_loop(registers, (at, stack)));
        }
    }
    let hot = loops.into_iter().filter(|(_, samples)| samples.len() as f64 >= part * all as f64);
    let read = hot.map(|((function, head), mut samples)| {
        samples.sort_by_key(|sample| (sample.task, sample.at));
        let (speed, reached, reason) = (None, Vec::new(), None);
        let mut hot = HotLoop { function, head, samples, speed, reached, reason };
        if hot.samples.len() >= SAMPLES {
            hot.speed = speed::measure(facts, &hot);
            hot.reached = memory::reached(facts, &hot);
        }
        hot
    });
    let mut loops: Vec<HotLoop> = read.collect();
    memory::pool_copies(&mut loops);
    for hot in loops.iter_mut().filter(|hot| hot.samples.len() >= SAMPLES) {
        hot.reason = reason::reason(facts, hot);
    }
    (all, loops)
}

/// Whether samples of an account can belong to a hot loop: its work, its checks, and what it calls. Other accounts
/// explain their time themselves.
pub(crate) fn is_of_loops(account: AccountId) -> bool {
    account == NET_WORK || matches!(account.id(), "missed-inlining" | "bounds-checks")
}

/// The samples of a process's user code that have registers: those, when, where.
fn own_samples<'f>(
    facts: &'f Facts<'_>,
    process: ProcessId,
) -> impl Iterator<Item = (&'f Registers, Ns, StackId)> {
    facts.registers_of(process).filter_map(move |registers| {
        let sample = facts.timeline.task(registers.task).samples.get(registers.sample as usize)?;
        Some((registers, sample.at, sample.stack))
    })
}

/// What the code at each stack's innermost instruction does: looked up once.
#[derive(Default)]
struct Places(BTreeMap<StackId, Option<Place>>);

/// What samples of one stack waited for.
#[derive(Copy, Clone)]
struct Place {
    function: FunctionId,
    waited: FileAddr,
    /// The innermost loop around it, as the function and the loop's first instruction.
    within: Option<(FunctionId, FileAddr)>,
    /// The access that its address is known of, and the instruction that makes it.
    access: Option<(FileAddr, Access)>,
    /// The same of the load that the branch just before was decided by.
    decided: Option<(FileAddr, Access)>,
}

impl Places {
    fn of(&mut self, facts: &Facts<'_>, stack: StackId) -> Option<Place> {
        *self.0.entry(stack).or_insert_with(|| Place::of(facts, stack))
    }
}

impl Place {
    fn of(facts: &Facts<'_>, stack: StackId) -> Option<Self> {
        let machine = &facts.machine;
        let (leaf, callers) = facts.symbols().stack(stack).split_first()?;
        let function = machine.function_at(*leaf)?;
        let code = machine.function(function);
        let waited = code.charge(machine.place(*leaf)?);
        let inner = code.cycles_around(waited).into_iter().next();
        let outer = || {
            callers.iter().take(CALLERS).find_map(|caller| {
                let function = machine.function_at(*caller)?;
                let around = machine.function(function).cycles_around(machine.place(*caller)?);
                Some((function, around.first()?.head()))
            })
        };
        let within = inner.map(|cycle| (function, cycle.head())).or_else(outer);
        let access = accessed(code, waited, inner.as_ref());
        let decided = inner.filter(|_| access.is_none()).and_then(|cycle| {
            code.decided_by(waited, &cycle, AFTER).filter(|(_, access)| passes_lines(access))
        });
        Some(Self { function, waited, within, access, decided })
    }

    /// A sample there, in a loop: what it waited for may be the load that decided the branch before.
    fn in_loop(&self, registers: &Registers, when: (Ns, StackId)) -> LoopSample {
        Self { access: self.access.or(self.decided), ..*self }.sample(registers, when)
    }

    fn sample(&self, registers: &Registers, (at, stack): (Ns, StackId)) -> LoopSample {
        let Self { function, waited, .. } = *self;
        let general = registers.general;
        let access = self.access.and_then(|(by, access)| {
            let address = address(&access.memory, &general)?;
            Some(Accessed { by: (function, by), access, address })
        });
        LoopSample { task: registers.task, at, stack, function, waited, general, access }
    }
}

/// The access that the instruction at `waited` made or needs, if the registers of its address still have their values
/// after it.
fn accessed(
    code: &Function,
    waited: FileAddr,
    within: Option<&Cycle<'_>>,
) -> Option<(FileAddr, Access)> {
    let own = code.access(waited, within);
    let by = if own.is_some() { waited } else { code.load_before(waited, AFTER)? };
    let access = own.or_else(|| code.access(by, within))?;
    let from = |addr: FileAddr| code.instructions().partition_point(|i| i.addr < addr.0);
    let since = &code.instructions()[from(by)..from(FileAddr(waited.0 + 1))];
    let kept = |register: Reg| !since.iter().any(|i| i.writes.has(register));
    let chained = access.pattern == Pattern::Chased && by == waited;
    let known = [access.memory.base, access.memory.index].into_iter().flatten().all(kept);
    (known || chained).then_some((by, access))
}

/// Whether each turn uses another line: a wrong guess is longer than the fetch of a part of one.
fn passes_lines(access: &Access) -> bool {
    match access.pattern {
        Pattern::Fixed | Pattern::Strided(Step::Of(..)) => false,
        Pattern::Strided(Step::By(by)) => by.unsigned_abs() >= memory::LINE,
        Pattern::Chased | Pattern::Open => true,
    }
}

/// The address of an operand; none for storage of the thread, the stack, and fixed addresses.
fn address(memory: &Memory, general: &[u64; 32]) -> Option<u64> {
    /// Nothing is mapped below: null pointers at the ends of lists.
    const LOWEST: u64 = 1 << 16;
    if memory.thread_local || memory.base.is_none() && memory.index.is_none() {
        return None;
    }
    let value = |register: Reg| general.get(register.index()).copied();
    let base = memory.base.map_or(Some(0), value)?;
    let index = memory.index.map_or(Some(0), value)?;
    let address = base
        .wrapping_add(index.wrapping_mul(memory.scale.into()))
        .wrapping_add_signed(memory.offset);
    (address >= LOWEST).then_some(address)
}
