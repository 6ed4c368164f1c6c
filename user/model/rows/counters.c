/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/rows/counters.h"

#include <string.h>

/* The position of one side of a counter in its section. */
static bool read_side(const struct xsp_section *s, size_t index, size_t at, bool perf,
		      struct xsp_perf_value *out)
{
	size_t size = perf ? sizeof(*out) : sizeof(out->counter);

	*out = (struct xsp_perf_value){0};
	if (!(s->value & 1U << index) || at + size > xsp_section_length(s))
		return false;
	memcpy(out, (const char *)xsp_section_data(s) + at, size);
	return true;
}

/* The difference of two readings. False: not known; absent is better than wrong. */
static bool difference(const struct xsp_perf_value *a, const struct xsp_perf_value *b,
		       uint64_t *out)
{
	uint64_t enabled = b->enabled_ns - a->enabled_ns, running = b->running_ns - a->running_ns;

	if (b->counter < a->counter || b->enabled_ns < a->enabled_ns ||
	    b->running_ns < a->running_ns)
		return false;
	*out = b->counter - a->counter;
	if (running >= enabled)
		return true;
	if (running == 0)
		return false; /* others had the hardware all the time */
	*out = (uint64_t)((unsigned __int128)*out * enabled / running);
	return true;
}

int xsp_counter_readings(const struct xsp_view *v, const struct xsp_span *span, xsp_reading_fn fn,
			 void *ctx)
{
	const char *names = xsp_capture_info(v->reader, "counters");
	const struct xsp_section *begin =
		xsp_details_find(span->details, XSP_SECTION_COUNTERS, NULL);
	const struct xsp_section *end =
		xsp_details_find(span->details, XSP_SECTION_COUNTERS_END, NULL);
	struct xsp_perf_value a, b;
	size_t at = 0;
	int rc = 0;

	if (names == NULL || begin == NULL || end == NULL ||
	    span->flags & XSP_SPAN_CUT) /* counters are of the whole span */
		return 0;
	for (size_t i = 0; i < XSP_COUNTERS_MAX && *names != '\0' && rc == 0; i++) {
		size_t length = strcspn(names, ",");
		bool perf = length > 0 && names[length - 1] == '*';
		char name[XSP_COUNTER_NAME];
		if (length - perf < sizeof(name) && read_side(begin, i, at, perf, &a) &&
		    read_side(end, i, at, perf, &b)) {
			memcpy(name, names, length - perf);
			name[length - perf] = '\0';
			rc = fn(ctx, name, &a, &b);
		}
		at += perf ? sizeof(a) : sizeof(a.counter);
		names += length + (names[length] == ',');
	}
	return rc;
}

struct counter_consumer {
	xsp_counter_fn fn;
	void *ctx;
};

static int report_difference(void *ctx, const char *name, const struct xsp_perf_value *begin,
			     const struct xsp_perf_value *end)
{
	const struct counter_consumer *t = ctx;
	uint64_t value;

	return difference(begin, end, &value) ? t->fn(t->ctx, name, value) : 0;
}

int xsp_counters_of(const struct xsp_view *v, const struct xsp_span *span, xsp_counter_fn fn,
		    void *ctx)
{
	return xsp_counter_readings(v, span, report_difference,
				    &(struct counter_consumer){fn, ctx});
}
