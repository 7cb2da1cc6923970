#!/usr/bin/env python3
"""What high-rate system calls cost the program, beside a peer that counts them with libbpf.

  bench/high_rate.py [--rounds N] [--reads 300000,1000000] [--also NAME=COMMAND ..]

Every round runs the load alone, under deadweight, under the peer (`counting.bpf.c`, built here with clang, bpftool and
libbpf's headers), and under the peer with programs that do nothing, in turn. CPU time of the load alone, minima and
medians. After each run, the kernel has a second to close its tracepoints: while one is open, all calls are slower.
As root.
"""
import argparse, os, shlex, shutil, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from run import OURS, ROOT, machine, median, timed_load


def peer(folder, name, *defines):
    """The words before the command; none, loudly, where it cannot be built or does not run."""
    bench = os.path.join(ROOT, "bench")
    lacks = [tool for tool in ("clang", "bpftool", "gcc") if not shutil.which(tool)]
    if lacks:
        print(f"SKIPPED the peer: no {', '.join(lacks)} (Debian: clang bpftool libbpf-dev)", file=sys.stderr)
        return None
    steps = [
        "bpftool btf dump file /sys/kernel/btf/vmlinux format c > vmlinux.h",
        f"clang -O2 -g -target bpf {' '.join(defines)} -D__TARGET_ARCH_x86 -I. -I/usr/include/$(gcc -print-multiarch) "
        f"-c {bench}/counting.bpf.c -o counting.bpf.o",
        "bpftool gen skeleton counting.bpf.o name counting_bpf > counting.skel.h",
        f"gcc -O2 -I. -o {name} {bench}/counting.c -lbpf -lelf -lz",
        f"./{name} true",
    ]
    for step in steps:
        made = subprocess.run(step, shell=True, cwd=folder, capture_output=True, text=True)
        if made.returncode != 0:
            print(f"SKIPPED the peer: {step}\n{made.stderr}", file=sys.stderr)
            return None
    return [os.path.join(folder, name)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--reads", default="300000,1000000")
    ap.add_argument("--also", action="append", default=[], help="another tool: NAME=WORDS BEFORE THE COMMAND")
    args = ap.parse_args()
    print(machine() + "\n")
    print("| reads of 1 byte | | minimum | | median | |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "target")) as folder:
        load = os.path.join(folder, "workload")
        subprocess.run(["gcc", "-O2", "-o", load, os.path.join(ROOT, "bench/workload.c")], check=True)
        table = [("nothing", []), ("deadweight", [OURS, "-o", "/dev/null", "--"])]
        for name, words in ("libbpf peer", peer(folder, "counting")), ("idle programs", peer(folder, "idle", "-DIDLE")):
            table += [(name, words)] if words else []
        table += [(name, shlex.split(words)) for name, _, words in (also.partition("=") for also in args.also)]
        for reads in args.reads.split(","):
            runs = {name: [] for name, _ in table}
            for _ in range(args.rounds):
                for name, before in table:
                    runs[name].append(timed_load(before, [load, "reads", reads], folder)[1])
                    time.sleep(1)
            for name, _ in table:
                cells = []
                for of in (min, median):
                    took = of(runs[name])
                    cells += [f"{1000 * took:.0f} ms", f"{took / of(runs['nothing']):.2f} ×"]
                print(f"| {int(reads):,} | {name} | ".replace(",", " ") + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
