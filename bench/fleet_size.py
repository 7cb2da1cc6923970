#!/usr/bin/env python3
"""Simulates the tables of many runs: their bytes, and how long queries take; extrapolates to ten million.

    PYTHONPATH=python bench/fleet_size.py [--runs 10000,100000,1000000] [--folder FOLDER]

The rows of a run are as many as in the golden traces and in the corpus of bench/fleet.py: 16 of its two ledgers, 1 finding, 30
counts, 5 builds. Ids are random as hashes are, times are log-normal, names come from lists of realistic length. Days are
partitions. Each query is read from files anew; files are in the page cache.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import duckdb

from deadweight import fleet

DAYS = 100
PER_RUN = {"rows": 16, "findings": 1, "counts": 30, "builds": 5}
PART = 200_000
"""Runs that are made at a time, so that this script needs little memory."""

RUNS = """
SELECT md5('{seed}' || i) AS run, 'workload-' || (i % 200) AS workload, md5('c' || (i // 500)) AS commit,
    1700000000 + (i // 500) * 600 AS commit_time, 'main' AS branch, false AS dirty,
    1700000000 + (i * 86400 * {days} // {total}) AS time, 'deadweight' AS kind,
    'team=' || (i % 20) || '/host-' || (hash(i) % 5000) || '/' || i || '.dwt' AS source,
    '/usr/bin/program-' || (i % 200) || ' --input /data/' || (i % 1000) AS command,
    'program-' || (i % 200) AS subject, 'C++17' AS language, 'GNU C++17 14.2.0 -O2 -g' AS producer,
    md5('b' || (i % 200) || (i // 5000)) AS build_id, 0 AS exit_code,
    'x86_64 | AMD EPYC 9B14 | CPUs ' || (hash(i) % 5 * 16) || ' | Linux 6.1' AS machine, 'x86_64' AS arch,
    'AMD EPYC 9B14' AS cpu, hash(i) % 5 * 16 AS cpus, '6.1.0-26-cloud-amd64' AS kernel,
    '0.1.0' AS deadweight, 1 AS method, ['root', 'user', 'stops'][1 + i % 3] AS rung,
    {ns} AS wall_ns, {ns} AS net_ns, {ns} AS cpu_ns, 0 AS clean_runs, 0 AS clean_ns, 0 AS clean_low_ns,
    0 AS clean_high_ns, []::BIGINT[] AS clean_each_ns, 0 AS max_rss, 1 AS traced_runs, {ns} // 100000 AS records, 0 AS lost,
    0 AS requests, random() AS best_saving, random() * 0.06 AS unexplained, []::VARCHAR[] AS hazards,
    CASE WHEN hash(i) % 1000 = 0 THEN 'cannot be read' ELSE '' END AS error, 'team-' || (i % 20) AS team, {date} AS date
FROM range({first}, {last}) AS t(i)
"""
ROWS = """
SELECT md5('{seed}' || i) AS run, ['wall', 'cpu'][1 + k // 8] AS ledger, 'account-' || ((i + k * 7) % 45) AS account,
    'name of ' || ((i + k * 7) % 45) AS name, {ns} AS ns, random() AS share, {ns} AS low_ns, {ns} AS high_ns,
    k % 3 > 0 AS exact, {date} AS date
FROM range({first}, {last}) AS t(i), range({n}) AS u(k)
"""
FINDINGS = """
SELECT md5('{seed}' || i) AS run, k + 1 AS rank, 'class-' || ((i + k) % 45) AS class, 'program-' || (i % 200) AS process,
    'namespace::function_' || (i % 200 * 7 + k) AS function, '/src/project/module/file_' || (i % 200) || '.cpp' AS file,
    100 + i % 37 AS line, {ns} AS amount_ns, {ns} AS saving_ns, random() AS saving, random() AS low, random() AS high,
    ['exact', 'estimate', 'candidate'][1 + k % 3] AS how,
    'read was called ' || (hash(i) % 1000000) || ' times for 1 byte each; ' || (hash(i) % 100)
        || ' calls of up to 64 KiB would do the same.' AS text, {date} AS date
FROM range({first}, {last}) AS t(i), range({n}) AS u(k)
"""
COUNTS = """
SELECT md5('{seed}' || i) AS run, 'calls/name' || k AS name, floor({ns} / 1000)::DOUBLE AS value,
    floor({ns} / 1000)::DOUBLE AS low, floor({ns} / 1000)::DOUBLE AS high, true AS exact, {date} AS date
FROM range({first}, {last}) AS t(i), range({n}) AS u(k)
"""
BUILDS = """
SELECT md5('{seed}' || i) AS run, '/usr/lib/x86_64-linux-gnu/library-' || (i % 200) || '-' || k || '.so.1' AS path,
    md5('l' || (i % 200) || k) AS build_id, 'C17' AS language, 'GNU C17 14.2.0 -O2 -g' AS producer, {date} AS date
FROM range({first}, {last}) AS t(i), range({n}) AS u(k)
"""
TABLES = {"runs": RUNS, "rows": ROWS, "findings": FINDINGS, "counts": COUNTS, "builds": BUILDS}


def make(folder, total):
    """Write the tables of so many runs."""
    with duckdb.connect() as database:
        database.execute(
            "SET preserve_insertion_order = true; SET memory_limit = '6GB'; SET threads = 2"
        )
        for name, text in TABLES.items():
            for first in range(0, total, PART):
                filled = text.format(
                    seed=total,
                    ns="CAST(exp(16 + 2 * sqrt(-2 * ln(random() + 1e-12)) * cos(6.283 * random())) AS BIGINT)",
                    date=f"DATE '2026-01-01' + CAST(i * {DAYS} // {total} AS INTEGER)",
                    days=DAYS,
                    total=total,
                    first=first,
                    last=min(total, first + PART),
                    n=PER_RUN.get(name, 1),
                )
                database.execute(
                    f"COPY ({filled}) TO '{folder}/{name}' (FORMAT parquet, COMPRESSION zstd, "
                    f"PARTITION_BY (date), FILENAME_PATTERN 'part-{first}-{{i}}', OVERWRITE_OR_IGNORE)"
                )


def measure(folder, total):
    """Yield what the tables are and how long the queries take."""
    for name in TABLES:
        files = list(Path(folder, name).rglob("*.parquet"))
        yield f"`{name}`, bytes per run", sum(file.stat().st_size for file in files) / total
    for name in fleet.queries():
        more = {"unexplained": {"least": 0.0594}, "changed-rows": {"least": 0.5}}.get(name, {})
        times = []
        for _ in range(2):
            start = time.monotonic()
            fleet.query(name, folder, **more)
            times.append(time.monotonic() - start)
        yield f"`{name}`, s", min(times)
    start = time.monotonic()
    with fleet.connect(folder) as database:
        day = "SELECT account, sum(ns) FROM rows WHERE date = '2026-02-01' GROUP BY account"
        database.sql(day).fetchall()
    yield "rows of one day by account, s", time.monotonic() - start


def main():
    """Make and measure each size, and print a table."""
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--runs", default="10000,100000,1000000")
    ask.add_argument("--folder", type=Path)
    options = ask.parse_args()
    sizes = [int(size) for size in options.runs.split(",")]
    found = {}
    for size in sizes:
        folder = options.folder or Path(tempfile.mkdtemp(prefix="deadweight-size-"))
        (folder / str(size)).mkdir(parents=True)
        make(folder / str(size), size)
        found[size] = dict(measure(folder / str(size), size))
        shutil.rmtree(folder / str(size))
    print("| | " + " | ".join(f"{size:,} runs" for size in sizes) + " |")
    print("|---|" + "---:|" * len(sizes))
    for name in found[sizes[0]]:
        values = [
            f"{found[size][name]:.0f}" if "bytes" in name else f"{found[size][name]:.2f}"
            for size in sizes
        ]
        print(f"| {name} | " + " | ".join(values) + " |")
    total = [sum(value for name, value in found[size].items() if "bytes" in name) for size in sizes]
    print("| all tables, bytes per run | " + " | ".join(f"{value:.0f}" for value in total) + " |")


if __name__ == "__main__":
    main()
