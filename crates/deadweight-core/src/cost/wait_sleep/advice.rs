//! What is said about sleeps, and what to do, in the words of each language.

use deadweight_report::wording::time;
use deadweight_trace::units::Ns;

/// The advice for a loop that `polls`, or for a pause.
pub(super) fn remedy(language: &str, polls: bool) -> String {
    let event = match language {
        "C" => "pthread_cond_wait, or poll without time-out",
        "C++" => "std::condition_variable::wait with the condition as predicate",
        "Rust" => "Condvar::wait, or a channel's recv()",
        "Go" => "receive from a channel, or sync.Cond.Wait",
        "Zig" => "std.Thread.Condition.wait",
        "Crystal" => "Channel#receive",
        "Python" => "threading.Event.wait, a blocking read, or Popen.wait for a child's end",
        "JavaScript" => "a callback or promise of the event",
        "Java" => "BlockingQueue.take, or Object.wait",
        "Ruby" => "Queue#pop, or ConditionVariable#wait",
        "PHP" => "stream_select, or a blocking read",
        "Perl" => "select, waitpid, or a blocking read",
        "Haskell" => "takeMVar, or retry in STM",
        "shell" => "the `wait` builtin, or a pipe or FIFO that is read",
        _ => "a condition variable, a pipe, or `wait`",
    };
    if polls {
        format!(
            "Wait for the event instead of the clock: {event}. A shorter interval helps too, but \
             costs more wake-ups."
        )
    } else {
        format!("If the pause waits for something, wait for that instead: {event}.")
    }
}

/// The advice where others wait for a lock meanwhile.
pub(super) const UNDER_LOCK: &str = "Release the lock before what takes so long, and take it again to store the result. Where several would \
    then do the same at once, let the first one do it and the others wait for its result.";

/// What the sleeps of a process are, as far as it is known.
pub(super) struct Sleeps {
    pub(super) under_lock: bool,
    pub(super) polls: bool,
    pub(super) pace: Option<Pace>,
}

/// Why they may keep a pace, and look for nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Another task has work after each.
    Feeds,
    /// They are a goroutine's: what it gives to others does not show.
    Goroutine,
}

impl Sleeps {
    /// The title and the text of the finding.
    pub(super) fn said(&self, times: &str, typical: Ns, sum: Ns) -> (String, String) {
        let typical = time(typical);
        match (self.under_lock, self.polls) {
            _ if self.pace == Some(Pace::Feeds) => (
                format!("pauses of {typical} between work for another task"),
                format!("{times}, typically for {typical}, and woke another task after each."),
            ),
            _ if self.pace == Some(Pace::Goroutine) => (
                format!("pauses of {typical} in a goroutine"),
                format!(
                    "{times}, typically for {typical}. Whether it looks for something or keeps a pace does not show."
                ),
            ),
            (true, _) => (
                "asleep under a lock that others wait for".into(),
                format!("{times}, and held a lock that other tasks waited for."),
            ),
            (false, true) => (
                format!("a polling loop that sleeps {typical}"),
                format!("{times}, typically for {typical}, and then checked again."),
            ),
            (false, false) => (format!("asleep for {}", time(sum)), format!("{times} in all.")),
        }
    }
}
