//! The queries of docs/archive.md, each run on both databases: they find the same number of rows, and some.

use crate::places::{Place, both};
use crate::runs::run_with;
use deadweight_archive::Archive;

const PAGE: &str = include_str!("../../../../docs/archive.md");

/// The blocks of SQL on the page.
fn queries() -> Vec<&'static str> {
    let blocks = PAGE.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().trim().trim_end_matches(';')).collect()
}

#[test]
fn every_documented_query_finds_something_on_both_databases() {
    let places = both();
    for place in &places {
        let mut archive = Archive::open(&place.address).unwrap();
        for number in 1..=4 {
            // The last is slower and counts more.
            let factor = if number == 4 { 2 } else { 1 };
            archive
                .add(&run_with("sort big.txt", number, |report| {
                    report.runs.clean.wall_ns.median *= factor;
                    report.counts[0].value *= factor;
                }))
                .unwrap();
            archive.add(&run_with("other", number, |_| {})).unwrap();
        }
    }
    let queries = queries();
    assert!(queries.len() >= 10, "{}", queries.len());
    for query in queries {
        let [sqlite, postgres] = [&places[0], &places[1]].map(|place| count(place, query));
        assert!(sqlite > 0, "nothing is found by: {query}");
        assert_eq!(sqlite, postgres, "{query}");
    }
}

fn count(place: &Place, query: &str) -> usize {
    if place.address.starts_with("sqlite:") {
        let connection = rusqlite::Connection::open(place.file()).unwrap();
        let mut statement = connection.prepare(query).unwrap_or_else(|e| panic!("{e}: {query}"));
        let mut rows = statement.query([]).unwrap();
        let mut found = 0;
        while rows.next().unwrap().is_some() {
            found += 1;
        }
        return found;
    }
    let mut client = postgres::Client::connect(&place.address, postgres::NoTls).unwrap();
    client.batch_execute("SET search_path TO deadweight").unwrap();
    client.query(query, &[]).unwrap_or_else(|e| panic!("{e:?}: {query}")).len()
}

#[test]
fn every_table_and_every_column_of_its_own_is_documented() {
    let place = Place::sqlite();
    Archive::open(&place.address).unwrap();
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let sql = "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'";
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let of_report = ["runs", "rows", "findings", "counts", "builds"];
    for column in columns {
        let (table, column): (String, String) = column.unwrap();
        assert!(PAGE.contains(&format!("`{table}`")), "{table}");
        let own = ["moment", "shape", "packed", "trace", "position"].contains(&column.as_str());
        if own || !of_report.contains(&table.as_str()) {
            assert!(PAGE.contains(&format!("`{column}`")), "{table}.{column}");
        }
    }
}
