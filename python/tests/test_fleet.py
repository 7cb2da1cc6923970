"""The fleet: recordings in storage become what single reports say, whatever fails on the way."""

import os
import re
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import answers
from conftest import COUNT, DAMAGED
from corpus import COMMITS, ROOT
from s3 import upload

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")

import deadweight
from deadweight import fleet

LABELS = {"labels": ("team", "commit")}


def table(folder, name, fs=None):
    found = ds.dataset(f"{folder}/{name}", filesystem=fs, format="parquet", partitioning="hive")
    return found.to_table().to_pylist()


def check(folder, expected, fs=None):
    """The tables hold exactly what single reports say."""
    reports, damaged = expected
    runs = {row["run"]: row for row in table(folder, "runs", fs)}
    assert len(table(folder, "runs", fs)) == COUNT
    assert {run for run, row in runs.items() if row["error"]} == damaged and len(damaged) == min(
        DAMAGED, 10
    )
    assert all(runs[run]["wall_ns"] == report["wall_ns"] for run, report in reports.items())
    assert all(runs[run]["team"] == report["_"]["team"] for run, report in reports.items())
    rows = {
        (r["run"], r["account"]): (r["ns"], r["share"], r["low_ns"], r["high_ns"], r["exact"])
        for r in table(folder, "rows", fs)
        if r["ledger"] == "wall"
    }
    assert rows == answers.ledgers(reports)
    findings = {
        (r["run"], r["rank"]): (
            r["class"],
            r["process"],
            (r["function"], r["file"], r["line"]),
            r["saving_ns"],
            r["how"],
        )
        for r in table(folder, "findings", fs)
    }
    assert findings == answers.findings(reports)
    counts = {(r["run"], r["name"]): r["value"] for r in table(folder, "counts", fs)}
    assert counts == {
        (run, count["name"]): count["value"]
        for run, report in reports.items()
        for count in report.get("counts", [])
    }


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*.parquet")}


@pytest.fixture(scope="module")
def done(traces, tmp_path_factory):
    """The tables, made here."""
    folder = tmp_path_factory.mktemp("tables")
    result = fleet.weigh_all(traces, folder, engine="local", traces_per_shard=7, **LABELS)
    assert (result.runs, result.unread) == (COUNT, 0)
    return folder


def test_from_s3_to_s3_on_ray_as_in_single_reports(traces, expected, s3, ray):
    upload(traces, s3, "source")
    s3.create_dir("tables")
    result = fleet.weigh_all(
        (s3, "source"), (s3, "tables/all"), workers=2, traces_per_shard=5, **LABELS
    )
    assert (result.runs, result.damaged) == (COUNT, len(expected[1]))
    check("tables/all", expected, s3)
    savings = fleet.query("top-savings", (s3, "tables/all"), limit=1000).to_pylist()
    assert [row["class"] for row in savings] == [row[0] for row in answers.top_savings(expected[0])]


def test_a_folder_has_the_same(done, expected):
    check(done, expected)


def test_again_changes_nothing_and_a_changed_source_replaces(traces, tmp_path):
    source, to = tmp_path / "source", tmp_path / "to"
    some = sorted(traces.rglob("*.dwt"))[20:32]
    for path in some:
        copy = source / path.relative_to(traces)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    weigh = partial(fleet.weigh_all, source, to, engine="local", traces_per_shard=4)
    assert weigh().runs == 12
    before = content(to)
    again = weigh()
    assert (again.shards_done_before, again.files_removed, content(to)) == (3, 0, before)
    gone = source / some[0].relative_to(traces)
    gone.unlink()
    fewer = weigh()
    runs = [row["run"] for row in table(to, "runs")]
    assert fewer.runs == len(runs) == len(set(runs)) == 11 and fewer.files_removed > 0


def workers():
    """Ray's processes that are weighing; not their children, so named until exec."""

    def weighs(pid):
        return b"ray::weigh_shard" in Path(f"/proc/{pid}/cmdline").read_bytes()

    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if weighs(entry.name) and not weighs(parent):
                yield int(entry.name)
        except OSError:
            continue


def test_a_worker_killed_in_the_middle_changes_nothing(traces, done, ray, tmp_path):
    killed, over = [], threading.Event()

    def kill():
        while not killed and not over.is_set():
            if list((tmp_path / "_shards").glob("*")):
                for worker in list(workers())[:1]:
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        fleet.weigh_all(traces, tmp_path, workers=2, traces_per_shard=7, **LABELS)
    finally:
        over.set()
        killer.join()
    assert killed and content(tmp_path) == content(done)


def test_time_and_memory_have_limits(traces, tmp_path):
    one = tmp_path / "source"
    one.mkdir()
    (one / "a.dwt").write_bytes(
        (ROOT / "crates/deadweight-core/tests/golden/ls-recursive.dwt").read_bytes()
    )
    late = fleet.weigh_all(one, tmp_path / "late", engine="local", seconds=0.0)
    small = fleet.weigh_all(one, tmp_path / "small", engine="local", memory=1 << 20)
    errors = [table(tmp_path / name, "runs")[0]["error"] for name in ("late", "small")]
    assert (late.damaged, small.damaged) == (1, 1)
    assert "longer than 0 s" in errors[0] and errors[1], errors


def test_what_storage_refuses_is_tried_again(traces, tmp_path, monkeypatch):
    from deadweight.fleet import _weighing

    source = tmp_path / "source"
    source.mkdir()
    (source / "a.dwt").write_bytes(b"noise")

    def refuse(*_):
        raise OSError("503")

    with monkeypatch.context() as patch:
        patch.setattr(_weighing, "_pieces", refuse)
        first = fleet.weigh_all(source, tmp_path / "to", engine="local")
    second = fleet.weigh_all(source, tmp_path / "to", engine="local")
    assert (first.unread, second.unread, second.shards_done_before) == (1, 0, 0)
    assert "neither a recording" in table(tmp_path / "to", "runs")[0]["error"]


def test_the_queries_answer_as_plain_python(done, expected):
    reports, _ = expected
    ask = lambda name, **more: fleet.query(name, done, **more).to_pylist()
    savings = [
        (r["class"], r["process"], r["function"], r["file"], r["line"], r["saving_s"])
        for r in ask("top-savings", limit=1000)
    ]
    assert [s[:5] for s in savings] == [s[:5] for s in answers.top_savings(reports)]
    assert [s[5] for s in savings] == pytest.approx([s[5] for s in answers.top_savings(reports)])
    teams = [tuple(row.values()) for row in ask("classes-per-team")]
    assert [t[:3] for t in teams] == [t[:3] for t in answers.classes_per_team(reports)]
    assert [t[4] for t in teams] == pytest.approx([t[4] for t in answers.classes_per_team(reports)])
    unknown = [(r["run"], r["unexplained"]) for r in ask("unexplained", least=0.001)]
    assert [u[0] for u in unknown] == [u[0] for u in answers.unexplained(reports, 0.001)]
    grown = {(r["workload"], r["account"], r["runs"]) for r in ask("grown-rows", least_ns=1000)}
    assert grown == answers.grown_rows(reports, 1000) and grown
    changed = {
        (r["workload"], r["account"], r["commit"]): r["change"]
        for r in ask("changed-rows", least=0.01)
    }
    wanted = answers.changed_rows(reports, 0.01, list(COMMITS))
    assert changed == pytest.approx(wanted) and changed


def test_wrong_names_of_queries_get_a_sentence(done):
    with pytest.raises(deadweight.DeadweightError, match="choose one of changed-rows, "):
        fleet.query("no-such", done)
    with pytest.raises(deadweight.DeadweightError, match="it has limit"):
        fleet.query("top-savings", done, least=1)


def recipe(name):
    """A recipe of the page."""
    return re.search(rf"```python {name}\n(.*?)```", (ROOT / "docs/fleet.md").read_text(), re.S)[1]


def test_the_recipe_for_spark(traces, done, tmp_path):
    sql = pytest.importorskip("pyspark.sql", reason="SKIPPED: PySpark is not installed")
    spark = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    try:
        given = {"spark": spark, "source": str(traces), "destination": str(tmp_path / "rows")}
        exec(recipe("spark"), given)
    finally:
        spark.stop()
    key = lambda row: (row["run"], row["ledger"], row["account"], row["ns"])
    rows = [key(row) for row in table(tmp_path, "rows")]
    assert sorted(rows) == sorted(key(row) for row in table(done, "rows"))


def test_the_recipe_for_dask(traces, done, tmp_path):
    distributed = pytest.importorskip("distributed", reason="SKIPPED: Dask is not installed")
    with distributed.Client(n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        given = {"client": client, "source": traces, "destination": tmp_path}
        exec(recipe("dask"), given)
    runs = [row["run"] for row in table(tmp_path, "runs")]
    assert sorted(runs) == sorted(row["run"] for row in table(done, "runs"))
