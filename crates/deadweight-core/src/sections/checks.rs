//! Which cost classes found something, and which are ruled out by their share or cannot be checked in this run.

use crate::account::{AccountId, Attribution, Entry};
use crate::cost;
use crate::facts::Facts;
use crate::facts::call_site::own_frame;
use crate::facts::hot_loops::reason::Signs;
use crate::facts::hot_loops::{self, HotLoop};
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Block, WokenBy};
use deadweight_report::account::{IDLE, OBSERVER, UNRECORDED};
use deadweight_report::report::{Check, CheckOutcome, Finding};
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;

/// A row below this share of the wall time makes no finding.
const SMALL: f64 = 0.02;
/// Fewer samples divide no time.
const SAMPLES: u64 = 8;
/// If less of the sampled code has a name, its costs cannot be recognised.
const NAMED: f64 = 0.5;

/// If this share of the time was not recorded, no cost is ruled out.
const UNSEEN: f64 = 0.2;

/// All cost classes, in order of precedence.
pub(crate) fn checks(facts: &Facts<'_>, wall: &Attribution, findings: &[Finding]) -> Vec<Check> {
    let unsampled = unsampled(facts, wall);
    let unaddressed = unsampled.clone().or_else(|| unaddressed(facts, wall));
    // Without tracing and idleness, but with what other programs took: a wait for them has a share, too.
    let whole = wall.total - wall.of(OBSERVER) - wall.of(IDLE);
    let gone = wall.of(UNRECORDED).share_of(wall.total);
    let gone =
        (gone >= UNSEEN).then(|| format!("{:.0} % of the time is not recorded", gone * 100.0));
    let unseen = gone.or_else(|| unseen_calls(facts, whole));
    let chance = if facts.path.subject.tasks() > 1 { cost::uneven_by_chance(wall) } else { None };
    cost::ids()
        .map(|class| {
            let account = AccountId::of_class(class);
            let share = wall.of(account).share_of(whole).min(1.0);
            let of_loops = cost::needs_registers(class);
            let own = if of_loops { &unaddressed } else { &unsampled };
            let by_samples = account.is_sampled() || of_loops;
            let by_chance =
                chance.as_ref().filter(|_| ["imbalance", "parallel-overhead"].contains(&class));
            let unrecorded = unrecorded(facts, class, by_samples)
                .or_else(|| of_server(facts, class))
                .or_else(|| unturned(facts, class))
                .or_else(|| hidden_locks(facts, wall, class));
            let hidden = own.as_ref().filter(|_| by_samples).or(by_chance).or(unseen.as_ref());
            let hidden = hidden.or(unrecorded.as_ref());
            let outcome = if findings.iter().any(|finding| finding.class == class) {
                CheckOutcome::Found
            } else if hidden.is_some() {
                CheckOutcome::NotCheckable
            } else if share < SMALL {
                CheckOutcome::RuledOut
            } else {
                CheckOutcome::Needed
            };
            let why = hidden.filter(|_| outcome == CheckOutcome::NotCheckable);
            Check { class: class.to_owned(), outcome, share, why: why.cloned().unwrap_or_default() }
        })
        .collect()
}

/// Threads of a process that was joined by stops have not stopped, and most of what they did is not known.
fn unseen_calls(facts: &Facts<'_>, whole: Ns) -> Option<String> {
    let unseen = facts.trace.meta.unseen;
    (unseen.share_of(whole) >= UNSEEN).then(|| {
        let unseen = time(unseen);
        format!("what its threads did in {unseen} of CPU time is not known, see the note")
    })
}

/// Whether branches may be why a loop is slow, of which no register shows how often it turns.
fn unturned(facts: &Facts<'_>, class: &str) -> Option<String> {
    if !["branch-misses", "cache-misses"].contains(&class) {
        return None;
    }
    let own = facts.processes.ids().filter(|id| facts.processes.get(*id).own);
    let mut loops = own.flat_map(|process| facts.hot_loops(process));
    let open = |hot: &HotLoop| {
        let unknown = hot.reason.is_none() && hot.speed.is_none();
        unknown
            && match class {
                "branch-misses" => Signs::of(facts, hot).is_surprised(),
                _ => hot.waits_for_loads(facts),
            }
    };
    let what = if class == "branch-misses" { "branches" } else { "loads" };
    loops
        .any(open)
        .then(|| format!("no register shows how often a loop turns whose {what} may be the reason"))
}

/// Classes that do not judge how a server divides its work among threads.
fn of_server(facts: &Facts<'_>, class: &str) -> Option<String> {
    let unjudged = ["imbalance", "thread-churn"].contains(&class);
    (unjudged && facts.path.subject.service.is_some())
        .then(|| "how a server divides its work among threads is not judged".into())
}

/// A process that waits for events, and that another process of the command wakes by signals, may wait for a lock: a database's
/// processes do so, and it looks like a wait for work. So if more than [`SMALL`] of the time is in such waits.
fn hidden_locks(facts: &Facts<'_>, wall: &Attribution, class: &str) -> Option<String> {
    if class != "wait-lock" {
        return None;
    }
    let timeline = facts.timeline;
    let by_other_process = |block: &&Block| match block.woken_by {
        WokenBy::Task(by) => {
            let [waiter, waker] = [block.task, by].map(|task| timeline.task(task));
            let [of_waiter, of_waker] = [block.task, by].map(|task| facts.processes.of(task));
            let child = facts.processes.get(of_waiter).children.contains(&of_waker);
            block.by_signal
                && block.waits_for == WaitsFor::Poll
                && waiter.own
                && waker.own
                && of_waiter != of_waker
                && !child
        }
        _ => false,
    };
    let waits = timeline.blocks.iter().filter(by_other_process);
    let waited: Ns = waits.map(|block| block.end - block.start).sum();
    (waited.share_of(wall.total) >= SMALL)
        .then(|| "its processes wake each other by signals, perhaps for locks".into())
}

/// What a class is known by and another tool did not record, if there is such.
fn unrecorded(facts: &Facts<'_>, class: &str, by_samples: bool) -> Option<String> {
    let meta = &facts.trace.meta;
    let by_faults = ["first-touch", "memory-churn"].contains(&class);
    // Switches alone show these.
    let by_switches = ["wait-cpu", "throttled"].contains(&class);
    if by_faults && !meta.records_faults() {
        return Some("page faults are not recorded".into());
    }
    if by_samples && !meta.records_calls() && meta.sample_period == 0 {
        return Some("what ran on a CPU is not recorded".into());
    }
    let by_calls = !by_samples && !by_switches;
    (by_calls && !meta.records_calls()).then(|| "system calls are not recorded".into())
}

/// Why the program's own time cannot be divided, if it cannot.
fn unsampled(facts: &Facts<'_>, wall: &Attribution) -> Option<String> {
    let own = wall.user_time().map(|entry| entry.ns).sum::<Ns>();
    if own.share_of(wall.net()) < SMALL {
        return None;
    }
    let samples: u64 = wall.user_time().map(Entry::sampled).sum();
    if samples < SAMPLES {
        return Some(format!("{} of the program's own code", things(samples, "sample")));
    }
    let symbols = facts.symbols();
    let sites = wall.user_time().flat_map(|entry| &entry.samples);
    let (mut all, mut named) = (0, 0);
    for (site, weight) in sites {
        let location = site.frames(symbols).next().map(|(location, _)| location.image);
        let image = location.and_then(|image| symbols.images.get(image.index()));
        all += weight.amount;
        named += if image.is_some_and(|image| image.has_symbols) { weight.amount } else { 0 };
    }
    let hidden = all > 0 && (named as f64) < NAMED * all as f64;
    hidden.then(|| "most of the code that ran has no symbols".to_owned())
}

/// Why it is not known what the program's loops wait for, if it is not.
fn unaddressed(facts: &Facts<'_>, wall: &Attribution) -> Option<String> {
    let own = wall.user_time().map(|entry| entry.ns).sum::<Ns>();
    if own.share_of(wall.net()) < SMALL {
        return None;
    }
    let samples = facts.timeline.registers.len();
    if samples == 0 {
        return Some("samples have no registers".into());
    }
    if samples < hot_loops::SAMPLES {
        let samples = things(samples as u64, "sample");
        return Some(format!(
            "{samples} with registers, where a loop needs {}",
            hot_loops::SAMPLES
        ));
    }
    let symbols = facts.symbols();
    let lines = wall
        .user_time()
        .flat_map(|entry| &entry.samples)
        .any(|(site, _)| own_frame(symbols, *site).is_some_and(|(_, frame)| frame.line > 0));
    (!lines).then(|| "the program's own code has no source lines".into())
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};
    use deadweight_report::report::CheckOutcome::{self, Found, Needed, NotCheckable, RuledOut};

    fn outcome(text: &str, class: &str) -> (CheckOutcome, String) {
        let report = weighed(text);
        assert_eq!(report.checks.len(), crate::cost::ids().count());
        let check = report.checks.into_iter().find(|check| check.class == class).unwrap();
        (check.outcome, check.why)
    }

    /// A program that waits for a child of its shell, computes, and has this many samples.
    fn program(samples: u64, symbols: &str) -> String {
        let samples = repeat(samples, 500, 1000, |at| format!("{at} sample work\n"));
        format!(
            "image app path /bin/app {symbols}\nsample-period 1000\ntask 1 app\n0 exec /bin/app\n0 on\n{samples}
             60000 off blocked clock_nanosleep 1\n90000 on woken-by interrupt : hrtimer_wakeup
             100000 exit\n100000 off dead"
        )
    }

    #[test]
    fn each_class_is_found_ruled_out_or_neither() {
        let text = program(50, "language C");
        assert_eq!(outcome(&text, "wait-sleep").0, Found);
        assert_eq!(outcome(&text, "wait-disk"), (RuledOut, String::new()));
        assert_eq!(outcome(&text, "zeroing").0, RuledOut);
        let joined = format!("attached\n{text}");
        assert_eq!(outcome(&joined, "wait-sleep").0, Needed);
    }

    #[test]
    fn what_few_samples_cannot_show_is_not_checkable() {
        let (few, why) = outcome(&program(3, "language C"), "zeroing");
        assert_eq!((few, why.as_str()), (NotCheckable, "3 samples of the program's own code"));
        assert_eq!(outcome(&program(3, "language C"), "wait-disk").0, RuledOut);
        let wait =
            program(50, "language C").replace("clock_nanosleep 1", "read 0 : anon_pipe_read");
        let wait = wait.replace("interrupt : hrtimer_wakeup", "9\n") + "\ntask 9 sh outside\n0 on";
        assert_eq!(outcome(&wait, "wait-input").0, Found);
    }

    #[test]
    fn loops_are_not_judged_without_registers_or_lines() {
        let why = |text: &str| outcome(text, "cache-misses");
        let (seen, reason) = why(&program(50, "language C"));
        assert_eq!((seen, reason.as_str()), (NotCheckable, "samples have no registers"));
        let with = program(50, "language C")
            .replace(" sample work\n", " sample work\n0 registers 0 1 2 3 4\n");
        let times = with.lines().scan("", |at, line| {
            let (time, rest) = line.split_once(' ').unwrap_or((line, ""));
            let same = rest.starts_with("registers");
            let line = if same { format!("{at} {rest}") } else { line.to_owned() };
            *at = time;
            Some(line + "\n")
        });
        let times: String = times.collect();
        let (seen, reason) = why(&times);
        assert_eq!(
            (seen, reason.as_str()),
            (NotCheckable, "the program's own code has no source lines")
        );
        let few: Vec<&str> = times.lines().collect();
        let last_registers = few.iter().rposition(|line| line.contains(" registers ")).unwrap();
        let one = few
            .iter()
            .enumerate()
            .filter(|(at, line)| !line.contains(" registers ") || *at == last_registers);
        let one: Vec<&str> = one.map(|(_, line)| *line).collect();
        assert_eq!(why(&one.join("\n")).1, "1 sample with registers, where a loop needs 40");
    }

    #[test]
    fn lost_records_rule_nothing_out_and_make_nothing_exact() {
        let text = program(50, "language C");
        let lost = text.replace("90000 on", "70000 lost 5\n90000 on");
        let how = |text: &str| weighed(text).findings[0].how;
        assert_eq!(how(&text), deadweight_report::report::How::Exact);
        assert_eq!(how(&lost), deadweight_report::report::How::Estimate);
        let gap = program(20, "language C").replace("60000 off", "55000 lost 5\n60000 off");
        let (seen, why) = outcome(&gap, "wait-disk");
        assert_eq!((seen, why.as_str()), (NotCheckable, "60 % of the time is not recorded"));
    }

    #[test]
    fn nothing_is_ruled_out_where_threads_were_joined_that_have_not_stopped() {
        let text = |unseen: u64| {
            let head = format!("rung stops\nattached\nunseen {unseen}\ntask 1 app");
            program(50, "language C").replace("task 1 app", &head)
        };
        assert_eq!(outcome(&text(1_000), "tiny-writes").0, RuledOut, "a little of the time");
        let (seen, why) = outcome(&text(30_000), "tiny-writes");
        assert_eq!(seen, NotCheckable);
        assert_eq!(why, "what its threads did in 30.0 µs of CPU time is not known, see the note");
    }

    #[test]
    fn what_another_tool_did_not_record_is_not_ruled_out() {
        // A short wait without its call, and little of anything else.
        let text = |rung: &str| {
            program(50, "language C").replace("task 1 app", &format!("rung {rung}\ntask 1 app"))
        };
        let calls = text("perf");
        assert_eq!(outcome(&calls, "tiny-reads").0, RuledOut);
        let (seen, why) = outcome(&calls, "first-touch");
        assert_eq!((seen, why.as_str()), (NotCheckable, "page faults are not recorded"));
        assert_eq!(outcome(&text("root"), "first-touch").0, RuledOut);
        let short = |rung: &str| {
            text(rung).replace("60000 off blocked clock_nanosleep 1", "89900 off blocked")
        };
        let (seen, why) = outcome(&short("switches"), "tiny-reads");
        assert_eq!((seen, why.as_str()), (NotCheckable, "system calls are not recorded"));
        assert_eq!(outcome(&short("switches"), "zeroing").0, RuledOut, "by samples");
        assert_eq!(outcome(&short("switches"), "wait-cpu").0, RuledOut, "by switches");
        let blind = short("switches")
            .replace("sample-period 1000", "")
            .replace(" sample work", " timer-end");
        let (seen, why) = outcome(&blind, "zeroing");
        assert_eq!((seen, why.as_str()), (NotCheckable, "what ran on a CPU is not recorded"));
        let unknown = |rung: &str| {
            let report = weighed(&short(rung).replace("89900 off", "60000 off"));
            report.ledger.iter().find(|row| row.account == "unrecorded").map(|row| row.ns)
        };
        assert_eq!((unknown("perf"), unknown("switches")), (None, Some(30000)));
    }
}
