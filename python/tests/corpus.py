"""Recordings for tests and benches: small programs with known costs, on each rung, some damaged.

As root: the rung `user` is an ordinary user, `stops` is one whose perf events a filter refuses.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/programs"
USER = "65534"
RUNGS = ("root", "user", "stops")
TEAMS = ("ads", "maps", "search")
COMMITS = ("1111aaaa", "2222bbbb", "3333cccc")
MONDAY = 1_793_577_600
"""The first second of a week."""
WEEK = 7 * 86_400


def commands(folder, number):
    """A command with its standard input; later ones read and allocate more."""
    more = 1 + number % 7
    return [
        ([f"{folder}/count_bytes"], b"x" * 700 * more),
        ([f"{folder}/churn", str(5 * more)], b""),
        ([f"{folder}/poll_loop", str(more), "1"], b""),
        (["/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done"], b""),
    ][number // len(RUNGS) % 4]


def make(to, count, damaged, deadweight, workers=1, others=()):
    """Record `count` runs below `to`, the first `damaged` of which are then damaged.

    `others` are shell commands, to be recorded instead of the small programs.
    """
    folder = Path(tempfile.mkdtemp(prefix="deadweight-corpus-"))
    folder.chmod(0o777)
    try:
        shutil.copy(deadweight, folder / "deadweight")
        for name in ("count_bytes", "churn", "poll_loop", "refuse_perf"):
            words = ["cc", "-O1", "-g", "-o", folder / name, PROGRAMS / f"{name}.c"]
            subprocess.run(words, check=True)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda n: _record(folder, Path(to), n, others), range(count)))
    finally:
        shutil.rmtree(folder)
    _damage(sorted(Path(to).rglob("*.dwt"))[:: max(1, count // max(1, damaged))][:damaged])


def _record(folder, to, number, others):
    rung = RUNGS[number % len(RUNGS)]
    become = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    before = {"root": [], "user": become, "stops": [*become, f"{folder}/refuse_perf", "EPERM"]}
    if others:
        line = others[number // len(RUNGS) % len(others)]
        command, given = ["/bin/sh", "-c", line], b""
    else:
        command, given = commands(folder, number)
    recording = folder / f"{number}.dwt"
    words = [*before[rung], f"{folder}/deadweight", "record", "-q", "-o", recording, "--", *command]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    env.pop("HOME", None)
    done = subprocess.run(words, input=given, capture_output=True, cwd=folder, env=env)
    good = others or done.returncode == 0
    assert good and recording.is_file(), done.stderr.decode()
    team, commit = TEAMS[number % 5 % 3], COMMITS[number // 3 % 3]
    place = to / f"team={team}" / f"commit={commit}" / f"{number:05}.dwt"
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(recording, place)
    time = MONDAY + COMMITS.index(commit) * WEEK + number * 60
    os.utime(place, (time, time))


def _damage(paths):
    """Cut, overwrite or replace recordings so that no report can be made of them."""
    noise = random.Random(7)
    for number, path in enumerate(paths):
        whole, before = path.read_bytes(), path.stat()
        forged = f'{{"schema": {number}}}'.encode()
        broken = (b"", whole[: 9 + number], noise.randbytes(5000 + number), forged)
        # Their contents differ, so that their runs do: only one is empty.
        path.write_bytes(broken[number if number < 4 else 1 + number % 3])
        os.utime(path, (before.st_atime, before.st_mtime))


def reports(folder, deadweight):
    """What single reports say: their JSON by the id of the run, and the ids of damaged ones."""
    made, damaged = {}, set()
    for path in sorted(Path(folder).rglob("*.dwt")):
        run = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
        words = [deadweight, "report", path, "-q", "--export-json", "-"]
        said = subprocess.run(words, capture_output=True)
        if said.returncode:
            damaged.add(run)
        else:
            parts = dict(part.split("=") for part in path.parts if "=" in part)
            more = {
                **parts,
                "time": int(path.stat().st_mtime),
                "name": str(path.relative_to(folder)),
            }
            made[run] = {**json.loads(said.stdout), "_": more}
    return made, damaged
