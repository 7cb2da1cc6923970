//! Output of Go's tools: how a binary was built, and why functions were not inlined.
//!
//! Pure: text in, values out. Does not run the tools.

use std::collections::BTreeMap;

/// How a binary was built, from `go version -m`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Build {
    /// `go1.26.8`.
    pub(super) version: String,
    /// `-tags`, or empty.
    pub(super) tags: String,
    /// `GOEXPERIMENT`, or empty.
    pub(super) experiments: String,
}

impl Build {
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (_, version) = lines.next()?.rsplit_once(": ")?;
        // Experiments follow the version: `go1.26.8 X:simd`.
        let version = version.split_whitespace().next()?.to_owned();
        let mut build = Self { version, ..Self::default() };
        for setting in lines.filter_map(|line| line.trim().strip_prefix("build\t")) {
            match setting.split_once('=') {
                Some(("-tags", tags)) => tags.clone_into(&mut build.tags),
                Some(("GOEXPERIMENT", names)) => names.clone_into(&mut build.experiments),
                _ => {}
            }
        }
        Some(build)
    }
}

/// The package of a function by its symbol: `example.org/m/sums` of `example.org/m/sums.(*Sum).Add`.
pub(super) fn package(symbol: &str) -> Option<&str> {
    let name = symbol.rfind('/').map_or(0, |slash| slash + 1);
    let dot = symbol[name..].find('.')?;
    Some(&symbol[..name + dot])
}

/// Why functions of `package` were not inlined, by symbol, in the compiler's words.
pub(super) fn reasons(output: &str, package: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in output.lines() {
        let Some((_, message)) = line.split_once(": cannot inline ") else { continue };
        let Some((function, why)) = message.split_once(": ") else { continue };
        // `cannot inline F into G: ...` is about one call.
        let function = function.split(" into ").next().unwrap_or(function);
        let why =
            format!("cannot inline {}: {why}", message.split(": ").next().unwrap_or(function));
        found.entry(format!("{package}.{function}")).or_insert(why);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_by_symbol_name() {
        let words = "# example.org/m/sums\n\
            ./sums.go:8:6: cannot inline turn: function too complex: cost 93 exceeds budget 80\n\
            ./sums.go:9:6: can inline rotate with cost 10 as: func(uint32) uint32 { return x }\n\
            ./sums.go:20:6: cannot inline (*Sum).Add: marked go:noinline\n\
            ./sums.go:30:9: cannot inline mix into Sum: cost 60 exceeds large caller cost 20\n\
            ./sums.go:40:2: a: cannot\n";
        let found = reasons(words, "example.org/m/sums");
        let found: Vec<String> = found.iter().map(|(f, why)| format!("{f}: {why}")).collect();
        assert_eq!(
            found,
            [
                "example.org/m/sums.(*Sum).Add: cannot inline (*Sum).Add: marked go:noinline",
                "example.org/m/sums.mix: cannot inline mix into Sum: cost 60 exceeds large caller cost 20",
                "example.org/m/sums.turn: cannot inline turn: function too complex: cost 93 exceeds budget 80",
            ]
        );
    }

    #[test]
    fn a_build_is_read_with_its_tags_and_experiments() {
        let text = "a: go1.26.8 X:simd\n\tpath\texample.org/m\n\tbuild\t-tags=fast,safe\n\
                    \tbuild\tGOARCH=amd64\n\tbuild\tGOEXPERIMENT=simd\n";
        let build = Build::read(text).unwrap();
        let read = [build.version.as_str(), &build.tags, &build.experiments];
        assert_eq!(read, ["go1.26.8", "fast,safe", "simd"]);
        assert_eq!(Build::read(""), None);
    }

    #[test]
    fn packages_end_at_the_first_dot_after_the_last_slash() {
        assert_eq!(package("example.org/m/sums.(*Sum).Add"), Some("example.org/m/sums"));
        assert_eq!(package("main.main.func1"), Some("main"));
        assert_eq!(package("memmove"), None);
    }
}
