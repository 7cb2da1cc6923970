#!/usr/bin/env python3
"""Measures the fleet: 1 000 recordings on a real S3 server into tables, by one worker and by two.

    PYTHONPATH=python DEADWEIGHT=target/release/deadweight bench/fleet.py [--traces 1000] [--keep FOLDER] [--commands FILE]

Checks that the tables hold what single reports say, and that the queries answer as plain Python does; with --clickhouse (and
the package chdb) ClickHouse too. Writes tables for bench/FLEET.md. As root, on a quiet machine.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python/tests"), str(ROOT / "python")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

import answers
import corpus
import pyarrow.dataset as ds
import pyarrow.fs
import ray
from s3 import Server, upload

from deadweight import fleet
from deadweight._command import binary

LABELS = ("team", "commit")
MIB = 1 << 20


class Peaks(threading.Thread):
    """The largest memory of Ray's workers that are weighing, and of the command below them."""

    def __init__(self):
        """Start to watch."""
        super().__init__(daemon=True)
        self.worker = self.command = 0
        self.over = threading.Event()
        self.start()

    def run(self):
        """Look twenty times a second."""
        while not self.over.wait(0.05):
            for entry in Path("/proc").glob("[0-9]*"):
                self.look(entry)

    def look(self, entry):
        """Read the peak that the kernel has kept for a process."""
        try:
            words = (entry / "cmdline").read_bytes()
            if b"ray::weigh_shard" in words:
                self.worker = max(self.worker, peak(entry))
            elif b"deadweight\0rows\0" in words:
                self.command = max(self.command, peak(entry))
        except OSError:
            pass


def peak(entry):
    """The largest resident set of a process, in bytes."""
    lines = (entry / "status").read_text().splitlines()
    # A process that has just ended has none.
    return max(
        (1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), default=0
    )


def table(folder, name, fs):
    """A table that was written, as rows."""
    found = ds.dataset(f"{folder}/{name}", filesystem=fs, format="parquet", partitioning="hive")
    return found.to_table().to_pylist()


def check(folder, fs, reports, damaged):
    """The tables hold exactly what single reports say."""
    runs = table(folder, "runs", fs)
    assert {row["run"] for row in runs if row["error"]} == damaged
    assert len(runs) == len(reports) + len(damaged)
    rows = {
        (r["run"], r["account"]): (r["ns"], r["share"], r["low_ns"], r["high_ns"], r["exact"])
        for r in table(folder, "rows", fs)
        if r["ledger"] == "wall"
    }
    assert rows == answers.ledgers(reports)
    classes = {(r["run"], r["rank"]): r["class"] for r in table(folder, "findings", fs)}
    assert classes == {key: found[0] for key, found in answers.findings(reports).items()}
    return len(rows)


def timed(work):
    """The seconds that something takes, and its result."""
    start = time.monotonic()
    result = work()
    return time.monotonic() - start, result


def by_workers(source, destination, rounds):
    """The least wall times of one worker and of two, alternating."""
    times = {1: [], 2: []}
    for number in range(rounds):
        for workers in times:
            to = (destination[0], f"{destination[1]}/{workers}-{number}")
            more = {"workers": workers, "traces_per_shard": 50, "labels": LABELS}
            work = partial(fleet.weigh_all, source, to, **more)
            seconds, result = timed(work)
            times[workers].append(seconds)
    return min(times[1]), min(times[2]), result


def memory(fs):
    """Peaks of a worker for shards of several sizes: they show what a recording more costs."""
    for size in (10, 50, 250):
        peaks = Peaks()
        fleet.weigh_all((fs, "traces"), (fs, f"tables/m{size}"), workers=2, traces_per_shard=size)
        peaks.over.set()
        yield size, peaks


def clickhouse(folder, reports):
    """The same queries in ClickHouse: their numbers of rows beside DuckDB's."""
    from chdb import session

    del reports
    server = session.Session()
    server.query("CREATE DATABASE fleet")
    server.query("USE fleet")
    for name in ("runs", "rows", "findings", "counts", "builds"):
        files = f"file('{folder}/{name}/**/*.parquet', 'Parquet')"
        server.query(f"CREATE VIEW {name} AS SELECT * FROM {files}")
    for name, text in fleet.queries().items():
        filled = (
            text.replace("$limit", "1000").replace("$least_ns", "1000").replace("$least", "0.01")
        )
        seconds, said = timed(lambda filled=filled: str(server.query(filled, "CSV")))
        yield name, len(said.splitlines()), seconds


def main():
    """Measure all, and print tables."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--traces", type=int, default=1000)
    ask.add_argument("--rounds", type=int, default=3)
    ask.add_argument(
        "--keep", type=Path, help="make the recordings here, or use those that are here"
    )
    ask.add_argument(
        "--commands", type=Path, help="record these lines of shell, on all rungs in turn"
    )
    ask.add_argument("--clickhouse", action="store_true")
    options = ask.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="deadweight-fleet-"))
    if not any(folder.rglob("*.dwt")):
        others = options.commands.read_text().splitlines() if options.commands else ()
        corpus.make(folder, options.traces, 10, binary(), others=others)
    load = os.getloadavg()[0]
    single, (reports, damaged) = timed(lambda: corpus.reports(folder, binary()))
    size = sum(path.stat().st_size for path in folder.rglob("*.dwt"))
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20
    )
    ray.get([ray.remote(lambda: time.sleep(1)).remote() for _ in range(2)])
    with Server() as server:
        fs = pyarrow.fs.S3FileSystem(**server.options)
        upload(folder, fs, "traces")
        fs.create_dir("tables")
        one, two, result = by_workers((fs, "traces"), (fs, "tables"), options.rounds)
        rows = check(f"tables/2-{options.rounds - 1}", fs, reports, damaged)
        print(
            f"{result.runs} recordings, {size / MIB:.0f} MiB, {result.damaged} damaged; {rows} rows of ledgers "
            f"as in single reports. Load average {load:.1f} at the start.\n"
        )
        print("| from S3 | s | of one worker's |\n|---|---:|---:|")
        print(f"| single reports, one after another | {single:.1f} | |")
        print(f"| one worker (minimum of {options.rounds}) | {one:.1f} | 1 |")
        print(f"| two workers | {two:.1f} | {two / one:.2f} |\n")
        print("| recordings in a shard | largest worker | largest command |\n|---|---:|---:|")
        for size, found in memory(fs):
            print(f"| {size} | {found.worker / MIB:.0f} MiB | {found.command / MIB:.0f} MiB |")
    local = Path(tempfile.mkdtemp(prefix="deadweight-tables-"))
    files = pyarrow.fs.LocalFileSystem()
    one, two, _ = by_workers((files, str(folder)), (files, f"{local}-times"), options.rounds)
    print("\n| from files | s | of one worker's |\n|---|---:|---:|")
    print(f"| one worker | {one:.1f} | 1 |\n| two workers | {two:.1f} | {two / one:.2f} |")
    fleet.weigh_all(folder, local, workers=2, labels=LABELS)
    ray.shutdown()
    print("\n| query | rows | s |\n|---|---:|---:|")
    parameters = {"top-savings": {"limit": 1000}, "grown-rows": {"least_ns": 1000}}
    parameters |= {"unexplained": {"least": 0.01}, "changed-rows": {"least": 0.01}}
    for name in fleet.queries():
        seconds, found = timed(
            lambda name=name: fleet.query(name, local, **parameters.get(name, {}))
        )
        print(f"| `{name}` | {found.num_rows} | {seconds:.2f} |")
    for name, count, seconds in clickhouse(local, reports) if options.clickhouse else ():
        print(f"| `{name}`, ClickHouse | {count} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
