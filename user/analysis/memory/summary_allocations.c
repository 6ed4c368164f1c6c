/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/memory/summary_allocations.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/memory/summary_memory.h"
#include "base/grow.h"
#include "base/text.h"
#include "base/u64map.h"
#include "base/units.h"
#include "catalog/allocators.h"
#include "report/list.h"

#define SITES_SHOWN 10
#define LEAKS_SHOWN 5
#define POOLS_SHOWN 16
#define MAX_GROWTHS 16384U /* sites whose growth is followed: 600 bytes each */
#define SPAN_MAX 400

/* Those of the timeline whose spans only number ("ProfilerStep#17") are one. */
struct site {
	uint32_t where; /* index of the first one */
	uint64_t alive_bytes, bytes;
	double alive, allocations; /* blocks */
	double variance; /* of alive_bytes */
	struct xsp_growth *growth; /* of alive_bytes; NULL: too many sites */
};

struct xsp_summary_allocations {
	struct xsp_timeline *timeline;
	const struct xsp_steps *steps;
	struct site *sites;
	size_t count, capacity, growths;
	struct xsp_u64map site_of; /* what names it → index */
	uint32_t *index_of; /* by the timeline's index: 1 + index; 0: not met yet */
	size_t index_of_count, index_of_capacity;
	struct xsp_growth_clock clock;
	bool known; /* what is alive */
};

int xsp_summary_allocations_new(struct xsp_timeline *t, const struct xsp_steps *steps,
				struct xsp_summary_allocations **out)
{
	*out = NULL;
	if (!xsp_timeline_has_allocations(t))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	(*out)->steps = steps;
	(*out)->known = !xsp_timeline_allocations_in_windows(t);
	return 0;
}

void xsp_summary_allocations_free(struct xsp_summary_allocations *a)
{
	if (a == NULL)
		return;
	for (size_t i = 0; i < a->count; i++)
		free(a->sites[i].growth);
	xsp_u64map_free(&a->site_of);
	free(a->index_of);
	free(a->sites);
	free(a);
}

/* ---- collecting ---- */

/* The span's name; of those that only number what they have in common, in `common`. */
static const char *span_of(const struct xsp_summary_allocations *a, const struct xsp_memory_site *s,
			   char common[SPAN_MAX])
{
	const char *name = s->in_span ? xsp_timeline_name(a->timeline, s->span) : "no span";
	const size_t stem = xsp_steps_stem(a->steps, name);

	if (stem == 0)
		return name;
	snprintf(common, SPAN_MAX, "%.*s*", (int)(stem < SPAN_MAX - 2 ? stem : SPAN_MAX - 2), name);
	return common;
}

/* Finds or makes the one that the timeline's `index` is counted in. */
static int find_site(struct xsp_summary_allocations *a, uint32_t index)
{
	const struct xsp_memory_site *where;
	char common[SPAN_MAX];

	xsp_timeline_memory_sites(a->timeline, &where);
	const char *span = span_of(a, &where[index], common);
	const uint64_t key = span == common
				     ? xsp_u64_mix(xsp_text_hash(span, strlen(span))) +
					       xsp_u64_mix((uint64_t)where[index].module << 32 |
							   where[index].place)
				     : index;
	const long at = xsp_u64map_index(&a->site_of, key, &a->sites, &a->capacity, a->count);
	if (at < 0)
		return -ENOMEM;
	if ((size_t)at == a->count)
		a->sites[a->count++] = (struct site){.where = index};
	a->index_of[index] = (uint32_t)at + 1;
	return 0;
}

static int site_at(struct xsp_summary_allocations *a, uint32_t index, struct site **out)
{
	if (xsp_grow(&a->index_of, &a->index_of_capacity, (size_t)index + 1) < 0)
		return -ENOMEM;
	while (a->index_of_count <= index)
		a->index_of[a->index_of_count++] = 0;
	if (a->index_of[index] == 0 && find_site(a, index) < 0)
		return -ENOMEM;
	struct site *s = &a->sites[a->index_of[index] - 1];
	if (s->growth == NULL && a->known && a->growths < MAX_GROWTHS) {
		s->growth = calloc(1, sizeof(*s->growth));
		if (s->growth == NULL)
			return -ENOMEM;
		a->growths++;
	}
	*out = s;
	return 0;
}

int xsp_summary_allocations_event(struct xsp_summary_allocations *a,
				  const struct xsp_memory_event *e)
{
	struct site *s;

	if (a == NULL || e->site == 0)
		return 0;
	int rc = site_at(a, e->site - 1, &s);
	if (rc < 0)
		return rc;
	if (e->bytes > 0) {
		s->allocations += e->blocks;
		s->bytes += (uint64_t)e->bytes;
		s->alive += e->blocks;
		s->alive_bytes += (uint64_t)e->bytes;
		s->variance += e->variance;
	} else {
		s->alive -= e->blocks;
		s->alive_bytes -= (uint64_t)-e->bytes;
		s->variance -= e->variance;
	}
	xsp_growth_time(&a->clock, e->time_ns);
	if (s->growth != NULL)
		xsp_growth_put(&a->clock, s->growth, s->alive_bytes);
	return 0;
}

/* ---- ranking ---- */

static uint64_t whole(double blocks)
{
	return blocks > 0 ? (uint64_t)(blocks + 0.5) : 0;
}

#define NORMAL_95 1.96

static uint64_t error_of(double variance)
{
	return variance > 0 ? (uint64_t)(NORMAL_95 * sqrt(variance)) : 0;
}

static bool is_heap(const struct xsp_summary_allocations *a)
{
	return xsp_timeline_heap_period(a->timeline) > 0;
}

bool xsp_summary_allocations_sure(const struct xsp_summary_allocations *a)
{
	return a->known && xsp_timeline_allocations_lost(a->timeline) == 0;
}

static int by_alive(const void *a, const void *b)
{
	const struct xsp_allocation_site *x = a, *y = b;

	if (x->alive_bytes != y->alive_bytes)
		return x->alive_bytes > y->alive_bytes ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->where < y->where ? -1 : x->where > y->where;
}

static int by_slope(const void *a, const void *b)
{
	const struct xsp_allocation_site *x = a, *y = b;

	if (x->slope.grows != y->slope.grows)
		return x->slope.grows ? -1 : 1;
	if (x->slope.slope > y->slope.slope || x->slope.slope < y->slope.slope)
		return x->slope.slope > y->slope.slope ? -1 : 1;
	return by_alive(a, b);
}

/* What is still alive was there to the recording's end, also if nobody has allocated since; what was given back was so
 * when the program ended, which takes its time. */
static struct xsp_slope slope_of(const struct xsp_summary_allocations *a, const struct site *s,
				 const struct xsp_growth_steps *steps)
{
	struct xsp_growth_clock clock = a->clock;
	uint64_t start, end;

	xsp_timeline_window(a->timeline, &start, &end);
	if (s->alive_bytes > 0)
		xsp_growth_time(&clock, end);
	return xsp_growth_slope(&clock, s->growth, steps);
}

/* All sites, the caller's to free; NULL: out of memory. steps: or NULL. */
static struct xsp_allocation_site *rank(const struct xsp_summary_allocations *a,
					const struct xsp_growth_steps *steps,
					int (*order)(const void *, const void *))
{
	const struct xsp_memory_site *where;
	struct xsp_allocation_site *all = calloc(a->count + 1, sizeof(*all));

	xsp_timeline_memory_sites(a->timeline, &where);
	for (size_t i = 0; all != NULL && i < a->count; i++) {
		const struct site *s = &a->sites[i];
		all[i] = (struct xsp_allocation_site){.where = &where[s->where],
						      .alive = whole(s->alive),
						      .alive_bytes = s->alive_bytes,
						      .alive_error = error_of(s->variance),
						      .allocations = whole(s->allocations),
						      .bytes = s->bytes};
		if (xsp_summary_allocations_sure(a) && s->growth != NULL)
			all[i].slope = slope_of(a, s, steps);
	}
	if (all != NULL && a->count > 0)
		qsort(all, a->count, sizeof(*all), order);
	return all;
}

/* ---- names of places ---- */

static void join_names(const char *span, const char *place, const char *module, char *out,
		       size_t size)
{
	snprintf(out, size, "%s%s%s%s%s", span, span[0] != '\0' && place[0] != '\0' ? " at " : "",
		 place, module[0] != '\0' ? " in " : "", module);
}

/* Of the heap its functions say it all. */
static bool is_bare(const struct xsp_summary_allocations *a, const struct xsp_memory_site *s)
{
	return is_heap(a) && !s->in_span && s->place != 0;
}

/* "aten::empty at train.py:21 train_step in Net_0.layers.0" */
static void name_site(const struct xsp_summary_allocations *a, const struct xsp_memory_site *s,
		      size_t columns, char *out, size_t size)
{
	char common[SPAN_MAX], span[400], place[400] = "", module[400] = "";

	xsp_printable(span, sizeof(span), span_of(a, s, common), columns);
	if (s->place != 0)
		xsp_printable(place, sizeof(place), xsp_timeline_name(a->timeline, s->place - 1),
			      columns * (is_bare(a, s) ? 2 : 1));
	if (s->module != 0)
		xsp_printable(module, sizeof(module), xsp_timeline_name(a->timeline, s->module - 1),
			      columns);
	join_names(is_bare(a, s) ? "" : span, place, module, out, size);
}

/* ---- what is known of a pool, and of a place ---- */

/* "host memory", and where there are several processes " of process 4242" */
static void name_pool(const struct xsp_summary_allocations *a, const struct xsp_memory_use *u,
		      char *out, size_t size)
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
	name_pool(at->of, at->row, at->text, sizeof(at->text));
	return xsp_cell_text(at->text);
}
POOL(pool_peak, xsp_cell_if(of->known, row->peak));
POOL(pool_end, xsp_cell_if(of->known, row->now));
POOL(pool_allocations, xsp_cell_integer(whole(row->allocations)));
POOL(pool_frees, xsp_cell_integer(whole(row->frees)));

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
POOL(pool_peak_error, xsp_cell_if(is_heap(of) && of->known, error_of(row->peak_variance)));
POOL(pool_end_error, xsp_cell_if(is_heap(of) && of->known, error_of(row->now_variance)));
POOL(pool_error, xsp_cell_if(is_heap(of), error_of(row->allocated_variance)));

static const struct xsp_report_column more_of_pools[] = {
	{"pid", "pid", XSP_UNIT_NUMBER, false, XSP_BY(pool_pid)},
	{"device_type", "type", XSP_UNIT_NUMBER, false, XSP_BY(pool_type)},
	{"device", "device", XSP_UNIT_NUMBER, false, XSP_BY(pool_device)},
	/* 95 % */
	{"peak_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_peak_error)},
	{"end_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_end_error)},
	{"allocated_error_bytes", "+-", XSP_UNIT_BYTES, false, XSP_BY(pool_error)},
	{"unknown_frees", "of what was there before", XSP_UNIT_COUNT, false,
	 XSP_FIELD(struct xsp_memory_use, unknown_frees)},
};
static const struct xsp_list pool_list = XSP_LIST_MORE(pool_columns, more_of_pools);

/* Does it grow or shrink for sure? Of most places all is given back again and again. */
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

/* Of names that are there or not: 1 + the timeline's. */
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

	return where->in_span ? xsp_cell_text(span_of(at->of, where, at->text)) : xsp_cell_absent();
}

static struct xsp_cell site_shown(struct xsp_report_at *at)
{
	const struct xsp_allocation_site *site = at->row;

	name_site(at->of, site->where, at->room, at->text, 1300);
	return xsp_cell_text(at->text);
}
SITE(site_place, name_cell(of, row->where->place));
SITE(site_file, name_cell(of, row->where->file));
SITE(site_line, xsp_cell_if(row->where->file != 0, row->where->line));
SITE(site_module, name_cell(of, row->where->module));
SITE(site_error, xsp_cell_if(of->known &&is_heap(of), row->alive_error));
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
static const struct xsp_list site_list = XSP_LIST_MORE(site_columns, more_of_sites);

/* ---- printing ---- */

int xsp_summary_allocations_table(struct xsp_summary_allocations *a, FILE *f,
				  const struct xsp_summary_print *how)
{
	static const struct xsp_list_column of_heap[] = {
		{.key = "alive_bytes", .width = 10},
		{.key = "alive_error_bytes", .width = 9},
		{.key = "alive", .width = 8},
		{.key = "allocated_bytes", .width = 10},
		{.key = "allocations", .width = 11},
		{.key = "shown", .title = "heap (estimated), by where"},
	};
	static const struct xsp_list_column of_pools[] = {
		{.key = "alive_bytes", .width = 10},
		{.key = "alive", .width = 8},
		{.key = "allocated_bytes", .width = 10},
		{.key = "allocations", .width = 11},
		{.key = "shown", .title = "PyTorch's memory, by where"},
	};
	/* "train.py:21 train_step" must be whole: what is longer than a line goes on in the next one */
	const size_t columns = how->width > 130 ? ((size_t)how->width - 50) / 2
			       : how->width > 0 ? 40
						: 0;
	struct xsp_allocation_site *all = a != NULL ? rank(a, NULL, by_alive) : NULL;
	size_t shown_count = 0;

	if (a == NULL || all == NULL)
		return a == NULL ? 0 : -ENOMEM;
	while (shown_count < a->count && (how->limit == 0 || shown_count < SITES_SHOWN))
		shown_count++;
	const struct xsp_list_text text = {&site_list, is_heap(a) ? of_heap : of_pools,
					   is_heap(a) ? 6 : 5, columns};
	if (shown_count > 0)
		xsp_list_head(&text, f, how->color);
	for (size_t i = 0; i < shown_count; i++) {
		xsp_list_row(&text, f, a, &all[i]);
		fputc('\n', f);
	}
	if (shown_count > 0 && shown_count < a->count)
		fprintf(f, "... and %zu more places\n", a->count - shown_count);
	if (shown_count > 0)
		fputc('\n', f);
	free(all);
	return 0;
}

#define ERROR_SIZE (XSP_UNITS_SIZE + 8)

/* " (+- 1.2 MiB)", or nothing. */
static const char *format_error(char out[ERROR_SIZE], uint64_t bytes)
{
	char text[XSP_UNITS_SIZE];

	out[0] = '\0';
	if (bytes > 0)
		snprintf(out, ERROR_SIZE, " (+- %s)", xsp_format_bytes(text, bytes));
	return out;
}

static void print_use(const struct xsp_summary_allocations *a, const struct xsp_capture_reader *r,
		      const struct xsp_memory_use *u, FILE *f)
{
	char pool[120], peak[XSP_UNITS_SIZE], now[XSP_UNITS_SIZE], bytes[XSP_UNITS_SIZE];
	char calls[XSP_UNITS_SIZE], frees[XSP_UNITS_SIZE], when[XSP_UNITS_SIZE];
	char error[3][ERROR_SIZE];
	uint64_t start, end;

	name_pool(a, u, pool, sizeof(pool));
	xsp_capture_window(r, &start, &end);
	fprintf(f, "%s%s, allocated since the recording began%s: ", is_heap(a) ? "" : "PyTorch's ",
		pool, is_heap(a) ? ", as estimated from a sample" : "");
	if (a->known)
		fprintf(f, "%s%s at most (after %s), %s%s at the end; ",
			xsp_format_bytes(peak, u->peak),
			format_error(error[0], error_of(u->peak_variance)),
			xsp_format_ns(when, u->peak_ns > start ? u->peak_ns - start : 0),
			xsp_format_bytes(now, u->now),
			format_error(error[1], error_of(u->now_variance)));
	fprintf(f, "%s%s in %s allocations, %s frees", xsp_format_bytes(bytes, u->allocated),
		format_error(error[2], error_of(u->allocated_variance)),
		xsp_format_count(calls, whole(u->allocations)),
		xsp_format_count(frees, whole(u->frees)));
	if (u->unknown_frees > 0 && !is_heap(a)) /* what was sampled before is not known */
		fprintf(f, ", and %s of what was there before",
			xsp_format_count(calls, u->unknown_frees));
	fputc('\n', f);
}

static void print_uses(const struct xsp_summary_allocations *a, const struct xsp_capture_reader *r,
		       const struct xsp_memory_use *uses, size_t count, FILE *f)
{
	size_t pools = 0;

	for (size_t i = 0; i < count; i++)
		if (xsp_memory_is_allocator(uses[i].pool) && pools++ < POOLS_SHOWN)
			print_use(a, r, &uses[i], f);
	if (pools > POOLS_SHOWN)
		fprintf(f, "... and that of %zu more devices or processes\n", pools - POOLS_SHOWN);
}

static void format_rate(char *out, size_t size, double bytes)
{
	char text[XSP_UNITS_SIZE];

	snprintf(out, size, "%s%s", bytes < 0 ? "-" : "",
		 xsp_format_bytes(text, (uint64_t)(bytes < 0 ? -bytes : bytes)));
}

/* "... of 12 places that came last it is not known whether they grow"; "": of none. */
static const char *not_followed(const struct xsp_summary_allocations *a, char text[160])
{
	char count[XSP_UNITS_SIZE];

	text[0] = '\0';
	if (xsp_summary_allocations_sure(a) && a->count > a->growths)
		snprintf(text, 160,
			 "whether memory grows is followed at %s places: of the %s that "
			 "came later it is not known",
			 xsp_format_count(count, a->growths),
			 xsp_format_count((char[XSP_UNITS_SIZE]){0}, a->count - a->growths));
	return text;
}

static void print_leaks(const struct xsp_summary_allocations *a,
			void (*warn)(void *ctx, const char *text), void *ctx)
{
	struct xsp_allocation_site *all = rank(a, NULL, by_slope);
	size_t leaks = 0;

	while (all != NULL && leaks < a->count && all[leaks].slope.grows)
		leaks++;
	for (size_t i = 0; i < leaks && i < LEAKS_SHOWN; i++) {
		const struct xsp_allocation_site *r = &all[i];
		char slope[40], low[40], high[40], alive[XSP_UNITS_SIZE], blocks[XSP_UNITS_SIZE];
		char where[1300], text[1600];
		format_rate(slope, sizeof(slope), r->slope.slope);
		format_rate(low, sizeof(low), r->slope.low);
		format_rate(high, sizeof(high), r->slope.high);
		name_site(a, r->where, 0, where, sizeof(where));
		snprintf(text, sizeof(text),
			 "leak? only grows: %s, by %s a second (%s to %s): %s in %s blocks are "
			 "alive",
			 where, slope, low, high, xsp_format_bytes(alive, r->alive_bytes),
			 xsp_format_count(blocks, r->alive));
		warn(ctx, text);
	}
	if (leaks > LEAKS_SHOWN) {
		char text[80];
		snprintf(text, sizeof(text), "      and %zu more places that only grow",
			 leaks - LEAKS_SHOWN);
		warn(ctx, text);
	}
	free(all);
}

void xsp_summary_allocations_print(struct xsp_summary_allocations *a,
				   const struct xsp_capture_reader *r, FILE *f,
				   void (*warn)(void *ctx, const char *text), void *ctx)
{
	const struct xsp_memory_use *uses;
	const size_t n = a != NULL ? xsp_timeline_memory(a->timeline, &uses) : 0;
	const uint64_t lost = a != NULL ? xsp_timeline_allocations_lost(a->timeline) : 0;
	char text[240], count[XSP_UNITS_SIZE];

	if (a == NULL)
		return;
	print_uses(a, r, uses, n, f);
	if (!a->known)
		warn(ctx, "what is alive is not known: between the windows of --max-overhead "
			  "allocations and frees were not seen; --max-overhead off sees all");
	if (lost > 0) {
		snprintf(
			text, sizeof(text),
			"allocations or frees that were not seen: %s: what is alive is wrong by as "
			"many blocks, and what grows is not told%s",
			xsp_format_count(count, lost),
			xsp_capture_stats(r)->lost_entries > 0 ? "; a larger --buffer loses less"
							       : "");
		warn(ctx, text);
	}
	print_leaks(a, warn, ctx);
	if (not_followed(a, text)[0] != '\0')
		warn(ctx, text);
}

/* ---- JSON ---- */

int xsp_summary_allocations_json(struct xsp_summary_allocations *a, struct xsp_json_writer *j)
{
	const struct xsp_memory_use *uses;
	struct xsp_allocation_site *all = a != NULL ? rank(a, NULL, by_alive) : NULL;

	if (a == NULL || all == NULL)
		return a == NULL ? 0 : -ENOMEM;
	const size_t n = xsp_timeline_memory(a->timeline, &uses);
	xsp_json_begin(j, "allocations", '{');
	xsp_json_number(j, "lost", xsp_timeline_allocations_lost(a->timeline));
	if (is_heap(a)) /* estimates, from one sample in so many bytes */
		xsp_json_number(j, "heap_sample_bytes", xsp_timeline_heap_period(a->timeline));
	xsp_json_begin(j, "pools", '[');
	for (size_t i = 0; i < n; i++) {
		if (!xsp_memory_is_allocator(uses[i].pool))
			continue;
		xsp_json_begin(j, NULL, '{');
		xsp_list_json(j, &pool_list,
			      "pid device_type device? peak_bytes? end_bytes? peak_error_bytes? "
			      "end_error_bytes? allocated_error_bytes? allocated_bytes allocations "
			      "frees unknown_frees",
			      a, &uses[i]);
		xsp_json_end(j, '{');
	}
	xsp_json_end(j, '[');
	xsp_list_json_rows(j, "sites", &site_list,
			   "name at? file? line? module? alive_bytes? alive? alive_error_bytes? "
			   "allocated_bytes allocations bytes_a_second? bytes_a_second_low? "
			   "bytes_a_second_high? only_grows",
			   a, all, sizeof(*all), a->count);
	xsp_json_end(j, '{');
	free(all);
	return 0;
}

/* ---- report ---- */

struct xsp_allocation_site *xsp_summary_allocations_growing(const struct xsp_summary_allocations *a,
							    const struct xsp_growth_steps *steps,
							    size_t *count)
{
	struct xsp_allocation_site *all = rank(a, steps, by_slope);

	*count = 0;
	while (all != NULL && *count < a->count && all[*count].slope.grows)
		(*count)++;
	return all;
}

void xsp_summary_allocations_name(const struct xsp_summary_allocations *a,
				  const struct xsp_memory_site *where, char *out, size_t size)
{
	const char *place =
		where->place != 0 ? xsp_timeline_name(a->timeline, where->place - 1) : "";
	const char *module =
		where->module != 0 ? xsp_timeline_name(a->timeline, where->module - 1) : "";
	char common[SPAN_MAX];

	join_names(is_bare(a, where) ? "" : span_of(a, where, common), place, module, out, size);
}

static void report_pools(const struct xsp_summary_allocations *a,
			 struct xsp_report_section *section)
{
	const struct xsp_memory_use *uses;
	const size_t n = xsp_timeline_memory(a->timeline, &uses);
	struct xsp_report_table *t = xsp_report_table(section, &pool_shape);

	for (size_t i = 0; i < n; i++)
		if (xsp_memory_is_allocator(uses[i].pool))
			xsp_report_add(t, a, &uses[i]);
}

int xsp_summary_allocations_report(struct xsp_summary_allocations *a, struct xsp_report *report)
{
	struct xsp_allocation_site *all = a != NULL ? rank(a, NULL, by_alive) : NULL;
	char text[160];

	if (a == NULL || all == NULL)
		return a == NULL ? 0 : -ENOMEM;
	struct xsp_report_section *section = xsp_report_section(report, "memory", "Memory");
	report_pools(a, section);
	struct xsp_report_table *t = xsp_report_table(section, &site_shape);
	for (size_t i = 0; i < a->count; i++)
		xsp_report_add(t, a, &all[i]);
	if (is_heap(a))
		xsp_report_note(section, "bytes and blocks are estimates, from a sample "
					 "(--memory=malloc)");
	if (not_followed(a, text)[0] != '\0')
		xsp_report_note(section, text);
	if (!xsp_summary_allocations_sure(a))
		xsp_report_note(section, "what is alive is not known for sure, and what grows is "
					 "not told: events were lost, or not all of the time was "
					 "recorded");
	free(all);
	return 0;
}
