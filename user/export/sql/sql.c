/* SPDX-License-Identifier: BSD-2-Clause */
/* sql.c - writes all that a capture holds as rows of a database; docs/sql.md lists its tables. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog/wait_reasons.h"
#include "export/export_private.h"
#include "export/sql/tables.h"
#include "model/rows/counters.h"
#include "model/rows/memory_track.h"
#include "model/rows/states.h"
#include "timeline/cut.h"
#include "timeline/gpu_category.h"

/* Rows of a thread under which stacks of other things than spans are looked up (struct
 * xsp_span.row). */
#define SAMPLES_ROW (UINT32_MAX - 1)
#define WAITS_ROW (UINT32_MAX - 2)

/* A stack, and whether it holds another span of the same name. */
#define HELD(stack, recursive) ((stack) << 1 | (recursive))
_Static_assert(XSP_STACKS_MAX < 1U << 31, "the number of a stack fits");

#define INTEGER xsp_sql_integer
#define IF xsp_sql_if
#define TEXT xsp_sql_text
#define NONE xsp_sql_if(false, 0)
#define AT(ns) xsp_sql_at(&d->open, (ns))

/* Calls in a loop have the same answer: remember it, as stacks can be deep. */
#define KNOWN 256U
struct known_recursion {
	uint64_t parent; /* 0: the entry is empty */
	xsp_name_id name;
	bool recursive;
};

struct database {
	struct xsp_database open; /* first: tables.h */
	size_t probe_count;
	uint64_t from_ns; /* start of the range that is written */
	/* for CUDA API calls that come again later, by serial: HELD() */
	struct xsp_u64map held;
	struct known_recursion known[KNOWN];
};

/* The thread with an id of the root namespace; NULL in SQL if it is not known. */
static struct xsp_sql_value other_thread(const struct xsp_export *x, struct xsp_sql *rows,
					 uint32_t tid)
{
	const struct xsp_timeline_thread *t =
		tid != 0 ? xsp_timeline_thread(x->view.timeline, tid) : NULL;

	return t != NULL ? xsp_sql_thread(rows, t->pid, t->tid) : NONE;
}

/* ---- spans ---- */

/* Compares texts, as the database counts names by their texts. */
static bool is_recursive(struct database *d, const struct xsp_span *s)
{
	struct xsp_stacks *names = xsp_sql_stacks(d->open.rows);
	struct known_recursion *k = &d->known[xsp_u64_mix(s->parent << 20 ^ s->name) % KNOWN];
	xsp_name_id own = 0, around = 0;
	bool recursive = false;

	if (s->parent != 0 && k->parent == s->parent && k->name == s->name)
		return k->recursive;
	int rc = xsp_stacks_same_name(names, s->name, &own);
	for (uint32_t i = 0; rc == 0 && i < s->depth && !recursive; i++) {
		rc = xsp_stacks_same_name(names, s->ancestors[i], &around);
		recursive = rc == 0 && around == own;
	}
	xsp_sql_note(d->open.rows, rc);
	*k = (struct known_recursion){s->parent, s->name, recursive};
	return recursive;
}

struct counting {
	struct xsp_sql *rows;
	uint64_t span;
};

static int put_counter(void *ctx, const char *name, uint64_t value)
{
	const struct counting *c = ctx;
	const struct xsp_sql_value number = xsp_sql_other_name(c->rows, name);

	XSP_SQL_PUT(c->rows, XSP_SQL_COUNTERS, INTEGER(c->span), number, INTEGER(value));
	return 0;
}

/* What belongs to a span and is not in struct xsp_span. */
struct around {
	unsigned category; /* of struct xsp_categories */
	bool recursive;
	uint32_t stack; /* 0: not known */
	uint32_t correlation;
	uint64_t op; /* id of the operator around a CUDA call; 0: none */
};

static int put_span(struct xsp_export *x, const struct xsp_span *s, const struct around *a)
{
	struct database *d = x->state;
	struct xsp_sql *rows = d->open.rows;
	const bool measured = xsp_span_has_duration(s);
	const struct xsp_sql_value thread = xsp_sql_thread(rows, s->pid, s->tid);
	const struct xsp_sql_value name = xsp_sql_name(rows, s->name);
	const struct xsp_sql_value line = s->details != NULL ? xsp_sql_line(rows, s) : NONE;

	XSP_SQL_PUT(rows, XSP_SQL_SPANS, INTEGER(s->serial + 1), IF(s->parent != 0, s->parent),
		    thread, INTEGER(s->row), INTEGER(a->category), name,
		    IF(s->probe < d->probe_count, s->probe), IF(a->stack != 0, a->stack), line,
		    INTEGER(s->depth), INTEGER(a->recursive), INTEGER(xsp_ending_of(s)),
		    AT(s->start_ns), AT(s->end_ns), IF(measured, s->self_ns),
		    IF(measured && s->cpu_ns != XSP_CPU_UNKNOWN, s->cpu_ns),
		    IF(measured && s->self_cpu_ns != XSP_CPU_UNKNOWN, s->self_cpu_ns),
		    INTEGER(s->probe_ns), IF(a->correlation != 0, a->correlation),
		    IF(a->op != 0, a->op), INTEGER((s->flags & XSP_SPAN_CUT) != 0));
	if (s->details != NULL)
		xsp_counters_of(&x->view, s, put_counter,
				&(struct counting){.rows = rows, .span = s->serial + 1});
	return xsp_sql_error(rows);
}

static int sql_span(struct xsp_export *x, const struct xsp_span *s)
{
	struct database *d = x->state;
	struct around a = {.category = xsp_category_of(&d->open.categories, s),
			   .recursive = is_recursive(d, s)};
	uint32_t nearest;

	xsp_sql_note(d->open.rows,
		     xsp_stacks_find(xsp_sql_stacks(d->open.rows), s, &a.stack, &nearest));
	if (a.category != XSP_CUDA_RUNTIME_CALL && a.category != XSP_CUDA_DRIVER_CALL)
		return put_span(x, s, &a);
	/* the call comes again, and its ancestors are not known then */
	if (s->call_follows)
		return xsp_u64map_set(&d->held, s->serial, HELD(a.stack, (uint32_t)a.recursive));
	a.op = s->op != 0 ? s->op : s->user;
	return put_span(x, s, &a);
}

/* A call without a probe: CUPTI knows its name, and nothing of what is around it. */
static int put_call(struct database *d, const struct xsp_gpu_call *c, enum xsp_category category)
{
	struct xsp_sql *rows = d->open.rows;
	const struct xsp_sql_value thread = xsp_sql_thread(rows, c->pid, c->tid);
	const struct xsp_sql_value name =
		xsp_sql_other_name(rows, c->name[0] != '\0' ? c->name : "CUDA API call");

	XSP_SQL_PUT(rows, XSP_SQL_SPANS, NONE, NONE, thread, INTEGER(c->row), INTEGER(category),
		    name, NONE, NONE, NONE, NONE, INTEGER(0), INTEGER(XSP_RETURNED),
		    AT(c->start_ns), AT(c->end_ns), NONE, NONE, NONE, NONE,
		    IF(c->correlation != 0, c->correlation), IF(c->external != 0, c->external),
		    INTEGER(c->cut));
	return xsp_sql_error(rows);
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
		return put_call(d, c, a.category);
	const uint32_t *held = xsp_u64map_get(&d->held, c->span->serial);
	if (held != NULL) {
		a.stack = *held >> 1;
		a.recursive = *held & 1;
	}
	xsp_u64map_remove(&d->held, c->span->serial);
	return put_span(x, c->span, &a);
}

/* ---- samples and waits ---- */

/* NULL in SQL: there is no stack, or no room for it. */
static struct xsp_sql_value stack_of(struct xsp_sql *rows, uint32_t pid, uint32_t tid, uint32_t row,
				     const uint32_t *path, uint32_t length)
{
	uint32_t nearest, stack = 0;

	if (length == 0)
		return NONE;
	const struct xsp_span last = {
		.pid = pid,
		.tid = tid,
		.row = row,
		.name = path[length - 1],
		.path = path,
		.path_length = length - 1,
	};
	xsp_sql_note(rows, xsp_stacks_find(xsp_sql_stacks(rows), &last, &stack, &nearest));
	return IF(stack != 0, stack);
}

/* For a field that holds 1 + a name's id. */
static struct xsp_sql_value name_if(struct xsp_sql *rows, uint32_t id)
{
	return id != 0 ? xsp_sql_name(rows, id - 1) : NONE;
}

static int sql_sample(struct xsp_export *x, const struct xsp_sample *s)
{
	struct database *d = x->state;
	struct xsp_sql *rows = d->open.rows;
	const struct xsp_sql_value thread = xsp_sql_thread(rows, s->pid, s->tid);
	const struct xsp_sql_value stack =
		stack_of(rows, s->pid, s->tid, SAMPLES_ROW, s->path, s->path_length);
	const struct xsp_sql_value name = xsp_sql_name(rows, s->path[s->path_length - 1]);
	const struct xsp_sql_value file = name_if(rows, s->file != 0 ? s->file + 1 : 0);
	const struct xsp_sql_value line = name_if(rows, s->line);

	XSP_SQL_PUT(rows, XSP_SQL_SAMPLES, thread, AT(s->time_ns), INTEGER(s->period_ns), stack,
		    name, file, line, INTEGER(s->kernel));
	return xsp_sql_error(rows);
}

static int put_state(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	const struct xsp_export *x = ctx;
	struct database *d = x->state;
	struct xsp_sql *rows = d->open.rows;
	const struct xsp_wait *w = s->wait;
	const struct xsp_sql_value thread = xsp_sql_thread(rows, row->root_pid, row->root_tid);
	const struct xsp_sql_value state = TEXT(xsp_state_name(s->state));
	const bool blocked = s->state == XSP_STATE_BLOCKED;
	char number[16];

	if (w == NULL) {
		XSP_SQL_PUT(rows, XSP_SQL_STATES, thread, state, AT(s->start_ns), AT(s->end_ns),
			    INTEGER(s->finished), INTEGER(s->short_ns), NONE, NONE, NONE, NONE,
			    NONE, NONE, NONE, NONE, NONE);
		return xsp_sql_error(rows);
	}
	const struct xsp_sql_value stack =
		stack_of(rows, w->pid, w->tid, WAITS_ROW, w->path, w->path_length);
	const struct xsp_sql_value holder = other_thread(x, rows, w->owner);
	const struct xsp_sql_value waker = other_thread(x, rows, w->waker);
	const struct xsp_sql_value inside = name_if(rows, w->inside);
	const struct xsp_sql_value place = name_if(rows, w->place);
	const char *call = w->syscall >= 0 ? xsp_wait_syscall((unsigned)w->syscall) : NULL;
	snprintf(number, sizeof(number), "%" PRId32, w->syscall);
	XSP_SQL_PUT(rows, XSP_SQL_STATES, thread, state, AT(s->start_ns), AT(s->end_ns),
		    INTEGER(s->finished), NONE, TEXT(blocked ? xsp_wait_class_name(w->why) : NULL),
		    TEXT(!blocked || w->syscall < 0 ? NULL
			 : call != NULL		    ? call
						    : number),
		    IF(blocked && w->syscall >= 0,
		       w->why == XSP_WAIT_NETWORK ? (uint32_t)w->argument : w->argument),
		    holder, waker, INTEGER((w->flags & XSP_WAIT_INTERRUPT) != 0), stack, inside,
		    place);
	return xsp_sql_error(rows);
}

static int sql_wait(struct xsp_export *x, const struct xsp_wait *w)
{
	struct database *d = x->state;
	struct xsp_thread_row *row = xsp_thread_rows_of(xsp_sql_thread_rows(d->open.rows), w->pid,
							w->tid, XSP_STATES_ROW);

	if (row == NULL)
		return -ENOMEM;
	int rc = xsp_states_wait(x->view.timeline, row, w, put_state, x);
	return rc < 0 ? rc : 0;
}

/* ---- GPU ---- */

/* Values that only some kinds have. */
struct sizes {
	struct xsp_sql_value bytes, queued, grid[3], block[3], registers, shared, graph;
};

static struct sizes sizes_of(const struct database *d, const struct xsp_gpu_activity *a)
{
	const struct xsp_gpu_kernel *k = a->record;
	const struct xsp_gpu_memcpy *c = a->record;
	const struct xsp_gpu_memset *m = a->record;
	struct sizes s = {.bytes = NONE};

	if (a->kind == XSP_GPU_IS_MEMCPY) {
		s.bytes = INTEGER(c->bytes);
		s.graph = IF(c->graph != 0, c->graph);
	} else if (a->kind == XSP_GPU_IS_MEMSET) {
		s.bytes = INTEGER(m->bytes);
		s.graph = IF(m->graph != 0, m->graph);
	} else if (a->kind == XSP_GPU_IS_GRAPH) {
		s.graph = INTEGER(((const struct xsp_gpu_graph *)a->record)->graph);
	} else if (a->kind == XSP_GPU_IS_KERNEL) {
		for (int i = 0; i < 3; i++) {
			s.grid[i] = INTEGER(k->grid[i]);
			s.block[i] = INTEGER(k->block[i]);
		}
		s.queued = k->queued_ns != 0 ? AT(k->queued_ns) : NONE;
		s.registers = INTEGER(k->registers);
		s.shared = INTEGER((uint64_t)k->static_shared + k->dynamic_shared);
		s.graph = IF(k->graph != 0, k->graph);
	}
	return s;
}

static int sql_gpu(struct xsp_export *x, const struct xsp_gpu_activity *a)
{
	struct database *d = x->state;
	char buffer[XSP_GPU_NAME_SIZE];
	const bool overhead = a->kind == XSP_GPU_IS_OVERHEAD;
	uint64_t start = a->start_ns, end = a->end_ns;

	if (a->kind == XSP_GPU_IS_EVENT) {
		start = end = ((const struct xsp_gpu_cuda_event *)a->record)->device_ns;
		if (start == 0) /* CUPTI did not say when */
			return 0;
	}
	const struct sizes s = sizes_of(d, a);
	XSP_SQL_PUT(d->open.rows, XSP_SQL_GPU, TEXT(xsp_gpu_category(a->kind)),
		    xsp_sql_other_name(d->open.rows, xsp_gpu_activity_name(a, buffer)),
		    INTEGER(a->pid), IF(!overhead, a->device), IF(!overhead, a->context),
		    IF(!overhead && a->stream != XSP_GPU_NO_ID, a->stream), AT(start), AT(end),
		    IF(a->correlation != 0, a->correlation), IF(a->external != 0, a->external),
		    s.bytes, s.queued, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
		    s.block[2], s.registers, s.shared, s.graph, INTEGER(a->cut));
	return xsp_sql_error(d->open.rows);
}

static int sql_value(struct xsp_export *x, const struct xsp_value *v)
{
	struct database *d = x->state;
	struct xsp_sql *rows = d->open.rows;
	const struct xsp_sql_value value = {
		.type = isfinite(v->value) ? XSP_SQL_REAL : XSP_SQL_NULL, .real = v->value};
	const struct xsp_sql_value thread = xsp_sql_thread(rows, v->pid, v->tid);

	XSP_SQL_PUT(rows, XSP_SQL_VALUES, AT(v->time_ns), thread, xsp_sql_name(rows, v->name),
		    value);
	return xsp_sql_error(rows);
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

	XSP_SQL_PUT(d->open.rows, XSP_SQL_MEMORY, AT(e->time_ns), INTEGER(e->pid),
		    xsp_sql_thread(d->open.rows, e->pid, e->tid),
		    IF(e->device != XSP_GPU_NO_ID, e->device), TEXT(pools[e->pool]),
		    INTEGER(e->address), INTEGER((uint64_t)e->bytes),
		    IF(xsp_memory_track(&x->view, e, track), e->total), IF(e->op != 0, e->op));
	return xsp_sql_error(d->open.rows);
}

/* ---- the formats ---- */

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
	struct database *d = x->state;
	const struct xsp_capture_probe *probes;
	uint64_t end_ns;

	d->probe_count = xsp_capture_probes(x->view.reader, &probes);
	xsp_capture_window(x->view.reader, &d->open.start_ns, &end_ns);
	xsp_timeline_window(x->view.timeline, &d->from_ns, &end_ns);
	d->open.length_ns = end_ns > d->from_ns ? end_ns - d->from_ns : 0;
	int rc = xsp_categories_init(&d->open.categories, &x->view);
	if (rc == 0)
		rc = xsp_sql_new(x, x->format->scheme != NULL ? CLICKHOUSE : SQLITE, &d->open.rows);
	if (rc < 0)
		return rc;
	xsp_sql_put_first(x);
	return xsp_sql_error(d->open.rows);
}

static int sql_end(struct xsp_export *x)
{
	struct database *d = x->state;

	xsp_sql_note(d->open.rows, xsp_states_end(x->view.timeline,
						  xsp_sql_thread_rows(d->open.rows), put_state, x));
	xsp_sql_put_last(x);
	return xsp_sql_complete(d->open.rows);
}

static void sql_discard(struct xsp_export *x)
{
	struct database *d = x->state;

	xsp_sql_free(d->open.rows);
	xsp_categories_clear(&d->open.categories);
	xsp_u64map_free(&d->held);
}

/* Both take the same rows. */
#define ROWS                                                                                       \
	.begin = sql_begin, .span = sql_span, .call = sql_call, .gpu = sql_gpu,                    \
	.memory = sql_memory, .value = sql_value, .wait = sql_wait, .sample = sql_sample,          \
	.end = sql_end, .discard = sql_discard, .state_size = sizeof(struct database)

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
