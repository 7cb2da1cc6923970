//! Which binaries were built without optimisation: by the producer's flags, and by the shape of the
//! functions that the program spends its time in.
//!
//! GCC and Go record their flags; Rust, Zig and Crystal do not, so only the code shows it: also by calls of functions that
//! optimisation always puts into their callers. A few cold
//! functions decide nothing, so each function counts by its samples. The saving of an optimised build is
//! estimated by the class.

use crate::facts::call_site::is_own;
use deadweight_code::Shape;
use deadweight_code::machine_code::{FunctionId, MachineCode};
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::Location;
use std::collections::BTreeMap;

/// A compiler without optimisation inlines only what is marked for it. Above this share of samples in
/// inlined code it optimised, however much its functions work on their frames.
const INLINED: f64 = 0.1;
/// With at most this share of instructions on their frames, the functions were optimised, even if the
/// flags of the compilation unit with `main` say otherwise.
const OPTIMISED: f64 = 0.12;
/// Fewer samples in functions whose code is known decide nothing.
const SAMPLES: u64 = 20;

/// With this part of a binary's samples in calls of functions that optimisation puts into their callers, it was not optimised.
const CALLED: f64 = 0.05;

/// Parts of the names of such functions: one instruction or two, in the libraries of Rust and Crystal.
const ALWAYS_INLINED: [&str; 11] = [
    "::precondition_check",
    "core::ub_checks::",
    "core::intrinsics::",
    "core::core_arch::x86::sse",
    "core::ptr::const_ptr::<impl",
    "core::ptr::mut_ptr::<impl",
    "core::cmp::Ord::",
    "@Pointer(T)#",
    "Pointer(UInt8)#",
    "#unsafe_fetch",
    "#to_unsafe:Pointer(",
];

/// A verdict per binary.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    of_image: Vec<Build>,
}

/// The judgement of one binary's code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    /// Whether it was built without optimisation.
    pub(crate) unoptimised: bool,
    /// The shape of the functions that samples hit, weighted by samples.
    pub(crate) shape: Shape,
    /// Samples in the program's own functions, and how many of those are in inlined code.
    inlined: (u64, u64),
    /// Samples in the binary, and how many of those are in [`ALWAYS_INLINED`] functions that were called.
    called: (u64, u64),
}

impl Build {
    /// The share of samples in called functions that optimisation puts into their callers; none if it is chance.
    pub(crate) fn called_share(&self) -> Option<f64> {
        let (all, called) = self.called;
        let share = called as f64 / all.max(1) as f64;
        (called >= SAMPLES && share >= CALLED).then_some(share)
    }
}

impl Builds {
    /// Judges every binary of the trace.
    pub(crate) fn gather(machine: &MachineCode<'_>) -> Self {
        let symbols = machine.symbols();
        let mut of_image = vec![Build::default(); symbols.images.len()];
        for (function, (samples, inlined)) in hits(machine) {
            if let Some(build) = of_image.get_mut(machine.code(function).image.index()) {
                build.shape += machine.function(function).shape().weighed(samples);
                build.inlined = (build.inlined.0 + samples, build.inlined.1 + inlined);
            }
        }
        for (index, location) in symbols.locations.iter().enumerate() {
            let samples = machine.samples_at(LocationId::at(index));
            let function = location.frames.last().filter(|_| samples > 0);
            let build = of_image.get_mut(location.image.index());
            if let (Some(build), Some(function)) = (build, function) {
                let name = symbols.name(function.function);
                let called = ALWAYS_INLINED.iter().any(|part| name.contains(part));
                build.called.0 += samples;
                build.called.1 += if called { samples } else { 0 };
            }
        }
        for (build, image) in of_image.iter_mut().zip(&symbols.images) {
            // Lines of a stripped Go program come from the runtime's own table, which shows no inlined code.
            let lines = image.has_lines && !symbols.name(image.producer).is_empty();
            build.unoptimised = verdict(image.optimised, lines, build);
        }
        Self { of_image }
    }

    /// The verdict on a binary.
    pub(crate) fn of(&self, image: ImageId) -> Option<&Build> {
        self.of_image.get(image.index())
    }
}

/// `said` is what the producer's flags say, if anything. Without line tables, inlined code is unknown: then
/// both signs in the shape must be there.
fn verdict(said: Option<bool>, lines: bool, build: &Build) -> bool {
    let (shape, (samples, inlined)) = (build.shape, build.inlined);
    let seen = shape.functions >= SAMPLES;
    let (on_frame, spills) = (shape.is_on_frame(), shape.is_spilling());
    let looks = if lines { on_frame || spills } else { on_frame && spills };
    match said {
        Some(true) => false,
        None if build.called_share().is_some() => true,
        Some(false) => !seen || shape.stack_share() > OPTIMISED,
        None => seen && looks && inlined as f64 <= INLINED * samples as f64,
    }
}

/// The program's own functions that were sampled, with their samples, and how many of those are in code
/// inlined into them. A precompiled runtime is no evidence. Crystal's library always counts: it is compiled
/// with each program.
fn hits(machine: &MachineCode<'_>) -> BTreeMap<FunctionId, (u64, u64)> {
    let symbols = machine.symbols();
    let own = |location: &Location| {
        location.frames.last().is_some_and(|frame| {
            is_own(symbols, location, frame) || symbols.name(frame.file).ends_with(".cr")
        })
    };
    let mut hits: BTreeMap<FunctionId, (u64, u64)> = BTreeMap::new();
    for (index, location) in symbols.locations.iter().enumerate() {
        let count = machine.samples_at(LocationId::at(index));
        let function = (count > 0).then(|| machine.function_at(LocationId::at(index))).flatten();
        if let Some(function) = function.filter(|_| own(location)) {
            let hit = hits.entry(function).or_default();
            let inlined = u64::from(location.frames.len() > 1) * count;
            *hit = (hit.0 + count, hit.1 + inlined);
        }
    }
    hits
}
