//! Which binaries' code no optimiser has seen: by what their makers say, and by how the functions
//! look that the program spends its time in.
//!
//! GCC and Go tell; Rust, Zig and Crystal do not, and then only the code does. A few cold
//! functions decide nothing, so each function counts by its samples. Not for saying what an
//! optimised build would save: that is the class' business.

use crate::facts::call_site::is_own;
use deadweight_code::Shape;
use deadweight_code::machine_code::{FunctionId, MachineCode};
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::Location;
use std::collections::BTreeMap;

/// Instructions that work on the function's own frame: 0 to 23 % in optimised programs of six
/// languages, 29 to 48 % in those that were not (one program each).
const ON_FRAME: f64 = 0.26;
/// Functions that first put their arguments away: 89 and 100 % of those that GCC and Zig did not
/// optimise, none that was optimised.
const SPILLING: f64 = 0.5;
/// No compiler inlines without being told to, unless it optimises: above this share of samples in
/// inlined code one does, however much its functions work on their frames.
const INLINED: f64 = 0.1;
/// Code that looks like this was optimised, whatever the unit with `main` says of itself.
const OPTIMISED: f64 = 0.12;
/// Fewer samples in functions whose code is known decide nothing.
const SAMPLES: u64 = 20;

/// A verdict per binary.
#[derive(Debug, Default)]
pub(crate) struct Builds {
    of_image: Vec<Build>,
}

/// What is concluded of a binary's code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Build {
    /// Whether no optimiser has seen it.
    pub(crate) unoptimised: bool,
    /// How the functions look that samples hit, weighed by them.
    pub(crate) shape: Shape,
    /// Samples in functions of the program's own, and those of them in code that was inlined.
    inlined: (u64, u64),
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
        for (build, image) in of_image.iter_mut().zip(&symbols.images) {
            build.unoptimised = verdict(image.optimised, image.has_lines, build);
        }
        Self { of_image }
    }

    /// The verdict on a binary.
    pub(crate) fn of(&self, image: ImageId) -> Option<&Build> {
        self.of_image.get(image.index())
    }
}

/// `said` is what its maker says, if anything. Without lines nothing tells what was inlined: then both
/// signs of how it looks must be there.
fn verdict(said: Option<bool>, lines: bool, build: &Build) -> bool {
    let (shape, (samples, inlined)) = (build.shape, build.inlined);
    let seen = shape.functions >= SAMPLES;
    let (on_frame, spills) = (shape.stack_share() >= ON_FRAME, shape.spilling_share() >= SPILLING);
    let looks = if lines { on_frame || spills } else { on_frame && spills };
    match said {
        Some(true) => false,
        Some(false) => !seen || shape.stack_share() > OPTIMISED,
        None => seen && looks && inlined as f64 <= INLINED * samples as f64,
    }
}

/// Functions of the program's own that were sampled, how often, and how often of these in code
/// that was inlined into them: a runtime that came ready-made
/// says nothing. Crystal's library never does: it is compiled with each program.
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
