-- Once for a database: what stays of recordings when their spans are deleted. See docs/sql.md.
CREATE TABLE IF NOT EXISTS operator_history (
  run Int64, host String, run_start_ns Int64, name String, module String, build_id String, calls UInt64, measured UInt64,
  self_ns Nullable(Int64), min_ns Nullable(Int64), mean_ns Nullable(Float64), max_ns Nullable(Int64))
  ENGINE = ReplacingMergeTree ORDER BY (run, name, module, build_id);
CREATE TABLE IF NOT EXISTS run_history (
  run Int64, host String, run_start_ns Int64, recorded_ns Int64, complete UInt8,
  events_lost Nullable(Int64), steps UInt64, step_ns Nullable(Int64), longest_step_ns Nullable(Int64))
  ENGINE = ReplacingMergeTree ORDER BY run;
CREATE VIEW IF NOT EXISTS operators_kept AS SELECT * FROM operator_history FINAL;
CREATE VIEW IF NOT EXISTS runs_kept AS SELECT * FROM run_history FINAL;
