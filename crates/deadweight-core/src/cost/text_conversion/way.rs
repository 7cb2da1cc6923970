//! The ways to convert, by the names of the library functions that show them, and what the direct way saves of each.

use crate::facts::user_time::UserSample;

/// A way to convert.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// An expression is compiled.
    Expression,
    /// A stream in memory, with its locale.
    Stream,
    /// What a locale says of one character.
    Locale,
    /// From standard input by a C++ stream that stays in step with C's: it has no buffer.
    Console,
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
const WORDS: [(Way, &[&str]); 7] = [
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
            "std::ios_base::ios_base",
            "std::ios_base::~ios_base",
            "std::ios_base::_M_init",
        ],
    ),
    (
        // Where a stream calls them they belong to it: that is further out.
        Way::Locale,
        &[
            "std::use_facet<",
            "std::has_facet<",
            "std::locale::locale",
            "std::locale::~locale",
            "std::toupper<",
            "std::tolower<",
            "std::isspace<",
            "std::isalpha<",
            "std::isalnum<",
            "std::isdigit<",
            "std::ispunct<",
            "std::isupper<",
            "std::islower<",
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

/// What a stream without a buffer of its own calls for each character.
const IN_STEP: &[&str] = &["stdio_sync_filebuf<", "ungetc", "_IO_sputbackc"];

/// Whether one of these functions reads from a stream.
fn reads(names: &[&str]) -> bool {
    names.iter().any(|name| name.contains("std::istream") || name.contains("basic_istream<"))
}

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
        let makes = |name: &&str| matches!(of_name(name), Some(Self::Stream | Self::Locale));
        let in_step = |name: &&str| IN_STEP.iter().any(|part| name.contains(part));
        match shown {
            Self::Put if reads(&names) && names.iter().any(in_step) => Self::Console,
            Self::Put if names.iter().any(makes) => Self::Stream,
            _ => shown,
        }
    }

    /// Whether what a function of the program puts into a stream, or takes from it, belongs to this way once it uses it.
    pub(super) fn takes(self, sample: &UserSample<'_>) -> bool {
        let names: Vec<&str> = sample.library().map(|(name, _)| name).collect();
        self == Self::Stream || self == Self::Console && reads(&names)
    }

    /// Whether the direct way leaves out all that goes on under it, memory too.
    pub(super) fn is_indirect(self) -> bool {
        ![Self::Put, Self::Direct].contains(&self)
    }

    /// Below this share of the wall time it is not worth another way.
    pub(super) fn large(self) -> f64 {
        match self {
            Self::Expression | Self::Stream => 0.05,
            Self::Locale | Self::Console => 0.1,
            _ => 0.15,
        }
    }

    /// The part of its time that the direct way saves: least, typical, most.
    pub(super) fn saved(self) -> (f64, f64, f64) {
        match self {
            Self::Expression => (0.8, 0.97, 1.0),
            Self::Stream => (0.6, 0.88, 1.0),
            // A program that reads numbers, and one that makes letters large, saved all but a tenth.
            Self::Locale | Self::Console => (0.5, 0.85, 1.0),
            Self::IntoMemory => (0.2, 0.7, 0.95),
            Self::Scan | Self::Put | Self::Direct => (0.4, 0.75, 0.95),
        }
    }

    pub(super) fn says(self) -> &'static str {
        match self {
            Self::Expression => "regular expressions compiled again and again",
            Self::Stream => "a text stream built for each conversion",
            Self::Locale => "a locale asked for each character",
            Self::Console => "a stream that reads one character at a time, in step with C's",
            Self::IntoMemory => "values formatted into strings over and over",
            Self::Scan | Self::Put | Self::Direct => "numbers read by a format",
        }
    }
}
