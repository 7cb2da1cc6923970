//! Lives of tasks from events made in code.

use super::*;
use deadweight_trace::symbols::{Image, Location, SourceFrame, Symbols};
use deadweight_trace::{Event, Kind, Meta, Off, Trace};

/// A trace with the kernel stacks that the events need.
struct Recording {
    symbols: Symbols,
    events: Vec<Event>,
}

impl Recording {
    fn new() -> Self {
        let mut symbols = Symbols::default();
        let path = symbols.intern("[kernel]");
        symbols.images.push(Image { path, ..Image::default() });
        Self { symbols, events: Vec::new() }
    }

    fn stack(&mut self, functions: &str) -> StackId {
        let mut stack = Vec::new();
        for name in functions.split_whitespace() {
            let function = self.symbols.intern(name);
            stack.push(LocationId::at(self.symbols.locations.len()));
            let frames = vec![SourceFrame { function, ..SourceFrame::default() }];
            self.symbols.locations.push(Location { frames, ..Location::default() });
        }
        self.symbols.stacks.push(stack);
        StackId::at(self.symbols.stacks.len() - 1)
    }

    fn at(&mut self, at: u64, cpu: u16, task: u32, kind: Kind) {
        self.events.push(Event { at: Ns(at), cpu: Cpu(cpu), task: Tid(task), kind });
    }

    fn timeline(self, end: u64) -> Timeline {
        let meta = Meta { root: Tid(1), end: Ns(end), cpus: 2, ..Meta::default() };
        Timeline::build(&Trace::new(meta, self.symbols, self.events))
    }
}

#[test]
fn a_reader_waits_for_its_child() {
    let mut r = Recording::new();
    let read = r.stack("__schedule anon_pipe_read vfs_read");
    let write = r.stack("try_to_wake_up anon_pipe_write do_syscall_64");
    let (args, none) = ([0; 4], StackId(0));
    r.at(0, 0, 1, Kind::On);
    r.at(10, 0, 1, Kind::Back { ret: 0 });
    r.at(20, 0, 1, Kind::Fork { child: Tid(2), process: Tid(2) });
    r.at(30, 1, 2, Kind::On);
    r.at(35, 1, 2, Kind::Back { ret: 0 });
    r.at(40, 0, 1, Kind::Syscall { nr: 0, args });
    r.at(50, 0, 1, Kind::Off { why: Off::Blocked, stack: read });
    r.at(60, 1, 2, Kind::Syscall { nr: 1, args });
    let wake = Kind::Wake { waker: Tid(2), irq: false, stack: write, inferred: false };
    r.at(70, 1, 1, wake);
    r.at(75, 0, 1, Kind::On);
    r.at(80, 0, 1, Kind::Back { ret: 1 });
    r.at(80, 1, 2, Kind::Back { ret: 1 });
    r.at(85, 1, 2, Kind::Syscall { nr: 231, args });
    r.at(86, 1, 2, Kind::Exit);
    r.at(90, 1, 2, Kind::Off { why: Off::Dead, stack: none });
    let t = r.timeline(100);
    let [root, child] = &t.tasks[..] else { panic!("two tasks: {:?}", t.tasks) };
    let runs: Vec<_> = root.spans.iter().map(|s| (s.start.0, s.run())).collect();
    let on = Run::OnCpu(Cpu(0));
    assert_eq!(
        runs,
        [(0, on), (40, on), (50, Run::Blocked(0)), (70, Run::Runnable), (75, on), (80, on)]
    );
    assert_eq!(root.end, Ns(100));
    assert_eq!(t.blocks[0].waits_for, WaitsFor::PipeData);
    assert_eq!(t.blocks[0].woken_by, WokenBy::Task(TaskId(1)));
    assert_eq!(t.blocks[0].waker_call.map(|c| t.calls[c.index()].nr), Some(1));
    assert_eq!(child.parent, Some(TaskId(0)));
    assert!(child.died && child.self_exit);
    assert_eq!((child.birth, child.exit, child.end), (Ns(20), Some(Ns(86)), Ns(90)));
    assert!(t.warnings.is_empty(), "{:?}", t.warnings);
}

#[test]
fn spans_are_found_from_any_other() {
    let spans = (0..100).map(|at| Span::new(Ns(10 * at), Run::Runnable, Within::User)).collect();
    let task = Task { spans, end: Ns(1000), ..Task::default() };
    for at in (0..1010).map(Ns) {
        let before = task.spans.partition_point(|span| span.start < at);
        let after = task.spans.partition_point(|span| span.start <= at).saturating_sub(1);
        for near in 0..=101 {
            assert_eq!(task.spans_before(near, at), before, "{at} from {near}");
            assert_eq!(task.span_after(near, at), after, "{at} from {near}");
        }
    }
    let none = Task::default();
    assert_eq!((none.spans_before(3, Ns(7)), none.span_after(3, Ns(7))), (0, 0));
}
