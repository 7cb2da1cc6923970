//! Rules for Markdown: one title, working links, console blocks with a known mark.
//!
//! A block marked `console run` is run by `crates/deadweight/tests/docs.rs`; a block marked `console` is
//! not run. Any other mark is a typing error, and would silently run nothing. Does not check style.

use super::{Complaint, complain};

/// Judges a Markdown file by itself.
pub(crate) fn judge(file: &str, text: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut titles = 0;
    for (number, line) in prose(text) {
        if line.starts_with("# ") {
            titles += 1;
            if titles > 1 {
                complaints.push(complain(
                    file,
                    number,
                    "a second `# Title`: one file, one subject",
                ));
            }
        }
    }
    if titles == 0 {
        complaints.push(complain(file, 1, "no `# Title`"));
    }
    for (index, line) in text.lines().enumerate() {
        let Some(mark) = line.strip_prefix("```console") else { continue };
        if !["", " run"].contains(&mark) {
            let says =
                format!("`console{mark}` is no known mark: `console` shows, `console run` runs");
            complaints.push(complain(file, index + 1, says));
        }
    }
    complaints
}

/// Relative links whose file, or heading in it, does not exist. `read` gives the text of a path
/// from the root; a folder has the empty text.
pub(crate) fn dead_links(
    file: &str,
    text: &str,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { file.to_owned() } else { beside(file, path) };
            match read(&path) {
                None => complaints.push(complain(file, number, format!("dead link `{target}`"))),
                Some(page)
                    if !heading.is_empty() && !anchors(&page).contains(&heading.to_owned()) =>
                {
                    complaints.push(complain(file, number, format!("no heading for `{target}`")));
                }
                Some(_) => {}
            }
        }
    }
    complaints
}

/// The lines outside code fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// What the links of a line lead to.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// `path` as seen from `file`'s folder, from the root, without `..`.
fn beside(file: &str, path: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The anchors that a page's headings make.
fn anchors(text: &str) -> Vec<String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{dead_links, judge};

    #[test]
    fn one_title_and_fences_do_not_count() {
        assert!(judge("a.md", "# One\n```sh\n# not a title\n```\n## Part\n").is_empty());
        assert_eq!(judge("a.md", "# One\n# Two\n")[0].line, 2);
        assert_eq!(judge("a.md", "words\n")[0].text, "no `# Title`");
    }

    #[test]
    fn a_mistyped_mark_is_found() {
        assert!(judge("a.md", "# A\n```console run\n$ true\n```\n```console\n```\n").is_empty());
        assert_eq!(judge("a.md", "# A\n```console runs\n$ true\n```\n")[0].line, 2);
    }

    #[test]
    fn links_are_followed_from_the_files_own_folder() {
        let read = |path: &str| match path {
            "docs/method.md" => Some("# Method\n## The law, exactly\n".to_owned()),
            "README.md" => Some("# Read me\n".to_owned()),
            _ => None,
        };
        let text = "# A\n[m](method.md) [r](../README.md#read-me) [x](gone.md)\n\
                    [h](method.md#the-law-exactly) [u](https://example.org) [b](method.md#nothing)\n";
        let found: Vec<String> =
            dead_links("docs/A.md", text, read).into_iter().map(|c| c.text).collect();
        assert_eq!(found, ["dead link `gone.md`", "no heading for `method.md#nothing`"]);
    }
}
