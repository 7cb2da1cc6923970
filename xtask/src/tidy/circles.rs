//! The rule for imports: modules side by side do not import each other in a circle.
//!
//! Holds for folders and files, at any depth of any crate. A parent and its child may import each
//! other. Does not read Rust; see `imports`.

use super::imports::{self, Import};
use super::{Complaint, complain};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many imports of one module by another a complaint shows.
const SHOWN: usize = 8;

/// Imports of one crate, by folder: the pairs of modules in it, with the places of the imports.
type Edges = BTreeMap<Vec<String>, BTreeMap<(String, String), Vec<Place>>>;

/// Where an import stands, and its path.
#[derive(Debug)]
struct Place {
    file: String,
    line: usize,
    path: String,
}

/// Judges one crate: `source` is its `src` folder, `files` its Rust files with their texts.
pub(super) fn judge(source: &str, files: &[(&str, &str)]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (folder, pairs) in edges(source, files) {
        for circle in circles(&pairs) {
            let folder = folder.iter().fold(source.to_owned(), |path, name| path + "/" + name);
            complaints.extend(describe(&folder, &circle, &pairs));
        }
    }
    complaints
}

/// The path of the module in `file`, which is relative to the crate's `src` folder.
fn module(file: &str) -> Option<Vec<String>> {
    let mut parts: Vec<String> = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    // What lies in `bin` are crates of their own.
    if parts.len() > 1 && parts[0] == "bin" {
        return None;
    }
    let last = parts.last()?;
    if last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main")) {
        parts.pop();
    }
    Some(parts)
}

fn edges(source: &str, files: &[(&str, &str)]) -> Edges {
    let mut modules = BTreeSet::new();
    let mut tests = BTreeSet::new();
    let mut read = Vec::new();
    for (file, text) in files {
        let Some(module) =
            file.strip_prefix(source).and_then(|f| module(f.trim_start_matches('/')))
        else {
            continue;
        };
        let found = imports::read(text);
        for name in found.test_modules {
            tests.insert([module.clone(), vec![name]].concat());
        }
        modules.insert(module.clone());
        read.push((file, module, found.imports));
    }
    let is_test = |path: &[String]| (1..=path.len()).any(|n| tests.contains(&path[..n]));
    let mut edges = Edges::new();
    for (file, from, imports) in read {
        for import in imports {
            let Some(to) = target(&from, &import, &modules) else { continue };
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let (Some(a), Some(b)) = (from.get(common), to.get(common)) else { continue };
            if is_test(&from) || is_test(&to) {
                continue;
            }
            let pairs = edges.entry(from[..common].to_vec()).or_default();
            let path = import.path.join("::");
            let place = Place { file: (*file).to_owned(), line: import.line, path };
            pairs.entry((a.clone(), b.clone())).or_default().push(place);
        }
    }
    edges
}

/// The innermost module with a file of its own that the import's path goes through.
fn target(
    from: &[String],
    import: &Import,
    modules: &BTreeSet<Vec<String>>,
) -> Option<Vec<String>> {
    let mut base = [from, &import.inside].concat();
    let mut parts = import.path.as_slice();
    while let Some((first, rest)) = parts.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => {
                base.pop()?;
            }
            "self" => {}
            _ => break,
        }
        parts = rest;
    }
    for part in parts {
        base.push(part.clone());
        if !modules.contains(&base) {
            base.pop();
            break;
        }
    }
    Some(base)
}

/// The largest sets of modules that all reach each other, each in order of names.
fn circles<T>(pairs: &BTreeMap<(String, String), T>) -> Vec<BTreeSet<&str>> {
    let names: BTreeSet<&str> = pairs.keys().map(|(from, _)| from.as_str()).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reach(name, pairs))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for name in names {
        let back = |other: &&&str| reached.get(**other).is_some_and(|set| set.contains(name));
        let circle: BTreeSet<&str> = reached[name].iter().filter(back).copied().collect();
        if !circle.is_empty() && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reach<'a, T>(start: &str, pairs: &'a BTreeMap<(String, String), T>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(name) = open.pop() {
        for (_, to) in pairs.keys().filter(|(from, _)| from == name) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

/// A complaint that names the imports of one shortest way around.
fn describe(
    folder: &str,
    circle: &BTreeSet<&str>,
    pairs: &BTreeMap<(String, String), Vec<Place>>,
) -> Option<Complaint> {
    let way = circle.iter().filter_map(|name| around(name, circle, pairs)).min_by_key(Vec::len)?;
    let mut text = format!("modules import each other in a circle, in {folder}: ");
    let names: Vec<&str> = circle.iter().copied().collect();
    text.push_str(&names.join(" "));
    let mut first = None;
    for step in way.windows(2) {
        let [from, to] = step else { continue };
        let places = &pairs[&((*from).to_owned(), (*to).to_owned())];
        first = first.or(places.first());
        text.push_str(&format!("\n    {from} imports {to}:"));
        for place in places.iter().take(SHOWN) {
            text.push_str(&format!("\n        {}:{}: {}", place.file, place.line, place.path));
        }
        if places.len() > SHOWN {
            text.push_str(&format!("\n        and {} more", places.len() - SHOWN));
        }
    }
    let first = first?;
    Some(complain(&first.file, first.line, text))
}

/// The shortest way from `start` back to it inside `circle`.
fn around<'a, T>(
    start: &'a str,
    circle: &BTreeSet<&'a str>,
    pairs: &'a BTreeMap<(String, String), T>,
) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut open = VecDeque::from([vec![start]]);
    while let Some(way) = open.pop_front() {
        let last = way.last()?;
        for (_, to) in
            pairs.keys().filter(|(from, to)| from == last && circle.contains(to.as_str()))
        {
            let further = [way.as_slice(), &[to.as_str()]].concat();
            if to == start {
                return Some(further);
            }
            if seen.insert(to) {
                open.push_back(further);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::judge;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        let complaints = judge("x/src", files);
        complaints.into_iter().map(|c| format!("{}:{}: {}", c.file, c.line, c.text)).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_found() {
        let files = [
            ("x/src/lib.rs", "mod a;\nmod b;\n"),
            ("x/src/a.rs", "//! A.\nuse crate::{b::{self, B}};\n"),
            ("x/src/b.rs", "use super::a;\n"),
        ];
        let want = "x/src/a.rs:2: modules import each other in a circle, in x/src: a b\n    \
                    a imports b:\n        x/src/a.rs:2: crate::b\n        x/src/a.rs:2: crate::b::B\n    \
                    b imports a:\n        x/src/b.rs:1: super::a";
        assert_eq!(texts(&files), [want]);
    }

    #[test]
    fn folders_are_judged_by_all_their_files() {
        let files = [
            ("x/src/a/mod.rs", "mod deep;\n"),
            ("x/src/a/deep.rs", "fn f() { crate::b::g() }\n"),
            ("x/src/b.rs", "use crate::c::C;\n"),
            ("x/src/c.rs", "pub(crate) use super::a::A;\n"),
        ];
        let found = texts(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("in x/src: a b c\n"), "{found:?}");
    }

    #[test]
    fn circles_inside_a_folder_are_found_at_their_depth() {
        let files = [
            ("x/src/a/b/c.rs", "use super::d;\n"),
            ("x/src/a/b/d.rs", "mod e { use super::super::c; }\n"),
        ];
        assert!(texts(&files)[0].contains("in x/src/a/b: c d\n"));
    }

    #[test]
    fn a_parent_and_its_child_may_import_each_other() {
        let files = [
            ("x/src/lib.rs", "use a::A;\nuse crate::a::b;\n"),
            ("x/src/a.rs", "mod b;\nuse self::b::B;\nuse crate::C;\n"),
            ("x/src/a/b.rs", "use super::A;\n"),
        ];
        assert!(texts(&files).is_empty());
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let files = [
            ("x/src/a.rs", "use crate::b;\n#[cfg(test)]\nmod checks;\n"),
            ("x/src/a/checks.rs", "use crate::b;\n"),
            ("x/src/b.rs", "#[cfg(test)]\nuse crate::a;\n#[cfg(test)]\nmod checks;\n"),
            ("x/src/b/checks/mod.rs", "use crate::a;\n"),
        ];
        assert!(texts(&files).is_empty());
    }
}
