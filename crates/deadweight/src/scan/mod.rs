//! What the machine code of a binary shows before it runs, as candidates by kind.
//!
//! - In: places of a whole binary (`deadweight_seal::Scan`).
//! - Out: [`Candidates`]: the program's own places, by kind, the most nested first; what differs between two binaries.
//! - Must not know: files, or how text is laid out (`render::scan`).

pub mod difference;
pub mod explanation;
pub mod kind;
pub mod place;

use deadweight_seal::{BinaryInfo, Scan};
use kind::{KINDS, Kind};
pub use place::Place;
use std::collections::BTreeMap;

/// The candidates of one binary.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The binary, as it was named.
    pub path: String,
    /// Its language and compiler.
    pub info: BinaryInfo,
    /// How many functions were read, and their bytes.
    pub functions: (usize, u64),
    /// Each kind that has places, with these, the most nested first.
    pub kinds: Vec<(&'static Kind, Vec<Place>)>,
    /// How many places in library code were left out.
    pub left_out: usize,
    /// What is missing, in words that follow the binary's name.
    pub notes: Vec<String>,
}

impl Candidates {
    /// The candidates of a scan. `libraries`: also those in standard libraries and runtimes.
    #[must_use]
    pub fn of(path: &str, scan: &Scan, libraries: bool) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut merged: BTreeMap<(usize, place::Key), Place> = BTreeMap::new();
        let mut left_out = 0;
        for site in &scan.sites {
            let Some((number, kind)) = kind::of(site) else { continue };
            let Some(place) = Place::of(site, kind, name, libraries) else {
                left_out += 1;
                continue;
            };
            match merged.get_mut(&(number, place.key())) {
                Some(known) => known.merge(&place),
                None => _ = merged.insert((number, place.key()), place),
            }
        }
        let mut of_kind: Vec<Vec<Place>> = vec![Vec::new(); KINDS.len()];
        merged.into_iter().for_each(|((number, _), place)| of_kind[number].push(place));
        for places in &mut of_kind {
            places.sort_by_key(|place| std::cmp::Reverse(place.rank()));
        }
        let kinds = KINDS.iter().zip(of_kind).filter(|(_, places)| !places.is_empty());
        Self {
            path: path.to_owned(),
            info: scan.info.clone(),
            functions: (scan.functions, scan.bytes),
            kinds: kinds.collect(),
            left_out,
            notes: scan.warnings.clone(),
        }
    }

    /// Takes why functions were not inlined, by symbol.
    pub fn explain(&mut self, reasons: &[(String, String)]) {
        let places = self.kinds.iter_mut().filter(|(kind, _)| kind.is_about_callee());
        for place in places.flat_map(|(_, places)| places) {
            let known = reasons.iter().find(|(function, _)| *function == place.callee);
            known.map(|(_, why)| why).unwrap_or(&String::new()).clone_into(&mut place.why);
        }
    }

    /// All places with their kinds.
    pub fn places(&self) -> impl Iterator<Item = (&'static Kind, &Place)> {
        self.kinds.iter().flat_map(|(kind, places)| places.iter().map(|place| (*kind, place)))
    }
}
