/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stacks/off_cpu.h"

#include <errno.h>

#include "catalog/wait_reasons.h"

int xsp_off_reported_put(struct xsp_off_reported *reported, uint32_t pid, uint32_t tid, uint64_t ns)
{
	uint64_t *sum = xsp_tally_row(&reported->ns, (uint64_t)pid << 32 | tid, &(uint64_t){0});

	if (sum == NULL)
		return -ENOMEM;
	*sum += ns;
	return 0;
}

int xsp_off_reported_add(struct xsp_off_reported *reported, const struct xsp_wait *wait)
{
	return xsp_off_reported_put(reported, wait->pid, wait->tid,
				    wait->back_ns - wait->left_ns + wait->short_ns);
}

void xsp_off_reported_free(struct xsp_off_reported *reported)
{
	xsp_tally_free(&reported->ns);
}

static int rest(struct xsp_view *v, struct xsp_off_reported *reported, bool on_cpu,
		xsp_off_rest_fn add, void *ctx)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(v->timeline, &times);
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const struct xsp_timeline_thread *t = times[i].thread;
		uint64_t *its = xsp_tally_find(&reported->ns, (uint64_t)t->pid << 32 | t->tid);
		uint64_t ns = on_cpu ? times[i].running_ns
				     : times[i].runnable_ns + xsp_thread_blocked_ns(&times[i]);
		uint64_t less = its != NULL ? *its : 0;
		/* two threads may have had the number, one after the other */
		less = less < ns ? less : ns;
		if (its != NULL)
			*its -= less;
		if (ns > less)
			rc = add(ctx, t, ns - less);
	}
	return rc;
}

int xsp_off_rest(struct xsp_view *v, struct xsp_off_reported *reported, xsp_off_rest_fn add,
		 void *ctx)
{
	return rest(v, reported, false, add, ctx);
}

int xsp_on_cpu_rest(struct xsp_view *v, struct xsp_off_reported *reported, xsp_off_rest_fn add,
		    void *ctx)
{
	return rest(v, reported, true, add, ctx);
}

const char *xsp_off_frame(const struct xsp_view *v, unsigned why)
{
	if (why < XSP_WAIT_CLASSES)
		return xsp_wait_class_frame(why);
	if (why == XSP_NOT_SAMPLED)
		return "[on a CPU, not sampled]";
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
