//! The decoder: the thread that turns copied ring buffers into raw events, in order of time.

use super::priority::Lowered;
use super::shared::Shared;
use crate::bpf::RecordRing;
use crate::clock::now;
use crate::follow::Follow;
use crate::follow::merge::Merge;
use crate::perf::schema::Schema;
use crate::session::decimate::DecimationStart;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// From the drain to the decoder.
pub(super) enum Drained {
    /// The content of one ring.
    Chunk(Vec<u8>),
    /// The content of this CPU's ring of the BPF programs.
    OfPrograms(Vec<u8>, u16),
    /// This CPU's ring was full and nothing followed: no record reports the loss.
    Full(u32),
    /// Nothing older than this will follow.
    Horizon(u64),
    /// There are new events.
    Schema(Box<Schema>),
    /// From now on, 1 in N of a task's call is recorded.
    DecimationStart(DecimationStart),
}

/// For so long decoding waits, unless this many bytes wait or the program ends: it takes time of a CPU that may share
/// its core with the program's. Programs that run longer cannot be decoded at their end.
const GRACE: Duration = Duration::from_secs(1);
const MOST_HELD_BACK: usize = 16 << 20;

/// All messages, in their order; the first ones at the end of the grace.
fn held_back<'a>(
    from_drain: &'a Receiver<Drained>,
    shared: &Shared,
) -> impl Iterator<Item = Drained> + use<'a> {
    let (begin, mut held) = (Instant::now(), VecDeque::new());
    while !shared.ended.load(Ordering::Relaxed) && shared.backlog() < MOST_HELD_BACK {
        let left = GRACE.saturating_sub(begin.elapsed());
        let Ok(drained) = from_drain.recv_timeout(left) else { break };
        held.push_back(drained);
    }
    held.into_iter().chain(std::iter::from_fn(|| from_drain.recv().ok()))
}

/// Decodes until the last horizon.
pub(super) fn decode(
    from_drain: &Receiver<Drained>,
    spent: &dyn Fn(Vec<u8>),
    shared: &Shared,
    priority: &Lowered,
    merge: &mut Merge,
    follow: &mut Follow<'_>,
) {
    let mut passed_on = false;
    let mut full = Vec::new();
    for drained in held_back(from_drain, shared) {
        if shared.is_far_behind() || shared.ended.load(Ordering::Relaxed) {
            priority.lift();
        } else if shared.has_caught_up() {
            priority.lower();
        }
        match drained {
            Drained::Chunk(bytes) => merge.add(bytes),
            Drained::OfPrograms(mut bytes, cpu) => {
                RecordRing::as_perf_does(&mut bytes, cpu);
                merge.add(bytes);
            }
            Drained::Schema(schema) => merge.learn(*schema),
            Drained::DecimationStart(begun) => {
                follow.excludes(begun.task, begun.at);
                merge.begin(&begun);
            }
            Drained::Full(cpu) => full.push(cpu),
            Drained::Horizon(horizon) => {
                for (path, file) in shared.take_executables() {
                    follow.sink.executable(path, file);
                }
                shared
                    .take_proc_samples()
                    .into_iter()
                    .for_each(|found| follow.add_proc_sample(found));
                follow.end = match shared.end.load(Ordering::SeqCst) {
                    0 => u64::MAX,
                    end => end,
                };
                merge.hand_on(horizon, follow, spent);
                full.drain(..).for_each(|cpu| follow.lost_to_the_end(cpu));
                follow.flush();
                shared.fork_burst.update(follow, horizon, &mut passed_on);
                shared.end_round();
                shared.decoded_until.store(now(), Ordering::Relaxed);
                if horizon == u64::MAX {
                    break;
                }
            }
        }
    }
}
