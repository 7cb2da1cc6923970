#!/usr/bin/env python3
"""What programs pay that are not followed, while another one is recorded.

  bench/unrelated.py [--rounds N] [--binary FILE]

Eight copies of each load run on all CPUs, in turn alone and beside `deadweight record -- sleep`. Prints the medians of
their wall and CPU time as a table in Markdown. As root; builds `workload.c` with gcc.
"""
import argparse, os, resource, statistics, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOADS = [("arithmetic", "cpu", 300_000), ("1-byte reads", "reads", 300_000), ("first touches", "faults", 100_000), ("fork + exec + wait", "forks", 200)]
COPIES = 8


def burst(workload, kind, number):
    """Wall and CPU time in s of all copies."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    copies = [subprocess.Popen([workload, kind, str(number)], stdout=subprocess.DEVNULL) for _ in range(COPIES)]
    for copy in copies:
        copy.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside_a_recording(binary, folder, act):
    words = [binary, "record", "-q", "-o", os.path.join(folder, "sleep.dw"), "--", "sleep", "1000"]
    # A session of its own: it is interrupted with its program.
    recorder = subprocess.Popen(words, start_new_session=True)
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
    print(f"| {COPIES} copies | alone | longer beside a recording | more CPU time |")
    print("|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        workload = os.path.join(folder, "workload")
        subprocess.run(["gcc", "-O2", os.path.join(ROOT, "bench/workload.c"), "-o", workload, "-lpthread"], check=True)
        for name, kind, number in LOADS:
            act = lambda: burst(workload, kind, number)
            pairs = [(act(), beside_a_recording(given.binary, folder, act)) for _ in range(given.rounds)]
            alone, beside = ([statistics.median(pair[which][i] for pair in pairs) for i in (0, 1)] for which in (0, 1))
            print(f"| {name} | {alone[0]:.2f} s | {beside[0] / alone[0] - 1:+.1%} | {beside[1] / alone[1] - 1:+.1%} |", flush=True)


if __name__ == "__main__":
    main()
