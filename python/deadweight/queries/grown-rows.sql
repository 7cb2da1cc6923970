-- Which rows of which workload take longer than in the week before?
-- $least_ns = 1000000: by how many nanoseconds per run, at least
-- A run without a row counts as 0 ns of it. Weeks begin on Monday (UTC); `week` is its first second since 1970.
WITH
dated AS (
    SELECT run, workload, CAST(floor((time + 259200) / 604800) * 604800 - 259200 AS BIGINT) AS week
    FROM runs
    WHERE error = ''
),
weeks AS (
    SELECT workload, week, count(*) AS n, lag(week) OVER (PARTITION BY workload ORDER BY week) AS before
    FROM dated
    GROUP BY workload, week
),
names AS (
    SELECT DISTINCT d.workload AS workload, r.account AS account
    FROM rows AS r INNER JOIN dated AS d ON r.run = d.run
    WHERE r.ledger = 'wall'
),
sums AS (
    SELECT d.workload AS workload, d.week AS week, r.account AS account, sum(r.ns) AS ns
    FROM rows AS r INNER JOIN dated AS d ON r.run = d.run
    WHERE r.ledger = 'wall'
    GROUP BY d.workload, d.week, r.account
),
means AS (
    SELECT
        w.workload AS workload, n.account AS account, w.week AS week, w.before AS before, w.n AS n,
        coalesce(s.ns, 0) / w.n AS mean_ns
    FROM weeks AS w
    INNER JOIN names AS n ON w.workload = n.workload
    LEFT JOIN sums AS s ON w.workload = s.workload AND w.week = s.week AND n.account = s.account
)
SELECT
    now.workload AS workload,
    now.account AS account,
    now.week AS week,
    now.n AS runs,
    old.n AS runs_before,
    old.mean_ns AS before_ns,
    now.mean_ns AS now_ns,
    now.mean_ns - old.mean_ns AS grown_ns
FROM means AS now
INNER JOIN means AS old
    ON now.workload = old.workload AND now.account = old.account AND now.before = old.week
WHERE now.mean_ns - old.mean_ns >= $least_ns
ORDER BY grown_ns DESC, workload, account, week;
