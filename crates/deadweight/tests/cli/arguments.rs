//! Verbs, options, help: what deadweight answers without recording anything.

use crate::support::{Bench, run};

#[test]
fn help_teaches_with_examples_and_exit_codes() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for taught in ["deadweight -- ls", "-r 30", "explain tiny-reads", "Exit status", "126", "127"] {
        assert!(help.out.contains(taught), "{taught} is not in:\n{}", help.out);
    }
    let widest = help.out.lines().map(|l| l.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}");
    assert_eq!(run(&["--version"]).out, concat!("deadweight ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn wrong_arguments_are_our_error_with_a_hint() {
    for (arguments, hint) in [
        (&["--bogus", "--", "ls"][..], "deadweight -- ls -l"),
        (&["-r", "0", "--", "ls"], "0 runs"),
        (&["-r", "x", "--", "ls"], "auto"),
        (&["-w", "2", "--", "ls"], "--runs"),
        (&["--width", "7", "--", "ls"], "7"),
        (&[], "COMMAND"),
        (&["report"], "FILE"),
        (&["record", "-o", "x"], "COMMAND"),
        (&["dump", "--between", "1ms", "x", "f"], "1.5ms"),
        (&["dump", "--text", "--between", "2ms", "1ms", "f"], "earlier time first"),
        (&["--pid", "1", "--for", "0s"], "10ms or more"),
        (&["--color", "never", "compare", "a", "b"], "deadweight compare [OPTIONS]"),
        (&["report", "/etc/passwd"], "neither a recording"),
    ] {
        let said = run(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(hint), "{arguments:?}: {}", said.err);
        assert_eq!(said.out, "");
        assert!(said.err.starts_with("deadweight: "), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_mistyped_verb_leads_to_the_right_one() {
    for (word, hint) in
        [("reprot", "deadweight report"), ("help", "--help"), ("version", "--version")]
    {
        let said = run(&[word]);
        assert!(said.code == 127 && said.err.contains(hint), "{word}: {}", said.err);
    }
}

#[test]
fn a_man_page_and_completions_come_from_the_same_definitions() {
    assert!(run(&["generate", "man"]).out.contains(".TH deadweight 1"));
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["generate", shell]);
        assert!(script.code == 0 && script.out.contains("export-json"), "{shell}");
    }
}

#[test]
fn costs_are_explained_and_unknown_ones_lead_to_the_list() {
    let list = run(&["explain"]);
    assert!(list.code == 0 && list.out.contains("tiny-reads"), "{list:?}");
    let one = run(&["explain", "tiny-reads"]);
    assert!(one.code == 0 && one.out.contains("What it is"), "{one:?}");
    let unknown = run(&["explain", "tiny-reeds"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("tiny-reads"), "{}", unknown.err);
}

#[test]
fn a_recording_as_text_is_reported_dumped_and_cut() {
    let bench = Bench::new();
    let text = "task 1 main\n  0 on\n  3000 sample sum <- main\n  50000 exit\n  60000 off dead\n";
    let file = bench.file("t.txt", text);
    let dump = run(&["dump".as_ref(), "--text".as_ref(), file.as_os_str()]);
    assert!(dump.code == 0 && dump.out.contains("sample"), "{dump:?}");
    let words = ["dump", "--text", "--between", "40us", "1ms"].map(std::ffi::OsStr::new);
    let cut = run(&[&words[..], &[file.as_os_str()]].concat());
    assert!(cut.code == 0 && !cut.out.contains("sample") && cut.out.contains("exit"), "{cut:?}");
    let summary = run(&["dump".as_ref(), file.as_os_str()]);
    assert!(summary.out.contains("events"), "{summary:?}");
}
