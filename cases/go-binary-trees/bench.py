#!/usr/bin/env python3
"""The forms beside other languages: bench.py OUT [DEPTH [ROUNDS]]; OUT holds the Go programs.

C++ with new and with std::pmr, Rust with Box and with bumpalo, Java with two collectors. Alternating; the
medians of wall and CPU time, the largest memory, and the speed relative to the pointer form.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


def build(out):
    """Each form's name and command. A toolchain that is missing ends the bench."""
    peers = out / "peers"
    peers.mkdir(exist_ok=True)
    for form in ("new", "pmr"):
        subprocess.run(
            ["g++", "-O2", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-o", peers / form, HERE / f"peers/cpp/{form}.cpp"],
            check=True)
    subprocess.run(
        ["cargo", "build", "-q", "--release", "--locked", "--manifest-path", HERE / "peers/rust/Cargo.toml"],
        env=os.environ | {"CARGO_TARGET_DIR": peers / "rust"}, check=True)
    subprocess.run(["javac", "-Xlint:all", "-Werror", "-d", peers / "java", HERE / "peers/java/Trees.java"], check=True)
    forms = {f"Go, {name}": [out / name] for name in ("pointers", "handles", "reset", "freelist", "pool")}
    forms |= {f"C++, {name}": [peers / name] for name in ("new", "pmr")}
    forms |= {"Rust, Box": [peers / "rust/release/boxed"], "Rust, bumpalo": [peers / "rust/release/bump"]}
    forms |= {
        f"Java, {name}": ["java", f"-XX:+Use{name}GC", "-cp", peers / "java", "Trees"] for name in ("G1", "Serial")
    }
    return forms


def run(command):
    """Wall and CPU time in seconds, largest memory in MB, and what it prints."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} ended with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, printed


def main():
    out = pathlib.Path(sys.argv[1])
    depth = sys.argv[2] if len(sys.argv) > 2 else "16"
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    measured, printed = {}, set()
    forms = build(out)
    for _ in range(rounds):
        for name, command in forms.items():
            *figures, text = run([*command, depth])
            measured.setdefault(name, []).append(figures)
            printed.add(text)
    if len(printed) != 1:
        sys.exit("the forms do not print the same")
    print(f"depth {depth}, median of {rounds} rounds by turns; × is beside Go, pointers: wall (CPU)\n")
    print(f"{'':16}{'wall s':>9}{'CPU s':>9}{'MB':>8}{'×':>8}{'(CPU)':>9}")
    medians = {name: [statistics.median(column) for column in zip(*each)] for name, each in measured.items()}
    slow = medians["Go, pointers"]
    for name, (wall, cpu, memory) in medians.items():
        print(f"{name:16}{wall:9.2f}{cpu:9.2f}{memory:8.0f}{slow[0] / wall:8.2f}{f'({slow[1] / cpu:.2f})':>9}")


if __name__ == "__main__":
    main()
