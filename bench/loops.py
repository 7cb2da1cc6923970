#!/usr/bin/env python3
"""Whether deadweight knows why a loop is slow: pairs of programs with and without a reason, and loops that have none.

bench/loops.py [--bin DEADWEIGHT] [--runs N]

For each pair of `loops/pairs.cpp`: the time of the slow and the fast form (medians of interleaved runs), and what single
runs of deadweight on each say. Prints a table; exits with 1 if a control or a fast form has a finding of these classes, or
if a slow form's first one is of another class.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = {
    "cache-misses",
    "small-pages",
    "branch-misses",
    "slow-instructions",
    "false-sharing",
}
# The classes that are right for the slow form; none: a control.
PAIRS = {
    "grid": {"cache-misses"},
    "list": {"cache-misses"},
    "records": {"cache-misses"},
    "tree": {"cache-misses"},
    "table": {"cache-misses", "small-pages"},
    "pages": {"small-pages", "cache-misses"},
    "condition": {"branch-misses"},
    "rules": {"branch-misses"},
    "division": {"slow-instructions"},
    "counters": {"false-sharing"},
    "list-in-order": set(),
    "table-in-cache": set(),
    "stream": set(),
    "mix": set(),
}


def wall(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def percent(share):
    return f"{100 * share:.0f} %"


def findings(tool, command):
    """The findings of a single run that concern loops, largest saving first."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(
            [tool, "--export-json", out.name, "--", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        report = json.load(out)
    return [f for f in report["findings"] if f["class"] in CLASSES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/deadweight")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    tool = os.path.abspath(options.bin)
    folder = tempfile.mkdtemp(prefix="deadweight-loops-")
    program = os.path.join(folder, "pairs")
    source = os.path.join(HERE, "loops", "pairs.cpp")
    subprocess.run(
        ["g++", "-std=c++17", "-O2", "-g", "-pthread", source, "-o", program],
        check=True,
    )
    print(
        "| loop | slow | fast | real saving | predicted | range | class | on the fast form |"
    )
    print("|---|---:|---:|---:|---:|---:|---|---|")
    wrong = []
    for name, right in PAIRS.items():
        slow, fast = [], []
        for _ in range(options.runs):
            slow.append(wall([program, name, "slow"]))
            fast.append(wall([program, name, "fast"]))
        slow, fast = statistics.median(slow), statistics.median(fast)
        found = findings(tool, [program, name, "slow"])
        also = findings(tool, [program, name, "fast"])
        first = found[0] if found else None
        if bool(first) != bool(right) or first and first["class"] not in right or also:
            wrong.append(name)
        predicted = percent(first["saving_share"]) if first else "–"
        spread = (
            f"{100 * first['low']:.0f} to {100 * first['high']:.0f}" if first else "–"
        )
        print(
            f"| {name}{'' if right else ' (control)'} | {1000 * slow:.0f} ms | {1000 * fast:.0f} ms "
            f"| {percent(1 - fast / slow)} | {predicted} | {spread} | {first['class'] if first else 'none'} "
            f"| {', '.join(f['class'] for f in also) or 'none'} |",
            flush=True,
        )
    if wrong:
        print(f"\nwrong: {', '.join(wrong)}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
