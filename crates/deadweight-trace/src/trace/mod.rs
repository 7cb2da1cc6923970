//! A sealed recording as a value: its facts, its symbols and its events.
//!
//! - In: the parts of a recording.
//! - Out: a trace whose events can be walked.
//! - Must not know: how it is read or written; see `binary` and `text`.

mod cut;

use crate::encoded::Events;
use crate::event::Event;
use crate::meta::Meta;
use crate::symbols::Symbols;
use crate::units::Ns;

/// A sealed recording.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Facts about the recording.
    pub meta: Meta,
    /// What the events' ids mean.
    pub symbols: Symbols,
    pub(crate) events: Events,
}

impl Trace {
    /// A trace of these events, which must be in order of time.
    #[must_use]
    pub fn new(meta: Meta, symbols: Symbols, events: impl IntoIterator<Item = Event>) -> Self {
        Self::from_encoded(meta, symbols, events.into_iter().collect())
    }

    /// A trace of events that are encoded already.
    #[must_use]
    pub fn from_encoded(meta: Meta, symbols: Symbols, events: Events) -> Self {
        Self { meta, symbols, events }
    }

    /// The events in order.
    pub fn events(&self) -> impl Iterator<Item = Event> + Clone {
        self.events.iter()
    }

    /// Calls `each` with the events in order; those of a long trace are decoded by a second thread.
    pub fn for_each_event(&self, each: impl FnMut(&Event)) {
        self.events.for_each(each);
    }

    /// Frees the memory of the events, when nothing will ask for them again.
    pub fn forget_events(&mut self) {
        self.events = Events::default();
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The wall time that the ledger divides, before a subject is chosen.
    #[must_use]
    pub fn wall(&self) -> Ns {
        self.meta.end - self.meta.start
    }
}
