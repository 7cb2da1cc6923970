#!/usr/bin/env python3
"""What the rung without perf events costs: fixed, and on high-rate system calls.

    bench/stops.py DEADWEIGHT [RUNS]

Runs commands alone, under deadweight as root, and under deadweight behind a seccomp filter that refuses perf_event_open
and bpf (tests/programs/refuse_perf.c), alternating, and prints medians as a table for RESULTS.md.
"""
import os, resource, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "..", "tests", "programs")


def built(name, folder):
    out = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-g", "-o", out, os.path.join(PROGRAMS, name + ".c")], check=True)
    return out


def once(command, stdin):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with open(stdin) as data:
        subprocess.run(command, stdin=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def main():
    tool, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        launcher, reader = built("refuse_perf", folder), built("count_bytes", folder)
        reads = os.path.join(folder, "reads")
        with open(reads, "wb") as data:
            data.write(b"x" * 300_000)
        record = ["record", "-o", os.path.join(folder, "trace"), "--"]
        refused = [launcher, "EPERM"]
        print("| load | alone | root | without perf | CPU: alone | root | without perf |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for name, command, stdin in [("`true`", ["true"], os.devnull), ("300 000 reads of 1 byte", [reader], reads)]:
            ways = [command, [tool, *record, *command], [*refused, tool, *record, *command]]
            took = [[] for _ in ways]
            for _ in range(runs):
                for way, list_ in zip(ways, took):
                    list_.append(once(way, stdin))
                    time.sleep(0.2)
            walls = [statistics.median(wall for wall, _ in list_) for list_ in took]
            cpus = [statistics.median(cpu for _, cpu in list_) for list_ in took]
            cells = [f"{1000 * t:.1f} ms" for t in walls + cpus]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


main()
