//! Called routines by name, in the runtimes of all languages, if they give their caller's code a role.
//!
//! Not for allocators and collectors; see `symbol_role`.

/// A routine that gives its call sites a role.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Routine {
    /// Destination, source, length.
    Copy,
    /// Copies a number of bytes fixed in its own code (Go's Duff's device).
    CopyFixed,
    /// Destination, byte, length.
    Fill,
    /// Destination, length.
    Zero,
    /// Zeroes a number of bytes fixed in its own code.
    ZeroFixed,
    /// Never returns: an index was out of bounds.
    BoundsPanic,
    /// Never returns: another check failed.
    OtherPanic,
    /// Creates the error value of a panic that follows.
    PanicValue,
    /// Grows the stack, then runs the function again.
    StackGrowth,
    /// Records pointers that are overwritten.
    WriteBarrier,
}

impl Routine {
    /// Whether it copies or sets memory, and does nothing else.
    pub(crate) fn moves(self) -> bool {
        self.fills() || matches!(self, Self::Copy | Self::CopyFixed)
    }

    /// Whether it sets memory to a value, and does nothing else.
    pub(crate) fn fills(self) -> bool {
        matches!(self, Self::Fill | Self::Zero | Self::ZeroFixed)
    }
}

/// The routine called `name` (demangled or not), if it is one of these.
pub(crate) fn named(name: &str) -> Option<Routine> {
    if name.starts_with("runtime.") {
        return go(name);
    }
    panic(name).or_else(|| block(name))
}

/// Whether the routine called `name` returns zeroed memory.
pub(crate) fn returns_zeroed(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    let plain = name.trim_start_matches('_');
    matches!(plain, "calloc" | "libc_calloc" | "runtime.makeslice" | "runtime.newobject")
        || plain.ends_with("alloc_zeroed")
}

/// Go's runtime.
fn go(name: &str) -> Option<Routine> {
    let name = name.strip_prefix("runtime.")?;
    Some(match name {
        "memmove" => Routine::Copy,
        "memclrNoHeapPointers" => Routine::Zero,
        "duffcopy" => Routine::CopyFixed,
        "duffzero" => Routine::ZeroFixed,
        _ if name.starts_with("panicIndex")
            || name.starts_with("panicSlice")
            || name.starts_with("panicBounds")
            || name.starts_with("goPanicIndex")
            || name.starts_with("goPanicSlice") =>
        {
            Routine::BoundsPanic
        }
        _ if name.starts_with("panic") || name.starts_with("goPanic") => Routine::OtherPanic,
        _ if name.starts_with("morestack") => Routine::StackGrowth,
        _ if name.starts_with("gcWriteBarrier") || name.starts_with("wbZero") => {
            Routine::WriteBarrier
        }
        _ => return None,
    })
}

/// Block routines of C libraries and compilers' runtimes, with their variants for processors.
fn block(name: &str) -> Option<Routine> {
    let name = name.split('@').next().unwrap_or(name).trim_start_matches('_');
    let name = name.strip_prefix("GI_").or(name.strip_prefix("libc_")).unwrap_or(name);
    // The resolver that selects the variant for a processor.
    let name = name.strip_suffix("_ifunc").unwrap_or(name);
    let name = name.rsplit('.').next().unwrap_or(name);
    let is = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| {
            rest.is_empty() || rest == "_chk" || rest.starts_with('[') || variant(rest)
        })
    };
    if is("memcpy") || is("memmove") || is("mempcpy") {
        Some(Routine::Copy)
    } else if is("memset") {
        Some(Routine::Fill)
    } else if is("bzero") || is("explicit_bzero") {
        Some(Routine::Zero)
    } else {
        None
    }
}

/// Whether this is the suffix of a variant, such as `_avx_unaligned_erms`.
fn variant(rest: &str) -> bool {
    [
        "_avx",
        "_sse",
        "_ssse",
        "_evex",
        "_erms",
        "_generic",
        "_falkor",
        "_thunderx",
        "_simd",
        "_mops",
    ]
    .iter()
    .any(|v| rest.starts_with(v))
}

/// Words in the names of panics because of an index.
const BOUNDS: [&str; 14] = [
    // Rust's core
    "panic_bounds_check",
    "slice_index_fail",
    "slice_start_index_len_fail",
    "slice_end_index_len_fail",
    "slice_index_order_fail",
    "slice_error_fail",
    // Zig: `debug.FullPanic(...).outOfBounds` and its older form
    "outOfBounds",
    "panicOutOfBounds",
    "startGreaterThanEnd",
    "panicStartGreaterThanEnd",
    // Crystal: `*raise<IndexError>:NoReturn`
    "raise<IndexError>",
    // C++: `std::__throw_out_of_range_fmt`, and GNU's hardened containers
    "__throw_out_of_range",
    "__glibcxx_assert_fail",
    // D, Nim and others
    "raiseIndexError",
];
/// Words in the names of other panics.
const OTHER: [&str; 16] = [
    "core::panicking::",
    "4core9panicking",
    "unwrap_failed",
    "expect_failed",
    "len_mismatch_fail",
    "handle_alloc_error",
    "capacity_overflow",
    "FullPanic",
    "debug.panic",
    "builtin.panic",
    // Crystal's mark of functions that don't return.
    ":NoReturn",
    "__crystal_raise",
    "std::__throw_",
    "_ZSt20__throw",
    "__stack_chk_fail",
    "__ubsan_handle",
];
/// What creates the error value of a panic.
const VALUES: [&str; 3] = ["IndexError::new", "IndexError.new", "IndexError@"];

/// Whether a name may hold one of these words: each has one of these four letters. A binary has a hundred thousand names.
fn may_panic(name: &str) -> bool {
    name.as_bytes().windows(4).any(|four| {
        matches!(
            four,
            b"anic"
                | b"fail"
                | b"hrow"
                | b"rais"
                | b"exEr"
                | b"OfBo"
                | b"rTha"
                | b"c_er"
                | b"over"
                | b"oRet"
                | b"ubsa"
        )
    })
}

fn panic(name: &str) -> Option<Routine> {
    if !may_panic(name) {
        return None;
    }
    let has = |list: &[&str]| list.iter().any(|part| name.contains(part));
    if has(&VALUES) {
        Some(Routine::PanicValue)
    } else if has(&BOUNDS) {
        Some(Routine::BoundsPanic)
    } else if has(&OTHER) {
        Some(Routine::OtherPanic)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Routine::{BoundsPanic, Copy, Fill, OtherPanic, PanicValue, StackGrowth, Zero};
    use super::*;

    #[test]
    fn routines_of_every_runtime_are_recognised_by_name() {
        for (name, routine) in [
            ("memcpy", Copy),
            ("memcpy@plt", Copy),
            ("__memmove_avx_unaligned_erms", Copy),
            ("memmove[ifunc]", Copy),
            ("compiler_rt.memcpy", Copy),
            ("__memcpy_chk", Copy),
            ("runtime.memmove", Copy),
            ("memset", Fill),
            ("__libc_memmove_ifunc", Copy),
            ("runtime.memclrNoHeapPointers", Zero),
            ("runtime.panicIndex", BoundsPanic),
            ("runtime.panicSliceAlen", BoundsPanic),
            ("runtime.panicBounds", BoundsPanic),
            ("runtime.goPanicIndexU", BoundsPanic),
            ("runtime.panicdivide", OtherPanic),
            ("runtime.morestack_noctxt", StackGrowth),
            ("core::panicking::panic_bounds_check", BoundsPanic),
            ("_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE", BoundsPanic),
            ("core::slice::index::slice_end_index_len_fail", BoundsPanic),
            ("core::panicking::panic_const::panic_const_add_overflow", OtherPanic),
            ("debug.FullPanic((function 'defaultPanic')).outOfBounds", BoundsPanic),
            ("debug.FullPanic((function 'defaultPanic')).integerOverflow", OtherPanic),
            ("*raise<IndexError>:NoReturn", BoundsPanic),
            ("*IndexError::new:IndexError", PanicValue),
            ("IndexError.new", PanicValue),
            ("*raise<OverflowError>:NoReturn", OtherPanic),
            ("raise<IndexError>:NoReturn", BoundsPanic),
            ("raise<OverflowError>:NoReturn", OtherPanic),
            ("std::__throw_out_of_range_fmt(char const*, ...)", BoundsPanic),
        ] {
            assert_eq!(named(name), Some(routine), "{name}");
        }
    }

    #[test]
    fn every_word_of_a_panic_has_letters_that_are_searched_first() {
        for word in BOUNDS.iter().chain(&OTHER).chain(&VALUES) {
            assert!(may_panic(word), "{word}");
        }
    }

    #[test]
    fn names_that_only_look_alike_are_not_taken() {
        for name in [
            "memcpy_stats",
            "my_memset_counter",
            "memmoveable",
            "panicky",
            "runtime.mallocgc",
            "main.panicIndex2",
            "outofbounds_counter",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
    }
}
