//! Reads perf.data into facts in order of time. Draws no conclusions.

use crate::facts::{Fact, User, What};
use crate::sections;
use crate::tracepoints::Tracepoint;
use deadweight_trace::ids::Tid;
use linux_perf_data::linux_perf_event_reader::{
    CpuMode, EventRecord, Mmap2FileId, PerfEventType, RawEventRecord, RecordType, SampleRecord,
    SamplingPolicy, SoftwareCounterType,
};
use linux_perf_data::{AttributeDescription, Endianness, PerfFile, PerfFileReader, PerfFileRecord};
use std::collections::BTreeMap;
use std::io::Cursor;

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not perf.data.
    #[error("it is no perf.data that can be read: {0}")]
    NotPerf(String),
    /// From a machine with another order of bytes.
    #[error("it is from a big-endian machine")]
    BigEndian,
    /// From another architecture than this one.
    #[error("it is from a machine with the architecture {0}: import it on such a machine")]
    Architecture(String),
    /// It holds nothing about time.
    #[error(
        "it has neither samples of a clock nor switches: record with `perf record -e cpu-clock -g`"
    )]
    NoSamples,
}

/// A file in memory.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) facts: Vec<Fact>,
    pub(crate) command: Vec<String>,
    pub(crate) cpus: u16,
    pub(crate) has: Vec<Tracepoint>,
    /// Where the kernel's code began, if the file says so.
    pub(crate) kernel: Option<u64>,
    /// Why the rest could not be read.
    pub(crate) broken: Option<String>,
}

/// The kernel's markers in a call chain: what follows is of the kernel, or of the program.
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();
const CONTEXT_MAX: u64 = (-4095_i64).cast_unsigned();

pub(crate) fn read(bytes: &[u8]) -> Result<Contents, ImportError> {
    sections::check(bytes).map_err(|why| ImportError::NotPerf(why.to_owned()))?;
    let not = |error: linux_perf_data::Error| ImportError::NotPerf(error.to_string());
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(Cursor::new(bytes)).map_err(not)?;
    if perf_file.endian() == Endianness::BigEndian {
        return Err(ImportError::BigEndian);
    }
    let mut contents = Contents::of(&perf_file)?;
    let kinds: Vec<Kind> = perf_file.event_attributes().iter().map(Kind::of).collect();
    contents.has = kinds.iter().filter_map(|kind| kind.tracepoint()).collect();
    let mut starting = BTreeMap::new();
    loop {
        match record_iter.next_record(&mut perf_file) {
            Ok(Some(PerfFileRecord::EventRecord { attr_index, record })) => {
                let kind = kinds.get(attr_index).copied().unwrap_or(Kind::Other);
                if !is_sound(&record) {
                    continue;
                }
                let Ok(common) = record.common_data() else { continue };
                let Ok(parsed) = record.parse() else { continue };
                let cpu = u16::try_from(common.cpu.unwrap_or(0)).unwrap_or(0);
                let at = common.timestamp.unwrap_or(0);
                contents.add(kind, (at, cpu), parsed, &mut starting);
            }
            Ok(Some(PerfFileRecord::UserRecord(_))) => {}
            Ok(None) => break,
            Err(error) => {
                contents.broken = Some(error.to_string());
                break;
            }
        }
    }
    let first = contents.facts.iter().map(|fact| fact.at).find(|at| *at > 0).unwrap_or(0);
    for fact in &mut contents.facts {
        fact.at = fact.at.max(first);
    }
    contents.facts.sort_by_key(|fact| fact.at);
    Ok(contents)
}

/// Whether the reader takes the record without a panic: it asserts that a build-id has at most 20 bytes.
fn is_sound(record: &RawEventRecord<'_>) -> bool {
    const HAS_BUILD_ID: u16 = 1 << 14;
    const AT: usize = 32;
    let length = || record.data.get(AT..AT + 1).map(|byte| byte.as_slice()[0]);
    record.record_type != RecordType::MMAP2
        || record.misc & HAS_BUILD_ID == 0
        || length().is_some_and(|length| length <= 20)
}

/// What the samples of an event are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Ticks of a clock: the period is in ns.
    Clock,
    /// So many a second, by another counter.
    Frequency(u64),
    Tracepoint(Tracepoint),
    Other,
}

impl Kind {
    fn of(description: &AttributeDescription) -> Self {
        let attr = &description.attr;
        if let Some(tracepoint) = description.name().and_then(Tracepoint::named) {
            return Self::Tracepoint(tracepoint);
        }
        match (&attr.type_, attr.sampling_policy) {
            (
                PerfEventType::Software(
                    SoftwareCounterType::CpuClock | SoftwareCounterType::TaskClock,
                ),
                _,
            ) => Self::Clock,
            (PerfEventType::Hardware(..), SamplingPolicy::Frequency(hz)) if hz > 0 => {
                Self::Frequency(hz)
            }
            _ => Self::Other,
        }
    }

    fn tracepoint(self) -> Option<Tracepoint> {
        match self {
            Self::Tracepoint(tracepoint) => Some(tracepoint),
            _ => None,
        }
    }
}

fn tid(id: i32) -> Tid {
    Tid(u32::try_from(id).unwrap_or(0))
}

impl Contents {
    fn of(file: &PerfFile) -> Result<Self, ImportError> {
        let arch = file.arch().ok().flatten().unwrap_or(std::env::consts::ARCH);
        if arch != std::env::consts::ARCH {
            return Err(ImportError::Architecture(arch.to_owned()));
        }
        let command = file.cmdline().ok().flatten().unwrap_or_default();
        let cpus = file.nr_cpus().ok().flatten().map_or(1, |cpus| cpus.nr_cpus_available);
        Ok(Self {
            command: command.into_iter().map(str::to_owned).collect(),
            cpus: u16::try_from(cpus).unwrap_or(u16::MAX / 2).clamp(1, u16::MAX / 2),
            ..Self::default()
        })
    }

    /// One more record. `starting` has the processes whose program's path is not known yet.
    fn add(
        &mut self,
        kind: Kind,
        (at, cpu): (u64, u16),
        record: EventRecord<'_>,
        starting: &mut BTreeMap<i32, usize>,
    ) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (pid, task, what) = match record {
            EventRecord::Sample(sample) => {
                let Some(what) = sampled(kind, &sample) else { return };
                (sample.pid.unwrap_or(-1), sample.tid.unwrap_or(-1), what)
            }
            EventRecord::Fork(fork) => {
                let what = What::Fork { child: tid(fork.tid), process: tid(fork.pid) };
                (fork.ppid, fork.ptid, what)
            }
            EventRecord::Exit(exit) => (exit.pid, exit.tid, What::Exit),
            EventRecord::Comm(comm) => {
                let name = text(&comm.name.as_slice());
                if comm.is_execve {
                    starting.insert(comm.pid, self.facts.len());
                }
                let path = String::new();
                let exec = comm.is_execve;
                let what = if exec { What::Exec { comm: name, path } } else { What::Comm(name) };
                (comm.pid, comm.tid, what)
            }
            EventRecord::Mmap2(map) if map.pid >= 0 => {
                let path = text(&map.path.as_slice());
                let began = starting.remove(&map.pid).and_then(|at| self.facts.get_mut(at));
                if let Some(Fact { what: What::Exec { path: program, .. }, .. }) = began {
                    program.clone_from(&path);
                }
                let inode = match map.file_id {
                    Mmap2FileId::InodeAndVersion(id) => id.inode,
                    Mmap2FileId::BuildId(_) => 0,
                };
                let (start, len, offset) = (map.address, map.length, map.page_offset);
                const EXECUTABLE: u32 = 4;
                let executable = map.protection & EXECUTABLE != 0;
                (map.pid, map.tid, What::Map { start, len, offset, inode, path, executable })
            }
            EventRecord::Mmap(map) if map.path.as_slice().starts_with(b"[kernel.kallsyms]") => {
                self.kernel = Some(map.address);
                return;
            }
            EventRecord::Lost(lost) => (-1, -1, What::Lost(lost.count)),
            _ => return,
        };
        self.facts.push(Fact { at, cpu, process: tid(pid), task: tid(task), what });
    }
}

fn sampled(kind: Kind, sample: &SampleRecord<'_>) -> Option<What> {
    let (kernel_chain, user_chain) = chains(sample);
    if let Kind::Tracepoint(tracepoint) = kind {
        return tracepoint.read(&sample.raw.as_ref()?.as_slice(), kernel_chain);
    }
    let period = match kind {
        Kind::Clock => sample.period.unwrap_or(0),
        Kind::Frequency(hz) => 1_000_000_000 / hz,
        Kind::Tracepoint(_) | Kind::Other => return None,
    };
    let kernel = matches!(sample.cpu_mode, CpuMode::Kernel);
    let mut user = User { chain: user_chain, ..User::default() };
    if let Some(regs) = &sample.user_regs {
        let [ip, sp, fp] = registers().map(|register| regs.get(register).unwrap_or(0));
        (user.ip, user.sp, user.fp) = (ip, sp, fp);
        if let Some((stack, _)) = &sample.user_stack {
            user.stack = stack.as_slice().into_owned();
        }
    }
    if user.ip == 0 {
        let leaf = user.chain.first().copied();
        user.ip = leaf.or(sample.ip.filter(|_| !kernel)).unwrap_or(0);
    }
    Some(What::Sample { period, kernel, user, chain: kernel_chain })
}

/// Numbers of instruction, stack and frame pointer among perf's registers.
fn registers() -> [u64; 3] {
    if cfg!(target_arch = "aarch64") { [32, 31, 29] } else { [8, 7, 6] }
}

/// The kernel's part of a sample's call chain, and the program's; leaf first.
fn chains(sample: &SampleRecord<'_>) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let Some(chain) = &sample.callchain else { return (kernel, user) };
    let mut in_kernel = false;
    for address in (0..chain.len()).filter_map(|at| chain.get(at)) {
        match address {
            CONTEXT_KERNEL => in_kernel = true,
            CONTEXT_USER => in_kernel = false,
            marker if marker >= CONTEXT_MAX => {}
            address if in_kernel => kernel.push(address),
            address => user.push(address),
        }
    }
    (kernel, user)
}
