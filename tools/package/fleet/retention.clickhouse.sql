-- As often as you like, after roll-up.sql: deletes recordings that are older than 30 days and kept as history. They are gone from
-- the views with the first deletion; the server frees their room in the background (system.mutations).
CREATE TABLE IF NOT EXISTS expired (run Int64) ENGINE = ReplacingMergeTree ORDER BY run;
INSERT INTO expired SELECT run FROM runs
WHERE start_ns < toInt64(toUnixTimestamp(now()) - 30 * 86400) * 1000000000 AND run IN (SELECT run FROM run_history);
ALTER TABLE loads DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_meta DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_processes DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_threads DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_thread_waits DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_names DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_functions DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_lines DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_categories DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_endings DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_spans DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_counters DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_program_values DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_stacks DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_samples DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_thread_states DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_gpu_activities DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_allocations DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_windows DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_losses DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE all_runs DELETE WHERE run IN (SELECT run FROM expired);
ALTER TABLE batches DELETE WHERE run IN (SELECT run FROM expired);
