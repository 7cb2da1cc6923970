#!/usr/bin/env python3
"""The time of the program's own timer, by the kind of its input.

pipeline.py BIN PROGRAM.bin [ROUNDS]: BIN holds the built programs. Forms are interleaved, and whole
distributions shown: in a pipe, chance decides which side wins the race, and a single number is one sample.
"""

import os
import pathlib
import re
import subprocess
import sys

FORMS = {
    "file": "{program} < {code}",
    "pipe": "cat {code} | {program}",
    # The step before the program stands for a build: by then the producer is done.
    "pipe, slow step before": "cat {code} | (sleep 0.02; exec {program})",
    # Here the producer loses the race on purpose.
    "pipe, slow producer": "(sleep 0.005; cat {code}) | {program}",
}
PROGRAMS = {
    "count-bytes": "count-bytes",
    "count-bytes, byte reads": "count-bytes-byte-reads",
    "evm": "evm --time",
    "evm, byte reads": "evm-byte-reads --time",
    "evm, fixed memory": "evm --fixed-memory 131072 --time",
}


def timed(command):
    """Microseconds that the program reports: reading, and running if it does."""
    done = subprocess.run(["/bin/sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return sum(float(number) for number in re.findall(r"([0-9.]+) µs", done.stderr))


def main():
    binaries, code = pathlib.Path(sys.argv[1]), sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 41
    measured = {}
    for _ in range(rounds):
        for name, command in PROGRAMS.items():
            for form, line in FORMS.items():
                line = line.format(program=binaries / command, code=code)
                measured.setdefault((name, form), []).append(timed(line))
    print(f"µs by the program's own timer, {rounds} rounds, {os.path.basename(code)}\n")
    print(f"{'':26}{'input from':26}{'least':>9}{'quarter':>9}{'median':>9}{'3/4':>9}{'most':>9}")
    for (name, form), each in measured.items():
        each.sort()
        at = [each[0], each[len(each) // 4], each[len(each) // 2], each[3 * len(each) // 4], each[-1]]
        print(f"{name if form == 'file' else '':26}{form:26}" + "".join(f"{value:9.0f}" for value in at))


if __name__ == "__main__":
    main()
