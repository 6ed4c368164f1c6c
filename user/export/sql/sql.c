/* SPDX-License-Identifier: BSD-2-Clause */
/* sql.c - everything that a capture holds as rows of a database; its tables: docs/sql.md. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog/wait_reasons.h"
#include "export/formats.h"
#include "export/sql/rows.h"
#include "model/rows/counters.h"
#include "model/rows/memory_track.h"
#include "model/rows/states.h"
#include "model/run_stats.h"
#include "model/spans/category.h"
#include "timeline/cut.h"
#include "timeline/gpu_category.h"

/* Rows of a thread where stacks of something else than spans are found (struct xsp_span.row). */
#define SAMPLES_ROW (UINT32_MAX - 1)
#define WAITS_ROW (UINT32_MAX - 2)

#define BUILD_ID_MAX 32U /* bytes of one that are shown; 20 as linkers make them */

/* A stack, and whether one of the same name is in it. */
#define HELD(stack, recursive) ((stack) << 1 | (recursive))
_Static_assert(XSP_STACKS_MAX < 1U << 31, "the number of a stack fits");

#define INTEGER xsp_sql_integer
#define IF xsp_sql_if
#define TEXT xsp_sql_text

/* Calls that a loop makes have the same answer, however deep it stands. */
#define KNOWN 256U
struct known_recursion {
	uint64_t parent; /* 0: nothing is known */
	xsp_name_id name;
	bool recursive;
};

struct database {
	struct xsp_sql *rows;
	struct xsp_thread_rows *thread_rows;
	struct xsp_categories categories;
	const struct xsp_capture_probe *probes;
	size_t probe_count;
	uint64_t
		start_ns; /* of the recording, CLOCK_MONOTONIC: a part has the times of the whole */
	uint64_t from_ns, length_ns; /* of the part that is told of */
	/* of calls of CUDA's API that are told of later, by their serials: HELD() */
	struct xsp_u64map held;
	struct known_recursion known[KNOWN];
};

static struct xsp_sql_value at(const struct database *d, uint64_t ns)
{
	return INTEGER(ns - d->start_ns);
}

/* ---- threads ---- */

/* A thread's number is that of its row. */
static int thread_of(struct database *d, uint32_t pid, uint32_t tid, uint64_t *number)
{
	const struct xsp_thread_row *row = xsp_thread_rows_of(d->thread_rows, pid, tid, 0);

	*number = row != NULL ? (uint64_t)row->index + 1 : 0;
	return row != NULL ? 0 : -ENOMEM;
}

/* The thread of an id of the root namespace: NULL in SQL where it is not known. */
static int other_thread(struct xsp_export *x, uint32_t tid, struct xsp_sql_value *out)
{
	const struct xsp_timeline_thread *t =
		tid != 0 ? xsp_timeline_thread(x->view.timeline, tid) : NULL;
	uint64_t number = 0;
	int rc = t != NULL ? thread_of(x->state, t->pid, t->tid, &number) : 0;

	*out = IF(t != NULL, number);
	return rc;
}

/* ---- spans ---- */

/* By text, as names are counted by it here. */
static int note_recursion(struct database *d, const struct xsp_span *s, bool *recursive)
{
	struct xsp_stacks *names = xsp_sql_stacks(d->rows);
	struct known_recursion *k = &d->known[xsp_u64_mix(s->parent << 20 ^ s->name) % KNOWN];
	xsp_name_id own, around;

	*recursive = k->recursive;
	if (s->parent != 0 && k->parent == s->parent && k->name == s->name)
		return 0;
	int rc = xsp_stacks_same_name(names, s->name, &own);
	*recursive = false;
	for (uint32_t i = 0; rc == 0 && i < s->depth && !*recursive; i++) {
		rc = xsp_stacks_same_name(names, s->ancestors[i], &around);
		*recursive = rc == 0 && around == own;
	}
	*k = (struct known_recursion){s->parent, s->name, *recursive};
	return rc;
}

struct counting {
	struct xsp_sql *rows;
	uint64_t span;
};

static int put_counter(void *ctx, const char *name, uint64_t value)
{
	const struct counting *c = ctx;
	uint64_t number;
	int rc = xsp_sql_other_name(c->rows, name, &number);

	return rc < 0 ? rc
		      : XSP_SQL_PUT(c->rows, XSP_SQL_COUNTERS, INTEGER(c->span), INTEGER(number),
				    INTEGER(value));
}

static int put_counters(struct xsp_export *x, const struct xsp_span *s)
{
	const struct database *d = x->state;
	struct counting c = {.rows = d->rows, .span = s->serial + 1};

	return s->details != NULL ? xsp_counters_of(&x->view, s, put_counter, &c) : 0;
}

/* What of a span is not in the span itself. */
struct around {
	unsigned category; /* of struct xsp_categories */
	bool recursive;
	uint32_t stack; /* 0: not known */
	uint32_t correlation;
	uint64_t op; /* id of the operator that a call of CUDA's belongs to; 0: none */
};

static int put_span(struct xsp_export *x, const struct xsp_span *s, const struct around *a)
{
	struct database *d = x->state;
	const bool measured = xsp_span_has_duration(s);
	uint64_t thread, name, line = 0;
	int rc = thread_of(d, s->pid, s->tid, &thread);

	if (rc == 0)
		rc = xsp_sql_name(d->rows, s->name, &name);
	if (rc == 0 && s->details != NULL)
		rc = xsp_sql_line(d->rows, s, &line);
	if (rc == 0)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_SPANS, INTEGER(s->serial + 1),
				 IF(s->parent != 0, s->parent), INTEGER(thread), INTEGER(s->row),
				 INTEGER(a->category), INTEGER(name),
				 IF(s->probe < d->probe_count, s->probe),
				 IF(a->stack != 0, a->stack), IF(line != 0, line),
				 INTEGER(s->depth), INTEGER(a->recursive),
				 INTEGER(xsp_ending_of(s)), at(d, s->start_ns), at(d, s->end_ns),
				 IF(measured, s->self_ns),
				 IF(measured && s->cpu_ns != XSP_CPU_UNKNOWN, s->cpu_ns),
				 IF(measured && s->self_cpu_ns != XSP_CPU_UNKNOWN, s->self_cpu_ns),
				 INTEGER(s->probe_ns), IF(a->correlation != 0, a->correlation),
				 IF(a->op != 0, a->op), INTEGER((s->flags & XSP_SPAN_CUT) != 0));
	return rc == 0 ? put_counters(x, s) : rc;
}

static int sql_span(struct xsp_export *x, const struct xsp_span *s)
{
	struct database *d = x->state;
	struct around a = {.category = xsp_category_of(&d->categories, s)};
	uint32_t nearest;
	int rc = note_recursion(d, s, &a.recursive);

	if (rc == 0)
		rc = xsp_stacks_find(xsp_sql_stacks(d->rows), s, &a.stack, &nearest);
	if (rc < 0)
		return rc;
	if (a.category != XSP_CUDA_RUNTIME_CALL && a.category != XSP_CUDA_DRIVER_CALL)
		return put_span(x, s, &a);
	/* its ancestors are not known any more when it is told of again */
	if (s->call_follows)
		return xsp_u64map_set(&d->held, s->serial, HELD(a.stack, (uint32_t)a.recursive));
	a.op = s->op != 0 ? s->op : s->user;
	return put_span(x, s, &a);
}

/* A call that no probe was at: CUPTI has its name, and nothing of what is around it. */
static int put_call(struct xsp_export *x, const struct xsp_gpu_call *c, enum xsp_category category)
{
	struct database *d = x->state;
	uint64_t thread, name;
	int rc = thread_of(d, c->pid, c->tid, &thread);

	if (rc == 0)
		rc = xsp_sql_other_name(d->rows, c->name[0] != '\0' ? c->name : "CUDA API call",
					&name);
	if (rc < 0)
		return rc;
	return XSP_SQL_PUT(d->rows, XSP_SQL_SPANS, IF(false, 0), IF(false, 0), INTEGER(thread),
			   INTEGER(c->row), INTEGER(category), INTEGER(name), IF(false, 0),
			   IF(false, 0), IF(false, 0), IF(false, 0), INTEGER(0),
			   INTEGER(XSP_RETURNED), at(d, c->start_ns), at(d, c->end_ns),
			   IF(false, 0), IF(false, 0), IF(false, 0), IF(false, 0),
			   IF(c->correlation != 0, c->correlation),
			   IF(c->external != 0, c->external), INTEGER(c->cut));
}

static int sql_call(struct xsp_export *x, const struct xsp_gpu_call *c)
{
	struct database *d = x->state;
	struct around a = {
		.category =
			c->api == XSP_CUDA_DRIVER ? XSP_CUDA_DRIVER_CALL : XSP_CUDA_RUNTIME_CALL,
		.correlation = c->correlation,
		.op = c->external,
	};

	if (c->span == NULL)
		return put_call(x, c, a.category);
	const uint32_t *held = xsp_u64map_get(&d->held, c->span->serial);
	if (held != NULL) {
		a.stack = *held >> 1;
		a.recursive = *held & 1;
	}
	xsp_u64map_remove(&d->held, c->span->serial);
	return put_span(x, c->span, &a);
}

/* ---- samples and waits ---- */

/* 0: there is none, or no room for it. */
static int stack_of(struct database *d, uint32_t pid, uint32_t tid, uint32_t row,
		    const uint32_t *path, uint32_t length, uint32_t *stack)
{
	uint32_t nearest;

	*stack = 0;
	if (length == 0)
		return 0;
	const struct xsp_span last = {
		.pid = pid,
		.tid = tid,
		.row = row,
		.name = path[length - 1],
		.path = path,
		.path_length = length - 1,
	};
	return xsp_stacks_find(xsp_sql_stacks(d->rows), &last, stack, &nearest);
}

/* Of a field that is 1 + the id of a name. */
static int name_if(struct database *d, uint32_t id, struct xsp_sql_value *out)
{
	uint64_t number = 0;
	int rc = id != 0 ? xsp_sql_name(d->rows, id - 1, &number) : 0;

	*out = IF(id != 0, number);
	return rc;
}

static int sql_sample(struct xsp_export *x, const struct xsp_sample *s)
{
	struct database *d = x->state;
	struct xsp_sql_value file, line;
	uint64_t thread, name = 0;
	uint32_t stack = 0;
	int rc = thread_of(d, s->pid, s->tid, &thread);

	if (rc == 0)
		rc = stack_of(d, s->pid, s->tid, SAMPLES_ROW, s->path, s->path_length, &stack);
	if (rc == 0)
		rc = xsp_sql_name(d->rows, s->path[s->path_length - 1], &name);
	if (rc == 0)
		rc = name_if(d, s->file != 0 ? s->file + 1 : 0, &file);
	if (rc == 0)
		rc = name_if(d, s->line, &line);
	if (rc < 0)
		return rc;
	return XSP_SQL_PUT(d->rows, XSP_SQL_SAMPLES, INTEGER(thread), at(d, s->time_ns),
			   INTEGER(s->period_ns), IF(stack != 0, stack), INTEGER(name), file, line,
			   INTEGER(s->kernel));
}

static int put_running(struct database *d, uint64_t thread, const struct xsp_state_slice *s)
{
	const struct xsp_sql_value none = IF(false, 0);

	return XSP_SQL_PUT(d->rows, XSP_SQL_STATES, INTEGER(thread), TEXT(xsp_state_name(s->state)),
			   at(d, s->start_ns), at(d, s->end_ns), INTEGER(s->finished),
			   INTEGER(s->short_ns), none, none, none, none, none, none, none, none,
			   none);
}

static int put_state(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	struct xsp_export *x = ctx;
	struct database *d = x->state;
	const struct xsp_wait *w = s->wait;
	struct xsp_sql_value holder, waker, inside, place;
	uint64_t thread;
	uint32_t stack = 0;
	int rc = thread_of(d, row->root_pid, row->root_tid, &thread);

	if (rc == 0 && w == NULL)
		return put_running(d, thread, s);
	if (rc == 0)
		rc = stack_of(d, w->pid, w->tid, WAITS_ROW, w->path, w->path_length, &stack);
	if (rc == 0)
		rc = other_thread(x, w->owner, &holder);
	if (rc == 0)
		rc = other_thread(x, w->waker, &waker);
	if (rc == 0)
		rc = name_if(d, w->inside, &inside);
	if (rc == 0)
		rc = name_if(d, w->place, &place);
	if (rc < 0)
		return rc;
	const bool blocked = s->state == XSP_STATE_BLOCKED;
	char number[16];
	const char *call = w->syscall >= 0 ? xsp_wait_syscall((unsigned)w->syscall) : NULL;
	snprintf(number, sizeof(number), "%" PRId32, w->syscall);
	return XSP_SQL_PUT(d->rows, XSP_SQL_STATES, INTEGER(thread), TEXT(xsp_state_name(s->state)),
			   at(d, s->start_ns), at(d, s->end_ns), INTEGER(s->finished), IF(false, 0),
			   TEXT(blocked ? xsp_wait_class_name(w->why) : NULL),
			   TEXT(!blocked || w->syscall < 0 ? NULL
				: call != NULL		   ? call
							   : number),
			   IF(blocked && w->syscall >= 0, w->argument), holder, waker,
			   INTEGER((w->flags & XSP_WAIT_INTERRUPT) != 0), IF(stack != 0, stack),
			   inside, place);
}

static int sql_wait(struct xsp_export *x, const struct xsp_wait *w)
{
	struct database *d = x->state;
	struct xsp_thread_row *row =
		xsp_thread_rows_of(d->thread_rows, w->pid, w->tid, XSP_STATES_ROW);

	if (row == NULL)
		return -ENOMEM;
	int rc = xsp_states_wait(row, w, d->from_ns, put_state, x);
	return rc < 0 ? rc : 0;
}

/* ---- GPU ---- */

/* What only some kinds have. */
struct sizes {
	struct xsp_sql_value bytes, queued, grid[3], block[3], registers, shared, graph;
};

static void sizes_of(const struct database *d, const struct xsp_gpu_activity *a, struct sizes *out)
{
	const struct xsp_gpu_kernel *k = a->record;
	const struct xsp_gpu_memcpy *c = a->record;
	const struct xsp_gpu_memset *m = a->record;

	*out = (struct sizes){.bytes = IF(false, 0)};
	if (a->kind == XSP_GPU_IS_MEMCPY) {
		out->bytes = INTEGER(c->bytes);
		out->graph = IF(c->graph != 0, c->graph);
	} else if (a->kind == XSP_GPU_IS_MEMSET) {
		out->bytes = INTEGER(m->bytes);
		out->graph = IF(m->graph != 0, m->graph);
	} else if (a->kind == XSP_GPU_IS_GRAPH) {
		out->graph = INTEGER(((const struct xsp_gpu_graph *)a->record)->graph);
	} else if (a->kind == XSP_GPU_IS_KERNEL) {
		for (int i = 0; i < 3; i++) {
			out->grid[i] = INTEGER(k->grid[i]);
			out->block[i] = INTEGER(k->block[i]);
		}
		out->queued = IF(k->queued_ns != 0, k->queued_ns - d->start_ns);
		out->registers = INTEGER(k->registers);
		out->shared = INTEGER((uint64_t)k->static_shared + k->dynamic_shared);
		out->graph = IF(k->graph != 0, k->graph);
	}
}

static int sql_gpu(struct xsp_export *x, const struct xsp_gpu_activity *a)
{
	struct database *d = x->state;
	char buffer[XSP_GPU_NAME_SIZE];
	const bool overhead = a->kind == XSP_GPU_IS_OVERHEAD, event = a->kind == XSP_GPU_IS_EVENT;
	uint64_t start = a->start_ns, end = a->end_ns, name;
	struct sizes s;

	if (event) {
		start = end = ((const struct xsp_gpu_cuda_event *)a->record)->device_ns;
		if (start == 0) /* CUPTI did not say when */
			return 0;
	}
	int rc = xsp_sql_other_name(d->rows, xsp_gpu_activity_name(a, buffer), &name);
	if (rc < 0)
		return rc;
	sizes_of(d, a, &s);
	return XSP_SQL_PUT(d->rows, XSP_SQL_GPU, TEXT(xsp_gpu_category(a->kind)), INTEGER(name),
			   INTEGER(a->pid), IF(!overhead, a->device), IF(!overhead, a->context),
			   IF(!overhead && a->stream != XSP_GPU_NO_ID, a->stream), at(d, start),
			   at(d, end), IF(a->correlation != 0, a->correlation),
			   IF(a->external != 0, a->external), s.bytes, s.queued, s.grid[0],
			   s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.registers,
			   s.shared, s.graph, INTEGER(a->cut));
}

static int sql_value(struct xsp_export *x, const struct xsp_value *v)
{
	struct database *d = x->state;
	struct xsp_sql_value value = {.type = isfinite(v->value) ? XSP_SQL_REAL : XSP_SQL_NULL,
				      .real = v->value};
	uint64_t thread, name;
	int rc = thread_of(d, v->pid, v->tid, &thread);

	if (rc == 0)
		rc = xsp_sql_name(d->rows, v->name, &name);
	return rc < 0 ? rc
		      : XSP_SQL_PUT(d->rows, XSP_SQL_VALUES, at(d, v->time_ns), INTEGER(thread),
				    INTEGER(name), value);
}

static int sql_memory(struct xsp_export *x, const struct xsp_memory_event *e)
{
	static const char *const pools[] = {
		[XSP_MEMORY_GPU] = "gpu",
		[XSP_MEMORY_PINNED] = "pinned",
		[XSP_MEMORY_TORCH] = "torch",
		[XSP_MEMORY_HEAP] = "heap",
	};
	struct database *d = x->state;
	char track[XSP_MEMORY_TRACK];
	const bool known = xsp_memory_track(&x->view, e, track);
	uint64_t thread;
	int rc = thread_of(d, e->pid, e->tid, &thread);

	if (rc < 0)
		return rc;
	return XSP_SQL_PUT(d->rows, XSP_SQL_MEMORY, at(d, e->time_ns), INTEGER(e->pid),
			   INTEGER(thread), IF(e->device != XSP_GPU_NO_ID, e->device),
			   TEXT(pools[e->pool]), INTEGER(e->address), INTEGER((uint64_t)e->bytes),
			   IF(known, e->total), IF(e->op != 0, e->op));
}

/* ---- what is known at the end ---- */

static int put_processes(struct xsp_export *x)
{
	const struct database *d = x->state;
	const struct xsp_capture_process *all = NULL;
	const size_t count = xsp_capture_processes(x->view.reader, &all);
	struct xsp_u64map last = {0}; /* exec defines a process again */
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = xsp_u64map_set(&last, all[i].pid, (uint32_t)i);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct xsp_capture_process *p = &all[i];
		char name[256];
		if (*xsp_u64map_get(&last, p->pid) != i)
			continue;
		xsp_run_process_name(x->view.reader, p->pid, name, sizeof(name));
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_PROCESSES, INTEGER(p->pid),
				 INTEGER(p->ns_pid != 0 ? p->ns_pid : p->pid),
				 IF(p->parent != 0, p->parent), TEXT(name), TEXT(p->cmdline),
				 TEXT(p->exe));
	}
	xsp_u64map_free(&last);
	return rc;
}

static int put_thread_waits(struct database *d, uint64_t thread, const struct xsp_thread_times *t)
{
	int rc = 0;

	for (unsigned why = 1; rc == 0 && why < XSP_WAIT_CLASSES; why++)
		if (t->waits[why] > 0)
			rc = XSP_SQL_PUT(d->rows, XSP_SQL_THREAD_WAITS, INTEGER(thread),
					 TEXT(xsp_wait_class_name(why)), INTEGER(t->waits[why]),
					 INTEGER(t->blocked_ns[why]));
	return rc;
}

/* The sums of a thread, if the kernel side has told them. */
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

static int put_threads(struct xsp_export *x)
{
	struct database *d = x->state;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < xsp_thread_rows_count(d->thread_rows); i++) {
		const struct xsp_thread_row *row = xsp_thread_rows_at(d->thread_rows, i);
		const struct xsp_thread_times *t = times_of(x, row->root_pid, row->root_tid);
		const bool faults = t != NULL && t->faults_known;
		if (row->number != 0)
			continue;
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_THREADS, INTEGER(row->index + 1),
				 INTEGER(row->root_pid), INTEGER(row->pid),
				 INTEGER(row->thread_tid),
				 TEXT(xsp_thread_rows_comm(&x->view, row->root_pid, row->root_tid)),
				 IF(t != NULL, t != NULL && t->ended),
				 IF(t != NULL, t != NULL ? t->until_ns - t->since_ns : 0),
				 IF(t != NULL, t != NULL ? t->running_ns : 0),
				 IF(t != NULL, t != NULL ? t->runnable_ns : 0),
				 IF(faults, faults ? t->minor_faults : 0),
				 IF(faults, faults ? t->major_faults : 0));
		if (rc == 0 && t != NULL)
			rc = put_thread_waits(d, row->index + 1, t);
	}
	return rc;
}

static int put_function(struct xsp_export *x, const struct xsp_capture_probe *p,
			const struct xsp_capture_lost *lost, const uint64_t *let_go_ns)
{
	struct database *d = x->state;
	const struct xsp_capture_module *modules = NULL;
	const size_t count = xsp_capture_modules(x->view.reader, &modules);
	const bool in_module = p->module < count;
	char build_id[2 * BUILD_ID_MAX + 1] = "";
	uint64_t name;
	int rc = xsp_sql_other_name(d->rows, p->name, &name);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0;
	     in_module && i < modules[p->module].build_id_length && i < BUILD_ID_MAX; i++)
		sprintf(build_id + (size_t)2 * i, "%02x", modules[p->module].build_id[i]);
	return XSP_SQL_PUT(d->rows, XSP_SQL_FUNCTIONS, INTEGER(p->id), INTEGER(name),
			   TEXT(p->provider), TEXT(in_module ? modules[p->module].path : NULL),
			   TEXT(p->symbol[0] != '\0' ? p->symbol : NULL), IF(in_module, p->addr),
			   INTEGER(lost != NULL ? lost->entries : 0),
			   INTEGER(lost != NULL ? lost->exits : 0),
			   IF(let_go_ns != NULL, let_go_ns != NULL ? *let_go_ns - d->start_ns : 0),
			   TEXT(build_id[0] != '\0' ? build_id : NULL));
}

static int put_functions(struct xsp_export *x)
{
	const struct database *d = x->state;
	const struct xsp_capture_lost *losts = NULL;
	const struct xsp_capture_let_go *gone = NULL;
	const size_t lost_count = xsp_capture_losts(x->view.reader, &losts),
		     gone_count = xsp_capture_let_gos(x->view.reader, &gone);
	struct xsp_u64map lost_of = {0}, gone_of = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < lost_count; i++)
		rc = xsp_u64map_set(&lost_of, losts[i].probe, (uint32_t)i);
	for (size_t i = 0; rc == 0 && i < gone_count; i++)
		rc = xsp_u64map_set(&gone_of, gone[i].probe, (uint32_t)i);
	for (size_t i = 0; rc == 0 && i < d->probe_count; i++) {
		const uint32_t *lost = xsp_u64map_get(&lost_of, i),
			       *let_go = xsp_u64map_get(&gone_of, i);
		if (d->probes[i].kind != XSP_PROBE_MARK)
			rc = put_function(x, &d->probes[i], lost != NULL ? &losts[*lost] : NULL,
					  let_go != NULL ? &gone[*let_go].time_ns : NULL);
	}
	xsp_u64map_free(&lost_of);
	xsp_u64map_free(&gone_of);
	return rc;
}

static int put_stats(struct database *d, const char *part, const struct xsp_run_stats *stats)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < stats->count; i++)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_LOSSES, TEXT(part), TEXT(stats->list[i].key),
				 INTEGER(stats->list[i].value));
	return rc;
}

static int put_losses(struct xsp_export *x)
{
	struct database *d = x->state;
	const struct xsp_gpu_counts *gpu = xsp_timeline_gpu(x->view.timeline);
	struct xsp_run_stats stats;

	xsp_run_stats_losses(x->view.reader, &stats);
	int rc = put_stats(d, "losses", &stats);
	xsp_run_stats_timeline(x->view.reader, x->view.timeline, &stats);
	if (rc == 0)
		rc = put_stats(d, "timeline", &stats);
	xsp_run_stats_overhead(x->view.reader, &stats);
	if (rc == 0)
		rc = put_stats(d, "overhead", &stats);
	if (rc < 0 || gpu == NULL)
		return rc;
	stats = (struct xsp_run_stats){.list = {{"lost_records", gpu->lost},
						{"dropped_records", gpu->dropped},
						{"malformed", gpu->malformed},
						{"unlinked", gpu->unlinked},
						{"kernels_without_name", gpu->unnamed},
						{"windows_without_end", gpu->unfinished},
						{"errors", gpu->errors}},
				       .count = 7};
	return put_stats(d, "gpu", &stats);
}

static int put_windows(struct xsp_export *x)
{
	struct database *d = x->state;
	const struct xsp_capture_window *w = NULL;
	const size_t count = xsp_capture_windows(x->view.reader, &w);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_WINDOWS, at(d, w[i].start_ns),
				 at(d, w[i].end_ns));
	return rc;
}

/* ---- what is known at the begin ---- */

static int put_name_tables(struct database *d)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->categories.count; i++)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_CATEGORIES, INTEGER(i),
				 TEXT(d->categories.names[i]));
	for (unsigned i = 0; rc == 0 && i < XSP_ENDINGS; i++)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_ENDINGS, INTEGER(i), TEXT(xsp_ending_name(i)));
	return rc;
}

static int put_meta(struct xsp_export *x)
{
	static const char *const infos[] = {"arguments", "filters", "kernel", "version",     "host",
					    "counters",	 "samples", "waits",  "max overhead"};
	struct database *d = x->state;
	int rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT("schema_version"), TEXT(XSP_SQL_VERSION));

	if (rc == 0)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT("xsptrace_version"),
				 TEXT(XSP_VERSION));
	for (size_t i = 0; rc == 0 && i < sizeof(infos) / sizeof(infos[0]); i++) {
		const char *value = xsp_capture_info(x->view.reader, infos[i]);
		if (value != NULL)
			rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT(infos[i]), TEXT(value));
	}
	if (rc == 0 && xsp_timeline_cut_text(x->view.timeline) != NULL)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT("cut"),
				 TEXT(xsp_timeline_cut_text(x->view.timeline)));
	for (unsigned i = 0; rc == 0 && i < XSP_GAPS; i++) {
		uint64_t count;
		const char *value = xsp_capture_gap(x->view.reader, i, &count);
		if (value != NULL)
			rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT(xsp_capture_gap_key(i)),
					 TEXT(value));
	}
	if (rc == 0)
		rc = XSP_SQL_PUT(d->rows, XSP_SQL_META, TEXT("end"),
				 TEXT(xsp_run_how_ended(x->view.reader)));
	return rc;
}

static int put_run(struct xsp_export *x)
{
	struct database *d = x->state;

	return XSP_SQL_PUT(
		d->rows, XSP_SQL_RUNS, INTEGER(xsp_capture_realtime(x->view.reader, d->start_ns)),
		INTEGER(d->length_ns), INTEGER(xsp_timeline_recorded_ns(x->view.timeline)),
		TEXT(xsp_capture_info(x->view.reader, "host")),
		INTEGER(xsp_capture_how_ended(x->view.reader) == XSP_CAPTURE_COMPLETE));
}

#ifdef XSP_WITHOUT_SQLITE
#define SQLITE NULL
#define SQLITE_MISSING "this xsptrace was built without SQLite (package libsqlite3-dev)"
#else
#define SQLITE (&xsp_sql_sqlite)
#define SQLITE_MISSING NULL
#endif
#ifdef XSP_WITHOUT_CURL
#define CLICKHOUSE NULL
#define CLICKHOUSE_MISSING                                                                         \
	"this xsptrace was built without libcurl (package libcurl4-openssl-dev; a static one "     \
	"never has it)"
#else
#define CLICKHOUSE (&xsp_sql_clickhouse)
#define CLICKHOUSE_MISSING NULL
#endif

static int sql_begin(struct xsp_export *x)
{
	struct database *d = calloc(1, sizeof(*d));
	uint64_t end_ns;

	if (d == NULL)
		return -ENOMEM;
	x->state = d;
	d->probe_count = xsp_capture_probes(x->view.reader, &d->probes);
	xsp_capture_window(x->view.reader, &d->start_ns, &end_ns);
	xsp_timeline_window(x->view.timeline, &d->from_ns, &end_ns);
	d->length_ns = end_ns > d->from_ns ? end_ns - d->from_ns : 0;
	int rc = xsp_thread_rows_new(&x->view, &d->thread_rows);
	if (rc == 0)
		rc = xsp_categories_init(&d->categories, &x->view);
	if (rc == 0)
		rc = xsp_sql_new(x, x->format->scheme != NULL ? CLICKHOUSE : SQLITE, &d->rows);
	if (rc == 0)
		rc = put_name_tables(d);
	return rc == 0 ? put_meta(x) : rc;
}

static int sql_end(struct xsp_export *x)
{
	static int (*const parts[])(struct xsp_export * x) = {
		put_run, put_processes, put_threads, put_functions, put_losses, put_windows,
	};
	struct database *d = x->state;
	int rc = xsp_states_end(x->view.timeline, d->thread_rows, put_state, x);

	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = parts[i](x);
	return rc == 0 ? xsp_sql_complete(d->rows) : rc;
}

static void sql_discard(struct xsp_export *x)
{
	struct database *d = x->state;

	if (d == NULL)
		return;
	xsp_sql_free(d->rows);
	xsp_thread_rows_free(d->thread_rows);
	xsp_categories_clear(&d->categories);
	xsp_u64map_free(&d->held);
	free(d);
	x->state = NULL;
}

/* Both take the same rows. */
#define ROWS                                                                                       \
	.begin = sql_begin, .span = sql_span, .call = sql_call, .gpu = sql_gpu,                    \
	.memory = sql_memory, .value = sql_value, .wait = sql_wait, .sample = sql_sample,          \
	.end = sql_end, .discard = sql_discard

const struct xsp_export_format xsp_format_sql = {
	.suffix = ".db",
	.title = "SQLite database",
	.missing = SQLITE_MISSING,
	.file_only = true,
	ROWS,
};

const struct xsp_export_format xsp_format_clickhouse = {
	.suffix = "clickhouse://HOST/DATABASE",
	.title = "ClickHouse database",
	.scheme = "clickhouse",
	.missing = CLICKHOUSE_MISSING,
	ROWS,
};
