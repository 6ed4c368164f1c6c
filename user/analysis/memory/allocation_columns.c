/* SPDX-License-Identifier: BSD-2-Clause */
/* allocation_columns.c - columns of allocators and of places that allocate. */
#include "analysis/memory/summary_allocations_private.h"

#include <inttypes.h>

#include "analysis/memory/summary_memory.h"
#include "base/units.h"
#include "catalog/allocators.h"

/* ---- names of places ---- */

static void join_names(const char *span, const char *place, const char *module, char *out,
		       size_t size)
{
	snprintf(out, size, "%s%s%s%s%s", span, span[0] != '\0' && place[0] != '\0' ? " at " : "",
		 place, module[0] != '\0' ? " in " : "", module);
}

/* On the heap, a place is described by its functions alone. */
static bool is_bare(const struct xsp_summary_allocations *a, const struct xsp_memory_site *s)
{
	return xsp_allocations_is_heap(a) && !s->in_span && s->place != 0;
}

/* "aten::empty at train.py:21 train_step in Net_0.layers.0" */
void xsp_allocations_site_name(const struct xsp_summary_allocations *a,
			       const struct xsp_memory_site *s, size_t columns, char *out,
			       size_t size)
{
	char common[XSP_ALLOCATIONS_SPAN], span[400], place[400] = "", module[400] = "";

	xsp_printable(span, sizeof(span), xsp_allocations_span(a, s, common), columns);
	if (s->place != 0)
		xsp_printable(place, sizeof(place), xsp_timeline_name(a->timeline, s->place - 1),
			      columns * (is_bare(a, s) ? 2 : 1));
	if (s->module != 0)
		xsp_printable(module, sizeof(module), xsp_timeline_name(a->timeline, s->module - 1),
			      columns);
	join_names(is_bare(a, s) ? "" : span, place, module, out, size);
}

void xsp_summary_allocations_name(const struct xsp_summary_allocations *a,
				  const struct xsp_memory_site *where, char *out, size_t size)
{
	const char *place =
		where->place != 0 ? xsp_timeline_name(a->timeline, where->place - 1) : "";
	const char *module =
		where->module != 0 ? xsp_timeline_name(a->timeline, where->module - 1) : "";
	char common[XSP_ALLOCATIONS_SPAN];

	join_names(is_bare(a, where) ? "" : xsp_allocations_span(a, where, common), place, module,
		   out, size);
}

/* ---- columns ---- */

/* "host memory", plus " of process 4242" where there are several processes. */
void xsp_allocations_pool_name(const struct xsp_summary_allocations *a,
			       const struct xsp_memory_use *u, char *out, size_t size)
{
	char of[XSP_SUMMARY_MEMORY_OWNER];

	xsp_summary_memory_owner(a->timeline, u, of);
	if (u->pool == XSP_MEMORY_HEAP)
		snprintf(out, size, "heap%s", of);
	else if (u->device_type == XSP_C10_CPU)
		snprintf(out, size, "host memory%s", of);
	else if (u->device_type == XSP_C10_CUDA)
		snprintf(out, size, "GPU memory of device %d%s", (int)u->device, of);
	else
		snprintf(out, size, "memory of device %d (type %u)%s", (int)u->device,
			 u->device_type, of);
}

#define POOL(name, value)                                                                          \
	XSP_REPORT_CELL(name, struct xsp_summary_allocations, struct xsp_memory_use, value)

static struct xsp_cell pool_name(struct xsp_report_at *at)
{
	xsp_allocations_pool_name(at->of, at->row, at->text, sizeof(at->text));
	return xsp_cell_text(at->text);
}
POOL(pool_peak, xsp_cell_if(of->known, row->peak));
POOL(pool_end, xsp_cell_if(of->known, row->now));
POOL(pool_allocations, xsp_cell_integer(xsp_allocations_whole(row->allocations)));
POOL(pool_frees, xsp_cell_integer(xsp_allocations_whole(row->frees)));

static const struct xsp_report_column pool_columns[] = {
	{"name", "allocator's", XSP_UNIT_TEXT, true, XSP_BY(pool_name)},
	{"peak_bytes", "at most", XSP_UNIT_BYTES, false, XSP_BY(pool_peak)},
	{"end_bytes", "at the end", XSP_UNIT_BYTES, false, XSP_BY(pool_end)},
	{"allocated_bytes", "allocated", XSP_UNIT_BYTES, false,
	 XSP_FIELD(struct xsp_memory_use, allocated)},
	{"allocations", "allocations", XSP_UNIT_COUNT, false, XSP_BY(pool_allocations)},
	{"frees", "frees", XSP_UNIT_COUNT, false, XSP_BY(pool_frees)},
};
XSP_REPORT_SHAPE(analyze, pool_shape, "memory", "pools", "allocated since the recording began",
		 pool_columns);

POOL(pool_pid, xsp_cell_integer(xsp_summary_memory_pid(of->timeline, row)));
POOL(pool_type, xsp_cell_integer(row->device_type));
POOL(pool_device, xsp_cell_if(row->device_type != XSP_C10_CPU, row->device));
POOL(pool_peak_error, xsp_cell_if(xsp_allocations_is_heap(of) && of->known,
				  xsp_allocations_error_of(row->peak_variance)));
POOL(pool_end_error, xsp_cell_if(xsp_allocations_is_heap(of) && of->known,
				 xsp_allocations_error_of(row->now_variance)));
POOL(pool_error,
     xsp_cell_if(xsp_allocations_is_heap(of), xsp_allocations_error_of(row->allocated_variance)));

static const struct xsp_report_column more_of_pools[] = {
	{"pid", "pid", XSP_UNIT_NUMBER, false, XSP_BY(pool_pid)},
	{"device_type", "type", XSP_UNIT_NUMBER, false, XSP_BY(pool_type)},
	{"device", "device", XSP_UNIT_NUMBER, false, XSP_BY(pool_device)},
	/* 95 % interval */
	{"peak_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_peak_error)},
	{"end_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_end_error)},
	{"allocated_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_error)},
	{"unknown_frees", "of what was there before", XSP_UNIT_COUNT, false,
	 XSP_FIELD(struct xsp_memory_use, unknown_frees)},
};
const struct xsp_list xsp_allocations_pools = {
	XSP_LIST_COLUMNS(pool_columns),
	XSP_LIST_MORE(more_of_pools),
	.full = &pool_shape,
	.json = "allocations.pools",
	.keys = "pid device_type device? peak_bytes? end_bytes? peak_error_bytes? end_error_bytes? allocated_error_bytes? allocated_bytes allocations frees unknown_frees",
};

/* Does it surely grow or shrink? Most places free again and again all that they allocate. */
static bool changes(const struct xsp_slope *s)
{
	return s->known && (s->low > 0 || s->high < 0);
}

#define SITE(name, value)                                                                          \
	XSP_REPORT_CELL(name, struct xsp_summary_allocations, struct xsp_allocation_site, value)

static struct xsp_cell site_name(struct xsp_report_at *at)
{
	const struct xsp_allocation_site *site = at->row;

	xsp_summary_allocations_name(at->of, site->where, at->text, 1300);
	return xsp_cell_text(at->text);
}
SITE(site_alive_bytes, xsp_cell_if(of->known, row->alive_bytes));
SITE(site_alive, xsp_cell_if(of->known, row->alive));
SITE(site_growth, changes(&row->slope) ? xsp_cell_real(row->slope.slope) : xsp_cell_absent());
SITE(site_low, changes(&row->slope) ? xsp_cell_real(row->slope.low) : xsp_cell_absent());
SITE(site_high, changes(&row->slope) ? xsp_cell_real(row->slope.high) : xsp_cell_absent());

/* "/src/grow.c:12" */
static struct xsp_cell site_source(struct xsp_report_at *at)
{
	const struct xsp_summary_allocations *a = at->of;
	const struct xsp_memory_site *where = ((const struct xsp_allocation_site *)at->row)->where;

	if (where->file == 0)
		return xsp_cell_absent();
	snprintf(at->text, 1100, "%s:%" PRIu32, xsp_timeline_name(a->timeline, where->file - 1),
		 where->line);
	return xsp_cell_text(at->text);
}

static const struct xsp_report_column site_columns[] = {
	{"name", "where", XSP_UNIT_TEXT, true, XSP_BY(site_name)},
	{"alive_bytes", "alive", XSP_UNIT_BYTES, false, XSP_BY(site_alive_bytes)},
	{"alive", "blocks", XSP_UNIT_COUNT, false, XSP_BY(site_alive)},
	{"allocated_bytes", "allocated", XSP_UNIT_BYTES, false,
	 XSP_FIELD(struct xsp_allocation_site, bytes)},
	{"allocations", "allocations", XSP_UNIT_COUNT, false,
	 XSP_FIELD(struct xsp_allocation_site, allocations)},
	{"growth", "grows by", XSP_UNIT_BYTES_PER_SECOND, false, XSP_BY(site_growth)},
	{"growth_low", "at least (95%)", XSP_UNIT_BYTES_PER_SECOND, false, XSP_BY(site_low)},
	{"growth_high", "at most", XSP_UNIT_BYTES_PER_SECOND, false, XSP_BY(site_high)},
	{"source", "source", XSP_UNIT_TEXT, false, XSP_BY(site_source)},
};
XSP_REPORT_SHAPE(analyze, site_shape, "memory", "sites",
		 "memory of the program's allocator, by where it was allocated", site_columns);

/* A name that may be absent: `name` is 1 + the timeline's id. */
static struct xsp_cell name_cell(const struct xsp_summary_allocations *a, uint32_t name)
{
	return name != 0 ? xsp_cell_text(xsp_timeline_name(a->timeline, name - 1))
			 : xsp_cell_absent();
}

static struct xsp_cell slope_cell(const struct xsp_slope *s, double value)
{
	return xsp_cell_if(s->known, (uint64_t)(int64_t)value);
}

static struct xsp_cell site_span(struct xsp_report_at *at)
{
	const struct xsp_memory_site *where = ((const struct xsp_allocation_site *)at->row)->where;

	return where->in_span ? xsp_cell_text(xsp_allocations_span(at->of, where, at->text))
			      : xsp_cell_absent();
}

/* "train.py:21 train_step" is shown whole: if it is too long for a line, it goes on in the next. */
static struct xsp_cell site_shown(struct xsp_report_at *at)
{
	const struct xsp_allocation_site *site = at->row;
	const size_t columns = at->room > 130 ? (at->room - 50) / 2 : at->room > 0 ? 40 : 0;

	xsp_allocations_site_name(at->of, site->where, columns, at->text, 1300);
	return xsp_cell_text(at->text);
}
SITE(site_place, name_cell(of, row->where->place));
SITE(site_file, name_cell(of, row->where->file));
SITE(site_line, xsp_cell_if(row->where->file != 0, row->where->line));
SITE(site_module, name_cell(of, row->where->module));
SITE(site_error, xsp_cell_if(of->known &&xsp_allocations_is_heap(of), row->alive_error));
SITE(site_slope, slope_cell(&row->slope, row->slope.slope));
SITE(site_slope_low, slope_cell(&row->slope, row->slope.low));
SITE(site_slope_high, slope_cell(&row->slope, row->slope.high));
SITE(site_grows, xsp_cell_bool(row->slope.grows));

static const struct xsp_report_column more_of_sites[] = {
	{"name", "operator", XSP_UNIT_TEXT, false, XSP_BY(site_span)},
	{"shown", "where", XSP_UNIT_TEXT, false, XSP_BY(site_shown)},
	{"at", "line of Python", XSP_UNIT_TEXT, false, XSP_BY(site_place)},
	{"file", "source", XSP_UNIT_TEXT, false, XSP_BY(site_file)},
	{"line", "line", XSP_UNIT_NUMBER, false, XSP_BY(site_line)},
	{"module", "module", XSP_UNIT_TEXT, false, XSP_BY(site_module)},
	{"alive_error_bytes", "+- (95%)", XSP_UNIT_BYTES, false, XSP_BY(site_error)},
	{"bytes_a_second", "grows by", XSP_UNIT_BYTES, false, XSP_BY(site_slope)},
	{"bytes_a_second_low", "at least", XSP_UNIT_BYTES, false, XSP_BY(site_slope_low)},
	{"bytes_a_second_high", "at most", XSP_UNIT_BYTES, false, XSP_BY(site_slope_high)},
	{"only_grows", "only grows", XSP_UNIT_NUMBER, false, XSP_BY(site_grows)},
};

static const struct xsp_list_column heap_shown[] = {
	{.key = "alive_bytes", .width = 10},
	{.key = "alive_error_bytes", .width = 9},
	{.key = "alive", .width = 8},
	{.key = "allocated_bytes", .width = 10},
	{.key = "allocations", .width = 11},
	{.key = "shown", .title = "heap (estimated), by where"},
};
static const struct xsp_list_column pools_shown[] = {
	{.key = "alive_bytes", .width = 10},
	{.key = "alive", .width = 8},
	{.key = "allocated_bytes", .width = 10},
	{.key = "allocations", .width = 11},
	{.key = "shown", .title = "PyTorch's memory, by where"},
};
#define SITES(shown)                                                                               \
	{                                                                                          \
		XSP_LIST_COLUMNS(site_columns), XSP_LIST_MORE(more_of_sites),                      \
			.full = &site_shape, .json = "allocations.sites", .keys = SITE_KEYS,       \
			XSP_LIST_TEXT(shown), .rows = "place",                                     \
	}
#define SITE_KEYS                                                                                  \
	"name at? file? line? module? alive_bytes? alive? alive_error_bytes? allocated_bytes "     \
	"allocations bytes_a_second? bytes_a_second_low? bytes_a_second_high? only_grows"
const struct xsp_list xsp_allocations_heap_sites = SITES(heap_shown);
const struct xsp_list xsp_allocations_pool_sites = SITES(pools_shown);
