-- As often as you like: adds the runs that are not kept yet. One that was interrupted is done again, and nothing is there twice.
INSERT INTO operator_history (run, host, run_start_ns, name, module, build_id, calls, measured, self_ns, min_ns, mean_ns, max_ns)
SELECT run, COALESCE(MAX(host), '') AS its_host, MAX(run_start_ns) AS its_start, name, COALESCE(module, '') AS in_module,
       COALESCE(build_id, '') AS of_build, SUM(calls) AS all_calls, SUM(measured) AS all_measured, SUM(self_ns) AS all_self,
       MIN(min_ns) AS least, SUM(mean_ns * measured) / NULLIF(SUM(measured), 0) AS mean, MAX(max_ns) AS most
FROM operators_by_module WHERE name NOT LIKE 'ProfilerStep#%' AND run NOT IN (SELECT run FROM run_history)
GROUP BY run, name, in_module, of_build;

-- The run counts from here on. Steps are ProfilerStep#N.
INSERT INTO run_history (run, host, run_start_ns, recorded_ns, complete, events_lost, steps, step_ns, longest_step_ns)
SELECT run, COALESCE(host, '') AS its_host, start_ns, recorded_ns, complete, events_lost, COALESCE(step_count, 0) AS its_steps,
       step_sum, step_most
FROM (SELECT run, host, start_ns, recorded_ns, complete, events_lost
      FROM (SELECT run, host, start_ns, recorded_ns, complete FROM runs
            WHERE run IN (SELECT run FROM operator_history) AND run NOT IN (SELECT run FROM run_history)) r
      LEFT JOIN (SELECT run, SUM(value) AS events_lost FROM losses WHERE part = 'losses' AND name LIKE 'lost_%' GROUP BY run) l
      USING (run)) a
LEFT JOIN (SELECT run, COUNT(duration_ns) AS step_count, SUM(duration_ns) AS step_sum, MAX(duration_ns) AS step_most
           FROM (SELECT run, name_id, duration_ns FROM spans WHERE cut = 0 AND duration_ns IS NOT NULL
                 AND name_id IN (SELECT name_id FROM names WHERE name LIKE 'ProfilerStep#%')) s
           JOIN (SELECT run, name_id FROM names WHERE name LIKE 'ProfilerStep#%') n USING (run, name_id) GROUP BY run) b
USING (run);
