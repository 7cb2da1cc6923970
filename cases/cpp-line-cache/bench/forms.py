#!/usr/bin/env python3
"""The forms of the query beside each other, cold and warm.

    forms.py ROUNDS QUERY... -- ARGUMENTS

Each runs with ARGUMENTS and asks twice, by turns; medians of ROUNDS. The first answer comes from the
store, the second from the cache.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys


def run(command: list[str]) -> tuple[float, float, float]:
    """Milliseconds of the first and the second answer, and MB of memory at most."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    told = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    passes = re.findall(r"pass \d+: ([0-9.]+) ms", told)
    if child.returncode or len(passes) != 2:
        sys.exit(f"{command[0]} ended with {child.returncode}: {told}")
    return float(passes[0]), float(passes[1]), usage.ru_maxrss / 1000


def main() -> None:
    if "--" not in sys.argv or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    end = sys.argv.index("--")
    queries, arguments = sys.argv[2:end], sys.argv[end + 1 :]
    measured: dict[str, list[tuple[float, float, float]]] = {query: [] for query in queries}
    for _ in range(int(sys.argv[1])):
        for query, each in measured.items():
            each.append(run([query, *arguments, "--times", "--passes", "2"]))
    print(f"{'':20}{'cold ms':>10}{'warm ms':>10}{'MB':>8}")
    for query, each in measured.items():
        cold, warm, memory = (statistics.median(column) for column in zip(*each))
        print(f"{pathlib.Path(query).name:20}{cold:10.1f}{warm:10.1f}{memory:8.0f}")


main()
