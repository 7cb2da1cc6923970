//! Waits of a task that asked another server and has no answer yet: it waits for that answer, even if it looks at all
//! its connections at once.
//!
//! Only while a client waits for the task: what it asks on its own account, or has asked for once and gets from time to time
//! (a subscription), keeps nobody waiting. The task that asks must also take the answer.

use super::sides::Sides;
use crate::path::Subject;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::transfer::Transfer;
use crate::timeline::{Block, Timeline};
use deadweight_trace::Trace;
use deadweight_trace::ids::TaskId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// A question and its answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    task: TaskId,
    /// When it was asked, or the connection for it was made.
    asked: Ns,
    answered: Ns,
    socket: u32,
}

/// The waits by task and start, each with the socket where the next answer came.
pub(super) fn waits(
    trace: &Trace,
    timeline: &Timeline,
    subject: &Subject,
    sides: &Sides,
) -> BTreeMap<(TaskId, Ns), u32> {
    let mut waits = BTreeMap::new();
    let questions = questions(trace, timeline, subject, sides);
    if questions.is_empty() {
        return waits;
    }
    let polls = |block: &&Block| block.waits_for == WaitsFor::Poll && subject.owns(block.task);
    let mut polls: Vec<&Block> = timeline.blocks.iter().filter(polls).collect();
    polls.sort_unstable_by_key(|block| (block.task, block.start));
    let mut next = questions.iter().peekable();
    let mut open = BinaryHeap::new();
    let mut task = None;
    for block in polls {
        if task != Some(block.task) {
            open.clear();
            task = Some(block.task);
        }
        let begun =
            |question: &&Question| (question.task, question.asked) <= (block.task, block.start);
        while let Some(question) = next.next_if(begun) {
            if question.task == block.task {
                open.push(Reverse((question.answered, question.socket)));
            }
        }
        while open.peek().is_some_and(|Reverse((answered, _))| *answered <= block.start) {
            open.pop();
        }
        if let Some(Reverse((_, socket))) = open.peek() {
            waits.insert((block.task, block.start), *socket);
        }
    }
    waits
}

fn is_socket(timeline: &Timeline, object: u32) -> bool {
    let kind = timeline.objects.get(object).map(|object| object.kind);
    matches!(kind, Some(ObjectKind::Socket | ObjectKind::Datagrams))
}

/// The questions that were answered, by task and start. Calls that were counted together have no known order.
fn questions(
    trace: &Trace,
    timeline: &Timeline,
    subject: &Subject,
    sides: &Sides,
) -> Vec<Question> {
    let mut open: BTreeMap<u32, (TaskId, Ns)> = BTreeMap::new();
    // By task: the clients' sockets with a request that it took and did not answer yet.
    let mut requests: BTreeMap<TaskId, BTreeSet<u32>> = BTreeMap::new();
    let mut questions = Vec::new();
    for call in timeline.calls.iter().filter(|call| subject.owns(call.task)) {
        let Some(socket) = call.object().filter(|object| is_socket(timeline, *object)) else {
            continue;
        };
        let name = syscall::name(trace.meta.arch, call.nr).unwrap_or("");
        let moved = call.ret().is_some_and(|ret| ret > 0);
        let of_task = requests.entry(call.task).or_default();
        match Transfer::of(name) {
            Some(Transfer::Takes) if !sides.own.contains(&socket) && moved => {
                of_task.insert(socket);
            }
            Some(Transfer::Gives) if !sides.own.contains(&socket) && moved => {
                of_task.remove(&socket);
            }
            _ if !sides.own.contains(&socket) => {}
            _ if call.counted > 0 => _ = open.remove(&socket),
            Some(Transfer::Gives) if moved && !of_task.is_empty() => {
                open.entry(socket).or_insert((call.task, call.start));
            }
            _ if name == "connect" && !of_task.is_empty() => {
                open.entry(socket).or_insert((call.task, call.start));
            }
            // The end of a connection is an answer, too.
            Some(Transfer::Takes) if moved || call.ret() == Some(0) => {
                let asked = open.remove(&socket);
                let asked = asked.filter(|(by, at)| *by == call.task && *at < call.start);
                questions.extend(asked.map(|(task, asked)| Question {
                    task,
                    asked,
                    answered: call.start,
                    socket,
                }));
            }
            _ => {}
        }
    }
    questions.sort_unstable();
    questions
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::rows;

    /// A proxy whose client asks at 200; it asks its server, and waits in these spans until 800.
    fn proxy(asks: &str, waits: &str) -> Vec<String> {
        let text = format!(
            "attached
             task 1 proxy
             0 fd 5 socket:[5]:accepted
             0 fd 6 socket:[6]:connected
             0 on
             100 off blocked epoll_wait 4 : ep_poll
             200 on woken-by 9 : ep_poll_callback < sock_def_readable
             210 syscall recvfrom 5 64 0
             220 back 64
             {asks}
             {waits}
             810 syscall recvfrom 6 64 0
             820 back 64
             830 syscall sendto 5 64 0
             840 back 64
             850 off blocked epoll_wait 4 : ep_poll
             950 on woken-by 9 : ep_poll_callback < sock_def_readable
             960 syscall recvfrom 5 64 0
             970 back 64
             1000 sample work
             task 8 server outside
             0 on
             task 9 client outside
             0 on"
        );
        let rows = rows(&text, 9);
        let waits = |row: &&str| row.starts_with("idle ") || row.starts_with("wait-");
        rows.lines().filter(waits).map(str::to_owned).collect()
    }

    const ASKS: &str = "230 syscall sendto 6 64 0\n240 back 64";
    const WAITS: &str = "250 off blocked epoll_wait 4 : ep_poll
        800 on woken-by 8 : ep_poll_callback < sock_def_readable";

    #[test]
    fn a_wait_for_a_server_that_was_asked_is_no_idle_time() {
        let found = ["wait-input 550 an answer of server", "idle 200 waiting for work from client"];
        assert_eq!(proxy(ASKS, WAITS), found);
        let connects = "230 syscall connect 6\n240 back -115";
        assert_eq!(proxy(connects, WAITS), found, "it waits for the connection");
    }

    #[test]
    fn what_else_ends_a_wait_before_the_answer_did_not_answer() {
        let another = "250 off blocked epoll_wait 4 : ep_poll
            500 on woken-by 9 : ep_poll_callback < sock_def_readable
            510 syscall recvfrom 5 64 0
            520 back 64
            530 off blocked epoll_wait 4 : ep_poll
            600 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
            610 back 0
            620 off blocked epoll_wait 4 : ep_poll
            800 on woken-by 8 : ep_poll_callback < sock_def_readable";
        assert_eq!(proxy(ASKS, another)[0], "wait-input 500 an answer of server");
    }

    #[test]
    fn what_is_asked_while_no_client_waits_is_refused() {
        // The client has its answer before.
        let alone = format!("222 syscall sendto 5 8 0\n224 back 8\n{ASKS}");
        assert_eq!(proxy(&alone, WAITS), ["idle 750 waiting for work from server"]);
    }

    #[test]
    fn what_a_server_sends_without_a_question_is_refused() {
        let waits = proxy("", WAITS);
        assert_eq!(waits, ["idle 750 waiting for work from server"]);
        let answered = format!("{ASKS}\n242 syscall recvfrom 6 64 0\n244 back 64");
        assert_eq!(proxy(&answered, WAITS), waits);
    }
}
