#!/usr/bin/env python3
"""Writes expected.json: series with the change points that Apache Otava finds in them.

  python3 -m venv otava && otava/bin/pip install apache-otava==0.8.0
  pip download --no-deps --no-binary :all: apache-otava==0.8.0    # its own test series
  otava/bin/python generate.py apache_otava-0.8.0.tar.gz > expected.json

Values are whole numbers, or have two digits: equal splits must stay equal. A point is its index, p value, means before
and after, deviations before and after, relative change.
"""
import ast, json, math, random, re, sys, tarfile
from otava.analysis import compute_change_points

OPTIONS = [(50, 0.001, 0.0), (50, 0.001, 0.05), (30, 0.01, 0.0), (30, 0.1, 0.05), (30, 0.2, 0.0), (10, 0.0001, 0.0)]


def rounded(value, digits):
    return float(f"{value:.{digits}e}")


def expected(series, options):
    window, max_p, min_magnitude = options
    values = [float(value) for value in series]
    found, _ = compute_change_points(values, window_len=window, max_pvalue=max_p, min_magnitude=min_magnitude)
    of = lambda s: [s.pvalue, s.mean_1, s.mean_2, s.std_1, s.std_2, s.forward_rel_change()]
    return [[int(point.index)] + [rounded(number, 9) for number in of(point.stats)] for point in found]


def case(kind, series, options):
    return {"kind": kind, "series": series, "options": options, "points": expected(series, options)}


def otavas_own(archive):
    """The lists of numbers in Otava's tests that are long enough to be series."""
    series = []
    with tarfile.open(archive) as files:
        for name in ("analysis_test", "series_test", "tigerbeetle_test", "change_point_divisive_test"):
            text = files.extractfile(f"apache_otava-0.8.0/tests/{name}.py").read().decode()
            for found in re.findall(r"\[[-0-9., \n]+\]", text):
                values = ast.literal_eval(found)
                if len(values) >= 10 and all(isinstance(v, (int, float)) for v in values) and values not in series:
                    series.append(values)
    return series


def noise(rng, kind, level):
    """One value around `level`."""
    if kind == "fine":
        return level * rng.lognormvariate(0, 0.005)
    if kind == "usual":
        return level * rng.lognormvariate(0, 0.02)
    if kind == "coarse":
        return level * rng.lognormvariate(0, 0.1)
    # Few different values, so that many splits are equally good.
    return level + rng.choice([0, 0, 1])


def levels(rng, kind, count):
    base = rng.choice([20, 1000, 30000])
    if kind == "step":
        at, factor = rng.randrange(1, count), rng.choice([0.5, 0.9, 0.95, 1.05, 1.1, 2])
        return [base * (factor if i >= at else 1) for i in range(count)]
    if kind == "steps":
        level, result = base, []
        for _ in range(count):
            if rng.random() < 0.04:
                level = base * rng.uniform(0.7, 1.5)
            result.append(level)
        return result
    if kind == "drift":
        return [base * (1 + 0.2 * i / count) for i in range(count)]
    if kind == "waves":
        return [base * (1 + 0.05 * math.sin(i / 9)) for i in range(count)]
    return [base] * count


def made(rng):
    for kind in ("flat", "step", "steps", "drift", "waves", "spikes", "constant", "zeros"):
        for shape in ("fine", "usual", "coarse", "lattice"):
            for count in (5, 7, 12, 25, 49, 60, 130):
                length = count + rng.randrange(0, 4)
                level = levels(rng, kind, length)
                series = [noise(rng, shape, value) for value in level]
                if kind == "spikes":
                    series = [v * rng.uniform(1.1, 3) if rng.random() < 0.08 else v for v in series]
                if kind == "constant":
                    series = level[: length // 2] + [v + rng.choice([0, 1]) for v in level[length // 2 :]]
                if kind == "zeros":
                    series = [0 if rng.random() < 0.5 or i < length // 3 else v for i, v in enumerate(series)]
                digits = 2 if shape == "fine" and count < 30 else 0
                yield kind, [round(v, digits) if digits else round(v) for v in series]
        level = levels(rng, kind, 500)
        yield kind, [round(noise(rng, "usual", value)) for value in level]


def main():
    own = otavas_own(sys.argv[1])
    cases = [case("Otava's own", series, options) for series in own for options in OPTIONS]
    rng = random.Random(1)
    for number, (kind, series) in enumerate(made(rng)):
        cases.append(case(kind, series, OPTIONS[number % 3]))
    print("[" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "]")


if __name__ == "__main__":
    main()
