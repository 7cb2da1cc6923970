"""Plots how busy a command keeps the CPUs while it runs.

    cpu_over_time.py COMMAND...

A column is 1/60 of the run; its height is CPU time over wall time, of all the command's threads,
told apart by the program's own code (#) and the kernel's work for it (:).
"""

import os
import subprocess
import sys
import time

COLUMNS, HEIGHT, TICK = 60, 10, 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Seconds of CPU so far in the program and in the kernel."""
    with open(f"/proc/{pid}/stat") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return int(words[11]) * TICK, int(words[12]) * TICK


def run_nanoseconds(pid: int) -> int:
    """All CPU time so far, finer than ticks."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total


def watch(command: list[str]) -> list[tuple[float, float, float]]:
    """Instants from the start, CPU seconds, and the kernel's part of them, until the end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    start, seen = time.monotonic(), [(0.0, 0.0, 0.0)]
    while process.poll() is None:
        try:
            user, kernel = cpu_seconds(process.pid)
            whole = run_nanoseconds(process.pid) / 1e9
        except (FileNotFoundError, ProcessLookupError, IndexError):
            break
        part = kernel / (user + kernel) if user + kernel else 0.0
        if whole >= seen[-1][1]:
            seen.append((time.monotonic() - start, whole, whole * part))
        time.sleep(0.002)
    if process.wait() != 0:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return seen


def at(seen, instant: float, which: int) -> float:
    """The value at an instant, between the two looks beside it."""
    for before, after in zip(seen, seen[1:]):
        if instant <= after[0]:
            part = (instant - before[0]) / max(after[0] - before[0], 1e-9)
            return before[which] + part * (after[which] - before[which])
    return seen[-1][which]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    seen = watch(sys.argv[1:])
    end = seen[-1][0]
    width = end / COLUMNS
    heights = []
    for column in range(COLUMNS):
        from_, to = column * width, (column + 1) * width
        whole, kernel = (
            (at(seen, to, which) - at(seen, from_, which)) / width for which in (1, 2)
        )
        heights.append((whole, min(max(kernel, 0.0), whole)))
    top = max(1.0, max(whole for whole, _ in heights))
    for level in range(HEIGHT, 0, -1):
        edge = (level - 0.5) / HEIGHT * top
        marks = "".join(
            " " if whole < edge else ":" if whole - kernel < edge else "#"
            for whole, kernel in heights
        )
        print(f"{level / HEIGHT * top * 100:5.0f} % |{marks}".rstrip())
    print(" " * 8 + "+" + "-" * COLUMNS)
    busy, kernel = seen[-1][1], seen[-1][2]
    print(
        f"{'':9}{end * 1000:.0f} ms, {busy * 1000:.0f} ms of CPU, "
        f"{100 * kernel / max(busy, 1e-9):.0f} % of it in the kernel (:)"
    )


main()
