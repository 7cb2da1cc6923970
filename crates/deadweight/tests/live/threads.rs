//! Truths about threads and connections: threads for small tasks, uneven parts, loops that only wait, messages in parts.
//! Each program has one planted cost; the bounds are the measured saving of removing it, widened.

use crate::truth::Truth;

const LINE: &str = "the line to name";

#[test]
fn a_thread_per_task_is_thread_churn() {
    Truth::of("@thread_per_task")
        .first_finding(&["thread-churn"])
        .found_at("thread-churn", "main", "thread_per_task.c", LINE)
        .saves("thread-churn", 0.5..=1.0)
        .never(&["imbalance", "busy-waiting", "repeated-syscalls"])
        .check();
}

#[test]
fn halves_by_number_are_imbalance() {
    Truth::of("@uneven_halves")
        .first_finding(&["imbalance"])
        .expect("it names the start of the threads or their work".into(), |report| {
            let sites = report.findings.iter().flat_map(|f| &f.sites);
            sites
                .map(|s| (&*s.function, s.line))
                .any(|at| matches!(at, ("work", 15) | ("main", 26)))
        })
        .saves("imbalance", 0.25..=0.5)
        .never(&["thread-churn", "busy-waiting"])
        .check();
}

#[test]
fn uneven_steps_of_a_team_with_the_main_thread_are_imbalance() {
    Truth::of("@uneven_phases")
        .first_finding(&["imbalance"])
        .found_at("imbalance", "sweep", "uneven_phases.c", LINE)
        .saves("imbalance", 0.2..=0.5)
        .never(&["thread-churn", "busy-waiting", "wait-lock"])
        .check();
}

#[test]
fn a_parallel_loop_per_short_row_is_parallel_overhead_and_one_for_all_rows_is_not() {
    Truth::of("@short_rows")
        .first_finding(&["parallel-overhead"])
        .found_at("parallel-overhead", "brightest", "short_rows.c", LINE)
        .saves("parallel-overhead", 0.3..=1.0)
        .never(&["imbalance", "thread-churn"])
        .check();
    Truth::of("@short_rows whole").never(&["parallel-overhead", "imbalance"]).check();
}

#[test]
fn a_number_per_message_is_parallel_overhead_and_batches_are_not() {
    Truth::of("@number_per_message")
        .first_finding(&["parallel-overhead"])
        .found_at("parallel-overhead", "one_by_one", "number_per_message.rs", LINE)
        .saves("parallel-overhead", 0.3..=1.0)
        .never(&["wait-lock", "busy-waiting", "imbalance"])
        .check();
    Truth::of("@number_per_message batches").never(&["parallel-overhead", "wait-lock"]).check();
}

#[test]
fn a_number_per_turn_of_a_queue_is_parallel_overhead_and_batches_are_not() {
    Truth::of("@number_per_queue")
        .first_finding(&["parallel-overhead"])
        .found_at("parallel-overhead", "Queue<unsigned long>::push", "number_per_queue.cpp", LINE)
        .saves("parallel-overhead", 0.3..=1.0)
        .never(&["busy-waiting", "imbalance"])
        .check();
    Truth::of("@number_per_queue batches").never(&["parallel-overhead", "wait-lock"]).check();
}

#[test]
fn a_line_per_turn_between_processes_is_parallel_overhead_and_batches_are_not() {
    Truth::of("@line_per_turn 20000 1")
        .first_finding(&["parallel-overhead"])
        .found_at("parallel-overhead", "main", "line_per_turn.c", "the piece to name")
        .saves("parallel-overhead", 0.3..=1.0)
        .check();
    Truth::of("@line_per_turn 400000 500").never(&["parallel-overhead"]).check();
}

#[test]
fn a_value_per_channel_operation_in_go_is_parallel_overhead_and_batches_are_not() {
    Truth::of("@value_per_channel")
        .first_finding(&["parallel-overhead"])
        .found_at("parallel-overhead", "main.oneByOne", "value_per_channel.go", LINE)
        .saves("parallel-overhead", 0.3..=1.0)
        .never(&["wait-lock", "busy-waiting", "imbalance"])
        .check();
    Truth::of("@value_per_channel batches").never(&["parallel-overhead", "wait-lock"]).check();
}

#[test]
fn a_loop_that_reads_a_counter_is_busy_waiting() {
    Truth::of("@spins")
        .first_finding(&["busy-waiting"])
        .found_at("busy-waiting", "main", "spins.c", LINE)
        .saves("busy-waiting", 0.1..=0.6)
        .never(&["thread-churn", "imbalance"])
        .check();
}

#[test]
fn a_connection_for_each_question_is_network_turns_and_kept_ones_are_not() {
    Truth::of("@connects_again")
        .first_finding(&["network-turns"])
        .found_at("network-turns", "open_connection", "connects_again.c", LINE)
        .saves("network-turns", 0.3..=1.0)
        .check();
    for way in ["@connects_again kept", "@connects_again pool"] {
        Truth::of(way).never(&["network-turns"]).check();
    }
}

#[test]
fn messages_in_two_writes_are_network_turns() {
    Truth::of("@sent_in_parts")
        .first_finding(&["network-turns"])
        .found_at("network-turns", "main", "sent_in_parts.c", LINE)
        .saves("network-turns", 0.8..=1.0)
        .never(&["wait-input", "thread-churn"])
        .check();
}
