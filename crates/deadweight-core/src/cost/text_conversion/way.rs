//! The ways to convert, by the names of the library functions that show them, and what the direct way saves of each.

use crate::facts::user_time::UserSample;

/// A way to convert.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// An expression is compiled.
    Expression,
    /// A stream in memory, with its locale.
    Stream,
    /// A format, into a new string or into memory.
    IntoMemory,
    /// A format, from text.
    Scan,
    /// Into or from a stream: that is built for it, or that stays.
    Put,
    /// The direct way, or straight into the output.
    Direct,
}

/// The words that a library function has that is entered for a way.
const WORDS: [(Way, &[&str]); 6] = [
    // A log's lines are output, as what is printed.
    (Way::Direct, &["log.(*Logger).", "log.Print", "log/slog."]),
    (
        Way::Expression,
        &[
            "regcomp",
            "std::__cxx11::basic_regex<",
            "std::__detail::_Compiler<",
            "regexp.compile",
            "regexp.Compile",
            "regexp.MustCompile",
            "regex::builders::",
            "regex_syntax::",
            "Regex#initialize",
            "pcre_compile",
            "pcre_study",
            "pcre2_compile",
            "pcre2_jit_compile",
        ],
    ),
    (
        // What makes or ends a stream. Where a stream stays, its emptying, its text and the tests of its state are not this.
        Way::Stream,
        &[
            ">::basic_ostringstream",
            ">::~basic_ostringstream",
            ">::basic_istringstream",
            ">::~basic_istringstream",
            ">::basic_stringstream",
            ">::~basic_stringstream",
            ">::basic_stringbuf",
            ">::~basic_stringbuf",
            ">::basic_ios",
            ">::~basic_ios",
            "std::char_traits<char> >::init",
            "::_M_cache_locale",
            "std::locale::locale",
            "std::locale::~locale",
            "std::ios_base::ios_base",
            "std::ios_base::~ios_base",
            "std::ios_base::_M_init",
        ],
    ),
    (
        Way::Put,
        &[
            "std::ostream::",
            "std::istream::",
            "std::num_put<",
            "std::num_get<",
            "basic_ostringstream<",
            "basic_istringstream<",
            "basic_stringstream<",
            "basic_stringbuf<",
            "std::basic_ios<",
            "std::locale::",
        ],
    ),
    (
        Way::IntoMemory,
        &[
            "sprintf",
            "snprintf",
            "asprintf",
            "alloc::fmt::format",
            "SpecToString",
            "ToString>::to_string",
            "fmt.Sprint",
            "fmt.Append",
            "fmt.allocPrint",
            "fmt.bufPrint",
            "String::Formatter",
        ],
    ),
    (Way::Scan, &["sscanf", "fscanf", "fmt.Sscan", "fmt.Fscan", "fmt.Scan"]),
];

impl Way {
    /// The way of a sample: of the outermost library function that shows it. A stream is also made and ended where a
    /// function inside that does it.
    pub(super) fn of(sample: &UserSample<'_>) -> Self {
        let names: Vec<&str> = sample.library().map(|(name, _)| name).collect();
        let of_name = |name: &&str| {
            let says = |words: &&(Way, &[&str])| words.1.iter().any(|word| name.contains(word));
            WORDS.iter().find(says).map(|(way, _)| *way)
        };
        let shown = names.iter().rev().find_map(of_name).unwrap_or(Self::Direct);
        let makes = || names.iter().any(|name| of_name(name) == Some(Self::Stream));
        if shown == Self::Put && makes() { Self::Stream } else { shown }
    }

    /// Whether the direct way leaves out all that goes on under it, memory too.
    pub(super) fn is_indirect(self) -> bool {
        ![Self::Put, Self::Direct].contains(&self)
    }

    /// Below this share of the wall time it is not worth another way.
    pub(super) fn large(self) -> f64 {
        match self {
            Self::Expression | Self::Stream => 0.05,
            _ => 0.15,
        }
    }

    /// The part of its time that the direct way saves: least, typical, most.
    pub(super) fn saved(self) -> (f64, f64, f64) {
        match self {
            Self::Expression => (0.8, 0.97, 1.0),
            Self::Stream => (0.6, 0.88, 1.0),
            Self::IntoMemory => (0.2, 0.7, 0.95),
            Self::Scan | Self::Put | Self::Direct => (0.4, 0.75, 0.95),
        }
    }

    pub(super) fn says(self) -> &'static str {
        match self {
            Self::Expression => "regular expressions compiled again and again",
            Self::Stream => "a text stream built for each conversion",
            Self::IntoMemory => "values formatted into strings over and over",
            Self::Scan | Self::Put | Self::Direct => "numbers read by a format",
        }
    }
}
