#!/usr/bin/env python3
"""`deadweight compare` beside hyperfine: what a comparison costs, whether both see the same times, and
how often two runs of the same command seem to differ. Writes bench/COMPARE.md.

    cargo build --release -p deadweight
    cargo build --release -p deadweight-report --example statistics_speed
    python3 bench/compare.py [--rounds 5] [--pairs 100] [--hyperfine PATH]
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DEADWEIGHT = os.path.join(ROOT, "target/release/deadweight")
STATISTICS = os.path.join(ROOT, "target/release/examples/statistics_speed")
LOADS = [
    ("-N, 10 runs of `true`", ["-N", "-r", "10", "-w", "1"], ["true", "true"]),
    ("-N, 30 runs of `true`", ["-N", "-r", "30", "-w", "1"], ["true", "true"]),
    ("shell, 10 runs of `true`", ["-r", "10", "-w", "1"], ["true", "true"]),
    ("shell, 10 runs of `sleep 0.02`", ["-r", "10", "-w", "1"], ["sleep 0.02", "sleep 0.02"]),
    ("-N, 20 runs, 5 ms beside 20 ms", ["-N", "-r", "20", "-w", "1"], ["sleep 0.005", "sleep 0.02"]),
]


def timed(command):
    """Wall time, exit code, and CPU time of the tool and its children, which a busy machine disturbs less."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, done.returncode, cpu


def middle(values):
    return f"{statistics.median(values) * 1000:.0f} ({min(values) * 1000:.0f})"


def costs(hyperfine, rounds):
    print("fixed cost", flush=True)
    lines = [
        "| load | hyperfine | `compare --no-why` | `compare` |",
        "|---|---:|---:|---:|",
    ]
    for name, options, commands in LOADS:
        tools = [
            [hyperfine, "--style", "none", *options, *commands],
            [DEADWEIGHT, "compare", "-q", "--no-why", *options, *commands],
            [DEADWEIGHT, "compare", "-q", *options, *commands],
        ]
        took, on_cpu = [[] for _ in tools], [[] for _ in tools]
        for turn in range(rounds):
            for at in range(len(tools)):
                at = (at + turn) % len(tools)
                wall, _, cpu = timed(tools[at])
                took[at].append(wall)
                on_cpu[at].append(cpu)
        cells = [f"{middle(t)}; {middle(c)}" for t, c in zip(took, on_cpu)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def medians(hyperfine, directory):
    """Both tools on the same two commands, alternating."""
    print("same medians", flush=True)
    commands = ["sleep 0.01", "sleep 0.03"]
    seen = {"hyperfine": [], "deadweight": []}
    out = os.path.join(directory, "times.json")
    for _ in range(3):
        common = ["-N", "-r", "15", "-w", "1"]
        subprocess.run([hyperfine, "--style", "none", *common, "--export-json", out, *commands],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results = json.load(open(out))["results"]
        seen["hyperfine"].append([r["median"] for r in results])
        subprocess.run([DEADWEIGHT, "compare", "-q", "--no-why", *common, "--export-hyperfine", out,
                        *commands], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results = json.load(open(out))["results"]
        seen["deadweight"].append([r["median"] for r in results])
    lines = ["| tool | " + " | ".join(f"`{c}`" for c in commands) + " |", "|---|---:|---:|"]
    for tool, rounds in seen.items():
        cells = [f"{statistics.median(r[i] for r in rounds) * 1000:.2f} ms" for i in range(2)]
        lines.append(f"| {tool} | " + " | ".join(cells) + " |")
    return lines


def alike(pairs):
    """The same command twice, while another program loads a CPU in bursts."""
    print("A/A pairs", flush=True)
    burst = "import time\nwhile True:\n t=time.time()\n while time.time()-t<0.05: pass\n time.sleep(0.05)"
    load = subprocess.Popen(["python3", "-c", burst])
    try:
        codes = [timed([DEADWEIGHT, "compare", "-q", "--no-why", "-N", "-r", "20", "true", "true"])[1]
                 for _ in range(pairs // 2)]
        # The exit code shows slower; swapped commands show faster.
        report = os.path.join(tempfile.gettempdir(), f"deadweight-aa-{os.getpid()}.json")
        faster = 0
        for _ in range(pairs - pairs // 2):
            subprocess.run([DEADWEIGHT, "compare", "-q", "--no-why", "-N", "-r", "20", "--export-json",
                            report, "true", "true"])
            verdict = json.load(open(report))[0]["verdict"]
            faster += verdict in ("faster", "slower")
        os.unlink(report)
    finally:
        load.kill()
        load.wait()
    return pairs, sum(code == 1 for code in codes) + faster


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pairs", type=int, default=100)
    options.add_argument("--hyperfine", default="hyperfine")
    given = options.parse_args()
    version = subprocess.run([given.hyperfine, "--version"], capture_output=True, text=True).stdout
    load = os.getloadavg()[0]
    page = ["# `compare` beside hyperfine", "",
            f"Written by `bench/compare.py`. {version.strip()}, {os.cpu_count()} CPUs, load average "
            f"{load:.1f} at the start.", "", "## Start to finish", "",
            "Milliseconds from start to finish, and after the semicolon on a CPU, with the commands; median of "
            "the rounds and in brackets the minimum; tools alternate. `--no-why` does what hyperfine does. Without "
            "it commands are traced too, but only where a difference is shown: in the last row. Where another "
            "program records on the machine, a clean run waits until its tracepoints are closed, "
            "which hyperfine does not.", ""]
    page += costs(given.hyperfine, given.rounds)
    with tempfile.TemporaryDirectory() as directory:
        page += ["", "## The same times", "", "Medians of three alternating rounds.", ""]
        page += medians(given.hyperfine, directory)
    pairs, alarms = alike(given.pairs)
    page += ["", "## The same command twice", "",
             f"{pairs} pairs of `true` under a load that comes and goes: {alarms} called different.", ""]
    if os.path.exists(STATISTICS):
        said = subprocess.run([STATISTICS], capture_output=True, text=True).stdout.strip()
        page += ["## Statistics of long series", "", "```text", said, "```", ""]
    with open(os.path.join(HERE, "COMPARE.md"), "w") as out:
        out.write("\n".join(page))
    print("\n".join(page))


if __name__ == "__main__":
    main()
