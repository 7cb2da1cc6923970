//! What samples of user code waited for: the instruction and its role, loops, small callees, listings.
//!
//! Works on the machine code in the trace. Where there is none (the kernel, JIT-compiled code, an older trace), a sample
//! keeps its own address, and its role is work. A function is decoded once, when it is first needed. Not for what a role
//! costs; the cost classes know that.

use crate::abi::Abi;
use crate::body::find;
use crate::code::{Code, Names};
use crate::decode;
use crate::function::Function;
use crate::function::listing::Line;
use crate::function::loops::Loop;
use crate::instruction::Division;
use crate::roles::Role;
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::{FunctionCode, Symbols};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The machine code of a trace, decoded on demand.
#[derive(Debug)]
pub struct MachineCode<'s> {
    symbols: &'s Symbols,
    arch: Arch,
    functions: Vec<OnceLock<Function>>,
    /// Locations of images with code, in order of address.
    places: Vec<(ImageId, FileAddr, LocationId)>,
    /// The number of samples of user code by stack.
    samples: Vec<u32>,
    /// The number of samples by location, as the leaf and as a caller.
    hits: OnceLock<Vec<Hits>>,
    /// Small functions by the call sites that stacks show.
    called: OnceLock<BTreeMap<(ImageId, FileAddr), FunctionId>>,
}

/// Which function of [`Symbols::code`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionId(u32);

/// A small function that is called.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SmallCallee {
    /// Which.
    pub function: FunctionId,
    /// Whether it is an indirect call.
    pub through_pointer: bool,
}

/// The samples of a location, as the leaf and as a caller.
#[derive(Copy, Clone, Debug, Default)]
struct Hits {
    innermost: u64,
    calling: u64,
}

/// A call is rare if the callee has at most this part of the caller's own samples.
const RARE: f64 = 0.05;
/// With fewer samples in the caller, that part could not be distinguished from zero.
const ENOUGH: u64 = 20;

/// The reach, in instructions, within which an instruction belongs to a call.
const AROUND: usize = 24;

/// What a sample waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The instruction.
    pub at: LocationId,
    /// Its role.
    pub role: Role,
    /// Its function.
    pub function: Option<FunctionId>,
}

impl<'s> MachineCode<'s> {
    /// Nothing is decoded yet. `samples`: the number of samples by stack of the symbols.
    pub fn new(symbols: &'s Symbols, arch: Arch, samples: Vec<u32>) -> Self {
        let mut places = Vec::new();
        if !symbols.code.is_empty() {
            let known = symbols.locations.iter().enumerate().skip(1);
            places.extend(known.map(|(at, l)| (l.image, l.addr, LocationId::at(at))));
            places.sort_unstable();
        }
        let functions = vec![OnceLock::new(); symbols.code.len()];
        let (hits, called) = (OnceLock::new(), OnceLock::new());
        Self { symbols, arch, functions, places, samples, hits, called }
    }

    /// The tables that ids refer to.
    pub fn symbols(&self) -> &'s Symbols {
        self.symbols
    }

    /// What a sample at `leaf` waited for.
    pub fn waited(&self, leaf: LocationId) -> Waited {
        let unknown = Waited { at: leaf, role: Role::Work, function: None };
        let Some((image, ip)) = self.address(leaf) else { return unknown };
        let Some(id) = self.holding(image, ip) else { return unknown };
        let function = self.function(id);
        let Some(role) = function.role_of_sample(ip) else { return unknown };
        let at = self.location(image, function.charge(ip)).unwrap_or(leaf);
        Waited { at, role, function: Some(id) }
    }

    /// The role of the instruction at `location` itself; for a caller's frame, of the call.
    pub fn role_at(&self, location: LocationId) -> Role {
        let role = || {
            let (image, addr) = self.address(location)?;
            self.function(self.holding(image, addr)?).role_at(addr)
        };
        role().unwrap_or_default()
    }

    /// The function that holds `location`.
    pub fn function_at(&self, location: LocationId) -> Option<FunctionId> {
        let (image, addr) = self.address(location)?;
        self.holding(image, addr)
    }

    /// The smallest loop around the instruction that a sample waited for, with its function.
    pub fn loop_around(&self, waited: Waited) -> Option<(FunctionId, Loop)> {
        let function = waited.function?;
        let (_, addr) = self.address(waited.at)?;
        Some((function, self.function(function).loop_around(addr)?))
    }

    /// The small function that the call nearest to `location` calls (not a recursive call): by the code, or for an
    /// indirect call by the stacks.
    pub fn small_callee(&self, location: LocationId) -> Option<SmallCallee> {
        let (image, addr) = self.address(location)?;
        let caller = self.holding(image, addr)?;
        let call = self.function(caller).calls_near(addr, AROUND).next()?;
        let direct = call.callee().and_then(|to| {
            let id = self.holding(image, FileAddr(to))?;
            (self.code(id).addr.0 == to).then_some(id)
        });
        let seen = || {
            let here = (image, FileAddr(call.addr))..(image, FileAddr(call.end()));
            self.called.get_or_init(|| self.seen_calls()).range(here).next().map(|(_, id)| *id)
        };
        let function = direct.or_else(seen)?;
        // The linker's stub for a function of a library is no function that could be inlined, nor is the kernel's way back
        // out of a signal, which nobody calls.
        let name = self.symbols.name(self.code(function).name);
        let is_stub = name.ends_with("@plt") || name.contains("sigreturn");
        let small = function != caller && !is_stub && self.is_small(function);
        small.then_some(SmallCallee { function, through_pointer: direct.is_none() })
    }

    /// Whether calling a function costs about as much as running it. Its calls behind a branch must be rare: hardly any
    /// sample of user code is below them. Kernel time does not show how often they run: a buffered reader may refill
    /// once in thousands of calls and then wait for the disk.
    fn is_small(&self, id: FunctionId) -> bool {
        let Some(calls) = self.function(id).calls_if_small() else { return false };
        if calls.is_empty() {
            return true;
        }
        let code = self.code(id);
        if self.stays_in_memory(id) {
            return false;
        }
        let end = code.addr.0.saturating_add(code.bytes.len() as u64);
        let innermost: u64 = self.hits(code.image, code.addr.0..end).map(|h| h.innermost).sum();
        let below = |call: &crate::instruction::Instruction| -> u64 {
            self.hits(code.image, call.addr..call.end()).map(|h| h.calling).sum()
        };
        let below: u64 = calls.iter().map(below).sum();
        innermost >= ENOUGH && below as f64 <= RARE * innermost as f64
    }

    /// Whether a function's values stay in memory even if it is inlined: a measured case saved nothing. In C and C++ a
    /// written byte may alias anything, so values are loaded again.
    pub fn stays_in_memory(&self, id: FunctionId) -> bool {
        let image = self.symbols.images.get(self.code(id).image.index());
        let language = image.map_or("", |image| self.symbols.name(image.language));
        matches!(language, "C" | "C++") && self.function(id).writes_bytes()
    }

    /// The third argument of a C function, where these are its registers: the length of a `memcpy`.
    pub fn third_argument(&self, general: &[u64; 32]) -> Option<u64> {
        let register = decode::convention_of(self.arch, Abi::Platform).arguments.get(2)?;
        general.get(register.index()).copied()
    }

    /// The number of samples with this location as the leaf.
    pub fn samples_at(&self, at: LocationId) -> u64 {
        let hits = self.hits.get_or_init(|| self.count_hits());
        hits.get(at.index()).map_or(0, |hits| hits.innermost)
    }

    /// The samples of locations between two addresses.
    fn hits(&self, image: ImageId, range: std::ops::Range<u64>) -> impl Iterator<Item = Hits> {
        let hits = self.hits.get_or_init(|| self.count_hits());
        let from = |addr| self.places.partition_point(|p| (p.0, p.1) < (image, FileAddr(addr)));
        self.places[from(range.start)..from(range.end)].iter().map(|(.., at)| hits[at.index()])
    }

    fn count_hits(&self) -> Vec<Hits> {
        let mut hits = vec![Hits::default(); self.symbols.locations.len()];
        for (stack, samples) in self.symbols.stacks.iter().zip(&self.samples) {
            for (depth, at) in stack.iter().enumerate() {
                let Some(hit) = hits.get_mut(at.index()) else { continue };
                let which = if depth == 0 { &mut hit.innermost } else { &mut hit.calling };
                *which += u64::from(*samples);
            }
        }
        hits
    }

    /// Small functions by the call sites that stacks show.
    fn seen_calls(&self) -> BTreeMap<(ImageId, FileAddr), FunctionId> {
        let mut seen = BTreeMap::new();
        for stack in &self.symbols.stacks {
            let [leaf, caller, ..] = stack.as_slice() else { continue };
            if let (Some(id), Some(at)) = (self.function_at(*leaf), self.address(*caller))
                && self.is_small(id)
            {
                seen.insert(at, id);
            }
        }
        seen
    }

    /// Its bytes and name.
    pub fn code(&self, id: FunctionId) -> &'s FunctionCode {
        &self.symbols.code[id.0 as usize]
    }

    /// Its instructions.
    pub fn function(&self, id: FunctionId) -> &Function {
        let code = self.code(id);
        self.functions[id.0 as usize]
            .get_or_init(|| Function::read(&self.bytes(code), &|addr| self.name(code, addr)))
    }

    /// How the instruction at this address of a function divides, if it does.
    pub fn division(&self, function: FunctionId, at: FileAddr) -> Option<Division> {
        let instructions = self.function(function).instructions();
        let instruction = &instructions[find(instructions, at.0)?];
        decode::division(&self.bytes(self.code(function)), instruction)
    }

    /// Where in its binary a location is.
    pub fn place(&self, location: LocationId) -> Option<FileAddr> {
        self.address(location).map(|(_, addr)| addr)
    }

    /// Applies `ask` to a function's bytes and the names of its callees.
    pub fn reading<T>(&self, id: FunctionId, ask: impl FnOnce(&Code<'_>, &Names<'_>) -> T) -> T {
        let code = self.code(id);
        ask(&self.bytes(code), &|addr| self.name(code, addr))
    }

    /// The hottest stretch of a function's instructions. `samples`: sampled locations in it, with counts.
    pub fn listing(&self, id: FunctionId, samples: &[(LocationId, u64)]) -> Vec<Line> {
        let code = self.code(id);
        let addresses = samples.iter().filter_map(|(l, count)| Some((self.address(*l)?.1, *count)));
        let addresses: Vec<_> = addresses.collect();
        let names = |addr| self.name(code, addr);
        self.function(id).listing(&self.bytes(code), &names, &addresses)
    }

    /// The location of an instruction, if it was sealed.
    pub fn location(&self, image: ImageId, addr: FileAddr) -> Option<LocationId> {
        let place = |p: &(ImageId, FileAddr, LocationId)| (p.0, p.1);
        let at = self.places.partition_point(|p| place(p) < (image, addr));
        self.places.get(at).filter(|p| place(p) == (image, addr)).map(|p| p.2)
    }

    fn address(&self, location: LocationId) -> Option<(ImageId, FileAddr)> {
        let location = self.symbols.locations.get(location.index())?;
        Some((location.image, location.addr))
    }

    fn holding(&self, image: ImageId, addr: FileAddr) -> Option<FunctionId> {
        let code = &self.symbols.code;
        let at = code.partition_point(|c| (c.image, c.addr) <= (image, addr)).checked_sub(1)?;
        let into = addr.0.checked_sub(code[at].addr.0)?;
        let inside = code[at].image == image && into < code[at].bytes.len() as u64;
        inside.then(|| u32::try_from(at).ok().map(FunctionId))?
    }

    fn bytes(&self, code: &'s FunctionCode) -> Code<'s> {
        let image = self.symbols.images.get(code.image.index());
        let language = image.map_or("", |image| self.symbols.name(image.language));
        let abi = Abi::of(language);
        Code { arch: self.arch, abi, addr: code.addr, bytes: &code.bytes }
    }

    fn name(&self, code: &'s FunctionCode, addr: FileAddr) -> Option<&'s str> {
        let at = code.targets.binary_search_by_key(&addr, |(at, _)| *at).ok()?;
        Some(self.symbols.name(code.targets[at].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use deadweight_trace::Trace;

    // count: lock add qword ptr [rdi], 1; ret
    // pass: sub rsp, 808h; mov rsi, rdi; mov ecx, 100h; mov rdi, rsp; rep movsq; call eat; ...
    const TEXT: &str = "image a path /a language C
        code pass @0x1280 4881ec08080000 4889fe b900010000 4889e7 f348a5 e896fdffff 4881c408080000c3
        calls 0x1030 eat
        code count @0x1460 f048830701 c3
        task 1 a
        0 on
        10 sample count (a.c:2) @0x1465 <- main @0x1600
        20 sample pass (a.c:7) @0x1295 <- main @0x1700
        30 sample pass (a.c:6) @0x1292
        40 sample elsewhere @0x1466
        50 exit";

    #[test]
    fn a_sample_has_the_role_of_the_instruction_before() {
        let trace = Trace::from_text(TEXT).unwrap();
        let machine = MachineCode::new(&trace.symbols, Arch::X86_64, Vec::new());
        let leaf = |name: &str| {
            let named = |l: &deadweight_trace::symbols::Location| {
                l.frames.iter().any(|f| trace.symbols.name(f.function) == name)
            };
            LocationId::at(trace.symbols.locations.iter().position(named).unwrap())
        };
        let count = machine.waited(leaf("count"));
        assert_eq!(count.role, Role::Atomic);
        // The instruction itself has no location here: the sample keeps its own.
        assert_eq!(count.at, leaf("count"));
        let pass = machine.waited(leaf("pass"));
        assert!(matches!(pass.role, Role::Copy(Run { bytes: 2048, .. })), "{pass:?}");
        let line = trace.symbols.locations[pass.at.index()].frames[0].line;
        assert_eq!(line, 6, "of the copy, not of what comes after it");
        assert_eq!(machine.waited(leaf("elsewhere")).function, None);
        assert_eq!(machine.role_at(leaf("main")), Role::Work);
    }

    #[test]
    fn listings_name_what_is_called() {
        let trace = Trace::from_text(TEXT).unwrap();
        let machine = MachineCode::new(&trace.symbols, Arch::X86_64, Vec::new());
        let at = machine.location(ImageId(0), FileAddr(0x1295)).unwrap();
        let id = machine.function_at(at).unwrap();
        let lines = machine.listing(id, &[(at, 3)]);
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["mov rdi, rsp", "rep movsq [rdi], [rsi]", "call eat"]);
        assert_eq!(lines[1].hits, 3);
    }
}
