//! Tasks with a high call rate: stopping at each call would take most of the time. They are
//! observed for a while, then run freely (without stops at calls) for a longer while, and so on.
//!
//! In a free run, the share of time in calls comes from samples taken on the task's own CPU, the
//! number of reads and writes from the kernel's count, and the mix of calls from the observed ones.
//! Samples taken from another CPU skid: an interrupted task runs on until the interrupt arrives,
//! and on a virtual machine it is in its next call by then. If there are few local samples, the
//! kernel's count of user time is used. Not for calls that fail if the timer interrupts them.

mod call_mix;

pub(super) use call_mix::{COUNTED, CallMix};

use deadweight_trace::syscall::{self, Arch};

/// Calls that are observed before each free run, and before the first one.
const OBSERVE: usize = 200;
const OBSERVE_FIRST: u64 = 2000;
/// If a call has more CPU time than this, in ns, stopping at each call costs little.
const MAX_INTERVAL: u64 = 100_000;
/// A free run is this many times as long as the observation, within these limits in ns.
const FREE_RUN_FACTOR: u64 = 8;
const FREE_RUN_RANGE: [u64; 2] = [10_000_000, 400_000_000];
/// A larger transfer might be cut short by an interruption.
const SMALL_TRANSFER: u64 = 4096;
/// From this many local samples on, they give the share of calls, until the free run is so long (in
/// ns) that the kernel's count of user time is more precise.
const ENOUGH_SAMPLES: u64 = 24;
const TICKS_PRECISE_AFTER: u64 = 150_000_000;
/// The shortest plausible interval of calls in ns, and the one where no count exists.
const MIN_INTERVAL: u64 = 120;
const MIN_INTERVAL_UNCOUNTED: u64 = 1000;

/// Calls that fail or return less if they are interrupted.
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

/// A call that was observed.
#[derive(Copy, Clone, Debug)]
pub(super) struct ObservedCall {
    pub(super) nr: u16,
    pub(super) args: [u64; 6],
    pub(super) ret: i64,
}

/// Observed calls and free runs of one task.
#[derive(Debug)]
pub(super) struct HighRate {
    observed: Vec<ObservedCall>,
    /// All calls observed so far.
    count: u64,
    /// When this observation began.
    since: u64,
    /// The task has blocked during the observation.
    pub(super) blocked: bool,
    /// CPU time between the latest two stops.
    pub(super) cpu_time: u64,
    /// CPU time of this observation.
    observed_time: u64,
    /// End of the free run.
    free_until: Option<u64>,
    io_calls: Option<[u64; COUNTED]>,
    user_time: Option<u64>,
    /// Reads and writes that the kernel counted, minus those reported.
    balance: [i64; COUNTED],
    /// CPU time of free runs so far, the user time that the kernel counted of it, and the time
    /// estimated as in calls.
    free_time: u64,
    free_user_time: u64,
    estimated_in_calls: u64,
    /// Samples of free runs; those taken on the task's own CPU; those that skidded out of user code
    /// into a call.
    samples: Samples,
    local: Samples,
    skidded: u64,
    /// The estimated share of time in calls, as a fraction.
    share_in_calls: (u64, u64),
    /// Calls reported without a stop.
    pub(super) estimated: u64,
}

/// Samples, and how many of them were in calls.
#[derive(Copy, Clone, Debug, Default)]
struct Samples {
    all: u64,
    in_calls: u64,
}

/// What a sample hit.
#[derive(Copy, Clone, Debug)]
pub(super) struct SampleHit {
    pub(super) in_call: bool,
    /// It was taken on the task's own CPU, so it did not skid.
    pub(super) local: bool,
}

/// Calls of one period, evenly spread.
#[derive(Debug)]
pub(super) struct EstimatedCalls<'d> {
    pub(super) calls: CallMix<'d>,
    pub(super) count: u64,
    /// Interval from one end to the next, and the part in the call, in ns.
    pub(super) each: u64,
    pub(super) in_call: u64,
}

impl HighRate {
    pub(super) fn new(at: u64) -> Self {
        Self {
            observed: Vec::new(),
            count: 0,
            since: at,
            blocked: false,
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

    /// A call was observed from entry to return.
    pub(super) fn observe(&mut self, call: ObservedCall) {
        self.observed.push(call);
        self.count += 1;
    }

    /// Adds the CPU time before this stop to the observation.
    pub(super) fn add_observed_time(&mut self) {
        self.observed_time += self.cpu_time;
    }

    /// Whether the task should run freely from now on.
    pub(super) fn may_run_freely(&mut self, now: u64) -> bool {
        if self.observed.len() < OBSERVE {
            return false;
        }
        let is_high_rate =
            self.count >= OBSERVE_FIRST && self.observed_time < MAX_INTERVAL * OBSERVE as u64;
        let due = !self.blocked
            && is_high_rate
            && self.observed.iter().all(ObservedCall::may_be_interrupted);
        if !due {
            self.restart_observation(now);
        }
        due
    }

    /// The observed call that most likely blocks: a number that has blocked before, or a read, or a
    /// write. The caller reports it.
    pub(super) fn take_blocking_call(
        &mut self,
        has_blocked: impl Fn(u16) -> bool,
    ) -> Option<ObservedCall> {
        let call = self.likeliest_blocking(has_blocked)?;
        if let Some(balance) = self.balance.get_mut(call.kind()) {
            *balance -= 1;
        }
        Some(call)
    }

    /// The observed call that most likely blocks.
    pub(super) fn likeliest_blocking(
        &self,
        has_blocked: impl Fn(u16) -> bool,
    ) -> Option<ObservedCall> {
        self.observed.iter().min_by_key(|call| (!has_blocked(call.nr), call.kind())).copied()
    }

    /// The end of the free run, if the task runs freely.
    pub(super) fn free_until(&self) -> Option<u64> {
        self.free_until
    }

    /// The task runs freely from now on.
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

    /// The task is observed from now on.
    pub(super) fn restart_observation(&mut self, now: u64) {
        self.observed.clear();
        (self.since, self.blocked, self.free_until, self.observed_time) = (now, false, None, 0);
    }

    /// Estimates the calls made in `length` ns of CPU time. At their end a sample had this hit, and
    /// the kernel had counted these reads and writes and this user time.
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
        let transferring = self.observed.iter().filter(|call| call.is_io()).count() as u64;
        let calls = match counted {
            // The kernel counts reads and writes. The others keep their proportion among the
            // observed calls.
            Some((now, then)) if transferring * 8 >= all => {
                for (kind, balance) in self.balance.iter_mut().enumerate() {
                    *balance =
                        balance.saturating_add_unsigned(now[kind].saturating_sub(then[kind]));
                }
                CallMix::from_counts(&self.observed, &mut self.balance)
            }
            // Without a count, rather too few.
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

    /// How much of the next `length` ns is reported as in calls: the share so far, and a correction
    /// of what earlier estimates missed.
    fn time_in_calls(&mut self, length: u64, user_time: Option<u64>) -> u64 {
        /// The correction is spread over this time.
        const CORRECT_OVER: u64 = 8_000_000;
        /// Half a tick of the clock that the kernel counts user time with.
        const HALF_TICK: u64 = 2_000_000;
        if let (Some(now), Some(then)) = (user_time, self.user_time) {
            self.free_user_time += now.saturating_sub(then);
        }
        let known = user_time.is_some();
        self.user_time = user_time.or(self.user_time);
        // A little of either kind is added: the share of few samples is never 0 or 1.
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
        let share = |of: u64| scaled(of, part, whole);
        let (expected, estimated_so_far) = (share(self.free_time), self.estimated_in_calls);
        self.free_time += length;
        let correction = |wrong: u64| scaled(wrong, length, CORRECT_OVER.max(length));
        (share(length) + correction(expected.saturating_sub(estimated_so_far)))
            .saturating_sub(correction(estimated_so_far.saturating_sub(expected)))
            .min(length)
    }

    /// Whether the latest sample, which hit a call, skidded out of user code. The number of
    /// skidded samples is what exceeds the calls' share by the kernel's count.
    pub(super) fn has_skidded(&mut self) -> bool {
        let (part, whole) = self.share_in_calls;
        let expected = u128::from(self.samples.all) * u128::from(part) / u128::from(whole);
        let late =
            u128::from(self.samples.in_calls).saturating_sub(expected) > u128::from(self.skidded);
        self.skidded += u64::from(late);
        late
    }
}

/// `value * part / whole`.
fn scaled(value: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(part) / u128::from(whole)).unwrap_or(value)
}

impl Samples {
    fn add(&mut self, hit: SampleHit) {
        self.all += 1;
        self.in_calls += u64::from(hit.in_call);
    }

    /// The part in calls, as a fraction that is never 0 or 1.
    fn share(self) -> (u64, u64) {
        (self.in_calls + 1, self.all + 2)
    }
}

impl EstimatedCalls<'_> {
    /// When the calls ended, within spans on a CPU.
    pub(super) fn ends(&self, spans: &[(u64, u64)]) -> Vec<u64> {
        let mut ends = Vec::new();
        for (from, to) in spans {
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

    fn is_io(&self) -> bool {
        self.kind() < COUNTED
    }

    fn may_be_interrupted(&self) -> bool {
        let name = self.name();
        // An anonymous mapping holds no code from a file.
        let anonymous = u64::from(libc::MAP_ANONYMOUS.cast_unsigned());
        if name == "mmap" {
            return self.args[3] & anonymous != 0;
        }
        let is_small = !self.is_io() || name.ends_with('v') || self.args[2] <= SMALL_TRANSFER;
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
    fn a_task_with_many_small_reads_runs_freely_and_the_kernel_counts_them() {
        let mut high_rate = reading(OBSERVE);
        assert!(!high_rate.may_run_freely(1), "a short observation is not enough");
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        assert!(high_rate.may_run_freely(1));
        high_rate.start_free_run(4_000_000, Some([1_000, 0]), None);
        assert_eq!(high_rate.free_until(), Some(36_000_000));
        let calls =
            high_rate.estimate(hit(true, false), Some([3_000, 0]), None, 1_000_000).unwrap();
        assert_eq!((calls.count, calls.each, calls.in_call), (2_000, 500, 333));
    }

    /// Time in calls of one period, all of which are reported.
    fn reported_time(
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
    fn tasks_that_block_or_call_rarely_or_cannot_restart_calls_stay_observed() {
        let many = || HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        assert!(many().may_run_freely(1));
        assert!(!HighRate { observed_time: u64::MAX, ..many() }.may_run_freely(1));
        assert!(!HighRate { blocked: true, ..many() }.may_run_freely(1));
        let mut not_restartable = many();
        let epoll_wait = syscall::number(Arch::X86_64, "epoll_wait").unwrap();
        not_restartable.observe(ObservedCall { nr: epoll_wait, args: [0; 6], ret: 0 });
        assert!(!not_restartable.may_run_freely(1));
    }

    #[test]
    fn time_in_calls_is_what_the_kernel_did_not_count_as_user_time() {
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        high_rate.start_free_run(0, Some([0, 0]), Some(0));
        let (mut estimated, mut skidded) = (0, 0);
        for period in 1..=400 {
            // Four fifths are user time, counted in ticks. Every sample skids.
            let free_user_time = period * 800_000 / CPU_TIME_UNIT * CPU_TIME_UNIT;
            estimated +=
                reported_time(&mut high_rate, period * 1_000, free_user_time, hit(true, false));
            skidded += u64::from(high_rate.has_skidded());
        }
        assert!((72_000_000..88_000_000).contains(&estimated), "{estimated} ns of 400 ms");
        assert!((300..340).contains(&skidded), "{skidded} of 400 skidded");
    }

    #[test]
    fn enough_local_samples_give_the_share_of_calls() {
        let mut high_rate = HighRate { count: OBSERVE_FIRST, ..reading(OBSERVE) };
        high_rate.start_free_run(0, Some([0, 0]), Some(0));
        let mut estimated = 0;
        for period in 1..=140 {
            // By chance the kernel's tick found all of it in user code.
            let sample = hit(period % 4 == 0, true);
            estimated += reported_time(&mut high_rate, period * 1_000, period * 1_000_000, sample);
        }
        assert!((31_000_000..39_000_000).contains(&estimated), "{estimated} ns of 140 ms");
    }
}
