/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - tracks of counters: memory of processes, memory allocated, values of programs; and
 * single allocations. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "catalog/allocators.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "model/rows/memory_track.h"

static void put_counter(struct xsp_export *x, const char *name, uint32_t pid, uint64_t ns,
			uint64_t bytes)
{
	xsp_out_printf(x->out, "{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"ts\":", name, pid);
	xsp_chrome_time(x, ns);
	xsp_out_printf(x->out, ",\"args\":{\"bytes\":%" PRIu64 "}},\n", bytes);
}

int xsp_chrome_process_memory(struct xsp_export *x, const struct xsp_process_memory_at *at)
{
	struct xsp_thread_row *row = xsp_chrome_row(x, at->pid, at->pid, 0);

	if (row == NULL)
		return -ENOMEM;
	if (xsp_memory_is_over(&x->view, at))
		return 0;
	put_counter(x, "resident memory", row->pid, at->time_ns, at->memory.resident);
	put_counter(x, "anonymous memory", row->pid, at->time_ns, at->memory.anonymous);
	return 0;
}

/* PyTorch's "[memory]" event, on the thread that made the call. */
static void put_instant(struct xsp_export *x, const struct xsp_memory_event *e,
			const struct xsp_thread_row *row, bool known)
{
	const bool torch = xsp_memory_is_allocator(e->pool);
	const int type = torch ? e->device_type : e->pool == XSP_MEMORY_PINNED ? 0 : XSP_C10_CUDA;

	xsp_out_printf(
		x->out,
		"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":%u,\"tid\":%u,\"ts\":",
		row->pid, row->tid);
	xsp_chrome_time(x, e->time_ns);
	xsp_out_text(x->out, ",\"args\":{");
	if (known)
		xsp_out_printf(x->out, "\"Total Allocated\":%" PRIu64 ",", e->total);
	if (known || e->reserved != 0)
		xsp_out_printf(x->out, "\"Total Reserved\":%" PRIu64 ",",
			       torch ? e->reserved : e->total);
	xsp_out_printf(x->out,
		       "\"Bytes\":%" PRId64 ",\"Addr\":%" PRIu64
		       ",\"Device Id\":%d,\"Device Type\":%d,\"Ev Idx\":%" PRIu64,
		       e->bytes, e->address, e->device == XSP_GPU_NO_ID ? -1 : (int)e->device, type,
		       xsp_chrome_next_slice(x));
	if (!torch) /* readers take the marks for PyTorch's */
		xsp_out_text(x->out, ",\"CUDA API\":true");
	if (e->op != 0)
		xsp_out_printf(x->out, ",\"External id\":%" PRIu64, e->op);
	xsp_out_text(x->out, "}},\n");
}

int xsp_chrome_memory(struct xsp_export *x, const struct xsp_memory_event *e)
{
	const struct xsp_thread_row *row = xsp_chrome_row(x, e->pid, e->tid, e->row);
	char name[XSP_MEMORY_TRACK];
	const bool known = xsp_memory_track(&x->view, e, name);

	if (row == NULL)
		return -ENOMEM;
	if (known)
		put_counter(x, name, row->pid, e->time_ns, e->total);
	if (!e->unseen &&
	    /* a sampled block is no allocation that a program would list */
	    e->pool != XSP_MEMORY_HEAP)
		put_instant(x, e, row, known);
	return 0;
}

/* A value that is no number has no place on a track or in JSON: it becomes a mark on its thread. */
int xsp_chrome_value(struct xsp_export *x, const struct xsp_value *v)
{
	const struct xsp_thread_row *row = xsp_chrome_row(x, v->pid, v->tid, 0);
	const char *quote = isfinite(v->value) ? "" : "\"";
	char number[XSP_UNITS_SIZE];

	if (row == NULL)
		return -ENOMEM;
	xsp_out_text(x->out, isfinite(v->value) ? "{\"ph\":\"C\",\"name\":"
						: "{\"ph\":\"i\",\"s\":\"t\",\"name\":");
	if (xsp_chrome_put_name(x, v->name) < 0)
		return -ENOMEM;
	xsp_out_printf(x->out, ",\"cat\":\"value\",\"pid\":%u,\"tid\":%u,\"ts\":", row->pid,
		       row->tid);
	xsp_chrome_time(x, v->time_ns);
	xsp_out_printf(x->out, ",\"args\":{\"value\":%s%s%s}},\n", quote,
		       xsp_format_real(number, v->value), quote);
	return 0;
}
