//! Programs that nobody here wrote, with each library. One that is not installed is left out.

use crate::harness::{Streams, new_folder, numbers, same};
use deadweight_preload::Library;
use std::process::Command;

fn with_each(name: &str, needs: &[&str], command: &[&str], input: &[u8]) {
    for program in needs {
        let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output().unwrap();
        if !found.status.success() {
            return;
        }
    }
    for library in Library::ALL.into_iter().filter(|library| *library != Library::Nothing) {
        let folder = new_folder(&format!("program_{name}_{library:?}"));
        for streams in [Streams::Files, Streams::Pipes, Streams::OnePipe] {
            same(library, command, &folder, input, streams);
        }
    }
}

#[test]
fn bash() {
    let script = r#"
        for i in 1 2 3; do echo $i; done > out; sort -r < out | while read x; do echo "got $x"; done
        x=$(echo inner); echo "[$x]" >&2; printf 'a\nb\nc\n' | (read a; cat)
        (read line; cat; echo "$line") < out
        exec 3> three; for i in $(seq 100); do echo $i >&3; done; wc < three
        seq 1000 | while read x; do echo $x; done | md5sum; diff <(seq 10) <(seq 11)
        while read line; do echo "$line"; sh -c 'head -c 4'; done | head -50
        cat <<< here; { echo one; echo two >&2; echo three; } 2>&1
        coproc cat; echo to the coprocess >&"${COPROC[1]}"; read x <&"${COPROC[0]}"; echo "$x"
        trap 'echo trapped' EXIT; (exit 3); echo $?; kill -TERM $BASHPID; echo not reached
    "#;
    with_each("bash", &["bash"], &["bash", "-c", script], &numbers(1000));
}

#[test]
fn python() {
    let script = r#"
import multiprocessing, os, subprocess, sys, tempfile, threading
with multiprocessing.Pool(2) as pool: print(sum(pool.map(abs, range(1000))), flush=True)
objects = {str(i): [i, (i, str(i) * 3), {i: i}] for i in range(100000)}
print(sum(len(v[1][1]) for v in objects.values()))
del objects
for i in range(100):
    print(i, flush=True)
    os.write(1, b'direct\n')
print(subprocess.run(['cat'], input=b'x' * 100000, stdout=subprocess.PIPE).stdout[:10])
with tempfile.TemporaryFile(buffering=0) as f:
    for i in range(1000): f.write(b'%d,' % i)
    f.seek(100); print(f.read(20)); f.seek(-5, 2); print(f.read())
process = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
for i in range(20):
    process.stdin.write(b'question %d\n' % i); print(process.stdout.readline())
process.stdin.close(); process.wait()
threads = [threading.Thread(target=lambda: sum(len(str(i)) for i in range(10000))) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(sys.stdin.read()))
if os.fork() == 0: print('child'); sys.exit(0)
os.wait(); print('parent'); sys.exit(4)
"#;
    with_each("python", &["python3"], &["python3", "-c", script], &numbers(1000));
}

#[test]
fn perl() {
    let script = r#"
        $| = 1; while (<STDIN>) { $seen{$_}++; print "$.\n" if $. % 10 == 0; }
        print join('', sort keys %seen); system('echo from the shell'); print `echo quoted`;
        open(F, '>', 'file'); syswrite(F, "$_\n") for 1..1000; close F; print -s 'file', "\n";
        open(F, '<', 'file'); sysread(F, $x, 7); print $x; sysseek(F, 100, 0); sysread(F, $x, 7); print $x;
        if (!fork) { print "child\n"; exit 0 } wait; print "parent\n"; exit 6;
    "#;
    with_each("perl", &["perl"], &["perl", "-e", script], &numbers(1000));
}

#[test]
fn sort() {
    with_each("sort", &["sort"], &["sort", "-S", "1M", "-"], &numbers(200_000));
}

#[test]
fn gawk() {
    let script = r#"
        { sum += $1; if (NR % 100 == 0) { print NR, sum; fflush() } }
        END { system("echo from the shell"); print "y" | "cat"; close("cat"); print "z" > "/dev/stderr" }
    "#;
    with_each("gawk", &["gawk"], &["gawk", script], &numbers(10_000));
}

#[test]
fn sed_and_grep_without_buffers() {
    let script =
        "sed -u 's/1/one/g' | grep --line-buffered one | tr 2 x | head -n 500 | tail -n 20";
    with_each("sed", &["sed", "grep"], &["sh", "-c", script], &numbers(10_000));
}

#[test]
fn git() {
    let script = r#"
        rm -rf repository; git init -q repository; cd repository
        git config user.email a@b.c; git config user.name a
        export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
        for i in 1 2 3; do seq $i $((i * 100)) > $i; git add .; git commit -qm "number $i"; done
        git log --stat --format=%H; git diff HEAD~1; git gc -q; git fsck; git count-objects
    "#;
    with_each("git", &["git"], &["sh", "-c", script], b"");
}

#[test]
fn gcc() {
    let script = r#"
        printf '#include <stdio.h>\n#include <math.h>\nint main(void) { return printf("%%f", sin(1)); }' > a.c
        gcc -O2 -c a.c -o a.o && md5sum a.o; gcc -E a.c | wc; gcc -O2 -S -o - a.c; gcc -Dx=( a.c; echo $?
        gcc a.o -lm -o a && ./a; ar rc a.a a.o; nm a.a
    "#;
    with_each("gcc", &["gcc"], &["bash", "-c", &script.replace("-Dx=(", "'-Dx=('")], b"");
}
