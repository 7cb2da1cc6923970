//! Library functions that do a program's work in an expensive way: exceptions, waiting, text, hashes, searches for the end of text.
//!
//! Names as in `symbol_role`: of the C library without leading underscores. A function template may have its result type
//! before the name; only the part before the arguments is compared.

use super::SymbolRole;

/// The role of a function by its name, if it is one of these.
pub(super) fn of_name(name: &str, plain: &str) -> Option<SymbolRole> {
    let own = without_arguments(name);
    if throws(own, plain) {
        Some(SymbolRole::Throw)
    } else if tries(own, plain) {
        Some(SymbolRole::Try)
    } else if scans(own, plain) {
        Some(SymbolRole::Scan)
    } else if hashes(own) {
        Some(SymbolRole::Hash)
    } else {
        converts(own, plain).then_some(SymbolRole::Convert)
    }
}

/// A C++ name without its arguments; others as they are.
fn without_arguments(name: &str) -> &str {
    match name.find('(') {
        Some(at) if at > 0 && !name[..at].ends_with(['.', ' ']) => &name[..at],
        _ => name,
    }
}

/// Functions of the C library and of C++'s runtime that throw, unwind or convert: they run none of the program's code.
pub(super) fn of_c() -> impl Iterator<Item = &'static &'static str> {
    THROW_IN_C.iter().chain(CONVERT_IN_C)
}

/// The runtimes of C++, Rust and Crystal.
#[rustfmt::skip]
const THROW_IN_C: &[&str] = &[
    "Unwind_RaiseException",
    "Unwind_Resume",
    "Unwind_Resume_or_Rethrow",
    "cxa_throw",
    "cxa_rethrow",
    "cxa_allocate_exception",
    "cxa_free_exception",
    "cxa_begin_catch",
    "cxa_end_catch",
    "gxx_personality_v0",
    "crystal_raise",
    "crystal_personality",
    "rust_panic",
    "rust_start_panic",
];

/// Prefixes of names in other languages.
#[rustfmt::skip]
const THROW_PREFIXES: &[&str] = &[
    // C++
    "std::__throw_",
    // Rust: `std::panicking::try` and `catch_unwind` only call.
    "std::panicking::begin_panic",
    "std::panicking::panic_handler",
    "std::panicking::rust_panic",
    "std::panicking::resume_unwind",
    "core::panicking::panic",
    "core::result::unwrap_failed",
    "core::option::unwrap_failed",
    "rust_begin_unwind",
    "__rustc::rust_begin_unwind",
    // Go
    "runtime.gopanic",
    "runtime.gorecover",
    "runtime.goPanic",
    "runtime.panicIndex",
    "runtime.panicdivide",
    "runtime.panicmem",
    "runtime.recovery",
    "runtime.addOneOpenDeferFrame",
    "runtime.(*_panic).",
    // Crystal
    "Exception::CallStack",
    "*Exception::CallStack",
];

/// Whether it raises, catches or carries an exception or a panic.
fn throws(name: &str, plain: &str) -> bool {
    THROW_IN_C.contains(&plain)
        || THROW_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.trim_start_matches('*').starts_with("raise<") && name.ends_with(":NoReturn")
}

/// Whether it asks for something without waiting for it: a loop around it waits busily.
fn tries(name: &str, plain: &str) -> bool {
    const C: &[&str] = &["pthread_spin_lock", "sched_yield", "pthread_yield"];
    const PARTS: &[&str] = &[
        "mpsc::Receiver<T>::try_recv",
        "mpmc::Receiver<T>::try_recv",
        "crossbeam_channel::channel::Receiver<T>::try_recv",
        "core::hint::spin_loop",
        "std::thread::functions::yield_now",
        "std::thread::yield_now",
        "std::this_thread::yield",
    ];
    C.contains(&plain) || PARTS.iter().any(|part| name.contains(part))
}

/// Whether it looks for the end of a text, or counts characters up to one of them.
fn scans(name: &str, plain: &str) -> bool {
    const C: &[&str] = &[
        "strlen",
        "rawmemchr",
        "strnlen",
        "wcslen",
        "strcat",
        "strncat",
        // `sscanf` looks for the end before it converts.
        "sscanf",
        "isoc99_sscanf",
        "isoc23_sscanf",
        "vsscanf",
        "IO_str_init_static_internal",
    ];
    const PARTS: &[&str] = &[
        // Rust: characters have no index, each is counted from the start.
        "core::str::count::",
        "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::nth",
        "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::advance_by",
        "core::str::iter::Chars as core::iter::traits::iterator::Iterator>::count",
        // Go
        "unicode/utf8.RuneCount",
        // Crystal: inlined, without the class.
        "char_index_to_byte_index",
        "byte_index_to_char_index",
    ];
    // Zig: the end of a text that ends with a zero byte. Of a generic function each instance has a number.
    let zig = ["mem.len", "mem.indexOfSentinel"];
    let of_zig =
        |of: &str| name.strip_prefix(of).is_some_and(|n| n.is_empty() || n.starts_with("__anon_"));
    zig.into_iter().any(of_zig)
        || C.contains(&plain)
        || PARTS.iter().any(|part| name.contains(part))
}

/// Whether it computes the hash of a map's key. Digests and checksums are a program's work.
fn hashes(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        // Rust
        "core::hash::",
        "<core::hash::",
        "std::hash::random::",
        "<std::hash::random::",
        "hashbrown::map::make_hash",
        "std::collections::hash::map::make_hash",
        // C++
        "std::_Hash_bytes",
        "std::_Fnv_hash_bytes",
        "std::_Hash_impl::",
        "std::hash<",
        // Go
        "runtime.memhash",
        "runtime.strhash",
        "runtime.aeshash",
        "aeshash",
        "runtime.nilinterhash",
        "runtime.interhash",
        "runtime.typehash",
        "runtime.f64hash",
        "memhash",
        // Crystal, Zig
        "Crystal::Hasher",
        "*Crystal::Hasher",
        "hash.wyhash.",
        "hash.auto_hash.",
        "hash_map.getAutoHashFn",
        "hash_map.hashString",
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.starts_with('<') && name.contains(" as core::hash::BuildHasher>::hash_one")
}

/// Conversions in the C library.
#[rustfmt::skip]
const CONVERT_IN_C: &[&str] = &[
    "printf",
    "fprintf",
    "vprintf",
    "vfprintf",
    "vfprintf_internal",
    "snprintf",
    "vsnprintf",
    "vsnprintf_internal",
    "sprintf",
    "vsprintf",
    "vsprintf_internal",
    "asprintf",
    "vasprintf",
    "dprintf",
    "vdprintf",
    "printf_fp",
    "printf_fp_l",
    "printf_fphex",
    "itoa_word",
    "printf_buffer",
    "Xprintf_buffer",
    "scanf",
    "fscanf",
    "vfscanf",
    "vfscanf_internal",
    "isoc99_scanf",
    "isoc99_fscanf",
    "isoc23_fscanf",
    "strtod",
    "strtof",
    "strtold",
    "strtod_l",
    "strtof_l",
    "strtod_l_internal",
    "strtof_l_internal",
    "strtod_internal",
    "strtol",
    "strtoul",
    "strtoll",
    "strtoull",
    "strtol_l_internal",
    "strtoul_l_internal",
    "strtoll_l_internal",
    "strtoull_l_internal",
    "strtol_internal",
    "strtoul_internal",
    "isoc23_strtol",
    "isoc23_strtoul",
    "atof",
    "atoi",
    "atol",
    "atoll",
    "strftime",
    "strftime_l",
    "strftime_internal",
    "strptime",
    "strptime_internal",
    "regcomp",
    "re_compile_internal",
    "re_compile_pattern",
    // PCRE, which Crystal, Perl-like tools and servers use.
    "pcre_compile",
    "pcre_compile2",
    "pcre_study",
    "pcre2_compile_8",
    "pcre2_jit_compile_8",
];

/// Prefixes of the names of conversions in other libraries.
#[rustfmt::skip]
const CONVERT_PREFIXES: &[&str] = &[
    // C++
    "std::num_put<",
    "std::num_get<",
    "std::ostream::_M_insert",
    "std::istream::_M_extract",
    "std::locale::",
    "std::use_facet<",
    "std::has_facet<",
    "std::basic_ios<",
    "std::ios_base::",
    "std::__cxx11::basic_ostringstream<",
    "std::__cxx11::basic_istringstream<",
    "std::__cxx11::basic_stringstream<",
    "std::__cxx11::basic_stringbuf<",
    "std::__cxx11::basic_regex<",
    "std::__detail::_Compiler<",
    "std::__detail::_Scanner<",
    "std::__detail::_ScannerBase",
    "std::__detail::_NFA<",
    "std::to_chars",
    "std::from_chars",
    "std::__detail::__to_chars",
    "std::__from_chars",
    "std::__cxx11::sto",
    "std::__cxx11::to_string",
    "std::to_string",
    // Rust
    "core::fmt::",
    "alloc::fmt::",
    "<alloc::string::String as core::fmt::Write>",
    "core::num::flt2dec",
    "core::num::imp::flt2dec",
    "core::num::dec2flt",
    "core::num::imp::dec2flt",
    "core::num::fmt",
    "regex::builders::",
    "regex_automata::nfa::thompson::compiler",
    "regex_syntax::",
    // Go, and Zig's standard library
    "fmt.",
    "strconv.",
    "regexp.compile",
    "regexp.Compile",
    "regexp.MustCompile",
    "regexp.onepass",
    "regexp/syntax.",
    "std.fmt.",
    // Crystal
    "String::Formatter",
    "*String::Formatter",
    "Float::Printer",
    "*Float::Printer",
];

/// Parts of such names.
#[rustfmt::skip]
const CONVERT_PARTS: &[&str] = &[
    " std::use_facet<",
    " std::has_facet<",
    " std::ostream::_M_insert",
    " std::istream::_M_extract",
    "as alloc::string::SpecToString>",
    "as alloc::string::ToString>",
    "@Int#to_s",
    "Float64#to_s",
    "Float32#to_s",
    "@String#to_f",
    "@String#to_i",
    "Regex#initialize",
];

/// Whether it makes text of a value, a value of text, or prepares such a conversion.
fn converts(name: &str, plain: &str) -> bool {
    CONVERT_IN_C.contains(&plain)
        || CONVERT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || CONVERT_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::super::of_name;
    use super::*;

    fn assert_role(role: SymbolRole, names: &[&str]) {
        for name in names {
            assert_eq!(of_name(name), Some(role), "{name}");
        }
    }

    #[test]
    fn exceptions_and_panics_are_known_in_every_language() {
        assert_role(
            SymbolRole::Throw,
            &[
                "_Unwind_RaiseException",
                "__cxa_throw",
                "std::__throw_out_of_range(char const*)",
                "std::panicking::begin_panic_handler",
                "core::panicking::panic_bounds_check",
                "runtime.gopanic",
                "runtime.gorecover",
                "raise<KeyError>:NoReturn",
                "Exception::CallStack#decode_backtrace:Array(String)",
            ],
        );
    }

    #[test]
    fn text_is_converted_in_every_language() {
        assert_role(
            SymbolRole::Convert,
            &[
                "__vfprintf_internal",
                "____strtod_l_internal",
                "std::ostream& std::ostream::_M_insert<double>(double)",
                "std::__cxx11::basic_ostringstream<char, std::char_traits<char>, std::allocator<char> >::basic_ostringstream()",
                "std::ctype<char> const& std::use_facet<std::ctype<char> >(std::locale const&)",
                "core::fmt::num::imp::<impl core::fmt::Display for u64>::fmt",
                "alloc::fmt::format::format_inner",
                "fmt.Sprintf",
                "strconv.ParseFloat",
                "*Int32@Int#to_s<Int32>:String",
            ],
        );
    }

    #[test]
    fn hashes_of_keys_are_known_and_digests_are_not() {
        assert_role(
            SymbolRole::Hash,
            &[
                "core::hash::BuildHasher::hash_one",
                "<std::hash::random::DefaultHasher as core::hash::Hasher>::finish",
                "std::_Hash_bytes(void const*, unsigned long, unsigned long)",
                "runtime.strhash",
                "aeshashbody",
            ],
        );
        for name in ["crypto/sha256.block", "sha2::compress256", "crc32_z", "XXH64"] {
            assert_eq!(of_name(name), None, "{name}");
        }
    }

    #[test]
    fn searches_for_the_end_of_text_are_known() {
        assert_role(
            SymbolRole::Scan,
            &["strlen", "__strlen_avx2", "__rawmemchr_avx2", "__isoc99_sscanf", "strcat"],
        );
        assert_role(SymbolRole::Scan, &["mem.len", "mem.indexOfSentinel__anon_6766"]);
        for name in ["__strchr_avx2", "mem.length", "mem.indexOfScalar__anon_12"] {
            assert_eq!(of_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_programs_own_functions_have_no_role() {
        for name in [
            "<query::Row as core::fmt::Display>::fmt",
            "print_row(std::__cxx11::basic_ostringstream<char>&)",
            "main.format",
            "Table::hash_one",
            "std::panicking::try",
            "std::panic::catch_unwind",
            "throw_away",
            "Point#to_s:String",
        ] {
            assert_eq!(of_name(name), None, "{name}");
        }
    }
}
