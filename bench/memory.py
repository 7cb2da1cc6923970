#!/usr/bin/env python3
"""Records a program below limits of memory that hold for it and the recorder together, on each rung.

  bench/memory.py [--limits MIB,MIB] [--times N] [--rungs root,user,stops] [--binary FILE]

Two Python processes wake each other in turn, 50 000 times each, in a memory cgroup. Reports the runs in which the
program did not end as usual, or the recorder was killed, the largest use of the group, the program's time beside
its time alone in the same group, and the share not recorded; of several runs the worst, and of times the median. As
root; `user` becomes an ordinary user by setpriv, `stops` is root behind a filter that refuses perf events.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, time
from identity import ROOT, before_it, workshop

TURNS = """import os
a, b = os.pipe(), os.pipe()
if os.fork() == 0:
    for _ in range(50000): os.read(a[0], 1); os.write(b[1], b'x')
    os._exit(0)
for _ in range(50000): os.write(a[1], b'x'); os.read(b[0], 1)
open('done', 'w').write('yes')
os._exit(3)
"""
PYTHON = ["/usr/bin/python3", "-c", TURNS]


class Group:
    """A memory cgroup, of either version."""

    def __init__(self, mib):
        old = os.path.isdir("/sys/fs/cgroup/memory")
        self.path = f"/sys/fs/cgroup/{'memory/' if old else ''}deadweight-memory-{os.getpid()}"
        os.mkdir(self.path)
        with open(f"{self.path}/memory.{'limit_in_bytes' if old else 'max'}", "w") as file: file.write(str(mib << 20))
        self.peak = f"{self.path}/memory.{'max_usage_in_bytes' if old else 'peak'}"

    def run(self, words, folder):
        """Exit code and seconds."""
        inside = ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"] + words
        start = time.monotonic()
        done = subprocess.run(inside, cwd=folder, env=dict(os.environ, HOME=folder), capture_output=True, timeout=120)
        return done.returncode, time.monotonic() - start

    def largest(self):
        return int(open(self.peak).read()) / 2**20

    def remove(self):
        for _ in range(300):
            try: return os.rmdir(self.path)
            except OSError: time.sleep(0.1)


def lost(ours, mode, folder):
    """The share of the wall time that is not recorded; 1 if there is no report."""
    report = os.path.join(folder, "r.json")
    if mode == "record":
        subprocess.run([ours, "report", "t.dwt", "--export-json", report], cwd=folder, capture_output=True)
    try: weighed = json.load(open(report))
    except (OSError, ValueError): return 1.0
    dark = sum(row["ns"] for row in weighed["ledger"] if row["account"] == "unrecorded")
    return dark / max(weighed["wall_ns"], 1)


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--limits", default="256,96,64,48,32")
    ask.add_argument("--times", type=int, default=5)
    ask.add_argument("--rungs", default="root,user,stops")
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    folder, ours, filtered = workshop("memory", options.binary)
    print("| limit | rung | | program hindered | recorder killed | largest use | alone | recorded | not recorded |\n|---:|---|---|---:|---:|---:|---:|---:|---:|")
    for limit in map(int, options.limits.split(",")):
        for rung in options.rungs.split(","):
            become = before_it(rung, filtered, refused="root")
            for mode in "deadweight", "record":
                option = ["record", "-q", "-o", "t.dwt"] if mode == "record" else ["-q", "--export-json", "r.json"]
                hindered = killed = 0
                alone, taken, use, dark = [], [], 0, 0
                for _ in range(options.times):
                    group = Group(limit)
                    alone.append(group.run(become + PYTHON, folder)[1])
                    for name in "done", "r.json", "t.dwt":
                        if os.path.exists(os.path.join(folder, name)): os.remove(os.path.join(folder, name))
                    code, seconds = group.run(become + [ours] + option + ["--"] + PYTHON, folder)
                    time.sleep(0.2)
                    hindered += not os.path.exists(os.path.join(folder, "done"))
                    killed += code != 3
                    taken.append(seconds)
                    use, dark = max(use, group.largest()), max(dark, lost(ours, mode, folder))
                    group.remove()
                print(f"| {limit} MiB | {rung} | `{mode}` | {hindered} of {options.times} | {killed} of {options.times} | {use:.0f} MiB | "
                      f"{statistics.median(alone):.2f} s | {statistics.median(taken):.2f} s | {100 * dark:.0f} % |", flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
