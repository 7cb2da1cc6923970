//! Hashing.
//!
//! # What it is
//! The hash of a map's key, computed for each look-up by a function that is slower than this map
//! needs: SipHash guards against keys that an attacker has chosen, where a multiplication would do.
//! Long keys are hashed whole, at each look-up again.
//!
//! # How deadweight knows
//! Samples under the standard libraries' hash functions, below the program's own line. A look-up
//! waits for its hash before it can read the table, so a part of the search in the table goes away
//! with it. The saving is an estimate. The row has such time in every language; a finding is made
//! where another hash function is one line away (the default hasher of Rust's maps), or where hashes take
//! so much that the keys must be large.
//!
//! # What it is mistaken for
//! Digests, checksums and the hashes of a program's own table: they are its work, also where a map's hash function
//! (SipHasher) computes them. Maps whose keys
//! come from outside, where SipHash is the safe choice. Time in the table itself, which waits for
//! memory.
//!
//! # What to do
//! A hasher for trusted keys, a smaller key (a number, an interned string), or no map: an array where
//! keys are dense.
//!
//! # Seen in
//! A clearing house that looks up three numbers per transfer.
//! In `tests/programs`: `default_hasher.rs`.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::{Share, samples_of};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "hashing",
    source: include_str!("hashing.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time the hash does not matter: with SipHash, and with other functions.
const SIPHASH: f64 = 0.08;
const OTHERS: f64 = 0.25;
/// The part of the search in the table that goes away with the hash that it waits for: least, typical, most. A pair of
/// programs with 40 % in SipHash and 57 % in the table saved 74 %.
const OF_TABLE: (f64, f64, f64) = (0.0, 0.55, 0.8);
/// At most the time of hashing and this part of it more can be waits for it.
const WAITING: f64 = 0.3;

/// Parts of the names of functions that hash for a map, in Rust, C++ and Zig. Other languages have one hash function for maps,
/// and others for digests.
const MAPS: [&str; 11] = [
    "hash_one",
    "make_hash",
    "hashbrown",
    "HashMap",
    "HashSet",
    "IndexMap",
    "_Hash_code_base",
    "_Hashtable",
    "unordered_",
    "_Map_base",
    "hash_map",
];

fn claim(sample: &UserSample<'_>) -> bool {
    sample.own.is_some() && sample.under(SymbolRole::Hash)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The time of searches in the standard library's hash table that may wait for the hash.
fn in_table(found: &Inspection<'_, '_>, process: ProcessId, share: &Share) -> Ns {
    let searches = samples_of(found, process).filter(|(_, site, _)| {
        let frames = site.frames(found.facts.symbols());
        let mut names = frames.map(|(_, frame)| found.facts.symbols().name(frame.function));
        names.any(|name| name.contains("hashbrown::raw::") && !name.contains("reserve_rehash"))
    });
    let account = AccountId::of_class(CLASS.id);
    let others = searches.filter(|(of, _, _)| *of != account).map(|(_, _, amount)| amount).sum();
    share.time_of(others).min(share.ns + share.ns.part(WAITING))
}

/// Whether at least half of the hashes are computed in a map's code, as far as inlined code is known: else the hash itself
/// is the result.
fn is_of_maps(found: &Inspection<'_, '_>, process: ProcessId) -> bool {
    let symbols = found.facts.symbols();
    let account = AccountId::of_class(CLASS.id);
    if !["Rust", "C++", "Zig"].contains(&&*found.facts.processes.get(process).language) {
        return true;
    }
    let (mut known, mut in_maps) = (0, 0);
    for (_, site, amount) in samples_of(found, process).filter(|(of, ..)| *of == account) {
        let mut frames = site.frames(symbols).peekable();
        let image = frames.peek().and_then(|(at, _)| symbols.images.get(at.image.index()));
        if !image.is_some_and(|image| image.has_lines) {
            continue;
        }
        let mut names = frames.map(|(_, frame)| symbols.name(frame.function));
        known += amount;
        in_maps +=
            if names.any(|name| MAPS.iter().any(|map| name.contains(map))) { amount } else { 0 };
    }
    in_maps * 2 >= known
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    let (large, remedy) = match &*facts.processes.get(process).language {
        "Rust" => (
            SIPHASH,
            "Give the map a hasher for trusted keys: HashMap<K, V, BuildHasherDefault<H>> of \
             one of the crates ahash, foldhash (long keys), rustc-hash (numbers). Dense \
             numbers need no map: index a Vec.",
        ),
        "C++" => (
            OTHERS,
            "Use a smaller key (a number, an interned string), keep the hash beside the key, or give \
             the map a faster hash function.",
        ),
        _ => (
            OTHERS,
            "Use a smaller key: a number, or an interned string instead of a long one or of a large struct.",
        ),
    };
    if share.ns.share_of(net) < large || !is_of_maps(found, process) {
        return None;
    }
    let table = in_table(found, process, &share);
    let with_table = |part| share.ns + table.part(part);
    let (low, _) = share.interval(with_table(OF_TABLE.0));
    let (_, high) = share.interval(with_table(OF_TABLE.2));
    let mut evidence =
        vec![format!("{} under the library's hash functions", things(share.samples, "sample"))];
    if table > Ns::ZERO {
        evidence.push(format!(
            "{} more in the table's search, which waits for the hash: a part of this goes away too",
            time(table)
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "keys hashed by a slow function".into(),
        text: format!(
            "{} spent {} of its {} computing hashes of keys ({}).",
            facts.name(process),
            time(share.ns),
            time(net),
            percent(share.ns, net),
        ),
        amount: share.ns,
        saving: with_table(OF_TABLE.1),
        range: (low.part(0.8), high),
        how: How::Estimate,
        sites: share.sites(facts.symbols()),
        evidence,
        remedy: remedy.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows};
    use expect_test::expect;

    const HASH: &str = "core::hash::BuildHasher::hash_one (/rustc/1/library/core/src/hash/mod.rs:9) in hashbrown::map::make_hash (/rust/deps/hashbrown/map.rs:3) in clear::apply (c.rs:67) <- clear::main (c.rs:99)";
    const SEARCH: &str = "hashbrown::raw::RawTableInner::find_inner (/rust/deps/hashbrown/raw.rs:3) in clear::apply (c.rs:67) <- clear::main (c.rs:99)";

    #[test]
    fn siphash_per_look_up_is_found_with_the_search_that_waits_for_it() {
        let text = computing(
            "Rust",
            &[(50, HASH), (40, SEARCH), (10, "clear::apply (c.rs:68) <- clear::main (c.rs:99)")],
        );
        expect![[r#"
            hashing 72 % (29..90) @ clear::apply:67: app spent 49.8 µs of its 100 µs computing hashes of keys (50 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            hashing 49750
            net-work 49750
        "#]]
        .assert_eq(&rows(&text, 2));
    }

    #[test]
    fn a_digest_by_the_hash_function_of_maps_is_refused() {
        const DIGEST: &str = "core::hash::sip::Hasher::write (/rustc/1/library/core/src/hash/sip.rs:9) in tokens::fingerprint (t.rs:30) <- tokens::main (t.rs:40)";
        let own = (10, "tokens::main (t.rs:41)");
        assert_eq!(found(&computing("Rust", &[(90, DIGEST), own])), "");
        let in_map = DIGEST.replace("tokens::fingerprint", "std::collections::hash_map::HashMap<K,V,S>::get (/rustc/1/library/std/map.rs:3) in tokens::fingerprint");
        assert!(found(&computing("Rust", &[(90, &in_map), own])).starts_with("hashing"));
    }

    #[test]
    fn a_search_in_a_large_table_is_no_hash() {
        let text = computing("Rust", &[(5, HASH), (95, SEARCH)]);
        assert_eq!(found(&text), "");
    }

    #[test]
    fn a_runtimes_hash_of_small_keys_and_a_digest_are_refused() {
        let text = computing(
            "Go",
            &[
                (80, "main.main (m.go:21)"),
                (
                    20,
                    "runtime.strhash <- runtime.mapaccess1_faststr <- main.count (m.go:9) <- main.main (m.go:20)",
                ),
            ],
        );
        assert_eq!(found(&text), "");
        let text = computing(
            "Rust",
            &[(90, "sha2::compress256 <- main::digest (m.rs:9) <- main::main (m.rs:20)")],
        );
        assert_eq!(found(&text), "");
    }
}
