#!/usr/bin/env python3
"""What `deadweight --prove` measures beside what a change of the source really saves.

    bench/proofs.py [--deadweight target/release/deadweight] [--only NAME,NAME] [--runs 15]

Builds each program of bench/proofs twice: with its cost, and without (FAST). Times both in turns, which gives the real saving, and runs
`deadweight -r auto` (the prediction) and `deadweight --prove` on the slow one. Prints a table: for each program the predicted range, what
was measured, and whether the measured interval, or what is within 5 points of it, has the real saving. A least saving that was measured is right if
the real one is not smaller. Controls must have no measured saving. Run it on a machine that does nothing else.
"""
import argparse, glob, json, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = {"byte_reads": 600_000, "small_reads": 2_400_000}
CONTROLS = {"compute", "records"}


def build(source, fast, out):
    kind = source.rsplit(".", 1)[-1]
    if kind == "c":
        words = ["gcc", "-O2", "-g", "-pthread", f"-DFAST={fast}", "-o", out, source]
    elif kind == "cpp":
        words = ["g++", "-O2", "-g", "-std=c++17", f"-DFAST={fast}", "-o", out, source]
    elif kind == "rs":
        words = ["rustc", "-O", "-g", "-A", "warnings", *(["--cfg", "fast"] if fast else []), "-o", out, source]
    else:
        words = ["go", "build", "-C", source, *(["-tags", "fast"] if fast else []), "-o", out, "."]
    subprocess.run(words, check=True)


class Program:
    def __init__(self, source, folder):
        self.name = os.path.basename(source).split(".")[0]
        self.slow, self.fast = f"{folder}/{self.name}-slow", f"{folder}/{self.name}-fast"
        build(source, 0, self.slow)
        build(source, 1, self.fast)
        self.input = os.devnull
        if self.name in BYTES:
            self.input = f"{folder}/{self.name}.in"
            with open(self.input, "wb") as file:
                file.write(bytes(i * 7 % 251 for i in range(BYTES[self.name])))
        self.folder = folder
        with open(self.folder + "/output", "wb"):
            pass

    def once(self, binary):
        with open(self.input, "rb") as given, open(self.folder + "/output", "wb") as out:
            since = time.perf_counter()
            subprocess.run([binary], stdin=given, stdout=out, cwd=self.folder, check=True)
            return time.perf_counter() - since

    def real(self, runs):
        self.once(self.slow), self.once(self.fast)
        pairs = [(self.once(self.slow), self.once(self.fast)) for _ in range(runs)]
        slow, fast = (statistics.median(times) for times in zip(*pairs))
        return 1 - fast / slow, slow

    def report(self, deadweight, *options):
        path = tempfile.mktemp(suffix=".json", dir=self.folder)
        since = time.perf_counter()
        with open(self.input, "rb") as given, open(self.folder + "/output", "wb") as out:
            subprocess.run([deadweight, "-q", *options, "--export-json", path, "--", self.slow], stdin=given, stdout=out, cwd=self.folder,
                           check=True)
        with open(path) as file:
            return json.load(file), time.perf_counter() - since


def judge(name, real, finding):
    """What was measured, in words, and whether it is right."""
    proofs = [p for p in finding.get("proofs", []) if p["outcome"] == "measured"]
    if not proofs:
        texts = [p["text"] for p in finding.get("proofs", [])]
        return (texts or ["no proof"])[0][:90], None
    best = max(proofs, key=lambda proof: proof["saving"])
    low, high = best["low"] - 0.05, best["high"] + 0.05
    if name in CONTROLS:
        return f"{100 * best['saving']:.1f}", False
    if best["text"].startswith("measured, at least"):
        return f"at least {100 * best['saving']:.1f}", real >= low
    return f"{100 * best['saving']:.1f} ({100 * best['low']:.0f} to {100 * best['high']:.0f})", low <= real <= high


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deadweight", default=os.path.join(HERE, "../target/release/deadweight"))
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=15)
    args = parser.parse_args()
    deadweight = os.path.abspath(args.deadweight)
    sources = sorted(p for p in glob.glob(f"{HERE}/proofs/*") if os.path.basename(p).split(".")[0] != "target")
    if args.only:
        sources = [p for p in sources if os.path.basename(p).split(".")[0] in args.only.split(",")]
    right, judged, errors, inside, predicted = 0, 0, [], 0, 0
    print("| program | class | real % | predicted % | measured % | right | s |\n|---|---|---:|---|---|---|---:|")
    for source in sources:
        # Not in memory: syncs must cost what they do.
        with tempfile.TemporaryDirectory(dir=os.path.join(HERE, "../target")) as folder:
            program = Program(source, folder)
            real, _ = program.real(args.runs)
            before, _ = program.report(deadweight, "-r", "auto")
            after, took = program.report(deadweight, "--prove")
        findings = after["findings"][:1] or [{}]
        first = findings[0]
        was = [f for f in before["findings"] if f["class"] == first.get("class")][:1]
        said = "–"
        if was:
            said = f"{100 * was[0]['saving_share']:.0f} ({100 * was[0]['low']:.0f} to {100 * was[0]['high']:.0f})"
            predicted += 1
            inside += was[0]["low"] - 0.005 <= real <= was[0]["high"] + 0.005
        if first:
            words, ok = judge(program.name, real, first)
        else:
            words, ok = "nothing found", True if program.name in CONTROLS else None
        if ok is not None:
            judged += 1
            right += ok
            exact = [p for p in first.get("proofs", []) if p["text"].startswith("measured:")]
            if exact:
                errors.append(abs(max(p["saving"] for p in exact) - real) * 100)
        verdict = {True: "yes", False: "NO", None: "not measured"}[ok]
        print(f"| {program.name} | {first.get('class', '–')} | {100 * real:.1f} | {said} | {words} | {verdict} | {took:.0f} |", flush=True)
    error = f"{statistics.median(errors):.1f}" if errors else "–"
    print(f"\n{right} of {judged} right; median error of what was measured {error} points; the predicted range has the real saving in "
          f"{inside} of {predicted}")
    return 0 if right == judged else 1


if __name__ == "__main__":
    sys.exit(main())
