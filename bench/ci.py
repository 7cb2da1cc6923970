#!/usr/bin/env python3
"""How often `deadweight ci` is wrong: jobs without a change that turn red, and planted changes that do not.

    bench/ci.py [--jobs 200] [--planted 40] [--budget 12s] [--only c,rust,go]

Builds a C program, a Rust program and a Go benchmark (bench/ci/), each as a base, as a second build that only has another version
text and build-id, with 5 % more time, and with one more allocation per operation. The program "moved" is the Rust program whose second
build has all its code 16 bytes elsewhere. Every second job has a background load: one busy loop per
CPU, on and off. Prints a table; run it as root, on a machine that does nothing else.
"""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))


def sh(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)


def build_c(out):
    for name, plant, more in [("base", 0, "0x01"), ("again", 0, "0x02"), ("time", 1, "0x03"), ("allocation", 2, "0x04")]:
        version = "2" if name == "again" else "1"
        sh("gcc", "-O2", "-g", f"-DPLANT={plant}", f'-DVERSION="{version}"', f"-Wl,--build-id={more}", "-o", f"{out}/{name}", f"{HERE}/ci/work.c")
    return []


def build_rust(out, moved=False):
    again = ["--cfg", "again"] + (["-Clink-arg=-Wl,--build-id=0x02"] if moved else [])
    for name, flags in [("base", []), ("again", again), ("time", ["--cfg", "plant_time"]),
                        ("allocation", ["--cfg", "plant_allocation"])]:
        sh("rustc", "-O", "-g", "-A", "unexpected_cfgs", *flags, "-o", f"{out}/{name}", f"{HERE}/ci/work.rs")
    return []


def build_moved(out):
    return build_rust(out, moved=True)


def build_go(out):
    for name, tags, more in [("base", "", "a"), ("again", "", "b"), ("time", "planttime", "c"), ("allocation", "plantallocation", "d")]:
        sh("go", "test", "-c", "-tags", tags, f"-ldflags=-buildid={more}", "-o", f"{out}/{name}", ".", cwd=f"{HERE}/ci/go")
    return ["-test.bench=.", "-test.benchtime=10000x", "-test.run=xxx"]


LOAD = """
import time, random
r = random.Random(%d)
while True:
    end = time.monotonic() + r.uniform(0.02, 0.6)
    while time.monotonic() < end: pass
    time.sleep(r.uniform(0.02, 0.6))
"""


class Load:
    """One busy loop per CPU, on and off at random."""

    def __init__(self, on, seed):
        self.on, self.seed = on, seed

    def __enter__(self):
        count = os.cpu_count() if self.on else 0
        self.loops = [subprocess.Popen([sys.executable, "-c", LOAD % (self.seed + i)]) for i in range(count)]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def job(deadweight, folder, head, arguments, budget, load, seed):
    json_file = f"{folder}/judgement.json"
    with Load(load, seed):
        since = time.monotonic()
        done = subprocess.run([deadweight, "ci", "-q", "--budget", budget, "--base", f"{folder}/base", "--head", f"{folder}/{head}",
                               "--export-json", json_file, "--", *arguments], stdin=subprocess.DEVNULL)
        took = time.monotonic() - since
    if done.returncode not in (0, 1):
        raise SystemExit(f"deadweight ci failed with {done.returncode}")
    judgement = json.load(open(json_file))[0]
    red = [change for change in judgement["changes"] if change["state"] == "regressed"]
    return done.returncode == 1, red, judgement, took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=200, help="jobs without a change, over all programs")
    parser.add_argument("--planted", type=int, default=40, help="jobs of each planted change, over all programs")
    parser.add_argument("--budget", default="12s")
    parser.add_argument("--only", default="c,rust,go")
    parser.add_argument("--deadweight", default="deadweight")
    options = parser.parse_args()
    # Ends the background load, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    root = tempfile.mkdtemp()
    programs = {}
    for name in options.only.split(","):
        folder = f"{root}/{name}"
        os.mkdir(folder)
        programs[name] = (folder, {"c": build_c, "rust": build_rust, "go": build_go, "moved": build_moved}[name](folder))
    rows = {"time": "net-work", "allocation": "allocation"}
    print("| program | change | load | jobs | red | right row | unsure | median job |\n|---|---|---|---|---|---|---|---|")
    for head, jobs in [("again", options.jobs), ("time", options.planted), ("allocation", options.planted)]:
        for name, (folder, arguments) in programs.items():
            for load in (False, True):
                count = max(1, jobs // len(programs) // 2)
                red = right = unsure = 0
                times = []
                for seed in range(count):
                    is_red, changes, judgement, took = job(options.deadweight, folder, head, arguments, options.budget, load, seed)
                    red += is_red
                    right += is_red and any(change["row"] == rows.get(head) for change in changes[:1])
                    unsure += judgement["state"] == "inconclusive"
                    times.append(took)
                    if is_red == (head == "again"):
                        detail = [(c["kind"], c["name"], round(c["growth"], 4), c["state"]) for c in judgement["changes"][:4]]
                        print(f"{name} {head} load={load} {judgement['state']} {detail}", file=sys.stderr)
                times.sort()
                shown = "–" if head == "again" else right
                print(f"| {name} | {head} | {'yes' if load else 'no'} | {count} | {red} | {shown} | {unsure} | {times[len(times) // 2]:.0f} s |",
                      flush=True)
    shutil.rmtree(root)


main()
