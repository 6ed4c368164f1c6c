/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/sql/tables.h"

#include <stdio.h>

#include "catalog/job_variables.h"
#include "catalog/wait_reasons.h"
#include "model/run_stats.h"
#include "timeline/cut.h"

#define BUILD_ID_MAX 32U /* bytes of a build id that are shown; linkers make 20 */

#define INTEGER xsp_sql_integer
#define IF xsp_sql_if
#define TEXT xsp_sql_text

static const struct xsp_database *database_of(const struct xsp_export *x)
{
	return x->state;
}

/* ---- what is known at the beginning ---- */

static void put_name_tables(struct xsp_export *x)
{
	const struct xsp_database *d = database_of(x);

	for (unsigned i = 0; i < d->categories.count; i++)
		XSP_SQL_PUT(d->rows, XSP_SQL_CATEGORIES, INTEGER(i), TEXT(d->categories.names[i]));
	for (unsigned i = 0; i < XSP_ENDINGS; i++)
		XSP_SQL_PUT(d->rows, XSP_SQL_ENDINGS, INTEGER(i), TEXT(xsp_ending_name(i)));
}

/* Puts the value if it is known. */
static void put_info(struct xsp_export *x, const char *key, const char *value)
{
	if (value != NULL)
		XSP_SQL_PUT(database_of(x)->rows, XSP_SQL_META, TEXT(key), TEXT(value));
}

static void put_meta(struct xsp_export *x)
{
	static const char *const infos[] = {"arguments", "filters", "kernel", "version",     "host",
					    "counters",	 "samples", "waits",  "max overhead"};
	uint64_t count;

	put_info(x, "schema_version", XSP_SQL_VERSION);
	put_info(x, "xsptrace_version", XSP_VERSION);
	for (size_t i = 0; i < sizeof(infos) / sizeof(infos[0]); i++)
		put_info(x, infos[i], xsp_capture_info(x->view.reader, infos[i]));
	put_info(x, "cut", xsp_timeline_cut_text(x->view.timeline));
	for (unsigned i = 0; i < XSP_GAPS; i++)
		put_info(x, xsp_capture_gap_key(i), xsp_capture_gap(x->view.reader, i, &count));
	put_info(x, "end", xsp_run_how_ended(x->view.reader));
}

void xsp_sql_put_first(struct xsp_export *x)
{
	put_name_tables(x);
	put_meta(x);
}

/* ---- what is known at the end ---- */

static void put_run(struct xsp_export *x)
{
	const struct xsp_database *d = database_of(x);

	XSP_SQL_PUT(d->rows, XSP_SQL_RUNS,
		    INTEGER(xsp_capture_realtime(x->view.reader, d->start_ns)),
		    INTEGER(d->length_ns), INTEGER(xsp_timeline_recorded_ns(x->view.timeline)),
		    TEXT(xsp_capture_info(x->view.reader, "host")),
		    INTEGER(xsp_capture_how_ended(x->view.reader) == XSP_CAPTURE_COMPLETE));
}

static void put_process(struct xsp_export *x, const struct xsp_capture_process *p)
{
	char name[256], job[256];
	uint32_t rank = 0;
	const bool has_job = xsp_capture_variable(p, XSP_JOB_SLURM_JOB_ID, job, sizeof(job)) ||
			     xsp_capture_variable(p, XSP_JOB_TORCHELASTIC_RUN_ID, job, sizeof(job)),
		   has_rank = xsp_capture_variable_number(p, XSP_JOB_RANK, &rank);

	xsp_run_process_name(x->view.reader, p->pid, name, sizeof(name));
	XSP_SQL_PUT(database_of(x)->rows, XSP_SQL_PROCESSES, INTEGER(p->pid),
		    INTEGER(p->ns_pid != 0 ? p->ns_pid : p->pid), IF(p->parent != 0, p->parent),
		    TEXT(name), TEXT(p->cmdline), TEXT(p->exe), TEXT(has_job ? job : NULL),
		    IF(has_rank, rank));
}

static void put_processes(struct xsp_export *x)
{
	struct xsp_sql *rows = database_of(x)->rows;
	const struct xsp_capture_process *all = NULL;
	const size_t count = xsp_capture_processes(x->view.reader, &all);
	struct xsp_u64map last = {0}; /* exec defines a process again */

	for (size_t i = 0; i < count; i++)
		xsp_sql_note(rows, xsp_u64map_set(&last, all[i].pid, (uint32_t)i));
	for (size_t i = 0; i < count && xsp_sql_error(rows) == 0; i++)
		if (*xsp_u64map_get(&last, all[i].pid) == i)
			put_process(x, &all[i]);
	xsp_u64map_free(&last);
}

/* The sums of a thread, if the capture holds the kernel side's. */
static const struct xsp_thread_times *times_of(const struct xsp_export *x, uint32_t pid,
					       uint32_t tid)
{
	const struct xsp_thread_times *times = NULL, *found = NULL;
	const size_t count = xsp_timeline_times(x->view.timeline, &times);

	for (size_t i = 0; i < count && found == NULL; i++)
		if (times[i].thread->tid == tid && times[i].thread->pid == pid)
			found = &times[i];
	return found;
}

static void put_thread(struct xsp_export *x, const struct xsp_thread_row *row)
{
	static const struct xsp_thread_times unknown;
	struct xsp_sql *rows = database_of(x)->rows;
	const struct xsp_thread_times *found = times_of(x, row->root_pid, row->root_tid);
	const struct xsp_thread_times *t = found != NULL ? found : &unknown;
	const bool known = found != NULL;
	const struct xsp_sql_value thread = INTEGER(row->index + 1);

	XSP_SQL_PUT(rows, XSP_SQL_THREADS, thread, INTEGER(row->root_pid), INTEGER(row->pid),
		    INTEGER(row->thread_tid),
		    TEXT(xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid)),
		    IF(known, t->ended), IF(known, t->until_ns - t->since_ns),
		    IF(known, t->running_ns), IF(known, t->runnable_ns),
		    IF(t->faults_known, t->minor_faults), IF(t->faults_known, t->major_faults));
	for (unsigned why = 1; why < XSP_WAIT_CLASSES; why++)
		if (t->waits[why] > 0)
			XSP_SQL_PUT(rows, XSP_SQL_THREAD_WAITS, thread,
				    TEXT(xsp_wait_class_name(why)), INTEGER(t->waits[why]),
				    INTEGER(t->blocked_ns[why]));
}

static void put_threads(struct xsp_export *x)
{
	const struct xsp_thread_rows *all = xsp_sql_thread_rows(database_of(x)->rows);

	for (size_t i = 0; i < xsp_thread_rows_count(all); i++)
		if (xsp_thread_rows_at(all, i)->number == 0)
			put_thread(x, xsp_thread_rows_at(all, i));
}

static void put_function(struct xsp_export *x, const struct xsp_capture_probe *p,
			 const struct xsp_capture_lost *lost, const uint64_t *let_go_ns)
{
	const struct xsp_database *d = database_of(x);
	const struct xsp_capture_module *modules = NULL;
	const size_t count = xsp_capture_modules(x->view.reader, &modules);
	const bool in_module = p->module < count;
	char build_id[2 * BUILD_ID_MAX + 1] = "";
	const struct xsp_sql_value name = xsp_sql_other_name(d->rows, p->name);

	for (uint32_t i = 0;
	     in_module && i < modules[p->module].build_id_length && i < BUILD_ID_MAX; i++)
		sprintf(build_id + (size_t)2 * i, "%02x", modules[p->module].build_id[i]);
	XSP_SQL_PUT(d->rows, XSP_SQL_FUNCTIONS, INTEGER(p->id), name, TEXT(p->provider),
		    TEXT(in_module ? modules[p->module].path : NULL),
		    TEXT(p->symbol[0] != '\0' ? p->symbol : NULL), IF(in_module, p->addr),
		    INTEGER(lost != NULL ? lost->entries : 0),
		    INTEGER(lost != NULL ? lost->exits : 0),
		    let_go_ns != NULL ? xsp_sql_at(d, *let_go_ns) : IF(false, 0),
		    TEXT(build_id[0] != '\0' ? build_id : NULL));
}

static void put_functions(struct xsp_export *x)
{
	struct xsp_sql *rows = database_of(x)->rows;
	const struct xsp_capture_probe *probes = NULL;
	const struct xsp_capture_lost *losts = NULL;
	const struct xsp_capture_let_go *gone = NULL;
	const size_t probe_count = xsp_capture_probes(x->view.reader, &probes),
		     lost_count = xsp_capture_losts(x->view.reader, &losts),
		     gone_count = xsp_capture_let_gos(x->view.reader, &gone);
	struct xsp_u64map lost_of = {0}, gone_of = {0};

	for (size_t i = 0; i < lost_count; i++)
		xsp_sql_note(rows, xsp_u64map_set(&lost_of, losts[i].probe, (uint32_t)i));
	for (size_t i = 0; i < gone_count; i++)
		xsp_sql_note(rows, xsp_u64map_set(&gone_of, gone[i].probe, (uint32_t)i));
	for (size_t i = 0; i < probe_count; i++) {
		const uint32_t *lost = xsp_u64map_get(&lost_of, i),
			       *let_go = xsp_u64map_get(&gone_of, i);
		if (probes[i].kind != XSP_PROBE_MARK)
			put_function(x, &probes[i], lost != NULL ? &losts[*lost] : NULL,
				     let_go != NULL ? &gone[*let_go].time_ns : NULL);
	}
	xsp_u64map_free(&lost_of);
	xsp_u64map_free(&gone_of);
}

static void put_stats(struct xsp_export *x, const char *part, const struct xsp_run_stats *stats)
{
	for (size_t i = 0; i < stats->count; i++)
		XSP_SQL_PUT(database_of(x)->rows, XSP_SQL_LOSSES, TEXT(part),
			    TEXT(stats->list[i].key), INTEGER(stats->list[i].value));
}

static void put_losses(struct xsp_export *x)
{
	struct xsp_run_stats stats;

	xsp_run_stats_losses(x->view.reader, &stats);
	put_stats(x, "losses", &stats);
	xsp_run_stats_timeline(x->view.reader, x->view.timeline, &stats);
	put_stats(x, "timeline", &stats);
	xsp_run_stats_overhead(x->view.reader, &stats);
	put_stats(x, "overhead", &stats);
	xsp_run_stats_gpu(x->view.timeline, true, &stats);
	put_stats(x, "gpu", &stats);
}

static void put_windows(struct xsp_export *x)
{
	const struct xsp_database *d = database_of(x);
	const struct xsp_capture_window *w = NULL;
	const size_t count = xsp_capture_windows(x->view.reader, &w);

	for (size_t i = 0; i < count; i++)
		XSP_SQL_PUT(d->rows, XSP_SQL_WINDOWS, xsp_sql_at(d, w[i].start_ns),
			    xsp_sql_at(d, w[i].end_ns));
}

void xsp_sql_put_last(struct xsp_export *x)
{
	put_run(x);
	put_processes(x);
	put_threads(x);
	put_functions(x);
	put_losses(x);
	put_windows(x);
}
