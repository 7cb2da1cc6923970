#!/usr/bin/env python3
"""Compares the forms on a machine with other load: alternating, CPU time, minimum of all rounds.

Usage: bench.py FORMS [ROUNDS]. `FORMS ips` gives the usual table, for a quiet machine.
"""
import os
import subprocess
import sys

NAMES = ["sha256", "heap", "copied", "direct", "in_place"]
COUNT = 200_000


def cpu_ns(program, name, count):
    """User time of one run, in nanoseconds."""
    child = subprocess.Popen([program, name, str(count)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{program} {name} ended with {status}")
    return (usage.ru_utime + usage.ru_stime) * 1e9


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 30
    least = {name: float("inf") for name in NAMES}
    start = min(cpu_ns(program, "direct", 0) for _ in range(rounds))
    for done in range(rounds):
        for name in NAMES[done % len(NAMES):] + NAMES[:done % len(NAMES)]:
            least[name] = min(least[name], (cpu_ns(program, name, COUNT) - start) / COUNT)
    for name in NAMES:
        print(f"{name:9} {least[name]:7.0f} ns   {least[name] / least['direct']:5.2f} x direct")


if __name__ == "__main__":
    main()
