#!/usr/bin/env python3
"""Measures deadweight beside its peers and writes bench/RESULTS.md.

  bench/run.py [--only costs,fixed,exact,size,reading] [--rounds N] [--events MILLIONS] [--deadweight BINARY]

Every round runs each tool once on each load, in turn, so that a slow moment of the machine
affects all of them. Ratios are of minima: noise only ever adds time. CPU time is that of the load
itself and its children, without the tool's.
"""
import argparse, json, os, re, shutil, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OURS = os.path.join(ROOT, "target/release/deadweight")
# The events that deadweight records too, without its call chains and samples.
SAME = "raw_syscalls:*,sched:sched_switch,sched:sched_waking,page-faults,minor-faults"
LOADS = [
    ("reads", "300 000 reads of 1 byte", 300_000),
    ("pingpong", "20 000 round trips through pipes", 20_000),
    ("faults", "200 000 first touches", 200_000),
    ("cpu", "arithmetic", 400_000),
    ("forks", "1 000 fork + exec + wait", 1_000),
]


# Long enough for the kernel to close what a recording has opened.
PAUSE = 1.5


def tools(folder):
    """Name, and the words before the command."""
    perf, data = shutil.which("perf"), os.path.join(folder, "perf.data")
    table = [("nothing", []), ("deadweight", [OURS, "-o", "/dev/null", "--"]),
             ("deadweight record", [OURS, "record", "-o", os.path.join(folder, "bench.dwt"), "--"])]
    if perf:
        table.append(("perf record raw_syscalls", [perf, "record", "-qN", "-o", data, "-e", "raw_syscalls:*", "--"]))
        table.append(("perf record, same events", [perf, "record", "-qN", "-o", data, "-c", "1", "-e", SAME, "--"]))
        table.append(("perf trace -s", [perf, "trace", "-s", "-o", "/dev/null", "--"]))
    if shutil.which("strace"):
        table.append(("strace -c -f", ["strace", "-c", "-f", "-o", "/dev/null", "--"]))
    return table


def median(values):
    return sorted(values)[len(values) // 2]


def timed(argv, allowed=(0,), **more):
    """Wall time in s, CPU time of argv and its children, largest resident set in KiB."""
    start = time.perf_counter()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, **more)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in allowed:
        raise RuntimeError(f"{' '.join(argv)} exited with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def timed_load(before, load, folder):
    """Wall time of the load alone and the CPU time of it and its children, under a tool.

    The load's own wrapper measures them: `time -f` would be one more process.
    """
    note = os.path.join(folder, "note")
    script = ('import os,sys,time\ns=time.perf_counter()\np=os.posix_spawn(sys.argv[2],sys.argv[2:],os.environ)\n'
              'x=os.wait4(p,0)\nopen(sys.argv[1],"w").write(f"{time.perf_counter()-s} {x[2].ru_utime+x[2].ru_stime} {x[1]}")')
    total, _, _ = timed([*before, sys.executable, "-S", "-E", "-c", script, note, *load])
    wall, cpu, status = open(note).read().split()
    if status != "0":
        raise RuntimeError(f"{' '.join(load)} failed under {before[:1]}")
    return float(wall), float(cpu), total


def costs(folder, rounds, out):
    workload, table = os.path.join(folder, "workload"), tools(folder)
    out.append("## The overhead of tracing\n")
    out.append("How many times longer the load takes: wall time, and in brackets its own CPU time. "
               f"Minima of {rounds} rounds, tools alternate within each round. *in all* is from call to return, "
               "start, calibration and report included.\n")
    names = [name for name, _ in table]
    out += ["| load | untraced | " + " | ".join(names[1:]) + " | deadweight, in all |",
            "|---|---:|" + "---:|" * len(names)]
    for kind, title, count in LOADS:
        best = {}
        for _ in range(rounds):
            for name, before in table:
                try:
                    got = timed_load(before, [workload, kind, str(count)], folder)
                except RuntimeError as e:
                    print(f"  {name}: {e}", file=sys.stderr)
                    continue
                best[name] = tuple(map(min, best.get(name, got), got))
        wall, cpu, _ = best["nothing"]
        cells = [f"{best[n][0] / wall:.2f} ({best[n][1] / cpu:.2f})" if n in best else "failed" for n in names[1:]]
        whole = f"{best['deadweight'][2]:.2f} s" if "deadweight" in best else "failed"
        out.append(f"| {title} | {1000 * wall:.0f} ms | " + " | ".join(cells) + f" | {whole} |")
        print(out[-1], file=sys.stderr)
    out.append("")


def fixed(folder, rounds, out):
    out.append("## Fixed cost\n")
    out.append(f"Each command {PAUSE} s after the one before it, except for the last rows: the kernel takes some "
               "40 ms to close each tracepoint, in the background, and a run that follows at once may wait for that.\n")
    out += ["| command | median | minimum | CPU time |", "|---|---:|---:|---:|"]
    table = [("`true`", ["true"]), ("`deadweight -- true`", [OURS, "-o", "/dev/null", "--", "true"]),
             ("`deadweight -r 1 -- true`", [OURS, "-o", "/dev/null", "-r", "1", "--", "true"])]
    if shutil.which("perf"):
        table.append(("`perf stat true`", ["perf", "stat", "true"]))
    if shutil.which("strace"):
        table.append(("`strace -c true`", ["strace", "-c", "true"]))
    runs = {name: [] for name, _ in table}
    for _ in range(max(9, 3 * rounds)):
        for name, argv in table:
            time.sleep(PAUSE)
            runs[name].append(timed(argv))
    peer = shutil.which("hyperfine")
    if peer:
        # The same two commands, the same runs, alternating. deadweight runs each once more, traced.
        settings = ["-r", "20", "-w", "1", "-N"]
        pair = [("`hyperfine -r 20 -w 1 -N true 'sleep 0'`", [peer, "--style", "none", *settings, "true", "sleep 0"]),
                ("`deadweight compare`, the same", [OURS, "compare", "-q", *settings, "true", "sleep 0"])]
        runs.update({name: [] for name, _ in pair})
        for _ in range(max(9, 3 * rounds)):
            for name, argv in pair:
                time.sleep(PAUSE)
                runs[name].append(timed(argv, allowed=(0, 1, 3)))
    for name, argv in table[1:3]:
        runs[f"{name}, again and again"] = [timed(argv) for _ in range(max(9, 3 * rounds))]
    for name, each in runs.items():
        wall = [1000 * one[0] for one in each]
        cpu = 1000 * min(one[1] for one in each)
        out.append(f"| {name} | {median(wall):.1f} ms | {min(wall):.1f} ms | {cpu:.0f} ms |")
        print(out[-1], file=sys.stderr)
    out.append("")


def exact(folder, rounds, out):
    out.append("## CPU time beside the kernel's own count\n")
    out.append("Median of the difference between recorded time on CPUs and `getrusage`. Ping-pong across "
               "CPUs differs by the kernel's own convention, see docs/method.md.\n")
    out += ["| load | on CPU | rusage | difference | lost records |", "|---|---:|---:|---:|---:|"]
    workload, report = os.path.join(folder, "workload"), os.path.join(folder, "report.json")
    for kind, title, count in LOADS:
        seen = []
        for _ in range(max(3, rounds)):
            timed([OURS, "-o", "/dev/null", "--export-json", report, "--", workload, kind, str(count)])
            traced = json.load(open(report))["runs"]["traced"]
            ours, theirs = traced["on_cpu_ns"], traced["rusage_ns"]
            seen.append(((ours - theirs) / max(1, theirs), ours, theirs, traced["lost"]))
        error, ours, theirs, lost = sorted(seen)[len(seen) // 2]
        out.append(f"| {title} | {ours / 1e6:.1f} ms | {theirs / 1e6:.1f} ms | {100 * error:+.2f} % | {lost} |")
    out.append("")


def size(folder, rounds, out):
    out.append("## Size of a recording\n")
    out += ["| load | records | file | bytes per record |", "|---|---:|---:|---:|"]
    workload, file = os.path.join(folder, "workload"), os.path.join(folder, "size.dwt")
    report = os.path.join(folder, "report.json")
    for kind, title, count in LOADS:
        timed([OURS, "record", "-o", file, "--", workload, kind, str(count)])
        timed([OURS, "report", file, "-o", "/dev/null", "--export-json", report])
        records, length = json.load(open(report))["runs"]["traced"]["records"], os.path.getsize(file)
        out.append(f"| {title} | {records} | {length / 1e6:.2f} MB | {length / max(1, records):.1f} |")
    out.append("")


def reading(folder, rounds, out, millions):
    """deadweight's report of a long recording beside perf's, all of one load with some `millions` events for each tool."""
    out.append("## Reading a long recording\n")
    ours, perfs = os.path.join(folder, "long.dwt"), os.path.join(folder, "long.data")
    report = os.path.join(folder, "report.json")
    workload = os.path.join(folder, "workload")

    def load(trips):
        return [workload, "pingpong", str(trips)]

    def records(file):
        timed([OURS, "report", file, "-o", "/dev/null", "--export-json", report])
        return json.load(open(report))["runs"]["traced"]["records"]

    def recorded(trips):
        timed([OURS, "record", "-q", "-o", ours, "--", *load(trips)])
        return records(ours)

    def recorded_by_perf(trips):
        timed(["perf", "record", "-qN", "-m", "16M", "-o", perfs, "-c", "1", "-e", SAME, "--", *load(trips)])
        return events_of(perfs)

    def scaled(record):
        """How many events a round trip makes depends on the CPUs that the two processes get."""
        some = 20_000
        return record(int(millions * 1e6 * some / record(some)))

    table = [("deadweight report", [OURS, "report", ours], ours, scaled(recorded))]
    if shutil.which("perf"):
        events = scaled(recorded_by_perf)
        table.append(("perf script", ["perf", "script", "-i", perfs], perfs, events))
        table.append(("perf report", ["perf", "report", "--stdio", "-i", perfs], perfs, events))
    out += ["| reader | wall | CPU time | relative to deadweight | events/s | largest memory | file |",
            "|---|---:|---:|---:|---:|---:|---:|"]
    ours_wall = None
    for name, argv, file, events in table:
        wall, cpu, rss = min(timed(argv) for _ in range(max(1, rounds if file == ours else rounds // 2)))
        ours_wall = ours_wall or wall
        out.append(f"| {name} | {wall:.2f} s | {cpu:.2f} s | {wall / ours_wall:.1f} | "
                   f"{events / wall / 1e6:.2f} M of {events / 1e6:.2f} M | "
                   f"{rss / 1024:.0f} MiB | {os.path.getsize(file) / 1e6:.0f} MB |")
        print(out[-1], file=sys.stderr)
    out.append("")


def events_of(data):
    """The number of samples in a perf.data."""
    stats = subprocess.run(["perf", "report", "--stats", "-i", data], capture_output=True, text=True).stdout
    found = re.search(r"SAMPLE events:\s+(\d+)", stats)
    return int(found.group(1)) if found else 0


def machine():
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    perf = subprocess.run(["perf", "--version"], capture_output=True, text=True).stdout.strip() if shutil.which("perf") else "no perf"
    strace = subprocess.run(["strace", "--version"], capture_output=True, text=True).stdout.split("\n")[0] if shutil.which("strace") else "no strace"
    return (f"{time.strftime('%Y-%m-%d')}, {model}, {os.cpu_count()} CPUs, Linux {os.uname().release}, {perf}, {strace}, "
            f"load average {os.getloadavg()[0]:.1f} at the start.")


def graded(results):
    """The corpus's scores, which another command measures: kept unchanged."""
    if not os.path.exists(results):
        return ""
    _, head, rest = open(results).read().partition("\n## Corpus\n")
    return head + rest


def main():
    global OURS
    sections = {"costs": costs, "fixed": fixed, "exact": exact, "size": size, "reading": reading}
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default=",".join(sections))
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--events", type=float, default=10, help="millions, of the long recording")
    ap.add_argument("--deadweight", default=OURS, help="the binary to measure")
    ap.add_argument("--out", default=os.path.join(ROOT, "bench/RESULTS.md"), help="`-` prints")
    args = ap.parse_args()
    OURS = args.deadweight
    out = ["# Results of the bench\n", f"Written by `cargo xtask bench`. {machine()}\n"]
    target = os.path.join(ROOT, "target")
    os.makedirs(target, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as folder:
        subprocess.run(["gcc", "-O2", "-o", os.path.join(folder, "workload"), os.path.join(ROOT, "bench/workload.c")], check=True)
        for name in args.only.split(","):
            more = [args.events] if name == "reading" else []
            sections[name](folder, args.rounds, out, *more)
    text = "\n".join(out).rstrip() + "\n" + graded(args.out)
    if args.out == "-":
        print(text, end="")
    else:
        open(args.out, "w").write(text)


if __name__ == "__main__":
    main()
