#!/usr/bin/env python3
"""Runs programs recorded and not, on each rung, and reports differences.

  bench/identity.py [--times N] [--rungs root,user,stops] [--only NAME,NAME] [--binary FILE]

Compares exit code, the program's standard output and error, and what is left behind: deadweight's processes,
processes that are traced, uprobes, trace instances, BPF programs, mounts, descriptors of this script that it did not open, and
files in the folder that the programs run in. A run that takes longer than a minute counts as hanging. As root;
`user` becomes an ordinary user by setpriv, `stops` too and is refused perf events by a filter of system calls.
"""
import argparse, ctypes, os, shutil, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
USER = "65534"
# Name, command, standard input. What they print is the same in each run.
PROGRAMS = [
    ("true", ["true"], b""),
    ("false", ["false"], b""),
    ("code", ["sh", "-c", "exit 77"], b""),
    ("streams", ["sh", "-c", "echo out; echo err >&2; exit 3"], b""),
    ("terminated", ["sh", "-c", "kill -TERM $$"], b""),
    ("killed", ["sh", "-c", "kill -KILL $$"], b""),
    ("aborted", ["python3", "-c", "import resource, os; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()"], b""),
    ("segfault", ["python3", "-c", "import resource, ctypes; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); ctypes.string_at(0)"], b""),
    ("input", ["sort", "-n"], b"".join(b"%d\n" % (i * 7919 % 1000) for i in range(1000))),
    ("pipeline", ["sh", "-c", "seq 20000 | grep 7 | sort -r | head -n 5"], b""),
    ("broken pipe", ["sh", "-c", "yes | head -n 3"], b""),
    ("background", ["sh", "-c", "sleep 0.05 & echo started; wait $!; echo $?"], b""),
    ("traps", ["sh", "-c", "trap 'echo caught' USR1; kill -USR1 $$; echo on"], b""),
    ("forks", ["sh", "-c", "i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i+1)); done; echo $i"], b""),
    ("threads", ["python3", "-c", "import threading\nn=[]\nt=[threading.Thread(target=n.append,args=(i,)) for i in range(20)]\n[x.start() for x in t];[x.join() for x in t];print(sorted(n))"], b""),
    ("vfork", ["python3", "-c", "import subprocess\nprint([subprocess.run(['sh','-c',f'exit {i}']).returncode for i in range(5)])"], b""),
    ("alarm", ["python3", "-c", "import signal,time\nsignal.signal(signal.SIGALRM,lambda *a:print('rang'))\nsignal.setitimer(signal.ITIMER_REAL,.02)\ntime.sleep(.05);print('done')"], b""),
    ("descriptors", ["sh", "-c", "ls /proc/self/fd | wc -l"], b""),
    ("many reads", ["dd", "bs=1", "count=20000", "status=none"], b"x" * 20000),
    ("limits", ["sh", "-c", "ulimit -n; umask; nice; pwd | wc -c"], b""),
]


def run(words, given, folder):
    """Exit code as Python reports it, and the output."""
    environment = dict(os.environ, HOME=folder, XDG_CACHE_HOME=os.path.join(folder, ".cache"))
    try:
        done = subprocess.run(words, input=given, capture_output=True, cwd=folder, env=environment, timeout=60)
    except subprocess.TimeoutExpired:
        return "hangs", b"", b""
    return done.returncode, done.stdout, done.stderr


def as_a_shell_says(result):
    """A program that a signal ended has exit code 128 plus its number."""
    code, out, err = result
    return (128 - code if isinstance(code, int) and code < 0 else code), out, err


def kernel_programs():
    """The numbers of the BPF programs that are loaded (`bpf(BPF_PROG_GET_NEXT_ID)`)."""
    found, words = set(), (ctypes.c_uint32 * 8)()
    bpf = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    while ctypes.CDLL(None).syscall(bpf, 11, words, ctypes.sizeof(words)) == 0:
        words[0] = words[1]
        found.add(words[1])
    return found


OTHERS = kernel_programs()


def left_behind(folder, binary):
    """Processes that run deadweight's binary, and what the kernel keeps for tracers."""
    ours = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(binary): ours.append(f"process {pid}")
            elif os.readlink(f"/proc/{pid}/cwd") == folder: ours.append(f"process {pid} of a program")
        except OSError: pass
    for what in "uprobe_events", "kprobe_events":
        try: ours += open(f"/sys/kernel/tracing/{what}").read().splitlines()
        except OSError: pass
    try: ours += os.listdir("/sys/kernel/tracing/instances")
    except OSError: pass
    ours += [f"program {number} in the kernel" for number in kernel_programs() - OTHERS]
    ours += [line for line in open("/proc/self/mounts").read().splitlines() if "deadweight" in line]
    ours += [f"descriptor {fd}" for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")]
    return ours + [name for name in os.listdir(folder) if name not in (".cache", "ours", "refuse_perf")]


def settled(folder, binary):
    """What is left after the time that closing events in the background takes."""
    for _ in range(100):
        left = left_behind(folder, binary)
        if not left: break
        time.sleep(0.1)
    return left


def check_rungs(rungs, binary, filtered, folder):
    """Each rung is the expected one; otherwise the results would mean nothing."""
    for rung in rungs:
        words = before_it(rung, filtered) + [binary, "--export-json", "-", "--", "true"]
        said = run(words, b"", folder)[1].decode()
        # A report does not mention the highest rung.
        as_expected = '"recording"' not in said if rung == "root" else f'"rung": "{rung}"' in said
        assert as_expected and said.strip().endswith("}"), f"{rung}: {said[-300:]}"


def before_it(rung, filtered, refused="user"):
    """The words before a command that select a rung; `refused` is the user without perf events: an ordinary `user`, or `root`."""
    become = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]
    return {"root": [], "user": become, "stops": (become if refused == "user" else []) + [filtered, "EPERM"]}[rung]


def workshop(name, binary):
    """A folder that all may write to, with a copy of deadweight and the filter that refuses perf events in it."""
    folder = tempfile.mkdtemp(prefix=f"deadweight-{name}-")
    os.chmod(folder, 0o777)
    ours, filtered = os.path.join(folder, "ours"), os.path.join(folder, "refuse_perf")
    shutil.copy(binary, ours)
    os.chmod(ours, 0o755)
    subprocess.run(["cc", "-O1", "-o", filtered, os.path.join(ROOT, "tests/programs/refuse_perf.c")], check=True)
    return folder, ours, filtered


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--times", type=int, default=10)
    ask.add_argument("--rungs", default="root,user,stops")
    ask.add_argument("--only", default="")
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    only = options.only.split(",") if options.only else None
    programs = [p for p in PROGRAMS if only is None or p[0] in only]
    folder, here, filtered = workshop("identity", options.binary)
    check_rungs(options.rungs.split(","), here, filtered, folder)
    before = left_behind(folder, here)
    runs = differing = 0
    for rung in options.rungs.split(","):
        become = before_it(rung, filtered)
        expected = {name: run(become + words, given, folder) for name, words, given in programs}
        for turn in range(options.times):
            for name, words, given in programs:
                code, out, err = run(become + [here, "-q", "-o", "/dev/null", "--"] + words, given, folder)
                runs += 1
                was = as_a_shell_says(expected[name])
                if (code, out, err) != was:
                    differing += 1
                    print(f"{rung} {name}, turn {turn}: {(code, out[-200:], err[-200:])} instead of {was}", flush=True)
            if turn % 50 == 49: print(f"# {rung}: {turn + 1} turns", file=sys.stderr, flush=True)
    left = [what for what in settled(folder, here) if what not in before]
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{runs} runs on {options.rungs} of {len(programs)} programs, {differing} differ; left behind: {', '.join(left) or 'nothing'}")
    return 1 if differing or left else 0


if __name__ == "__main__":
    sys.exit(main())
