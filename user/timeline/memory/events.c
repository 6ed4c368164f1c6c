/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.c - what events say about memory: a process's memory, handed on as it comes; and each
 * allocation and free of the program's allocators, with its place.
 */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "catalog/allocators.h"
#include "catalog/compilers.h"
#include "catalog/wait_reasons.h"
#include "timeline/python.h"
#include "xsptrace/programs.h"

struct xsp_memory_events {
	XSP_TALLY(struct xsp_memory_site) sites; /* by their names */
	/* without a span: by id of a stack of Python, and by hash of a native one */
	XSP_TALLY(struct xsp_memory_site) python, native;
	uint64_t heap_period;
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
	const uint64_t bytes = xsp_capture_number(t->reader, "heap sample");

	if (t->memory_events == NULL)
		t->memory_events = calloc(1, sizeof(*t->memory_events));
	if (t->memory_events == NULL)
		return -ENOMEM;
	t->memory_events->heap_period = bytes <= XSP_HEAP_PERIOD_MAX ? bytes : 0;
	return find_functions(t);
}

static void free_events(struct xsp_timeline *t)
{
	struct xsp_memory_events *m = t->memory_events;

	free(t->allocators);
	if (m == NULL)
		return;
	xsp_tally_free(&m->sites);
	xsp_tally_free(&m->python);
	xsp_tally_free(&m->native);
	free(m);
}

/* What the probe's function does in an allocator, or NULL. */
static const struct xsp_allocator_function *function_of(const struct xsp_timeline *t,
							uint32_t probe)
{
	return t->allocators != NULL && probe < t->probe_count ? t->allocators[probe] : NULL;
}

bool xsp_timeline_has_allocations(const struct xsp_timeline *t)
{
	return t->allocators != NULL;
}

uint64_t xsp_timeline_heap_period(const struct xsp_timeline *t)
{
	return t->memory_events->heap_period;
}

bool xsp_timeline_allocations_in_windows(const struct xsp_timeline *t)
{
	return t->window_count > 0;
}

uint64_t xsp_timeline_allocations_lost(const struct xsp_timeline *t)
{
	const struct xsp_capture_lost *losts;
	const size_t n = xsp_capture_losts(t->reader, &losts);
	uint64_t sum = 0;

	xsp_capture_gap(t->reader, XSP_GAP_ALLOCATIONS, &sum);
	sum += xsp_memory_untracked(t);

	for (size_t i = 0; i < n; i++)
		if (function_of(t, losts[i].probe) != NULL)
			sum += losts[i].entries;
	return sum +
	       (t->memory_events->heap_period > 0 ? xsp_capture_stats(t->reader)->untracked : 0);
}

size_t xsp_timeline_memory_sites(const struct xsp_timeline *t, const struct xsp_memory_site **sites)
{
	*sites = t->memory_events->sites.rows;
	return t->memory_events->sites.count;
}

/* ---- a process ---- */

static int on_process(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_PROCESS_MEMORY);
	struct xsp_process_memory_at at = {.time_ns = e->time_ns, .pid = e->tgid};

	if (s == NULL || xsp_section_length(s) < sizeof(at.memory))
		return 0;
	memcpy(&at.memory, xsp_section_data(s), sizeof(at.memory));
	return xsp_notify_process_memory(t, &at);
}

/* ---- an allocator ---- */

static int add_name(struct xsp_timeline *t, const char *text, size_t length, uint32_t *name)
{
	xsp_name_id id;
	int rc = xsp_names_of_text(t, text, length, &id);

	if (rc == 0)
		*name = id + 1;
	return rc;
}

static int module_of(struct xsp_timeline *t, const struct xsp_capture_python *stack,
		     uint32_t *module)
{
	struct xsp_python_module m;
	char text[1000] = "";

	xsp_timeline_python_module(t, stack, 0, &m);
	for (uint32_t i = 0; i < m.count; i++)
		xsp_join(text, sizeof(text), ".", "%s", m.names[i]);
	return text[0] != '\0' ? add_name(t, text, strlen(text), module) : 0;
}

/* Adds the program's line and the module. */
static int add_python(struct xsp_timeline *t, const struct xsp_capture_python *stack,
		      struct xsp_memory_site *site)
{
	uint32_t inside;
	int rc = xsp_python_place(t, stack, &inside, &site->place, NULL);

	return rc < 0 ? rc : module_of(t, stack, &site->module);
}

/* Finds the line of a return address if the source is the program's own. It goes to the site, and
 * as " (grow.c:12)" to the text. */
static void join_line(struct xsp_timeline *t, uint32_t pid, uint64_t address,
		      struct xsp_memory_site *site, char *text, size_t size)
{
	const char *path =
		xsp_names_text(t, xsp_timeline_address_hash(t, XSP_NAME_OF_LINE, pid, address));
	const char *end = path != NULL ? strchr(path, '\n') : NULL;

	if (end == NULL || xsp_is_system_header(path) ||
	    add_name(t, path, (size_t)(end - path), &site->file) < 0)
		return;
	site->line = (uint32_t)strtoul(end + 1, NULL, 10);
	const char *name = xsp_base_name(xsp_timeline_name(t, site->file - 1));
	xsp_join(text, size, " ", "(%s:%" PRIu32 ")", name, site->line);
}

#define PLACE_FRAMES 4

/* "grow (grow.c:12) <- load <- main". `skip`: not the functions of an allocator before them. False: all are such. */
static bool join_functions(struct xsp_timeline *t, uint32_t pid, const uint64_t *frame,
			   size_t count, bool skip, struct xsp_memory_site *site, char *text,
			   size_t size)
{
	xsp_name_id ids[XSP_FRAME_FUNCTIONS];
	size_t shown = 0, n;

	for (size_t i = 0; i < count && shown < PLACE_FRAMES; i++) {
		const uint64_t address = XSP_FRAME_ADDRESS(frame[i]);
		if ((n = xsp_timeline_functions(t, pid, address, ids)) == 0)
			return true;
		for (size_t k = 0; k < n && shown < PLACE_FRAMES; k++) {
			const char *name = xsp_timeline_name(t, ids[k]);
			if (skip && (xsp_wait_is_primitive(name) || xsp_is_allocating(name)))
				continue;
			skip = false;
			xsp_join(text, size, " <- ", "%s", name);
			shown++;
			if (site->file == 0 && k == 0) /* the line is of the innermost */
				join_line(t, pid, address, site, text, size);
		}
	}
	return shown > 0;
}

/* The program's own innermost functions. If it has none, the innermost of all. */
static void name_functions(struct xsp_timeline *t, uint32_t pid, const uint64_t *frame,
			   size_t count, struct xsp_memory_site *site, char *text, size_t size)
{
	if (!join_functions(t, pid, frame, count, true, site, text, size))
		join_functions(t, pid, frame, count, false, site, text, size);
}

static int add_native(struct xsp_timeline *t, uint32_t pid, const struct xsp_section *stack,
		      struct xsp_memory_site *site)
{
	char text[1000] = "";

	name_functions(t, pid, xsp_section_data(stack),
		       xsp_section_length(stack) / sizeof(uint64_t), site, text, sizeof(text));
	return text[0] != '\0' ? add_name(t, text, strlen(text), &site->place) : 0;
}

static uint64_t hash_of_native(const struct xsp_timeline *t, uint32_t pid,
			       const struct xsp_section *stack)
{
	const uint64_t *frame = xsp_section_data(stack);
	uint64_t hash = xsp_u64_mix(pid ^ xsp_capture_address_key(t->reader));

	for (size_t i = 0; i < xsp_section_length(stack) / sizeof(*frame); i++)
		hash = xsp_u64_mix(hash ^ XSP_FRAME_ADDRESS(frame[i]));
	return hash;
}

/* Finds the place by the Python stack, or else by the native one; works out each stack once. */
static int place_of(struct xsp_timeline *t, const struct xsp_event *e, struct xsp_memory_site *site)
{
	struct xsp_memory_events *m = t->memory_events;
	const struct xsp_capture_python *python =
		xsp_timeline_python(t, xsp_event_section(e, XSP_SECTION_PYTHON));
	const struct xsp_section *native = xsp_event_section(e, XSP_SECTION_STACK);
	const bool in_python = python != NULL && python->count > 0;
	int rc = 0;

	if (!in_python && native == NULL)
		return 0;
	const uint64_t key = in_python ? python->id : hash_of_native(t, e->tgid, native);
	const size_t before = m->python.count + m->native.count;
	struct xsp_memory_site *place = in_python ? xsp_tally_row(&m->python, key, site)
						  : xsp_tally_row(&m->native, key, site);
	if (place == NULL)
		return -ENOMEM;
	if (m->python.count + m->native.count > before)
		rc = in_python ? add_python(t, python, place)
			       : add_native(t, e->tgid, native, place);
	*site = *place;
	return rc;
}

static int site_of(struct xsp_timeline *t, const struct xsp_event *e, struct xsp_memory_event *out)
{
	struct xsp_memory_events *m = t->memory_events;
	struct xsp_memory_site site = {.place = 0};
	int rc = place_of(t, e, &site);
	site.in_span = out->op != 0;
	site.span = out->op_name;
	const uint64_t key =
		xsp_u64_mix((uint64_t)(site.in_span ? site.span : UINT32_MAX) << 32 | site.place) +
		site.module;

	if (rc < 0)
		return rc;
	const struct xsp_memory_site *known = xsp_tally_row(&m->sites, key, &site);
	if (known == NULL)
		return -ENOMEM;
	out->site = xsp_tally_index(&m->sites, known) + 1;
	return 0;
}

/* A block of the sample: bpf/heap.bpf.c knows how likely it was to be taken. */
static bool decode_heap(const struct xsp_timeline *t, const uint64_t *word, size_t count,
			struct xsp_memory_event *out)
{
	const double period = (double)t->memory_events->heap_period;

	out->address = word[XSP_MEMORY_ADDRESS];
	out->pool = XSP_MEMORY_HEAP;
	out->bytes = -1;
	if (count == 1)
		return true;
	if (count < XSP_MEMORY_WORDS || word[XSP_MEMORY_BYTES] > INT64_MAX ||
	    word[XSP_MEMORY_BYTES] == 0)
		return false;
	const double bytes = (double)word[XSP_MEMORY_BYTES];
	out->bytes = (int64_t)word[XSP_MEMORY_BYTES];
	if (bytes >= period)
		return true;
	out->bytes = (int64_t)period;
	out->blocks = period / bytes;
	out->variance = period * (period - bytes);
	return true;
}

/* Reads the arguments. False: nothing that counts, or not known. */
static bool decode(const struct xsp_timeline *t, const struct xsp_allocator_function *f,
		   const struct xsp_event *e, struct xsp_memory_event *out)
{
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_WORDS);
	uint64_t word[5] = {0};

	if (f->call == XSP_ALLOCATOR_HEAP)
		return s != NULL && xsp_section_length(s) >= sizeof(*word) &&
		       decode_heap(t, xsp_section_data(s), xsp_section_length(s) / sizeof(*word),
				   out);
	if (s == NULL || s->value != 0 || xsp_section_length(s) < f->count * sizeof(*word))
		return false;
	memcpy(word, xsp_section_data(s), f->count * sizeof(*word));
	out->address = word[0];
	out->bytes = f->call == XSP_ALLOCATOR_FREES ? -1 : (int64_t)word[1];
	if (f->call == XSP_ALLOCATOR_REPORTS) {
		out->total = word[2];
		out->reserved = word[3];
		out->device_type = XSP_C10_DEVICE_TYPE(word[4]);
		if (XSP_C10_DEVICE_INDEX(word[4]) >= 0)
			out->device = (uint32_t)XSP_C10_DEVICE_INDEX(word[4]);
		if (out->device_type == XSP_C10_CPU)
			/* its own functions report that allocation, recorded or not */
			return false;
	}
	return out->address != 0 && out->bytes != 0 &&
	       (f->call == XSP_ALLOCATOR_REPORTS || out->bytes >= -1);
}

static int on_allocation(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_allocator_function *f = function_of(t, e->probe);
	struct xsp_memory_event m = {
		.time_ns = e->time_ns,
		.pid = e->tgid,
		.tid = e->tid,
		.pool = XSP_MEMORY_TORCH,
		.blocks = 1,
		.device = XSP_GPU_NO_ID,
	};
	struct thread *th;

	if (f == NULL || !decode(t, f, e, &m))
		return 0;
	int rc = xsp_threads_get(t, e, &th);
	if (rc < 0)
		return rc;
	const struct open_span *around = xsp_row_innermost_kept(th->rows[th->current]);
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

static int on_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	return e->probe == UINT32_MAX ? on_process(t, e) : on_allocation(t, e);
}

const struct xsp_listener xsp_listener_memory_events = {
	.name = "events of memory",
	.begin = begin,
	.events = 1U << XSP_EVENT_MEMORY,
	.event = on_event,
	.free = free_events,
};
