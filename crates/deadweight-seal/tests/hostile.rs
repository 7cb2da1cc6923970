//! Sealing whatever bytes a file holds: damaged copies of real binaries, in bounded time.
//!
//! A fixed number of seeded damages for every test run; the fuzz target `elf_dwarf_seal` goes
//! further. Sound files: see `seal.rs`.

use deadweight_seal::{
    Binary, Detail, Files, Host, Sealer, called_names, resolve, unwind_rules, value_types,
};
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::raw::{RawEvent, RawKind, Sink, UserState};
use deadweight_trace::{Kind, Meta};
use object::{Object, ObjectSection, ObjectSymbol};

/// A generator of numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next()).map_or(0, |number| number % most.max(1))
    }
}

/// A small binary, built by the C compiler with debug information, or without (`-g0`).
fn binary(debug: &str) -> Option<Vec<u8>> {
    let name = format!("deadweight-hostile{debug}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).ok()?;
    let (source, out) = (folder.join("a.c"), folder.join("a"));
    let text = "#include <stdlib.h>\nstatic inline int sq(int x) { return x * x; }\n\
                __attribute__((noinline)) int sum(int n) { int s = 0; for (int i = 0; i < n; i++) \
                s += sq(i) ^ rand(); return s; }\nint main(int n, char **a) { (void)a; return sum(n); }\n";
    std::fs::write(&source, text).ok()?;
    let built = std::process::Command::new("gcc")
        .args(["-O2", debug, "-o"])
        .args([&out, &source])
        .status()
        .is_ok_and(|status| status.success());
    let bytes = built.then(|| std::fs::read(&out).ok()).flatten();
    let _ = std::fs::remove_dir_all(folder);
    bytes
}

/// Addresses of functions of a file, and some that are in none.
fn addresses(bytes: &[u8]) -> Vec<u64> {
    let mut addresses = vec![0, 1, u64::MAX, 0x1000];
    if let Ok(file) = object::File::parse(bytes) {
        addresses.extend(file.symbols().map(|symbol| symbol.address() + 4));
    }
    addresses
}

#[test]
fn damaged_files_never_panic_and_are_bounded() {
    let Some(sound) = binary("-g") else {
        eprintln!("SKIPPED: no C compiler");
        return;
    };
    let addresses = addresses(&sound);
    let resolved = resolve(Files::of(sound.as_slice()), &addresses, Detail::Lines);
    assert!(
        resolved.frames.iter().flatten().any(|frame| frame.function == "sum" && frame.line > 0)
    );
    let file = object::File::parse(sound.as_slice()).expect("the compiler made it");
    // Damage has most effect outside code, which is not read here.
    let places: Vec<(usize, usize)> = file
        .sections()
        .filter(|section| section.name().is_ok_and(|name| !name.starts_with(".text")))
        .filter_map(|section| section.file_range())
        .filter_map(|(at, len)| Some((at.try_into().ok()?, len.try_into().ok()?)))
        .chain([(0, 64), (64, 56 * 12), (sound.len() - 64 * 38, 64 * 38)])
        .collect();
    let functions: Vec<(u64, u64)> = file.symbols().map(|s| (s.address(), s.size())).collect();
    assert!(called_names(sound.as_slice(), &functions) > 0);
    let scan = Binary::from_bytes(sound.clone()).and_then(|binary| binary.scan());
    assert!(scan.is_ok_and(|scan| scan.functions >= 2));
    let mut numbers = Numbers(7);
    for _ in 0..1_500 {
        let mut damaged = sound.clone();
        for _ in 0..=numbers.below(6) {
            let (at, len) = places[numbers.below(places.len())];
            let at = at + numbers.below(len);
            let value = [0, 0xff, 0x7f, 0x80, 1][numbers.below(5)];
            if let Some(byte) = damaged.get_mut(at) {
                *byte = if numbers.below(2) == 0 { value } else { byte.wrapping_add(1) };
            }
        }
        if numbers.below(8) == 0 {
            damaged.truncate(numbers.below(sound.len()));
        }
        let resolved = resolve(Files::of(damaged.as_slice()), &addresses, Detail::Lines);
        assert_eq!(resolved.frames.len(), addresses.len());
        assert!(resolved.frames.iter().all(|frames| (1..=64).contains(&frames.len())));
        let _ = unwind_rules(damaged.as_slice(), &addresses);
        let _ = called_names(damaged.as_slice(), &functions);
        let _ = value_types(Files::of(damaged.as_slice()), &addresses);
        let _ = Binary::from_bytes(damaged).and_then(|binary| binary.scan());
    }
}

/// No place in it may cost time, so no line is asked for.
#[test]
fn a_file_without_places_has_lines_if_it_was_built_so() {
    let scanned = |debug| Binary::from_bytes(binary(debug)?).and_then(|binary| binary.scan()).ok();
    let (Some(with), Some(without)) = (scanned("-g1"), scanned("-g0")) else {
        eprintln!("SKIPPED: no C compiler");
        return;
    };
    assert_eq!((with.sites.len(), without.sites.len()), (0, 0));
    assert_eq!((with.info.has_lines, without.info.has_lines), (true, false));
}

/// Inputs that once failed in the fuzz target.
#[test]
fn files_that_failed_once_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/elf_dwarf_seal");
    let mut read = 0;
    for file in std::fs::read_dir(folder).expect("the corpus is in the repository") {
        let bytes = std::fs::read(file.expect("a file").path()).expect("it can be read");
        let addresses = [0, 1, 0x1000, 0x1139, 0x40_1000, u64::MAX];
        let resolved = resolve(Files::of(bytes.as_slice()), &addresses, Detail::Lines);
        assert_eq!(resolved.frames.len(), addresses.len());
        let _ = unwind_rules(bytes.as_slice(), &addresses);
        let _ = called_names(bytes.as_slice(), &addresses.map(|at| (at, 200)));
        let _ = value_types(Files::of(bytes.as_slice()), &addresses);
        let _ = Binary::from_bytes(bytes).and_then(|binary| binary.scan());
        read += 1;
    }
    assert!(read >= 3);
}

fn event(sealer: &mut Sealer, kind: RawKind<'_>) {
    sealer.event(&RawEvent { at: 0, cpu: Cpu(0), process: Tid(5), task: Tid(5), kind });
}

/// Our own code, mapped as the program's: starts and lengths.
fn map_our_own(sealer: &mut Sealer) -> Vec<(u64, u64)> {
    let own = std::fs::read_to_string("/proc/self/maps").expect("our own mappings");
    let mut code = Vec::new();
    for line in own.lines().filter(|line| line.contains("r-xp")) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let hex = |text| u64::from_str_radix(text, 16).expect("the kernel writes hexadecimal");
        let (start, end) = words[0].split_once('-').expect("a range");
        let (start, end) = (hex(start), hex(end));
        code.push((start, end - start));
        let path = words.get(5).copied().unwrap_or_default();
        let (len, offset) = (end - start, hex(words[2]));
        let map = RawKind::Map { start, len, offset, inode: 0, path, executable: true };
        event(sealer, map);
    }
    code
}

#[test]
fn damaged_stacks_never_panic_and_end() {
    let mut sealer = Sealer::to_memory(Host::default());
    let code = map_our_own(&mut sealer);
    let mut numbers = Numbers(11);
    for round in 0..3_000 {
        let mut pick = || {
            let (start, len) = code[numbers.below(code.len())];
            start + numbers.next() % len
        };
        let sp = if round % 10 == 0 { u64::MAX - 64 } else { 0x7fff_0000_0000 };
        // A stack of code addresses, stack addresses and noise.
        let stack: Vec<u8> = (0..64_u64)
            .map(|word| match word % 3 {
                0 => pick(),
                1 => sp.wrapping_add(word * 8 + 16),
                _ => [0, u64::MAX, 1, 8][usize::try_from(word % 4).unwrap_or_default()],
            })
            .flat_map(u64::to_le_bytes)
            .collect();
        let chain = [pick(), pick(), 0, u64::MAX];
        let fp = if round % 3 == 0 { u64::MAX - 7 } else { sp.wrapping_add(16) };
        let state =
            UserState { ip: pick(), sp, fp, lr: 0, stack: &stack, chain: &chain, general: &[] };
        event(&mut sealer, RawKind::Site(state));
    }
    sealer.finish(Meta::default());
    let trace = sealer.into_trace();
    let sites = trace.events().filter_map(|event| match event.kind {
        Kind::Site(stack) => Some(trace.symbols.stack(stack).len()),
        _ => None,
    });
    let depths: Vec<usize> = sites.collect();
    assert_eq!(depths.len(), 3_000);
    assert!(depths.iter().all(|depth| (1..=512).contains(depth)));
}
