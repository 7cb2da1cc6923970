#!/usr/bin/env python3
"""Measures the page of long recordings: the time it takes beyond the report, and its size.

  bench/pages.py [--turns N,N] [--times N] [--binary FILE]

Two Python processes wake each other in turn: about 11 events for each turn. Prints one line for each recording:
events, seconds of `report` alone and with `--html` (medians), what the page adds, bytes of the page. As root; build
deadweight for release.
"""
import argparse, json, os, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TURNS = """import os, sys
a, b = os.pipe(), os.pipe()
turns = int(sys.argv[1])
if os.fork() == 0:
    for _ in range(turns): os.read(a[0], 1); os.write(b[1], b'x')
    os._exit(0)
for _ in range(turns): os.write(a[1], b'x'); os.read(b[0], 1)
"""


def seconds(words, times):
    """The median of several runs."""
    each = []
    for _ in range(times):
        start = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        each.append(time.monotonic() - start)
    return statistics.median(each)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--turns", default="1000,90000,900000")
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    given = options.parse_args()
    print("| events | report | with the page | the page adds | size of the page |\n|---:|---:|---:|---:|---:|")
    for turns in given.turns.split(","):
        with tempfile.TemporaryDirectory() as folder:
            trace, page, data = (os.path.join(folder, name) for name in ("t.dwt", "p.html", "r.json"))
            record = [given.binary, "record", "-q", "-o", trace, "--", sys.executable, "-c", TURNS, turns]
            subprocess.run(record, check=True)
            report = [given.binary, "report", trace]
            subprocess.run(report + ["-q", "--export-json", data], check=True)
            events = json.load(open(data))["runs"]["traced"]["records"]
            alone, both = seconds(report, given.times), seconds(report + ["--html", page], given.times)
            size = os.path.getsize(page)
            print(f"| {events:,} | {alone:.2f} s | {both:.2f} s | {both - alone:.2f} s | {size / 1000:.0f} kB |".replace(",", " "))


if __name__ == "__main__":
    main()
