//! The machine code of functions that samples hit, out of their files into the trace.
//!
//! In two steps, since one asks for what the other finds. Before addresses are named:
//! [`Copied::of_leaves`] reads the functions that ran, and the instructions that their samples
//! waited for become locations. After it: [`Copied::keep`] adds the callers of routines that
//! copy or zero, which know how much, and names what all of them call. Code that is in no file
//! (the kernel, a JIT's) has none here. What it means is the core's business.

use super::images::Images;
use super::pclntab;
use super::resolve::{Detail, Files, resolve};
use super::stacks::Interned;
use super::{debug_files, names};
use deadweight_code::{self as asm, Calling, Function, instruction::Kind};
use deadweight_trace::ids::{ImageId, LocationId, StackId};
use deadweight_trace::symbols::{FunctionCode, Symbols, is_c_library};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadRef,
    RelocationTarget,
};
use std::collections::{BTreeMap, BTreeSet};

/// Larger functions are left out: nobody writes them, and reading one takes a tenth of a second.
const LARGEST: u64 = 1 << 18;

/// How much code a trace holds, of the functions with most samples.
const MOST: u64 = 1 << 24;

/// How far a part of a function that lies elsewhere is read to see what it calls.
const COLD: u64 = 96;

/// A pointer to what the function at the addend returns: psABI of x86-64, ABI of aarch64.
const R_X86_64_IRELATIVE: u64 = 37;
const R_AARCH64_IRELATIVE: u64 = 1032;

/// Said of code that its file does not tell.
const REWRITTEN: &str = "made code that it runs writable while it ran, and may have changed it: lines \
     are those of the file, and nothing is concluded from its instructions";

/// Where a function is: image and first address.
type Place = (ImageId, u64);

/// Code that was copied.
#[derive(Debug, Default)]
pub(super) struct Copied {
    functions: BTreeMap<Place, Machine>,
    size: u64,
    /// Samples in functions that were left out.
    left_out: u64,
}

/// The code of a function.
#[derive(Debug)]
struct Machine {
    /// An address in it that was hit: what it is called, the function is called.
    hit: LocationId,
    bytes: Vec<u8>,
}

/// Where a function that was hit begins and ends, and how often that was.
#[derive(Copy, Clone, Debug)]
struct Wanted {
    hit: LocationId,
    end: u64,
    hits: u64,
}

impl Copied {
    /// The functions that samples were taken in, which `hits` counts by stack. The instructions
    /// that they waited for are added to the locations.
    pub(super) fn of_leaves(
        symbols: &mut Symbols,
        interned: &mut Interned,
        images: &mut Images,
        hits: &[u64],
    ) -> Self {
        let mut copied = Self::default();
        let leaves = at_depth(symbols, hits, 0, |_| true);
        copied.add(symbols, images, &leaves);
        for location in leaves.keys() {
            let Some((image, address)) = address_of(symbols, *location) else { continue };
            let Some((start, machine)) = copied.holding(image, address) else { continue };
            let waited = read(start, &machine.bytes, "").charge(FileAddr(address)).0;
            interned.location(symbols, image, waited);
        }
        copied
    }

    /// Puts the code into the tables, with what it calls by name.
    pub(super) fn keep(mut self, symbols: &mut Symbols, images: &mut Images, hits: &[u64]) {
        let moving = |symbols: &Symbols, location: LocationId| {
            let frames = symbols.locations.get(location.index()).map(|l| l.frames.as_slice());
            let function = frames.and_then(|f| f.last()).map_or("", |f| symbols.name(f.function));
            asm::moves_blocks(function)
        };
        let callers = at_depth(symbols, hits, 1, |leaf| moving(symbols, leaf));
        self.add(symbols, images, &callers);
        if self.left_out > 0 {
            images.warnings.push(format!(
                "functions with {} samples are too large to be kept as machine code; what their \
                 instructions are for is not known",
                self.left_out
            ));
        }
        let mut of_image: BTreeMap<ImageId, Vec<(u64, Machine)>> = BTreeMap::new();
        for ((image, start), machine) in self.functions {
            of_image.entry(image).or_default().push((start, machine));
        }
        for (image, functions) in of_image {
            let language = symbols.images.get(image.index()).map(|i| symbols.name(i.language));
            let language = language.unwrap_or_default().to_owned();
            let leads = functions.iter().map(|(start, f)| leads(*start, &f.bytes, &language));
            let leads: Vec<Leads> = leads.collect();
            let names = images.content(image).map_or_else(
                |_| BTreeMap::new(),
                |content| {
                    let file = images.file_of(image);
                    let debug = file.and_then(|(path, _)| debug_files::find(&content, path));
                    targets(&content, debug.as_ref(), &leads)
                },
            );
            for ((start, machine), leads) in functions.into_iter().zip(leads) {
                let frames = &symbols.locations[machine.hit.index()].frames;
                let name = frames.last().map(|frame| frame.function).unwrap_or_default();
                let targets = leads.all().filter_map(|at| Some((at, names.get(&at)?)));
                let targets: Vec<_> =
                    targets.map(|(at, name)| (FileAddr(at), symbols.intern(name))).collect();
                let addr = FileAddr(start);
                symbols.code.push(FunctionCode {
                    image,
                    addr,
                    name,
                    bytes: machine.bytes,
                    targets,
                });
            }
        }
    }

    /// The function that holds `address`.
    fn holding(&self, image: ImageId, address: u64) -> Option<(u64, &Machine)> {
        let before = self.functions.range((image, 0)..=(image, address)).next_back();
        before
            .map(|((_, start), machine)| (*start, machine))
            .filter(|(start, machine)| address - start < machine.bytes.len() as u64)
    }

    /// Copies the functions that these addresses lie in, those with most hits first.
    fn add(&mut self, symbols: &Symbols, images: &mut Images, hits: &BTreeMap<LocationId, u64>) {
        let mut wanted: Vec<(Place, Wanted)> = bounds(symbols, images, hits).into_iter().collect();
        wanted.retain(|(place, _)| !self.functions.contains_key(place));
        wanted.sort_by_key(|(_, wanted)| std::cmp::Reverse(wanted.hits));
        let mut of_image: BTreeMap<ImageId, Vec<(u64, Wanted)>> = BTreeMap::new();
        for ((image, start), wanted) in wanted {
            let size = wanted.end.saturating_sub(start);
            if size > LARGEST || self.size.saturating_add(size) > MOST {
                self.left_out += wanted.hits;
                continue;
            }
            self.size += size;
            of_image.entry(image).or_default().push((start, wanted));
        }
        for (image, mut functions) in of_image {
            let count = functions.len();
            functions.retain(|(start, wanted)| !images.is_rewritten(image, *start..wanted.end));
            if functions.len() < count {
                let path = symbols.images.get(image.index()).map_or("", |i| symbols.name(i.path));
                images.warn(path, REWRITTEN);
            }
            let Ok(content) = images.content(image) else { continue };
            let Ok(file) = object::File::parse(&content) else { continue };
            for (start, wanted) in functions {
                let bytes = bytes_at(&file, start, wanted.end.saturating_sub(start));
                if let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) {
                    let machine = Machine { hit: wanted.hit, bytes: bytes.to_vec() };
                    self.functions.insert((image, start), machine);
                }
            }
        }
    }
}

/// How often samples had each address at this depth of their stack, of those whose leaf is
/// `wanted`.
fn at_depth(
    symbols: &Symbols,
    hits: &[u64],
    depth: usize,
    wanted: impl Fn(LocationId) -> bool,
) -> BTreeMap<LocationId, u64> {
    let mut sum = BTreeMap::new();
    for (stack, count) in hits.iter().enumerate().filter(|(_, count)| **count > 0) {
        let stack = symbols.stack(StackId::at(stack));
        if let (Some(leaf), Some(at)) = (stack.first(), stack.get(depth))
            && wanted(*leaf)
            && !in_c_library(symbols, *at)
        {
            *sum.entry(*at).or_default() += count;
        }
    }
    sum
}

/// The C library's functions are told by their names, and nobody changes them.
fn in_c_library(symbols: &Symbols, location: LocationId) -> bool {
    let image = symbols.locations.get(location.index()).map(|location| location.image);
    let image = image.and_then(|image| symbols.images.get(image.index()));
    image.is_some_and(|image| is_c_library(symbols.name(image.path)))
}

fn address_of(symbols: &Symbols, location: LocationId) -> Option<Place> {
    let location = symbols.locations.get(location.index())?;
    Some((location.image, location.addr.0))
}

/// The functions that these addresses lie in: as the unwind tables have them, which know the
/// parts of a function apart, else Go's table, else the symbols.
fn bounds(
    symbols: &Symbols,
    images: &mut Images,
    hits: &BTreeMap<LocationId, u64>,
) -> BTreeMap<Place, Wanted> {
    let mut found: BTreeMap<Place, Wanted> = BTreeMap::new();
    let mut note = |image, bounds: (u64, u64), hit, hits| {
        let (start, end) = bounds;
        found.entry((image, start)).or_insert(Wanted { hit, end, hits: 0 }).hits += hits;
    };
    let mut rest: BTreeMap<ImageId, Vec<(u64, LocationId, u64)>> = BTreeMap::new();
    for (location, hits) in hits {
        let Some((image, address)) = address_of(symbols, *location) else { continue };
        match images.call_frames(image).and_then(|frames| frames.bounds(address)) {
            Some(bounds) => note(image, bounds, *location, *hits),
            None => rest.entry(image).or_default().push((address, *location, *hits)),
        }
    }
    for (image, mut addresses) in rest {
        let Ok(content) = images.content(image) else { continue };
        let Ok(file) = object::File::parse(&content) else { continue };
        addresses.sort_unstable();
        let go = pclntab::Table::read(&file);
        let wanted: Vec<u64> = addresses.iter().map(|(address, ..)| *address).collect();
        let by_symbol = names::bounds(&file, &wanted);
        for ((address, location, hits), by_symbol) in addresses.into_iter().zip(by_symbol) {
            let by_go = go.as_ref().and_then(|go| go.bounds(address));
            if let Some(bounds) = by_go.or(by_symbol) {
                note(image, bounds, location, hits);
            }
        }
    }
    found
}

fn read(start: u64, bytes: &[u8], language: &str) -> Function {
    let calling = Calling::of(language);
    let code = asm::Code { arch: Arch::HOST, calling, addr: FileAddr(start), bytes };
    Function::read(&code, &|_| None)
}

/// Where code outside itself a function leads.
#[derive(Debug, Default)]
struct Leads {
    /// What it calls, jumps to, or finds a pointer to that it calls.
    calls: BTreeSet<u64>,
    /// Where its branches go.
    branches: BTreeSet<u64>,
}

impl Leads {
    fn all(&self) -> impl Iterator<Item = u64> {
        self.calls.union(&self.branches).copied()
    }
}

fn leads(start: u64, bytes: &[u8], language: &str) -> Leads {
    let inside = start..start.saturating_add(bytes.len() as u64);
    let mut leads = Leads::default();
    for instruction in read(start, bytes, language).instructions() {
        let fixed = instruction.memory.and_then(|memory| memory.fixed());
        match instruction.kind {
            Kind::Branch(to) if !inside.contains(&to) => _ = leads.branches.insert(to),
            // A pointer that is loaded may be called later.
            Kind::Load => leads.calls.extend(fixed),
            _ => leads.calls.extend(instruction.callee().filter(|to| !inside.contains(to))),
        }
    }
    leads
}

/// Reads functions of so many bytes at these addresses of any file, and names what they call: for
/// fuzzing. Says how many names there are.
#[must_use]
pub fn called_names<'d, R: ReadRef<'d>>(binary: R, functions: &[(u64, u64)]) -> usize {
    let Ok(file) = object::File::parse(binary) else { return 0 };
    let code = functions.iter().filter_map(|(at, size)| Some((*at, bytes_at(&file, *at, *size)?)));
    let leads: Vec<Leads> = code.map(|(at, bytes)| leads(at, bytes, "")).collect();
    targets(binary, None, &leads).len()
}

/// The names of what these lead to, in the file with the bytes `binary`.
fn targets<'d, R: ReadRef<'d>>(
    binary: R,
    debug: Option<R>,
    leads: &[Leads],
) -> BTreeMap<u64, String> {
    let mut named = BTreeMap::new();
    let Ok(file) = object::File::parse(binary) else { return named };
    let calls: BTreeSet<u64> = leads.iter().flat_map(|l| l.calls.iter().copied()).collect();
    let branches: BTreeSet<u64> = leads.iter().flat_map(|l| l.branches.iter().copied()).collect();
    // A part of a function that lies elsewhere stands for the first thing that it calls, a stub
    // for what it jumps to.
    let led = |at: &u64| {
        let cold = if branches.contains(at) { first_call(&file, *at) } else { None };
        let at = cold.unwrap_or(*at);
        stub_of(&file, at).unwrap_or(at)
    };
    let led: BTreeMap<u64, u64> = calls.union(&branches).map(|at| (*at, led(at))).collect();
    let slots = slots(&file, &led.values().copied().collect());
    let code = |to: &u64| match slots.get(to) {
        Some(Slot::Code(code)) => Some(*code),
        Some(Slot::Import(_)) => None,
        None => Some(*to),
    };
    let addresses: Vec<u64> = led.values().filter_map(code).collect();
    let resolved = resolve(Files { binary, debug, shared: None }, &addresses, Detail::Functions);
    let frames = resolved.frames.into_iter().filter_map(|mut frames| frames.pop());
    let functions: BTreeMap<u64, String> =
        addresses.iter().copied().zip(frames.map(|frame| frame.function)).collect();
    for (at, to) in led {
        let name = match slots.get(&to) {
            Some(Slot::Import(name)) => Some(name.as_str()),
            Some(Slot::Code(code)) => functions.get(code).map(String::as_str),
            None => functions.get(&to).map(String::as_str),
        };
        let plain = |name: &'_ str| name.strip_suffix("_ifunc").unwrap_or(name).to_owned();
        let name = name.map(|name| plain(name.strip_suffix("@plt").unwrap_or(name)));
        named.extend(name.filter(|name| !name.is_empty()).map(|name| (at, name)));
    }
    named
}

/// Where the pointer is that a stub at `at` jumps through.
fn stub_of<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, at: u64) -> Option<u64> {
    let code = read(at, bytes_at(file, at, 16)?, "");
    let first = code.instructions().iter().find(|i| i.kind != Kind::Nop)?;
    first.callee().filter(|_| first.kind == Kind::Jump(None))
}

/// The first thing that the code at `at` calls, before it goes anywhere else.
fn first_call<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, at: u64) -> Option<u64> {
    let bytes = (16..=COLD).rev().step_by(16).find_map(|size| bytes_at(file, at, size))?;
    let code = read(at, bytes, "");
    let mut straight = code.instructions().iter().take_while(|i| !i.ends_block());
    straight.find(|i| matches!(i.kind, Kind::Call(_)))?.callee()
}

/// What a pointer of the file leads to once the file is loaded.
#[derive(Debug)]
enum Slot {
    /// A function of another file, by its readable name.
    Import(String),
    /// Code of this one.
    Code(u64),
}

/// What the places among `places` that hold pointers lead to.
fn slots<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    places: &BTreeSet<u64>,
) -> BTreeMap<u64, Slot> {
    let mut slots = BTreeMap::new();
    let code = |at: u64| {
        let holds = |s: &object::Segment<'d, '_, R>| {
            at.checked_sub(s.address()).is_some_and(|into| into < s.size())
        };
        file.segments().find(holds).is_some_and(|s| s.permissions().executable())
    };
    let data: BTreeSet<u64> = places.iter().copied().filter(|at| !code(*at)).collect();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    for (at, relocation) in relocations.filter(|(at, _)| data.contains(at)) {
        let slot = match relocation.target() {
            RelocationTarget::Symbol(index) => file
                .dynamic_symbol_table()
                .and_then(|table| table.symbol_by_index(index).ok())
                .and_then(|symbol| symbol.name().ok().map(super::demangle::demangle))
                .map(Slot::Import),
            _ => u64::try_from(relocation.addend()).ok().map(Slot::Code),
        };
        slots.extend(slot.map(|slot| (at, slot)));
    }
    let resolved = [".rela.plt", ".rela.iplt"]
        .into_iter()
        .filter_map(|name| file.section_by_name(name)?.data().ok());
    // A static program has its own choices between variants of a function in here.
    for entry in resolved.flat_map(|bytes| bytes.chunks_exact(24)) {
        let word = |n: usize| entry[8 * n..][..8].try_into().map_or(0, u64::from_le_bytes);
        let chosen = matches!(word(1), R_X86_64_IRELATIVE | R_AARCH64_IRELATIVE);
        if chosen && data.contains(&word(0)) {
            slots.insert(word(0), Slot::Code(word(2)));
        }
    }
    for at in data {
        // Without a relocation the address stands there, or is relative to it in a packed form.
        let word = || bytes_at(file, at, 8)?.try_into().ok().map(u64::from_le_bytes);
        if !slots.contains_key(&at)
            && let Some(to) = word().filter(|to| code(*to))
        {
            slots.insert(at, Slot::Code(to));
        }
    }
    slots
}

/// So many bytes at an address, as the file has them.
fn bytes_at<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    at: u64,
    size: u64,
) -> Option<&'d [u8]> {
    file.segments().find_map(|segment| segment.data_range(at, size).ok()?)
}
