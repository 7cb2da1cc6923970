//! The tasks that were resumed most recently: they stop next.
//!
//! Does not wait; see `requests::wait_among_many`.

/// How many are remembered. Asking for one task takes 0.25 µs, as long as the kernel takes to look
/// through ten tasks in a wait for any.
const REMEMBERED: usize = 16;

/// The tasks that were resumed most recently, each once, the latest last.
#[derive(Default)]
pub(super) struct RecentlyResumed {
    tasks: [u32; REMEMBERED],
    queries: usize,
}

impl RecentlyResumed {
    /// This task was just resumed.
    pub(super) fn add(&mut self, task: u32) {
        let at = self.tasks.iter().position(|known| *known == task).unwrap_or_default();
        self.tasks[at..].rotate_left(1);
        self.tasks[REMEMBERED - 1] = task;
    }

    /// The tasks to query first. Now and then none: then all tasks have a chance.
    pub(super) fn likely(&mut self) -> impl Iterator<Item = u32> {
        self.queries += 1;
        let count = if self.queries.is_multiple_of(REMEMBERED) { 0 } else { REMEMBERED };
        self.tasks.iter().rev().take(count).copied().filter(|task| *task > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_come_first_and_all_tasks_now_and_then() {
        let mut resumed = RecentlyResumed::default();
        for task in (1..=20).chain([7, 19]) {
            resumed.add(task);
        }
        let likely: Vec<u32> = resumed.likely().collect();
        assert_eq!(likely, [19, 7, 20, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 6, 5]);
        let timeslices: Vec<bool> =
            (0..REMEMBERED).map(|_| resumed.likely().next().is_none()).collect();
        assert_eq!(timeslices.iter().filter(|all| **all).count(), 1);
    }
}
