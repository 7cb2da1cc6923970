//! What holds for every archive, whatever the database.

use crate::places::{Place, both};
use crate::runs::run;
use deadweight_archive::{Archive, ArchiveError, Filter, Kept, Policy};

#[test]
fn a_run_comes_back_as_it_was_kept() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        let mut kept = run("w", 1);
        let added = archive.add(&kept).unwrap();
        assert!(added.new && added.id == kept.tables.run.run);
        assert_eq!(archive.get(&added.id[..8]).unwrap(), kept);
        assert!(!archive.add(&kept).unwrap().new);
        assert_eq!(archive.trace(&added.id).unwrap(), None);
        kept.trace = Some(b"a trace".repeat(1000));
        assert!(!archive.add(&kept).unwrap().new);
        assert_eq!(archive.trace(&added.id).unwrap(), kept.trace);
        assert_eq!(archive.list(&Filter::default()).unwrap(), [kept.tables.run.clone()]);
        let checked = archive.check().unwrap();
        assert_eq!(checked.problems, [""; 0]);
        assert_eq!((checked.version, checked.tables[0]), (1, ("runs", 1)));
    }
}

#[test]
fn a_series_is_in_order_of_time() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        for number in [3, 1, 2] {
            archive.add(&run("w", number)).unwrap();
            archive.add(&run("other", number)).unwrap();
        }
        let series = archive.series("w").unwrap();
        assert_eq!(series.points.iter().map(|p| p.time).collect::<Vec<_>>(), [1, 2, 3]);
        let point = &series.points[1];
        assert_eq!(
            (point.ns, point.interval, point.clean_runs),
            (1_000_002.0, (1_000_000.0, 1_000_004.0), 3)
        );
        assert_eq!(point.rows().collect::<Vec<_>>(), [("net-work", 999_992), ("tiny-reads", 10)]);
        assert_eq!(point.counts().collect::<Vec<_>>(), [("calls", 7.0)]);
        let workloads = archive.workloads().unwrap();
        assert_eq!(
            workloads.iter().map(|w| (w.name.as_str(), w.runs)).collect::<Vec<_>>(),
            [("other", 3), ("w", 3)]
        );
    }
}

#[test]
fn pruning_keeps_the_last_of_each_workload() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        for number in 1..=5 {
            archive.add(&run("a", number)).unwrap();
            archive.add(&run("b", number)).unwrap();
        }
        let policy = Policy { keep_last: Some(2), workload: Some("a".into()), ..Policy::default() };
        let dry = archive.prune(&Policy { dry_run: true, ..policy.clone() }).unwrap();
        assert_eq!(dry.runs.len(), 3);
        assert_eq!(archive.prune(&policy).unwrap().runs.len(), 3);
        assert_eq!(archive.series("a").unwrap().points.len(), 2);
        assert_eq!(archive.series("b").unwrap().points.len(), 5);
        let old = Policy { before: Some(3), ..Policy::default() };
        assert_eq!(archive.prune(&old).unwrap().runs.len(), 2);
        assert_eq!(archive.check().unwrap().problems, [""; 0]);
    }
}

#[test]
fn an_export_is_the_same_archive_in_the_other_database() {
    let [one, other] = both();
    for (from, to) in [(&one, &other), (&other, &Place::sqlite())] {
        let mut archive = Archive::open(&from.address).unwrap();
        for number in 0..3 {
            let mut kept = run("w", number);
            kept.trace = (number == 1).then(|| vec![0, 255, 10, 13]);
            archive.add(&kept).unwrap();
        }
        let mut lines = Vec::new();
        let written: Result<Vec<_>, ArchiveError> = archive.export(true, |line| {
            lines.push(line.to_owned());
            Ok(())
        });
        assert!(written.unwrap().is_empty());
        assert!(lines.iter().all(|line| Kept::is_line(line) && !line.contains('\n')));
        let mut copy = Archive::open(&to.address).unwrap();
        let read: Vec<Kept> = lines.iter().map(|line| Kept::from_line(line).unwrap()).collect();
        copy.add_all(&read).unwrap();
        for kept in &read {
            let run = &kept.tables.run.run;
            assert_eq!(archive.get(run).unwrap(), copy.get(run).unwrap());
            assert_eq!(archive.trace(run).unwrap(), copy.trace(run).unwrap());
            assert_eq!(copy.trace(run).unwrap(), kept.trace);
        }
        assert_eq!(copy.check().unwrap().problems, [""; 0]);
    }
    for damaged in
        ["", "{}", "{\"deadweight_archive\":1,\"tables\":{}}", "{\"deadweight_archive\":2"]
    {
        assert!(Kept::from_line(damaged).is_err());
    }
}

#[test]
fn a_check_names_what_is_damaged() {
    for place in both() {
        let mut archive = Archive::open(&place.address).unwrap();
        let id = archive.add(&run("w", 1)).unwrap().id;
        archive.add(&run("w", 2)).unwrap();
        place.sql(&format!(
            "UPDATE runs SET workload = 'x', shape = 'none', trace = 'none' WHERE run = '{id}'"
        ));
        place.sql(&format!("DELETE FROM reports WHERE run <> '{id}'"));
        let problems = archive.check().unwrap().problems.join("; ");
        for words in
            ["have no report", "names of rows", "1 traces are missing", &format!("damaged: {id}")]
        {
            assert!(problems.contains(words), "{words}: {problems}");
        }
        assert!(archive.series("x").unwrap().points[0].rows().next().is_none());
        // What is whole is saved.
        archive.add(&run("w", 3)).unwrap();
        let mut lines = Vec::new();
        let damaged: Result<Vec<_>, ArchiveError> = archive.export(true, |line| {
            lines.push(line.to_owned());
            Ok(())
        });
        let damaged: Vec<String> = damaged.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!((damaged.len(), lines.len()), (1, 2), "{damaged:?}");
        assert!(damaged[0].contains("it is damaged"), "{damaged:?}");
    }
}
