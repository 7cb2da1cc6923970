//! Events decoded by a second thread, while those before them are understood.

use super::{Block, Events, FOR_A_THREAD};
use crate::event::Event;
use std::sync::mpsc;

/// Events are handed over so many at a time: few enough that they stay in a cache.
const TOGETHER: usize = 4096;
/// So often before they are taken.
const AHEAD: usize = 3;

impl Events {
    /// Calls `each` with the events in order.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&Event)) {
        let bytes: usize = self.closed.iter().map(|block| block.bytes.len()).sum();
        if bytes < FOR_A_THREAD {
            return self.iter().for_each(|event| each(&event));
        }
        std::thread::scope(|scope| {
            let (hand_over, taken) = mpsc::sync_channel::<Vec<Event>>(AHEAD);
            let (give_back, used) = mpsc::channel::<Vec<Event>>();
            scope.spawn(move || {
                for mut walk in self.closed.iter().chain([&self.open]).map(Block::iter) {
                    loop {
                        let mut events = used.try_recv().unwrap_or_default();
                        events.clear();
                        events.extend(walk.by_ref().take(TOGETHER));
                        if events.is_empty() {
                            break;
                        }
                        // Nobody takes them if `each` panicked.
                        if hand_over.send(events).is_err() {
                            return;
                        }
                    }
                }
            });
            for events in taken {
                events.iter().for_each(&mut each);
                // Nobody reuses its memory behind the last events.
                _ = give_back.send(events);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;
    use crate::ids::{Cpu, Tid};
    use crate::units::Ns;

    /// Events in so many blocks, of which the last one is open.
    fn events(blocks: u64, each: u64) -> Events {
        let mut events = Events::default();
        for at in 0..blocks * each {
            if at % each == 0 {
                events.close();
            }
            events.push(Event { at: Ns(at), cpu: Cpu(0), task: Tid(1), kind: Kind::On });
        }
        events
    }

    #[test]
    fn a_second_thread_decodes_the_same_events_in_the_same_order() {
        for (blocks, each) in
            [(0, 1), (1, 5), (9, 3), (FOR_A_THREAD as u64 / 16384, TOGETHER as u64 + 5)]
        {
            let events = events(blocks, each);
            let mut walked = Vec::new();
            events.for_each(|event| walked.push(*event));
            assert!(walked.len() as u64 == blocks * each && events.iter().eq(walked));
        }
    }

    #[test]
    #[should_panic(expected = "enough")]
    fn a_panic_ends_the_other_thread() {
        events(FOR_A_THREAD as u64 / 8192, TOGETHER as u64)
            .for_each(|event| assert!(event.at < Ns(5000), "enough"));
    }
}
