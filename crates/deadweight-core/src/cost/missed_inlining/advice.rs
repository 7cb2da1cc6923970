//! What to do about calls of small functions, and what may leave them as they are. Does not measure.

/// What to do, in the words of a language.
pub(super) fn remedy(language: &str, through_pointer: bool) -> &'static str {
    match (language, through_pointer) {
        ("C++", true) => {
            "Make the class or method final, take the function object as a template parameter instead of \
             std::function, or sort the objects by type and call per type."
        }
        ("Go", true) => {
            "Use the concrete type instead of the interface in the loop, or pass a slice per call \
             instead of an item. A profile for the compiler (-pgo) can inline hot calls too."
        }
        (_, true) => "Pass a batch per call, or choose the function before the loop.",
        ("C" | "C++", _) => {
            "Define it `static inline` in the header, or build with -flto. Then the loop can keep \
             values in registers that it now loads again after every call."
        }
        ("Rust", _) => {
            "Put #[inline] on it if it is in another crate, or lto = \"thin\" in the profile."
        }
        ("Go", _) => {
            "Move the rare part into a function of its own so that the rest fits the budget of 80, \
             and remove //go:noinline, defer and recover from it."
        }
        ("Zig", _) => "Declare it `inline fn`, or remove `noinline`.",
        ("Crystal", _) => "Put @[AlwaysInline] on it.",
        _ => "Put it where the compiler sees it when it compiles the caller.",
    }
}

/// What may leave everything as it is.
pub(super) fn stays(name: &str) -> String {
    format!(
        "{name} changes a value in memory: inlining saves nothing where each turn waits for that value, and the compiler \
         cannot keep it in a register"
    )
}
