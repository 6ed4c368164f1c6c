-- Of what is kept, over weeks: the same on SQLite and ClickHouse. `week_ns` is the week's beginning (a Thursday), in ns since 1970.

-- Steps by week and host
SELECT run_start_ns - run_start_ns % 604800000000000 AS week_ns, host, COUNT(*) AS recordings, SUM(steps) AS all_steps,
       SUM(step_ns) / 1e6 / SUM(steps) AS mean_ms, MAX(longest_step_ns) / 1e6 AS longest_ms
FROM runs_kept WHERE steps > 0 GROUP BY week_ns, host ORDER BY week_ns, host;

-- Operators by week: what they cost in a step
SELECT week_ns, name, op_calls, op_ms, op_ms / week_steps AS ms_a_step
FROM (SELECT run_start_ns - run_start_ns % 604800000000000 AS week_ns, name, SUM(calls) AS op_calls, SUM(self_ns) / 1e6 AS op_ms
      FROM operators_kept WHERE run IN (SELECT run FROM runs_kept WHERE steps > 0) GROUP BY week_ns, name) o
JOIN (SELECT run_start_ns - run_start_ns % 604800000000000 AS week_ns, SUM(steps) AS week_steps
      FROM runs_kept WHERE steps > 0 GROUP BY week_ns) w USING (week_ns)
ORDER BY week_ns, op_ms DESC, name LIMIT 1000;

-- Versions: the mean of an operator in each build of its library or program, and since when it is there
SELECT name, module, build_id, MIN(run_start_ns) AS since_ns, COUNT(DISTINCT run) AS recordings, SUM(measured) AS calls_measured,
       SUM(mean_ns * measured) / SUM(measured) / 1e3 AS mean_us
FROM operators_kept WHERE measured > 0 AND build_id <> '' AND run IN (SELECT run FROM runs_kept)
GROUP BY name, module, build_id ORDER BY name, module, since_ns, build_id LIMIT 1000;

-- Regressions since a date (in ns): a mean that rose by a tenth or more
SELECT name, SUM(CASE WHEN run_start_ns < 1793491200000000000 THEN mean_ns * measured END)
             / SUM(CASE WHEN run_start_ns < 1793491200000000000 THEN measured END) / 1e3 AS before_us,
       SUM(CASE WHEN run_start_ns >= 1793491200000000000 THEN mean_ns * measured END)
       / SUM(CASE WHEN run_start_ns >= 1793491200000000000 THEN measured END) / 1e3 AS since_us
FROM operators_kept WHERE measured > 0 AND run IN (SELECT run FROM runs_kept)
GROUP BY name HAVING since_us > 1.1 * before_us ORDER BY since_us / before_us DESC, name LIMIT 100;

-- Hosts whose steps take a tenth longer than all hosts' of the week
SELECT week_ns, host, host_ms, all_ms, host_ms / all_ms AS times
FROM (SELECT run_start_ns - run_start_ns % 604800000000000 AS week_ns, host, SUM(step_ns) / 1e6 / SUM(steps) AS host_ms
      FROM runs_kept WHERE steps > 0 GROUP BY week_ns, host) h
JOIN (SELECT run_start_ns - run_start_ns % 604800000000000 AS week_ns, SUM(step_ns) / 1e6 / SUM(steps) AS all_ms
      FROM runs_kept WHERE steps > 0 GROUP BY week_ns) w USING (week_ns)
WHERE host_ms > 1.1 * all_ms ORDER BY week_ns, times DESC, host LIMIT 100;

-- Before any conclusion: recordings with losses, or without an end
SELECT run, host, run_start_ns, events_lost, complete FROM runs_kept
WHERE events_lost > 0 OR complete = 0 ORDER BY run_start_ns, run;
