//! Archives of every earlier version are opened and brought to this one: files that these versions made, in
//! tests/archives, and databases made by their steps.
//!
//! For a new version: keep a few runs with its first deadweight, `VACUUM` the file, and commit it as `version-N.db`.

use crate::places::Place;
use crate::runs::run;
use crate::server::shared;
use deadweight_archive::Archive;
use std::fs;
use std::path::Path;

/// The steps, in order.
const STEPS: [&str; 1] = [include_str!("../../src/schema/0001.sql")];

#[test]
fn files_of_every_version_are_opened() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/archives");
    for version in 1..=STEPS.len() {
        let place = Place::sqlite();
        fs::copy(folder.join(format!("version-{version}.db")), place.file()).unwrap();
        let mut archive = Archive::open(&place.address).unwrap();
        let points = archive.series("w").unwrap().points;
        let times: Vec<(i64, f64)> = points.iter().map(|point| (point.time, point.ns)).collect();
        assert_eq!(times, [(1, 1_000_001.0), (2, 1_000_002.0)]);
        assert_eq!(points[0].rows().next(), Some(("net-work", 999_991)));
        let kept = archive.get(&points[0].id).unwrap();
        assert_eq!(kept.tables.findings.len(), 1);
        assert_eq!(archive.trace(&points[1].id).unwrap().as_deref(), Some(&b"a trace"[..]));
        assert!(archive.add(&run("w", 3)).unwrap().new);
        let checked = archive.check().unwrap();
        assert_eq!((checked.version, checked.problems.len()), (STEPS.len(), 0), "{checked:?}");
    }
}

#[test]
fn databases_of_every_version_are_opened() {
    for version in 1..=STEPS.len() {
        let place = Place::postgres(shared());
        place.sql("CREATE SCHEMA deadweight");
        for step in &STEPS[..version] {
            place.sql(&step.replace("{clustered}", ""));
        }
        place.sql(&format!("INSERT INTO archive (version) VALUES ({version})"));
        let mut archive = Archive::open(&place.address).unwrap();
        assert!(archive.add(&run("w", 3)).unwrap().new);
        assert_eq!(archive.check().unwrap().version, STEPS.len());
    }
}

/// Not a test: writes the file of this version, when asked to.
#[test]
fn write_the_file_of_this_version() {
    let Some(file) = std::env::var_os("DEADWEIGHT_TEST_ARCHIVE") else { return };
    let address = format!("sqlite:{}", file.to_str().unwrap());
    let mut archive = Archive::open(&address).unwrap();
    archive.add(&run("w", 1)).unwrap();
    let mut second = run("w", 2);
    second.trace = Some(b"a trace".to_vec());
    archive.add(&second).unwrap();
    drop(archive);
    let smaller = "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM";
    rusqlite::Connection::open(file).unwrap().execute_batch(smaller).unwrap();
}
