-- Which runs have much time that nothing explains, or that was not recorded?
-- $least = 0.05: as a share of the wall time, at least
SELECT run, workload, source, rung, deadweight, wall_ns, unexplained, lost
FROM runs
WHERE error = '' AND unexplained >= $least
ORDER BY unexplained DESC, run;
