//! Machine code of the functions that samples hit, copied from their files into the trace.
//!
//! - In: sampled stacks and images.
//! - Out: `FunctionCode` entries of the trace.
//! - Must not know: what the instructions are for; see `deadweight-core`.
//!
//! Two steps, because naming lies between them: [`CopiedCode::of_leaves`] copies the functions that
//! ran, and adds the instructions that their samples waited for to the locations, and divisions just before these.
//! [`CopiedCode::keep`] adds the callers of copy and zero routines, which know the size, and names
//! what each function calls (`callees`). Kernel and JIT code is not copied.

mod callees;
mod function_entries;

use self::callees::{References, targets};
use crate::elf::debug_files;
use crate::images::Images;
use crate::names::{pclntab, symbol_table};
use crate::unwind::interned::Interned;
use deadweight_code::{self as asm, Abi, Code, Function};
use deadweight_trace::ids::{ImageId, LocationId, StackId};
use deadweight_trace::symbols::{FunctionCode, Symbols, is_c_library};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::FileAddr;
use object::{Object, ObjectSegment, ReadRef};
use std::collections::BTreeMap;

pub(crate) use callees::{R_X86_64_IRELATIVE, first_call, references, stub_slot};
pub use callees::{called_names, referenced_addresses};
pub use function_entries::Entries;

/// Larger functions are left out: they are generated, and reading one takes a tenth of a second.
pub(crate) const LARGEST: u64 = 1 << 18;

/// Bytes of code that a trace holds; functions with most samples first.
const MOST: u64 = 1 << 24;

/// Callers of hit functions are copied up to this depth if they have this part of all samples.
const CALLERS: usize = 2;
const FREQUENT: f64 = 0.1;

/// So many instructions after a division may wait for it: its line may be wanted.
const BEFORE: usize = 16;

/// Warning about code that may differ from the file.
const REWRITTEN: &str = "made its code writable while it ran, and may have changed it: lines are those of \
     the file, and its instructions are not analysed";

/// A function: image and first address.
type FunctionStart = (ImageId, u64);

/// CopiedCode code.
#[derive(Debug, Default)]
pub(crate) struct CopiedCode {
    functions: BTreeMap<FunctionStart, MachineCode>,
    size: u64,
    /// Samples in functions that were left out.
    left_out: u64,
}

/// The code of a function.
#[derive(Debug)]
struct MachineCode {
    /// An address in it that was hit: the function gets the name of this location.
    hit: LocationId,
    bytes: Vec<u8>,
}

/// A function that was hit: one address in it, its end, and the number of hits.
#[derive(Copy, Clone, Debug)]
struct Wanted {
    hit: LocationId,
    end: u64,
    hits: u64,
}

impl CopiedCode {
    /// Copies the functions that samples were taken in; `hits` counts samples by stack. Adds the instructions that
    /// they waited for to the locations.
    pub(crate) fn of_leaves(
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
            let code = code(start, &machine.bytes, "");
            let function = Function::read(&code, &|_| None);
            let waited = function.charge(FileAddr(address));
            interned.location(symbols, image, waited.0);
            for division in function.divisions_before(&code, waited, BEFORE) {
                interned.location(symbols, image, division.0);
            }
        }
        copied
    }

    /// Puts the code into the trace's tables, with the names of what it calls.
    pub(crate) fn keep(mut self, symbols: &mut Symbols, images: &mut Images, hits: &[u64]) {
        let moving = |symbols: &Symbols, location: LocationId| {
            let frames = symbols.locations.get(location.index()).map(|l| l.frames.as_slice());
            let function = frames.and_then(|f| f.last()).map_or("", |f| symbols.name(f.function));
            asm::moves_blocks(function)
        };
        let callers = at_depth(symbols, hits, 1, |leaf| moving(symbols, leaf));
        self.add(symbols, images, &callers);
        self.add_frequent_callers(symbols, images, hits);
        if self.left_out > 0 {
            images.warnings.push(format!(
                "functions with {} samples are too large to be kept as machine code: their instructions \
                 are not analysed",
                self.left_out
            ));
        }
        let mut of_image: BTreeMap<ImageId, Vec<(u64, MachineCode)>> = BTreeMap::new();
        for ((image, start), machine) in self.functions {
            of_image.entry(image).or_default().push((start, machine));
        }
        for (image, functions) in of_image {
            let language = symbols.images.get(image.index()).map(|i| symbols.name(i.language));
            let language = language.unwrap_or_default().to_owned();
            let references =
                functions.iter().map(|(start, f)| references(*start, &f.bytes, &language));
            let references: Vec<References> = references.collect();
            let names = images.content(image).map_or_else(
                |_| BTreeMap::new(),
                |content| {
                    let file = images.file_of(image);
                    let debug = file.and_then(|(path, _)| debug_files::find(&content, path));
                    targets(&content, debug.as_ref(), &references)
                },
            );
            for ((start, machine), references) in functions.into_iter().zip(references) {
                let frames = &symbols.locations[machine.hit.index()].frames;
                let name = frames.last().map(|frame| frame.function).unwrap_or_default();
                let targets = references.all().filter_map(|at| Some((at, names.get(&at)?)));
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

    /// Copies functions that called much of the hit code: a loop in one of them may count that code's runs.
    fn add_frequent_callers(&mut self, symbols: &Symbols, images: &mut Images, hits: &[u64]) {
        let left_out = self.left_out;
        let all: u64 = hits.iter().sum();
        for depth in 1..=CALLERS {
            let mut callers = at_depth(symbols, hits, depth, |_| true);
            callers.retain(|_, hits| *hits as f64 >= FREQUENT * all as f64);
            self.add(symbols, images, &callers);
        }
        // No sample was taken in these themselves.
        self.left_out = left_out;
    }

    /// The function that holds `address`.
    fn holding(&self, image: ImageId, address: u64) -> Option<(u64, &MachineCode)> {
        let before = self.functions.range((image, 0)..=(image, address)).next_back();
        before
            .map(|((_, start), machine)| (*start, machine))
            .filter(|(start, machine)| address - start < machine.bytes.len() as u64)
    }

    /// Copies the functions that these addresses lie in, those with most hits first.
    fn add(&mut self, symbols: &Symbols, images: &mut Images, hits: &BTreeMap<LocationId, u64>) {
        let mut wanted: Vec<(FunctionStart, Wanted)> =
            bounds(symbols, images, hits).into_iter().collect();
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
                    let machine = MachineCode { hit: wanted.hit, bytes: bytes.to_vec() };
                    self.functions.insert((image, start), machine);
                }
            }
        }
    }
}

/// How many samples have each address at this depth of the stack, of samples whose leaf is `wanted`.
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

/// The C library's functions are identified by name and need no code.
fn in_c_library(symbols: &Symbols, location: LocationId) -> bool {
    let image = symbols.locations.get(location.index()).map(|location| location.image);
    let image = image.and_then(|image| symbols.images.get(image.index()));
    image.is_some_and(|image| is_c_library(symbols.name(image.path)))
}

fn address_of(symbols: &Symbols, location: LocationId) -> Option<FunctionStart> {
    let location = symbols.locations.get(location.index())?;
    Some((location.image, location.addr.0))
}

/// The functions that these addresses lie in: from unwind tables, which separate the parts of a function, else from
/// Go's table, else from symbols.
fn bounds(
    symbols: &Symbols,
    images: &mut Images,
    hits: &BTreeMap<LocationId, u64>,
) -> BTreeMap<FunctionStart, Wanted> {
    let mut found: BTreeMap<FunctionStart, Wanted> = BTreeMap::new();
    let mut add = |image, bounds: (u64, u64), hit, hits| {
        let (start, end) = bounds;
        found.entry((image, start)).or_insert(Wanted { hit, end, hits: 0 }).hits += hits;
    };
    let mut rest: BTreeMap<ImageId, Vec<(u64, LocationId, u64)>> = BTreeMap::new();
    for (location, hits) in hits {
        let Some((image, address)) = address_of(symbols, *location) else { continue };
        match images.call_frames(image).and_then(|frames| frames.bounds(address)) {
            Some(bounds) => add(image, bounds, *location, *hits),
            None => rest.entry(image).or_default().push((address, *location, *hits)),
        }
    }
    for (image, mut addresses) in rest {
        let Ok(content) = images.content(image) else { continue };
        let Ok(file) = object::File::parse(&content) else { continue };
        addresses.sort_unstable();
        let go = pclntab::Table::read(&file);
        let wanted: Vec<u64> = addresses.iter().map(|(address, ..)| *address).collect();
        let by_symbol = symbol_table::bounds(&file, &wanted);
        for ((address, location, hits), by_symbol) in addresses.into_iter().zip(by_symbol) {
            let by_go = go.as_ref().and_then(|go| go.bounds(address));
            if let Some(bounds) = by_go.or(by_symbol) {
                add(image, bounds, location, hits);
            }
        }
    }
    found
}

fn read(start: u64, bytes: &[u8], language: &str) -> Function {
    Function::read(&code(start, bytes, language), &|_| None)
}

fn code<'b>(start: u64, bytes: &'b [u8], language: &str) -> Code<'b> {
    Code { arch: Arch::HOST, abi: Abi::of(language), addr: FileAddr(start), bytes }
}

/// `size` bytes at an address, as the file has them.
/// The bytes of these addresses in a file.
pub(crate) fn bytes_at<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    at: u64,
    size: u64,
) -> Option<&'d [u8]> {
    file.segments().find_map(|segment| segment.data_range(at, size).ok()?)
}
