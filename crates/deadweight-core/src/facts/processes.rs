//! Which tasks make up which process, what program each ran, and when it was still starting.
//!
//! The kernel reuses process ids; a [`ProcessId`] names one life of one process. `path::Subject` chooses
//! the process whose wall time counts.

use crate::facts::call_site::is_system_image;
use crate::facts::initialisers::Initialisers;
use crate::path::Subject;
use crate::timeline::{Span, Timeline, Within};
use crate::visit_count;
use deadweight_trace::ids::{ImageId, LocationId, TaskId, Tid};
use deadweight_trace::symbols::{Image, JIT_IMAGE, Symbols};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// One life of one process: an index into [`Processes::all`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u32);

/// All processes of a timeline.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// In order of their first task.
    pub(crate) all: Vec<Process>,
    of_task: Vec<u32>,
}

/// One process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Its kernel id.
    pub(crate) pid: Tid,
    /// File name of its last program, or its task's name.
    pub(crate) name: String,
    /// Path of its last program, or empty.
    pub(crate) path: String,
    /// The binary of its last program, if code in it was hit.
    pub(crate) image: Option<ImageId>,
    /// Source language of that binary, or empty.
    pub(crate) language: String,
    /// The process that started it.
    pub(crate) parent: Option<ProcessId>,
    /// The processes that it started, in order of birth.
    pub(crate) children: Vec<ProcessId>,
    /// Its tasks, first one first.
    pub(crate) tasks: Vec<TaskId>,
    /// Whether it is the subject's.
    pub(crate) own: bool,
    /// From its first task's birth ...
    pub(crate) birth: Ns,
    /// ... to its last task's end.
    pub(crate) end: Ns,
    /// When it was starting: from birth to exec, from exec to its own code (initialisers or main). In order,
    /// disjoint.
    pub(crate) starts: Vec<(Ns, Ns)>,
    /// When it executed programs, in order.
    pub(crate) execs: Vec<Ns>,
    /// What its last program did before main, if that took more than a few samples.
    pub(crate) initialisers: Option<Initialisers>,
}

/// Programs that start other programs as their work: their waiting for them is no hidden cost.
const LAUNCHERS: &[&str] = &[
    "sh", "dash", "bash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "make", "gmake", "ninja",
    "xargs", "env", "find", "parallel", "nice", "timeout", "time", "nohup", "setsid", "script",
    "cargo", "go", "zig", "npm", "npx", "node", "gcc", "g++", "cc", "c++", "clang", "rustc",
    "collect2", "bazel", "meson", "cmake", "ctest", "sudo", "stdbuf", "taskset",
];

/// The language of shell scripts.
pub(crate) const SHELL: &str = "shell";

/// Shells: what they start is written in a script.
pub(crate) const SHELLS: &[&str] =
    &["sh", "dash", "bash", "ash", "zsh", "ksh", "mksh", "fish", "busybox"];

impl Process {
    /// Whether it is a thread of the kernel that does what others leave to it: what it delivers is not its own.
    pub(crate) fn is_kernel_worker(&self) -> bool {
        let worker = ["kworker/", "ksoftirqd/"].iter().any(|name| self.name.starts_with(name));
        worker && !self.own && self.path.is_empty()
    }

    /// Whether starting programs is its work (a shell, `make`, `cargo`).
    pub(crate) fn is_launcher(&self) -> bool {
        LAUNCHERS.contains(&self.name.as_str()) || self.language == SHELL
    }

    /// Whether it is still starting at `at`.
    pub(crate) fn starting(&self, at: Ns) -> bool {
        let after = self.starts.partition_point(|(from, _)| *from <= at);
        after > 0 && at < self.starts[after - 1].1
    }

    /// Whether it executed a program of its own.
    pub(crate) fn executed(&self) -> bool {
        !self.execs.is_empty()
    }

    /// Which of its programs runs at `at`: 0 before its first exec.
    pub(crate) fn program(&self, at: Ns) -> usize {
        self.execs.partition_point(|exec| *exec <= at)
    }

    /// When its last program's own code began, as far as known.
    pub(crate) fn began(&self) -> Ns {
        self.starts.last().map_or(self.birth, |(_, to)| *to)
    }
}

impl Processes {
    /// Sorts the timeline's tasks into processes.
    pub(crate) fn gather(timeline: &Timeline, subject: &Subject, symbols: &Symbols) -> Self {
        let mut found = Self { all: Vec::new(), of_task: vec![u32::MAX; timeline.tasks.len()] };
        let mut outside: BTreeMap<Tid, u32> = BTreeMap::new();
        for index in 0..timeline.tasks.len() {
            let task = &timeline.tasks[index];
            let parent = task.parent.filter(|p| p.index() < index);
            let parent_process = parent.map(|p| found.of_task[p.index()]);
            let shared = parent.filter(|p| timeline.tasks[p.index()].process == task.process);
            let known = match (shared, task.own) {
                (Some(_), _) => parent_process,
                (None, false) => outside.get(&task.process).copied(),
                (None, true) => None,
            };
            let id = known.unwrap_or_else(|| {
                let id = u32::try_from(found.all.len()).unwrap_or(u32::MAX);
                let parent = parent_process.map(ProcessId);
                if let Some(parent) = parent {
                    found.all[parent.0 as usize].children.push(ProcessId(id));
                }
                found.all.push(Process {
                    pid: task.process,
                    parent,
                    birth: task.birth,
                    own: subject.owns(TaskId::at(index)),
                    ..Process::default()
                });
                id
            });
            if !task.own {
                outside.entry(task.process).or_insert(id);
            }
            found.of_task[index] = id;
            let process = &mut found.all[id as usize];
            process.tasks.push(TaskId::at(index));
            process.end = process.end.max(task.end);
        }
        for process in &mut found.all {
            process.read_programs(timeline, symbols);
        }
        found
    }

    /// The process of a task.
    pub(crate) fn of(&self, task: TaskId) -> ProcessId {
        ProcessId(self.of_task.get(task.index()).copied().unwrap_or(u32::MAX))
    }

    /// The process behind `id`.
    pub(crate) fn get(&self, id: ProcessId) -> &Process {
        &self.all[id.0 as usize]
    }

    /// These processes and all that descend from them, each once, in order.
    pub(crate) fn below(&self, ancestors: &[ProcessId]) -> Vec<ProcessId> {
        let mut found = ancestors.to_vec();
        let mut next = 0;
        while let Some(id) = found.get(next).copied() {
            found.extend(&self.get(id).children);
            next += 1;
        }
        visit_count::visit(found.len());
        found.sort_unstable();
        found.dedup();
        found
    }

    /// All ids, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ProcessId> {
        visit_count::visit(self.all.len());
        (0..self.all.len()).map(|i| ProcessId(u32::try_from(i).unwrap_or(u32::MAX)))
    }
}

/// What `ps` calls a program that was executed by this path. The kernel names a task by the first 15 bytes of the name
/// in the command; the path may be that of the file that a link led to.
fn called<'n>(path: &'n str, comm: &'n str) -> &'n str {
    const LENGTH: usize = 15;
    let file = path.rsplit('/').next().unwrap_or("");
    let same = file.as_bytes().iter().take(LENGTH).eq(comm.as_bytes());
    if comm.is_empty() || same { file } else { comm }
}

/// The image that a program was executed from: its path may be relative to where it ran.
fn image_of(symbols: &Symbols, path: &str) -> Option<usize> {
    let path = path.trim_start_matches("./").trim_start_matches("../");
    let same = |image: &str| {
        image == path || image.strip_suffix(path).is_some_and(|rest| rest.ends_with('/'))
    };
    let known = |image: &Image| !path.is_empty() && same(symbols.name(image.path));
    symbols.images.iter().position(known)
}

impl Process {
    /// When the program's own code first ran, by page faults: the loader runs before, and the page with the
    /// program's first instruction is not mapped yet. For processes in which no probe marked main.
    fn first_code(
        &self,
        timeline: &Timeline,
        symbols: &Symbols,
        image: ImageId,
        from: Ns,
        to: Ns,
    ) -> Option<Ns> {
        let spans = self.tasks.iter().flat_map(|t| &timeline.task(*t).spans);
        let inside = |span: &&Span| span.start >= from && span.start < to;
        let first = spans.filter(inside).find(|span| match span.within() {
            Within::Fault(fault) => {
                let by = timeline.faults[fault as usize].by;
                symbols
                    .locations
                    .get(by.index())
                    .is_some_and(|l| by.index() > 0 && l.image == image)
            }
            _ => false,
        });
        first.map(|span| span.start)
    }

    /// The image whose code ran first after an exec: the program's file, where it was executed by another name, such
    /// as a link or a script. The loader and the libraries that it starts belong to the system.
    fn first_image(&self, timeline: &Timeline, symbols: &Symbols, from: Ns) -> Option<ImageId> {
        let of = |at: LocationId| {
            let location = symbols.locations.get(at.index()).filter(|_| at.index() > 0)?;
            let path = symbols.name(symbols.images.get(location.image.index())?.path);
            (!is_system_image(path) && path != JIT_IMAGE).then_some(location.image)
        };
        let outermost = |stack| symbols.stack(stack).last().copied().and_then(of);
        let task = timeline.tasks.get(self.tasks.first()?.index())?;
        let mut spans = task.spans.iter().filter(|span| span.start >= from);
        let ran = |span: &Span| match span.within() {
            Within::Fault(fault) => of(timeline.faults[fault as usize].by),
            Within::Syscall(call) => outermost(timeline.calls[call.index()].site),
            _ => None,
        };
        let mut samples = task.samples.iter().filter(|sample| sample.at >= from);
        spans.find_map(ran).or_else(|| samples.find_map(|sample| outermost(sample.stack)))
    }

    /// Learns name, program and starting times from its tasks.
    fn read_programs(&mut self, timeline: &Timeline, symbols: &Symbols) {
        let tasks = self.tasks.iter().map(|t| &timeline.tasks[t.index()]);
        let mut execs: Vec<(Ns, &str)> = tasks
            .clone()
            .flat_map(|t| t.execs.iter().map(|(at, path)| (*at, symbols.name(*path))))
            .collect();
        let mut mains: Vec<Ns> = tasks.clone().flat_map(|t| t.mains.iter().copied()).collect();
        execs.sort_unstable();
        mains.sort_unstable();
        self.execs = execs.iter().map(|(at, _)| *at).collect();
        let (executed_at, path) = execs.last().copied().unwrap_or((Ns::MAX, ""));
        let leader = tasks.clone().find(|task| task.tid == self.pid);
        let comm = match leader.or(tasks.clone().next()) {
            // Of a thread whose first task was not seen, the name that it had from its creator.
            Some(thread) if leader.is_none() && !thread.own => thread.names.first(),
            Some(task) => task.names.iter().take_while(|(at, _)| *at <= executed_at).last(),
            None => None,
        };
        path.clone_into(&mut self.path);
        self.name = called(path, comm.map_or("", |(_, name)| symbols.name(*name))).to_owned();
        self.initialisers = Initialisers::of(timeline, symbols, &self.tasks);
        let own_code = self.initialisers.as_ref().map(|found| found.from);
        let image = image_of(symbols, path).map(ImageId::at);
        self.image = image.or_else(|| self.first_image(timeline, symbols, executed_at));
        for (i, (at, path)) in execs.iter().enumerate() {
            let next = execs.get(i + 1).map_or(Ns::MAX, |(next, _)| *next);
            let main = mains.iter().copied().find(|m| *m >= *at && *m < next);
            let main = main.or_else(|| {
                // By another name, such as a link's, only the last program's file is known.
                let last = self.image.filter(|_| i + 1 == execs.len());
                let image = image_of(symbols, path).map(ImageId::at).or(last)?;
                self.first_code(timeline, symbols, image, *at, next)
            });
            let first = i == 0 && mains.first().is_none_or(|m| *m >= *at);
            let from = if first { self.birth } else { *at };
            // Initialisers are the program's own code, whether a probe at main was hit or not.
            let own = own_code.filter(|own| own >= at && *own < next);
            let to = main.or(own).map_or(*at, |main| own.map_or(main, |own| own.min(main)));
            if from < to {
                self.starts.push((from, to));
            }
        }
        let image = self.image.and_then(|image| symbols.images.get(image.index()));
        let file = image.map_or("", |image| symbols.name(image.path)).rsplit('/').next();
        // The file busybox is also `ls`.
        let is_shell = |file: &str| SHELLS.contains(&file) && file != "busybox";
        // Without perf events a file may be known twice: as the program begins, and when its code was read.
        let same = symbols.images.iter().filter(|other| Some(other.path) == image.map(|i| i.path));
        let mut languages = image.into_iter().chain(same).map(|image| symbols.name(image.language));
        let known = languages.find(|language| !language.is_empty()).unwrap_or("");
        self.language = match self.name.as_str() {
            name if SHELLS.contains(&name) || file.is_some_and(is_shell) => SHELL,
            name if known.is_empty() && name.starts_with("python") => "Python",
            _ => known,
        }
        .to_owned();
    }
}

#[cfg(test)]
mod tests {
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;

    /// Name and language of a program that was executed by `path` and whose file is `image`.
    fn subject(path: &str, comm: &str, image: &str, language: &str) -> (String, String) {
        let text = format!(
            "image app path {image} language {language}\nimage libc.so.6 path /lib/libc.so.6\n\
             sample-period 1000\ntask 1 {comm}\n0 on\n0 exec {path}\n0 main\n\
             500 sample malloc @libc.so.6 <- f <- main <- _start\n9000 exit\n9000 off dead"
        );
        let trace = Trace::from_text(&text).unwrap();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        (report.subject.name, report.subject.language)
    }

    #[test]
    fn a_file_that_is_known_twice_has_its_language() {
        let text = "image app path /bin/app no-symbols\nimage app~2 path /bin/app language C\n\
                    task 1 app\n0 on\n0 exec /bin/app\n0 main\n\
                    500 sample main @app~2+0x10\n9000 exit\n9000 off dead";
        let trace = Trace::from_text(text).unwrap();
        let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
        assert_eq!(report.subject.language, "C");
    }

    #[test]
    fn a_program_is_called_as_ps_calls_it_and_has_the_language_of_its_file() {
        for (path, comm, image, language, expected) in [
            ("./app", "app", "/src/app", "C", ("app", "C")),
            (
                "/bin/redis-server",
                "redis-server",
                "/bin/redis-check-rdb",
                "C",
                ("redis-server", "C"),
            ),
            (
                "/bin/redis-check-rdb",
                "redis-server",
                "/bin/redis-check-rdb",
                "C",
                ("redis-server", "C"),
            ),
            ("/bin/php", "php", "/bin/php8.2", "PHP", ("php", "PHP")),
            ("./script.py", "script.py", "/bin/python3.11", "Python", ("script.py", "Python")),
            ("./build.sh", "build.sh", "/bin/dash", "C", ("build.sh", "shell")),
            ("/bin/ls", "ls", "/bin/busybox", "C", ("ls", "C")),
            (
                "/bin/a-name-of-many-letters",
                "a-name-of-many-",
                "/bin/x",
                "C",
                ("a-name-of-many-letters", "C"),
            ),
        ] {
            let (name, language) = subject(path, comm, image, language);
            assert_eq!((name.as_str(), language.as_str()), expected, "{path} {image}");
        }
    }

    /// What a server waits for that this task of another process wakes.
    fn waits_for(others: &str) -> String {
        let text = format!(
            "attached\ntask 1 server\n0 on\n100 off blocked epoll_wait 4 : ep_poll\n\
             900 on woken-by 9 : ep_poll_callback < sock_def_readable\n1000 sample work\n{others}"
        );
        let rows = crate::cost::tests::rows(&text, 9);
        rows.lines().find(|row| row.starts_with("idle")).unwrap_or_default().to_owned()
    }

    #[test]
    fn a_thread_of_another_program_has_the_name_of_its_program() {
        let thread = "task 9 loop outside\n20 on";
        let leader = "task 8 client outside\n0 on\n10 fork 9";
        let named = "idle 800 waiting for work from client";
        assert_eq!(waits_for(&format!("{leader} thread\n{thread}")), named);
        let seen_first = format!("task 9 loop outside\n5 on\n{leader} thread");
        assert_eq!(waits_for(&seen_first), named);
        // The recorder notes its process as it leaves the CPU, long after it was first seen.
        let late = "task 9 loop outside\n5 on\n30000000 off preempted\ntask 8 client outside\n0 cpu1 on\n29999999 fork 9 thread";
        assert_eq!(waits_for(late), named);
    }

    #[test]
    fn a_child_of_another_program_and_a_thread_of_an_unknown_one_keep_their_names() {
        let thread = "task 9 loop outside\n20 on";
        let child = format!("task 8 client outside\n0 on\n10 fork 9\n{thread}");
        for others in [&child, thread] {
            assert_eq!(waits_for(others), "idle 800 waiting for work from loop", "{others}");
        }
    }

    #[test]
    fn a_program_executed_by_a_link_begins_with_the_first_fault_in_its_file() {
        let start_up = |file: &str| {
            let text = format!(
                "image {file} path /opt/{file}\nimage ld-linux.so.2 path /lib/ld-linux.so.2\ntask 1 tool\n0 on\n\
                 10 exec /usr/bin/tool\n100 fault 0x1000 by _dl_start @ld-linux.so.2\n200 fault-end\n\
                 5000 fault 0x2000 by begin @{file}\n5100 fault-end\n9000 exit\n9000 off dead"
            );
            let trace = Trace::from_text(&text).unwrap();
            let report = weigh(&Weighing { traces: &[trace], ..Weighing::default() }).unwrap();
            report.ledger.iter().find(|row| row.account == "start-up").map_or(0, |row| row.ns)
        };
        assert_eq!((start_up("tool"), start_up("tool-1.2")), (5000, 5000));
    }
}
