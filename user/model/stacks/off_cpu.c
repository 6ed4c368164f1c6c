/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stacks/off_cpu.h"

#include <errno.h>

#include "catalog/wait_reasons.h"

int xsp_off_reported_add(struct xsp_off_reported *reported, const struct xsp_wait *wait)
{
	const uint64_t key = (uint64_t)wait->pid << 32 | wait->tid;
	uint64_t *ns = xsp_tally_row(&reported->ns, key, &(uint64_t){0});

	if (ns == NULL)
		return -ENOMEM;
	*ns += wait->back_ns - wait->left_ns + wait->short_ns;
	return 0;
}

void xsp_off_reported_free(struct xsp_off_reported *reported)
{
	xsp_tally_free(&reported->ns);
}

int xsp_off_rest(struct xsp_view *v, struct xsp_off_reported *reported, xsp_off_rest_fn add,
		 void *ctx)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(v->timeline, &times);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const struct xsp_timeline_thread *t = times[i].thread;
		uint64_t *its = xsp_tally_find(&reported->ns, (uint64_t)t->pid << 32 | t->tid);
		uint64_t ns = times[i].runnable_ns + xsp_thread_blocked_ns(&times[i]);
		uint64_t less = its != NULL ? *its : 0;
		/* a number may have been that of two threads, one after the other */
		less = less < ns ? less : ns;
		if (its != NULL)
			*its -= less;
		if (ns > less)
			rc = add(ctx, t, ns - less);
	}
	return rc;
}

const char *xsp_off_frame(const struct xsp_view *v, unsigned why)
{
	if (why < XSP_WAIT_CLASSES)
		return xsp_wait_class_frame(why);
	return xsp_capture_stats(v->reader)->lost_other > 0 ? "[short and lost waits]"
							    : "[short waits]";
}

size_t xsp_off_parts(const struct xsp_wait *w, struct xsp_off_part parts[XSP_OFF_PARTS])
{
	const struct xsp_off_part all[XSP_OFF_PARTS] = {
		{XSP_OFF_REST, w->spans_length, w->short_ns},
		{w->why, w->path_length, w->woken_ns - w->left_ns},
		{XSP_WAIT_RUNNABLE, w->path_length, w->back_ns - w->woken_ns},
	};
	size_t n = 0;

	for (size_t i = 0; i < XSP_OFF_PARTS; i++)
		if (all[i].ns > 0)
			parts[n++] = all[i];
	return n;
}
