//! The first events of a recording that attaches to a running process: its state at that instant, reported as if
//! everything had just happened. `snapshot` finds that state out.

use super::{Follow, Task};
use crate::perf::decode::{Body, Record};
use crate::procfs::snapshot::{Doing, Process, Snapshot, Thread};
use deadweight_trace::Off;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::RawKind;

impl Follow<'_> {
    /// Reports all of it. Call it before the first record.
    pub(crate) fn attach(&mut self, snapshot: &Snapshot) {
        // The recording ends when it detaches: no later event is the process's last step.
        self.stats.root_dead = true;
        for process in &snapshot.processes {
            self.attach_process(snapshot.at, process);
        }
        let threads =
            || snapshot.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)));
        for (process, thread) in threads().filter(|(_, t)| t.doing != Doing::Running) {
            self.attach_waiting(snapshot.at, process, thread);
        }
        // Last, so that each has its CPU from now on. If several threads claim one CPU, its holder is unknown.
        let running = |t: &Thread| t.doing == Doing::Running;
        for (process, thread) in threads().filter(|(_, t)| running(t)) {
            let alone = threads().filter(|(_, t)| running(t) && t.cpu == thread.cpu).count() == 1;
            let record = record(snapshot.at, process, thread);
            self.emit(&record, thread.tid, RawKind::On);
            if !alone {
                self.emit(&record, thread.tid, RawKind::Off { why: Off::Preempted, chain: &[] });
            }
        }
    }

    fn attach_process(&mut self, at: u64, process: &Process) {
        let Some(first) = process.threads.first() else { return };
        let record = record(at, process, first);
        let (pid, root) = (process.pid, process.pid == self.start.root);
        if !root {
            let kind = RawKind::Fork { child: Tid(pid), process: Tid(pid) };
            self.emit(&record, process.parent, kind);
        }
        self.tasks.insert(pid, Task { followed: true, process: pid, execs: 1, ..Task::default() });
        let path = &*process.path;
        self.emit(&record, pid, RawKind::Exec { former: Tid(pid), path });
        self.named(&record, pid, first.name.as_bytes());
        self.emit(&record, pid, RawKind::Main);
        for m in &process.mappings {
            let (start, len, offset, inode, path) = (m.start, m.len, m.offset, m.inode, &*m.path);
            let executable = true;
            self.emit(&record, pid, RawKind::Map { start, len, offset, inode, path, executable });
        }
        for (fd, what) in &process.descriptors {
            self.emit(&record, pid, RawKind::Fd { fd: *fd, what });
        }
        for thread in &process.threads[1..] {
            let kind = RawKind::Fork { child: Tid(thread.tid), process: Tid(pid) };
            self.emit(&record, pid, kind);
            self.tasks.insert(thread.tid, Task { followed: true, process: pid, ..Task::default() });
            self.named(&record, thread.tid, thread.name.as_bytes());
        }
        // Its real state comes next; until here it only had to seem to run.
        self.emit(&record, pid, RawKind::Off { why: Off::Preempted, chain: &[] });
    }

    fn attach_waiting(&mut self, at: u64, process: &Process, thread: &Thread) {
        let record = record(at, process, thread);
        let Doing::Waiting(call) = &thread.doing else { return };
        self.emit(&record, thread.tid, RawKind::On);
        if let Some((nr, args)) = *call {
            self.emit(&record, thread.tid, RawKind::Syscall { nr, args });
        }
        self.emit(&record, thread.tid, RawKind::Off { why: Off::Blocked, chain: &[] });
    }
}

fn record(at: u64, process: &Process, thread: &Thread) -> Record<'static> {
    let (process, task, cpu) = (process.pid, thread.tid, thread.cpu.into());
    Record { at, process, task, cpu, body: Body::Other }
}
