#!/usr/bin/env python3
"""The interpreter beside geth's `evm run --bench` and revm's loop: bench.py EVM PROGRAMS [ROUNDS].

All three run the same code repeatedly in one process, from the same state, and time only the
run; geth's figure includes copying its (empty) state. Interleaved; the median of rounds is shown,
with minimum and maximum. Peers are built once into a cache.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
NAMES = ["count-to-1000", "keccak-loop", "copy-loop", "arithmetic-loop"]
UNITS = {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True)


def build_revm():
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/deadweight-cases/revm-43"
    manifest = HERE / "peers/revm/Cargo.toml"
    subprocess.run(
        ["nice", "-n", "10", "cargo", "build", "-q", "--release", "--locked", "--manifest-path", manifest],
        env=os.environ | {"CARGO_TARGET_DIR": cache}, check=True)
    return cache + "/release/revm-loop"


def ours(evm, code):
    done = output(evm, "--repeat", "31", code)
    word = done.stdout.split("output  ")[1].strip()
    return float(re.search(r"median ([0-9.]+)", done.stderr)[1]), word


def geth(program, code):
    done = output(program, "run", "--bench", "--codefile", code)
    number, unit = re.search(r"execution time: +([0-9.]+)(\S+)", done.stderr).groups()
    return float(number) * UNITS[unit], done.stdout.split()[0]


def revm(program, code):
    median, _, word = output(program, code, "31").stdout.split()
    return float(median), word


def main():
    evm, programs = sys.argv[1], pathlib.Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    peers = {
        "evm": (ours, evm),
        "revm": (revm, build_revm()),
        "geth": (geth, output("sh", HERE / "tests/geth.sh").stdout.strip()),
    }
    print(f"µs per run, median (least to most) of {rounds} rounds; beside evm\n")
    print(f"{'':18}" + "".join(f"{name:>38}" for name in peers))
    for name in NAMES:
        code = programs / f"{name}.hex"
        each = {peer: [] for peer in peers}
        for _ in range(rounds):
            words = set()
            for peer, (run, program) in peers.items():
                time, word = run(program, code)
                each[peer].append(time)
                words.add(word)
            if len(words) != 1:
                sys.exit(f"{name}: the outputs differ: {words}")
        own = statistics.median(each["evm"])
        row = ""
        for times in each.values():
            median = statistics.median(times)
            cell = f"{median:.1f} ({min(times):.1f} to {max(times):.1f}) {median / own:.2f} ×"
            row += f"{cell:>38}"
        print(f"{name:18}{row}")


if __name__ == "__main__":
    main()
