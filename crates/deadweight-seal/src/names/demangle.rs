//! Linker names in readable form: `alloc::vec::Vec<T>::push`, `std::string::append`.
//!
//! Without parameters, return types, hashes and suffixes of clones (`.isra.0`): a reader looks for the function. Bounded
//! in time and length for any name. Does not find names; see `symbol_table`.

use crate::names::crystal;
use cpp_demangle::DemangleOptions;
use std::fmt::{self, Write};

/// Longer names are cut.
const LONGEST: usize = 2_000;

/// Mangled names longer than this are left as they are.
const LONGEST_MANGLED: usize = 16_000;

/// The readable form of a linker name; the name itself where it is not mangled.
pub(crate) fn demangle(name: &str) -> String {
    let (name, stub) = match name.strip_suffix("@plt") {
        Some(name) => (name, "@plt"),
        None => (name, ""),
    };
    let name = without_version(name);
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let plain = c_library_function(without_clone_suffixes(name));
    let mut readable = rust(plain).or_else(|| cpp(plain)).unwrap_or_else(|| cut(&other(plain)));
    readable.push_str(stub);
    readable
}

/// `memcpy@@GLIBC_2.14` without the version. Zig's names have no at sign that is followed by a capital letter.
fn without_version(name: &str) -> &str {
    match name.split_once("@@").or_else(|| name.split_once("@GLIBC")) {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

/// Without the suffixes that compilers append to the name of a part or a clone of a function.
fn without_clone_suffixes(name: &str) -> &str {
    const MARKS: [&str; 7] =
        [".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".specialized."];
    let first = MARKS.iter().filter_map(|mark| name.find(mark)).min();
    match first {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// `memcpy` for `__memcpy_avx_unaligned_erms`: the C library has variants for kinds of CPUs.
fn c_library_function(name: &str) -> &str {
    const FUNCTIONS: [&str; 24] = [
        "memcpy",
        "memmove",
        "mempcpy",
        "memset",
        "memcmp",
        "memchr",
        "memrchr",
        "rawmemchr",
        "strlen",
        "strnlen",
        "strcmp",
        "strncmp",
        "strcpy",
        "strncpy",
        "stpcpy",
        "strcat",
        "strchr",
        "strchrnul",
        "strrchr",
        "strstr",
        "strcasecmp",
        "strncasecmp",
        "wcslen",
        "wmemset",
    ];
    const KINDS: [&str; 10] =
        ["sse", "ssse", "avx", "evex", "erms", "generic", "simd", "sve", "asimd", "unaligned"];
    let variant = || {
        let (function, kind) = name.strip_prefix("__")?.split_once('_')?;
        let kind = kind.trim_start_matches("chk_");
        let known = FUNCTIONS.contains(&function) && KINDS.iter().any(|k| kind.starts_with(k));
        known.then_some(function)
    };
    variant().unwrap_or(name)
}

fn rust(name: &str) -> Option<String> {
    let mangled = name.starts_with("_R") || (name.starts_with("_ZN") && name.contains("17h"));
    if !mangled || name.len() > LONGEST_MANGLED {
        return None;
    }
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    let mut out = Bounded::default();
    // The alternate form omits the hash. An error means that the length limit was reached.
    let _ = write!(out, "{symbol:#}");
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") || name.len() > LONGEST_MANGLED {
        return None;
    }
    let Ok(symbol) = cpp_demangle::BorrowedSymbol::new(name.as_bytes()) else {
        return leading_names(name);
    };
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut out = Bounded::default();
    let _ = symbol.structured_demangle(&mut out, &options);
    // An empty argument list leaves its comma.
    (!out.0.is_empty()).then(|| out.0.replace(", >", ">"))
}

/// The qualified name of a C++ function without template arguments, for names with expressions that the demangler
/// does not know: `std::swap`.
fn leading_names(mangled: &str) -> Option<String> {
    let rest = mangled.strip_prefix("_Z")?;
    let rest = rest.strip_prefix('N').map_or(rest, |nested| nested.trim_start_matches(['V', 'K']));
    let (mut rest, mut names) = match rest.strip_prefix("St") {
        Some(rest) => (rest, vec!["std"]),
        None => (rest, Vec::new()),
    };
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(len) = rest[..digits].parse::<usize>() else { break };
        let Some(name) = rest.get(digits..digits.checked_add(len)?) else { break };
        names.push(name);
        rest = &rest[digits + len..];
    }
    (names.last() != Some(&"std")).then(|| cut(&names.join("::"))).filter(|name| !name.is_empty())
}

/// Names of Crystal and Zig.
fn other(name: &str) -> String {
    crystal::readable(name).unwrap_or_else(|| without_numbers(name))
}

/// `sort.block` from `sort.block__anon_24226`: Zig numbers anonymous items.
fn without_numbers(name: &str) -> String {
    const MARKS: [&str; 4] = ["__anon_", "__struct_", "__union_", "__enum_"];
    let (mut plain, mut rest) = (String::new(), name);
    while let Some((at, mark)) = MARKS
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, mark)))
        .filter(|(at, _)| *at > 0 || !plain.is_empty())
        .min()
    {
        let behind = &rest[at + mark.len()..];
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let kept = if digits > 0 { at } else { at + mark.len() };
        plain.push_str(&rest[..kept]);
        rest = &behind[digits..];
    }
    plain.push_str(rest);
    plain
}

fn cut(name: &str) -> String {
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// Text with a length limit.
#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_read_as_in_the_source() {
        for (mangled, readable) in [
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_Znwm", "operator new"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("main", "main"),
            ("main.main", "main.main"),
            ("runtime.goexit.abi0", "runtime.goexit.abi0"),
            ("sum.constprop.0", "sum"),
            ("_ZN3foo3barEv.cold", "foo::bar"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("read@plt", "read@plt"),
            ("__memcpy_avx_unaligned_erms", "memcpy"),
            ("__memset_chk_avx2_unaligned", "memset"),
            ("__GI___libc_write", "__libc_write"),
            ("_Znwm@plt", "operator new@plt"),
            ("*Foo#bar<Int32>:Int32", "Foo#bar"),
            ("fmt.format__anon_1234", "fmt.format"),
            ("sort.block__anon_24226__struct_24344.lessThan", "sort.block.lessThan"),
            ("is__anon_ymous", "is__anon_ymous"),
            ("_Zbroken", "_Zbroken"),
            (
                "_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_\
                 move_constructibleIS4_ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_",
                "std::swap",
            ),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), readable);
        }
    }

    #[test]
    fn hostile_names_are_bounded() {
        // Each substitution doubles the text.
        let doubling = format!("_Z1fI{}E", "1AIS_S_E".repeat(64));
        assert!(demangle(&doubling).len() <= super::LONGEST);
        assert!(demangle(&"é".repeat(4_000)).len() <= super::LONGEST);
        assert!(demangle(&format!("_R{}", "N".repeat(20_000))).len() <= super::LONGEST);
    }
}
