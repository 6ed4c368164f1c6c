/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory_events.c - what events tell of memory: what a process has, handed on as it comes; and each allocation and free
 * of PyTorch's allocators, with where it was.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/python.h"

struct xsp_memory_events {
	struct xsp_memory_site *sites;
	size_t site_count, site_capacity;
	struct xsp_u64map site_of; /* span's name << 32 | place → index */
	struct xsp_u64map place_of; /* id of a Python stack → place */
};

/* ---- which probes ---- */

static int find_functions(struct xsp_timeline *t)
{
	for (size_t i = 0; i < t->probe_count; i++) {
		const struct xsp_allocator_function *f =
			strcmp(t->probes[i].provider, "memory") == 0
				? xsp_allocator_function(t->probes[i].symbol)
				: NULL;
		if (f == NULL)
			continue;
		if (t->allocators == NULL)
			t->allocators = calloc(t->probe_count, sizeof(const void *));
		if (t->allocators == NULL)
			return -ENOMEM;
		t->allocators[i] = f;
	}
	return 1;
}

static int begin(struct xsp_timeline *t)
{
	t->memory_events = calloc(1, sizeof(*t->memory_events));
	return t->memory_events == NULL ? -ENOMEM : find_functions(t);
}

static void free_events(struct xsp_timeline *t)
{
	struct xsp_memory_events *m = t->memory_events;

	free(t->allocators);
	if (m == NULL)
		return;
	xsp_u64map_free(&m->site_of);
	xsp_u64map_free(&m->place_of);
	free(m->sites);
	free(m);
}

/* What the probe tells of an allocator, or NULL. */
static const struct xsp_allocator_function *function_of(const struct xsp_timeline *t,
							uint32_t probe)
{
	return t->allocators != NULL && probe < t->probe_count ? t->allocators[probe] : NULL;
}

bool xsp_timeline_has_allocations(const struct xsp_timeline *t)
{
	return t->allocators != NULL;
}

bool xsp_timeline_allocations_in_windows(const struct xsp_timeline *t)
{
	return t->window_count > 0;
}

uint64_t xsp_timeline_allocations_lost(const struct xsp_timeline *t)
{
	const struct xsp_capture_lost *losts;
	const size_t n = xsp_capture_losts(t->reader, &losts);
	uint64_t sum = xsp_memory_untracked(t);

	for (size_t i = 0; i < n; i++)
		if (function_of(t, losts[i].probe) != NULL)
			sum += losts[i].entries;
	return sum;
}

size_t xsp_timeline_memory_sites(const struct xsp_timeline *t, const struct xsp_memory_site **sites)
{
	*sites = t->memory_events->sites;
	return t->memory_events->site_count;
}

/* ---- a process ---- */

static int take_process(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_PROCESS_MEMORY);
	struct xsp_process_memory_at at = {.time_ns = e->time_ns, .pid = e->tgid};

	if (s == NULL || xsp_section_length(s) < sizeof(at.memory))
		return 0;
	memcpy(&at.memory, xsp_section_data(s), sizeof(at.memory));
	return xsp_tell_process_memory(t, &at);
}

/* ---- an allocator ---- */

/* The line of the program that it came from: 1 + its name's id, 0: not known. */
static int place_of(struct xsp_timeline *t, const struct xsp_event *e, uint32_t *place)
{
	struct xsp_memory_events *m = t->memory_events;
	const struct xsp_capture_python *stack =
		xsp_timeline_python(t, xsp_event_section(e, XSP_SECTION_PYTHON));
	uint32_t inside;

	*place = 0;
	if (stack == NULL || stack->count == 0)
		return 0;
	const uint32_t *known = xsp_u64map_get(&m->place_of, stack->id);
	if (known != NULL) {
		*place = *known;
		return 0;
	}
	int rc = xsp_python_place(t, stack, &inside, place);
	return rc < 0 ? rc : xsp_u64map_set(&m->place_of, stack->id, *place);
}

static int site_of(struct xsp_timeline *t, const struct xsp_event *e, struct xsp_memory_event *out)
{
	struct xsp_memory_events *m = t->memory_events;
	struct xsp_memory_site site = {.in_span = out->op != 0, .span = out->op_name};
	int rc = place_of(t, e, &site.place);
	const uint64_t key = (uint64_t)(site.in_span ? site.span : UINT32_MAX) << 32 | site.place;

	if (rc < 0)
		return rc;
	const long at =
		xsp_u64map_index(&m->site_of, key, &m->sites, &m->site_capacity, m->site_count);
	if (at < 0)
		return -ENOMEM;
	if ((size_t)at == m->site_count)
		m->sites[m->site_count++] = site;
	out->site = (uint32_t)at + 1;
	return 0;
}

/* The arguments. False: nothing that counts, or not known. */
static bool decode(const struct xsp_allocator_function *f, const struct xsp_event *e,
		   struct xsp_memory_event *out)
{
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_WORDS);
	uint64_t word[5] = {0};

	if (s == NULL || s->value != 0 || xsp_section_length(s) < f->count * sizeof(*word))
		return false;
	memcpy(word, xsp_section_data(s), f->count * sizeof(*word));
	out->address = word[0];
	out->bytes = f->call == XSP_ALLOCATOR_TAKES ? -1 : (int64_t)word[1];
	if (f->call == XSP_ALLOCATOR_REPORTS) {
		out->total = word[2];
		out->reserved = word[3];
		out->device_type = XSP_C10_DEVICE_TYPE(word[4]);
		if (XSP_C10_DEVICE_INDEX(word[4]) >= 0)
			out->device = (uint32_t)XSP_C10_DEVICE_INDEX(word[4]);
		if (out->device_type == XSP_C10_CPU)
			return false; /* told by its own functions, listened to or not */
	}
	return out->address != 0 && out->bytes != 0 &&
	       (f->call == XSP_ALLOCATOR_REPORTS || out->bytes >= -1);
}

static int take_allocation(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_allocator_function *f = function_of(t, e->probe);
	struct xsp_memory_event m = {
		.time_ns = e->time_ns,
		.pid = e->tgid,
		.tid = e->tid,
		.pool = XSP_MEMORY_TORCH,
		.device = XSP_GPU_NO_ID,
	};
	struct thread *th;

	if (f == NULL || !decode(f, e, &m))
		return 0;
	int rc = xsp_threads_get(t, e, &th);
	if (rc < 0)
		return rc;
	const struct open_span *around = xsp_row_told(th->rows[th->current]);
	m.row = th->rows[th->current]->index;
	m.left_out = xsp_cut_thread(t, th->tid) != 0;
	if (around != NULL) {
		m.op = around->serial + 1;
		m.op_name = around->name;
	}
	if (m.bytes > 0)
		rc = site_of(t, e, &m);
	return rc < 0 ? rc : xsp_memory_put(t, &m);
}

static int take_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	if (e->kind != XSP_EVENT_MEMORY)
		return 0;
	return e->probe == UINT32_MAX ? take_process(t, e) : take_allocation(t, e);
}

const struct xsp_listener xsp_listener_memory_events = {
	.name = "events of memory",
	.begin = begin,
	.event = take_event,
	.free = free_events,
};
