//! How much of a program can be recorded here: the rung, why no higher one, and what it lacks.
//!
//! Chosen from what was tried (`plan`); goes into every trace and from there into the report.
//! Not for how a rung records: that is `session`.

/// The rungs, from nothing to everything.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing can be recorded.
    None,
    /// No perf events: the program is stopped at its system calls and looked at.
    Stops,
    /// The program's own switches, chosen system calls, faults and user samples, as the kernel
    /// tells them to any user.
    User,
    /// Everything: the machine's switches and wake-ups, the program's calls, faults and samples.
    Root,
}

impl Level {
    /// Its name, as a trace stores it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stops => "stops",
            Self::User => "user",
            Self::Root => "root",
        }
    }

    /// What this rung has in the place of a capability, by its name, that only the root rung uses.
    pub(crate) fn instead(self, capability: &str) -> Option<&'static str> {
        Some(match (self, capability) {
            (Self::User, "context switches") => {
                "the program's own are seen, not what others did meanwhile"
            }
            (Self::User, "system calls") => "the most likely ones are seen, the others as one sum",
            (Self::User, "clock samples") => "taken in user code",
            (Self::User, "page faults") => "seen where user code meets them",
            (Self::Stops, "context switches") => {
                "the scheduler's counts between stops, not what others did meanwhile"
            }
            (Self::Stops, "system calls") => "the program is stopped at each, which costs time",
            (Self::Stops, "clock samples") => "the program is stopped for each, in user code",
            (Self::Stops, "page faults") => "the kernel's count of them, not when and where",
            (Self::User | Self::Stops, "wake-ups") => {
                "concluded from what the other side did at that time"
            }
            _ => return None,
        })
    }
}

/// Something that a higher rung would tell.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Anything at all.
    Everything,
    /// The kernel's word on who woke scope.
    Wakers,
    /// What other programs did on the CPUs.
    Others,
    /// Kernel call stacks at waits and samples.
    KernelStacks,
    /// System calls other than the most likely ones.
    RareCalls,
    /// Where `main` begins, and other places in binaries.
    Probes,
    /// Page faults one by one.
    Faults,
    /// Samples of user code at a steady rate.
    Samples,
}

impl Lack {
    /// What is lacking and what stands in its place, as half a sentence.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Everything => "nothing can be recorded",
            Self::Wakers => {
                "who ended a wait is concluded from what the other side did at that time"
            }
            Self::Others => "other programs on the CPUs are not seen",
            Self::KernelStacks => "what the kernel did is told by system calls, not by its stacks",
            Self::RareCalls => "only the most likely system calls are seen apart",
            Self::Probes => "start-up is not told apart from main",
            Self::Faults => "page faults are not seen one by one",
            Self::Samples => "the program's own code is sampled coarsely",
        }
    }
}

/// How much can be recorded, why not more, and what is therefore lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Which one.
    pub level: Level,
    /// Why it is not a higher one, as found out; empty at the top.
    pub why: String,
    /// What a higher rung would tell, most important first; empty at the top.
    pub lacks: Vec<Lack>,
}

impl Rung {
    /// The highest.
    #[must_use]
    pub fn root() -> Self {
        Self { level: Level::Root, why: String::new(), lacks: Vec::new() }
    }

    /// What is lacking, in words.
    #[must_use]
    pub fn lacks_in_words(&self) -> Vec<String> {
        self.lacks.iter().map(|lack| lack.words().to_owned()).collect()
    }
}
