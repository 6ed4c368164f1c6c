/* SPDX-License-Identifier: BSD-2-Clause */
/* ranks.c - what each capture holds about its ranks: collectives, waits for them, steps, calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "base/saturate.h"
#include "base/text.h"
#include "catalog/gpu/kernels.h"
#include "catalog/job_variables.h"
#include "catalog/providers.h"
#include "model/health.h"
#include "model/pass.h"
#include "timeline/torch_args.h"

/* The capture that is being read. */
struct collecting {
	struct xsp_ranks *job;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	bool gpu; /* the capture has GPU activity */
	struct xsp_torch_args *arguments;
	struct xsp_torch_values *values;
	const struct xsp_capture_probe *probes;
	struct xsp_collective_symbol *roles; /* by probe */
	size_t probe_count;
	struct xsp_u64map call_of; /* hash of a shown name → probe of a call */
	uint32_t *names; /* by name id: index of the job's name, or NO_INDEX */
	size_t name_count, name_capacity;
	struct xsp_u64map rank_of; /* pid → index of the job's rank */
	struct xsp_u64map asks; /* threads that ask for collectives which other threads run */
	/* by address of a kernel's name */
	XSP_TALLY(struct kernel_name {
		uint32_t name;
		bool communicates;
	})
	kernels;
	size_t first_rank;
};

int xsp_ranks_new(struct xsp_ranks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -ENOMEM;
}

void xsp_ranks_mark_steps(struct xsp_ranks *j, const char *marker)
{
	j->marker = marker;
}

static void free_collecting(struct collecting *c)
{
	if (c == NULL)
		return;
	xsp_torch_args_free(c->arguments);
	xsp_u64map_free(&c->call_of);
	xsp_u64map_free(&c->rank_of);
	xsp_u64map_free(&c->asks);
	xsp_tally_free(&c->kernels);
	free(c->values);
	free(c->roles);
	free(c->names);
	free(c);
}

void xsp_ranks_free(struct xsp_ranks *j)
{
	if (j == NULL)
		return;
	free_collecting(j->now);
	for (size_t i = 0; i < j->count; i++)
		xsp_ranks_free_rank(&j->ranks[i]);
	for (size_t i = 0; i < j->groups.count; i++)
		free(j->groups.rows[i].members.rows);
	xsp_tally_free(&j->names);
	xsp_arena_free(&j->text);
	free(j->ranks);
	free(j->ids);
	free(j->clocks);
	free(j->turns);
	free(j->groups.rows);
	xsp_tally_free(&j->collectives);
	free(j);
}

/* ---- names ---- */

/* The job's index of a name of this capture, or -ENOMEM. */
static long name_of(struct collecting *c, xsp_name_id id)
{
	if (xsp_grow(&c->names, &c->name_capacity, (size_t)id + 1) < 0)
		return -ENOMEM;
	for (; c->name_count <= id; c->name_count++)
		c->names[c->name_count] = NO_INDEX;
	if (c->names[id] == NO_INDEX) {
		const long name = xsp_ranks_name(c->job, xsp_timeline_name(c->timeline, id));
		if (name < 0)
			return name;
		c->names[id] = (uint32_t)name;
	}
	return c->names[id];
}

/* ---- ranks ---- */

static long variable(const struct xsp_capture_process *p, const char *name)
{
	uint32_t value;

	return p != NULL && xsp_capture_variable_number(p, name, &value) ? (long)value : -1;
}

/* The last definition counts: an exec adds one. */
static const struct xsp_capture_process *process_of(const struct collecting *c, uint32_t pid)
{
	const struct xsp_capture_process *all = NULL, *found = NULL;
	const size_t n = xsp_capture_processes(c->reader, &all);

	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			found = &all[i];
	return found;
}

static int64_t real(const struct collecting *c, uint64_t ns)
{
	return (int64_t)xsp_capture_realtime(c->reader, ns);
}

static void describe(const struct collecting *c, struct rank *k)
{
	const struct xsp_capture_process *p = process_of(c, k->pid);
	const char *host = xsp_capture_info(c->reader, "host");
	const struct xsp_capture_window *windows;
	uint64_t from = 0, to = 0;

	k->capture = c->job->captures - 1;
	k->number = variable(p, XSP_JOB_RANK);
	k->world = variable(p, XSP_JOB_WORLD_SIZE);
	k->named = k->number >= 0;
	k->display_pid = p != NULL && p->ns_pid != 0 ? p->ns_pid : k->pid;
	snprintf(k->host, sizeof(k->host), "%s", host != NULL ? host : "");
	xsp_timeline_window(c->timeline, &from, &to);
	k->window_start_ns = real(c, from);
	k->window_end_ns = real(c, to > from ? to : from);
	k->recorded_ns = (int64_t)xsp_timeline_recorded_ns(c->timeline);
	k->lossy = xsp_health_of(c->reader).events_lost > 0;
	k->windows = xsp_capture_windows(c->reader, &windows) > 0;
}

static struct rank *rank_of(struct collecting *c, uint32_t pid)
{
	struct xsp_ranks *j = c->job;
	const uint32_t *at = xsp_u64map_get(&c->rank_of, pid);

	if (at != NULL)
		return &j->ranks[*at];
	if (xsp_u64map_set(&c->rank_of, pid, (uint32_t)j->count) < 0 ||
	    XSP_APPEND(j->ranks, j->capacity, j->count,
		       (struct rank){.pid = pid, .host_index = NO_INDEX}) < 0)
		return NULL;
	describe(c, &j->ranks[j->count - 1]);
	return &j->ranks[j->count - 1];
}

/* ---- collectives ---- */

/* Copies at most `most` words of a span; returns how many there are. */
static size_t words_of(const struct xsp_span *span, uint64_t *words, size_t most,
		       uint32_t *unreadable)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_WORDS, NULL);
	size_t n = s != NULL ? xsp_section_length(s) / 8 : 0;

	n = n < most ? n : most;
	if (n > 0)
		memcpy(words, xsp_section_data(s), n * 8);
	*unreadable = s != NULL ? s->value : 0;
	return n;
}

/* -ENOMEM; -ENOSPC: too many groups. */
static long group_of(struct rank *k, const uint64_t *words, size_t count, uint32_t unreadable)
{
	struct group g = {.address = words[XSP_C10D_GROUP], .joint = NO_INDEX};

	if (!xsp_c10d_group(words, count, unreadable, &g.rank, &g.size))
		g.rank = g.size = 0;
	for (size_t i = 0; i < k->groups.count; i++) /* an address may be reused */
		if (k->groups.rows[i].address == g.address && k->groups.rows[i].rank == g.rank &&
		    k->groups.rows[i].size == g.size)
			return (long)i;
	if (k->groups.count == GROUPS_MAX)
		return -ENOSPC;
	if (XSP_PUT(&k->groups, g) < 0)
		return -ENOMEM;
	return (long)k->groups.count - 1;
}

/* The innermost call around the span says which collective it is. */
static long name_of_queued(struct collecting *c, const struct xsp_span *span, bool *meets)
{
	*meets = false;
	for (uint32_t i = span->depth; i > 0; i--) {
		const char *text = xsp_timeline_name(c->timeline, span->ancestors[i - 1]);
		const uint32_t *probe =
			xsp_u64map_get(&c->call_of, xsp_text_hash(text, strlen(text)));
		if (probe == NULL)
			continue;
		*meets = c->roles[*probe].what->meets;
		return name_of(c, span->ancestors[i - 1]);
	}
	return xsp_ranks_name(c->job, "collective of c10d");
}

static int add_queued(struct collecting *c, struct rank *k, const struct xsp_span *span)
{
	uint64_t words[XSP_C10D_WORK + 1];
	uint32_t unreadable;
	const size_t n = words_of(span, words, XSP_C10D_WORK + 1, &unreadable);
	struct queued q = {.work.ns = real(c, span->start_ns)};

	if (xsp_u64map_set(&c->asks, span->tid, 1) < 0)
		return -ENOMEM;
	if (n <= XSP_C10D_WORK || (unreadable & 1U << XSP_C10D_WORK))
		return 0;
	const long group = group_of(k, words, n, unreadable);
	if (group == -ENOSPC) {
		k->left_out++;
		return 0;
	}
	const long name = name_of_queued(c, span, &q.meets);
	if (group < 0 || name < 0)
		return -ENOMEM;
	q.work.key = words[XSP_C10D_WORK];
	q.group = (uint32_t)group;
	q.name = (uint32_t)name;
	return XSP_PUT(&k->queued, q);
}

static int add_run(struct collecting *c, struct rank *k, const struct xsp_span *span)
{
	uint64_t work;
	uint32_t unreadable;

	if (words_of(span, &work, 1, &unreadable) < 1 || (unreadable & 1) ||
	    !xsp_span_has_duration(span))
		return 0;
	return XSP_PUT(&k->runs,
		       (struct run){{work, real(c, span->start_ns)}, real(c, span->end_ns)});
}

/* Keeps the call that launches GPU kernels. Sends between two ranks are no collectives. */
static int add_gpu_call(struct collecting *c, struct rank *k, const struct xsp_span *span)
{
	const struct xsp_collective *what = c->roles[span->probe].what;
	uint64_t words[XSP_C10D_WORDS];
	uint32_t unreadable;
	long group = GROUP_OF_TWO;

	if (!c->gpu || what->arguments == NULL || !xsp_span_has_duration(span) ||
	    words_of(span, words, XSP_C10D_WORDS, &unreadable) < XSP_C10D_WORDS)
		return 0;
	if (!xsp_collective_is_of_two(what))
		group = group_of(k, words, XSP_C10D_WORDS, unreadable);
	const long name = name_of(c, span->name);
	if (group == -ENOSPC)
		group = GROUP_LEFT_OUT;
	if (group < 0 || name < 0)
		return -ENOMEM;
	return XSP_PUT(&k->gpu_calls,
		       (struct gpu_call){.thread = {span->tid, real(c, span->start_ns)},
					 .group = (uint32_t)group,
					 .name = (uint32_t)name,
					 .end_ns = real(c, span->end_ns),
					 .meets = what->meets});
}

static int add_blocked(struct collecting *c, struct rank *k, const struct xsp_span *span)
{
	if (!xsp_span_has_duration(span))
		return 0;
	return XSP_PUT(&k->blocked,
		       (struct interval){real(c, span->start_ns), real(c, span->end_ns)});
}

/* Bytes of the tensors passed to the call (--shapes). 0: not known, or an impossible number. */
static uint64_t bytes_of(struct collecting *c, const struct xsp_span *span)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_ARGS, NULL);
	uint64_t bytes = 0, size;

	if (s == NULL || c->arguments == NULL ||
	    !xsp_torch_args_read(c->arguments, span, s, c->values))
		return 0;
	for (size_t i = 0; i < c->values->count; i++) {
		const struct xsp_torch_value *v = &c->values->items[i];
		for (size_t t = 0; t < v->tensor_count; t++)
			if (v->tensors[t].presence == XSP_TORCH_PRESENT &&
			    v->tensors[t].numel > 0 &&
			    (__builtin_mul_overflow((uint64_t)v->tensors[t].numel,
						    xsp_torch_type_size(v->tensors[t].dtype),
						    &size) ||
			     __builtin_add_overflow(bytes, size, &bytes)))
				return 0;
	}
	return bytes;
}

static int add_operator(struct collecting *c, struct rank *k, const struct xsp_span *span,
			bool collective)
{
	const long name = name_of(c, span->name);
	struct operator_sum *sum = name < 0 ? NULL : xsp_ranks_sum(k, (uint32_t)name, true);

	if (sum == NULL)
		return -ENOMEM;
	if (!xsp_span_has_duration(span))
		return 0;
	const struct xsp_cuda_entry *cuda = xsp_timeline_cuda(c->timeline, span->probe);
	sum->waits = cuda != NULL && cuda->kind == XSP_CUDA_SYNC;
	sum->calls++;
	if (!collective) {
		sum->self_ns += span->self_ns;
		return 0;
	}
	const uint64_t bytes = bytes_of(c, span);
	xsp_add_saturated(&sum->bytes, bytes);
	sum->sized += bytes > 0;
	return 0;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct collecting *c = ((struct xsp_ranks *)ctx)->now;
	struct rank *k = rank_of(c, span->pid);

	if (k == NULL)
		return -ENOMEM;
	if (span->probe >= c->probe_count)
		return 0;
	switch (c->roles[span->probe].role) {
	case XSP_COLLECTIVE_QUEUE:
		return add_queued(c, k, span);
	case XSP_COLLECTIVE_RUN:
		return add_run(c, k, span);
	case XSP_COLLECTIVE_WAIT:
		return add_blocked(c, k, span);
	case XSP_COLLECTIVE_CALL:
		return add_gpu_call(c, k, span) < 0 ? -ENOMEM : add_operator(c, k, span, true);
	case XSP_COLLECTIVE_NONE:
		/* Ranges also contain what the program does between its operators. */
		return c->probes[span->probe].kind == XSP_PROBE_FUNCTION
			       ? add_operator(c, k, span, false)
			       : 0;
	default:
		return 0;
	}
}

/* DistributedDataParallel waits for a future, and calls no wait of c10d: its thread is off the CPU.
 * What of it is between its arrival at a collective and the last rank's is found later. */
static int on_wait(void *ctx, const struct xsp_wait *w)
{
	struct collecting *c = ((struct xsp_ranks *)ctx)->now;

	if ((w->flags & XSP_WAIT_SHORT) || w->why != XSP_WAIT_LOCK ||
	    xsp_u64map_get(&c->asks, w->tid) == NULL)
		return 0;
	struct rank *k = rank_of(c, w->pid);
	if (k == NULL)
		return -ENOMEM;
	const uint64_t until = w->woken_ns > w->left_ns ? w->woken_ns : w->back_ns;
	return XSP_PUT(&k->blocked, (struct interval){real(c, w->left_ns), real(c, until)});
}

/* ---- lines of the program ---- */

/* A rank's main thread, and those that ask for collectives: its others wait most of the time. */
static int add_line(struct collecting *c, uint32_t pid, uint32_t tid, uint32_t place, uint32_t span,
		    uint64_t ns)
{
	if (place == 0 || (tid != pid && xsp_u64map_get(&c->asks, tid) == NULL))
		return 0;
	struct rank *k = rank_of(c, pid);
	const long line = name_of(c, place - 1);
	if (k == NULL || line < 0)
		return -ENOMEM;
	struct line_sum part = {.line = (uint32_t)line, .ns = (int64_t)ns};
	/* of a range it is only known that the program was there, and ranges are no operators */
	if (span != 0 && span <= c->name_count && c->names[span - 1] != NO_INDEX &&
	    xsp_ranks_sum(k, c->names[span - 1], false) != NULL)
		part.in = 1 + c->names[span - 1];
	return xsp_ranks_add_line(k, &part);
}

static int on_charge(void *ctx, const struct xsp_charge *c)
{
	const bool waits = c->kind == XSP_CHARGE_WAITING;

	return add_line(((struct xsp_ranks *)ctx)->now, c->pid, c->tid,
			waits && c->wait->place != 0 ? c->wait->place : c->place,
			c->in_span ? c->span + 1 : 0, c->to_ns - c->from_ns);
}

/* Where no span says the line: in none, or in one of native code. */
static int on_sample(void *ctx, const struct xsp_sample *s)
{
	const uint32_t place = s->own_place != 0 || s->own_function == 0
				       ? s->own_place
				       : (s->path[s->own_function - 1] & ~XSP_PATH_FRAME) + 1;

	if (s->in_span && s->span == 0)
		return 0;
	return add_line(((struct xsp_ranks *)ctx)->now, s->pid, s->tid, place, s->span,
			s->period_ns);
}

/* ---- the GPU ---- */

static struct kernel_name *kernel_name(struct collecting *c, const char *text)
{
	struct kernel_name *known = xsp_tally_find(&c->kernels, (uintptr_t)text);

	if (known != NULL)
		return known;
	const long name = xsp_ranks_name(c->job, text);
	const struct kernel_name first = {(uint32_t)name, xsp_kernel_communicates(text)};
	return name < 0 ? NULL : xsp_tally_row(&c->kernels, (uintptr_t)text, &first);
}

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct collecting *c = ((struct xsp_ranks *)ctx)->now;

	if (a->kind != XSP_GPU_IS_KERNEL || a->cut || a->left_out)
		return 0;
	struct rank *k = rank_of(c, a->pid);
	const struct kernel_name *name = kernel_name(c, a->name);
	if (k == NULL || name == NULL)
		return -ENOMEM;
	if (a->bad || a->end_ns <= a->start_ns) {
		k->lossy = k->lossy || name->communicates;
		return 0;
	}
	return xsp_ranks_gpu_kernel(
		k, name->name, name->communicates,
		&(struct gpu_kernel){.thread = {a->call_tid, real(c, a->call_ns)},
				     .device = a->device,
				     .stream = a->stream,
				     .start_ns = real(c, a->start_ns),
				     .end_ns = real(c, a->end_ns)});
}

/* ---- steps ---- */

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct collecting *c = ((struct xsp_ranks *)ctx)->now;

	if (step->news == XSP_STEP_FORGET)
		for (size_t i = c->first_rank; i < c->job->count; i++)
			c->job->ranks[i].steps.count = 0;
	if (step->news != XSP_STEP_COUNTS && step->news != XSP_STEP_WARM_UP)
		return 0;
	struct rank *k = rank_of(c, step->pid);
	if (k == NULL)
		return -ENOMEM;
	return XSP_PUT(&k->steps, (struct rank_step){.start_ns = real(c, step->start_ns),
						     .end_ns = real(c, step->end_ns),
						     .number = step->number,
						     .warm_up = step->news == XSP_STEP_WARM_UP});
}

/* ---- a capture ---- */

static int find_roles(struct collecting *c)
{
	c->probe_count = xsp_capture_probes(c->reader, &c->probes);
	c->roles = calloc(c->probe_count + 1, sizeof(*c->roles));
	if (c->roles == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->probe_count; i++) {
		const char *name = c->probes[i].name;
		if (!(xsp_provider_traits(c->probes[i].provider) & XSP_PROVIDER_COLLECTIVES))
			continue;
		c->roles[i] = xsp_collective_of(c->probes[i].symbol);
		if (c->roles[i].role == XSP_COLLECTIVE_CALL &&
		    xsp_u64map_set(&c->call_of, xsp_text_hash(name, strlen(name)), (uint32_t)i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int note_capture(struct xsp_ranks *j, const struct xsp_capture_reader *r, const char *path,
			struct xsp_error *err)
{
	const uint64_t id = xsp_capture_id(r);

	for (size_t i = 0; i < j->captures; i++)
		if (j->ids[i] == id)
			return xsp_error_set(
				err, -EEXIST, XSP_STATUS_USAGE,
				"%s is the same capture as the one given as number %zu: name each once",
				path, i + 1);
	return XSP_APPEND(j->ids, j->id_capacity, j->captures, id) < 0 ? xsp_out_of_memory(err) : 0;
}

int xsp_ranks_begin(struct xsp_ranks *j, struct xsp_capture_reader *r, struct xsp_timeline *t,
		    const char *path, struct xsp_error *err)
{
	int rc = note_capture(j, r, path, err);

	if (rc < 0)
		return rc;
	struct collecting *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return xsp_out_of_memory(err);
	j->now = c;
	c->job = j;
	c->reader = r;
	c->timeline = t;
	c->gpu = xsp_timeline_has_gpu(t);
	c->first_rank = j->count;
	c->values = calloc(1, sizeof(*c->values));
	rc = c->values != NULL ? find_roles(c) : -ENOMEM;
	if (rc == 0)
		rc = xsp_torch_args_new(r, &c->arguments);
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED, "out of memory");
	return 0;
}

struct xsp_timeline_sink xsp_ranks_sink(struct xsp_ranks *j)
{
	return (struct xsp_timeline_sink){.ctx = j,
					  .span = on_span,
					  .step = on_step,
					  .gpu = on_activity,
					  .untimed = on_activity,
					  .wait = on_wait,
					  .charge = on_charge,
					  .sample = on_sample};
}

/* ---- after its run ---- */

/* An address serves many works: a run belongs to the last work queued at its address before. */
static int join(struct rank *k)
{
	size_t q = 0;
	int rc = 0;

	XSP_SORT(k->queued.rows, k->queued.count, xsp_ranks_order_keys);
	XSP_SORT(k->runs.rows, k->runs.count, xsp_ranks_order_keys);
	for (size_t r = 0; r < k->runs.count && rc == 0; r++) {
		const struct run *run = &k->runs.rows[r];
		const struct queued *found = NULL;
		while (q < k->queued.count &&
		       xsp_ranks_order_keys(&k->queued.rows[q].work, &run->work) <= 0)
			found = &k->queued.rows[q++];
		if (found != NULL && found->work.key == run->work.key)
			rc = xsp_ranks_add_instance(k, found->group,
						    &(struct instance){found->work.ns, run->end_ns,
								       found->name, found->meets});
	}
	free(k->queued.rows);
	free(k->runs.rows);
	k->queued.rows = NULL;
	k->runs.rows = NULL;
	k->queued.count = k->runs.count = 0;
	return rc;
}

/* If the environment does not give a process's rank, its rank in its largest group counts. */
static void number_by_group(struct rank *k)
{
	for (size_t i = 0; i < k->groups.count; i++)
		if (!k->named && k->groups.rows[i].size > 0 &&
		    (long)k->groups.rows[i].size >= k->world) {
			k->world = k->groups.rows[i].size;
			k->number = k->groups.rows[i].rank;
		}
}

int xsp_ranks_end(struct xsp_ranks *j)
{
	struct collecting *c = j->now;
	const struct xsp_gpu_counts *gpu = xsp_timeline_gpu(c->timeline);
	const struct xsp_health health = xsp_health_of(c->reader);
	int rc = 0;

	for (size_t i = c->first_rank; i < j->count && rc == 0; i++) {
		struct rank *k = &j->ranks[i];
		k->damaged = xsp_health_is_damaged(&health);
		k->lossy = k->lossy || (gpu != NULL && gpu->lost + gpu->dropped > 0);
		rc = join(k);
		if (rc == 0)
			rc = xsp_ranks_gpu_join(k);
		k->waits_known =
			k->blocked.count > 0 || c->gpu || xsp_timeline_has_waits(c->timeline);
		/* Threads of a rank that wait at the same time make one wait. */
		k->blocked.count = xsp_ranks_merge(k->blocked.rows, k->blocked.count);
		number_by_group(k);
		XSP_SORT(k->steps.rows, k->steps.count, xsp_ranks_order);
		for (size_t g = 0; g < k->groups.count; g++)
			XSP_SORT(k->groups.rows[g].seq.rows, k->groups.rows[g].seq.count,
				 xsp_ranks_order);
	}
	free_collecting(c);
	j->now = NULL;
	return rc;
}

struct reading {
	struct xsp_ranks *ranks;
	const char *path;
};

static int begin_reading(void *ctx, struct xsp_capture_reader *r, struct xsp_timeline *t,
			 struct xsp_sinks *sinks, struct xsp_error *err)
{
	const struct reading *reading = ctx;
	int rc = xsp_ranks_begin(reading->ranks, r, t, reading->path, err);

	return rc == 0 ? xsp_sinks_add(sinks, xsp_ranks_sink(reading->ranks)) : rc;
}

static int end_reading(void *ctx, struct xsp_timeline *t, struct xsp_error *err)
{
	const struct reading *reading = ctx;

	(void)t;
	(void)err;
	return xsp_ranks_end(reading->ranks);
}

int xsp_ranks_read(struct xsp_ranks *j, struct xsp_capture_reader *r, const char *path,
		   struct xsp_error *err)
{
	struct reading reading = {j, path};
	const struct xsp_pass_listener listener = {&reading, begin_reading, end_reading, NULL};

	return xsp_pass_run(&(struct xsp_pass){r, NULL, j->marker, &listener, 1}, err);
}

/* ---- queries ---- */

size_t xsp_ranks_count(const struct xsp_ranks *j)
{
	return j->count;
}

struct xsp_rank_info xsp_ranks_at(const struct xsp_ranks *j, size_t index)
{
	const struct rank *k = &j->ranks[index];

	return (struct xsp_rank_info){.capture = k->capture,
				      .pid = k->pid,
				      .rank = k->number,
				      .world_size = k->world,
				      .host = k->host,
				      .shift_ns = k->shift_ns};
}
