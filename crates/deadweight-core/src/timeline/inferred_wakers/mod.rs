//! Inferred wakers: who ended a wait where no wake-up is recorded, by what other tasks did in the meantime.
//!
//! Without permission to watch the machine, wake-ups are not recorded. But a task that waits for a pipe's
//! data is woken by the first write to that pipe, a parent by its child's death, a waiter at a futex by a
//! wake of that word, in the order of waiting. Such a waker is marked as inferred. Nothing is guessed:
//! where no event fits, the wake-up stays unseen. Recordings with wake-ups do not need this.

use super::{Block, Call, Run, Span, Timeline, Within, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_trace::ids::{CallId, TaskId, Tid};
use deadweight_trace::syscall::{self, Arch};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// The woken task may get a CPU this long after the other side's call ended, where only the time connects
/// the two.
const SOON: Ns = Ns(500_000);
/// Calls on one object, or births, that are considered for one wait, back from its end.
const CONSIDERED: usize = 64;
/// `-ETIMEDOUT`.
const TIMED_OUT: i64 = -110;
/// `-EINTR`, and what the kernel has in its place for a call that may be restarted (`-ERESTARTSYS` to
/// `-ERESTART_RESTARTBLOCK`): a signal ended the wait.
pub(super) const INTERRUPTED: [i64; 5] = [-4, -512, -513, -514, -516];
/// Futex operations that wake (`FUTEX_WAKE`, `REQUEUE`, `CMP_REQUEUE`, `WAKE_OP`, `UNLOCK_PI`,
/// `WAKE_BITSET`), without their flags.
const FUTEX_WAKES: [u64; 6] = [1, 3, 4, 5, 7, 10];

/// What calls give to waiting tasks.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Provides {
    /// Data, or end of file.
    Data,
    /// Space, or the last reader closed it.
    Space,
    /// Either.
    Both,
    /// A futex word changed.
    Wake,
    /// A signal.
    Signal,
}

fn provides(name: &str) -> Option<Provides> {
    Some(match name {
        "write" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" | "sendmmsg"
        | "sendfile" | "connect" => Provides::Data,
        "read" | "readv" | "recvfrom" | "recvmsg" | "recvmmsg" => Provides::Space,
        "close" | "shutdown" | "splice" | "exit_group" => Provides::Both,
        "futex" | "futex_wake" => Provides::Wake,
        "kill" | "tgkill" | "tkill" => Provides::Signal,
        _ => return None,
    })
}

/// Everything that may have ended a wait, in order of time.
#[derive(Default)]
struct Candidates {
    /// By object: calls on it that a task may have waited for.
    on_object: BTreeMap<u32, Vec<(Provides, CallId)>>,
    /// By process and word: wakes of a futex that woke a task.
    wakes: BTreeMap<(Tid, u64), Vec<CallId>>,
    /// By wait at a futex: the wake that ended it.
    woken: BTreeMap<u32, CallId>,
    /// Calls that give data to any task.
    data: Vec<CallId>,
    /// By the process that gave birth: deaths.
    deaths: BTreeMap<Tid, Vec<(Ns, TaskId)>>,
    /// By process: ends of its threads.
    threads: BTreeMap<Tid, Vec<(Ns, TaskId)>>,
}

/// A wake-up that was inferred.
#[derive(Copy, Clone)]
struct Inferred {
    at: Ns,
    by: WokenBy,
    call: Option<CallId>,
}

/// Gives each wait without a recorded wake-up the waker that fits, if there is one.
///
/// Without `exact`, a wait may have lasted longer than recorded: how long a task was off CPU before it was
/// stopped is known, but not how much of that came before the wait and how much after it.
pub(super) fn infer(timeline: &mut Timeline, arch: Arch, exact: bool) {
    let candidates = Candidates::gather(timeline, arch);
    let mut early: BTreeMap<TaskId, BTreeMap<u32, Ns>> = BTreeMap::new();
    for index in (0..timeline.blocks.len()).filter_map(|i| u32::try_from(i).ok()) {
        let block = timeline.blocks[index as usize];
        if block.woken_by != WokenBy::Unseen {
            continue;
        }
        let late = || Some(late(timeline, &block)).filter(|_| !exact);
        let inferred = candidates.waker_of(timeline, index, &block);
        let inferred = inferred.or_else(|| candidates.waker_of(timeline, index, &late()?));
        let Some(inferred) = inferred else { continue };
        let at = inferred.at.max(block.start).min(block.end);
        if at < block.end {
            early.entry(block.task).or_default().insert(index, at);
        }
        let entry = &mut timeline.blocks[index as usize];
        entry.end = at;
        entry.woken_by = inferred.by;
        entry.waker_call = inferred.call;
        entry.inferred = true;
    }
    for (task, woken) in early {
        make_runnable(timeline, task, &woken);
    }
}

/// The wait as if it had lasted until the task had a CPU again.
fn late(timeline: &Timeline, block: &Block) -> Block {
    let back = block.call.map(|id| timeline.calls[id.index()].end);
    Block { end: back.map_or(block.end, |back| back.max(block.end)), ..*block }
}

/// From its wake-up on a task does not wait, it is runnable.
fn make_runnable(timeline: &mut Timeline, task: TaskId, woken: &BTreeMap<u32, Ns>) {
    let spans = &mut timeline.tasks[task.index()].spans;
    let mut all = Vec::with_capacity(spans.len() + woken.len());
    for (index, span) in spans.iter().enumerate() {
        let end = spans.get(index + 1).map(|next| next.start);
        let Run::Blocked(block) = span.run() else {
            all.push(*span);
            continue;
        };
        let at = woken.get(&block).copied();
        let inside = |at: &Ns| *at >= span.start && end.is_none_or(|end| *at < end);
        let Some(at) = at.filter(inside) else {
            all.push(*span);
            continue;
        };
        if at > span.start {
            all.push(*span);
        }
        all.push(Span::new(at, Run::Runnable, span.within()));
    }
    *spans = all;
}

impl Candidates {
    fn gather(timeline: &Timeline, arch: Arch) -> Self {
        let mut candidates = Self::default();
        let mut by_number: BTreeMap<u16, Option<Provides>> = BTreeMap::new();
        for (index, call) in timeline.calls.iter().enumerate() {
            let id = CallId::at(index);
            let name = || provides(syscall::name(arch, call.nr).unwrap_or(""));
            let Some(given) = *by_number.entry(call.nr).or_insert_with(name) else { continue };
            if given == Provides::Wake {
                let [word, operation, ..] = timeline.args(call);
                let woke = call.ret().is_some_and(|ret| ret > 0);
                if woke && FUTEX_WAKES.contains(&(operation & 0x7f)) {
                    let process = timeline.task(call.task).process;
                    candidates.wakes.entry((process, word)).or_default().push(id);
                }
                continue;
            }
            let gave = |ret: i64| ret > 0 || ret == 0 && given == Provides::Both;
            if !call.ret().is_none_or(gave) {
                continue;
            }
            if let Some(object) = call.object() {
                candidates.on_object.entry(object).or_default().push((given, id));
            }
            if matches!(given, Provides::Data | Provides::Signal) {
                candidates.data.push(id);
            }
        }
        for (index, task) in timeline.tasks.iter().enumerate().filter(|(_, t)| t.own) {
            let Some(end) = task.exit else { continue };
            let id = TaskId::at(index);
            let parent = task.parent.map(|p| timeline.task(p).process);
            match parent {
                Some(parent) if parent != task.process => {
                    candidates.deaths.entry(parent).or_default().push((end, id));
                }
                _ => candidates.threads.entry(task.process).or_default().push((end, id)),
            }
        }
        let lists = candidates.deaths.values_mut().chain(candidates.threads.values_mut());
        lists.for_each(|list| list.sort_unstable());
        candidates.woken = candidates.in_order_of_waiting(timeline, arch);
        candidates
    }

    /// Which futex wake ended which wait: first in, first out.
    fn in_order_of_waiting(&self, timeline: &Timeline, arch: Arch) -> BTreeMap<u32, CallId> {
        let futex = syscall::number(arch, "futex");
        let mut waits: BTreeMap<(Tid, u64), Vec<u32>> = BTreeMap::new();
        for (block, index) in timeline.blocks.iter().zip(0_u32..) {
            let call = block.call.map(|id| timeline.calls[id.index()]);
            if let Some(call) = call.filter(|call| Some(call.nr) == futex) {
                let process = timeline.task(block.task).process;
                waits.entry((process, timeline.args(&call)[0])).or_default().push(index);
            }
        }
        let mut woken = BTreeMap::new();
        for (word, waits) in waits {
            let mut waits = std::collections::VecDeque::from(waits);
            let mut waiting: Vec<u32> = Vec::new();
            for id in self.wakes.get(&word).map_or(&[][..], Vec::as_slice) {
                let wake = timeline.calls[id.index()];
                let block = |index: u32| &timeline.blocks[index as usize];
                while let Some(next) = waits.front().filter(|i| block(**i).start < wake.end) {
                    waiting.push(*next);
                    waits.pop_front();
                }
                waiting.retain(|index| block(*index).end >= wake.start);
                let count = wake.ret().and_then(|ret| usize::try_from(ret).ok()).unwrap_or(0);
                let of_others = |index: &u32| block(*index).task != wake.task;
                let first: Vec<u32> =
                    waiting.iter().copied().filter(of_others).take(count).collect();
                waiting.retain(|index| !first.contains(index));
                woken.extend(first.into_iter().map(|index| (index, *id)));
            }
        }
        woken
    }

    fn waker_of(&self, timeline: &Timeline, index: u32, block: &Block) -> Option<Inferred> {
        let call = block.call.map(|id| &timeline.calls[id.index()]);
        let ret = call.and_then(Call::ret);
        let timer =
            Inferred { at: block.end, by: WokenBy::Interrupt(Interrupt::Timer), call: None };
        // A child that dies sends its parent a signal.
        let interrupted = ret.is_some_and(|ret| INTERRUPTED.contains(&ret));
        let child = if interrupted { self.child(timeline, block) } else { None };
        child.or_else(|| match block.waits_for {
            WaitsFor::PipeData => self.on_object(timeline, block, call?, Provides::Data),
            WaitsFor::PipeRoom => self.on_object(timeline, block, call?, Provides::Space),
            WaitsFor::SocketData => self
                .on_object(timeline, block, call?, Provides::Data)
                .or_else(|| self.just_before(timeline, block)),
            WaitsFor::Futex if ret == Some(TIMED_OUT) => Some(timer),
            WaitsFor::Futex => self.futex(timeline, index, block),
            WaitsFor::Vfork => left(timeline, block),
            WaitsFor::Poll if ret == Some(0) => Some(timer),
            WaitsFor::Poll => self.just_before(timeline, block),
            WaitsFor::Child => self.child(timeline, block),
            _ => None,
        })
    }

    /// The last of its children that died during the wait.
    fn child(&self, timeline: &Timeline, block: &Block) -> Option<Inferred> {
        died(timeline, self.deaths.get(&timeline.task(block.task).process)?, block)
    }

    /// The first call during the wait that gave what is waited for, on the same object: the pipe was empty,
    /// or full. Only without such a call is it a task that closed its end.
    fn on_object(
        &self,
        timeline: &Timeline,
        block: &Block,
        waits_in: &Call,
        wanted: Provides,
    ) -> Option<Inferred> {
        let calls = self.on_object.get(&waits_in.object()?)?;
        let before = calls.partition_point(|(_, id)| timeline.calls[id.index()].start < block.end);
        // Calls are in order of their starts, and one that began long before may not have returned yet.
        let overlaps = |id: CallId| overlapping(timeline, block, id);
        let first = calls[..before].iter().rev().filter(|(given, _)| *given == wanted);
        let first = first.take(CONSIDERED).filter_map(|(_, id)| overlaps(*id)).last();
        first.or_else(|| {
            let left = calls[..before].iter().rev().filter(|(given, _)| *given == Provides::Both);
            left.take(CONSIDERED).find_map(|(_, id)| overlaps(*id))
        })
    }

    fn futex(&self, timeline: &Timeline, index: u32, block: &Block) -> Option<Inferred> {
        let woken = self.woken.get(&index).and_then(|id| overlapping(timeline, block, *id));
        // A thread that ends wakes the one that joins it; the kernel does that.
        woken.or_else(|| self.joined(timeline, block)).or_else(|| {
            let process = timeline.task(block.task).process;
            let ended = died(timeline, self.threads.get(&process)?, block)?;
            (block.end - ended.at <= SOON).then_some(ended)
        })
    }

    /// The end of the thread whose tid is the value that the futex word is expected to keep: so the C
    /// library joins a thread. It is that thread, however long the waiter is then off CPU.
    fn joined(&self, timeline: &Timeline, block: &Block) -> Option<Inferred> {
        let [_, _, value, _] = timeline.args(&timeline.calls[block.call?.index()]);
        let threads = self.threads.get(&timeline.task(block.task).process)?;
        // The kernel zeroes the word just before the end is recorded.
        let before = threads.partition_point(|(at, _)| *at <= block.end + SOON);
        let of_value = |(_, id): &&(Ns, TaskId)| u64::from(timeline.task(*id).tid.0) == value;
        let joined = threads[..before].iter().rev().find(of_value)?;
        died(timeline, &[(joined.0.min(block.end), joined.1)], block)
    }

    /// The last call that gave data to any task just before the wait ended.
    fn just_before(&self, timeline: &Timeline, block: &Block) -> Option<Inferred> {
        let before = self.data.partition_point(|id| timeline.calls[id.index()].start < block.end);
        let inferred = self.data[..before]
            .iter()
            .rev()
            .take(8)
            .find_map(|id| overlapping(timeline, block, *id))?;
        (block.end - inferred.at <= SOON).then_some(inferred)
    }
}

/// The wake-up by this call, if another task made it during the wait: at the end of that task's first time
/// on a CPU in the call.
fn overlapping(timeline: &Timeline, block: &Block, id: CallId) -> Option<Inferred> {
    let call = &timeline.calls[id.index()];
    let ended = if call.end > call.start { call.end } else { block.end };
    if call.task == block.task || ended <= block.start {
        return None;
    }
    let task = timeline.task(call.task);
    let from = call.start.max(block.start);
    let first = task.span_at(from).unwrap_or(task.spans.len());
    let inside = |index: &usize| task.spans[*index].start < ended;
    let on_cpu = |index: &usize| matches!(task.spans[*index].run(), Run::OnCpu(_));
    let first = (first..task.spans.len()).take_while(inside).find(on_cpu)?;
    let in_call = |index: &usize| {
        on_cpu(index) && !matches!(task.spans[*index].within(), Within::User | Within::Exiting)
    };
    let last = (first..task.spans.len()).take_while(in_call).last().unwrap_or(first);
    let at = task.span_end(last).min(ended);
    (at > block.start && task.spans[first].start < block.end).then(|| Inferred {
        at: at.min(block.end),
        by: WokenBy::Task(call.task),
        call: Some(id),
    })
}

/// The wake-up by the vfork child that borrowed the waiter's memory: it executed a program or died.
fn left(timeline: &Timeline, block: &Block) -> Option<Inferred> {
    let born = |task: &super::Task| {
        task.parent == Some(block.task) && task.birth <= block.start && task.end > block.start
    };
    let before = timeline.tasks.partition_point(|task| task.birth <= block.start);
    let child =
        (before.saturating_sub(CONSIDERED)..before).rfind(|at| born(&timeline.tasks[*at]))?;
    let task = &timeline.tasks[child];
    let exec = task.execs.iter().map(|(at, _)| *at).find(|at| *at >= block.start);
    // Nothing else ends such a wait, but the exec may be recorded later than the wake-up.
    let at = exec.or(task.exit)?.min(block.end);
    Some(Inferred { at, by: WokenBy::Task(TaskId::at(child)), call: None })
}

/// The wake-up by the last of these deaths within the wait.
fn died(timeline: &Timeline, deaths: &[(Ns, TaskId)], block: &Block) -> Option<Inferred> {
    let before = deaths.partition_point(|(at, _)| *at <= block.end);
    let (at, task) = *deaths[..before].last()?;
    let gone = timeline.task(task).end;
    let lasted = gone > block.start || at > block.start;
    (lasted && task != block.task).then(|| Inferred {
        at: gone.max(at).min(block.end),
        by: WokenBy::Task(task),
        call: None,
    })
}

#[cfg(test)]
mod tests;
