#!/usr/bin/env python3
"""The score of a deadweight binary on recordings whose hidden costs are known.

    bench/score.py [--each] DEADWEIGHT

`bench/corpus/truths.tsv` names the recordings: the class that must be first, a part of its place (file or line, `*`: any), and the
saving of the fast form, measured by alternating runs without recording; a class `-` means that nothing may be found. Prints
counts in the form of Go's benchmarks, which `deadweight ci` judges; less is better:

- wrong/op: programs whose first finding has another class or place, or that have none.
- accused/op: controls with a finding whose range does not begin at 0.
- off/op: points of saving between the real one and the nearest end of the printed range, summed over the programs of the right class.
- error/op: points between the real one and the most likely one, summed likewise. Wide ranges do not make it smaller.

--each prints a line for each program on stderr. Reads recordings only: no privilege, no clock.
"""
import json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TRUTHS = os.path.join(HERE, "corpus", "truths.tsv")


def report(deadweight, trace):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([deadweight, "report", "-q", "-o", os.devnull, "--export-json", file.name, trace], check=True)
        return json.load(open(file.name))


def is_at(finding, place):
    sites = [f"{site['function']} {site['file'].rsplit('/')[-1]}:{site['line']}" for site in finding["sites"]]
    return place == "*" or any(place in site for site in sites)


def judged(findings, known, place, saving):
    """Wrong, accused, points off, points of error."""
    if known == "-":
        return 0, int(any(finding["low"] > 0 for finding in findings)), 0.0, 0.0
    first = findings[0] if findings else None
    if not first or first["class"] != known or not is_at(first, place):
        return 1, 0, 0.0, 0.0
    real, low, high = float(saving), 100 * first["low"], 100 * first["high"]
    return 0, 0, max(low - real, real - high, 0.0), abs(100 * first["saving_share"] - real)


def main():
    words = [word for word in sys.argv[1:] if word != "--each"]
    if len(words) != 1:
        sys.exit(__doc__)
    sums = [0, 0, 0.0, 0.0]
    for line in open(TRUTHS):
        if line.startswith("#") or not line.strip():
            continue
        name, known, place, saving = line.rstrip("\n").split("\t")
        findings = report(words[0], os.path.join(HERE, "..", name))["findings"]
        here = judged(findings, known, place, saving)
        sums = [sum(pair) for pair in zip(sums, here)]
        if "--each" in sys.argv:
            found = [f"{f['class']} {100 * f['low']:.0f}..{100 * f['high']:.0f}" for f in findings[:2]]
            print(f"{name}: {known} {saving}: {', '.join(found) or 'nothing'}: {here[0]} {here[1]} {here[2]:.0f} {here[3]:.0f}", file=sys.stderr)
    for unit in ("wrong", "accused", "off", "error"):
        print(f"Unit {unit}/op better=lower assume=exact")
    print(f"BenchmarkCorpus 1 {sums[0]} wrong/op {sums[1]} accused/op {sums[2]:.0f} off/op {sums[3]:.0f} error/op")


main()
