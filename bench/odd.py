#!/usr/bin/env python3
"""Runs programs in odd environments, recorded and not, on each rung, and reports differences.

  bench/odd.py [--times N] [--rungs root,user,stops] [--only NAME,NAME] [--binary FILE]

Set-user-id programs, tracers, filters of system calls, namespaces, 32-bit programs, many threads, builds with
vfork: compared are exit code, output, and what is left behind, as `identity.py` does for plain programs. As root;
`user` becomes an ordinary user by setpriv, `stops` is root behind a filter that refuses perf events. Needs a C
compiler; says which programs are not installed and left out.
"""
import argparse, os, shutil, subprocess, sys, time
from identity import ROOT, as_a_shell_says, before_it, run, settled, workshop

MAKEFILE = """
OBJECTS = $(foreach n,$(shell seq 40),part$(n).o)
all: whole
	@./whole
whole: $(OBJECTS)
	@gcc -o whole main.c $(OBJECTS)
part%.o:
	@echo 'int part$*(void) { return $*; }' | gcc -x c -O2 -c -o part$*.o -
"""
MAIN = "#include <stdio.h>\n" + "".join(f"int part{n}(void);\n" for n in range(1, 41)) + \
    'int main(void) { printf("%d\\n", ' + " + ".join(f"part{n}()" for n in range(1, 41)) + "); return 6; }\n"


def programs(folder):
    """Name, command. What they print is the same in each run."""
    here = lambda name: os.path.join(folder, name)
    compile = lambda source, *options: subprocess.run(
        ["gcc", "-O2", "-pthread", "-w", *options, "-o", here(source.split(".")[0]),
         os.path.join(ROOT, "tests/programs", source)], check=True)
    for source in "odd_habits.c", "traces_itself.c": compile(source)
    try: compile("narrow.s", "-m32", "-nostdlib", "-static")
    except subprocess.CalledProcessError: print("left out: 32-bit programs do not compile here")
    shutil.copy("/usr/bin/id", here("setuid_id"))
    os.chmod(here("setuid_id"), 0o4755)
    habit = lambda name: [here("odd_habits"), name]
    sh = lambda script: ["sh", "-c", script]
    build = "cp -r {0}/make $PWD/built.$$; cd built.$$; make -s -j2; echo $?; cd ..; rm -r built.$$".format(folder)
    os.mkdir(here("make"))
    open(here("make/Makefile"), "w").write(MAKEFILE)
    open(here("make/main.c"), "w").write(MAIN)
    listed = [
        ("not dumpable", habit("hidden")), ("asks to be traced", habit("traced")), ("traces", [here("traces_itself")]),
        ("strict seccomp", habit("strict")), ("seccomp filter", habit("filtered")),
        ("set-user-id", sh(f"{here('setuid_id')} -u; echo after")),
        ("user namespace", ["unshare", "-Urpfm", "sh", "-c", "echo $$; id -u; exit 4"]),
        ("net namespace", ["unshare", "-Urn", "sh", "-c", "ls /sys/class/net | wc -l; exit 4"]),
        ("chroot", ["unshare", "-Ur", "chroot", "/", "sh", "-c", "echo inside; exit 3"]),
        ("make -j2", sh(build)), ("threads in turn", habit("in-turn")), ("threads at once", habit("at-once")),
    ]
    for name, words in [("strace", ["strace", "-f", "-qq", "-e", "trace=none", "-o", "/dev/null", "sh", "-c", "ls / >/dev/null; exit 6"]),
                        ("java", ["java", "-version"]), ("node", ["node", "-e", "console.log(7); process.exit(5)"])]:
        if shutil.which(words[0]): listed.append((name, words))
        else: print(f"left out: {words[0]} is not installed")
    if os.path.exists(here("narrow")): listed.append(("32 bits", [here("narrow")]))
    return listed


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--times", type=int, default=3)
    ask.add_argument("--rungs", default="root,user,stops")
    ask.add_argument("--only", default="")
    ask.add_argument("--binary", default=os.path.join(ROOT, "target/release/deadweight"))
    options = ask.parse_args()
    folder, ours, filtered = workshop("odd", options.binary)
    os.chmod(folder, 0o755)
    work = os.path.join(folder, "work")
    os.mkdir(work)
    os.chmod(work, 0o777)
    wanted = [p for p in programs(folder) if not options.only or p[0] in options.only.split(",")]
    before, runs, differing = settled(work, ours), 0, 0
    for rung in options.rungs.split(","):
        become = before_it(rung, filtered, refused="root")
        for name, words in wanted:
            plain = as_a_shell_says(run(become + words, b"", work))
            took = 0.0
            for turn in range(options.times):
                start = time.monotonic()
                watched = run(become + [ours, "-q", "-o", "/dev/null", "--"] + words, b"", work)
                took = max(took, time.monotonic() - start)
                runs += 1
                if watched != plain:
                    differing += 1
                    print(f"{rung} {name}, turn {turn}: {watched} instead of {plain}")
            print(f"{rung:6} {name:18} exit {plain[0]}, at most {took:.1f} s", flush=True)
    left = [what for what in settled(work, ours) if what not in before]
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{runs} runs of {len(wanted)} programs, {differing} differ; left behind: {', '.join(left) or 'nothing'}")
    return 1 if differing or left else 0


if __name__ == "__main__":
    sys.exit(main())
