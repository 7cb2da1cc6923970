//! Truths about unusual code: damaged files, code that is in no file, code that changes, programs
//! without names. The program ends as it would, the report says in one sentence what is missing, and there is
//! no finding about it.

use crate::program;
use crate::truth::Truth;
use deadweight_report::report::Report;
use object::{Object, ObjectSection};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `program` ends well, and of the warnings exactly one names `place`: it says `words`.
fn warns_once(truth: Truth, place: &str, words: &'static str) -> Truth {
    let place = place.to_owned();
    truth.expect(format!("one warning of {place}: {words}"), move |report| {
        let about = report.warnings.iter().filter(|warning| warning.contains(&place));
        let about: Vec<_> = about.collect();
        report.exit.code == 0 && about.len() == 1 && about[0].contains(words)
    })
}

/// The bytes of a test program, copied for a test that damages them.
fn copy(name: &str, called: &str) -> Result<PathBuf, String> {
    let path = program::scratch_folder().join(called);
    fs::copy(program::build(name)?, &path).map_err(|error| error.to_string())?;
    Ok(path)
}

/// A copy of `realloc_line` whose sections `damaged` hold noise.
fn damaged(called: &str, damaged: &[&str]) -> Result<PathBuf, String> {
    let path = copy("realloc_line", called)?;
    let mut bytes = fs::read(&path).expect("it was just copied");
    let ranges: Vec<(u64, u64)> = {
        let file = object::File::parse(bytes.as_slice()).expect("the compiler made it");
        let of = |name: &&str| file.section_by_name(name).and_then(|section| section.file_range());
        damaged.iter().filter_map(of).collect()
    };
    assert_eq!(ranges.len(), damaged.len(), "it has these sections");
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    for (start, len) in ranges {
        let start = usize::try_from(start).expect("a small file");
        let len = usize::try_from(len).expect("a small file");
        for byte in &mut bytes[start..start + len] {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = noise.to_be_bytes()[0];
        }
    }
    fs::write(&path, bytes).expect("our own folder");
    Ok(path)
}

/// The truth about a program at a path; a reason there is none skips it.
fn of(path: Result<PathBuf, String>, arguments: &str) -> (Truth, String) {
    match path {
        Ok(path) => {
            let path = path.display().to_string();
            (Truth::of(&format!("{path} {arguments}")), path)
        }
        Err(reason) => (Truth::of("true").lacking(reason), String::new()),
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_32_bit_program_is_timed_and_its_calls_are_not_guessed() {
    let path = program::scratch_folder().join("narrow");
    warns_once(Truth::of("@narrow"), &path.display().to_string(), "is a 32-bit program")
        .rows(&["net-work", "wait-cpu"], 0.9..=1.0)
        .expect("no call is named".to_owned(), |report| {
            !report.ledger.iter().any(|row| row.note.contains("write"))
        })
        .silent()
        .check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_a_program_makes_is_said_to_be_nameless() {
    warns_once(Truth::of("@made_code"), "[anonymous]", "is in no file").silent().check();
}

/// Removes the perf map that a program left in `/tmp`.
fn sweep(report: &Report) {
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", report.subject.pid));
}

/// Its code has the name of its perf map, even if that holds escape sequences.
#[cfg(target_arch = "x86_64")]
fn listed(truth: Truth) -> Truth {
    truth.expect("the made function has its listed name".to_owned(), |report| {
        sweep(report);
        let hottest = report.top.first();
        report.exit.code == 0
            && hottest.is_some_and(|f| f.function == "spin\u{1b}[2J" && f.image == "[jit]")
            && !report.warnings.iter().any(|warning| warning.contains("is in no file"))
    })
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_a_program_makes_and_lists_has_names() {
    listed(Truth::of("@made_code spin")).silent().check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_list_of_a_program_in_a_container_is_found_there() {
    // Another number than ours, in a /tmp of its own that ends with it.
    let made = Truth::of("unshare -pfm --mount-proc sh -c");
    let program = program::build("made_code").unwrap_or_else(|reason| panic!("{reason}"));
    // The program itself may lie below the /tmp that is hidden.
    let line = format!(
        "exec 3< {} && mount -t tmpfs none /tmp && cat <&3 > /tmp/made_code && \
         chmod +x /tmp/made_code && exec /tmp/made_code spin longer 3<&-",
        program.display()
    );
    listed(made.argument(Path::new(&line))).check();
}

#[test]
fn functions_of_a_script_have_the_names_that_node_lists() {
    if let Err(reason) = program::tool("node") {
        eprintln!("SKIPPED the names of node's functions: {reason}");
        return;
    }
    let script = program::scratch_folder().join("steps.js");
    let text = "function steps(n) { let s = 0; while (n !== 1) { n = n % 2 ? 3 * n + 1 : n / 2; s++; } return s; }
        let most = 0;
        for (let i = 1; i < 400000; i++) most = Math.max(most, steps(i));
        console.log(most);";
    std::fs::write(&script, text).unwrap();
    Truth::of("node --perf-basic-prof")
        .argument(&script)
        .expect("steps is named at its file".to_owned(), |report| {
            sweep(report);
            let ours = report.top.iter().filter(|f| f.file.ends_with("steps.js"));
            report.exit.code == 0 && ours.map(|f| f.share).sum::<f64>() > 0.2
        })
        .check();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_a_program_changes_is_not_read_from_its_file() {
    let path = program::scratch_folder().join("patched");
    warns_once(Truth::of("@patched"), &path.display().to_string(), "may have changed it")
        .silent()
        .check();
}

#[test]
fn a_program_whose_file_is_replaced_is_still_read_as_it_was() {
    let (truth, path) = of(copy("replaced", "replaced-copy"), "");
    let place = path.clone();
    // It replaces its own file: each attempt needs a new copy.
    truth
        .before(move || drop(copy("replaced", "replaced-copy")))
        .expect("its function is named at its line".to_owned(), move |report| {
            let hottest = report.top.first();
            report.exit.code == 0
                && hottest.is_some_and(|f| f.function == "mix" && f.file.ends_with("replaced.c"))
                && !report.warnings.iter().any(|warning| warning.contains(&place))
        })
        .silent()
        .check();
}

#[test]
fn damaged_lines_leave_functions() {
    let (truth, path) = of(damaged("damaged-lines", &[".debug_line"]), "2000");
    warns_once(truth, &path, "debug information without lines")
        .first_finding(&["buffer-copies"])
        .expect("its place is a function".to_owned(), |report| {
            let sites = report.findings.iter().flat_map(|finding| &finding.sites);
            sites.clone().any(|s| s.function == "put" || s.function == "main")
                && sites.clone().all(|site| site.line == 0)
        })
        .check();
}

#[test]
fn damaged_debug_information_leaves_functions() {
    let (truth, path) = of(damaged("damaged-units", &[".debug_info"]), "2000");
    warns_once(truth, &path, "debug information").first_finding(&["buffer-copies"]).check();
}

#[test]
fn damaged_unwind_tables_leave_the_innermost_functions() {
    let (truth, path) = of(damaged("damaged-frames", &[".eh_frame"]), "2000");
    warns_once(truth, &path, "damaged unwind tables").never(&["missed-inlining"]).check();
}

#[test]
fn a_program_without_names_is_said_to_be() {
    let stripped = copy("realloc_line", "nameless").and_then(|path| {
        let stripped = Command::new("objcopy").arg("--strip-all").arg(&path).status();
        let done = stripped.is_ok_and(|status| status.success());
        if done { Ok(path) } else { Err("objcopy is not installed".to_owned()) }
    });
    let (truth, path) = of(stripped, "2000");
    warns_once(truth, &path, "neither symbols nor debug information")
        .first_finding(&["buffer-copies"])
        .check();
}

#[test]
fn section_headers_that_lead_nowhere_leave_a_program_without_names() {
    let broken = copy("realloc_line", "headless").inspect(|path| {
        let mut bytes = fs::read(path).expect("it was just copied");
        let beyond = u64::try_from(bytes.len() * 3).expect("a small file");
        bytes[0x28..0x30].copy_from_slice(&beyond.to_le_bytes());
        fs::write(path, bytes).expect("our own folder");
    });
    let (truth, path) = of(broken, "2000");
    warns_once(truth, &path, "is a broken ELF file").never(&["missed-inlining"]).check();
    let _ = fs::remove_file(Path::new(&path));
}
