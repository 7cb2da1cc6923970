//! Names for things in a trace: kernel ids as recorded, and indexes into the trace's own tables.
//!
//! The kernel may reuse a [`Tid`]; a [`TaskId`] stands for a single task. Not for the tables themselves; see `symbols`.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);
    };
}

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        id!($(#[$doc])* $name(u32));
        impl $name {
            /// As an index into the table it belongs to.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the entry at `index`.
            ///
            /// # Panics
            /// If a table outgrew `u32`, which readers prevent by their limits.
            #[must_use]
            pub fn at(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables are limited to u32 entries"))
            }
        }
    };
}

id!(
    /// The kernel's id of a task (what `gettid` returns). 0 is a CPU's idle task.
    Tid(u32)
);
id!(
    /// The kernel's id of a process: the tid of its first task.
    Pid(u32)
);
id!(
    /// The number of a CPU.
    Cpu(u16)
);
index!(
    /// A task, from its birth to its end: an index into `Timeline::tasks`.
    TaskId
);
index!(
    /// A call stack: an index into `Symbols::stacks`. 0 is "no stack was taken".
    StackId
);
index!(
    /// A code address of a sample or of a call stack: an index into `Symbols::locations`.
    LocationId
);
index!(
    /// A binary: an index into `Symbols::images`.
    ImageId
);
index!(
    /// An interned string: an index into `Symbols::names`. 0 is the empty string.
    NameId
);
/// A system call that was made: an index into `Timeline::calls`. None of it takes no more memory than one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(NonZeroU32);

impl CallId {
    /// As an index into the table it belongs to.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }

    /// The id of the entry at `index`.
    ///
    /// # Panics
    /// If a table outgrew `u32`, which the timeline prevents by its limits.
    #[must_use]
    #[inline]
    pub fn at(index: usize) -> Self {
        let next = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(next.expect("tables are limited to u32 entries"))
    }
}
