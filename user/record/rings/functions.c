/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rings/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NAME_SIZE 4096 /* of a symbol */

int xsp_ring_functions_new(struct xsp_ring_functions *f)
{
	f->rows = calloc(XSP_RING_FUNCTIONS, sizeof(*f->rows));
	return f->rows != NULL ? 0 : -ENOMEM;
}

void xsp_ring_functions_free(struct xsp_ring_functions *f)
{
	xsp_u64map_free(&f->served);
	free(f->rows);
	f->rows = NULL;
}

static void read_args(const struct xsp_ring_functions *f, const struct xsp_agent_rings_options *o,
		      struct xsp_ring_memory *m, uint32_t row)
{
	const uint32_t probe = f->rows[row].probe;
	const struct xsp_args_kept *kept = NULL;
	const struct xsp_args_spec *spec = probe != XSP_RING_NO_PROBE && o->arguments != NULL
						   ? o->arguments(o->ctx, probe, &kept)
						   : NULL;

	xsp_ring_memory_read_args(m, row, kept, spec);
}

void xsp_ring_functions_read_args(const struct xsp_ring_functions *f,
				  const struct xsp_agent_rings_options *o,
				  struct xsp_ring_memory *m)
{
	for (uint32_t i = 0; i < f->count; i++)
		read_args(f, o, m, i);
}

static void look_at(struct xsp_ring_functions *f, const struct xsp_agent_rings_options *o,
		    pid_t pid, struct xsp_ring_memory *m, uint32_t number)
{
	struct xsp_ring_row *row = &f->rows[number];
	char name[NAME_SIZE];
	uint64_t address;

	*row = (struct xsp_ring_row){.probe = XSP_RING_NO_PROBE};
	if (!xsp_ring_memory_function(m, number, &address, name, sizeof(name)))
		return;
	row->region = xsp_ring_region_kind(name);
	row->again = row->region != XSP_EVENT_INVALID ||
		     strncmp(name, XSP_RING_SCOPE, sizeof(XSP_RING_SCOPE) - 1) == 0;
	const uint32_t probe = o->probe(o->ctx, pid, address, name);
	if (row->region == XSP_EVENT_INVALID && probe != XSP_RING_NO_PROBE && o->scope != NULL)
		row->region = o->scope(o->ctx, probe, &row->guard);
	const bool is_region = row->region != XSP_EVENT_INVALID;
	const size_t before = f->served.count;
	if (probe == XSP_RING_NO_PROBE || xsp_u64map_set(&f->served, probe, 1) < 0)
		return;
	row->probe = is_region && o->opener != NULL ? o->opener(o->ctx, probe) : probe;
	row->named = !is_region && o->is_named != NULL && o->is_named(o->ctx, probe);
	row->operators = strcmp(name, XSP_RING_OPERATOR) == 0;
	f->regions += is_region ? f->served.count - before : 0;
	f->named += row->named ? f->served.count - before : 0;
	f->callbacks = f->callbacks ||
		       (row->operators && (xsp_ring_memory_active(m) & XSP_RINGS_CALLBACKS));
	f->ranges = f->ranges || (row->named && strcmp(name, XSP_RING_RANGE) == 0 &&
				  (xsp_ring_memory_active(m) & XSP_RINGS_RANGES));
}

bool xsp_ring_functions_lose_callbacks(struct xsp_ring_functions *f,
				       const struct xsp_ring_memory *m)
{
	const uint32_t active = xsp_ring_memory_active(m);
	/* at the end of all it gives up the operators as well */
	const bool ranges = f->ranges && (active & XSP_RINGS_OPERATORS) &&
			    !(active & XSP_RINGS_RANGES),
		   all = f->callbacks && (active & XSP_RINGS_UNKNOWN);

	if (!ranges && !all)
		return false;
	f->ranges = f->callbacks = false;
	f->ranges_until_ns = xsp_now_ns();
	return true;
}

void xsp_ring_functions_look(struct xsp_ring_functions *f, const struct xsp_agent_rings_options *o,
			     pid_t pid, struct xsp_ring_memory *m)
{
	const uint32_t count = xsp_ring_memory_functions(m);

	for (uint32_t i = 0; i < f->count; i++)
		if (f->rows[i].again && f->rows[i].probe == XSP_RING_NO_PROBE)
			look_at(f, o, pid, m, i);
	for (; f->count < count; f->count++) {
		look_at(f, o, pid, m, f->count);
		if (o->arguments != NULL)
			read_args(f, o, m, f->count);
	}
}
