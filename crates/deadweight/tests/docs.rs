//! Runs the console blocks of the README and the docs: what a page shows is what happens.
//!
//! A block that begins with ```` ```console run ```` is run line by line after `$ `, in an empty
//! folder, with this deadweight on the path. A line `...` stands for any lines, `…` in a line for
//! any text: numbers differ from run to run. Blocks marked `console` alone are not run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a block and what the page says it prints.
struct Shown {
    page: String,
    line: usize,
    command: String,
    output: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).expect("docs/ is part of the repository");
    let mut pages: Vec<PathBuf> = docs.flatten().map(|entry| entry.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

fn shown(page: &Path) -> Vec<Shown> {
    let text = std::fs::read_to_string(page).expect("a page is text");
    let mut commands: Vec<Shown> = Vec::new();
    let mut running = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            running = line == "```console run";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| running) {
            commands.push(Shown {
                page: page.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                line: index + 1,
                command: command.to_owned(),
                output: Vec::new(),
            });
        } else if let Some(command) = commands.last_mut().filter(|_| running) {
            command.output.push(line.to_owned());
        }
    }
    commands
}

fn run(command: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let binary = Path::new(env!("CARGO_BIN_EXE_deadweight"));
    let mut path = vec![binary.parent().expect("a binary is in a folder").to_path_buf()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let out = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).expect("no folder holds a colon"))
        .output()
        .expect("every machine has sh");
    String::from_utf8_lossy(&out.stdout).lines().map(|l| l.trim_end().to_owned()).collect()
}

/// Whether `line` is `pattern`, in which `…` is any text.
fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether `lines` are what `patterns` say, in which `...` is any lines.
fn matches(patterns: &[String], lines: &[String]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((p, rest)) if p == "..." => (0..=lines.len()).any(|n| matches(rest, &lines[n..])),
        Some((p, rest)) => lines
            .split_first()
            .is_some_and(|(line, after)| line_matches(p, line) && matches(rest, after)),
    }
}

#[test]
fn pages_show_what_happens() {
    let commands: Vec<Shown> = pages().iter().flat_map(|page| shown(page)).collect();
    assert!(!commands.is_empty(), "no page has a block marked `console run`");
    for shown in commands {
        let got = run(&shown.command);
        assert!(
            matches(&shown.output, &got),
            "{}:{}: `{}` printed\n{}\nbut the page says\n{}",
            shown.page,
            shown.line,
            shown.command,
            got.join("\n"),
            shown.output.join("\n")
        );
    }
}

#[test]
fn patterns_match_what_they_should_and_nothing_else() {
    let of = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&of("a … c\n...\nz"), &of("a b c\nx\ny\nz")));
    assert!(!matches(&of("a … c\n...\nz"), &of("a b c\nx\ny")));
    assert!(!matches(&of("a"), &of("a\nb")));
    assert!(!line_matches("ab…bc", "abc"));
}
