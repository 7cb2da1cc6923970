#!/usr/bin/env python3
"""Weighs builds and programs that generate code while they run, on each rung, beside a run without deadweight.

  bench/targets.py [--rungs root,user,stops] [--only NAME,NAME] [--binary FILE]

make with two jobs, cargo, Java, node and Python 3.12, each with its perf map, git, sqlite3 and the go tool. Reports
exit codes and outputs that differ, the time alone, recorded, and from call to return, the recorder's largest memory,
the part of the samples that has a function's name, the shares that were lost or not seen, and the first finding. As
root; `user` becomes an ordinary user by setpriv, `stops` is root behind a filter that refuses perf events. Says
which programs are not installed and left out.
"""
import argparse, glob, json, os, re, shutil, subprocess, sys, time
from identity import ROOT, before_it, workshop
from odd import MAIN, MAKEFILE

JAVA = """import java.util.*;
public class Hot {
  static long sum(int[] of) { long s = 0; for (int x : of) s += x * 31L ^ (s >>> 3); return s; }
  static String text(int n) { StringBuilder b = new StringBuilder(); for (int i = 0; i < n; i++) b.append(i % 7); return b.toString(); }
  public static void main(String[] none) {
    int[] of = new int[1 << 20]; for (int i = 0; i < of.length; i++) of[i] = i * 7;
    long s = 0; for (int r = 0; r < 400; r++) s += sum(of);
    Map<String, Integer> m = new HashMap<>(); for (int r = 0; r < 200000; r++) m.merge(text(r % 50), 1, Integer::sum);
    System.out.println(s + " " + m.size());
  }
}
"""
NODE = """function steps(n) { let c = 0; while (n !== 1) { n = n % 2 ? 3 * n + 1 : n / 2; c++; } return c; }
let best = 0; for (let i = 1; i < 1000000; i++) best = Math.max(best, steps(i)); console.log(best);
"""
PYTHON = """def inner(n):
    t = 0
    for i in range(n): t += i * i % 7
    return t
print(sum(inner(2000) for _ in range(3000)))
"""
RUST = 'fn main() { let r = regex::Regex::new("a+").unwrap(); println!("{}", r.is_match("caat")); }\n'
# 40 files of 30 functions, so that the compiler has work.
SOURCE = 'for n in $(seq 1 40); do for f in $(seq 1 30); do echo "int part${n}_$f(const char *s, int n) ' \
    '{ int t = 0; for (int k = 0; k < n; k++) t += s[k] * $f; return t; }"; done > more$n.c; done'


DARK = ("unrecorded", "unexplained")


def write(path, text):
    with open(path, "w") as file: file.write(text)


def python_of_today():
    """A Python whose frames a perf map can name, with all that it needs where any user may read it."""
    for name in ["python3.12", "python3.13", "python3"] + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3"))):
        found = shutil.which(name)
        asked = found and subprocess.run([found, "-c", "import sys; print(sys.version_info >= (3, 12), sys.executable)"],
                                         capture_output=True, text=True)
        if asked and asked.returncode == 0 and asked.stdout.startswith("True"): return asked.stdout.split()[1]
    return None


def targets(folder):
    """Name, command, environment."""
    here = lambda name: os.path.join(folder, name)
    os.mkdir(here("c"))
    write(here("c/Makefile"), MAKEFILE + "EXTRA = $(foreach n,$(shell seq 40),more$(n).o)\nwhole: $(EXTRA)\nmore%.o: more%.c\n\t@gcc -O2 -c -o $@ $<\n")
    write(here("c/main.c"), MAIN)
    subprocess.run(["sh", "-c", SOURCE], cwd=here("c"), check=True)
    write(here("Hot.java"), JAVA); write(here("hot.js"), NODE); write(here("hot.py"), PYTHON)
    listed = [("make -j2", ["sh", "-c", f"cp -r {here('c')} $PWD/b.$$; cd b.$$; make -s -j2; echo $?; cd ..; rm -r b.$$"])]
    if shutil.which("cargo"):
        os.makedirs(here("rust/src"))
        write(here("rust/Cargo.toml"), '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nregex = "1"\n')
        write(here("rust/src/main.rs"), RUST)
        subprocess.run(["cargo", "fetch", "-q"], cwd=here("rust"), check=True)
        listed.append(("cargo build", ["sh", "-c", f"cd {here('rust')}; CARGO_TARGET_DIR=$HOME/t.$$ cargo build -q --offline; echo $?; rm -r $HOME/t.$$"]))
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", folder, here("Hot.java")], check=True)
        listed.append(("java", ["java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-cp", folder, "Hot"]))
    if shutil.which("node"): listed.append(("node", ["node", "--perf-basic-prof", here("hot.js")]))
    if python := python_of_today(): listed.append(("python", [python, "-X", "perf", here("hot.py")]))
    if shutil.which("git"): listed.append(("git", ["git", "-C", ROOT, "-c", "safe.directory=*", "log", "--stat", "--oneline"]))
    if shutil.which("sqlite3"):
        listed.append(("sqlite3", ["sqlite3", ":memory:", "create table t(a,b); with recursive c(n) as (select 1 union all select n+1 from c where n<300000) "
                                   "insert into t select n, n*7%1000 from c; select b, count(*) from t group by b order by 2 desc limit 3;"]))
    go = shutil.which("go") or next((p for p in ["/usr/local/go/bin/go"] if os.path.exists(p)), None)
    if go: listed.append(("go vet", [go, "vet", "fmt"]))
    for name, tool in [("cargo build", "cargo"), ("java", "javac"), ("node", "node"), ("python", "Python 3.12"), ("git", "git"),
                       ("sqlite3", "sqlite3"), ("go vet", "go")]:
        if all(name != known for known, _ in listed): print(f"left out: {tool} is not installed")
    return listed


def timed(words, folder):
    """Exit code, output, seconds, and the largest memory of the process itself or of a child, in MiB."""
    home = os.path.join(folder, "home")
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=home, env=dict(os.environ, HOME=home))
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, out, time.monotonic() - start, usage.ru_maxrss / 1024


def named(ours, recording):
    """The part of the samples in user code whose innermost frame has a function's name."""
    text = subprocess.run([ours, "dump", "--text", recording], capture_output=True, text=True).stdout
    samples = [line.split(" sample ", 1)[1] for line in text.splitlines() if " sample " in line]
    user = [sample for sample in samples if not sample.startswith("kernel")]
    nameless = [sample for sample in user if re.match(r"\S+\+0x|\? ?|Interpreter|\[unknown\]", sample)]
    return 1 - len(nameless) / len(user) if user else 1.0


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--rungs", default="root,user,stops")
    ask.add_argument("--only", default="")
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    folder, ours, filtered = workshop("targets", options.binary)
    home = os.path.join(folder, "home")
    os.mkdir(home)
    os.chmod(home, 0o777)
    wanted = [t for t in targets(folder) if not options.only or t[0] in options.only.split(",")]
    subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
    print("| program | rung | alone | recorded | in all | trace | names | lost or not seen | first row | first finding |\n|---|---|---:|---:|---:|---:|---:|---:|---|---|")
    for name, words in wanted:
        for rung in options.rungs.split(","):
            become = before_it(rung, filtered, refused="root")
            code, out, alone, _ = timed(become + words, folder)
            if code == 126 or code == 127:
                print(f"| {name} | {rung} | not runnable there | | | | | | | |", flush=True)
                continue
            report, recording = os.path.join(home, "r.json"), os.path.join(home, "r.dwt")
            for old in report, recording:
                if os.path.exists(old): os.remove(old)
            watched, seen, whole, _ = timed(become + [ours, "-q", "-o", "/dev/null", "--export-json", report, "--"] + words, folder)
            if (watched, seen) != (code, out): print(f"{name} on {rung} differs: {watched} instead of {code}")
            timed(become + [ours, "record", "-q", "-o", recording, "--"] + words, folder)
            weighed = json.load(open(report))
            rows = sorted(weighed["ledger"], key=lambda row: -row["ns"])
            dark = sum(row["ns"] for row in rows if row["account"] in DARK) / weighed["wall_ns"]
            finding = weighed["findings"][0] if weighed["findings"] else None
            first = f'{finding["class"]} {100 * finding["saving_share"]:.0f} %' if finding else ""
            size = os.path.getsize(recording) / 1e6 if os.path.exists(recording) else 0
            print(f'| {name} | {rung} | {alone:.2f} s | {weighed["wall_ns"] / 1e9:.2f} s | {whole:.2f} s | {size:.1f} MB | {100 * named(ours, recording):.0f} % | '
                  f'{100 * dark:.1f} % | {rows[0]["account"]} {100 * rows[0]["ns"] / weighed["wall_ns"]:.0f} % | {first} |', flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
