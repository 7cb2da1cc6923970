#!/usr/bin/env python3
"""Ends `deadweight --prove` at random instants, and reports what is left of it.

  bench/killed_proofs.py [--times N] [--longest S] [--user] [--seed N] [--binary FILE]

Each turn proves one of the programs of bench/proofs through a shell that notes whether its run belongs to a proof, and sends
SIGKILL, SIGTERM, SIGINT or SIGHUP after a random time, or nothing. Then nothing may be left: processes, mounts, folders of proofs, kernel programs;
the binary and a file beside it must be as they were. After SIGINT and at a normal end, the program's last run must have been one
of the program itself. As root; `--user` becomes an ordinary user.
"""
import argparse, glob, hashlib, os, random, shutil, signal, subprocess, sys, tempfile, time
from identity import ROOT, USER, kernel_programs
from predictions import BYTES, HERE, compile_one

# `exec` makes the program the child that deadweight knows.
COMMAND = 'echo ${DEADWEIGHT_PROOF:-itself} > last; exec "$0"'
SIGNALS = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None]


def mounts():
    return open("/proc/self/mounts").read()


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def processes(folder, binary):
    """What runs in the folder, from it, or from deadweight's binary."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for link in "exe", "cwd":
            try: to = os.readlink(f"/proc/{pid}/{link}")
            except OSError: continue
            # It closes what the first recording of a user opened, while nothing is recorded, and ends then.
            try: closes = open(f"/proc/{pid}/comm").read().startswith("deadweight: clo")
            except OSError: continue
            if closes: continue
            if to.startswith(folder) or to.startswith(binary):
                found.append(f"process {pid} ({to})")
                break
    return found


class Place:
    """A folder with a program, its input and a file that is nobody's business."""

    def __init__(self, source, folder):
        self.name = os.path.basename(source).split(".")[0]
        self.folder = f"{folder}/{self.name}"
        os.mkdir(self.folder)
        self.program = self.folder + "/program"
        compile_one(source, 0, self.program)
        with open(self.folder + "/in", "wb") as file:
            file.write(bytes(i * 7 % 251 for i in range(BYTES.get(self.name, 0))))
        with open(self.folder + "/document", "w") as file:
            file.write("not the program's\n")
        self.temporary = self.folder + "/tmp"
        os.mkdir(self.temporary)
        self.kept = {path: digest(path) for path in (self.program, self.folder + "/document", self.folder + "/in")}

    def left(self, binary, before):
        found = processes(self.folder, binary) + [name for name in os.listdir(self.temporary)]
        found += [name for name in os.listdir("/var/tmp") + os.listdir("/dev/shm") if name.startswith("deadweight-prove-")]
        if mounts() != before["mounts"]: found.append("mounts")
        return found

    def changed(self):
        return [path for path, was in self.kept.items() if digest(path) != was]


def turn(place, words, chance, longest, before, binary):
    """One proof, ended. Returns what is wrong, and how it was ended."""
    # One cache for all: the first recording of a user searches for tracepoints.
    environment = dict(os.environ, TMPDIR=place.temporary, HOME=place.folder, XDG_CACHE_HOME=os.path.dirname(place.folder) + "/.cache")
    with open(place.folder + "/in", "rb") as given:
        child = subprocess.Popen(words, cwd=place.folder, env=environment, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
    how = chance.choice(SIGNALS)
    time.sleep(chance.uniform(0, longest))
    if how is not None:
        # A terminal's interrupt reaches the whole group, a supervisor's signal deadweight alone.
        (os.killpg if how == signal.SIGINT else os.kill)(child.pid, how)
    try: child.wait(120)
    except subprocess.TimeoutExpired:
        child.kill()
        return ["deadweight does not end"], how, child.returncode
    wrong, until = [], time.monotonic() + 20
    while (left := place.left(binary, before)) and time.monotonic() < until:
        time.sleep(0.01)
    wrong += [f"left: {what}" for what in left]
    wrong += [f"changed: {what}" for what in place.changed()]
    # Who sends another signal wants an end: then deadweight says what the last run may lack.
    last = open(place.folder + "/last").read().strip() if os.path.exists(place.folder + "/last") else "itself"
    if how in (signal.SIGINT, None) and last != "itself":
        wrong.append(f"the last run was {last} (exit code {child.returncode})")
    return wrong, how, child.returncode


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--times", type=int, default=1000)
    ask.add_argument("--longest", type=float, default=5)
    ask.add_argument("--user", action="store_true")
    ask.add_argument("--seed", type=int, default=1)
    ask.add_argument("--only", default="")
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    chance, bad, counts, ended = random.Random(options.seed), 0, {}, {}
    folder = tempfile.mkdtemp(prefix="killed-proofs-", dir=os.environ.get("TMPDIR", "/tmp"))
    os.chmod(folder, 0o755)
    binary = folder + "/deadweight"
    shutil.copy2(options.binary, binary)
    sources = [source for source in sorted(glob.glob(f"{HERE}/proofs/*"))
               if not options.only or os.path.basename(source).split(".")[0] in options.only.split(",")]
    places = [Place(source, folder) for source in sources]
    become = []
    if options.user:
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        subprocess.run(["chown", "-R", f"{USER}:{USER}", folder], check=True)
    before = dict(mounts=mounts())
    subprocess.run(become + [binary, "-q", "--", "true"], env=dict(os.environ, HOME=folder, XDG_CACHE_HOME=folder + "/.cache"), cwd=folder)
    programs = kernel_programs()
    for number in range(options.times):
        place = places[number % len(places)]
        words = become + [binary, "--prove", "-q", "--", "sh", "-c", COMMAND, place.program]
        wrong, how, code = turn(place, words, chance, options.longest, before, binary)
        name = how.name if how else "to its end"
        counts[name] = counts.get(name, 0) + 1
        early = how is not None and code in (-how, 128 + how)
        ended[name] = ended.get(name, 0) + early
        if wrong:
            bad += 1
            print(f"{place.name}, turn {number}, {name}: {'; '.join(wrong)}", flush=True)
        if number % 100 == 99:
            print(f"{number + 1} turns, {bad} went wrong", flush=True)
    left = processes(folder, binary)
    until = time.monotonic() + 10
    while kernel_programs() - programs and time.monotonic() < until:
        time.sleep(0.1)
    left += [f"kernel program {one}" for one in kernel_programs() - programs]
    shutil.rmtree(folder, ignore_errors=True)
    for name in counts:
        print(f"{name:10} {counts[name]:5} proofs, {ended[name]} ended by it")
    print(f"{bad} of {options.times} went wrong; left behind: {', '.join(left) or 'nothing'}")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
