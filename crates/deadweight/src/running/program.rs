//! The words of the command line as a program to run. Does not run it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Characters with a meaning in a shell: they make a single word a shell command.
const SHELL: &[u8] = b" \t\n|&;<>()$`\\\"'*?[]#~{}";

/// The words to execute. A single word with shell syntax runs through `/bin/sh`, unless a file has exactly that name.
#[must_use]
pub fn argv(words: &[OsString]) -> Vec<OsString> {
    match words {
        [line] if is_shell(line) => vec!["/bin/sh".into(), "-c".into(), replacing(line)],
        words => words.to_vec(),
    }
}

fn is_shell(word: &OsString) -> bool {
    word.as_bytes().iter().any(|b| SHELL.contains(b)) && !Path::new(word).is_file()
}

/// The line, with `exec` if it is one program with or without redirections: the program then replaces the shell, whose
/// time would disturb the measurement.
fn replacing(line: &OsString) -> OsString {
    let Some(text) = line.to_str() else { return line.clone() };
    let several = text.contains(['|', '&', ';', '(', '{', '\n', '`', '#']);
    let first = text.split_whitespace().next().unwrap_or_default();
    if several || !is_program(first) {
        return line.clone();
    }
    format!("{EXEC}{}", text.trim_start()).into()
}

/// Makes the program replace the shell.
pub const EXEC: &str = "exec ";

/// Whether a word is the name of a program, and not a shell's builtin.
fn is_program(word: &str) -> bool {
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-+".contains(&b));
    let found = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(word).is_file())
    };
    plain && !word.is_empty() && (word.contains('/') || found())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        argv(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_single_word_with_shell_syntax_goes_through_the_shell() {
        assert_eq!(words(&["a | b > c"]), ["/bin/sh", "-c", "a | b > c"]);
        assert_eq!(words(&["x=1 ./prog"]), ["/bin/sh", "-c", "x=1 ./prog"]);
        assert_eq!(words(&["no-such-program <f"]), ["/bin/sh", "-c", "no-such-program <f"]);
        assert_eq!(words(&["if true; then a; fi"]), ["/bin/sh", "-c", "if true; then a; fi"]);
    }

    #[test]
    fn one_program_replaces_the_shell() {
        assert_eq!(words(&["./prog -x"]), ["/bin/sh", "-c", "exec ./prog -x"]);
        assert_eq!(words(&[" cat < f > g"]), ["/bin/sh", "-c", "exec cat < f > g"]);
    }

    #[test]
    fn everything_else_is_executed_as_it_is() {
        assert_eq!(words(&["ls"]), ["ls"]);
        assert_eq!(words(&["./pro-g_1.2+x=y:z"]), ["./pro-g_1.2+x=y:z"]);
        assert_eq!(words(&["echo", "a | b"]), ["echo", "a | b"]);
        assert_eq!(words(&[""]), [""]);
    }

    #[test]
    fn a_file_with_exactly_that_name_is_executed() {
        let dir = std::env::temp_dir().join(format!("deadweight test {}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("a program");
        std::fs::write(&file, "").unwrap();
        assert_eq!(argv(&[file.clone().into()]), [file.into_os_string()]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
