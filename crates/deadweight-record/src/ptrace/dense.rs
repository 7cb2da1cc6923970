//! Tasks that make so many calls that stopping at each would take most of the time: they are watched
//! for a while, then let run for a longer while, in turns.
//!
//! While they run, how much of their time is in calls is known by samples from their own CPU, how often they read and
//! write by the kernel's count of that, and which calls they make by what was watched before. Samples from another CPU
//! would not tell calls from user code: who is interrupted from there goes on until he hears of it, and on a virtual
//! machine is in his next call by then. Where there are few others, the kernel's count of their time in user code is
//! followed. Not for calls that would fail if the clock interrupted them.

mod owed;

pub(super) use owed::{COUNTED, Owed};

use deadweight_trace::syscall::{self, Arch};

/// So many calls are watched before a task is let run; the first time more.
const WATCHED: usize = 200;
const FIRST: u64 = 2000;
/// If it has more CPU time than this for each, in ns, stopping at each does not slow it down much.
const DENSE: u64 = 100_000;
/// It runs so many times as long as it was watched, in ns at least and at most.
const TIMES: u64 = 8;
const RUN: [u64; 2] = [10_000_000, 400_000_000];
/// More than this at once might be cut short by an interruption.
const SMALL: u64 = 4096;
/// So many samples that came at once tell the share of calls, until so much time in ns makes the kernel's count finer.
const ENOUGH: u64 = 24;
const FINE: u64 = 150_000_000;
/// The shortest time in ns between two calls that is believed, and where nobody counts them.
const SHORTEST: u64 = 120;
const UNCOUNTED: u64 = 1000;

/// Calls that come back with an error, or with less than they would, if they are interrupted.
const TOUCHY: [&str; 19] = [
    "accept",
    "accept4",
    "connect",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "execve",
    "execveat",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
    "mprotect",
    "msgrcv",
    "msgsnd",
    "prctl",
    "ptrace",
    "rt_sigtimedwait",
    "semop",
    "semtimedop",
];

/// A call that was watched.
#[derive(Copy, Clone, Debug)]
pub(super) struct Watched {
    pub(super) nr: u16,
    pub(super) args: [u64; 6],
    pub(super) ret: i64,
}

/// What is known of a task's calls for this.
#[derive(Debug)]
pub(super) struct Dense {
    watched: Vec<Watched>,
    /// How many were watched in all.
    count: u64,
    /// Since when these are watched.
    since: u64,
    /// It has waited among them.
    pub(super) waits: bool,
    /// CPU time of the latest stretch between two stops.
    pub(super) ran: u64,
    /// CPU time over all that are watched.
    all: u64,
    /// Until when it runs without stops.
    until: Option<u64>,
    transfers: Option<[u64; COUNTED]>,
    user_time: Option<u64>,
    /// Reads and writes that the kernel counted beyond those told.
    owed: [i64; COUNTED],
    /// CPU time without stops so far, what the kernel counted of it as user code, and what was told as in calls.
    loose: u64,
    user: u64,
    inside: u64,
    /// Samples while it ran, those that came at once, and those that would have been in user code had they come at once.
    samples: Samples,
    at_once: Samples,
    late: u64,
    /// The part of the time that was in calls, as far as is known, as a fraction.
    share: (u64, u64),
    /// Calls that were told without a stop.
    pub(super) told: u64,
}

/// Samples, and how many of them were in calls.
#[derive(Copy, Clone, Debug, Default)]
struct Samples {
    all: u64,
    in_calls: u64,
}

/// What a sample found.
#[derive(Copy, Clone, Debug)]
pub(super) struct Found {
    pub(super) in_call: bool,
    /// It came from the task's own CPU, and so at once.
    pub(super) at_once: bool,
}

/// Calls of one stretch, evenly spread.
#[derive(Debug)]
pub(super) struct Made<'d> {
    pub(super) calls: Owed<'d>,
    pub(super) count: u64,
    /// From the end of one to the end of the next, and how much of that is the call, in ns.
    pub(super) each: u64,
    pub(super) inside: u64,
}

impl Dense {
    pub(super) fn new(at: u64) -> Self {
        Self {
            watched: Vec::new(),
            count: 0,
            since: at,
            waits: false,
            ran: 0,
            all: 0,
            until: None,
            transfers: None,
            user_time: None,
            owed: [0; COUNTED],
            loose: 0,
            user: 0,
            inside: 0,
            samples: Samples::default(),
            at_once: Samples::default(),
            late: 0,
            share: (1, 2),
            told: 0,
        }
    }

    /// A call was watched from its entry to its return.
    pub(super) fn watch(&mut self, call: Watched) {
        self.watched.push(call);
        self.count += 1;
    }

    /// CPU time that was watched.
    pub(super) fn add(&mut self) {
        self.all += self.ran;
    }

    /// Whether the task should run without stops from now on.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        if self.watched.len() < WATCHED {
            return false;
        }
        let dense = self.count >= FIRST && self.all < DENSE * WATCHED as u64;
        let due = !self.waits && dense && self.watched.iter().all(Watched::may_be_interrupted);
        if !due {
            self.again(now);
        }
        due
    }

    /// The likeliest of the watched calls to wait in: it waited in one of that number before, or reads, or writes. It is told
    /// by who asks.
    pub(super) fn waits_in(&mut self, waited: impl Fn(u16) -> bool) -> Option<Watched> {
        let call = self.usual(waited)?;
        if let Some(owed) = self.owed.get_mut(call.kind()) {
            *owed -= 1;
        }
        Some(call)
    }

    /// The likeliest of the watched calls to wait in.
    pub(super) fn usual(&self, waited: impl Fn(u16) -> bool) -> Option<Watched> {
        self.watched.iter().min_by_key(|call| (!waited(call.nr), call.kind())).copied()
    }

    /// Whether it runs without stops, and until when.
    pub(super) fn until(&self) -> Option<u64> {
        self.until
    }

    /// It runs without stops from now on.
    pub(super) fn begin(
        &mut self,
        now: u64,
        transfers: Option<[u64; COUNTED]>,
        user_time: Option<u64>,
    ) {
        let watched = now.saturating_sub(self.since);
        self.until = Some(now + (TIMES * watched).clamp(RUN[0], RUN[1]));
        (self.transfers, self.user_time) = (transfers, user_time);
    }

    /// It is watched from now on.
    pub(super) fn again(&mut self, now: u64) {
        self.watched.clear();
        (self.since, self.waits, self.until, self.all) = (now, false, None, 0);
    }

    /// The calls made in `length` ns of CPU time, at whose end a sample found this, and the kernel had counted so many
    /// that read or wrote, and so much time in user code.
    pub(super) fn made(
        &mut self,
        found: Found,
        transfers: Option<[u64; COUNTED]>,
        user_time: Option<u64>,
        length: u64,
    ) -> Option<Made<'_>> {
        self.samples.add(found);
        if found.at_once {
            self.at_once.add(found);
        }
        let ahead = self.ahead(length, user_time);
        let counted = transfers.zip(self.transfers);
        self.transfers = transfers.or(self.transfers);
        let all = self.watched.len() as u64;
        let moving = self.watched.iter().filter(|call| call.transfers()).count() as u64;
        let calls = match counted {
            // The kernel counts reads and writes; the others come as often as they did among these.
            Some((now, then)) if moving * 8 >= all => {
                for (kind, owed) in self.owed.iter_mut().enumerate() {
                    *owed = owed.saturating_add_unsigned(now[kind].saturating_sub(then[kind]));
                }
                Owed::counted(&self.watched, &mut self.owed)
            }
            // The others are nobody's count: rather too few.
            _ => Owed::alike(&self.watched, length * all / self.all.max(all * UNCOUNTED)),
        };
        let count = calls.count().min(length / SHORTEST);
        if count == 0 {
            return None;
        }
        let each = length / count;
        let inside = (ahead / count).clamp(each / 256 + 1, each - each / 32 - 1);
        self.told += count;
        self.inside += inside * count;
        Some(Made { calls, count, each, inside })
    }
}

impl Dense {
    /// How much of the next `length` ns is told as in calls: their share so far, and a part of what was told wrongly
    /// before that was known.
    fn ahead(&mut self, length: u64, user_time: Option<u64>) -> u64 {
        /// That is made good over so long.
        const SOON: u64 = 8_000_000;
        /// Half a tick of a clock that finds the task in its own code or not.
        const FEW: u64 = 2_000_000;
        if let (Some(now), Some(then)) = (user_time, self.user_time) {
            self.user += now.saturating_sub(then);
        }
        let known = user_time.is_some();
        self.user_time = user_time.or(self.user_time);
        // A little of either kind more than seen: a share of few is never all or nothing.
        let (part, whole) = if self.at_once.all >= ENOUGH && self.loose < FINE {
            self.at_once.share()
        } else if known {
            let loose = self.loose + length;
            (loose.saturating_sub(self.user) + FEW, loose + 2 * FEW)
        } else {
            self.samples.share()
        };
        self.share = (part, whole);
        let share = |of: u64| {
            u64::try_from(u128::from(of) * u128::from(part) / u128::from(whole)).unwrap_or(of)
        };
        let (should, have) = (share(self.loose), self.inside);
        self.loose += length;
        let mend = |wrong: u64| {
            u64::try_from(u128::from(wrong) * u128::from(length) / u128::from(SOON.max(length)))
                .unwrap_or(wrong)
        };
        (share(length) + mend(should.saturating_sub(have)))
            .saturating_sub(mend(have.saturating_sub(should)))
            .min(length)
    }
}

impl Dense {
    /// Whether the latest sample, which found it in a call, came too late for the user code that it was in before: for as
    /// many of them as there are more in calls than the kernel's count allows.
    pub(super) fn is_late(&mut self) -> bool {
        let (part, whole) = self.share;
        let inside = u128::from(self.samples.all) * u128::from(part) / u128::from(whole);
        let late = u128::from(self.samples.in_calls).saturating_sub(inside) > u128::from(self.late);
        self.late += u64::from(late);
        late
    }
}

impl Samples {
    fn add(&mut self, found: Found) {
        self.all += 1;
        self.in_calls += u64::from(found.in_call);
    }

    /// Those in calls, as a fraction, which is never all or nothing.
    fn share(self) -> (u64, u64) {
        (self.in_calls + 1, self.all + 2)
    }
}

impl Made<'_> {
    /// When they ended, in stretches on a CPU.
    pub(super) fn ends(&self, stretches: &[(u64, u64)]) -> Vec<u64> {
        let mut ends = Vec::new();
        for (from, to) in stretches {
            let mut end = from + self.each;
            while end + 1 < *to && (ends.len() as u64) < self.count {
                ends.push(end);
                end += self.each;
            }
        }
        ends
    }
}

impl Watched {
    fn name(&self) -> &'static str {
        syscall::name(Arch::HOST, self.nr).unwrap_or("")
    }

    /// 0 reads and 1 writes, which the kernel counts; 2 does neither.
    fn kind(&self) -> usize {
        match self.name() {
            "read" | "pread64" | "readv" | "preadv" => 0,
            "write" | "pwrite64" | "writev" | "pwritev" => 1,
            _ => COUNTED,
        }
    }

    fn transfers(&self) -> bool {
        self.kind() < COUNTED
    }

    fn may_be_interrupted(&self) -> bool {
        let name = self.name();
        // What is mapped without a file tells nothing about code.
        let nowhere = u64::from(libc::MAP_ANONYMOUS.cast_unsigned());
        if name == "mmap" {
            return self.args[3] & nowhere != 0;
        }
        let small = !self.transfers() || name.ends_with('v') || self.args[2] <= SMALL;
        small && !name.starts_with("recv") && !name.starts_with("send") && !TOUCHY.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedstat::USER_TIME;
    use super::*;

    fn reading(count: usize) -> Dense {
        let mut dense = Dense::new(0);
        let read = Watched { nr: 0, args: [0, 4096, 1, 0, 0, 0], ret: 1 };
        (0..count).for_each(|_| dense.watch(read));
        dense
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn many_small_reads_are_let_run_and_counted_by_the_kernel() {
        let mut dense = reading(WATCHED);
        assert!(!dense.is_due(1), "so few are all watched");
        let mut dense = Dense { count: FIRST, ..reading(WATCHED) };
        assert!(dense.is_due(1));
        dense.begin(4_000_000, Some([1_000, 0]), None);
        assert_eq!(dense.until(), Some(36_000_000));
        let made = dense.made(found(true, false), Some([3_000, 0]), None, 1_000_000).unwrap();
        assert_eq!((made.count, made.each, made.inside), (2_000, 500, 333));
    }

    /// Time in calls of one stretch, all of which are told.
    fn made(dense: &mut Dense, reads: u64, user: u64, sample: Found) -> u64 {
        let mut made = dense.made(sample, Some([reads, 0]), Some(user), 1_000_000).unwrap();
        let told = (0..made.count).filter_map(|_| made.calls.next(None)).count() as u64;
        told * made.inside
    }

    fn found(in_call: bool, at_once: bool) -> Found {
        Found { in_call, at_once }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_waits_or_is_seldom_or_would_fail_stays_watched() {
        let many = || Dense { count: FIRST, ..reading(WATCHED) };
        assert!(many().is_due(1));
        assert!(!Dense { all: u64::MAX, ..many() }.is_due(1));
        assert!(!Dense { waits: true, ..many() }.is_due(1));
        let mut touchy = many();
        let epoll_wait = syscall::number(Arch::X86_64, "epoll_wait").unwrap();
        touchy.watch(Watched { nr: epoll_wait, args: [0; 6], ret: 0 });
        assert!(!touchy.is_due(1));
    }

    #[test]
    fn how_much_of_the_time_calls_take_is_what_the_kernel_did_not_count_as_user_code() {
        let mut dense = Dense { count: FIRST, ..reading(WATCHED) };
        dense.begin(0, Some([0, 0]), Some(0));
        let (mut told, mut late) = (0, 0);
        for stretch in 1..=400 {
            // Four fifths in user code, by a count of hundredths of a second; interruptions always come late.
            let user = stretch * 800_000 / USER_TIME * USER_TIME;
            let made = made(&mut dense, stretch * 1_000, user, found(true, false));
            told += made;
            late += u64::from(dense.is_late());
        }
        assert!((72_000_000..88_000_000).contains(&told), "{told} ns of 400 ms");
        assert!((300..340).contains(&late), "{late} of 400 were in user code");
    }

    #[test]
    fn enough_samples_that_came_at_once_tell_how_much_of_the_time_calls_take() {
        let mut dense = Dense { count: FIRST, ..reading(WATCHED) };
        dense.begin(0, Some([0, 0]), Some(0));
        let mut told = 0;
        for stretch in 1..=140 {
            // The kernel's clock has found all of it in user code, by chance.
            let sample = found(stretch % 4 == 0, true);
            let made = made(&mut dense, stretch * 1_000, stretch * 1_000_000, sample);
            told += made;
        }
        assert!((31_000_000..39_000_000).contains(&told), "{told} ns of 140 ms");
    }
}
