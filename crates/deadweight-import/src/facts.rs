//! What records of perf.data say, one fact each. Data only.

use deadweight_trace::ids::Tid;

/// One record.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) at: u64,
    pub(crate) cpu: u16,
    pub(crate) process: Tid,
    pub(crate) task: Tid,
    pub(crate) what: What,
}

/// What it says.
#[derive(Debug)]
pub(crate) enum What {
    Fork { child: Tid, process: Tid },
    Exec { comm: String, path: String },
    Comm(String),
    Exit,
    Map { start: u64, len: u64, offset: u64, inode: u64, path: String, executable: bool },
    Sample { period: u64, kernel: bool, user: User, chain: Vec<u64> },
    Switch { state: u64, next: Tid, chain: Vec<u64> },
    Wake { wakee: Tid, chain: Vec<u64> },
    Enter { nr: u16, args: [u64; 6] },
    Leave { ret: i64 },
    Lost(u64),
}

/// A user stack: as the kernel walked it, or registers and bytes.
#[derive(Debug, Default)]
pub(crate) struct User {
    pub(crate) chain: Vec<u64>,
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    pub(crate) stack: Vec<u8>,
}
