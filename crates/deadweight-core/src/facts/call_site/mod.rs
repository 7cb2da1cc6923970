//! Call sites: from call stacks to the lines that a reader can change, the program's own frame and the call
//! chain.
//!
//! The innermost frames of a system call are the C library or the language's runtime; the line to change is
//! the innermost one that is neither. Not for kernel stacks.

use deadweight_report::report::Site;
use deadweight_trace::ids::{LocationId, NameId, StackId};
use deadweight_trace::symbols::{JIT_IMAGE, Location, SourceFrame, Symbols, is_c_library};
use library_code::{is_go_module, is_library_file, is_library_function};
use linked_in::LinkedIn;
use std::collections::BTreeMap;

mod callers;
pub(crate) mod frames;
mod library_code;
pub(crate) mod linked_in;
pub(crate) mod team_code;

/// Frames of a chain that are kept: half of them at each end, because the outermost often explain most.
const CHAIN: usize = 8;
/// A place with less than one part in so many of the heaviest is not shown.
const LITTLE: u64 = 100;
/// Places of a finding that are shown.
pub(crate) const SITES: usize = 5;

/// How much of something happened at one stack.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// How often, where counted.
    pub(crate) count: u64,
    /// How much, in any one unit.
    pub(crate) amount: u64,
}

/// Where something happened, as far as it was recorded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallSite {
    /// A call stack.
    Stack(StackId),
    /// A call stack whose innermost instruction waited for this one.
    Waited(StackId, LocationId),
    /// The caller of a stack's innermost function.
    Caller(StackId),
    /// An instruction alone.
    At(LocationId),
}

impl Default for CallSite {
    fn default() -> Self {
        Self::Stack(StackId(0))
    }
}

impl CallSite {
    /// Whether it is known at all.
    pub(crate) fn is_known(self) -> bool {
        !matches!(self, Self::Stack(StackId(0)) | Self::At(LocationId(0)))
    }

    /// Its frames, leaf first, inlined ones expanded.
    pub(crate) fn frames(
        self,
        symbols: &Symbols,
    ) -> impl Iterator<Item = (&Location, &SourceFrame)> {
        self.locations(symbols)
            .filter_map(|l| symbols.locations.get(l.index()))
            .flat_map(|l| l.frames.iter().map(move |f| (l, f)))
    }

    /// Its frames in libraries, leaf first, up to the program's own innermost frame.
    pub(crate) fn library_frames(
        self,
        symbols: &Symbols,
    ) -> impl Iterator<Item = (&Location, &SourceFrame)> {
        self.frames(symbols).take_while(|(at, frame)| !is_own(symbols, at, frame))
    }

    /// Its addresses, leaf first.
    fn locations(self, symbols: &Symbols) -> impl Iterator<Item = LocationId> {
        let (leaf, stack) = match self {
            Self::Stack(stack) => (None, symbols.stack(stack)),
            Self::Waited(stack, at) => (Some(at), symbols.stack(stack).get(1..).unwrap_or(&[])),
            Self::Caller(stack) => (None, symbols.stack(stack).get(1..).unwrap_or(&[])),
            Self::At(location) => (Some(location), &[][..]),
        };
        leaf.into_iter().chain(stack.iter().copied())
    }

    /// The call stack, if it is known.
    pub(crate) fn stack(self) -> Option<StackId> {
        match self {
            Self::Stack(stack) | Self::Waited(stack, _) | Self::Caller(stack) => Some(stack),
            Self::At(_) => None,
        }
    }
}

/// Call sites with their weights.
pub(crate) type Weights = BTreeMap<CallSite, Weight>;

/// The sum of the amounts.
pub(crate) fn amount(weights: &Weights) -> u64 {
    weights.values().map(|weight| weight.amount).sum()
}

/// The call site with the largest amount; an unknown one without any.
pub(crate) fn heaviest(weights: &Weights) -> CallSite {
    let heaviest = weights.iter().max_by_key(|(_, weight)| weight.amount);
    heaviest.map(|(site, _)| *site).unwrap_or_default()
}

/// Adds `more` to `into`.
pub(crate) fn add(into: &mut Weights, more: &Weights) {
    for (stack, weight) in more {
        let sum = into.entry(*stack).or_default();
        sum.count += weight.count;
        sum.amount += weight.amount;
    }
}

/// What happened at one line.
#[derive(Default)]
struct Place {
    all: Weight,
    heaviest: CallSite,
    most: u64,
}

/// The places of these call sites, heaviest first, at most five. `total` is the count that the sampled
/// counts stand for: 0 leaves them as they are.
pub(crate) fn sites(symbols: &Symbols, weights: &Weights, total: u64) -> Vec<Site> {
    let mut places: BTreeMap<(&str, &str, u32), Place> = BTreeMap::new();
    let mut all = Weight::default();
    let weights = callers::divided(symbols, weights);
    for (stack, weight) in &weights {
        all.count += weight.count;
        all.amount += weight.amount;
        let Some((_, frame)) = place(symbols, *stack) else { continue };
        let key = (symbols.name(frame.function), symbols.name(frame.file), frame.line);
        let at = places.entry(key).or_default();
        at.all.amount += weight.amount;
        at.all.count += weight.count;
        if !at.heaviest.is_known() || weight.amount > at.most {
            (at.heaviest, at.most) = (*stack, weight.amount);
        }
    }
    let mut found: Vec<_> = places.into_iter().collect();
    found.sort_by_key(|(_, place)| std::cmp::Reverse(place.all.amount));
    // A place with hardly anything is nothing to change, and of sampled stacks it may be one, scaled up.
    let most = found.first().map_or(0, |(_, place)| place.all.amount);
    found.retain(|(_, place)| place.all.amount >= most / LITTLE);
    found.truncate(SITES);
    found
        .into_iter()
        .map(|((function, file, line), at)| Site {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
            image: place(symbols, at.heaviest)
                .map_or("", |(location, _)| image_path(symbols, location))
                .to_owned(),
            share: at.all.amount as f64 / all.amount.max(1) as f64,
            count: scaled(at.all.count, total, all.count),
            chain: chain(symbols, at.heaviest),
            source: String::new(),
        })
        .collect()
}

/// `count` of `sampled` scaled up to `total`.
fn scaled(count: u64, total: u64, sampled: u64) -> u64 {
    if total == 0 || sampled == 0 {
        return count;
    }
    let exact = u128::from(count) * u128::from(total) / u128::from(sampled);
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// The frames above the own one, innermost first, as `function (file:line)`, up to the outermost own one:
/// frames of the language above that are the same for every stack.
fn chain(symbols: &Symbols, site: CallSite) -> Vec<String> {
    let skip = place_index(symbols, site).map_or(0, |i| i + 1);
    let own = |(_, (location, frame)): &(usize, (&Location, &SourceFrame))| {
        is_own(symbols, location, frame)
    };
    // Rust's `main` calls the runtime, which calls the program's `main`: the latter is wanted.
    let program = |(_, frame): &(&Location, &SourceFrame)| {
        !symbols.name(frame.function).starts_with("std::rt::lang_start")
    };
    let frames = || site.frames(symbols).take_while(program);
    let end = frames().enumerate().filter(own).last().map_or(usize::MAX, |(index, _)| index + 1);
    let mut chain: Vec<String> = frames()
        .take(end)
        .skip(skip)
        .filter(|(_, frame)| !symbols.name(frame.function).is_empty())
        .map(|(_, frame)| frame_text(symbols, frame))
        .collect();
    if chain.len() > CHAIN {
        let far = chain.len() - CHAIN / 2;
        chain.splice(CHAIN / 2..far, ["…".to_owned()]);
    }
    chain
}

/// `function (file:line)`, as far as known.
pub(crate) fn frame_text(symbols: &Symbols, frame: &SourceFrame) -> String {
    let file = symbols.name(frame.file);
    let function = symbols.name(frame.function);
    if file.is_empty() || frame.line == 0 {
        return function.to_owned();
    }
    let base = file.rsplit('/').next().unwrap_or(file);
    format!("{function} ({base}:{})", frame.line)
}

/// The innermost frame of the program's own code; else the innermost one with a name outside the C library,
/// else the innermost one with a name.
pub(crate) fn own_frame(symbols: &Symbols, site: CallSite) -> Option<(&Location, &SourceFrame)> {
    site.frames(symbols).nth(own_index(symbols, site)?)
}

/// The program's own line that called the library code at this site: function, file and line. None if the
/// site is in the program's own code.
pub(crate) fn called_from(symbols: &Symbols, site: CallSite) -> Option<(NameId, NameId, u32)> {
    let (location, frame) =
        site.frames(symbols).nth(own_index(symbols, site).filter(|i| *i > 0)?)?;
    is_own(symbols, location, frame).then_some((frame.function, frame.file, frame.line))
}

/// The library function that the program's own code called at this site, with the line that called it.
pub(crate) fn entered(
    symbols: &Symbols,
    site: CallSite,
) -> Option<(NameId, (NameId, NameId, u32))> {
    let line = called_from(symbols, site)?;
    let (_, frame) = site.frames(symbols).nth(own_index(symbols, site)?.checked_sub(1)?)?;
    Some((frame.function, line))
}

/// The frame that is shown as the place of a site.
fn place(symbols: &Symbols, site: CallSite) -> Option<(&Location, &SourceFrame)> {
    site.frames(symbols).nth(place_index(symbols, site)?)
}

/// The program's own frame; if that has an address only, the library's function that it called: `sqlite3_step` says
/// more than `shell+0x8f10`. What the C library's functions are called with matters more than their names.
fn place_index(symbols: &Symbols, site: CallSite) -> Option<usize> {
    let own = own_index(symbols, site)?;
    let Some(called) = own.checked_sub(1) else { return Some(own) };
    let mut frames = site.frames(symbols).skip(called);
    let (Some((library, function)), Some((_, frame))) = (frames.next(), frames.next()) else {
        return Some(own);
    };
    let name = |frame: &SourceFrame| symbols.name(frame.function);
    let exported = !is_address(name(function))
        && !name(function).is_empty()
        && !name(function).ends_with("@plt")
        && is_system_image(image_path(symbols, library))
        && !is_c_library(image_path(symbols, library));
    Some(if is_address(name(frame)) && exported { called } else { own })
}

/// Whether a function has no name but its address in the file: `libgc.so.1+0x1a2b`.
fn is_address(name: &str) -> bool {
    let address = name.rsplit_once("+0x").map(|(_, address)| address);
    address.is_some_and(|address| address.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn own_index(symbols: &Symbols, site: CallSite) -> Option<usize> {
    let named = |f: &SourceFrame| !symbols.name(f.function).is_empty();
    let library = LinkedIn::default();
    let mut module = None;
    let own = site.frames(symbols).enumerate().position(|(index, (location, frame))| {
        let own = named(frame)
            && is_own(symbols, location, frame)
            && !library.holds(symbols, location, index, site.locations(symbols));
        let of_module = own && is_go_module(symbols.name(frame.file));
        if of_module {
            module = module.or(Some(index));
        }
        own && !of_module
    });
    // A goroutine that a module started, or a program that was installed as one: then its code is all there is.
    own.or(module)
        .or_else(|| {
            let outside = |l| !is_system_image(image_path(symbols, l));
            site.frames(symbols).position(|(l, f)| named(f) && outside(l) && !is_entry(symbols, f))
        })
        .or_else(|| site.frames(symbols).position(|(_, f)| named(f)))
}

/// Whether a stack holds only a language's runtime, and no own code of the program.
pub(crate) fn is_runtime(symbols: &Symbols, site: CallSite) -> bool {
    let mut runtime = false;
    for (location, frame) in site.frames(symbols) {
        if is_own(symbols, location, frame) {
            return false;
        }
        runtime |= symbols.name(frame.function).starts_with("runtime.");
    }
    runtime
}

fn is_entry(symbols: &Symbols, frame: &SourceFrame) -> bool {
    is_entry_name(symbols.name(frame.function))
}

fn is_entry_name(function: &str) -> bool {
    matches!(function, "_start" | "__libc_start_main" | "clone" | "clone3")
}

/// The path of the file that a location is in.
pub(crate) fn image_path<'s>(symbols: &'s Symbols, location: &Location) -> &'s str {
    symbols.images.get(location.image.index()).map_or("", |image| symbols.name(image.path))
}

/// The source language of the image that holds an address; of a runtime's image, the language that it runs.
pub(crate) fn image_language<'s>(symbols: &'s Symbols, location: &Location) -> &'s str {
    symbols.images.get(location.image.index()).map_or("", |image| symbols.name(image.language))
}

/// Whether programs in this language are run by an image of their own, such as `python3`: nothing in that image was
/// written by the program's author.
pub(crate) fn is_interpreted(language: &str) -> bool {
    matches!(language, "Python" | "JavaScript" | "Java" | "Ruby" | "PHP" | "Perl")
}

/// Whether a frame is the program's own code: neither C library, nor runtime, nor standard
/// library, wherever linked or inlined.
pub(crate) fn is_own(symbols: &Symbols, location: &Location, frame: &SourceFrame) -> bool {
    let function = symbols.name(frame.function);
    let file = symbols.name(frame.file);
    !is_system_image(image_path(symbols, location))
        && !is_interpreted(image_language(symbols, location))
        && !is_library_code(function, file)
}

/// Whether code belongs to a standard library or runtime, wherever it is linked or inlined: by its function's name and
/// its source file; each may be empty.
pub fn is_library_code(function: &str, file: &str) -> bool {
    is_library_function(function, file) || is_entry_name(function) || is_library_file(file)
}

/// Whether a frame is generic code of a C++ or Rust library that is compiled into each program that uses it.
pub(crate) fn is_generic_code(symbols: &Symbols, location: &Location, frame: &SourceFrame) -> bool {
    let file = symbols.name(frame.file);
    let generic = ["/include/c++/", "/library/core/src/", "/library/alloc/src/"];
    !is_system_image(image_path(symbols, location))
        && generic.iter().any(|part| file.contains(part))
}

/// Shared libraries of the system, the kernel and the vdso.
pub(crate) fn is_system_image(path: &str) -> bool {
    if path.starts_with('[') {
        return path != JIT_IMAGE;
    }
    let base = path.rsplit('/').next().unwrap_or(path);
    base.starts_with("ld-") || base.starts_with("lib") && base.contains(".so")
}

/// Whether code lies in a shared library that is no language's own, nor an allocator.
pub(crate) fn is_in_other_library(symbols: &Symbols, location: &Location) -> bool {
    const LANGUAGES: [&str; 10] = [
        "libc.",
        "libgc.",
        "libstd-",
        "libm.",
        "libpthread.",
        "libstdc++.",
        "libc++",
        "libgcc_s.",
        "libgomp.",
        "libunwind.",
    ];
    let path = image_path(symbols, location);
    let base = path.rsplit('/').next().unwrap_or(path);
    base.starts_with("lib")
        && base.contains(".so")
        && !base.contains("malloc")
        && !LANGUAGES.iter().any(|library| base.starts_with(library))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::Trace;

    #[test]
    fn the_place_is_the_caller_of_a_stub_not_the_stub() {
        let text = "image app path /bin/app language C++
            task 1 app
            0 on
            10 sample \"operator new@plt\" <- app::node (a.cpp:9) <- main (a.cpp:20)
            50 exit";
        let trace = Trace::from_text(text).unwrap();
        let stack = (0..trace.symbols.stacks.len()).map(StackId::at).max().unwrap();
        let heavy = Weights::from([(CallSite::Stack(stack), Weight { count: 1, amount: 1 })]);
        let found = sites(&trace.symbols, &heavy, 0);
        assert_eq!((found[0].function.as_str(), found[0].line), ("app::node", 9));
    }

    #[test]
    fn without_names_the_place_is_the_librarys_exported_function() {
        for (called, place) in [
            ("libdb.so.5+0x10 @libdb.so.5 <- db_step @libdb.so.5", "db_step"),
            ("libdb.so.5+0x10 @libdb.so.5", "app+0x20"),
            ("write @libc.so.6", "app+0x20"),
        ] {
            let text = format!(
                "image app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n\
                 image libdb.so.5 path /lib/libdb.so.5\ntask 1 app\n0 on\n\
                 10 sample {called} <- app+0x20 @app <- app+0x30 @app\n50 exit"
            );
            let trace = Trace::from_text(&text).unwrap();
            let stack = (0..trace.symbols.stacks.len()).map(StackId::at).max().unwrap();
            let heavy = Weights::from([(CallSite::Stack(stack), Weight { count: 1, amount: 1 })]);
            assert_eq!(sites(&trace.symbols, &heavy, 0)[0].function, place);
        }
    }

    #[test]
    fn the_place_is_the_line_that_calls_a_module_of_go_unless_there_is_none() {
        let place = |stack: &str| {
            let text = format!(
                "image app path /bin/app language Go\ntask 1 app\n0 on\n10 sample {stack}\n50 exit"
            );
            let trace = Trace::from_text(&text).unwrap();
            let stack = (0..trace.symbols.stacks.len()).map(StackId::at).max().unwrap();
            let heavy = Weights::from([(CallSite::Stack(stack), Weight { count: 1, amount: 1 })]);
            sites(&trace.symbols, &heavy, 0)[0].function.clone()
        };
        let module = "x.org/y.Get (/go/pkg/mod/x.org/y@v1.2.3/get.go:7)";
        let trimmed = "x.org/y.Get (x.org/y@v1.2.3/get.go:7)";
        for module in [module, trimmed] {
            let called = format!("runtime.mallocgc <- {module} <- main.serve (/src/a.go:9)");
            assert_eq!(place(&called), "main.serve");
            let started = format!("runtime.mallocgc <- {module} <- runtime.goexit");
            assert_eq!(place(&started), "x.org/y.Get");
        }
        let own = "x.org/y.Get (/src/x@vax/get.go:7) <- main.serve (/src/a.go:9)";
        assert_eq!(place(own), "x.org/y.Get");
    }

    #[test]
    fn a_chain_ends_with_the_program_and_not_with_its_callers() {
        let text = "image app path /bin/app language Rust
            image libc.so.6 path /lib/libc.so.6
            task 1 app
            0 on
            10 sample app::parse (a.rs:9) <- app::main (a.rs:2) <- core::ops::call_once (function.rs:250) <- std::rt::lang_start (rt.rs:206) <- main <- __libc_start_main@libc.so.6
            50 exit";
        let trace = Trace::from_text(text).unwrap();
        let stack = (0..trace.symbols.stacks.len()).map(StackId::at).max().unwrap();
        let heavy = Weights::from([(CallSite::Stack(stack), Weight { count: 1, amount: 1 })]);
        let found = sites(&trace.symbols, &heavy, 0);
        assert_eq!(found[0].function, "app::parse");
        assert_eq!(found[0].chain, ["app::main (a.rs:2)"]);
    }

    #[test]
    fn of_a_long_chain_both_ends_stay() {
        let callers: Vec<String> = (0..20).map(|i| format!("f{i} (a.c:{i})")).collect();
        let text = format!(
            "image app path /bin/app\ntask 1 app\n0 on\n10 sample leaf (a.c:99) <- {}\n50 exit",
            callers.join(" <- ")
        );
        let trace = Trace::from_text(&text).unwrap();
        let stack = (0..trace.symbols.stacks.len()).map(StackId::at).max().unwrap();
        let heavy = Weights::from([(CallSite::Stack(stack), Weight { count: 1, amount: 1 })]);
        let chain = sites(&trace.symbols, &heavy, 0).remove(0).chain.join(" ");
        assert_eq!(
            chain,
            "f0 f1 (a.c:1) f2 (a.c:2) f3 (a.c:3) … f16 (a.c:16) f17 (a.c:17) f18 (a.c:18) f19 (a.c:19)"
        );
    }
}
