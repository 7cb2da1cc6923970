//! The definitions as a whole: which words are which options.

use super::*;
use clap::CommandFactory;

fn parse(line: &str) -> Result<Cli, String> {
    let words = std::iter::once("deadweight").chain(line.split_whitespace());
    Cli::try_parse_from(words).map_err(|e| e.to_string())
}

fn command(line: &str) -> Vec<OsString> {
    parse(line).unwrap().run.command
}

#[test]
fn the_definitions_hold_together() {
    Cli::command().debug_assert();
}

#[test]
fn a_command_starts_after_two_dashes_or_with_the_first_word() {
    assert_eq!(command("-- ls -l"), ["ls", "-l"]);
    assert_eq!(command("ls -l --color"), ["ls", "-l", "--color"]);
    assert_eq!(command("-r 5 ls -r"), ["ls", "-r"]);
    assert_eq!(command("-- record -x"), ["record", "-x"]);
    assert_eq!(command("--top -- ls"), ["ls"]);
    assert_eq!(command("ls -- report"), ["ls", "--", "report"]);
    assert_eq!(command("ls report"), ["ls", "report"]);
}

#[test]
fn proving_is_asked_for() {
    let asked = |line: &str| parse(line).unwrap().run.prove.prove;
    assert_eq!(asked("--prove -- ls"), Some(Classes::All));
    assert_eq!(asked("--prove ls"), Some(Classes::All));
    assert_eq!(asked("ls --prove"), None);
    let two = Classes::These(vec!["gc".into(), "wait-disk".into()]);
    assert_eq!(asked("--prove=gc,wait-disk -- ls"), Some(two));
    assert!(parse("--prove=wait-disc -- ls").unwrap_err().contains("`wait-disk` is one"));
    assert!(parse("--prove-budget 5s -- ls").unwrap_err().contains("--prove"));
    assert!(parse("--prove -i -w 1 -- ls").unwrap().run.ignore_failure.is_some());
    assert!(parse("--prove -r 9 -- ls").unwrap().run.runs.is_some());
    assert!(parse("-i -- ls").unwrap_err().contains("--runs"));
    assert!(parse("--prove --pid 7").unwrap().run.prove.prove.is_some());
    assert!(parse("--prove -w 1 --pid 7").unwrap_err().contains("--pid"));
    assert!(parse("--prove -i --pid 7").unwrap_err().contains("--pid"));
    assert!(parse("--list-proofs").unwrap().run.prove.list_proofs);
    assert!(parse("report f.dwt --prove").unwrap_err().contains("--prove"));
}

#[test]
fn the_first_word_may_be_a_verb() {
    assert!(matches!(parse("run -r auto -- ls").unwrap().verb,
        Some(Verb::Run(r)) if r.runs == Some(Runs::Auto) && r.command == ["ls"]));
    assert!(matches!(parse("report f.dwt --cpu").unwrap().verb,
        Some(Verb::Report(r)) if r.view.cpu));
    assert!(matches!(parse("record -o f -- ls -o").unwrap().verb,
        Some(Verb::Record(r)) if r.command == ["ls", "-o"]));
}

#[test]
fn values_are_checked_where_they_are_given() {
    assert!(parse("-r 0 -- ls").unwrap_err().contains("0 runs"));
    assert!(parse("-r many -- ls").unwrap_err().contains("`auto`"));
    assert!(parse("-w 3 -- ls").unwrap_err().contains("--runs"));
    assert!(parse("--bogus -- ls").unwrap_err().contains("--bogus"));
    assert!(parse("").is_err());
    assert_eq!("a:2".parse(), Ok(Of { name: "a".into(), number: Some(2) }));
    assert_eq!("a:b".parse(), Ok(Of { name: "a:b".into(), number: None }));
    assert!("a:0".parse::<Of>().is_err() && ":1".parse::<Of>().is_err());
    assert_eq!("1.5ms".parse(), Ok(Moment(1_500_000)));
    assert_eq!("20us".parse(), Ok(Moment(20_000)));
    assert_eq!("5".parse::<Stay>(), "5s".parse());
    assert_eq!("10ms".parse(), Ok(Stay(std::time::Duration::from_millis(10))));
    for short in ["0", "0s", "5ns", "9ms", "-1s", "nan"] {
        assert!(short.parse::<Stay>().unwrap_err().contains("10ms or more"), "{short}");
    }
    assert!("soon".parse::<Stay>().unwrap_err().contains("seconds"));
    assert_eq!("20M".parse(), Ok(Size(20 << 20)));
    assert_eq!("100KiB".parse(), Ok(Size(100 << 10)));
    assert!("1".parse::<Size>().is_err() && "-1G".parse::<Size>().is_err());
    assert!("soon".parse::<Moment>().is_err() && "-1s".parse::<Moment>().is_err());
}
