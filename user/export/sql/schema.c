/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/schema.h"

#include <stddef.h>

const struct xsp_sql_table_text xsp_sql_tables[XSP_SQL_TABLES] = {
	[XSP_SQL_META] = {"meta", "key TEXT NOT NULL, value TEXT NOT NULL", 3},
	[XSP_SQL_RUNS] = {"runs",
			  "start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, recorded_ns "
			  "INTEGER NOT NULL, host TEXT, complete INTEGER NOT NULL",
			  6},
	[XSP_SQL_PROCESSES] = {"processes",
			       "process_id INTEGER NOT NULL, pid INTEGER NOT NULL, parent_id "
			       "INTEGER, name TEXT NOT NULL, command_line TEXT, program TEXT",
			       7},
	[XSP_SQL_THREADS] = {"threads",
			     "thread_id INTEGER NOT NULL, process_id INTEGER NOT NULL, pid INTEGER "
			     "NOT NULL, tid INTEGER NOT NULL, name TEXT NOT NULL, ended INTEGER, "
			     "time_ns INTEGER, running_ns INTEGER, runnable_ns INTEGER",
			     10},
	[XSP_SQL_THREAD_WAITS] = {"thread_waits",
				  "thread_id INTEGER NOT NULL, reason TEXT NOT NULL, waits INTEGER "
				  "NOT NULL, blocked_ns INTEGER NOT NULL",
				  5},
	[XSP_SQL_NAMES] = {"names", "name_id INTEGER NOT NULL, name TEXT NOT NULL", 3},
	[XSP_SQL_FUNCTIONS] = {"functions",
			       "function_id INTEGER NOT NULL, name_id INTEGER NOT NULL, provider "
			       "TEXT NOT NULL, module TEXT, symbol TEXT, address INTEGER, "
			       "lost_entries INTEGER NOT NULL, lost_exits INTEGER NOT NULL, "
			       "let_go_ns INTEGER",
			       10},
	[XSP_SQL_LINES] = {"lines",
			   "line_id INTEGER NOT NULL, file TEXT NOT NULL, line INTEGER, function "
			   "TEXT NOT NULL",
			   5},
	[XSP_SQL_CATEGORIES] = {"categories", "category INTEGER NOT NULL, name TEXT NOT NULL", 3},
	[XSP_SQL_ENDINGS] = {"endings", "ending INTEGER NOT NULL, name TEXT NOT NULL", 3},
	[XSP_SQL_SPANS] = {"spans",
			   "id INTEGER, parent_id INTEGER, thread_id INTEGER NOT NULL, fiber "
			   "INTEGER NOT NULL, category INTEGER NOT NULL, name_id INTEGER NOT NULL, "
			   "function_id INTEGER, stack_id INTEGER, line_id INTEGER, depth INTEGER, "
			   "recursive INTEGER NOT NULL, ending INTEGER NOT NULL, start_ns INTEGER "
			   "NOT NULL, end_ns INTEGER NOT NULL, self_ns INTEGER, cpu_ns INTEGER, "
			   "self_cpu_ns INTEGER, probe_ns INTEGER, correlation INTEGER, "
			   "operator_id INTEGER, cut INTEGER NOT NULL, duration_ns INTEGER "
			   "GENERATED ALWAYS AS (CASE WHEN ending < 3 THEN end_ns - start_ns END) "
			   "VIRTUAL",
			   22},
	[XSP_SQL_COUNTERS] = {"counters",
			      "span_id INTEGER NOT NULL, name_id INTEGER NOT NULL, value INTEGER "
			      "NOT NULL",
			      4},
	[XSP_SQL_STACKS] = {"stacks",
			    "stack_id INTEGER NOT NULL, parent_id INTEGER, name_id INTEGER NOT "
			    "NULL, depth INTEGER NOT NULL",
			    5},
	[XSP_SQL_SAMPLES] = {"samples",
			     "thread_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, weight_ns "
			     "INTEGER NOT NULL, stack_id INTEGER, name_id INTEGER NOT NULL, "
			     "file_id INTEGER, line_name_id INTEGER, kernel INTEGER NOT NULL",
			     9},
	[XSP_SQL_STATES] =
		{"thread_states",
		 "thread_id INTEGER NOT NULL, state TEXT NOT NULL, start_ns INTEGER NOT "
		 "NULL, end_ns INTEGER NOT NULL, finished INTEGER NOT NULL, short_waits_ns "
		 "INTEGER, reason TEXT, system_call TEXT, argument INTEGER, holder_id "
		 "INTEGER, waker_id INTEGER, interrupt INTEGER, stack_id INTEGER, "
		 "inside_id INTEGER, place_id INTEGER",
		 16},
	[XSP_SQL_GPU] =
		{"gpu_activities",
		 "category TEXT NOT NULL, name_id INTEGER NOT NULL, process_id INTEGER NOT "
		 "NULL, device INTEGER, context INTEGER, stream INTEGER, start_ns INTEGER "
		 "NOT NULL, end_ns INTEGER NOT NULL, correlation INTEGER, operator_id "
		 "INTEGER, bytes INTEGER, queued_ns INTEGER, grid_x INTEGER, grid_y INTEGER, "
		 "grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, "
		 "registers INTEGER, shared_bytes INTEGER, graph INTEGER",
		 22},
	[XSP_SQL_MEMORY] =
		{"allocations",
		 "time_ns INTEGER NOT NULL, process_id INTEGER NOT NULL, thread_id "
		 "INTEGER NOT NULL, device INTEGER, pool TEXT NOT NULL, address "
		 "INTEGER NOT NULL, bytes INTEGER NOT NULL, total_bytes INTEGER NOT NULL, "
		 "operator_id INTEGER",
		 10},
	[XSP_SQL_WINDOWS] = {"windows", "start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL", 3},
	[XSP_SQL_LOSSES] = {"losses",
			    "part TEXT NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL", 4},
};

/* Of spans: what is summed up is the same whatever it is grouped by. Of those that a part cuts only what lies in it is
 * known: it is in sums. */
#define WHOLE_NS "CASE WHEN cut = 0 THEN duration_ns END"
#define CALLS_OF                                                                                   \
	"COUNT(*) AS calls, COUNT(" WHOLE_NS ") AS measured, SUM(CASE WHEN recursive = 0 THEN "    \
	"duration_ns END) AS total_ns, SUM(self_ns) AS self_ns, MIN(" WHOLE_NS ") AS min_ns, "     \
	"AVG(" WHOLE_NS ") AS mean_ns, MAX(" WHOLE_NS ") AS max_ns, CASE WHEN SUM(CASE WHEN "      \
	"recursive = 0 AND duration_ns IS NOT NULL AND cpu_ns IS NULL THEN 1 ELSE 0 END) = 0 "     \
	"THEN SUM(CASE WHEN recursive = 0 AND duration_ns IS NOT NULL THEN cpu_ns END) END AS "    \
	"cpu_ns"

const char *const xsp_sql_views[] = {
	"CREATE INDEX spans_by_id ON spans (id)",
	"CREATE INDEX spans_by_parent ON spans (parent_id)",
	"CREATE INDEX names_by_id ON names (name_id)",
	"CREATE INDEX stacks_by_id ON stacks (stack_id)",
	"CREATE VIEW calls AS SELECT s.run, s.id, s.parent_id, t.pid, t.tid, t.name AS thread, "
	"s.fiber, c.name AS category, n.name, f.module, f.provider, l.file, l.line, l.function AS "
	"line_function, s.depth, e.name AS ending, s.start_ns, s.end_ns, s.duration_ns, s.self_ns, "
	"s.cpu_ns, s.self_cpu_ns, s.stack_id, s.correlation, s.operator_id, s.cut FROM spans s "
	"JOIN names n ON n.run = s.run AND n.name_id = s.name_id "
	"JOIN categories c ON c.run = s.run AND c.category = s.category "
	"JOIN endings e ON e.run = s.run AND e.ending = s.ending "
	"LEFT JOIN threads t ON t.run = s.run AND t.thread_id = s.thread_id "
	"LEFT JOIN functions f ON f.run = s.run AND f.function_id = s.function_id "
	"LEFT JOIN lines l ON l.run = s.run AND l.line_id = s.line_id",
	"CREATE VIEW operators AS SELECT g.run, n.name, g.calls, g.measured, g.total_ns, "
	"g.self_ns, "
	"g.cpu_ns, g.min_ns, g.mean_ns, g.max_ns FROM (SELECT run, name_id, " CALLS_OF
	" FROM spans GROUP BY run, name_id) g JOIN names n ON n.run = g.run AND n.name_id = "
	"g.name_id",
	"CREATE VIEW operators_by_thread AS SELECT g.run, t.pid, t.tid, t.name AS thread, n.name, "
	"g.calls, g.measured, g.total_ns, g.self_ns, g.cpu_ns, g.min_ns, g.mean_ns, g.max_ns FROM "
	"(SELECT run, thread_id, name_id, " CALLS_OF
	" FROM spans GROUP BY run, thread_id, name_id) g JOIN names n ON n.run = g.run AND "
	"n.name_id = g.name_id LEFT JOIN threads t ON t.run = g.run AND t.thread_id = g.thread_id",
	"CREATE VIEW operators_by_line AS SELECT g.run, l.file, l.line, l.function, n.name, "
	"g.calls, "
	"g.measured, g.total_ns, g.self_ns, g.cpu_ns, g.min_ns, g.mean_ns, g.max_ns FROM (SELECT "
	"run, line_id, name_id, " CALLS_OF
	" FROM spans WHERE line_id IS NOT NULL GROUP BY run, line_id, name_id) g JOIN names n ON "
	"n.run = g.run AND n.name_id = g.name_id JOIN lines l ON l.run = g.run AND l.line_id = "
	"g.line_id",
	"CREATE VIEW kernels AS SELECT g.run, n.name, g.calls, g.total_ns, g.min_ns, g.mean_ns, "
	"g.max_ns FROM (SELECT run, name_id, COUNT(*) AS calls, SUM(end_ns - start_ns) AS "
	"total_ns, "
	"MIN(end_ns - start_ns) AS min_ns, AVG(end_ns - start_ns) AS mean_ns, MAX(end_ns - "
	"start_ns) AS max_ns FROM gpu_activities WHERE category = 'kernel' GROUP BY run, name_id) "
	"g "
	"JOIN names n ON n.run = g.run AND n.name_id = g.name_id",
	NULL};
