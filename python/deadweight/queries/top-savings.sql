-- Which places would save the most time, added over all runs?
-- $limit = 20: how many places
-- A place is a line of a source file, or where that is not known a function. Candidates promise nothing and do not count.
SELECT
    class,
    process,
    function,
    file,
    line,
    count(*) AS found_in,
    sum(saving_ns) / 1e9 AS saving_s,
    avg(saving) AS mean_saving,
    max(saving) AS largest_saving
FROM findings
WHERE how NOT IN ('candidate', 'withdrawn')
GROUP BY class, process, function, file, line
ORDER BY saving_s DESC, class, process, function, file, line
LIMIT $limit;
