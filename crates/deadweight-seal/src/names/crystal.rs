//! Crystal's linker names: `*Slice(UInt8)@Slice(T)#hexstring:String` is `Slice(UInt8)#hexstring`.
//!
//! A star; the type; after an at sign the type that defines the method; `#` or `::`; the method; the types of its
//! arguments in angle brackets; the type of its result. Does not apply to inlined functions: debug information holds
//! only the method's name.

/// Operator methods, longer ones before their prefixes.
const SIGNS: [&str; 31] = [
    "<=>", "===", "[]=", "[]?", "[]", "<<", ">>", "<=", ">=", "==", "!=", "=~", "!~", "**", "//",
    "&**", "&+", "&-", "&*", "+", "-", "*", "/", "<", ">", "%", "&", "|", "^", "~", "!",
];

/// Whether Crystal's compiler made this name for a function.
pub(crate) fn is_crystal(name: &str) -> bool {
    name.starts_with("~proc") || name.starts_with('*') && name.len() > 1
}

/// The name as it is written in the source: `Foo#bar`, `Foo.bar`, `->` for a block; none if it is not Crystal's. The
/// name of a function that does not return keeps its types: they show the reason.
pub(crate) fn readable(name: &str) -> Option<String> {
    if name.starts_with("~proc") {
        return Some("->".to_owned());
    }
    let name = name.strip_prefix('*').filter(|name| !name.is_empty())?;
    if name.ends_with(":NoReturn") {
        return Some(name.to_owned());
    }
    let (owner, separator, method) = parts(name)?;
    Some(format!("{owner}{separator}{method}"))
}

/// The type, the separator and the method.
fn parts(name: &str) -> Option<(&str, &'static str, &str)> {
    let mut depth = 0usize;
    let mut owner = None;
    let mut segment = 0;
    for (at, sign) in name.char_indices() {
        match sign {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            '@' => {
                owner.get_or_insert(at);
                segment = at + 1;
            }
            '#' => {
                let owner = &name[..owner.unwrap_or(at)];
                return Some((owner, "#", method(&name[at + 1..])?));
            }
            ':' if name[at..].starts_with("::") => segment = at + 2,
            _ if at == segment && !sign.is_uppercase() && sign != ':' => {
                let end = owner.or_else(|| at.checked_sub(2)).unwrap_or(0);
                let separator = if at == 0 { "" } else { "." };
                return Some((&name[..end], separator, method(&name[at..])?));
            }
            _ => {}
        }
    }
    None
}

/// The method that `text` begins with.
fn method(text: &str) -> Option<&str> {
    let word = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80);
    let mut end = word.count();
    if end == 0 {
        return SIGNS.into_iter().find(|sign| text.starts_with(sign));
    }
    // `empty?`, `map!`, `size=`
    end += usize::from(text[end..].starts_with(['?', '!', '=']));
    // Named arguments may follow: `digest:into:key`, then types in angle brackets.
    Some(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn names_read_as_in_the_source() {
        for (linked, source) in [
            ("*Copied::new:Copied", "Copied.new"),
            ("*Blake3::hexdigest<Slice(UInt8)>:String", "Blake3.hexdigest"),
            ("*Slice(UInt8)@Slice(T)#hexstring:String", "Slice(UInt8)#hexstring"),
            ("*Deque(Nil)@Deque(T)#<<<Nil>:Deque(Nil)", "Deque(Nil)#<<"),
            ("*Slice(UInt8)@Slice(T)#[]<Range(Int64, Int64)>:Slice(UInt8)", "Slice(UInt8)#[]"),
            ("*File@IO::Buffered#flush:File", "File#flush"),
            ("*Time#utc?:Bool", "Time#utc?"),
            (
                "*Hash(String, Tuple(Int32, Foo::Bar))#size:Int32",
                "Hash(String, Tuple(Int32, Foo::Bar))#size",
            ),
            ("*File::Error+@File::Error::to_s<IO+>:Nil", "File::Error+.to_s"),
            ("*puts<String>:Nil", "puts"),
            ("*Thread::current", "Thread.current"),
            ("*raise<IndexError>:NoReturn", "raise<IndexError>:NoReturn"),
            ("~procProc(Slice(UInt8), String)@forms/main.cr:9", "->"),
        ] {
            assert_eq!(readable(linked).as_deref(), Some(source), "{linked}");
        }
    }

    #[test]
    fn other_and_truncated_names_are_left_alone() {
        for name in ["main", "*", "__crystal_main", "*Foo", "*Foo#", "*Foo::", "*((("] {
            assert_eq!(readable(name), None, "{name}");
        }
    }
}
