-- Which hidden costs does each team have, in how many of its runs, and what would removing them save?
-- The team is the label `team` (a part `team=NAME` of a recording's path).
WITH
teams AS (
    SELECT team, count(*) AS runs FROM runs WHERE error = '' GROUP BY team
),
found AS (
    SELECT r.team AS team, f.class AS class, count(DISTINCT f.run) AS runs, sum(f.saving_ns) AS saving_ns
    FROM findings AS f INNER JOIN runs AS r ON f.run = r.run
    WHERE f.how <> 'withdrawn'
    GROUP BY r.team, f.class
)
SELECT
    t.team AS team,
    f.class AS class,
    f.runs AS runs,
    f.runs * 1.0 / t.runs AS share_of_runs,
    f.saving_ns / 1e9 AS saving_s
FROM found AS f INNER JOIN teams AS t ON f.team = t.team
ORDER BY team, saving_s DESC, class;
