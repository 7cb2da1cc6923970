//! The tables as every format writes them, read back.

use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use deadweight_report::report::{Finding, Report, Row};
use deadweight_report::tables::{Origin, tables};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

/// Bytes that can be read after a writer is gone.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn content(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A report with a ledger of two rows, a finding, and numbers that no measurement has.
fn report() -> Report {
    let row = |account: &str, ns| Row { account: account.into(), ns, ..Row::default() };
    let mut report = Report {
        wall_ns: 100,
        cpu_ns: u64::MAX,
        ledger: vec![row("net-work", 90), row("unexplained", 10)],
        findings: vec![Finding { class: "tiny-reads".into(), ..Finding::default() }],
        ..Report::default()
    };
    report.runs.clean.each_ns = vec![3, 1, 2];
    report
}

fn written(mut writer: Box<dyn Writer>, times: usize) {
    for number in 0..times {
        let id = run_id(&number.to_le_bytes());
        writer.add(tables(&id, &report(), &Origin::default())).unwrap();
    }
    writer.finish().unwrap();
}

/// The tables as files.
fn as_files(parquet: bool, times: usize) -> Vec<(Table, Vec<u8>)> {
    let all: Vec<_> = Table::ALL.map(|table| (table, Bytes::default())).into();
    let output = files(parquet, all.clone()).unwrap();
    written(Box::new(Batches::new(Table::ALL.into(), output)), times);
    all.into_iter().map(|(table, bytes)| (table, bytes.content())).collect()
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn check_runs(batch: &RecordBatch) {
    assert_eq!(batch.schema().fields(), Table::Runs.schema().fields());
    let cpu = batch.column_by_name("cpu_ns").unwrap().as_primitive::<Int64Type>();
    assert_eq!(cpu.value(0), i64::MAX);
    let each = batch.column_by_name("clean_each_ns").unwrap().as_list::<i32>().value(0);
    assert_eq!(each.as_primitive::<Int64Type>().values(), &[3, 1, 2]);
    let id = batch.column_by_name("run").unwrap().as_string::<i32>();
    assert_eq!((id.value(0), id.null_count()), ("af5570f5a1810b7af78caf4bc70a660f", 0));
}

#[test]
fn parquet_has_all_rows_and_is_the_same_each_time() {
    let files = as_files(true, 5000);
    assert_eq!(files, as_files(true, 5000));
    for (table, content) in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(content)).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let version = metadata.iter().find(|each| each.key == "deadweight.tables").unwrap();
        assert_eq!(version.value.as_deref(), Some("1"));
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        let expected = match table {
            Table::Runs | Table::Findings => 5000,
            Table::Rows => 10_000,
            Table::Counts | Table::Builds => 0,
        };
        assert_eq!(count(&batches), expected, "{table:?}");
        if table == Table::Runs {
            check_runs(&batches[0]);
        }
    }
}

#[test]
fn arrow_files_have_all_rows() {
    let files = as_files(false, 3);
    let (_, runs) = &files[0];
    let batches: Vec<_> =
        FileReader::try_new(Cursor::new(runs), None).unwrap().map(Result::unwrap).collect();
    check_runs(&batches[0]);
    assert_eq!((count(&batches), files.len()), (3, 5));
}

#[test]
fn a_stream_of_all_tables_names_each() {
    let bytes = Bytes::default();
    let output = stream(bytes.clone(), false);
    written(Box::new(Batches::new(Table::ALL.into(), output)), 5000);
    let content = bytes.content();
    let mut rest = Cursor::new(&content[..]);
    let mut found = std::collections::BTreeMap::<String, usize>::new();
    while rest.position() < content.len() as u64 {
        let reader = StreamReader::try_new(&mut rest, None).unwrap();
        let name = reader.schema().metadata()["deadweight.table"].clone();
        *found.entry(name).or_default() += count(&reader.map(Result::unwrap).collect::<Vec<_>>());
    }
    let found: Vec<_> = found.iter().map(|(name, rows)| (name.as_str(), *rows)).collect();
    let expected =
        [("builds", 0), ("counts", 0), ("findings", 5000), ("rows", 10_000), ("runs", 5000)];
    assert_eq!(found, expected);
}

#[test]
fn a_stream_of_one_table_is_a_single_one() {
    let bytes = Bytes::default();
    let output = stream(bytes.clone(), true);
    written(Box::new(Batches::new(vec![Table::Rows], output)), 5000);
    let content = bytes.content();
    let reader = StreamReader::try_new(Cursor::new(content), None).unwrap();
    assert_eq!(count(&reader.map(Result::unwrap).collect::<Vec<_>>()), 10_000);
}

#[test]
fn lines_name_their_table_first_and_have_every_column() {
    let bytes = Bytes::default();
    let escaped = |line: &str| format!("{line}\n");
    written(Box::new(Ndjson::new(bytes.clone(), Table::ALL.into(), escaped)), 1);
    let text = String::from_utf8(bytes.content()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["table"].as_str().unwrap()).collect();
    assert_eq!(names, ["runs", "rows", "rows", "findings"]);
    assert!(text.lines().all(|line| line.starts_with("{\"table\":\"")));
}

/// The columns are the fields of the rows: none is forgotten.
#[test]
fn a_table_has_a_column_for_each_field() {
    let all = serde_json::to_value(schemars::schema_for!(Tables)).unwrap();
    for table in Table::ALL {
        let schema = table.schema();
        let mut columns: Vec<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut fields: Vec<&str> = described(&all, table).map(|(name, _)| name).collect();
        columns.sort_unstable();
        fields.sort_unstable();
        assert_eq!(columns, fields, "{table:?}");
    }
}

/// `docs/tables.md` says what the code says. `UPDATE_EXPECT=1` writes it again.
#[test]
fn the_page_of_the_tables_is_up_to_date() {
    let all = serde_json::to_value(schemars::schema_for!(Tables)).unwrap();
    let mut page = include_str!("page.template").to_owned();
    for table in Table::ALL {
        let text: std::collections::BTreeMap<_, _> = described(&all, table).collect();
        page += &format!(
            "\n## `{}`\n\n{}\n\n| column | type | |\n|---|---|---|\n",
            table.name(),
            about(table)
        );
        for field in table.schema().fields() {
            let kind = field.data_type().to_string();
            let kind = kind.replace("non-null ", "").to_lowercase();
            page += &format!("| `{}` | {kind} | {} |\n", field.name(), text[field.name().as_str()]);
        }
    }
    expect_test::expect_file!["../../../docs/tables.md"].assert_eq(&page);
}

fn about(table: Table) -> &'static str {
    match table {
        Table::Runs => "One row for each report.",
        Table::Rows => {
            "One row for each row of a ledger. Those of `wall` add up to the run's `wall_ns`."
        }
        Table::Findings => {
            "One row for each finding. Findings may overlap: their savings do not add up within a run."
        }
        Table::Counts => "One row for each count.",
        Table::Builds => "One row for each binary that code ran in.",
    }
}

/// The fields of a table's rows, with their descriptions.
fn described(all: &serde_json::Value, table: Table) -> impl Iterator<Item = (&str, &str)> {
    let name = match table {
        Table::Runs => "RunRow",
        Table::Rows => "LedgerRow",
        Table::Findings => "FindingRow",
        Table::Counts => "CountRow",
        Table::Builds => "BuildRow",
    };
    let fields = all["$defs"][name]["properties"].as_object().unwrap();
    fields.iter().map(|(name, field)| (name.as_str(), field["description"].as_str().unwrap()))
}
