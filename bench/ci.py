#!/usr/bin/env python3
"""How often `deadweight ci` is wrong: jobs without a change that turn red, and planted changes that do not.

    bench/ci.py [--jobs 200] [--planted 40] [--budget 12s] [--only c,rust,go,blake2s,blake3,evm]

Builds a C program, a Rust program and a Go benchmark (bench/ci/), each as a base, as a second build that only has another version
text and build-id, with 5 % more time, and with one more allocation per operation. The program "moved" is the Rust program whose second
build has all its code 16 bytes elsewhere. blake2s (Go), blake3 (Crystal) and evm (Zig) are the cases, as `cargo xtask cases` has built
them: again is the same with another spelling of an argument, time does 5 % more operations, allocation is the form that
takes its memory from the heap. Every second job has a background load: one busy loop per
CPU, on and off. Prints a table; run it as root, on a machine that does nothing else.
"""
import argparse, json, os, shlex, shutil, signal, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "target/cases")
HEADS = ("base", "again", "time", "allocation")


def sh(*words, **more):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)


def build_c(out):
    for name, plant, more in [("base", 0, "0x01"), ("again", 0, "0x02"), ("time", 1, "0x03"), ("allocation", 2, "0x04")]:
        version = "2" if name == "again" else "1"
        sh("gcc", "-O2", "-g", f"-DPLANT={plant}", f'-DVERSION="{version}"', f"-Wl,--build-id={more}", "-o", f"{out}/{name}", f"{HERE}/ci/work.c")
    return {head: [f"{out}/{head}"] for head in HEADS}


def build_rust(out, moved=False):
    again = ["--cfg", "again"] + (["-Clink-arg=-Wl,--build-id=0x02"] if moved else [])
    for name, flags in [("base", []), ("again", again), ("time", ["--cfg", "plant_time"]),
                        ("allocation", ["--cfg", "plant_allocation"])]:
        sh("rustc", "-O", "-g", "-A", "unexpected_cfgs", *flags, "-o", f"{out}/{name}", f"{HERE}/ci/work.rs")
    return {head: [f"{out}/{head}"] for head in HEADS}


def build_moved(out):
    return build_rust(out, moved=True)


def build_go(out):
    for name, tags, more in [("base", "", "a"), ("again", "", "b"), ("time", "planttime", "c"), ("allocation", "plantallocation", "d")]:
        sh("go", "test", "-c", "-tags", tags, f"-ldflags=-buildid={more}", "-o", f"{out}/{name}", ".", cwd=f"{HERE}/ci/go")
    arguments = ["-test.bench=.", "-test.benchtime=10000x", "-test.run=xxx"]
    return {head: [f"{out}/{head}", *arguments] for head in HEADS}


def built(name, *words):
    path = f"{CASES}/{name}"
    if not os.path.exists(path):
        raise SystemExit(f"{path} is not there: first build the cases with `cargo xtask cases`")
    return [path, *words]


def blake2s(_):
    form = lambda name, count: built(f"go-blake2s/{name}", "8", count)
    return {"base": form("stack", "200000"), "again": form("stack", "0200000"), "time": form("stack", "210000"),
            "allocation": form("unrolled", "200000")}


def blake3(_):
    form = lambda name, count: built("crystal-blake3/forms", name, count)
    return {"base": form("in_place", "60000"), "again": form("in_place", "060000"), "time": form("in_place", "63000"),
            "allocation": form("heap", "60000")}


def evm(out):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cases/zig-evm"))
    import programs

    body = programs.arithmetic_loop(20_000).replace(f"63{20_000:08x}", "63%08x")
    # The same code in the file of `again`, in upper case.
    for name, code in [("base", body % 600_000), ("again", (body % 600_000).upper()), ("time", body % 630_000)]:
        with open(f"{out}/{name}.hex", "w") as file:
            file.write(code)
    return {name: built("zig-evm/bin/evm", f"{out}/{name}.hex") for name in ("base", "again", "time")}


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


def job(deadweight, folder, base, head, budget, load, seed):
    json_file = f"{folder}/judgement.json"
    with Load(load, seed):
        since = time.monotonic()
        # Not in a folder with a deadweight.toml: the usual limits are measured.
        done = subprocess.run([deadweight, "ci", "-q", "--budget", budget, "--base", shlex.join(base), "--head", shlex.join(head),
                               "--export-json", json_file], stdin=subprocess.DEVNULL, cwd=folder)
        took = time.monotonic() - since
    if done.returncode not in (0, 1):
        raise SystemExit(f"deadweight ci failed with {done.returncode}")
    judgement = json.load(open(json_file))[0]
    red = [change for change in judgement["changes"] if change["state"] == "regressed"]
    return done.returncode == 1, red, judgement, took


PROGRAMS = {"c": build_c, "rust": build_rust, "go": build_go, "moved": build_moved, "blake2s": blake2s, "blake3": blake3, "evm": evm}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=200, help="jobs without a change, over all programs")
    parser.add_argument("--planted", type=int, default=40, help="jobs of each planted change, over all programs")
    parser.add_argument("--budget", default="12s")
    parser.add_argument("--only", default="c,rust,go")
    parser.add_argument("--changes", default="again,time,allocation")
    parser.add_argument("--deadweight", default="deadweight")
    options = parser.parse_args()
    # Ends the background load, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    root = tempfile.mkdtemp()
    programs = {}
    for name in options.only.split(","):
        folder = f"{root}/{name}"
        os.mkdir(folder)
        programs[name] = (folder, PROGRAMS[name](folder))
    # Of the cases all grows, and with it what they allocate.
    rows = {"time": ("net-work", "allocation"), "allocation": ("allocation",)}
    print("| program | change | load | jobs | red | right row | unsure | median job |\n|---|---|---|---|---|---|---|---|")
    for head, jobs in [("again", options.jobs), ("time", options.planted), ("allocation", options.planted)]:
        for name, (folder, commands) in programs.items():
            if head not in commands or head not in options.changes.split(","):
                continue
            for load in (False, True):
                count = max(1, jobs // len(programs) // 2)
                red = right = unsure = 0
                times = []
                for seed in range(count):
                    is_red, changes, judgement, took = job(options.deadweight, folder, commands["base"], commands[head], options.budget, load, seed)
                    red += is_red
                    right += is_red and any(change["row"] in rows.get(head, ()) for change in changes[:1])
                    unsure += judgement["state"] == "inconclusive"
                    times.append(took)
                    if is_red == (head == "again"):
                        detail = [(c["kind"], c["name"], round(c["growth"], 4), [round(end, 4) for end in c["interval"]], c["state"]) for c in judgement["changes"][:4]]
                        print(f"{name} {head} load={load} {judgement['state']} {detail} {judgement['notes']}", file=sys.stderr)
                times.sort()
                shown = "–" if head == "again" else right
                print(f"| {name} | {head} | {'yes' if load else 'no'} | {count} | {red} | {shown} | {unsure} | {times[len(times) // 2]:.0f} s |",
                      flush=True)
    shutil.rmtree(root)


main()
