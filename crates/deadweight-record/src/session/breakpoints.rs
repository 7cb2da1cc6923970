//! When breakpoints are armed, on processors where an armed breakpoint slows stores down.
//!
//! On some processors (seen on Intel's Sapphire Rapids) each store across two cache lines takes twelve times as long
//! while any breakpoint is armed, wherever it is: a Go program that copied structs took four times as long. If a
//! trial shows that, the breakpoint at `main` is removed after its hit, and those at Go's waits are armed for a
//! moment at a time: at the start, while threads often use futexes, while nothing runs, and longer as long as they
//! are hit. For their addresses see `session::user_rung`.

use super::Session;
use crate::clock::now;
use crate::perf::decode::{self, Body};
use crate::perf::ring::Ring;
use crate::perf::schema::{Role, Schema};
use crate::perf::sys::Open;
use crate::timing::best;
use std::hint::black_box;

/// The shortest time that they are armed, in ns, and the window in which futex calls count.
const WINDOW: u64 = 20_000_000;
/// They stay armed for this long after a hit.
const AFTER_HIT: u64 = 200_000_000;
/// After a window without a hit they stay disarmed for this long; twice as long each time, up to the second value.
const PAUSES: [u64; 2] = [100_000_000, 3_200_000_000];
/// This many futex calls in a window make it likely that a thread waits for a lock.
const FUTEXES: u32 = 8;
/// If there is no sample for this long, nothing runs.
const IDLE: u64 = 10_000_000;
/// Bytes of a ring that are read.
const MOST_READ: usize = 1 << 20;
/// Breakpoints count as slow if stores take this many times as long.
const SLOW: f64 = 2.0;

/// How many times as long a store across two cache lines takes while this breakpoint, which is never hit, is armed;
/// none if that cannot be measured or is negligible.
pub(crate) fn slowdown(never_met: &Open) -> Option<f64> {
    const LINES: usize = 64;
    const ROUNDS: u64 = 64;
    const STORES: u64 = ROUNDS * (LINES as u64 - 1);
    #[repr(align(64))]
    struct Lines([u8; 64 * LINES]);
    let mut lines = Lines([0; 64 * LINES]);
    let mut stores = || {
        for value in 0..ROUNDS {
            // From four bytes before the end of each line.
            for across in lines.0[60..].chunks_exact_mut(64) {
                across[..8].copy_from_slice(&value.to_ne_bytes());
            }
            black_box(&mut lines.0);
        }
    };
    let free = best(STORES, &mut stores);
    never_met.enable().ok()?;
    let armed = best(STORES, &mut stores);
    let times = armed / free;
    (free > 0.0 && times > SLOW).then_some(times)
}

/// The schedule of a recording's breakpoints.
#[derive(Debug)]
pub(crate) struct Breakpoints {
    read_up_to: Vec<u64>,
    slowdown: f64,
    began: u64,
    /// The one at main is still armed.
    main: bool,
    wait_breakpoints: WaitBreakpoints,
}

/// The schedule of the breakpoints at Go's waits.
#[derive(Debug)]
struct WaitBreakpoints {
    armed: Option<Armed>,
    /// They stay disarmed until then.
    rest: u64,
    pause: u64,
    /// Since when futex calls are counted.
    since: u64,
    futexes: u32,
    /// When something ran last.
    ran: u64,
    /// How long they were armed before, in sum.
    before: u64,
}

/// The current armed period.
#[derive(Debug)]
struct Armed {
    since: u64,
    until: u64,
    /// Whether they were hit in it.
    hit: bool,
}

/// What the newest records contain.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct RecentRecords {
    main: bool,
    hit: bool,
    futexes: u32,
    ran: bool,
}

impl Breakpoints {
    /// None if breakpoints slow nothing down, or there are none.
    pub(crate) fn of(session: &Session, rings: &[Ring]) -> Option<Self> {
        let slowdown = session.breakpoints.slowdown?;
        let read_up_to = vec![0; rings.len()];
        let began = now();
        Some(Self {
            read_up_to,
            slowdown,
            began,
            main: true,
            wait_breakpoints: WaitBreakpoints::new(began),
        })
    }

    /// Reads the newest records, then arms or disarms.
    pub(crate) fn update(&mut self, rings: &[Ring], session: &Session) {
        if !self.main && session.breakpoints.wait_breakpoints().next().is_none() {
            return;
        }
        let mut seen = RecentRecords::default();
        for (ring, read_up_to) in rings.iter().zip(&mut self.read_up_to) {
            if let Some(bytes) = ring.newest(read_up_to, 1, MOST_READ) {
                seen.at(&bytes, &session.schema);
            }
        }
        if self.main && seen.main {
            self.main = false;
            session.breakpoints.main().for_each(|open| _ = open.disable());
        }
        match self.wait_breakpoints.next(seen, now()) {
            Some(true) => session.breakpoints.wait_breakpoints().for_each(|open| _ = open.enable()),
            Some(false) => {
                session.breakpoints.wait_breakpoints().for_each(|open| _ = open.disable())
            }
            None => {}
        }
    }

    /// A warning at the end, if there were breakpoints at Go's waits that were not armed all the time.
    pub(crate) fn warning(&self, session: &Session) -> Option<String> {
        session.breakpoints.wait_breakpoints().next()?;
        let all = now() - self.began;
        let armed = self.wait_breakpoints.armed_until(now());
        (armed < all / 10 * 9).then(|| {
            format!(
                "waits for Go's locks and its sleeps were recorded for {} % of the time only: recording them makes each store \
                 across two cache lines {:.0} times as slow on this processor. As root all of them are recorded",
                100 * armed / all.max(1),
                self.slowdown
            )
        })
    }
}

impl WaitBreakpoints {
    /// They are armed when the program starts.
    fn new(at: u64) -> Self {
        let began = Armed { since: at, until: at + WINDOW, hit: false };
        Self {
            armed: Some(began),
            rest: 0,
            pause: PAUSES[0],
            since: at,
            futexes: 0,
            ran: at,
            before: 0,
        }
    }

    /// How long they were armed, in ns.
    fn armed_until(&self, at: u64) -> u64 {
        self.before + self.armed.as_ref().map_or(0, |armed| at - armed.since)
    }

    /// Whether they are to be armed or disarmed now; none if they stay as they are.
    fn next(&mut self, seen: RecentRecords, at: u64) -> Option<bool> {
        if at > self.since + WINDOW {
            (self.since, self.futexes) = (at, 0);
        }
        self.futexes += seen.futexes;
        if seen.ran {
            self.ran = at;
        }
        let idle = at > self.ran + IDLE;
        match &mut self.armed {
            Some(armed) if seen.hit => {
                (armed.until, armed.hit, self.pause) = (at + AFTER_HIT, true, PAUSES[0]);
                None
            }
            Some(armed) if idle => {
                armed.until = armed.until.max(at + WINDOW);
                None
            }
            Some(armed) if at > armed.until => {
                self.before += at - armed.since;
                if !armed.hit {
                    self.pause = (2 * self.pause).min(PAUSES[1]);
                }
                (self.armed, self.rest) = (None, at + self.pause);
                Some(false)
            }
            None if at > self.rest && (idle || self.futexes >= FUTEXES) => {
                self.armed = Some(Armed { since: at, until: at + WINDOW, hit: false });
                Some(true)
            }
            _ => None,
        }
    }
}

impl RecentRecords {
    fn at(&mut self, bytes: &[u8], schema: &Schema) {
        for record in decode::records(bytes, schema) {
            let Body::Sample(sample) = record.body else { continue };
            match sample.role {
                Role::Main => self.main = true,
                Role::Probe(_) => self.hit = true,
                Role::Clock => self.ran = true,
                Role::Enter => {
                    let nr = sample.raw_u32(schema.offsets.enter_nr);
                    self.futexes += u32::from(nr.map(i64::from) == Some(libc::SYS_futex));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// For how many ms they are armed in a second, with these records each 2 ms.
    fn armed(seen: impl Fn(u64) -> RecentRecords) -> u64 {
        let mut wait_breakpoints = WaitBreakpoints::new(0);
        let mut on = true;
        let mut armed = 0;
        for at in (1..=500).map(|round| 2 * round * MS) {
            armed += if on { 2 } else { 0 };
            let seen = seen(at / MS);
            on = wait_breakpoints
                .next(RecentRecords { hit: seen.hit && on, ..seen }, at)
                .unwrap_or(on);
        }
        assert!(wait_breakpoints.armed_until(1000 * MS).abs_diff(armed * MS) <= 4 * MS);
        armed
    }

    #[test]
    fn breakpoints_are_armed_briefly_in_a_program_that_only_computes() {
        assert!(armed(|_| RecentRecords { ran: true, ..RecentRecords::default() }) <= 24);
    }

    #[test]
    fn breakpoints_are_rarely_armed_if_futex_calls_cause_no_hits() {
        let collects = |_| RecentRecords { ran: true, futexes: 3, ..RecentRecords::default() };
        assert!((40..=110).contains(&armed(collects)));
    }

    #[test]
    fn breakpoints_stay_armed_while_locks_cause_hits() {
        let wait_breakpoints =
            |_| RecentRecords { ran: true, futexes: 3, hit: true, ..RecentRecords::default() };
        assert_eq!(armed(wait_breakpoints), 1000);
        let later = |at| RecentRecords {
            ran: true,
            futexes: if at > 500 { 3 } else { 0 },
            hit: at > 500,
            main: false,
        };
        assert!(armed(later) >= 480);
    }

    #[test]
    fn breakpoints_are_armed_again_when_a_program_sleeps() {
        let sleeps =
            |at| RecentRecords { ran: at % 50 < 5, hit: at % 50 == 4, ..RecentRecords::default() };
        assert!(armed(sleeps) >= 950);
    }
}
