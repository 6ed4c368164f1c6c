-- As often as you like, after roll-up.sql: deletes recordings that are older than 30 days and kept as history.
BEGIN;
CREATE TABLE IF NOT EXISTS expired (run INTEGER PRIMARY KEY ON CONFLICT REPLACE);
INSERT INTO expired SELECT run FROM runs
WHERE start_ns < CAST(strftime('%s', 'now', '-30 days') AS INTEGER) * 1000000000 AND run IN (SELECT run FROM run_history);
DELETE FROM meta WHERE run IN (SELECT run FROM expired);
DELETE FROM processes WHERE run IN (SELECT run FROM expired);
DELETE FROM threads WHERE run IN (SELECT run FROM expired);
DELETE FROM thread_waits WHERE run IN (SELECT run FROM expired);
DELETE FROM names WHERE run IN (SELECT run FROM expired);
DELETE FROM functions WHERE run IN (SELECT run FROM expired);
DELETE FROM lines WHERE run IN (SELECT run FROM expired);
DELETE FROM categories WHERE run IN (SELECT run FROM expired);
DELETE FROM endings WHERE run IN (SELECT run FROM expired);
DELETE FROM spans WHERE run IN (SELECT run FROM expired);
DELETE FROM counters WHERE run IN (SELECT run FROM expired);
DELETE FROM program_values WHERE run IN (SELECT run FROM expired);
DELETE FROM stacks WHERE run IN (SELECT run FROM expired);
DELETE FROM samples WHERE run IN (SELECT run FROM expired);
DELETE FROM thread_states WHERE run IN (SELECT run FROM expired);
DELETE FROM gpu_activities WHERE run IN (SELECT run FROM expired);
DELETE FROM allocations WHERE run IN (SELECT run FROM expired);
DELETE FROM windows WHERE run IN (SELECT run FROM expired);
DELETE FROM losses WHERE run IN (SELECT run FROM expired);
DELETE FROM runs WHERE run IN (SELECT run FROM expired);
COMMIT;
VACUUM;
