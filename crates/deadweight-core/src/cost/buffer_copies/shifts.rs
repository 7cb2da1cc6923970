//! Lines that move bytes within one buffer.

/// `memmove(q, q + 1, n)`, `q.copy_within(1.., 0)`, Go's `copy(q, q[1:])` and
/// `append(q[:i], q[i+1:]...)`.
pub(super) fn is_shift(line: &str) -> bool {
    let named = ["memmove", "copy_within", "copyForwards", "copyBackwards", "copy_backward"];
    named.iter().any(|name| line.contains(name))
        || [" copy(", "\tcopy(", "append("].iter().any(|call| within_itself(line, call))
        || line.starts_with("copy(") && within_itself(line, "copy(")
}

/// Whether the first two arguments of `call` are parts of one slice.
fn within_itself(line: &str, call: &str) -> bool {
    let Some((_, arguments)) = line.split_once(call) else { return false };
    let Some((to, from)) = arguments.split_once(',') else { return false };
    let slice = |argument: &str| argument.trim().split(['[', ')']).next().map(str::to_owned);
    slice(to) == slice(from) && from.contains('[')
}

#[cfg(test)]
mod tests {
    #[test]
    fn shifts_are_distinguished_from_copies_by_their_line() {
        for line in [
            "memmove(q, q + 1, (n - 1) * sizeof *q);",
            "copy(q, q[1:])",
            "v := q[0]; copy(q, q[1:])",
            "w.queue = append(w.queue[:i], w.queue[i+1:]...)",
            "buf.copy_within(n.., 0);",
        ] {
            assert!(super::is_shift(line), "{line}");
        }
        for line in ["copy(out, page[8:])", "memcpy(a, b, n);", "out = append(out, page[2:]...)"] {
            assert!(!super::is_shift(line), "{line}");
        }
    }
}
