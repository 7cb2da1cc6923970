#!/usr/bin/env python3
"""What programs pay that are not followed, while another one is recorded.

  bench/unrelated.py [--rounds N] [--binary FILE]

Eight copies of each load run on all CPUs, in turn alone, beside `deadweight record -- sleep`, and beside perf that records
the same events of `sleep`, of its tasks alone. Prints by how much the medians of their CPU time are longer, as a table in
Markdown. As root; builds `workload.c` with gcc.
"""
import argparse, os, resource, shutil, statistics, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADS = [("arithmetic", "cpu", 300_000), ("1-byte reads", "reads", 300_000), ("first touches", "faults", 100_000), ("fork + exec + wait", "forks", 200)]
COPIES = 8
# What perf can record of one command: without the switches and wake-ups of others, which deadweight needs.
EVENTS = "raw_syscalls:*,sched:sched_switch,sched:sched_waking,exceptions:page_fault_user,exceptions:page_fault_kernel"


def burst(workload, kind, number):
    """Wall and CPU time in s of all copies."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    copies = [subprocess.Popen([workload, kind, str(number)], stdout=subprocess.DEVNULL) for _ in range(COPIES)]
    for copy in copies:
        copy.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside(recording, act):
    words = recording + ["--", "sleep", "1000"]
    # A session of its own: it is interrupted with its program.
    recorder = subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    result = act()
    os.killpg(recorder.pid, 2)
    recorder.wait()
    # Until its events are closed.
    time.sleep(0.5)
    return result


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workload = os.path.join(folder, "workload")
        subprocess.run(["gcc", "-O2", os.path.join(ROOT, "bench/workload.c"), "-o", workload, "-lpthread"], check=True)
        to = lambda name: os.path.join(folder, name)
        recorders = {"deadweight": [given.binary, "record", "-q", "-o", to("sleep.dw")]}
        if shutil.which("perf"):
            recorders["perf, same events"] = ["perf", "record", "-q", "-o", to("perf.data"), "-e", EVENTS]
            recorders["perf trace"] = ["perf", "trace", "-o", to("trace.txt")]
        print(f"| more CPU time of {COPIES} copies | alone | beside {' | '.join(recorders)} |")
        print("|---|---:|" + "---:|" * len(recorders), flush=True)
        for name, kind, number in LOADS:
            act = lambda: burst(workload, kind, number)[1]
            rounds = [[act()] + [beside(words, act) for words in recorders.values()] for _ in range(given.rounds)]
            alone, *others = [statistics.median(each) for each in zip(*rounds)]
            print(f"| {name} | {alone:.2f} s | " + " | ".join(f"{other / alone - 1:+.1%}" for other in others) + " |", flush=True)


if __name__ == "__main__":
    main()
