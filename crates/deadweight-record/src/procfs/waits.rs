//! Stacks of long waits, read from `/proc` while the waits last.
//!
//! Stacks at switches are sampled often at first and ever more rarely later, so a long wait after many short ones may
//! have none. A waiting task need not be stopped: `/proc` shows its stack pointer and instruction pointer, and its
//! stack can be read as memory. `/proc` does not show the frame pointer.

use crate::clock::now;
use std::collections::HashMap;
use std::fs;

/// A task in the middle of a wait.
pub(crate) struct Wait {
    /// When it was read.
    pub(crate) at: u64,
    /// The waiting task.
    pub(crate) task: u32,
    /// Its instruction pointer.
    pub(crate) ip: u64,
    /// Its stack pointer.
    pub(crate) sp: u64,
    /// Its stack from there upwards.
    pub(crate) stack: Vec<u8>,
}

/// The state of each task at the last call.
pub(crate) struct Waits {
    /// Bytes of a stack that are read at the most.
    stack_bytes: usize,
    known: HashMap<u32, LastState>,
}

struct LastState {
    standing: Standing,
    reported: bool,
}

/// Where a task waits in the kernel. If it is the same twice, the task has not moved in between.
#[derive(PartialEq, Eq)]
struct Standing {
    /// The call, its arguments, stack pointer and instruction, as the kernel prints them.
    place: String,
    /// How long and how often it had run: another wait may be at the same place.
    turns: String,
}

impl Waits {
    /// With so many bytes of each stack.
    pub(crate) fn new(stack_bytes: usize) -> Self {
        Self { stack_bytes, known: HashMap::new() }
    }

    /// Reads the state of all tasks of these processes, and returns those that have not moved since the last call.
    pub(crate) fn long_waits(&mut self, processes: &[u32]) -> Vec<Wait> {
        let mut seen = HashMap::new();
        let mut found = Vec::new();
        for process in processes {
            let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for task in tasks.filter_map(|t| t.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
                let Some(standing) = standing(*process, task) else { continue };
                let mut reported = false;
                if let Some(before) = self.known.get(&task).filter(|b| b.standing == standing) {
                    reported = before.reported;
                    if !reported
                        && let Some(wait) = read(*process, task, &standing, self.stack_bytes)
                    {
                        found.push(wait);
                        reported = true;
                    }
                }
                seen.insert(task, LastState { standing, reported });
            }
        }
        self.known = seen;
        found
    }
}

/// Where the task waits; none if it runs or is gone.
fn standing(process: u32, task: u32) -> Option<Standing> {
    let read = |what| fs::read_to_string(format!("/proc/{process}/task/{task}/{what}")).ok();
    // Kernels without these statistics distinguish waits by place only.
    let turns = read("schedstat").unwrap_or_default();
    let place = read("syscall")?;
    let waits = place.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    waits.then_some(Standing { place, turns })
}

/// Reads its stack, if it is still in the same wait afterwards.
fn read(process: u32, task: u32, before: &Standing, stack_bytes: usize) -> Option<Wait> {
    let (sp, ip) = registers(&before.place)?;
    let stack = memory(task, sp, stack_bytes)?;
    (standing(process, task)? == *before).then(|| Wait { at: now(), task, ip, sp, stack })
}

/// The last two words: stack pointer and instruction.
pub(crate) fn registers(place: &str) -> Option<(u64, u64)> {
    let mut words = place.split_ascii_whitespace().rev();
    let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let ip = hex()?;
    Some((hex()?, ip))
}

/// The task's memory from `address` on, as many bytes as a record would hold.
fn memory(task: u32, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let page = address.next_multiple_of(4096) - address;
    // Page by page: the top of a stack may be nearer than the buffer is long.
    let remote: Vec<_> = [(address, page), (address + page, 4096), (address + page + 4096, 4096)]
        .into_iter()
        .filter_map(|(at, len)| {
            Some(libc::iovec {
                iov_base: usize::try_from(at).ok()? as *mut libc::c_void,
                iov_len: usize::try_from(len).ok()?,
            })
        })
        .collect();
    // SAFETY: the kernel writes at most `local.iov_len` bytes to our buffer and checks every
    // address of the other process.
    let read = unsafe {
        libc::process_vm_readv(
            task.cast_signed(),
            &local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    bytes.truncate(usize::try_from(read).ok()?);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_and_the_instruction_are_the_last_two_words() {
        let read = "0 0x3 0x7f73 0x20000 0x0 0x0 0x0 0x7ffd1 0x7f02\n";
        assert_eq!(registers(read), Some((0x7_ffd1, 0x7f02)));
        assert_eq!(registers("-1 0x7ffd1 0x7f02"), Some((0x7_ffd1, 0x7f02)));
        assert_eq!(registers("running"), None);
    }
}
