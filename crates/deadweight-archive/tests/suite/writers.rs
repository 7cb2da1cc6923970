//! Many writers at once, and writers that are killed: every run that was acknowledged is there, once.
//!
//! A writer is this test's own program, started again with an environment variable.

use crate::places::{Place, both};
use crate::runs::run;
use deadweight_archive::{Archive, Filter};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// What a writer needs: address, first number, how many, the name of its workload.
const VARIABLE: &str = "DEADWEIGHT_TEST_WRITER";
/// Before the id of an acknowledged run.
const SIGN: &str = "acknowledged ";

/// Not a test by itself: the writer.
#[test]
fn writer() {
    let Ok(words) = std::env::var(VARIABLE) else { return };
    let [address, first, runs, workload] =
        words.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
    let mut archive = Archive::open(address).unwrap();
    let first: u64 = first.parse().unwrap();
    for number in first..first + runs.parse::<u64>().unwrap() {
        let added = archive.add(&run(workload, number)).unwrap();
        // Directly, so that it is out when the next run is written.
        std::io::stdout().write_all(format!("\n{SIGN}{}\n", added.id).as_bytes()).unwrap();
    }
}

fn start(place: &Place, first: u64, runs: u64, workload: &str) -> Child {
    start_with(place, first, runs, workload, |_| {})
}

/// Starts a writer whose process is changed before.
pub(crate) fn start_with(
    place: &Place,
    first: u64,
    runs: u64,
    workload: &str,
    change: impl FnOnce(&mut Command),
) -> Child {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["writers::writer", "--exact", "--nocapture"]);
    writer.env(VARIABLE, format!("{} {first} {runs} {workload}", place.address));
    change(&mut writer);
    writer.stdout(Stdio::piped()).spawn().unwrap()
}

/// The ids that a writer acknowledged until it ended; after `most` of them it is killed.
fn acknowledged(mut writer: Child, most: usize) -> Vec<String> {
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut ids = Vec::new();
    for line in lines.map_while(Result::ok) {
        ids.extend(line.strip_prefix(SIGN).map(str::to_owned));
        if ids.len() == most {
            // SIGKILL; what it has written until then still comes.
            writer.kill().unwrap();
        }
    }
    let ended = writer.wait().unwrap();
    assert!(most < usize::MAX || ended.success(), "a writer failed: {ended}");
    ids
}

fn all(archive: &mut Archive) -> BTreeSet<String> {
    let runs = archive.list(&Filter::default()).unwrap();
    let ids: BTreeSet<String> = runs.iter().map(|run| run.run.clone()).collect();
    assert_eq!(ids.len(), runs.len(), "a run is there twice");
    ids
}

#[test]
fn twenty_writers_at_once_lose_nothing_and_write_nothing_twice() {
    for place in both() {
        // All of them make the archive at the same time; every second pair writes the same runs.
        let writers: Vec<Child> = (0..20).map(|i| start(&place, (i / 2) * 20, 20, "w")).collect();
        let ids: BTreeSet<String> =
            writers.into_iter().flat_map(|writer| acknowledged(writer, usize::MAX)).collect();
        assert_eq!(ids.len(), 200);
        let mut archive = Archive::open_existing(&place.address).unwrap();
        assert_eq!(all(&mut archive), ids);
        assert_eq!(archive.check().unwrap().problems, [""; 0]);
    }
}

#[test]
fn a_killed_writer_leaves_every_acknowledged_run() {
    for place in both() {
        for (first, most) in [(0, 1), (1000, 37), (2000, 111)] {
            let ids = acknowledged(start(&place, first, 200, "w"), most);
            assert!((most..200).contains(&ids.len()), "{}", ids.len());
            let mut archive = Archive::open(&place.address).unwrap();
            let there = all(&mut archive);
            assert!(ids.iter().all(|id| there.contains(id)));
            assert_eq!(archive.check().unwrap().problems, [""; 0]);
            // And it can be written on.
            assert!(archive.add(&run("after", first)).unwrap().new);
        }
    }
}
