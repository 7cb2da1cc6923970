"""The shipped queries again, in plain Python over the JSON of single reports."""

from collections import defaultdict

WEEK = 604_800


def ledgers(reports):
    """The rows of the wall ledgers: what the table `rows` must hold."""
    return {
        (run, row["account"]): (
            row["ns"],
            row["share"],
            row["low_ns"],
            row["high_ns"],
            row["basis"] == "exact",
        )
        for run, report in reports.items()
        for row in report["ledger"]
    }


def findings(reports):
    """What the table `findings` must hold."""
    found = {}
    for run, report in reports.items():
        withdrawn = [{**finding, "how": "withdrawn"} for finding in report.get("withdrawn", [])]
        for rank, finding in enumerate(report["findings"] + withdrawn, 1):
            site = (finding["sites"] or [{}])[0]
            place = tuple(
                site.get(key, nothing)
                for key, nothing in (("function", ""), ("file", ""), ("line", 0))
            )
            found[run, rank] = (
                finding["class"],
                finding["process"],
                place,
                finding["saving_ns"],
                finding["how"],
            )
    return found


def top_savings(reports):
    sums = defaultdict(int)
    for kind, process, place, saving, how in findings(reports).values():
        if how not in ("candidate", "withdrawn"):
            sums[(kind, process, *place)] += saving
    order = sorted(sums.items(), key=lambda each: (-each[1], each[0]))
    return [(*place, saving / 1e9) for place, saving in order]


def classes_per_team(reports):
    runs, sums, teams = defaultdict(set), defaultdict(int), defaultdict(int)
    for report in reports.values():
        teams[report["_"]["team"]] += 1
    for (run, _), (kind, _, _, saving, how) in findings(reports).items():
        if how != "withdrawn":
            key = reports[run]["_"]["team"], kind
            runs[key].add(run)
            sums[key] += saving
    order = sorted(sums, key=lambda key: (key[0], -sums[key], key[1]))
    return [
        (*key, len(runs[key]), len(runs[key]) / teams[key[0]], sums[key] / 1e9) for key in order
    ]


def unexplained(reports, least):
    def share(report):
        unknown = (
            row["ns"] for row in report["ledger"] if row["account"] in ("unexplained", "unrecorded")
        )
        return sum(unknown) / max(1, report["wall_ns"])

    shares = {run: share(report) for run, report in reports.items() if share(report) >= least}
    return sorted(shares.items(), key=lambda each: (-each[1], each[0]))


def _means(reports, group):
    """Mean ns of each account by workload and group; the wall times of each group."""
    sums, walls = defaultdict(int), defaultdict(list)
    for report in reports.values():
        key = report["subject"]["name"], group(report)
        walls[key].append(report["wall_ns"])
        for row in report["ledger"]:
            sums[(*key, row["account"])] += row["ns"]
    accounts = {(workload, account) for workload, _, account in sums}
    means = {
        (workload, account, key): sums[workload, key, account] / len(walls[workload, key])
        for workload, account in accounts
        for of, key in walls
        if of == workload
    }
    return means, walls


def grown_rows(reports, least_ns):
    means, walls = _means(reports, lambda report: report["_"]["time"] // WEEK)
    weeks = defaultdict(list)
    for workload, week in sorted(walls):
        weeks[workload].append(week)
    grown = set()
    for (workload, account, week), now in means.items():
        at = weeks[workload].index(week)
        if at and now - means[workload, account, weeks[workload][at - 1]] >= least_ns:
            grown.add((workload, account, len(walls[workload, week])))
    return grown


def changed_rows(reports, least, order):
    means, walls = _means(reports, lambda report: report["_"]["commit"])
    changed = {}
    for (workload, account, commit), now in means.items():
        before = [old for old in order[: order.index(commit)] if (workload, old) in walls]
        if before:
            old = means[workload, account, before[-1]]
            of = walls[workload, before[-1]]
            change = (now - old) / (sum(of) / len(of))
            if abs(change) >= least:
                changed[workload, account, commit] = change
    return changed
