//! One traced task: what it did between two stops, told from the clock and the scheduler's counts.
//!
//! At a stop both are exact: so much time passed, so much of it on a CPU, so much runnable, so many
//! turns. Where within that time it blocked is not known: in the middle. What a stop itself takes is a
//! hold of ours. Not for talking to the kernel: that is `tracer`.

mod found;
mod joined;
#[cfg(test)]
mod tests;

use super::calibrate::{Stop, our_time};
use super::dense::Dense;
use super::note::{Note, What};
use super::schedstat::{Counts, Schedstat, Standing};
use deadweight_trace::Off;
use std::collections::HashMap;

/// So long may who was let go wait for a CPU because of us: we may have that very one until we wait.
const OUR_TURN: u64 = 100_000;
/// A shorter time in a call without a CPU is the way to us and back.
const WAY: u64 = 25_000;
/// From a stop to our knowing of it, about.
const LATENCY: u64 = 6_000;
/// The same in user code, where only a page that is fetched from storage blocks.
const FETCH: u64 = 200_000;
/// What dying takes where no look has shown it, in ns: about one tick of our clock.
const LAST_STEPS: u64 = 500_000;
/// No call, and no way from one to the next, takes less, in ns. A stop that cost less than usual would hide that it was
/// on a CPU at all, and with that whom it woke then.
const LEAST: u64 = 50;
/// Past its calls it is told to have blocked so many times at most between two stops.
const BLOCKS: u64 = 64;
/// What has not stopped for so long is looked at from the side, in ns.
pub(super) const LONG: u64 = 20_000_000;
/// The first stacks of each call of a task are all taken, then one in so many ns.
const FIRST_SITES: u32 = 16;
const SITE_EVERY: u64 = 2_000_000;

/// What a task is in the middle of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its own code.
    User,
    /// This call.
    Call { nr: u16, args: [u64; 6] },
    /// Dying.
    Exit,
}

/// A traced task.
#[derive(Debug)]
pub(super) struct Tracee {
    pub(super) task: u32,
    pub(super) process: u32,
    pub(super) doing: Doing,
    /// We have asked it to stop, and it has not yet.
    pub(super) asked: bool,
    /// And that from the CPU that it was on; or so many times we meant to, and it was not there.
    pub(super) met: bool,
    pub(super) unmet: u32,
    /// It is stopped by us.
    pub(super) stopped: bool,
    /// Noted as blocked.
    parked: bool,
    /// Noted as being on a CPU.
    on: bool,
    /// The call that it goes on with, which its next entry is not a new one of.
    pub(super) resumes: Option<Doing>,
    /// Told as soon as it is on a CPU again.
    pub(super) pending: Vec<What>,
    scheduled: Schedstat,
    seen: Counts,
    looked: Option<Counts>,
    /// When it was let go, and the CPU time that this took us.
    pub(super) from: u64,
    pub(super) letting_go: u64,
    /// Time of its latest note.
    pub(super) cursor: u64,
    /// CPU time in user code since the latest sample, in ns.
    pub(super) unsampled: u64,
    sites: HashMap<u16, Sites>,
    /// Stops, and what the kernel counted when blocks were told from preemption last.
    stops: u64,
    turns: Turns,
    /// Our own CPU time when it was let go.
    ours: u64,
    /// What is let run without stops at its calls, and its CPU time in user code as the kernel told it then.
    pub(super) dense: Dense,
    user_time: Option<u64>,
    /// From one page fault to the next when they were counted last, in ns.
    between_faults: u64,
    /// Page faults told so far, and CPU time in user code since they were counted, in ns.
    faults: u64,
    uncounted: u64,
    /// Where that time was.
    uncounted_in: Vec<(u64, u64)>,
    /// When its latest turn on a CPU began.
    began: u64,
    /// When it was on a CPU since it was let go.
    stretches: Vec<(u64, u64)>,
}

/// How often it got a CPU, was stopped by us and was put aside, up to some instant.
#[derive(Copy, Clone, Debug, Default)]
struct Turns {
    all: u64,
    stops: u64,
    pushed: u64,
}

#[derive(Debug, Default)]
struct Sites {
    taken: u32,
    latest: u64,
    /// The latest call of this number blocked; any of them did.
    blocks: bool,
    waits: bool,
}

impl Tracee {
    /// A task that is born at this instant.
    pub(super) fn new(process: u32, task: u32, at: u64) -> Self {
        Self {
            task,
            process,
            doing: Doing::User,
            asked: false,
            met: false,
            unmet: 0,
            stopped: false,
            parked: false,
            on: false,
            resumes: None,
            pending: Vec::new(),
            scheduled: Schedstat::of(process, task),
            seen: Counts::default(),
            looked: None,
            from: at,
            letting_go: 0,
            cursor: at,
            unsampled: 0,
            sites: HashMap::new(),
            stops: 0,
            turns: Turns::default(),
            ours: our_time(),
            dense: Dense::new(at),
            user_time: None,
            between_faults: u64::MAX,
            faults: 0,
            uncounted: 0,
            uncounted_in: Vec::new(),
            began: at,
            stretches: Vec::new(),
        }
    }

    /// What it has used before the recording does not count.
    pub(super) fn forget_the_past(&mut self, at: u64) {
        self.seen = self.scheduled.read().unwrap_or_default();
        (self.from, self.cursor) = (at, at);
        let pushed = self.scheduled.pushed().unwrap_or(0);
        self.turns = Turns { all: self.seen.turns, stops: 0, pushed };
        self.faults = self.scheduled.faults().unwrap_or(0);
    }

    pub(super) fn note(&mut self, at: u64, what: What, notes: &mut Vec<Note>) {
        self.cursor = self.cursor.max(at);
        if let (What::Off(_) | What::Displaced, Some(stretch)) = (&what, self.stretches.last_mut())
        {
            stretch.1 = self.cursor;
        }
        let (at, process, task) = (self.cursor, self.process, self.task);
        notes.push(Note { at, process, task, what });
    }

    fn reach(&mut self, at: u64) {
        self.cursor = self.cursor.max(at);
    }

    /// It has a CPU from `at` on, and what waited for that is told.
    fn begin(&mut self, at: u64, notes: &mut Vec<Note>) {
        (self.on, self.parked) = (true, false);
        self.note(at, What::On, notes);
        self.began = self.cursor;
        for what in std::mem::take(&mut self.pending) {
            // An instant later, so that there is a span in the kernel that ends.
            let later = u64::from(matches!(what, What::Back(_)));
            self.note(self.cursor + later, what, notes);
        }
        self.stretches.push((self.cursor, self.cursor));
    }

    /// It leaves its CPU by itself. If it runs past its calls, then in one that is like those that were
    /// watched.
    fn leaves(&mut self, at: u64, why: Off, notes: &mut Vec<Note>) {
        let waited = |nr| self.sites.get(&nr).is_some_and(|sites| sites.waits);
        if let Some(call) = self.dense.until().and_then(|_| self.dense.waits_in(waited)) {
            self.note(at, What::Call { nr: call.nr, args: call.args }, notes);
            self.pending.push(What::Back(call.ret));
            self.note(at + 1, What::Off(why), notes);
        } else {
            self.note(at, What::Off(why), notes);
        }
        self.on = false;
    }

    /// Whether it offers its CPU to others.
    fn yields(&self) -> bool {
        let usual = || self.dense.until().and_then(|_| self.dense.usual(|_| false));
        let nr = match self.doing {
            Doing::Call { nr, .. } => Some(nr),
            _ => usual().map(|call| call.nr),
        };
        nr.is_some_and(|nr| libc::c_long::from(nr) == libc::SYS_sched_yield)
    }

    /// It waited for a CPU before `at`, where it gets one.
    fn displaced(&mut self, at: u64, waited: u64, notes: &mut Vec<Note>) {
        if !self.on {
            self.begin(at.saturating_sub(waited), notes);
        }
        self.put_aside(self.cursor + 1, notes);
        self.begin(at, notes);
    }

    fn put_aside(&mut self, at: u64, notes: &mut Vec<Note>) {
        if self.yields() {
            return self.leaves(at, Off::Yielded, notes);
        }
        self.on = false;
        self.note(at, What::Displaced, notes);
    }

    /// It was seen stopped at `at`: tells what it did since it was let go. It is on a CPU after
    /// that, until the cursor, when it stopped.
    pub(super) fn arrive(&mut self, at: u64, cost: Stop, notes: &mut Vec<Note>) {
        let counts = self.scheduled.read();
        self.tell(at, counts, cost, notes);
    }

    fn tell(&mut self, at: u64, counts: Option<Counts>, cost: Stop, notes: &mut Vec<Note>) {
        self.stretches.clear();
        if self.on {
            self.stretches.push((self.cursor, self.cursor));
        }
        // Told a little late, it cannot have stopped before it did what it did.
        let busy = counts.map_or(0, |counts| counts.since(self.seen).ran);
        let at = at.max(self.from + busy);
        let length = at - self.from;
        // Without counts: all of it was on a CPU, but in a call that took long none.
        let guessed = match self.doing {
            Doing::Call { .. } if length > 2 * WAY => Counts { turns: 2, ..Counts::default() },
            _ => Counts { ran: length, waited: 0, turns: 1 },
        };
        let passed = counts.map_or(guessed, |counts| counts.since(self.seen));
        self.seen = counts.unwrap_or(self.seen);
        self.stops += 1;
        let all = passed.ran.min(length);
        let waited = passed.waited.min(length - all);
        // What the stop took of its own time belongs to the hold that follows.
        let stop = if self.doing == Doing::User { cost.user } else { cost.call };
        let ran = all.saturating_sub(stop).max(LEAST.min(all));
        if self.doing == Doing::User {
            self.unsampled += ran;
            self.uncounted += ran;
        }
        if self.parked {
            self.after_waiting(at, ran, waited, notes);
        } else {
            let idle = length - all - waited;
            self.between(at, ran, waited, (idle, passed.turns), notes);
        }
        if let Some(stretch) = self.stretches.last_mut() {
            stretch.1 = self.cursor;
        }
        if self.doing == Doing::User {
            self.uncounted_in.extend(&self.stretches);
        }
        (self.asked, self.stopped, self.looked) = (false, true, None);
        self.dense.ran = ran;
    }

    fn after_waiting(&mut self, at: u64, ran: u64, waited: u64, notes: &mut Vec<Note>) {
        self.dense.waits = true;
        let back = at.saturating_sub(LATENCY + ran).max(self.cursor);
        if waited > OUR_TURN {
            self.displaced(back, waited, notes);
        }
        if !self.on {
            self.begin(back, notes);
        }
        self.reach((self.cursor + ran).min(at));
    }

    /// How much of the time that it waited for a CPU we had one.
    fn because_of_us(&self, waited: u64) -> u64 {
        if waited <= OUR_TURN {
            return waited;
        }
        waited.min(our_time().saturating_sub(self.ours).max(OUR_TURN))
    }

    /// Whether it has blocked since this was asked last. Each turn on a CPU ends by that, by a stop of
    /// ours, or by another task's turn, and the kernel counts all but the first.
    fn blocked(&mut self) -> bool {
        let Some(pushed) = self.scheduled.pushed() else { return true };
        let now = Turns { all: self.seen.turns, stops: self.stops, pushed };
        let then = std::mem::replace(&mut self.turns, now);
        let others = now.stops - then.stops + now.pushed.saturating_sub(then.pushed);
        now.all.saturating_sub(then.all) > others
    }

    fn between(
        &mut self,
        at: u64,
        ran: u64,
        waited: u64,
        (idle, turns): (u64, u64),
        notes: &mut Vec<Note>,
    ) {
        // A look from the side may have told when it got a CPU: what it waited by then is that.
        let told = self.on.then(|| waited.min(self.began.saturating_sub(self.from)));
        let ours = told.unwrap_or_else(|| self.because_of_us(waited));
        let rest = waited - ours;
        if !self.on {
            self.begin((self.from + ours).max(self.cursor), notes);
        }
        let in_call = self.doing != Doing::User || self.dense.until().is_some();
        let long = idle > if in_call { WAY } else { FETCH };
        let blocks = turns >= 2 && long && self.blocked();
        if let Doing::Call { nr, .. } = self.doing {
            let sites = self.sites.entry(nr).or_default();
            sites.blocks = blocks;
            sites.waits |= blocks;
        }
        self.dense.waits |= blocks;
        if blocks && self.dense.until().is_some() {
            return self.blocks_by_turns(at, ran, rest, turns - 1, notes);
        }
        let middle = (self.from + ours + ran / 2).max(self.cursor);
        let left = ran.saturating_sub(middle - self.from - ours);
        if blocks {
            if !in_call {
                self.note(middle, What::Fault { addr: 0, ip: 0 }, notes);
            }
            self.leaves(middle, Off::Blocked, notes);
            let back = at.saturating_sub(LATENCY + left).max(self.cursor);
            if rest > OUR_TURN {
                self.displaced(back, rest, notes);
            } else {
                self.begin(back, notes);
            }
            if !in_call {
                self.note(back + 1, What::FaultEnd { major: true }, notes);
            }
            self.reach((back + left).min(at));
            return;
        }
        if rest > OUR_TURN / 2 {
            self.put_aside(middle, notes);
            self.begin(middle + rest, notes);
        }
        self.reach((middle + rest + left).min(at));
    }

    /// Past its calls it blocked before each of its turns but the first, evenly.
    fn blocks_by_turns(&mut self, at: u64, ran: u64, rest: u64, times: u64, notes: &mut Vec<Note>) {
        let times = times.clamp(1, BLOCKS);
        let (work, wait) = (ran / (times + 1), at.saturating_sub(self.cursor + ran + rest) / times);
        for _ in 0..times {
            self.leaves(self.cursor + work, Off::Blocked, notes);
            self.begin(self.cursor + wait, notes);
        }
        if rest > OUR_TURN / 2 {
            self.put_aside(self.cursor + 1, notes);
            self.begin(self.cursor + rest, notes);
        }
        self.reach((self.cursor + work).min(at));
    }

    /// It is held by us from the cursor on.
    pub(super) fn hold(&mut self, notes: &mut Vec<Note>) {
        self.on = false;
        self.note(self.cursor, What::Held, notes);
    }

    /// Its whole group is stopped.
    pub(super) fn rest(&mut self, notes: &mut Vec<Note>) {
        (self.on, self.parked) = (false, true);
        self.uncounted_in.clear();
        self.note(self.cursor, What::Off(Off::Stopped), notes);
    }

    /// It goes on.
    pub(super) fn let_go(&mut self, at: u64) {
        (self.stopped, self.met) = (false, false);
        self.from = at;
        self.ours = our_time();
    }

    /// From here on its calls count as those of a dense stretch.
    pub(super) fn loosen(&mut self, at: u64) {
        self.user_time = self.scheduled.standing().map(|seen| seen.user_time);
        self.dense.begin(at, self.scheduled.transfers(), self.user_time);
    }

    /// How it stands while it runs.
    pub(super) fn standing(&mut self) -> Option<Standing> {
        let seen = self.scheduled.standing();
        self.user_time = seen.map(|seen| seen.user_time).or(self.user_time);
        seen
    }

    /// It died, and its end is known at `at`. Nobody counts its last steps; what the latest look showed
    /// is missing one tick at most, and after them it waits for us.
    pub(super) fn die(&mut self, at: u64, notes: &mut Vec<Note>) {
        let from = if self.parked { at.saturating_sub(LATENCY) } else { self.from };
        if !self.on {
            self.begin(from.max(self.cursor), notes);
        }
        let seen = self.looked.map_or(0, |counts| counts.since(self.seen).ran);
        let until = (from + seen + LAST_STEPS).max(self.cursor);
        if until + 1 < at {
            self.reach(until);
            self.hold(notes);
            self.begin(at - 1, notes);
        }
        self.note(at, What::Off(Off::Dead), notes);
    }

    /// By an exec it takes the place of its process's first task.
    pub(super) fn becomes(&mut self, task: u32, first: &Self) {
        self.cursor = self.cursor.max(first.cursor);
        self.task = task;
        self.scheduled = Schedstat::of(self.process, task);
        self.seen = self.scheduled.read().unwrap_or_default();
    }

    /// Looks at it from the side, because it has not stopped for long.
    pub(super) fn look(&mut self, now: u64, notes: &mut Vec<Note>) {
        let dying = self.doing == Doing::Exit;
        let long = now.saturating_sub(self.from) >= LONG;
        if self.stopped || self.parked || !(long || dying) {
            return;
        }
        let Some(counts) = self.scheduled.read() else { return };
        let stands = self.looked.replace(counts) == Some(counts);
        if !long {
            return;
        }
        let passed = counts.since(self.seen);
        let ours = passed.waited.min(OUR_TURN);
        if !self.on {
            self.begin((self.from + ours).max(self.cursor), notes);
        }
        let until = self.from + ours + passed.ran;
        let may_wait = self.doing != Doing::User || self.dense.until().is_some();
        if stands && may_wait && !self.scheduled.runs() {
            self.leaves(until.min(now), Off::Blocked, notes);
            self.parked = true;
            // What is told until now is told for good.
            self.uncounted_in.clear();
            self.seen = counts;
            if let Doing::Call { nr, .. } = self.doing {
                let sites = self.sites.entry(nr).or_default();
                (sites.blocks, sites.waits) = (true, true);
            }
        } else {
            self.reach(until.min(now.saturating_sub(LONG)));
        }
    }

    /// Whether it is noted as waiting.
    pub(super) fn is_parked(&self) -> bool {
        self.parked
    }

    /// Nothing that it did before this will be told later.
    pub(super) fn told_until(&self) -> u64 {
        let counted = self.uncounted_in.first().map_or(u64::MAX, |(from, _)| *from);
        if self.parked { u64::MAX } else { self.cursor.max(self.from).min(counted) }
    }

    /// Whether this call should have its stack taken.
    pub(super) fn wants_site(&mut self, nr: u16, now: u64) -> bool {
        let sites = self.sites.entry(nr).or_default();
        let due = now.saturating_sub(sites.latest) >= SITE_EVERY;
        let wanted = sites.blocks || sites.taken < FIRST_SITES || due;
        if wanted {
            sites.taken = sites.taken.saturating_add(1);
            sites.latest = now;
        }
        wanted
    }
}
