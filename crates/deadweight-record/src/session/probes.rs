//! Where to put probes: the start of `main`, and where a Go program's goroutines wait or sleep.
//!
//! Reads only symbol tables. Entry probes only: return uprobes replace return addresses, which breaks when Go moves
//! stacks.

use super::{Entry, named};
use crate::launch::{Probe, Register, Request, find};
use object::{Object, ObjectSegment, ObjectSymbol};
use std::fs;
use std::path::{Path, PathBuf};

/// Symbols of `main`, the preferred first: Go's own before the C entry that cgo adds.
const MAINS: [&str; 2] = ["main.main", "main"];
/// The C library's paths in distributions.
const LIBCS: [&str; 7] = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
    "/usr/lib/libc.so.6",
    "/lib/libc.so.6",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];
/// Go's function that puts a goroutine into the queue of a lock, or of another semaphore. The functions that call it
/// (`runtime_SemacquireMutex`) often return at once, which an entry probe cannot see.
const GO_WAIT: &str = "runtime.(*semaRoot).queue";
/// Go's function that takes the longest waiting goroutine out of a lock's queue, to pass the lock on to it. Its
/// caller runs at every unlock, and at every close of a file: a probe there made a program that opens 25 000 files a
/// second slower by half.
const GO_RELEASE: &str = "runtime.(*semaRoot).dequeue";
/// Go's function that puts a goroutine to sleep: its thread then waits for a timer in the scheduler, without the
/// goroutine's stack.
const GO_SLEEP: &str = "time.Sleep";

/// The section that every Go program has.
const GO_LINES: &str = ".gopclntab";

/// Go's register calling convention: the first arguments, as perf numbers the registers.
const GO_ARGUMENTS: [Register; 2] = [Register::Number(0), Register::Number(1)];
/// Go's register calling convention: the goroutine.
#[cfg(target_arch = "x86_64")]
const GOROUTINE: Register = Register::Number(22);
/// Go's register calling convention: the goroutine.
#[cfg(target_arch = "aarch64")]
const GOROUTINE: Register = Register::Number(28);

/// The entry points of the program's own code, and the probes for its language and for the programs that its script names.
/// Without entries for a stripped static program.
pub(crate) fn of(request: &Request) -> (Vec<Entry>, Vec<Probe>) {
    let binaries = Binary::all(request);
    let probes = binaries.iter().filter(|binary| binary.is_go()).flat_map(of_go).collect();
    let main = |binary: Binary| {
        let Place { offset, fixed } = binary.places(&MAINS).into_iter().flatten().next()?;
        Some(Entry { path: binary.path, offset, fixed, common: false })
    };
    let mut entries: Vec<Entry> = binaries.into_iter().filter_map(main).collect();
    let libc = LIBCS.iter().find_map(|path| Binary::read(Path::new(path)));
    if let Some(libc) = libc
        && let Some(Place { offset, fixed }) = libc.places(&["__libc_start_main"])[0]
    {
        entries.push(Entry { path: libc.path, offset, fixed, common: true });
    }
    (entries, probes)
}

fn of_go(binary: &Binary) -> Vec<Probe> {
    // An ordinary user can have breakpoints for the first few only.
    let names = [GO_RELEASE, GO_WAIT, GO_SLEEP];
    let places = binary.places(&names);
    names
        .iter()
        .zip(places)
        .filter_map(|(symbol, place)| {
            let Place { offset, fixed } = place?;
            // A queue's second argument is the semaphore; a sleep's first is the duration.
            let (name, first) = match *symbol {
                GO_RELEASE => ("go.lock.release", GO_ARGUMENTS[1]),
                GO_SLEEP => ("go.sleep", GO_ARGUMENTS[0]),
                _ => ("go.lock.wait", GO_ARGUMENTS[1]),
            };
            Some(Probe {
                name: name.to_owned(),
                path: binary.path.clone(),
                file_offset: offset,
                fixed,
                args: [first, GOROUTINE],
                stack: true,
            })
        })
        .collect()
}

/// The start of a function.
#[derive(Copy, Clone)]
struct Place {
    /// In the file.
    offset: u64,
    /// In memory, if the file is made for one address.
    fixed: Option<u64>,
}

/// A binary in memory.
struct Binary {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Binary {
    /// The binary of the command, and those in Go of the programs that it names: what else a script starts calls its
    /// `main` through the C library.
    fn all(request: &Request) -> Vec<Self> {
        let dir = request.dir.as_deref();
        let own = find(&request.argv, dir);
        let programs = named::programs(&request.argv, dir).into_iter();
        let wanted = programs.filter(|path| own.as_ref() == Some(path) || is_go(path));
        wanted.filter_map(|path| Self::read(&path)).collect()
    }

    fn read(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let bytes = fs::read(&path).ok().filter(|b| b.starts_with(b"\x7fELF"))?;
        Some(Self { path, bytes })
    }

    fn is_go(&self) -> bool {
        let file = object::File::parse(&*self.bytes);
        file.is_ok_and(|f| f.section_by_name(GO_LINES).is_some())
    }

    /// The starts of these functions, none for missing ones.
    fn places(&self, names: &[&str]) -> Vec<Option<Place>> {
        let mut places = vec![None; names.len()];
        let Ok(file) = object::File::parse(&*self.bytes) else { return places };
        let is_fixed = file.kind() == object::ObjectKind::Executable;
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.is_undefined() || symbol.address() == 0 {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };
            let name = name.split('@').next().unwrap_or(name);
            if let Some(index) = names.iter().position(|n| *n == name) {
                places[index] = file.segments().find_map(|segment| {
                    let within = symbol.address().checked_sub(segment.address())?;
                    let (offset, len) = segment.file_range();
                    let fixed = is_fixed.then(|| symbol.address());
                    (within < len).then(|| Place { offset: offset + within, fixed })
                });
            }
        }
        places
    }
}

/// Whether a file is a program in Go: reads its headers only.
fn is_go(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    let cache = object::ReadCache::new(file);
    object::File::parse(&cache).is_ok_and(|file| file.section_by_name(GO_LINES).is_some())
}
