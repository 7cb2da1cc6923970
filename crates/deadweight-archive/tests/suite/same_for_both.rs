//! What holds for every archive, whatever the database.

use crate::places::both;
use crate::runs::run;
use deadweight_archive::{Archive, Filter, Policy};

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
            (1_000_002, (1_000_000, 1_000_004), 3)
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
