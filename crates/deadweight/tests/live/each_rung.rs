//! One test on each rung: root's, an ordinary user's, and that without perf events; and what such tests have in common.

use crate::program;
use crate::rungs::Home;
use crate::truth::leave;
use std::path::Path;
use std::time::{Duration, Instant};

/// For each rung, its name and the words before `deadweight` on a command line that put it there: root, an
/// ordinary user, and root with perf events refused.
pub(crate) fn rungs(home: &Home) -> Result<[(&'static str, Vec<String>); 3], String> {
    let filter = home.put(&program::build("refuse_perf")?, 0o755);
    let filter = [filter.to_str().unwrap(), "EPERM"].map(str::to_owned);
    Ok([("root", vec!["env".to_owned()]), ("user", Vec::new()), ("stops", filter.to_vec())])
}

/// Calls `try_it` with the name and the words of each rung, in a folder of its own that a user may write to.
pub(crate) fn on_each_rung(
    name: &str,
    missing: Option<String>,
    try_it: impl Fn(&str, &Home, &[&str]),
) {
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new(name);
    let rungs = match rungs(&home) {
        Ok(rungs) => rungs,
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    for (rung, words) in rungs {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        try_it(rung, &home, &words);
        for file in ["ready", "done", "t.dwt", "words"] {
            let _ = std::fs::remove_file(home.path().join(file));
        }
    }
}

/// Waits until a file has a line, which the program writes when it is ready.
pub(crate) fn await_line(file: &Path) -> String {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(Instant::now() < until, "{} was never written", file.display()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    // As one line, because line breaks depend on the content.
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}
