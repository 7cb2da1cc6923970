//! What can go wrong, each in one sentence that says what to do; and nothing is lost by it.

use crate::places::{Place, both};
use crate::runs::run;
use crate::server::{PASSWORD, Server, shared};
use deadweight_archive::{Archive, ArchiveError, ErrorKind};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Checks that it is one sentence of this kind, with these words and without the password.
fn assert_says<T>(outcome: Result<T, ArchiveError>, kind: ErrorKind, words: &[&str]) {
    let error = outcome.err().expect("it must fail");
    let said = error.to_string();
    assert_eq!(error.kind, kind, "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert!(!said.contains('\n') && !said.contains(PASSWORD), "{said}");
    assert!(said.matches("; ").count() >= 1, "it must say what to do: {said}");
}

#[test]
fn an_archive_of_a_newer_version_is_refused() {
    for place in both() {
        Archive::open(&place.address).unwrap().add(&run("w", 1)).unwrap();
        place.sql("UPDATE archive SET version = 99");
        let words = ["a newer deadweight", "version 99", "install"];
        assert_says(Archive::open(&place.address), ErrorKind::Newer, &words);
        assert_says(Archive::open_existing(&place.address), ErrorKind::Newer, &words);
        place.sql("UPDATE archive SET version = 1");
        assert_eq!(Archive::open(&place.address).unwrap().series("w").unwrap().points.len(), 1);
    }
}

#[test]
fn tables_of_something_else_are_not_written_to() {
    let place = Place::sqlite();
    place.sql("CREATE TABLE runs (a)");
    assert_says(
        Archive::open(&place.address),
        ErrorKind::Damaged,
        &["something else", "--archive"],
    );
    fs::write(place.file(), "no database, but a text that is long enough".repeat(100)).unwrap();
    assert_says(Archive::open(&place.address), ErrorKind::Damaged, &["not a database"]);
    // In PostgreSQL the archive has a schema of its own.
    let place = Place::postgres(shared());
    place.sql("CREATE TABLE public.runs (a int)");
    Archive::open(&place.address).unwrap().add(&run("w", 1)).unwrap();
}

#[test]
fn what_does_not_exist_is_not_made_by_reading() {
    for place in both() {
        let words = ["no archive", "deadweight --keep"];
        assert_says(Archive::open_existing(&place.address), ErrorKind::Missing, &words);
    }
}

#[test]
fn ids_must_be_those_of_one_run() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        let ids: Vec<String> = (0..20).map(|n| archive.add(&run("w", n)).unwrap().id).collect();
        assert_says(archive.get("ffffffffffffffff"), ErrorKind::Unknown, &["archive list"]);
        assert_says(archive.get("%"), ErrorKind::Unknown, &["letters"]);
        // Of twenty runs, two begin with the same of sixteen digits.
        let first = |id: &String| id[..1].to_owned();
        let twice = ids.iter().find(|id| ids.iter().filter(|o| first(o) == first(id)).count() > 1);
        assert_says(archive.get(&first(twice.unwrap())), ErrorKind::Unknown, &["several"]);
    }
}

#[test]
fn a_run_that_was_changed_is_refused() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        let mut kept = run("w", 1);
        kept.report_json.extend(b" ");
        assert_says(archive.add(&kept), ErrorKind::Refused, &["changed"]);
        let mut kept = run("w", 1);
        kept.tables.rows[0].run = "another".into();
        assert!(archive.add(&kept).is_err());
        assert_eq!(archive.workloads().unwrap(), []);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_found_out_when_it_is_opened_and_can_be_read() {
    let place = Place::sqlite();
    Archive::open(&place.address).unwrap().add(&run("w", 1)).unwrap();
    assert_eq!(fs::metadata(place.file()).unwrap().permissions().mode() & 0o777, 0o600);
    // Root may write anything but what is mounted read-only.
    let folder = place.file().parent().unwrap();
    let Some(_mounted) = Mounted::new(folder, &["--bind"], folder) else { return };
    remount_read_only(folder);
    assert_says(Archive::open(&place.address), ErrorKind::Denied, &["--archive"]);
    let mut archive = Archive::open_existing(&place.address).unwrap();
    assert_eq!(archive.series("w").unwrap().points.len(), 1);
    assert_says(archive.add(&run("w", 2)), ErrorKind::Denied, &["readonly"]);
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let place = Place::sqlite();
    let folder = place.file().parent().unwrap();
    let Some(_mounted) = Mounted::new(Path::new("none"), &["-t", "tmpfs", "-o", "size=1m"], folder)
    else {
        return;
    };
    let mut archive = Archive::open(&place.address).unwrap();
    let mut ids = Vec::new();
    let error = loop {
        match archive.add(&run("w", ids.len() as u64)) {
            Ok(added) => ids.push(added.id),
            Err(error) => break error,
        }
    };
    assert!(ids.len() > 5, "{}", ids.len());
    assert_says(Err::<(), _>(error), ErrorKind::Full, &["free some space"]);
    drop(archive);
    let mut archive = Archive::open_existing(&place.address).unwrap();
    assert_eq!(archive.series("w").unwrap().points.len(), ids.len());
    assert_eq!(archive.check().unwrap().problems, [""; 0]);
}

#[test]
fn a_server_that_is_not_there_or_refuses_is_a_sentence() {
    let server = shared();
    let address = server.address("postgres");
    let none = address.replace("127.0.0.1", "127.0.0.9");
    assert_says(Archive::open(&none), ErrorKind::Lost, &["127.0.0.9", "server runs"]);
    let none = address.replace("127.0.0.1", "no-such-host.invalid");
    assert_says(Archive::open(&none), ErrorKind::Lost, &["no-such-host"]);
    let wrong = address.replace(PASSWORD, "wrong-word");
    let error = Archive::open(&wrong).unwrap_err();
    assert!(!error.to_string().contains("wrong-word"), "{error}");
    assert_says(Err::<(), _>(error), ErrorKind::Denied, &["password", "PGPASSWORD"]);
    let lacking = address.replace(&format!(":{PASSWORD}"), "");
    assert_says(Archive::open(&lacking), ErrorKind::Denied, &["PGPASSWORD"]);
    assert_says(Archive::open(&server.address("nowhere")), ErrorKind::Missing, &["createdb"]);
    let encrypted = format!("{address}?sslmode=require");
    assert_says(Archive::open(&encrypted), ErrorKind::Denied, &["sslmode"]);
    let odd = format!("{address}?port=many");
    assert_says(Archive::open(&odd), ErrorKind::Address, &["postgres://USER"]);
}

#[test]
fn a_user_without_permission_can_only_read() {
    let place = Place::postgres(shared());
    Archive::open(&place.address).unwrap().add(&run("w", 1)).unwrap();
    let user = format!("reader_{}", std::process::id());
    place.sql(&format!(
        "CREATE USER {user} PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA deadweight TO {user};
         GRANT SELECT ON ALL TABLES IN SCHEMA deadweight TO {user}"
    ));
    let address = place.address.replace("postgres://postgres", &format!("postgres://{user}"));
    let mut archive = Archive::open_existing(&address).unwrap();
    assert_eq!(archive.series("w").unwrap().points.len(), 1);
    assert_says(archive.add(&run("w", 2)), ErrorKind::Denied, &["permission denied"]);
}

#[test]
fn a_server_that_restarts_between_and_during_writes_loses_nothing() {
    let server = Server::start("restarted");
    let place = Place::postgres(&server);
    let mut archive = Archive::open(&place.address).unwrap();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let written = (0..150).map(|number| {
                std::thread::sleep(Duration::from_millis(10));
                archive.add(&run("w", number)).unwrap().id
            });
            written.collect()
        });
        std::thread::sleep(Duration::from_millis(300));
        server.restart(Duration::from_millis(500));
        writer.join().unwrap()
    });
    let mut archive = Archive::open(&place.address).unwrap();
    let points = archive.series("w").unwrap().points;
    let mut there: Vec<&String> = points.iter().map(|point| &point.id).collect();
    let mut ids: Vec<&String> = ids.iter().collect();
    there.sort();
    ids.sort();
    assert_eq!(there, ids);
    assert_eq!(archive.check().unwrap().problems, [""; 0]);
}

/// A mount that ends with the test.
struct Mounted<'f>(&'f Path);

impl<'f> Mounted<'f> {
    /// `None`, with a message, without the permission to mount.
    fn new(what: &Path, options: &[&str], folder: &'f Path) -> Option<Self> {
        let mounted = Command::new("mount").args(options).arg(what).arg(folder).output().unwrap();
        if !mounted.status.success() {
            let why = String::from_utf8_lossy(&mounted.stderr);
            eprintln!("SKIPPED: nothing can be mounted here: {why}");
            return None;
        }
        Some(Self(folder))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

fn remount_read_only(folder: &Path) {
    let options = ["-o", "remount,bind,ro"];
    assert!(Command::new("mount").args(options).arg(folder).status().unwrap().success());
}
