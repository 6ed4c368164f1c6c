-- Adds another file's runs to a database: sqlite3 fleet.db "ATTACH 'run.db' AS other" ".read add.sqlite.sql". A copy of the first
-- file is the database to begin with. Runs that are there already are left as they are.
.bail on
BEGIN;
CREATE TEMP TABLE added AS SELECT run FROM other.runs WHERE run NOT IN (SELECT run FROM main.runs);
INSERT INTO main.meta SELECT * FROM other.meta WHERE run IN (SELECT run FROM added);
INSERT INTO main.runs SELECT * FROM other.runs WHERE run IN (SELECT run FROM added);
INSERT INTO main.processes SELECT * FROM other.processes WHERE run IN (SELECT run FROM added);
INSERT INTO main.threads SELECT * FROM other.threads WHERE run IN (SELECT run FROM added);
INSERT INTO main.thread_waits SELECT * FROM other.thread_waits WHERE run IN (SELECT run FROM added);
INSERT INTO main.names SELECT * FROM other.names WHERE run IN (SELECT run FROM added);
INSERT INTO main.functions SELECT * FROM other.functions WHERE run IN (SELECT run FROM added);
INSERT INTO main.lines SELECT * FROM other.lines WHERE run IN (SELECT run FROM added);
INSERT INTO main.categories SELECT * FROM other.categories WHERE run IN (SELECT run FROM added);
INSERT INTO main.endings SELECT * FROM other.endings WHERE run IN (SELECT run FROM added);
INSERT INTO main.spans SELECT run, id, parent_id, thread_id, fiber, category, name_id, function_id, stack_id, line_id, depth, recursive,
       ending, start_ns, end_ns, self_ns, cpu_ns, self_cpu_ns, probe_ns, correlation, operator_id, cut
FROM other.spans WHERE run IN (SELECT run FROM added);
INSERT INTO main.counters SELECT * FROM other.counters WHERE run IN (SELECT run FROM added);
INSERT INTO main.program_values SELECT * FROM other.program_values WHERE run IN (SELECT run FROM added);
INSERT INTO main.stacks SELECT * FROM other.stacks WHERE run IN (SELECT run FROM added);
INSERT INTO main.samples SELECT * FROM other.samples WHERE run IN (SELECT run FROM added);
INSERT INTO main.thread_states SELECT * FROM other.thread_states WHERE run IN (SELECT run FROM added);
INSERT INTO main.gpu_activities SELECT * FROM other.gpu_activities WHERE run IN (SELECT run FROM added);
INSERT INTO main.allocations SELECT * FROM other.allocations WHERE run IN (SELECT run FROM added);
INSERT INTO main.windows SELECT * FROM other.windows WHERE run IN (SELECT run FROM added);
INSERT INTO main.losses SELECT * FROM other.losses WHERE run IN (SELECT run FROM added);
DROP TABLE added;
COMMIT;
