//! Tasks that make so many calls that stopping at each would take most of the time: they are watched
//! for a while, then let run for a longer while, in turns.
//!
//! While they run, how much of their time is in calls is known by samples from their own CPU, how often they read and
//! write by the kernel's count of that, and which calls they make by what was watched before. Samples from another CPU
//! would not tell calls from user code: who is interrupted from there goes on until he hears of it, and on a virtual
//! machine is in his next call by then. Where there are few others, the kernel's count of their time in user code is
//! followed. Not for calls that would fail if the clock interrupted them.

mod call_mix;

pub(super) use call_mix::{COUNTED, CallMix};

use deadweight_trace::syscall::{self, Arch};

/// So many calls are watched before a task is let run; the first time more.
const OBSERVE: usize = 200;
const OBSERVE_FIRST: u64 = 2000;
/// If it has more CPU time than this for each, in ns, stopping at each does not slow it down much.
const MAX_INTERVAL: u64 = 100_000;
/// It runs so many times as long as it was watched, in ns at least and at most.
const FREE_RUN_FACTOR: u64 = 8;
const FREE_RUN_RANGE: [u64; 2] = [10_000_000, 400_000_000];
/// More than this at once might be cut short by an interruption.
const SMALL_TRANSFER: u64 = 4096;
/// So many samples that came at once tell the share of calls, until so much time in ns makes the kernel's count finer.
const ENOUGH_SAMPLES: u64 = 24;
const TICKS_PRECISE_AFTER: u64 = 150_000_000;
/// The shortest time in ns between two calls that is believed, and where nobody counts them.
const MIN_INTERVAL: u64 = 120;
const MIN_INTERVAL_UNCOUNTED: u64 = 1000;

/// Calls that come back with an error, or with less than they would, if they are interrupted.
const NOT_RESTARTABLE: [&str; 19] = [
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
pub(super) struct ObservedCall {
    pub(super) nr: u16,
    pub(super) args: [u64; 6],
    pub(super) ret: i64,
}

/// What is known of a task's calls for this.
#[derive(Debug)]
pub(super) struct HighRate {
    observed: Vec<ObservedCall>,
    /// How many were watched in all.
    count: u64,
    /// Since when these are watched.
    since: u64,
    /// It has waited among them.
    pub(super) waits: bool,
    /// CPU time of the latest stretch between two stops.
    pub(super) cpu_time: u64,
    /// CPU time over all that are watched.
    observed_time: u64,
    /// Until when it runs without stops.
    free_until: Option<u64>,
    io_calls: Option<[u64; COUNTED]>,
    user_time: Option<u64>,
    /// Reads and writes that the kernel counted beyond those told.
    balance: [i64; COUNTED],
    /// CPU time without stops so far, what the kernel counted of it as user code, and what was told as in calls.
    free_time: u64,
    free_user_time: u64,
    estimated_in_calls: u64,
    /// Samples while it ran, those that came at once, and those that would have been in user code had they come at once.
    samples: Samples,
    local: Samples,
    skidded: u64,
    /// The part of the time that was in calls, as far as is known, as a fraction.
    share_in_calls: (u64, u64),
    /// Calls that were told without a stop.
    pub(super) estimated: u64,
}

/// Samples, and how many of them were in calls.
#[derive(Copy, Clone, Debug, Default)]
struct Samples {
    all: u64,
    in_calls: u64,
}

/// What a sample found.
#[derive(Copy, Clone, Debug)]
pub(super) struct SampleHit {
    pub(super) in_call: bool,
    /// It came from the task's own CPU, and so at once.
    pub(super) local: bool,
}

/// Calls of one stretch, evenly spread.
#[derive(Debug)]
pub(super) struct EstimatedCalls<'d> {
    pub(super) calls: CallMix<'d>,
    pub(super) count: u64,
    /// From the end of one to the end of the next, and how much of that is the call, in ns.
    pub(super) each: u64,
    pub(super) in_call: u64,
}

impl HighRate {
    pub(super) fn new(at: u64) -> Self {
        Self {
            observed: Vec::new(),
            count: 0,
            since: at,
            waits: false,
            cpu_time: 0,
            observed_time: 0,
            free_until: None,
            io_calls: None,
            user_time: None,
            balance: [0; COUNTED],
            free_time: 0,
            free_user_time: 0,
            estimated_in_calls: 0,
            samples: Samples::default(),
            local: Samples::default(),
            skidded: 0,
            share_in_calls: (1, 2),
            estimated: 0,
        }
    }

    /// A call was watched from its entry to its return.
    pub(super) fn observe(&mut self, call: ObservedCall) {
        self.observed.push(call);
        self.count += 1;
    }

    /// CPU time that was watched.
    pub(super) fn add_observed_time(&mut self) {
        self.observed_time += self.cpu_time;
    }

    /// Whether the task should run without stops from now on.
    pub(super) fn may_run_freely(&mut self, now: u64) -> bool {
        if self.observed.len() < OBSERVE {
            return false;
        }
        let is_high_rate =
            self.count >= OBSERVE_FIRST && self.observed_time < MAX_INTERVAL * OBSERVE as u64;
        let due = !self.waits
            && is_high_rate
            && self.observed.iter().all(ObservedCall::may_be_interrupted);
        if !due {
            self.restart_observation(now);
        }
        due
    }

    /// The likeliest of the watched calls to wait in: it waited in one of that number before, or reads, or writes. It is told
    /// by who asks.
    pub(super) fn take_blocking_call(
        &mut self,
        run_delay: impl Fn(u16) -> bool,
    ) -> Option<ObservedCall> {
        let call = self.likeliest_blocking(run_delay)?;
        if let Some(balance) = self.balance.get_mut(call.kind()) {
            *balance -= 1;
        }
        Some(call)
    }

    /// The likeliest of the watched calls to wait in.
    pub(super) fn likeliest_blocking(
        &self,
        run_delay: impl Fn(u16) -> bool,
    ) -> Option<ObservedCall> {
        self.observed.iter().min_by_key(|call| (!run_delay(call.nr), call.kind())).copied()
    }

    /// Whether it runs without stops, and until when.
    pub(super) fn free_until(&self) -> Option<u64> {
        self.free_until
    }

    /// It runs without stops from now on.
    pub(super) fn start_free_run(
        &mut self,
        now: u64,
        io_calls: Option<[u64; COUNTED]>,
        user_time: Option<u64>,
    ) {
        let observed_for = now.saturating_sub(self.since);
        self.free_until = Some(
            now + (FREE_RUN_FACTOR * observed_for).clamp(FREE_RUN_RANGE[0], FREE_RUN_RANGE[1]),
        );
        (self.io_calls, self.user_time) = (io_calls, user_time);
    }

    /// It is watched from now on.
    pub(super) fn restart_observation(&mut self, now: u64) {
        self.observed.clear();
        (self.since, self.waits, self.free_until, self.observed_time) = (now, false, None, 0);
    }

    /// The calls made in `length` ns of CPU time, at whose end a sample found this, and the kernel had counted so many
    /// that read or wrote, and so much time in user code.
    pub(super) fn estimate(
        &mut self,
        hit: SampleHit,
        io_calls: Option<[u64; COUNTED]>,
        user_time: Option<u64>,
        length: u64,
    ) -> Option<EstimatedCalls<'_>> {
        self.samples.add(hit);
        if hit.local {
            self.local.add(hit);
        }
        let in_calls = self.time_in_calls(length, user_time);
        let counted = io_calls.zip(self.io_calls);
        self.io_calls = io_calls.or(self.io_calls);
        let all = self.observed.len() as u64;
        let transferring = self.observed.iter().filter(|call| call.io_calls()).count() as u64;
        let calls = match counted {
            // The kernel counts reads and writes; the others come as often as they did among these.
            Some((now, then)) if transferring * 8 >= all => {
                for (kind, balance) in self.balance.iter_mut().enumerate() {
                    *balance =
                        balance.saturating_add_unsigned(now[kind].saturating_sub(then[kind]));
                }
                CallMix::from_counts(&self.observed, &mut self.balance)
            }
            // The others are nobody's count: rather too few.
            _ => CallMix::like_observed(
                &self.observed,
                length * all / self.observed_time.max(all * MIN_INTERVAL_UNCOUNTED),
            ),
        };
        let count = calls.total().min(length / MIN_INTERVAL);
        if count == 0 {
            return None;
        }
        let each = length / count;
        let in_call = (in_calls / count).clamp(each / 256 + 1, each - each / 32 - 1);
        self.estimated += count;
        self.estimated_in_calls += in_call * count;
        Some(EstimatedCalls { calls, count, each, in_call })
    }
}

impl HighRate {
    /// How much of the next `length` ns is told as in calls: their share so far, and a part of what was told wrongly
    /// before that was known.
    fn time_in_calls(&mut self, length: u64, user_time: Option<u64>) -> u64 {
        /// That is made good over so long.
        const CORRECT_OVER: u64 = 8_000_000;
        /// Half a tick of a clock that finds the task in its own code or not.
        const HALF_TICK: u64 = 2_000_000;
        if let (Some(now), Some(then)) = (user_time, self.user_time) {
            self.free_user_time += now.saturating_sub(then);
        }
        let known = user_time.is_some();
        self.user_time = user_time.or(self.user_time);
        // A little of either kind more than seen: a share of few is never all or nothing.
        let (part, whole) =
            if self.local.all >= ENOUGH_SAMPLES && self.free_time < TICKS_PRECISE_AFTER {
                self.local.share()
            } else if known {
                let total = self.free_time + length;
                (total.saturating_sub(self.free_user_time) + HALF_TICK, total + 2 * HALF_TICK)
            } else {
                self.samples.share()
            };
        self.share_in_calls = (part, whole);
        let share = |of: u64| {
            u64::try_from(u128::from(of) * u128::from(part) / u128::from(whole)).unwrap_or(of)
        };
        let (expected, estimated_so_far) = (share(self.free_time), self.estimated_in_calls);
        self.free_time += length;
        let correction = |wrong: u64| {
            u64::try_from(
                u128::from(wrong) * u128::from(length) / u128::from(CORRECT_OVER.max(length)),
            )
            .unwrap_or(wrong)
        };
        (share(length) + correction(expected.saturating_sub(estimated_so_far)))
            .saturating_sub(correction(estimated_so_far.saturating_sub(expected)))
            .min(length)
    }
}

impl HighRate {
    /// Whether the latest sample, which found it in a call, came too late for the user code that it was in before: for as
    /// many of them as there are more in calls than the kernel's count allows.
    pub(super) fn has_skidded(&mut self) -> bool {
        let (part, whole) = self.share_in_calls;
        let expected = u128::from(self.samples.all) * u128::from(part) / u128::from(whole);
        let late =
            u128::from(self.samples.in_calls).saturating_sub(expected) > u128::from(self.skidded);
        self.skidded += u64::from(late);
        late
    }
}

impl Samples {
    fn add(&mut self, hit: SampleHit) {
        self.all += 1;
        self.in_calls += u64::from(hit.in_call);
    }

    /// Those in calls, as a fraction, which is never all or nothing.
    fn share(self) -> (u64, u64) {
        (self.in_calls + 1, self.all + 2)
    }
}

impl EstimatedCalls<'_> {
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

impl ObservedCall {
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

    fn io_calls(&self) -> bool {
        self.kind() < COUNTED
    }

    fn may_be_interrupted(&self) -> bool {
        let name = self.name();
        // What is mapped without a file tells nothing about code.
        let anonymous = u64::from(libc::MAP_ANONYMOUS.cast_unsigned());
        if name == "mmap" {
            return self.args[3] & anonymous != 0;
        }
        let is_small = !self.io_calls() || name.ends_with('v') || self.args[2] <= SMALL_TRANSFER;
        is_small
            && !name.starts_with("recv")
            && !name.starts_with("send")
            && !NOT_RESTARTABLE.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedstat::CPU_TIME_UNIT;
    use super::*;

    fn reading(count: usize) -> HighRate {
        let mut high_rate = HighRate::new(0);
        let read = ObservedCall { nr: 0, args: [0, 4096, 1, 0, 0, 0], ret: 1 };
        (0..count).for_each(|_| high_rate.observe(read));
        high_rate
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn many_small_reads_are_let_run_and_counted_by_the_kernel() {
        let mut high_rate = reading(OBSERVE);
        assert!(!high_rate.may_run_freely(1), "so few are all watched");
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        assert!(high_rate.may_run_freely(1));
        high_rate.start_free_run(4_000_000, Some([1_000, 0]), None);
        assert_eq!(high_rate.free_until(), Some(36_000_000));
        let calls =
            high_rate.estimate(hit(true, false), Some([3_000, 0]), None, 1_000_000).unwrap();
        assert_eq!((calls.count, calls.each, calls.in_call), (2_000, 500, 333));
    }

    /// Time in calls of one stretch, all of which are told.
    fn time_told(
        high_rate: &mut HighRate,
        reads: u64,
        free_user_time: u64,
        sample: SampleHit,
    ) -> u64 {
        let mut calls =
            high_rate.estimate(sample, Some([reads, 0]), Some(free_user_time), 1_000_000).unwrap();
        let reported = (0..calls.count).filter_map(|_| calls.calls.next(None)).count() as u64;
        reported * calls.in_call
    }

    fn hit(in_call: bool, local: bool) -> SampleHit {
        SampleHit { in_call, local }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_waits_or_is_seldom_or_would_fail_stays_watched() {
        let many = || HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        assert!(many().may_run_freely(1));
        assert!(!HighRate { observed_time: u64::MAX, ..many() }.may_run_freely(1));
        assert!(!HighRate { waits: true, ..many() }.may_run_freely(1));
        let mut not_restartable = many();
        let epoll_wait = syscall::number(Arch::X86_64, "epoll_wait").unwrap();
        not_restartable.observe(ObservedCall { nr: epoll_wait, args: [0; 6], ret: 0 });
        assert!(!not_restartable.may_run_freely(1));
    }

    #[test]
    fn how_much_of_the_time_calls_take_is_what_the_kernel_did_not_count_as_user_code() {
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        high_rate.start_free_run(0, Some([0, 0]), Some(0));
        let (mut estimated, mut skidded) = (0, 0);
        for stretch in 1..=400 {
            // Four fifths in user code, by a count of hundredths of a second; interruptions always come late.
            let free_user_time = stretch * 800_000 / CPU_TIME_UNIT * CPU_TIME_UNIT;
            let calls =
                time_told(&mut high_rate, stretch * 1_000, free_user_time, hit(true, false));
            estimated += calls;
            skidded += u64::from(high_rate.has_skidded());
        }
        assert!((72_000_000..88_000_000).contains(&estimated), "{estimated} ns of 400 ms");
        assert!((300..340).contains(&skidded), "{skidded} of 400 were in user code");
    }

    #[test]
    fn enough_samples_that_came_at_once_tell_how_much_of_the_time_calls_take() {
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        high_rate.start_free_run(0, Some([0, 0]), Some(0));
        let mut estimated = 0;
        for stretch in 1..=140 {
            // The kernel's clock has found all of it in user code, by chance.
            let sample = hit(stretch % 4 == 0, true);
            let calls = time_told(&mut high_rate, stretch * 1_000, stretch * 1_000_000, sample);
            estimated += calls;
        }
        assert!((31_000_000..39_000_000).contains(&estimated), "{estimated} ns of 140 ms");
    }
}
