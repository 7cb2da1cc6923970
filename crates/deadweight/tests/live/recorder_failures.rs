//! Accidents of a recorder, on each rung: signals, a closed terminal, a full disk, its death, and reused
//! addresses. The program must end as without deadweight, and the recording must say what is missing.

use crate::each_rung::{await_line, on_each_rung, text};
use crate::program;
use crate::rungs::{Home, USER};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn report(home: &Home) -> Output {
    home.run(&["env"], &["report", "t.dwt"])
}

fn spawned(home: &Home, wrapper: &[&str], arguments: &[&str]) -> Child {
    let mut command = home.command(wrapper, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_signal_to_the_recorder_is_the_programs_on_each_rung() {
    on_each_rung("signals", None, |rung, home, wrapper| {
        for (signal, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
            let script = "echo $$ > ready; while :; do sleep 0.02; done";
            let child =
                spawned(home, wrapper, &["record", "-o", "t.dwt", "--", "sh", "-c", script]);
            let program = await_line(&home.path().join("ready"));
            let to = [format!("-{signal}"), child.id().to_string()];
            assert!(Command::new("kill").args(to).status().unwrap().success());
            let out = child.wait_with_output().unwrap();
            let words = text(&out.stderr);
            assert_eq!(out.status.code(), Some(128 + number), "{rung} {signal}: {words}");
            assert!(!Path::new("/proc").join(program).exists(), "{rung} {signal}: it goes on");
            let printed = text(&report(home).stdout);
            let ended = format!("the command was ended by signal {number} (SIG{signal}");
            assert!(
                printed.contains(&ended) && printed.contains("until then"),
                "{rung}: {printed}"
            );
            assert!(!printed.contains("breaks off"), "{rung}: {printed}");
            std::fs::remove_file(home.path().join("ready")).unwrap();
        }
    });
}

#[test]
fn a_terminal_that_goes_away_takes_nothing_with_it() {
    let hang_up = program::build("hang_up");
    let missing = hang_up.as_ref().err().cloned();
    on_each_rung("hang-up", missing, |rung, home, wrapper| {
        let hang_up = home.put(hang_up.as_ref().unwrap(), 0o755);
        let before = [&[hang_up.to_str().unwrap(), "ready"], wrapper].concat();
        // The program ignores the hang-up as under `nohup`, and writes to a closed terminal.
        let script = "trap '' HUP; echo $$ > ready; sleep 0.3; echo lost; echo yes > done; exit 3";
        for arguments in [&["--"][..], &["-o", "words", "--"], &["record", "-o", "t.dwt", "--"]] {
            let mut command = home.command(&before, &[arguments, &["sh", "-c", script]].concat());
            let out = command.stdout(Stdio::piped()).output().unwrap();
            assert_eq!(text(&out.stdout), "3", "{rung} {arguments:?}: {}", text(&out.stderr));
            assert_eq!(await_line(&home.path().join("done")), "yes");
            for file in ["ready", "done"] {
                std::fs::remove_file(home.path().join(file)).unwrap();
            }
        }
        let words = std::fs::read(home.path().join("words")).unwrap();
        assert!(text(&words).contains("wall time"), "{rung}: {}", text(&words));
        let printed = text(&report(home).stdout);
        assert!(
            printed.contains("exit code 3") && !printed.contains("breaks off"),
            "{rung}: {printed}"
        );
    });
}

#[test]
fn a_full_disk_costs_events_and_not_the_programs_word() {
    let missing = ["unshare", "setpriv"].iter().find_map(|tool| program::tool(tool).err());
    on_each_rung("full", missing, |rung, home, wrapper| {
        let _ = std::fs::create_dir(home.path().join("small"));
        // The namespace's disk ends with the namespace, so the recording is read inside.
        let on_disk = |size: &str, times: u32| {
            let work = format!("for i in $(seq {times}); do ls /usr/bin; done > /dev/null; exit 5");
            let script = format!(
                "mount -t tmpfs -o size={size},mode=1777 none small && {{ \
                 \"$@\" record -o small/t.dwt -- sh -c '{work}'; echo \"ended with $?\"; \
                 \"$@\" report small/t.dwt; \"$@\" -o small/words -- sh -c 'exit 6'; \
                 echo \"then with $?\"; }}"
            );
            let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
            let wrapper = if wrapper.is_empty() { &user[..] } else { wrapper };
            home.run(&[&["unshare", "-m", "sh", "-c", &script, "sh"], wrapper].concat(), &[])
        };
        for (size, times, is_reported) in [("8k", 5, false), ("200k", 150, true)] {
            let out = on_disk(size, times);
            let (said, errors) = (text(&out.stdout), text(&out.stderr));
            let both = format!("{rung} {size}: {said}\n{errors}");
            assert!(said.contains("ended with 5") && said.contains("then with 6"), "{both}");
            assert!(errors.contains("No space left") && errors.contains("is incomplete"), "{both}");
            let [printed, lost] = ["read the written part with", "nothing of it can be read"];
            if is_reported || errors.contains(printed) {
                assert!(errors.contains(printed), "{both}");
                assert!(said.contains("not recorded") && said.contains("exit code 5"), "{both}");
            } else {
                assert!(errors.contains(lost), "{both}");
            }
        }
    });
}

#[test]
fn what_a_killed_recorder_leaves_says_that_it_was_killed() {
    on_each_rung("killed", None, |rung, home, wrapper| {
        let script = "echo $$ > ready; for i in $(seq 40); do ls / > /dev/null; sleep .05; done; echo yes > done";
        let words = ["record", "-q", "-o", "t.dwt", "--", "sh", "-c", script];
        let mut child = spawned(home, wrapper, &words);
        await_line(&home.path().join("ready"));
        let until = Instant::now() + Duration::from_secs(30);
        while !report(home).status.success() {
            assert!(Instant::now() < until, "{rung}: {}", text(&report(home).stderr));
        }
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert_eq!(await_line(&home.path().join("done")), "yes");
        let printed = text(&report(home).stdout);
        assert_eq!(
            printed.matches("deadweight was killed, or the file was cut").count(),
            1,
            "{printed}"
        );
        // Tasks that were alive when the recorder died did not outlive the program.
        assert!(!printed.contains("still running"), "{rung}: {printed}");
    });
}

#[test]
fn a_library_that_comes_and_goes_keeps_its_name() {
    let reloads = program::build("reloads");
    let missing = reloads.as_ref().err().cloned();
    on_each_rung("reloads", missing, |rung, home, wrapper| {
        let library = home.path().join("work.so");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-g", "-shared", "-fPIC", "-DLIBRARY", "-o"]).arg(&library);
        assert!(gcc.arg(program::source("reloads.c")).status().unwrap().success());
        let reloads = home.put(reloads.as_ref().unwrap(), 0o755);
        let words = [reloads.to_str().unwrap(), library.to_str().unwrap(), "1000", "20000"];
        let arguments = [&["record", "-q", "-o", "t.dwt", "--"], &words[..]].concat();
        let out = home.run(wrapper, &arguments);
        assert_eq!(text(&out.stdout), "1", "{rung}: {}", text(&out.stderr));
        let size = std::fs::metadata(home.path().join("t.dwt")).unwrap().len();
        assert!(size < 32 << 20, "{rung}: {size} bytes");
        let top = home.run(&["env"], &["report", "t.dwt", "--top", "3"]);
        let printed = text(&top.stdout);
        assert!(
            printed.contains("work_of_library") && printed.contains("reloads.c:6"),
            "{rung}: {printed}"
        );
    });
}

/// A program of the user under strace, and its process ID once it runs.
fn traced(home: &Home) -> (Child, String) {
    let script = "echo $$ > ready; while [ ! -e done ]; do ls / > /dev/null; sleep .02; done; echo fine; exit 4";
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "sh", "-c", script]).current_dir(home.path());
    command.uid(USER).gid(USER).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = await_line(&home.path().join("ready"));
    (child, pid)
}

#[test]
fn who_has_a_tracer_already_keeps_it() {
    on_each_rung("traced", program::tool("strace").err(), |rung, home, wrapper| {
        let (tracer, pid) = traced(home);
        let out = home.run(wrapper, &["--pid", &pid, "--for", "300ms"]);
        std::fs::write(home.path().join("done"), "").unwrap();
        let ended = tracer.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), &*text(&ended.stdout)), (Some(4), "fine"), "{rung}");
        let said = text(&out.stderr);
        // Root records it without stopping it; for a user the error names the tracer.
        match rung {
            "root" => assert!(out.status.success() && said.contains("attached to"), "{said}"),
            _ => assert!(
                !out.status.success() && said.contains("traces it already"),
                "{rung}: {said}"
            ),
        }
        let script = "ls / > /dev/null; echo traced; exit 6";
        let words = ["-q", "--", "strace", "-f", "-qq", "-o", "/dev/null", "sh", "-c", script];
        let out = home.run(wrapper, &words);
        let (said, errors) = (text(&out.stdout), text(&out.stderr));
        assert_eq!((out.status.code(), &*said, &*errors), (Some(6), "traced", ""), "{rung}");
    });
}

#[test]
fn where_no_memory_may_be_locked_each_rung_still_records() {
    on_each_rung("memlock", program::tool("prlimit").err(), |rung, home, wrapper| {
        let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let wrapper = if wrapper.is_empty() { &user[..] } else { wrapper };
        let wrapper = [&["prlimit", "--memlock=0"], wrapper].concat();
        let out = home.run(&wrapper, &["--", "sh", "-c", "ulimit -l; sleep .1; exit 3"]);
        let (said, errors) = (text(&out.stdout), text(&out.stderr));
        assert_eq!((out.status.code(), &*said), (Some(3), "0"), "{rung}: {errors}");
        assert!(errors.contains("asleep until a timer expired"), "{rung}: {errors}");
        // Such small rings overflow while the tracing overhead is calibrated, which does not affect the program.
        assert!(!errors.contains("records were lost"), "{rung}: {errors}");
    });
}
