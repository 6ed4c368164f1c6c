/* SPDX-License-Identifier: BSD-2-Clause */
/* values.c - the meaning of value events: numbers, and changes that add up to a number (for a
 * process and a name, from 0 on). */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "catalog/values.h"

struct xsp_values {
	const struct xsp_value_function **functions; /* by probe; NULL: it reports none */
	size_t room, looked; /* at so many probes: more come while a recording is followed */
	bool changes; /* some functions report changes */
	XSP_TALLY(double) now; /* by process << 32 | name: its present sum */
};

/* 1: some report values; 0, or -ENOMEM. */
static int look_at_probes(const struct xsp_timeline *t)
{
	struct xsp_values *v = t->values;
	bool any = false;

	if (xsp_grow_zeroed(&v->functions, &v->room, t->probe_count + 1) < 0)
		return -ENOMEM;
	for (; v->looked < t->probe_count; v->looked++) {
		const struct xsp_value_function *f =
			xsp_value_function(t->probes[v->looked].symbol);
		v->functions[v->looked] = f;
		any = any || f != NULL;
		v->changes |= f != NULL && f->change != 0;
	}
	return any;
}

static int begin(struct xsp_timeline *t)
{
	struct xsp_values *v = t->values = calloc(1, sizeof(*v));

	if (v == NULL)
		return -ENOMEM;
	v->changes = t->live; /* who reports them may come later */
	const int any = look_at_probes(t);
	return t->live && any == 0 ? 1 : any;
}

static void free_values(struct xsp_timeline *t)
{
	if (t->values == NULL)
		return;
	xsp_tally_free(&t->values->now);
	free(t->values->functions);
	free(t->values);
}

/* Adds a change to its sum; *value: the new sum. */
static int add_up(struct xsp_values *v, const struct xsp_value_function *f,
		  const struct xsp_value *reading, double *value)
{
	const uint64_t key = xsp_u64_pair(reading->pid, reading->name);
	double *now = xsp_tally_row(&v->now, key, &(double){0});

	if (now == NULL)
		return -ENOMEM;
	*now = f->change == 0 ? *value : *now + f->change * *value;
	*value = *now;
	return 0;
}

static int on_event(struct xsp_timeline *t, const struct xsp_event *e)
{
	const struct xsp_event_value *x = (const void *)e;
	struct xsp_value reading = {.time_ns = e->time_ns, .pid = e->tgid, .tid = e->tid};

	if (e->probe >= t->values->looked && look_at_probes(t) < 0)
		return -ENOMEM;
	const struct xsp_value_function *f =
		e->probe < t->values->looked ? t->values->functions[e->probe] : NULL;
	if (f == NULL || (x->flags & XSP_VALUE_UNREAD) ||
	    !xsp_value_decode(f, x->type, x->bits, &reading.value)) {
		t->counts.values_unread++;
		return 0;
	}
	int rc = xsp_event_name(t, e, &reading.name);
	if (rc == 0 && t->values->changes)
		rc = add_up(t->values, f, &reading, &reading.value);
	return rc == 0 ? xsp_notify_value(t, e->probe, &reading) : rc;
}

const struct xsp_listener xsp_listener_values = {
	.name = "values",
	.live = true,
	.begin = begin,
	.events = 1U << XSP_EVENT_VALUE,
	.event = on_event,
	.free = free_values,
};
