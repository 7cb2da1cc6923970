//! The busy tasks of programs that serve, and programs that do not.

use crate::path::tests::{check, read};
use expect_test::expect;

/// A master that waits for a signal, and a worker that answers two requests.
const PREFORK: &str = "attached
    cpus 2
    task 1 master
         0 cpu0 on
        10 fork 2
        20 off blocked rt_sigsuspend 0 : sigsuspend
    task 2 worker
        15 cpu1 on
       100 off blocked epoll_wait 4 : ep_poll
       400 cpu1 on woken-by 9 : ep_poll_callback < sock_def_readable
       500 off blocked epoll_wait 4 : ep_poll
       700 cpu1 on woken-by 9 : ep_poll_callback < sock_def_readable
       900 sample work
       1000 off blocked epoll_wait 4 : ep_poll
    task 9 client outside
         0 on";

#[test]
fn the_path_goes_through_the_worker_and_not_through_its_master() {
    check(
        PREFORK,
        &expect![[r#"
            0..20 master: user
            20..100 worker: user
            100..400 worker: waits for Poll, by client
            400..500 worker: user
            500..700 worker: waits for Poll, by client
            700..1000 worker: user
        "#]],
    );
}

#[test]
fn a_wait_for_the_disk_is_no_idle_time() {
    let disk = PREFORK.replacen("epoll_wait 4 : ep_poll", "fdatasync 5 : folio_wait_bit", 1);
    let disk = disk.replacen("9 : ep_poll_callback < sock_def_readable", "interrupt", 1);
    let idle = |text: &str| {
        let rows = crate::cost::tests::rows(text, 9);
        rows.lines().find(|row| row.starts_with("idle ")).map(str::to_owned)
    };
    let waits = Some("idle 500 waiting for work from client".to_owned());
    assert_eq!(
        (idle(PREFORK), idle(&disk)),
        (waits, Some("idle 200 waiting for work from client".into()))
    );
}

/// A program that waits for a connection until `end`.
fn listener(call: &str, end: &str) -> String {
    format!(
        "task 1 server
         0 on
        10 syscall {call}
        20 back 4
       100 off blocked epoll_wait 4 : ep_poll
       900 on woken-by {end}
      1000 exit
      1010 off dead
    task 9 sh outside
         0 on"
    )
}

const KILL: &str = "9 : complete_signal < do_send_sig_info < __x64_sys_kill";

#[test]
fn what_takes_connections_until_a_signal_serves() {
    let serves = |text: &str| read(text).path.subject.service.is_some();
    assert!(serves(&listener("accept4 3", KILL)));
    assert!(!serves(&listener("openat 3", KILL)), "it takes no connections");
    assert!(!serves(&listener("accept4 3", "9 : ep_poll_callback")), "it ended by itself");
}
