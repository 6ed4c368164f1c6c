/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/schema.h"

#include <stddef.h>

#define INTEGER XSP_SQL_I64, false
#define NUMBER XSP_SQL_U32, false
#define SMALL XSP_SQL_U8, false
#define TEXT XSP_SQL_STRING, false
#define INTEGER_OR_NULL XSP_SQL_I64, true
#define NUMBER_OR_NULL XSP_SQL_U32, true
#define REAL_OR_NULL XSP_SQL_F64, true
#define SMALL_OR_NULL XSP_SQL_U8, true
#define TEXT_OR_NULL XSP_SQL_STRING, true
/* A column without a name ends them. */
#define COLUMNS(...) ((const struct xsp_sql_column[]){__VA_ARGS__, {NULL, INTEGER}})

const struct xsp_sql_table_text xsp_sql_tables[XSP_SQL_TABLES] = {
	[XSP_SQL_META] = {"meta", COLUMNS({"key", TEXT}, {"value", TEXT}), "key"},
	[XSP_SQL_RUNS] = {"runs",
			  COLUMNS({"start_ns", INTEGER}, {"duration_ns", INTEGER},
				  {"recorded_ns", INTEGER}, {"host", TEXT_OR_NULL},
				  {"complete", SMALL}),
			  "start_ns"},
	[XSP_SQL_PROCESSES] = {"processes",
			       COLUMNS({"process_id", NUMBER}, {"pid", NUMBER},
				       {"parent_id", NUMBER_OR_NULL}, {"name", TEXT},
				       {"command_line", TEXT_OR_NULL}, {"program", TEXT_OR_NULL},
				       {"job", TEXT_OR_NULL}, {"rank", NUMBER_OR_NULL}),
			       "process_id"},
	[XSP_SQL_THREADS] = {"threads",
			     COLUMNS({"thread_id", NUMBER}, {"process_id", NUMBER}, {"pid", NUMBER},
				     {"tid", NUMBER}, {"name", TEXT}, {"ended", SMALL_OR_NULL},
				     {"time_ns", INTEGER_OR_NULL}, {"running_ns", INTEGER_OR_NULL},
				     {"runnable_ns", INTEGER_OR_NULL},
				     {"minor_faults", INTEGER_OR_NULL},
				     {"major_faults", INTEGER_OR_NULL}),
			     "thread_id"},
	[XSP_SQL_THREAD_WAITS] = {"thread_waits",
				  COLUMNS({"thread_id", NUMBER}, {"reason", TEXT},
					  {"waits", INTEGER}, {"blocked_ns", INTEGER}),
				  "thread_id, reason"},
	[XSP_SQL_NAMES] = {"names", COLUMNS({"name_id", INTEGER}, {"name", TEXT}), "name_id"},
	[XSP_SQL_FUNCTIONS] = {"functions",
			       COLUMNS({"function_id", NUMBER}, {"name_id", INTEGER},
				       {"provider", TEXT}, {"module", TEXT_OR_NULL},
				       {"symbol", TEXT_OR_NULL}, {"address", INTEGER_OR_NULL},
				       {"lost_entries", INTEGER}, {"lost_exits", INTEGER},
				       {"let_go_ns", INTEGER_OR_NULL}, {"build_id", TEXT_OR_NULL}),
			       "function_id"},
	[XSP_SQL_LINES] = {"lines",
			   COLUMNS({"line_id", NUMBER}, {"file", TEXT}, {"line", NUMBER_OR_NULL},
				   {"function", TEXT}),
			   "line_id"},
	[XSP_SQL_CATEGORIES] = {"categories", COLUMNS({"category", SMALL}, {"name", TEXT}),
				"category"},
	[XSP_SQL_ENDINGS] = {"endings", COLUMNS({"ending", SMALL}, {"name", TEXT}), "ending"},
	[XSP_SQL_SPANS] = {"spans",
			   COLUMNS({"id", INTEGER_OR_NULL}, {"parent_id", INTEGER_OR_NULL},
				   {"thread_id", NUMBER}, {"fiber", NUMBER}, {"category", SMALL},
				   {"name_id", INTEGER}, {"function_id", NUMBER_OR_NULL},
				   {"stack_id", NUMBER_OR_NULL}, {"line_id", NUMBER_OR_NULL},
				   {"depth", NUMBER_OR_NULL}, {"recursive", SMALL},
				   {"ending", SMALL}, {"start_ns", INTEGER}, {"end_ns", INTEGER},
				   {"self_ns", INTEGER_OR_NULL}, {"cpu_ns", INTEGER_OR_NULL},
				   {"self_cpu_ns", INTEGER_OR_NULL}, {"probe_ns", INTEGER_OR_NULL},
				   {"correlation", NUMBER_OR_NULL},
				   {"operator_id", INTEGER_OR_NULL}, {"cut", SMALL}),
			   "thread_id, start_ns", "duration_ns",
			   "CASE WHEN ending < 3 THEN end_ns - start_ns END"},
	[XSP_SQL_COUNTERS] = {"counters",
			      COLUMNS({"span_id", INTEGER}, {"name_id", INTEGER},
				      {"value", INTEGER}),
			      "span_id"},
	[XSP_SQL_VALUES] = {"program_values",
			    COLUMNS({"time_ns", INTEGER}, {"thread_id", NUMBER},
				    {"name_id", INTEGER}, {"value", REAL_OR_NULL}),
			    "name_id, time_ns"},
	[XSP_SQL_STACKS] = {"stacks",
			    COLUMNS({"stack_id", NUMBER}, {"parent_id", NUMBER_OR_NULL},
				    {"name_id", INTEGER}, {"depth", NUMBER}),
			    "stack_id"},
	[XSP_SQL_SAMPLES] = {"samples",
			     COLUMNS({"thread_id", NUMBER}, {"time_ns", INTEGER},
				     {"weight_ns", INTEGER}, {"stack_id", NUMBER_OR_NULL},
				     {"name_id", INTEGER}, {"file_id", INTEGER_OR_NULL},
				     {"line_name_id", INTEGER_OR_NULL}, {"kernel", SMALL}),
			     "thread_id, time_ns"},
	[XSP_SQL_STATES] = {"thread_states",
			    COLUMNS({"thread_id", NUMBER}, {"state", TEXT}, {"start_ns", INTEGER},
				    {"end_ns", INTEGER}, {"finished", SMALL},
				    {"short_waits_ns", INTEGER_OR_NULL}, {"reason", TEXT_OR_NULL},
				    {"system_call", TEXT_OR_NULL}, {"argument", INTEGER_OR_NULL},
				    {"holder_id", NUMBER_OR_NULL}, {"waker_id", NUMBER_OR_NULL},
				    {"interrupt", SMALL_OR_NULL}, {"stack_id", NUMBER_OR_NULL},
				    {"inside_id", INTEGER_OR_NULL}, {"place_id", INTEGER_OR_NULL}),
			    "thread_id, start_ns"},
	[XSP_SQL_GPU] = {"gpu_activities",
			 COLUMNS({"category", TEXT}, {"name_id", INTEGER}, {"process_id", NUMBER},
				 {"device", NUMBER_OR_NULL}, {"context", NUMBER_OR_NULL},
				 {"stream", NUMBER_OR_NULL}, {"start_ns", INTEGER},
				 {"end_ns", INTEGER}, {"correlation", NUMBER_OR_NULL},
				 {"operator_id", INTEGER_OR_NULL}, {"bytes", INTEGER_OR_NULL},
				 {"queued_ns", INTEGER_OR_NULL}, {"grid_x", INTEGER_OR_NULL},
				 {"grid_y", INTEGER_OR_NULL}, {"grid_z", INTEGER_OR_NULL},
				 {"block_x", INTEGER_OR_NULL}, {"block_y", INTEGER_OR_NULL},
				 {"block_z", INTEGER_OR_NULL}, {"registers", INTEGER_OR_NULL},
				 {"shared_bytes", INTEGER_OR_NULL}, {"graph", INTEGER_OR_NULL},
				 {"cut", SMALL}),
			 "start_ns"},
	[XSP_SQL_MEMORY] = {"allocations",
			    COLUMNS({"time_ns", INTEGER}, {"process_id", NUMBER},
				    {"thread_id", NUMBER}, {"device", NUMBER_OR_NULL},
				    {"pool", TEXT}, {"address", INTEGER}, {"bytes", INTEGER},
				    {"total_bytes", INTEGER_OR_NULL},
				    {"operator_id", INTEGER_OR_NULL}),
			    "time_ns"},
	[XSP_SQL_WINDOWS] = {"windows", COLUMNS({"start_ns", INTEGER}, {"end_ns", INTEGER}),
			     "start_ns"},
	[XSP_SQL_LOSSES] = {"losses", COLUMNS({"part", TEXT}, {"name", TEXT}, {"value", INTEGER}),
			    "part, name"},
};

/* Aggregates of spans, the same under any grouping. If a range shortens a span, only the part
 * inside is known. Sums include it, and say how many such spans there are. */
#define WHOLE_NS "CASE WHEN cut = 0 THEN duration_ns END"
#define WHOLE_GPU_NS "CASE WHEN cut = 0 THEN end_ns - start_ns END"
#define CUT_CALLS "SUM(cut) AS cut_calls"
/* A call whose end was not seen may hold calls of its name whose ends were. Which of those are
 * outermost is not known here. */
#define TOTAL_KNOWN                                                                                \
	"SUM(CASE WHEN recursive = 0 AND ending IN (3, 4) THEN 1 ELSE 0 END) = 0 OR "              \
	"COUNT(CASE WHEN recursive = 1 THEN duration_ns END) = 0"
#define CALLS_OF                                                                                   \
	"COUNT(*) AS calls, COUNT(" WHOLE_NS ") AS measured, " CUT_CALLS                           \
	", CASE WHEN " TOTAL_KNOWN                                                                 \
	" THEN SUM(CASE WHEN recursive = 0 THEN duration_ns END) END AS total_ns, SUM(self_ns) "   \
	"AS self_ns, MIN(" WHOLE_NS ") AS min_ns, "                                                \
	"AVG(" WHOLE_NS ") AS mean_ns, MAX(" WHOLE_NS ") AS max_ns, CASE WHEN (" TOTAL_KNOWN       \
	") AND SUM(CASE WHEN "                                                                     \
	"recursive = 0 AND duration_ns IS NOT NULL AND cpu_ns IS NULL THEN 1 ELSE 0 END) = 0 "     \
	"THEN SUM(CASE WHEN recursive = 0 AND duration_ns IS NOT NULL THEN cpu_ns END) END AS "    \
	"cpu_ns"
#define CALLS "calls, measured, cut_calls, total_ns, self_ns, cpu_ns, min_ns, mean_ns, max_ns"

/* What identifies a run. */
#define RUNS "(SELECT run, host, start_ns AS run_start_ns FROM runs) r USING (run)"

/* The columns of a span that `calls` shows. */
#define SPAN                                                                                       \
	"parent_id, fiber, depth, start_ns, end_ns, duration_ns, self_ns, cpu_ns, self_cpu_ns, "   \
	"stack_id, correlation, operator_id"

const struct xsp_sql_view xsp_sql_views[] = {
	{"schema_version", "SELECT " XSP_SQL_VERSION " AS version"},
	{"calls",
	 "SELECT run, id, " SPAN
	 ", pid, tid, thread, category_name AS category, name, module, provider, file, line, line_function, ending_name AS ending FROM (SELECT run, id, " SPAN
	 ", ending_number, pid, tid, thread, category_name, name, module, "
	 "provider, file, line, line_function FROM (SELECT run, id, " SPAN
	 ", ending_number, line_id, pid, tid, thread, category_name, name, module, provider FROM (SELECT run, id, " SPAN
	 ", ending_number, line_id, function_id, pid, tid, thread, "
	 "category_name, name FROM (SELECT run, id, " SPAN
	 ", ending_number, line_id, function_id, name_id, pid, tid, thread, category_name FROM (SELECT run, id, " SPAN
	 ", ending_number, line_id, function_id, name_id, "
	 "category_number, pid, tid, thread FROM (SELECT run, id, " SPAN
	 ", ending AS ending_number, line_id, function_id, name_id, category AS category_number, thread_id FROM spans) s "
	 "JOIN (SELECT run, thread_id, pid, tid, name AS thread FROM threads) t USING (run, thread_id)) a JOIN (SELECT run, category AS category_number, name AS category_name FROM categories) c "
	 "USING (run, category_number)) b JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) d LEFT JOIN (SELECT run, function_id, module, NULLIF(provider, '') AS provider FROM "
	 "functions) f USING (run, function_id)) e LEFT JOIN (SELECT run, line_id, NULLIF(file, '') AS file, line, NULLIF(function, '') AS line_function FROM lines) l USING (run, line_id)) g "
	 "JOIN (SELECT run, ending AS ending_number, name AS ending_name FROM endings) h USING (run, ending_number)"},
	{"operators",
	 "SELECT run, host, run_start_ns, name, " CALLS " FROM (SELECT run, name, " CALLS
	 " FROM (SELECT run, name_id, " CALLS_OF
	 " FROM spans GROUP BY run, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) o JOIN " RUNS},
	{"operators_by_thread",
	 "SELECT run, host, run_start_ns, pid, tid, thread, name, " CALLS
	 " FROM (SELECT run, pid, tid, thread, name, " CALLS
	 " FROM (SELECT run, thread_id, name, " CALLS
	 " FROM (SELECT run, thread_id, name_id, " CALLS_OF
	 " FROM spans GROUP BY run, thread_id, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) o JOIN (SELECT run, thread_id, pid, tid, name AS thread "
	 "FROM threads) t USING (run, thread_id)) p JOIN " RUNS},
	{"operators_by_rank",
	 "SELECT run, host, run_start_ns, job, rank, pid, tid, file, line, function, name, " CALLS
	 " FROM (SELECT run, job, rank, pid, tid, file, line, function, name, " CALLS
	 " FROM (SELECT run, process_id, pid, tid, file, line, function, name, " CALLS
	 " FROM (SELECT run, thread_id, file, line, function, name, " CALLS
	 " FROM (SELECT run, thread_id, line_id, name, " CALLS
	 " FROM (SELECT run, thread_id, line_id, name_id, " CALLS_OF
	 " FROM spans GROUP BY run, thread_id, line_id, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) o LEFT JOIN (SELECT run, line_id, NULLIF(file, '') AS file, "
	 "line, NULLIF(function, '') AS function FROM lines) l USING (run, line_id)) p JOIN (SELECT run, thread_id, process_id, pid, tid FROM threads) t USING (run, thread_id)) q LEFT JOIN (SELECT "
	 "run, process_id, job, rank FROM processes) k USING (run, process_id)) m JOIN " RUNS},
	{"operators_by_line",
	 "SELECT run, file, line, function, name, " CALLS " FROM (SELECT run, line_id, name, " CALLS
	 " FROM (SELECT run, line_id, name_id, " CALLS_OF
	 " FROM spans WHERE line_id IS NOT NULL GROUP BY run, line_id, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) o JOIN (SELECT run, line_id, file, "
	 "line, function FROM lines) l USING (run, line_id)"},
	{"operators_by_module",
	 "SELECT run, host, run_start_ns, module, build_id, name, " CALLS
	 " FROM (SELECT run, module, build_id, name, " CALLS
	 " FROM (SELECT run, function_id, name, " CALLS
	 " FROM (SELECT run, function_id, name_id, " CALLS_OF
	 " FROM spans GROUP BY run, function_id, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)) o LEFT JOIN (SELECT run, function_id, module, build_id "
	 "FROM functions) f USING (run, function_id)) m JOIN " RUNS},
	{"kernels",
	 "SELECT run, name, calls, measured, cut_calls, total_ns, min_ns, mean_ns, max_ns FROM (SELECT run, name_id, COUNT(*) AS calls, COUNT(" WHOLE_GPU_NS
	 ") AS measured, " CUT_CALLS ", SUM(end_ns - start_ns) AS total_ns, MIN(" WHOLE_GPU_NS
	 ") AS min_ns, AVG(" WHOLE_GPU_NS ") AS mean_ns, MAX(" WHOLE_GPU_NS
	 ") AS max_ns FROM gpu_activities WHERE category = 'kernel' GROUP BY run, name_id) g JOIN (SELECT run, name_id, name FROM names) n USING (run, name_id)"},
	{NULL, NULL},
};
