/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rows/thread_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/rows/search.h"
#include "base/rows/tally.h"

struct process {
	uint32_t pid, ns_pid;
	bool root_ids;
	bool seen; /* has a row */
};

struct xsp_thread_rows {
	struct xsp_view *v;
	XSP_TALLY(struct xsp_thread_row *) rows; /* by pid, tid and number, mixed */
	struct xsp_thread_row *last;
	struct process *processes;
	size_t process_count, process_capacity;
	size_t sorted; /* the first so many come from definitions, sorted by pid */
	uint32_t fibers;
};

static uint32_t display_pid(const struct process *p)
{
	return p->root_ids ? p->pid : p->ns_pid;
}

static XSP_ORDER(by_pid, struct process, XSP_RISING(pid));
static XSP_ORDER(by_ns_pid, struct process, XSP_RISING(ns_pid) ?: XSP_RISING(pid));

static struct process *find_process(const struct xsp_thread_rows *r, uint32_t pid)
{
	struct process key = {.pid = pid};
	struct process *found = NULL;

	if (r->sorted)
		found = bsearch(&key, r->processes, r->sorted, sizeof(key), by_pid);
	for (size_t i = r->sorted; i < r->process_count && found == NULL; i++)
		if (r->processes[i].pid == pid)
			found = &r->processes[i];
	return found;
}

/* Marks processes that share their number with another, until the root ids that this adds collide with none. It ends:
 * each round marks at least one. */
static void settle(struct process *p, size_t count)
{
	bool changed = true;

	qsort(p, count, sizeof(*p), by_ns_pid);
	for (size_t i = 1; i < count; i++)
		if (p[i].ns_pid == p[i - 1].ns_pid)
			p[i].root_ids = p[i - 1].root_ids = true;
	while (changed) {
		changed = false;
		for (size_t i = 0; i < count; i++) {
			if (!p[i].root_ids)
				continue;
			size_t low = 0;
			XSP_LOWER_BOUND(low, count, k, p[k].ns_pid < p[i].pid);
			if (low < count && p[low].ns_pid == p[i].pid && !p[low].root_ids) {
				p[low].root_ids = true;
				changed = true;
			}
		}
	}
}

static int load_processes(struct xsp_thread_rows *r)
{
	const struct xsp_capture_process *defined = NULL;
	size_t n = xsp_capture_processes(r->v->reader, &defined), kept = 0;

	if (n == 0)
		return 0;
	r->processes = calloc(n, sizeof(*r->processes));
	if (r->processes == NULL)
		return -ENOMEM;
	r->process_capacity = n;
	for (size_t i = 0; i < n; i++)
		r->processes[i] = (struct process){
			.pid = defined[i].pid,
			.ns_pid = defined[i].ns_pid ? defined[i].ns_pid : defined[i].pid,
		};
	/* exec defines a process again: keeps one */
	qsort(r->processes, n, sizeof(*r->processes), by_pid);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || r->processes[i].pid != r->processes[kept - 1].pid)
			r->processes[kept++] = r->processes[i];
	r->process_count = kept;
	settle(r->processes, kept);
	qsort(r->processes, kept, sizeof(*r->processes), by_pid);
	r->sorted = kept;
	/* before a GPU takes the number: it is as low as those in containers */
	for (size_t i = 0; i < kept && r->v->job == NULL; i++)
		xsp_view_pid(r->v, display_pid(&r->processes[i]));
	return 0;
}

int xsp_thread_rows_new(struct xsp_view *v, struct xsp_thread_rows **out)
{
	struct xsp_thread_rows *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (r == NULL)
		return -ENOMEM;
	r->v = v;
	const int rc = load_processes(r);
	if (rc < 0) {
		xsp_thread_rows_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void xsp_thread_rows_free(struct xsp_thread_rows *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->rows.count; i++)
		free(r->rows.rows[i]);
	xsp_tally_free(&r->rows);
	free(r->processes);
	free(r);
}

/* A process without a definition: its first thread makes it known. */
static struct process *add_process(struct xsp_thread_rows *r, uint32_t pid, uint32_t ns_pid)
{
	if (xsp_grow(&r->processes, &r->process_capacity, r->process_count + 1) < 0)
		return NULL;
	struct process new = {.pid = pid, .ns_pid = ns_pid ? ns_pid : pid};
	for (size_t i = 0; i < r->process_count; i++)
		if (display_pid(&r->processes[i]) == new.ns_pid)
			new.root_ids = true;
	r->processes[r->process_count] = new;
	return &r->processes[r->process_count++];
}

/* Namespace ids of a thread: from the timeline, which follows renames and forks, or from the capture's definitions. */
static void ns_ids(const struct xsp_thread_rows *r, uint32_t pid, uint32_t tid, uint32_t *ns_pid,
		   uint32_t *ns_tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(r->v->timeline, tid);
	const struct xsp_capture_thread *defined = NULL;

	*ns_pid = t ? t->ns_pid : 0;
	*ns_tid = t ? t->ns_tid : 0;
	if (*ns_tid == 0) {
		size_t n = xsp_capture_threads(r->v->reader, &defined);
		for (size_t i = 0; i < n; i++)
			if (defined[i].tid == tid && defined[i].pid == pid)
				*ns_tid = defined[i].ns_tid;
	}
}

static struct xsp_thread_row *make_row(struct xsp_thread_rows *r, uint32_t pid, uint32_t tid,
				       uint32_t number)
{
	uint32_t ns_pid, ns_tid;

	ns_ids(r, pid, tid, &ns_pid, &ns_tid);
	struct process *process = find_process(r, pid);
	if (process == NULL)
		process = add_process(r, pid, ns_pid);
	struct xsp_thread_row *row = process ? calloc(1, sizeof(*row)) : NULL;
	if (row == NULL)
		return NULL;
	row->root_pid = pid;
	row->root_tid = tid;
	row->number = number;
	row->pid = xsp_view_pid(r->v, display_pid(process));
	row->thread_tid = process->root_ids || ns_tid == 0 ? tid : ns_tid;
	if (tid == pid) /* the main thread has its process's number */
		row->thread_tid = row->pid;
	row->first_of_process = !process->seen;
	process->seen = true;
	row->tid = number == 0 ? row->thread_tid : XSP_FIBER_TID + r->fibers++;
	row->index = (uint32_t)r->rows.count;
	return row;
}

struct xsp_thread_row *xsp_thread_rows_get(struct xsp_thread_rows *r, const struct xsp_span *span)
{
	uint32_t pid = span->pid, tid = span->tid, number = span->row;
	struct xsp_thread_row *row = r->last;

	if (row && row->root_tid == tid && row->number == number && row->root_pid == pid)
		return row;
	uint64_t key = xsp_u64_mix((uint64_t)pid << 32 | tid) + number;
	struct xsp_thread_row **known;
	/* the key is a hash: whoever has it already may be another one */
	while ((known = xsp_tally_find(&r->rows, key)) != NULL &&
	       ((*known)->root_tid != tid || (*known)->root_pid != pid ||
		(*known)->number != number))
		key++;
	row = known != NULL ? *known : make_row(r, pid, tid, number);
	if (known == NULL && (row == NULL || xsp_tally_row(&r->rows, key, &row) == NULL)) {
		free(row);
		return NULL;
	}
	r->last = row;
	return row;
}

size_t xsp_thread_rows_count(const struct xsp_thread_rows *r)
{
	return r->rows.count;
}

struct xsp_thread_row *xsp_thread_rows_at(const struct xsp_thread_rows *r, size_t index)
{
	return r->rows.rows[index];
}

uint32_t xsp_thread_rows_pid(const struct xsp_thread_rows *r, uint32_t root_pid)
{
	const struct process *p = find_process(r, root_pid);

	return xsp_view_pid(r->v, p != NULL ? display_pid(p) : root_pid);
}

bool xsp_thread_rows_uses_root_ids(const struct xsp_thread_rows *r, uint32_t root_pid)
{
	const struct process *p = find_process(r, root_pid);

	return p && p->root_ids && p->pid != p->ns_pid;
}

const char *xsp_thread_rows_comm(const struct xsp_view *v, uint32_t pid, uint32_t tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(v->timeline, tid);
	const struct xsp_capture_thread *defined = NULL;
	const char *comm = t && t->comm ? t->comm : "";

	if (*comm || (t != NULL && t->pid == pid)) /* the timeline has looked in the definitions */
		return comm;
	size_t n = xsp_capture_threads(v->reader, &defined);
	for (size_t i = 0; i < n; i++)
		if (defined[i].tid == tid && defined[i].pid == pid && defined[i].comm)
			comm = defined[i].comm;
	return comm;
}
