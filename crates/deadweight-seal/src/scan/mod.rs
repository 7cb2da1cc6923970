//! A whole binary: what the code of all its functions shows before it runs.
//!
//! - In: a file.
//! - Out: the places that match a pattern of `deadweight_code::scan`, with their frames.
//! - Must not know: which code is the program's own, or cost classes.
//!
//! Nothing is executed. In memory are the code, the tables of symbols and the matches. Functions are read by several
//! threads, and each is forgotten at once.

mod code_bytes;
mod functions;
mod parallel;
mod routines;
mod threads;
mod versions;

use crate::cfi;
use crate::elf::content::Content;
use crate::elf::debug_files::SeparateDebug;
use crate::elf::{Files, Layout};
use crate::frame::Frame;
use crate::names::symbol_table;
use crate::resolve::{BinaryInfo, Detail, resolve};
use code_bytes::CodeBytes;
use deadweight_code::scan::Pattern;
use deadweight_trace::units::FileAddr;
use functions::Functions;
use object::{Object, ObjectKind, ObjectSection};
use parallel::Hit;
use routines::Routines;
use std::io::Cursor;
use std::path::Path;

/// Most places that are named: those with the deepest loops first.
const MOST_SITES: usize = 100_000;

/// Of so many functions lines are asked for where there are no places.
const MOST_ASKED: usize = 100;
/// With more bytes of debug information lines are not read: their index takes a multiple of it.
const MOST_DEBUG: u64 = 256 << 20;

/// An open binary.
pub struct Binary {
    content: Content<'static>,
    separate: SeparateDebug<'static>,
}

/// What the code of a binary shows.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Language, compiler, and what is known of names and lines.
    pub info: BinaryInfo,
    /// The functions that were read ...
    pub functions: usize,
    /// ... and their bytes.
    pub bytes: u64,
    /// Places, in order of address.
    pub sites: Vec<Site>,
    /// What is missing, in words that follow the file's name.
    pub warnings: Vec<String>,
}

/// A place that matches a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The pattern; none only in an empty value.
    pub pattern: Option<Pattern>,
    /// How many loops are around it.
    pub depth: u32,
    /// See [`Pattern`].
    pub amount: u32,
    /// The address of the instruction.
    pub at: FileAddr,
    /// Where its function begins.
    pub function: FileAddr,
    /// Its frames, innermost first; at least one, empty where unknown.
    pub frames: Vec<Frame>,
    /// What is called there: a small function, or a routine that allocates.
    pub callee: Option<Frame>,
}

impl Binary {
    /// Opens a file and the debug files that belong to it.
    ///
    /// # Errors
    /// If it is no ELF file; in words that follow its name.
    pub fn open(path: &Path) -> Result<Self, String> {
        let (content, _) = Content::open(path).ok_or("is not a file that can be read")?;
        Layout::read(&content)?;
        let separate = SeparateDebug::of(&content, Some(path));
        Ok(Self { content, separate })
    }

    /// The binary with these bytes, without separate debug files.
    ///
    /// # Errors
    /// As [`Binary::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, String> {
        let len = bytes.len() as u64;
        let content = Content::new(Cursor::new(bytes), len);
        Layout::read(&content)?;
        Ok(Self { content, separate: SeparateDebug::default() })
    }

    /// Reads all functions.
    ///
    /// # Errors
    /// If the file is damaged or holds nothing that can be read; in words that follow its name.
    pub fn scan(&self) -> Result<Scan, String> {
        let broken = |error| format!("is a broken ELF file ({error})");
        let file = object::File::parse(&self.content).map_err(broken)?;
        supported(&file)?;
        let code = CodeBytes::read(&file)?;
        let debug = self.separate.debug.as_ref().and_then(|d| object::File::parse(d).ok());
        let frames = cfi::call_frames(&self.content).0;
        let files = [Some(&file), debug.as_ref()].into_iter().flatten();
        let symbols: Vec<_> = files.flat_map(symbol_table::functions).collect();
        let functions = Functions::of(&file, &symbols, frames.as_ref(), &code);
        if functions.list.is_empty() {
            return Err("does not say where its functions begin: it has no symbols, no unwind \
                        tables and no table of Go's"
                .into());
        }
        let routines = Routines::of(&file, &symbols, &code);
        let mut hits = parallel::scan(&functions, &routines, &code);
        let is_scalar = |hit: &Hit| matches!(hit.found.pattern, Pattern::ScalarFloats(_));
        if hits.iter().any(is_scalar) {
            let slow = versions::with_faster(&symbols);
            hits.retain(|hit| {
                !is_scalar(hit) || !slow.contains(&functions.list[hit.function].start)
            });
        }
        let mut scan = Scan {
            functions: functions.list.len(),
            bytes: functions.list.iter().map(|f| u64::from(f.size)).sum(),
            ..Scan::default()
        };
        scan.warnings.extend(functions.left_out());
        self.name(hits, &functions, &mut scan);
        Ok(scan)
    }

    /// Gives the hits their frames.
    fn name(&self, mut hits: Vec<Hit>, functions: &Functions, scan: &mut Scan) {
        if let Some(rest) = hits.len().checked_sub(MOST_SITES).filter(|rest| *rest > 0) {
            hits.sort_by_key(|hit| std::cmp::Reverse((hit.found.depth, hit.found.amount)));
            hits.truncate(MOST_SITES);
            scan.warnings
                .push(format!("has {rest} more places in outer loops, which were left out"));
        }
        hits.sort_unstable();
        let called = |hit: &Hit| {
            let calls = matches!(hit.found.pattern, Pattern::SmallCall | Pattern::GoAllocation);
            hit.found.callee.filter(|_| calls).map(|at| at.0)
        };
        let mut addresses: Vec<u64> = hits.iter().map(|hit| hit.found.at.0).collect();
        addresses.extend(hits.iter().filter_map(called));
        if addresses.is_empty() {
            // Whether the file has lines is asked of its functions then.
            addresses.extend(functions.list.iter().take(MOST_ASKED).map(|function| function.start));
        }
        let resolved = resolve(self.files(), &addresses, self.detail(scan));
        scan.info = resolved.info;
        scan.warnings.extend(resolved.warnings);
        let (own, callees) = resolved.frames.split_at(hits.len());
        let mut callees = callees.iter();
        for (hit, frames) in hits.iter().zip(own) {
            let callee = called(hit).and_then(|_| callees.next()?.last().cloned());
            let start = functions.list[hit.function].start;
            scan.sites.push(Site {
                pattern: Some(hit.found.pattern),
                depth: hit.found.depth,
                amount: hit.found.amount,
                at: hit.found.at,
                function: FileAddr(start),
                frames: frames.clone(),
                callee,
            });
        }
    }

    fn files(&self) -> Files<'_, &Content<'static>> {
        self.separate.files(&self.content)
    }

    /// Lines, unless there is too much debug information.
    fn detail(&self, scan: &mut Scan) -> Detail {
        let debug = [Some(&self.content), self.separate.debug.as_ref()].into_iter().flatten();
        let sections = debug.filter_map(|content| object::File::parse(content).ok()).map(|file| {
            let debug =
                file.sections().filter(|s| s.name().is_ok_and(|n| n.starts_with(".debug_")));
            debug.fold(0_u64, |sum, section| sum.saturating_add(section.size()))
        });
        if sections.fold(0, u64::saturating_add) <= MOST_DEBUG {
            return Detail::Lines;
        }
        scan.warnings.push(format!(
            "has more than {} MiB of debug information, which is not read: functions are known, lines are not",
            MOST_DEBUG >> 20
        ));
        Detail::Functions
    }
}

/// Whether the file holds linked x86-64 code.
fn supported<'d>(file: &object::File<'d, &'d Content<'static>>) -> Result<(), String> {
    if file.architecture() != object::Architecture::X86_64 || !file.is_64() {
        return Err(format!(
            "holds code for {:?}: only 64-bit x86 code can be scanned",
            file.architecture()
        ));
    }
    match file.kind() {
        ObjectKind::Executable | ObjectKind::Dynamic => Ok(()),
        ObjectKind::Relocatable => {
            Err("is not linked yet, so that its calls lead nowhere: scan the program".into())
        }
        _ => Err("is no program and no library".into()),
    }
}
