//! Pages in a real browser: the script runs without an error, nothing is requested, the drawings are what the data says.
//!
//! Needs Chromium and the rules of axe, by which everyone can read a page (`./setup.sh tests` gets both); without them each
//! test prints that it, or the rules, were skipped.

use crate::history::{archive, slower};
use crate::pages::golden;
use crate::support::{Bench, consumers, run};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs before the page's script: it remembers what went wrong.
const BEFORE: &str = "<script>window.bad=[];\
    addEventListener('error',(e)=>bad.push('error: '+e.message));\
    addEventListener('securitypolicyviolation',(e)=>bad.push('refused: '+e.blockedURI));</script>";

/// Runs after it, and leaves its result as the page's title.
const AFTER: &str = include_str!("browser.js");

/// The browser, if there is one.
fn browser(test: &str) -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED {test}: there is no Chromium; ./setup.sh tests installs it");
    }
    found
}

/// Opens a page and returns what [`AFTER`] found wrong.
fn opened(browser: &Path, bench: &Bench, page: &str, width: u32) -> String {
    let axe = std::fs::read_to_string(consumers().join("node_modules/axe-core/axe.min.js"));
    let axe = axe.map(|text| format!("<script>{text}</script>")).unwrap_or_else(|_| {
        eprintln!("SKIPPED rules of axe: the package is missing; ./setup.sh tests gets it");
        String::new()
    });
    let page = page.replacen("<head>", &format!("<head>{BEFORE}"), 1);
    let page = page.replacen("</body>", &format!("{axe}<script>{AFTER}</script></body>"), 1);
    let file = bench.file("opened.html", page);
    let said = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&said.stdout);
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    title.unwrap_or("no page").to_owned()
}

fn page(bench: &Bench, arguments: &[&OsStr]) -> String {
    let file = bench.path("page.html");
    let html: &OsStr = "--html".as_ref();
    let said = run(&[arguments, &["-q".as_ref(), html, file.as_os_str()]].concat());
    assert!(said.code == 0 || arguments[0] == "compare", "{}", said.err);
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn pages_of_recordings_work_in_a_browser() {
    let Some(browser) = browser("pages_of_recordings_work_in_a_browser") else { return };
    for name in ["sqlite-rows", "tar-gzip", "go-http", "contended-mutex"] {
        let bench = Bench::new();
        let text = page(&bench, &["report".as_ref(), golden(name).as_os_str()]);
        for width in [500, 1280] {
            assert_eq!(opened(&browser, &bench, &text, width), "fine", "{name}, {width} wide");
        }
    }
}

#[test]
fn a_page_of_a_comparison_works_in_a_browser() {
    let Some(browser) = browser("a_page_of_a_comparison_works_in_a_browser") else { return };
    let bench = Bench::new();
    let (a, b) = (golden("sleep-cat"), golden("static-hello"));
    let text = page(&bench, &["compare".as_ref(), a.as_os_str(), b.as_os_str()]);
    assert_eq!(opened(&browser, &bench, &text, 1280), "fine");
}

#[test]
fn a_page_of_a_history_works_in_a_browser() {
    let Some(browser) = browser("a_page_of_a_history_works_in_a_browser") else { return };
    let bench = Bench::new();
    let archive = archive(&bench, &slower(11, 40, 22));
    let words = ["history".as_ref(), "sort big.txt".as_ref(), "--html".as_ref(), "-".as_ref()];
    let said = run(&[&words[..], &["--archive".as_ref(), archive.as_os_str()]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    for width in [500, 1280] {
        assert_eq!(opened(&browser, &bench, &said.out, width), "fine", "{width} wide");
    }
}

/// Names that are markup, from a recording of another machine.
#[test]
fn names_are_text_in_a_browser() {
    let Some(browser) = browser("names_are_text_in_a_browser") else { return };
    let bench = Bench::new();
    let name = "<script>bad.push(1)</script><img/src=x/onerror=bad.push(2)>\"\'&amp;\u{202e}";
    let long = "std::map<a>".repeat(400);
    let text = format!(
        "sample-period 1000\ntask 1 {name}\n0 on\n10 sample {name} <- {long}\n20 sample {name}\n\
         30 off blocked futex\n900 on woken-by 2\n910 exit\n1000 off dead\n"
    );
    let trace = bench.file("hostile.txt", text);
    let text = page(&bench, &["report".as_ref(), trace.as_os_str()]);
    assert!(text.contains("onerror"), "the name is in the page");
    assert_eq!(opened(&browser, &bench, &text, 1280), "fine");
}
