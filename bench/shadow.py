#!/usr/bin/env python3
"""How far "undisturbed" of one traced run is from runs without recording.

  bench/shadow.py [--rounds N] [--only NAME,NAME] [--binary FILE]

Each round runs every program twice without recording and once under `deadweight`, in turn, so that all see the same
machine. The error is `net_ns` of a traced run against the median of the clean runs. The clean runs have a spread of
their own: the same error of each of them against that median. Prints a table in Markdown. As root; a program that is
missing is skipped with a message.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Name, shell command with `exec` in front of the last program, so that the shell costs one exec.
PROGRAMS = [
    ("find", "exec find /usr -name '*.h' -newer /etc/passwd"),
    ("find -type", "exec find /usr/share /usr/lib -type l"),
    ("grep -r", "exec grep -r --include=*.py 'x + 77' tree"),
    ("grep -c", "exec grep -c 7 lines"),
    ("ls -lR", "exec ls -lR tree"),
    ("du", "exec du -s /usr/lib /usr/share"),
    ("wc", "exec wc lines"),
    ("sort", "exec sort lines"),
    ("sort -u", "exec sort -u -k 2 lines"),
    ("uniq", "exec uniq -c lines"),
    ("awk", "exec gawk '{n[$1 % 1000] += $2} END {print length(n)}' lines"),
    ("sed", "exec sed 's/7/seven/g' lines"),
    ("tr", "exec tr 0-9 a-j < lines"),
    ("cut", "exec cut -d ' ' -f 2 lines"),
    ("tar", "exec tar -cf out.tar tree"),
    ("gzip", "exec gzip -kf lines"),
    ("xz", "exec xz -kf -1 -T 1 lines"),
    ("zstd", "exec zstd -q -f lines -o out.zst"),
    ("bzip2", "exec bzip2 -kf lines"),
    ("md5sum", "find tree -type f -print0 | exec xargs -0 md5sum"),
    ("sha256sum", "exec sha256sum lines"),
    ("cp -r", "rm -rf copy; exec cp -r tree copy"),
    ("rsync", "rm -rf synced; exec rsync -a tree/ synced"),
    ("dd bs=512", "exec dd if=lines of=/dev/null bs=512 status=none"),
    ("dd bs=1", "exec dd if=/dev/zero of=/dev/null bs=1 count=300000 status=none"),
    ("git log", "cd repository && exec git log --stat"),
    ("git status", "cd repository && exec git status"),
    ("git gc", "cd repository && exec git gc -q --force"),
    ("gcc -O2", "exec gcc -O2 -c code.c -o code.o"),
    ("python3", "exec python3 -c 'print(sum(i * i for i in range(3000000)))'"),
    ("compileall", "exec python3 -m compileall -qf tree"),
    ("perl", "exec perl -ne '$n{$_ % 1000}++; END {print scalar keys %n}' lines"),
    ("sqlite bulk", "rm -f t.db; exec sqlite3 t.db 'create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) insert into t select x from c;'"),
    ("sqlite query", "exec sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x + 1 from c where x < 500000) select sum(x % 7) from c;'"),
    ("sqlite commits", "rm -f u.db; exec sqlite3 u.db < commits"),
    ("bash forks", "exec bash -c 'for i in {1..300}; do /bin/true; done'"),
    ("sh backticks", "exec sh -c 'i=0; while [ $i -lt 200 ]; do x=`echo $i`; i=$((i+1)); done'"),
    ("xargs", "seq 200 | exec xargs -n 1 echo"),
    ("openssl", "exec openssl enc -aes-256-cbc -pass pass:x -pbkdf2 -in lines -out out.enc"),
    ("jq", "exec jq -c '.[] | .a' numbers.json"),
]


def prepare(folder):
    """Input files, the same each time."""
    with open(os.path.join(folder, "lines"), "w") as file:
        for i in range(400_000):
            file.write(f"{i * 7919 % 1_000_003} {i * 104729 % 999_983}\n")
    tree = os.path.join(folder, "tree")
    for i in range(1500):
        place = os.path.join(tree, str(i % 40))
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"m{i}.py"), "w") as file:
            file.write("".join(f"def f{j}(x):\n    return x + {i * j}\n" for j in range(20)))
    with open(os.path.join(folder, "commits"), "w") as file:
        file.write("create table t(a);\n" + "".join(f"insert into t values({i});\n" for i in range(150)))
    with open(os.path.join(folder, "numbers.json"), "w") as file:
        json.dump([{"a": i, "b": str(i)} for i in range(100_000)], file)
    with open(os.path.join(folder, "code.c"), "w") as file:
        for i in range(400):
            file.write(f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) s += a[i] * s; return s; }}\n")
    repository = os.path.join(folder, "repository")
    shutil.copytree(tree, repository)
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(git + ["init", "-q"], check=True)
    for commit in range(20):
        with open(os.path.join(repository, "0", "m0.py"), "a") as file:
            file.write(f"# {commit}\n")
        subprocess.run(git + ["add", "-A"], check=True)
        subprocess.run(git + ["commit", "-q", "-m", f"change {commit}"], check=True)


def clean(command, folder):
    os.chdir(folder)
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    start = time.monotonic()
    # Without Python's own work around it, some 0.5 ms.
    child = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ, file_actions=nothing)
    status = os.waitpid(child, 0)[1]
    return time.monotonic() - start, os.waitstatus_to_exitcode(status)


def traced(binary, command, folder):
    """The undisturbed time in s, and the share of tracing; None if the run failed."""
    out = os.path.join(folder, "report.json")
    words = [binary, "-q", "--export-json", out, "--", "sh", "-c", command]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != 0 or not os.path.exists(out):
        return None
    with open(out) as file:
        report = json.load(file)
    os.remove(out)
    tracing = sum(row["ns"] for row in report["ledger"] if row["account"] == "observer")
    return report["net_ns"] / 1e9, tracing / report["wall_ns"]


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--only", default="")
    options.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    given = options.parse_args()
    wanted = [name for name in given.only.split(",") if name]
    print("| program | clean | spread of clean runs | tracing | error of undisturbed, median | worst |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    errors, spreads, beyond = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        for name, command in PROGRAMS:
            if wanted and name not in wanted:
                continue
            if clean(command, folder)[1] != 0:
                print(f"skipped: {name} cannot run here", file=sys.stderr)
                continue
            times, found = [], []
            for _ in range(given.rounds):
                times.append(clean(command, folder)[0])
                found.append(traced(given.binary, command, folder))
                times.append(clean(command, folder)[0])
            found = [one for one in found if one]
            if not found:
                print(f"skipped: {name} fails under deadweight", file=sys.stderr)
                continue
            middle = statistics.median(times)
            spread = percentile([abs(one / middle - 1) for one in times], 0.75)
            each = [net / middle - 1 for net, _ in found]
            error = statistics.median(each)
            worst = max(each, key=abs)
            errors += each
            spreads.append(spread)
            beyond += [max(0.0, abs(one) - spread) for one in each]
            share = statistics.median(tracing for _, tracing in found)
            print(f"| {name} | {middle * 1e3:.0f} ms | ±{spread:.1%} | {share:.1%} | {error:+.1%} | {worst:+.1%} |", flush=True)
    sizes = [abs(one) for one in errors]
    print(f"\n{len(spreads)} programs, {len(errors)} traced runs: error {statistics.median(sizes):.1%} in the median, 90th percentile {percentile(sizes, 0.9):.1%};")
    print(f"beyond the spread of the clean runs (median {statistics.median(spreads):.1%}): {statistics.median(beyond):.1%} and {percentile(beyond, 0.9):.1%};")
    print(f"too long in {sum(one > 0 for one in errors) / len(errors):.0%} of the runs.")


if __name__ == "__main__":
    main()
