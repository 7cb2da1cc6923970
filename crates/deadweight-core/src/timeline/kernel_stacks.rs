//! What a kernel call chain shows: what a blocked task waits for, and in which context a waker ran.
//!
//! Matches function names of the kernel (5.10 to 6.18), never addresses. Stacks are read leaf first, and
//! the first function in the table decides: a task blocked on the mutex of a pipe waits for the mutex. Where
//! none of them is in the table, or no stack is known, `wait_by_call` judges by the system call. Not for user stacks.

use crate::timeline::descriptors::ObjectKind;
use deadweight_trace::ids::StackId;
use deadweight_trace::symbols::Symbols;

/// What a blocked task waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitsFor {
    /// Data in an empty pipe.
    PipeData,
    /// Space in a full pipe.
    PipeRoom,
    /// Data or a connection on a socket.
    SocketData,
    /// Space in a socket's buffer.
    SocketRoom,
    /// Input on a terminal.
    Terminal,
    /// A futex word to change.
    Futex,
    /// One of several descriptors (`poll`, `select`, `epoll_wait`).
    Poll,
    /// A clock.
    Sleep,
    /// An event, until the time-out; events have ended the same wait at other times.
    Tick,
    /// A token in a pipe that its readers also write to.
    Turn,
    /// The end of a child.
    Child,
    /// A child made by vfork to exec or exit.
    Vfork,
    /// Storage.
    Disk,
    /// A signal, or being continued after a stop.
    Signal,
    /// A lock inside the kernel.
    KernelLock,
    /// What the kernel does for recording (perf's own locks at births and deaths).
    Recording,
    /// Other threads to die (exec, exit_group).
    Threads,
    /// Something else in the kernel.
    Other,
}

/// What an interrupt that woke a task was.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// A clock ran out.
    Timer,
    /// Storage completed.
    Disk,
    /// A packet arrived.
    Network,
    /// Another or none of these.
    Other,
}

/// In what context a wake-up happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeContext {
    /// The current task did it.
    Task,
    /// The current task did it by sending a signal.
    Signal,
    /// The current task was interrupted; it did not wake anything itself.
    Interrupt(Interrupt),
}

/// Classifies kernel stacks, each of them once.
#[derive(Debug)]
pub(crate) struct KernelStacks<'a> {
    symbols: &'a Symbols,
    waits: Vec<Option<Option<WaitsFor>>>,
    wakes: Vec<Option<Option<WakeContext>>>,
}

impl<'a> KernelStacks<'a> {
    pub(crate) fn new(symbols: &'a Symbols) -> Self {
        let count = symbols.stacks.len();
        Self { symbols, waits: vec![None; count], wakes: vec![None; count] }
    }

    /// What a task that left its CPU with this stack waits for; none if no function of the stack is known.
    pub(crate) fn waits_for(&mut self, stack: StackId) -> Option<WaitsFor> {
        let slot = self.waits.get_mut(stack.index())?;
        let symbols = self.symbols;
        *slot.get_or_insert_with(|| {
            if symbols.functions(stack).any(is_for_recording) {
                return Some(WaitsFor::Recording);
            }
            symbols.functions(stack).find_map(wait_of)
        })
    }

    /// Whether a waker with this stack delivered what was typed at a terminal.
    pub(crate) fn is_typing(&self, stack: StackId) -> bool {
        const DELIVERS: [&str; 5] =
            ["n_tty_receive", "flush_to_ldisc", "tty_ldisc_receive", "tty_port_", "pty_write"];
        let delivers = |name: &str| DELIVERS.iter().any(|d| name.starts_with(d));
        stack != StackId(0) && self.symbols.functions(stack).any(delivers)
    }

    /// In what context a waker with this stack was. The flag decides only without a stack.
    pub(crate) fn woken_in(&mut self, stack: StackId, irq_flag: bool) -> WakeContext {
        let symbols = self.symbols;
        let known = self
            .wakes
            .get_mut(stack.index())
            .and_then(|slot| *slot.get_or_insert_with(|| wake_context(symbols.functions(stack))));
        known.unwrap_or(if irq_flag {
            WakeContext::Interrupt(Interrupt::Other)
        } else {
            WakeContext::Task
        })
    }
}

/// Whether a kernel function works for perf events, or calls a BPF program at a tracepoint: only recording does.
pub(crate) fn is_for_recording(function: &str) -> bool {
    let name = function.trim_start_matches('_');
    ["perf_", "inherit_event", "bpf_trace_"].iter().any(|prefix| name.starts_with(prefix))
}

/// A kernel function's name without what compilers append (`.isra.0`, `.constprop.0`, `.part.0`).
fn plain(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

/// What a task waits for that has this function on its stack, if that is known.
fn wait_of(function: &str) -> Option<WaitsFor> {
    let name = plain(function);
    WAITS
        .iter()
        .find(|(pattern, _)| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        })
        .map(|(_, waits_for)| *waits_for)
}

/// Functions that a blocked task's stack shows, and what they wait for. `*` ends a prefix.
/// From the kernel's sources and stacks recorded on 6.18; older names stand beside newer ones.
const WAITS: &[(&str, WaitsFor)] = &[
    ("pipe_read", WaitsFor::PipeData),
    ("anon_pipe_read", WaitsFor::PipeData),
    ("fifo_pipe_read", WaitsFor::PipeData),
    ("wait_for_partner", WaitsFor::PipeData),
    ("ipipe_prep*", WaitsFor::PipeData),
    ("splice_from_pipe*", WaitsFor::PipeData),
    ("pipe_write", WaitsFor::PipeRoom),
    ("anon_pipe_write", WaitsFor::PipeRoom),
    ("fifo_pipe_write", WaitsFor::PipeRoom),
    ("opipe_prep*", WaitsFor::PipeRoom),
    ("wait_for_space", WaitsFor::PipeRoom),
    ("futex_wait*", WaitsFor::Futex),
    ("futex_do_wait*", WaitsFor::Futex),
    ("__futex_wait*", WaitsFor::Futex),
    ("futex_lock_pi*", WaitsFor::Futex),
    ("__rt_mutex_*", WaitsFor::KernelLock),
    ("ep_poll", WaitsFor::Poll),
    ("do_epoll_wait", WaitsFor::Poll),
    ("do_sys_poll", WaitsFor::Poll),
    ("do_select", WaitsFor::Poll),
    ("io_cqring_wait*", WaitsFor::Poll),
    ("do_nanosleep", WaitsFor::Sleep),
    ("hrtimer_nanosleep*", WaitsFor::Sleep),
    ("do_wait", WaitsFor::Child),
    ("wait_for_vfork_done", WaitsFor::Vfork),
    ("kernel_clone", WaitsFor::Vfork),
    ("_do_fork", WaitsFor::Vfork),
    ("unix_stream_data_wait", WaitsFor::SocketData),
    ("unix_stream_read_generic", WaitsFor::SocketData),
    ("__skb_wait_for_more_packets", WaitsFor::SocketData),
    ("unix_accept", WaitsFor::SocketData),
    ("sk_wait_data", WaitsFor::SocketData),
    ("inet_csk_accept", WaitsFor::SocketData),
    ("inet_wait_for_connect", WaitsFor::SocketData),
    ("__inet_stream_connect", WaitsFor::SocketData),
    ("tcp_recvmsg*", WaitsFor::SocketData),
    ("udp_recvmsg", WaitsFor::SocketData),
    ("netlink_recvmsg", WaitsFor::SocketData),
    ("vsock_connectible_wait_data", WaitsFor::SocketData),
    ("sk_stream_wait_memory", WaitsFor::SocketRoom),
    ("sock_alloc_send_pskb", WaitsFor::SocketRoom),
    ("sock_wait_for_wmem", WaitsFor::SocketRoom),
    ("unix_wait_for_peer", WaitsFor::SocketRoom),
    ("sk_stream_wait_close", WaitsFor::SocketRoom),
    ("n_tty_read", WaitsFor::Terminal),
    ("tty_wait_until_sent", WaitsFor::Terminal),
    ("n_tty_write", WaitsFor::Terminal),
    ("do_signal_stop", WaitsFor::Signal),
    ("do_jobctl_trap", WaitsFor::Signal),
    ("ptrace_stop", WaitsFor::Signal),
    ("sigsuspend", WaitsFor::Signal),
    ("do_sigtimedwait", WaitsFor::Signal),
    ("__do_sys_pause", WaitsFor::Signal),
    ("__x64_sys_pause", WaitsFor::Signal),
    ("signalfd_dequeue", WaitsFor::Signal),
    ("signalfd_read*", WaitsFor::Signal),
    ("begin_new_exec", WaitsFor::Threads),
    ("de_thread", WaitsFor::Threads),
    ("coredump_wait", WaitsFor::Threads),
    ("io_schedule*", WaitsFor::Disk),
    ("folio_wait_*", WaitsFor::Disk),
    ("wait_on_page_*", WaitsFor::Disk),
    ("submit_bio_wait", WaitsFor::Disk),
    ("blk_execute_rq", WaitsFor::Disk),
    ("blk_mq_get_tag", WaitsFor::Disk),
    ("blkdev_issue_flush", WaitsFor::Disk),
    ("rq_qos_wait", WaitsFor::Disk),
    ("balance_dirty_pages*", WaitsFor::Disk),
    ("jbd2_*", WaitsFor::Disk),
    ("wait_transaction_locked", WaitsFor::Disk),
    ("add_transaction_credits", WaitsFor::Disk),
    ("start_this_handle", WaitsFor::Disk),
    ("ext4_sync_file", WaitsFor::Disk),
    ("xfs_log_force*", WaitsFor::Disk),
    ("xlog_*", WaitsFor::Disk),
    ("btrfs_wait_*", WaitsFor::Disk),
    ("wait_log_commit", WaitsFor::Disk),
    ("wb_wait_for_completion", WaitsFor::Disk),
    ("iomap_dio_rw", WaitsFor::Disk),
    ("read_events", WaitsFor::Disk),
    ("request_wait_answer", WaitsFor::Disk),
    ("p9_client_rpc", WaitsFor::Disk),
    ("nfs_wait_*", WaitsFor::Disk),
    ("rpc_wait_bit_killable", WaitsFor::Disk),
    ("rwsem_down_*", WaitsFor::KernelLock),
    ("__mutex_lock*", WaitsFor::KernelLock),
    ("mutex_lock*", WaitsFor::KernelLock),
    ("percpu_rwsem_wait", WaitsFor::KernelLock),
    ("__percpu_down_read*", WaitsFor::KernelLock),
    ("__down*", WaitsFor::KernelLock),
    ("rt_mutex_*", WaitsFor::KernelLock),
    ("rt_spin_lock*", WaitsFor::KernelLock),
    ("__lock_sock", WaitsFor::KernelLock),
    ("lock_sock_nested", WaitsFor::KernelLock),
    ("locks_lock_inode_wait", WaitsFor::KernelLock),
    ("fcntl_setlk", WaitsFor::KernelLock),
    ("do_exit", WaitsFor::Other),
];

/// The context of a waker's stack; none if no function of it is known.
fn wake_context<'n>(functions: impl Iterator<Item = &'n str>) -> Option<WakeContext> {
    let mut source = None;
    let mut signal = false;
    let mut seen = false;
    for name in functions.map(plain).filter(|n| !n.is_empty()) {
        seen = true;
        signal |= SIGNALS.contains(&name);
        if is_task_entry(name) {
            break;
        }
        if is_interrupt_entry(name) {
            return Some(WakeContext::Interrupt(source.unwrap_or(Interrupt::Other)));
        }
        source = source.or_else(|| interrupt_of(name));
    }
    if !seen {
        return None;
    }
    Some(if signal { WakeContext::Signal } else { WakeContext::Task })
}

/// Below these functions the current task itself is at work, even if an interrupt led here: a fatal signal
/// is delivered on the way back from an interrupt.
fn is_task_entry(name: &str) -> bool {
    matches!(
        name,
        "do_exit" | "get_signal" | "do_group_exit" | "task_work_run" | "__schedule" | "schedule"
    ) || ["exit_to_user_mode", "syscall_exit", "do_syscall_", "el0_svc", "ret_from_fork"]
        .iter()
        .any(|p| name.starts_with(p))
        || ["irqentry_exit", "x64_sys_", "__x64_sys_", "__arm64_sys_"]
            .iter()
            .any(|p| name.starts_with(p))
}

/// Where interrupts enter the kernel, and where soft interrupts run on behalf of no task. A soft interrupt
/// that a task runs itself (loopback network) has none of these below it.
fn is_interrupt_entry(name: &str) -> bool {
    matches!(
        name,
        "__irq_exit_rcu"
            | "irq_exit_rcu"
            | "irq_exit"
            | "common_interrupt"
            | "__common_interrupt"
            | "run_ksoftirqd"
            | "do_idle"
            | "gic_handle_irq"
            | "el1_interrupt"
            | "el0_interrupt"
            | "do_interrupt_handler"
            | "asm_exc_nmi"
    ) || ["sysvec_", "__sysvec_", "asm_sysvec_", "el1h_64_irq", "el0t_64_irq"]
        .iter()
        .any(|p| name.starts_with(p))
}

/// Functions that send a signal to a task.
const SIGNALS: &[&str] = &[
    "complete_signal",
    "signal_wake_up_state",
    "zap_other_threads",
    "zap_process",
    "__send_signal",
    "__send_signal_locked",
    "send_signal_locked",
    "do_send_sig_info",
];

/// What kind of interrupt has this function on its stack, if that is known.
fn interrupt_of(name: &str) -> Option<Interrupt> {
    const TIMER: &[&str] = &[
        "hrtimer_",
        "__hrtimer_",
        "process_timeout",
        "call_timer_fn",
        "__run_timers",
        "run_timer_softirq",
        "timerfd_",
        "it_real_fn",
        "posix_timer_fn",
        "run_posix_cpu_timers",
        "timer_expire_remote",
    ];
    const DISK: &[&str] = &[
        "blk_",
        "bio_endio",
        "folio_end_",
        "end_page_",
        "end_buffer_",
        "end_bio_",
        "virtblk_",
        "nvme_",
        "scsi_",
        "ata_",
        "mmc_",
        "dm_",
        "iomap_",
        "mpage_",
        "wake_page_function",
    ];
    const NETWORK: &[&str] =
        &["napi_", "__napi_", "net_rx_", "virtnet_", "tcp_", "udp_", "ip_rcv", "sock_def_"];
    let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
    if any(TIMER) {
        Some(Interrupt::Timer)
    } else if any(DISK) {
        Some(Interrupt::Disk)
    } else if any(NETWORK) {
        Some(Interrupt::Network)
    } else {
        None
    }
}

/// What a task waits for without a kernel stack: judged by the system call and by what its descriptor
/// refers to.
pub(crate) fn wait_by_call(name: &str, object: Option<ObjectKind>) -> WaitsFor {
    let input = match object {
        Some(ObjectKind::Pipe) => WaitsFor::PipeData,
        Some(ObjectKind::Socket | ObjectKind::Datagrams) => WaitsFor::SocketData,
        Some(ObjectKind::Terminal) => WaitsFor::Terminal,
        Some(ObjectKind::File) => WaitsFor::Disk,
        _ => WaitsFor::Other,
    };
    match name {
        "read" | "readv" | "pread64" | "preadv" | "preadv2" => input,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => match input {
            WaitsFor::PipeData => WaitsFor::PipeRoom,
            WaitsFor::SocketData => WaitsFor::SocketRoom,
            other => other,
        },
        "recvfrom" | "recvmsg" | "recvmmsg" | "accept" | "accept4" | "connect" => {
            WaitsFor::SocketData
        }
        "sendto" | "sendmsg" | "sendmmsg" => WaitsFor::SocketRoom,
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait"
        | "epoll_pwait2" | "io_uring_enter" => WaitsFor::Poll,
        "nanosleep" | "clock_nanosleep" => WaitsFor::Sleep,
        "futex" | "futex_wait" | "futex_waitv" => WaitsFor::Futex,
        "wait4" | "waitid" => WaitsFor::Child,
        "clone" | "clone3" | "vfork" => WaitsFor::Vfork,
        "getdents64" | "getdents" | "open" | "openat" | "openat2" | "stat" | "fstat" | "lstat"
        | "newfstatat" | "statx" | "access" | "faccessat" | "faccessat2" | "readlink"
        | "readlinkat" | "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir"
        | "rmdir" | "truncate" | "ftruncate" | "fallocate" => WaitsFor::Disk,
        "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range"
        | "io_getevents" => WaitsFor::Disk,
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => WaitsFor::Signal,
        "execve" | "execveat" => WaitsFor::Disk,
        "exit" | "exit_group" => WaitsFor::Threads,
        "flock" | "fcntl" => WaitsFor::KernelLock,
        _ => WaitsFor::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(stack: &str) -> Option<WakeContext> {
        wake_context(stack.split_whitespace())
    }

    fn wait(stack: &str) -> Option<WaitsFor> {
        stack.split_whitespace().find_map(wait_of)
    }

    #[test]
    fn recorded_waits_are_kept() {
        for (stack, waits_for) in [
            ("__schedule schedule anon_pipe_read vfs_read ksys_read", WaitsFor::PipeData),
            ("__schedule schedule futex_do_wait __futex_wait futex_wait", WaitsFor::Futex),
            ("__schedule schedule io_schedule folio_wait_bit_common filemap_fault", WaitsFor::Disk),
            ("schedule schedule_timeout __wait_for_common kernel_clone", WaitsFor::Vfork),
            ("schedule schedule_hrtimeout_range_clock do_epoll_wait", WaitsFor::Poll),
            ("schedule schedule_timeout io_schedule_timeout submit_bio_wait", WaitsFor::Disk),
            ("schedule poll_schedule_timeout.constprop.0 do_sys_poll", WaitsFor::Poll),
            ("schedule schedule_timeout inet_csk_accept inet_accept", WaitsFor::SocketData),
            ("schedule rwsem_down_write_slowpath down_write_killable", WaitsFor::KernelLock),
            ("schedule do_nanosleep hrtimer_nanosleep common_nsleep", WaitsFor::Sleep),
        ] {
            assert_eq!(wait(stack), Some(waits_for), "{stack}");
        }
        assert_eq!(wait("__schedule schedule schedule_timeout kcompactd"), None);
    }

    #[test]
    fn a_pipes_mutex_is_a_kernel_lock() {
        assert_eq!(
            wait("__schedule schedule_preempt_disabled __mutex_lock.constprop.0 pipe_write"),
            Some(WaitsFor::KernelLock)
        );
    }

    #[test]
    fn the_call_chain_decides_about_interrupts() {
        let loopback = "try_to_wake_up __wake_up_common sock_def_readable tcp_data_queue \
             net_rx_action handle_softirqs do_softirq.part.0 __local_bh_enable_ip tcp_write_xmit \
             tcp_sendmsg __x64_sys_sendto do_syscall_64";
        assert_eq!(wake(loopback), Some(WakeContext::Task));
        let clock = "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt \
             __sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt pipe_write ksys_write";
        assert_eq!(wake(clock), Some(WakeContext::Interrupt(Interrupt::Timer)));
        let disk = "try_to_wake_up wake_page_function folio_wake_bit __read_end_io \
             blk_update_request blk_done_softirq handle_softirqs __irq_exit_rcu common_interrupt";
        assert_eq!(wake(disk), Some(WakeContext::Interrupt(Interrupt::Disk)));
        let packet = "try_to_wake_up sock_def_readable tcp_rcv_established net_rx_action \
             handle_softirqs __irq_exit_rcu sysvec_apic_timer_interrupt";
        assert_eq!(wake(packet), Some(WakeContext::Interrupt(Interrupt::Network)));
        assert_eq!(wake(""), None);
    }

    #[test]
    fn death_by_a_signal_after_an_interrupt_is_the_tasks_own_wake_up() {
        let dying = "try_to_wake_up __wake_up_sync_key do_notify_parent do_exit do_group_exit \
             get_signal arch_do_signal_or_restart sysvec_apic_timer_interrupt";
        assert_eq!(wake(dying), Some(WakeContext::Task));
        let kill = "try_to_wake_up complete_signal __send_signal_locked do_send_sig_info \
             __x64_sys_kill do_syscall_64";
        assert_eq!(wake(kill), Some(WakeContext::Signal));
    }
}
