-- Once for a database: what stays of recordings when their spans are deleted. See docs/sql.md.
CREATE TABLE IF NOT EXISTS operator_history (
  run INTEGER, host TEXT, run_start_ns INTEGER, name TEXT, module TEXT, build_id TEXT, calls INTEGER, measured INTEGER,
  self_ns INTEGER, min_ns INTEGER, mean_ns REAL, max_ns INTEGER,
  PRIMARY KEY (run, name, module, build_id) ON CONFLICT REPLACE) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_history (
  run INTEGER PRIMARY KEY ON CONFLICT REPLACE, host TEXT, run_start_ns INTEGER, recorded_ns INTEGER, complete INTEGER,
  events_lost INTEGER, steps INTEGER, step_ns INTEGER, longest_step_ns INTEGER);
CREATE VIEW IF NOT EXISTS operators_kept AS SELECT * FROM operator_history;
CREATE VIEW IF NOT EXISTS runs_kept AS SELECT * FROM run_history;
