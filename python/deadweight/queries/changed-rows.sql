-- Which commit changed which row of which workload?
-- $least = 0.05: by how much, as a share of the wall time before, at least
-- Commits are in order of their time, or where that is not known of their first run. It compares means: `deadweight history` decides whether a change is one.
WITH
known AS (
    SELECT run, workload, commit, wall_ns, CASE WHEN commit_time > 0 THEN commit_time ELSE time END AS made
    FROM runs
    WHERE error = '' AND commit <> ''
),
commits AS (
    SELECT
        workload, commit, count(*) AS n, avg(wall_ns) AS wall_ns,
        lag(commit) OVER (PARTITION BY workload ORDER BY min(made), commit) AS before
    FROM known
    GROUP BY workload, commit
),
names AS (
    SELECT DISTINCT k.workload AS workload, r.account AS account
    FROM rows AS r INNER JOIN known AS k ON r.run = k.run
    WHERE r.ledger = 'wall'
),
sums AS (
    SELECT k.workload AS workload, k.commit AS commit, r.account AS account, sum(r.ns) AS ns
    FROM rows AS r INNER JOIN known AS k ON r.run = k.run
    WHERE r.ledger = 'wall'
    GROUP BY k.workload, k.commit, r.account
),
means AS (
    SELECT
        c.workload AS workload, c.commit AS commit, c.before AS before, n.account AS account, c.n AS n,
        c.wall_ns AS wall_ns, coalesce(s.ns, 0) / c.n AS mean_ns
    FROM commits AS c
    INNER JOIN names AS n ON c.workload = n.workload
    LEFT JOIN sums AS s ON c.workload = s.workload AND c.commit = s.commit AND n.account = s.account
)
SELECT
    now.workload AS workload,
    now.account AS account,
    now.commit AS commit,
    old.commit AS commit_before,
    now.n AS runs,
    old.mean_ns AS before_ns,
    now.mean_ns AS now_ns,
    (now.mean_ns - old.mean_ns) / old.wall_ns AS change
FROM means AS now
INNER JOIN means AS old
    ON now.workload = old.workload AND now.account = old.account AND now.before = old.commit
WHERE abs(now.mean_ns - old.mean_ns) >= $least * old.wall_ns
ORDER BY abs(now.mean_ns - old.mean_ns) / old.wall_ns DESC, workload, account, commit;
