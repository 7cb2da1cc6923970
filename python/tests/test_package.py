"""The package: programs under deadweight, reports, tables, and the lines that the pages show."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import deadweight
from corpus import ROOT
from deadweight._command import binary

GOLDEN = ROOT / "crates/deadweight-core/tests/golden"
PAGES = ("README.md", "python/README.md", "docs/python.md")


@pytest.fixture(scope="session")
def recording():
    """Whether programs can be recorded here."""
    if subprocess.run([binary(), "doctor"], capture_output=True).returncode:
        pytest.skip("SKIPPED: this machine does not let us record")


def test_a_program_is_weighed_and_its_streams_are_its_own(recording, capfd):
    report = deadweight.weigh(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert capfd.readouterr() == ("out\n", "err\n")
    assert (report.exit_code, report.command[0]) == (3, "sh")
    assert sum(row.ns for row in report.ledger) == report.wall_ns > 0


def test_repeated_runs_have_an_interval(recording):
    report = deadweight.weigh("true | cat", runs=3)
    assert report.clean.count == len(report.clean.each_ns) == 3
    assert report.clean.low_ns <= report.clean.median_ns <= report.clean.high_ns


def test_failures_of_deadweight_are_one_sentence(recording, capfd):
    with pytest.raises(deadweight.DeadweightError, match=r"no-such-program.*PATH") as error:
        deadweight.weigh(["no-such-program"])
    assert "\n" not in str(error.value)
    with pytest.raises(deadweight.DeadweightError, match="No such file"):
        deadweight.report("/no/such/file.dwt")
    with pytest.raises(deadweight.DeadweightError, match="cannot be read as a recording"):
        deadweight.report(b"noise")
    with pytest.raises(deadweight.DeadweightError, match="No such file"):
        deadweight.rows("/no/such/file.dwt")
    assert capfd.readouterr() == ("", "")


def test_a_recording_and_its_report_say_the_same():
    path = GOLDEN / "ls-recursive.dwt"
    of_path, of_bytes = deadweight.report(path), deadweight.report(path.read_bytes())
    assert of_path == of_bytes == deadweight.report(json.dumps(of_path.json).encode())
    shown = subprocess.run([binary(), "report", path, "--color", "never"], capture_output=True)
    assert str(of_path) == shown.stdout.decode()
    assert of_path.row("net-work").ns > 0 and of_path.row("no-such-row").ns == 0


def test_unknown_fields_are_tolerated():
    data = dict(deadweight.report(GOLDEN / "ls-recursive.dwt").json)
    data["later"] = data["ledger"][0]["later"] = 1
    report = deadweight.Report.from_json(json.dumps(data))
    assert report.json["later"] == 1 and report.ledger[0].ns == data["ledger"][0]["ns"]


def test_html_escapes_foreign_names():
    data = dict(deadweight.report(GOLDEN / "contended-mutex.dwt").json)
    data["command"] = ["<script>alert(1)</script>"]
    data["findings"][0]["text"] = data["ledger"][0]["note"] = "<img src=x>"
    html = deadweight.Report.from_json(json.dumps(data))._repr_html_()
    assert "<script" not in html and "<img" not in html
    assert html.count("<tr>") == len(data["ledger"]) + 1


def test_tables_hold_what_reports_say():
    path = GOLDEN / "contended-mutex.dwt"
    report, rows = deadweight.report(path), deadweight.rows(path)
    wall = [row for row in rows.to_pylist() if row["ledger"] == "wall"]
    assert [(row["account"], row["ns"]) for row in wall] == [
        (r.account, r.ns) for r in report.ledger
    ]
    runs = deadweight.rows(path.read_bytes(), "runs", workload="w", commit="c").to_pylist()
    assert [(r["workload"], r["commit"], r["wall_ns"]) for r in runs] == [
        ("w", "c", report.wall_ns)
    ]
    for table in deadweight.TABLES:
        every = deadweight.rows(GOLDEN, table)
        assert every.schema == deadweight.schema(table)
    damaged = deadweight.rows(b"noise", "runs").to_pylist()[0]
    assert "neither a recording" in damaged["error"] and damaged["wall_ns"] == 0


def blocks():
    """The Python blocks of the pages."""
    for page in PAGES:
        for number, block in enumerate(
            re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
        ):
            yield pytest.param(block, id=f"{page}:{number}")


@pytest.mark.parametrize("block", list(blocks()))
def test_the_lines_that_pages_show_run(block, recording, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for golden in GOLDEN.glob("*.dwt"):
        Path("recordings").mkdir(exist_ok=True)
        Path("recordings", golden.name).write_bytes(golden.read_bytes())
    exec(compile(block, "a page", "exec"), {"__name__": "page"})
