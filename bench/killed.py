#!/usr/bin/env python3
"""Kills the recorder at random instants and reports the state of the program, the recording and the machine.

  bench/killed.py [--times N] [--rungs root,user,stops] [--longest MS] [--binary FILE]

The program writes a line when it starts, forks and reads meanwhile, and writes its last line before it ends with a
code of its own; once it was released, both lines must exist, and no process may be left waiting. The recording must open or be
refused in one sentence. Afterwards nothing may be left: processes, perf events of dead owners, uprobes, trace
instances, mounts. As root; `user` becomes an ordinary user by setpriv, `stops` is root behind a filter that
refuses perf events.
"""
import argparse, os, random, shutil, signal, subprocess, sys, time
from identity import ROOT, before_it, settled, workshop

# It has standard streams of its own: a killed reader would end it by a broken pipe.
PROGRAM = """echo $$ > began; i=0; while [ $i -lt 12 ]; do i=$((i+1)); ls / > /dev/null; read x < /dev/null; done
(exit 7); echo $? > ended"""


def mounts():
    return open("/proc/self/mounts").read()


def content(path):
    try: return open(path).read().strip()
    except OSError: return None


def alive(pid):
    try: return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "Z"
    except OSError: return False


def one(words, folder, delay):
    """Kills after so many seconds; returns what is wrong, and how far it had come."""
    for name in "began", "ended", "t.dwt":
        try: os.unlink(os.path.join(folder, name))
        except OSError: pass
    environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME=os.path.join(folder, ".cache"))
    child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    killed = child.wait() == -signal.SIGKILL
    until = time.monotonic() + 60
    time.sleep(0.02)
    began = content(os.path.join(folder, "began"))
    # A program at the start barrier ends at once; one that was released runs to its end.
    while began and alive(began) and time.monotonic() < until: time.sleep(0.005)
    wrong = []
    if began and alive(began): wrong.append(f"process {began} does not end")
    if began and content(os.path.join(folder, "ended")) != "7":
        wrong.append(f"the program began and did not end as it does: {content(os.path.join(folder, 'ended'))}")
    return wrong, killed, bool(began)


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--times", type=int, default=100)
    ask.add_argument("--rungs", default="root,user,stops")
    ask.add_argument("--longest", type=int, default=300)
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    folder, ours, filtered = workshop("killed", options.binary)
    chance = random.Random(options.seed)
    before, mounted, bad = settled(folder, ours), mounts(), 0
    for rung in options.rungs.split(","):
        become = before_it(rung, filtered, refused="root")
        counts = dict(killed=0, began=0, opened=0, refused=0)
        for turn in range(options.times):
            delay = chance.uniform(0, options.longest / 1000)
            words = become + [ours, "record", "-q", "-o", "t.dwt", "--", "sh", "-c", PROGRAM]
            wrong, killed, began = one(words, folder, delay)
            counts["killed"] += killed
            counts["began"] += began
            trace = os.path.join(folder, "t.dwt")
            if os.path.exists(trace):
                said = subprocess.run([ours, "report", trace], capture_output=True, text=True, timeout=60)
                if said.returncode == 0: counts["opened"] += 1
                elif said.returncode == 2 and len(said.stderr.splitlines()) == 1: counts["refused"] += 1
                else: wrong.append(f"report: {said.returncode} {said.stderr[-300:]}")
            if wrong:
                bad += 1
                print(f"{rung}, turn {turn}, after {delay * 1000:.0f} ms: {'; '.join(wrong)}", flush=True)
        print(f"{rung:6} {options.times} runs: {counts['killed']} killed while they recorded, {counts['began']} programs had begun, "
              f"{counts['opened']} recordings opened, {counts['refused']} were refused in one sentence", flush=True)
    for name in "began", "ended", "t.dwt":
        try: os.unlink(os.path.join(folder, name))
        except OSError: pass
    left = [what for what in settled(folder, ours) if what not in before]
    if mounts() != mounted: left.append("mounts")
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{bad} went wrong; left behind: {', '.join(left) or 'nothing'}")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
