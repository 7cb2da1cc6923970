#!/usr/bin/env python3
"""Measures `deadweight scan`: megabytes of machine code per second.

  bench/scan.py [--times N] [--binary FILE [--binary FILE ...]] FILE...

For each file and each build of deadweight: the bytes of its executable sections by the headers of the file, those of the
functions that were read, wall and CPU time (minima of N rounds, in which the builds alternate), and the most memory.
MB/s is of the functions that were read, by wall time. Build deadweight for release.
"""
import argparse, json, os, struct, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def executable(path):
    """The bytes of the sections that may be executed."""
    with open(path, "rb") as file:
        header = file.read(64)
        start, = struct.unpack_from("<Q", header, 40)
        size, count = struct.unpack_from("<HH", header, 58)
        file.seek(start)
        sections = [file.read(size) for _ in range(count)]
    # sh_flags is the word at 8, sh_size the one at 32; 4: SHF_EXECINSTR.
    return sum(struct.unpack_from("<Q", s, 32)[0] for s in sections if struct.unpack_from("<Q", s, 8)[0] & 4)


def run(binary, path):
    """Wall seconds, CPU seconds, peak KB, and the bytes of the functions that were read."""
    with tempfile.TemporaryFile() as out:
        start = time.monotonic()
        child = subprocess.Popen([binary, "scan", "--json", "--all", path], stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        if status:
            raise SystemExit(f"{binary} scan {path}: status {status}")
        out.seek(0)
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, json.load(out)["binary"]["code_bytes"]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--binary", action="append")
    options.add_argument("files", nargs="+", metavar="FILE")
    given = options.parse_args()
    builds = given.binary or [os.path.join(ROOT, "target/release/deadweight")]
    print("| file | build | executable | functions | wall | CPU | MB/s | memory |\n|---|---|---:|---:|---:|---:|---:|---:|")
    for path in given.files:
        runs = {build: [] for build in builds}
        for _ in range(given.times):
            for build in builds:
                runs[build].append(run(build, path))
        for build in builds:
            wall, cpu, memory, code = (best(column) for best, column in zip((min, min, max, max), zip(*runs[build])))
            print(f"| {os.path.basename(path)} | {os.path.basename(build)} | {executable(path) / 1e6:.1f} MB | {code / 1e6:.1f} MB "
                  f"| {wall:.2f} s | {cpu:.2f} s | {code / 1e6 / wall:.0f} | {memory / 1024:.0f} MiB |")


if __name__ == "__main__":
    main()
