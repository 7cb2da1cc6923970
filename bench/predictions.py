#!/usr/bin/env python3
"""What deadweight predicts and what `--prove` measures, beside what a change of the source really saves.

    bench/predictions.py [--deadweight target/release/deadweight] [--corpus FOLDER] [--cases] [--only NAME,NAME] [--runs 11] [--json OUT]

Programs come in two forms, with a cost and without it: those of bench/proofs, those of a corpus (folders with truth.toml, build.sh,
run-slow.sh and run-fast.sh), and the cases whose forms need no server. Both forms are timed in turns, which gives the real saving; one plain run
of deadweight gives the prediction, and one of `--prove` what was measured. Prints a table of programs, and one of classes with the bias and the spread
of predictions. A measured saving is right if its interval, or what is within 5 points of it, has the real one; a least saving, if the real
one is not smaller; a control, if nothing of it is measured. Run it on a machine that does nothing else.
"""
import argparse, glob, json, os, shlex, statistics, subprocess, sys, tempfile, time, tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BYTES = {"byte_reads": 600_000, "small_reads": 2_400_000}
CONTROLS = {"compute", "records"}
# Cases: the slow form, the fast one, and the class of their difference.
CASES = {"crystal-blake3": ("slow", "fast", "struct-copies"), "go-binary-trees": ("slow", "fast", "allocation"),
         "go-blake2s": ("called", "inlined", "missed-inlining"), "zig-evm": ("slow", "fast", "tiny-reads")}


def compile_one(source, fast, out):
    kind = source.rsplit(".", 1)[-1]
    if kind == "c":
        words = ["gcc", "-O2", "-g", "-pthread", "-fopenmp", f"-DFAST={fast}", "-o", out, source]
    elif kind == "cpp":
        words = ["g++", "-O2", "-g", "-std=c++17", "-pthread", f"-DFAST={fast}", "-o", out, source]
    elif kind == "rs":
        words = ["rustc", "-O", "-g", "-A", "warnings", *(["--cfg", "fast"] if fast else []), "-o", out, source]
    else:
        words = ["go", "build", "-C", source, *(["-tags", "fast"] if fast else []), "-o", out, "."]
    subprocess.run(words, check=True)


class Program:
    """A program in two forms; commands run in its folder."""

    def __init__(self, name, folder, slow, fast, of=None, want=None, given=os.devnull):
        self.name, self.folder, self.slow, self.fast = name, folder, slow, fast
        self.of, self.want, self.given = of, want, given
        self.control = want is None or want.startswith("control")

    def once(self, words):
        with open(self.given, "rb") as given, open(OUTPUT, "wb") as out:
            since = time.perf_counter()
            subprocess.run(words, stdin=given, stdout=out, stderr=subprocess.DEVNULL, cwd=self.folder)
            return time.perf_counter() - since

    def real(self, runs):
        self.once(self.slow), self.once(self.fast)
        pairs = [(self.once(self.slow), self.once(self.fast)) for _ in range(runs)]
        slow, fast = (statistics.median(times) for times in zip(*pairs))
        return 1 - fast / slow

    def report(self, deadweight, *options):
        focus = ["--of", self.of] if self.of else []
        since = time.perf_counter()
        with tempfile.NamedTemporaryFile(suffix=".json") as kept:
            with open(self.given, "rb") as given, open(OUTPUT, "wb") as out:
                words = [deadweight, "-q", *options, *focus, "--export-json", kept.name, "--", *self.slow]
                subprocess.run(words, stdin=given, stdout=out, stderr=subprocess.DEVNULL, cwd=self.folder)
            return json.load(open(kept.name)), time.perf_counter() - since


def own_programs(folder, only):
    for source in sorted(glob.glob(f"{HERE}/proofs/*")):
        name = os.path.basename(source).split(".")[0]
        if only and name not in only:
            continue
        place, given = f"{folder}/{name}", os.devnull
        os.mkdir(place)
        for fast in 0, 1:
            compile_one(source, fast, f"{place}/form{fast}")
        if name in BYTES:
            given = place + "/in"
            with open(given, "wb") as file:
                file.write(bytes(i * 7 % 251 for i in range(BYTES[name])))
        yield Program(name, place, [place + "/form0"], [place + "/form1"], want=None if name in CONTROLS else "cost", given=given)


def script(folder, form):
    """The command of a script whose last line only starts a program, else the script."""
    last = [line for line in open(f"{folder}/run-{form}.sh").read().splitlines() if line.strip()][-1]
    plain = last.startswith("exec ") and not any(sign in last for sign in "|;&<>$`*")
    return shlex.split(last)[1:] if plain else ["/bin/sh", f"run-{form}.sh"]


def corpus(folder):
    for place in sorted(os.path.dirname(path) for path in glob.glob(f"{folder}/*/truth.toml")):
        truth = tomllib.load(open(place + "/truth.toml", "rb"))
        if not os.path.isdir(place + "/bin"):
            subprocess.run(["sh", "./build.sh"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        focus = truth.get("focus")
        want = truth["class"] if truth["expect"] == "cost" else None
        yield Program(truth["id"], place, script(place, "slow"), script(place, "fast"), want=want,
                      of=focus if focus != "slow" else None)


def cases():
    for name, (slow, fast, want) in CASES.items():
        place = f"{ROOT}/cases/{name}"
        forms = tomllib.load(open(place + "/case.toml", "rb"))["variants"]
        out = f"{ROOT}/target/cases/{name}"
        words = lambda form: shlex.split(forms[form].replace("$OUT", out))
        yield Program(name, place, words(slow), words(fast), want=want)


def judge(program, real, finding):
    """What was measured, in words; whether it is right; and its error, if all of the cost was left out."""
    proofs = [proof for proof in finding.get("proofs", []) if proof["outcome"] == "measured"]
    if not proofs:
        texts = [proof["text"] for proof in finding.get("proofs", [])]
        return (texts or ["nothing to try"])[0][:100], None, None
    best = max(proofs, key=lambda proof: proof["saving"])
    least = best["text"].startswith("measured, at least")
    interval = f"{100 * best['saving']:.1f} ({100 * best['low']:.0f} to {100 * best['high']:.0f})"
    low, high = best["low"] - 0.05, best["high"] + 0.05
    if least:
        return f"at least {interval}", real >= low, None
    return interval, not program.control and low <= real <= high, 100 * (best["saving"] - real)


def row(program, deadweight, runs):
    real = program.real(runs)
    before, _ = program.report(deadweight)
    after, took = program.report(deadweight, "--prove")
    told = [f for f in before["findings"] if not program.want or program.want == "cost" or f["class"] == program.want][:1]
    found = [f for f in after["findings"] if not program.want or program.want == "cost" or f["class"] == program.want][:1]
    withdrawn = [f for f in after.get("withdrawn", []) if f["class"] == program.want][:1]
    kind = (found or withdrawn or told or [{"class": "–"}])[0]["class"]
    words, right, error = judge(program, real, (found or withdrawn or [{}])[0])
    if not found and withdrawn:
        words, right = "withdrawn: " + words, False
    if program.control:
        saved = [f for f in after["findings"] if any(p["outcome"] == "measured" for p in f.get("proofs", []))]
        right = not saved
        words = "nothing measured" if right else f"{saved[0]['class']} measured"
    # Five pairs tell the real saving to about a point.
    result = dict(name=program.name, want=program.want, kind=kind, real=100 * real, words=words, right=right, error=error, took=took)
    if told and not program.control:
        share, low, high = (100 * told[0][key] for key in ("saving_share", "low", "high"))
        result |= dict(predicted=share, low=low, high=high, inside=low - 1 <= result["real"] <= high + 1)
    return result


def shown(result):
    said = "–"
    if "predicted" in result:
        said = f"{result['predicted']:.0f} ({result['low']:.0f} to {result['high']:.0f}){'' if result['inside'] else ' !'}"
    right = {True: "yes", False: "NO", None: "not measured"}[result["right"]]
    return (f"| {result['name']} | {result['kind']} | {result['real']:.1f} | {said} | {result['words']} | {right} "
            f"| {result['took']:.0f} |")


def summary(rows):
    lines = ["", "| class | programs | bias of predictions, points | spread | in the range | measured | right |", "|---|---:|---:|---:|---:|---:|---:|"]
    for kind in sorted({r["kind"] for r in rows if "predicted" in r}):
        some = [r for r in rows if r["kind"] == kind and "predicted" in r]
        errors = [r["predicted"] - r["real"] for r in some]
        judged = [r for r in some if r["right"] is not None]
        lines.append(f"| {kind} | {len(some)} | {statistics.mean(errors):+.1f} | {statistics.pstdev(errors):.1f} | "
                     f"{sum(r['inside'] for r in some)} | {len(judged)} | {sum(r['right'] for r in judged)} |")
    told = [r for r in rows if "predicted" in r]
    off = sorted(abs(r["predicted"] - r["real"]) for r in told)
    judged = [r for r in rows if r["right"] is not None and r["want"]]
    controls = [r for r in rows if not r["want"]]
    exact = [abs(r["error"]) for r in judged if r["error"] is not None]
    median = lambda values: f"{statistics.median(values):.1f}" if values else "–"
    worst = f"{off[int(0.9 * (len(off) - 1))]:.1f}" if off else "–"
    lines += ["", f"Measured: {sum(r['right'] for r in judged)} of {len(judged)} right; median error where the whole cost was left out "
              f"{median(exact)} points ({len(exact)} programs). Controls: {sum(r['right'] for r in controls)} of {len(controls)} without a measured saving. "
              f"Predicted by one plain run: {sum(r['inside'] for r in told)} of {len(told)} ranges have the real saving; error {median(off)} points in the median, "
              f"{worst} at the 90th percentile."]
    return "\n".join(lines)


def main():
    global OUTPUT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deadweight", default=os.path.join(ROOT, "target/release/deadweight"))
    parser.add_argument("--corpus", action="append", default=[])
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--no-own", action="store_true", help="without the programs of bench/proofs")
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--json")
    args = parser.parse_args()
    deadweight, only = os.path.abspath(args.deadweight), set(filter(None, args.only.split(",")))
    rows = []
    print("| program | class | real % | predicted % | measured % | right | s |\n|---|---|---:|---|---|---|---:|")
    # Not in memory: syncs must cost what they do.
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", os.path.join(ROOT, "target"))) as folder:
        OUTPUT = folder + "/output"
        programs = [] if args.no_own else list(own_programs(folder, only))
        programs += [program for place in args.corpus for program in corpus(place)]
        programs += list(cases()) if args.cases else []
        for program in programs:
            if only and program.name not in only:
                continue
            rows.append(row(program, deadweight, args.runs))
            print(shown(rows[-1]), flush=True)
            if args.json:
                json.dump(rows, open(args.json, "w"), indent=1)
    print(summary(rows))
    return 0 if all(r["right"] is not False for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
