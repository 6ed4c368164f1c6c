/* SPDX-License-Identifier: BSD-2-Clause */
/* summary_waits_report.c - threads, where their time went, and locks as a section of a report. */
#include "analysis/waits/summary_waits_private.h"

#include <errno.h>
#include <stdlib.h>

#define LOCKS_SHOWN 100 /* whose holder is looked for among all */

static void put_threads(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(w->timeline, &times);
	struct xsp_report_table *t = xsp_report_table(section, &xsp_waits_thread_shape);

	for (size_t i = 0; i < count; i++)
		xsp_report_add(t, w, &times[i]);
}

static int put_locks(const struct xsp_summary_waits *w, struct xsp_report_section *section)
{
	const struct lock **locks = xsp_waits_locks(w);
	struct xsp_report_table *t = xsp_report_table(section, &xsp_waits_lock_shape);

	if (locks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < w->locks.count && i < LOCKS_SHOWN; i++)
		xsp_report_add(t, w, locks[i]);
	if (w->locks.count > LOCKS_SHOWN) {
		char text[80];
		snprintf(text, sizeof(text), "of %zu locks those are shown that took longest",
			 w->locks.count);
		xsp_report_note(section, text);
	}
	char left_out[XSP_WAITS_LEFT_OUT];
	if (xsp_waits_left_out(w, left_out))
		xsp_report_note(section, left_out);
	free(locks);
	return 0;
}

int xsp_summary_waits_report(struct xsp_summary_waits *w, bool with_stacks,
			     struct xsp_report *report)
{
	if (w == NULL)
		return 0;
	struct xsp_report_section *section =
		xsp_report_section(report, "threads", "Threads and what they waited for");

	if (!with_stacks)
		xsp_report_note(section, "where they waited was not recorded: --wait-stacks does");
	xsp_waits_end(w);
	put_threads(w, section);
	return put_locks(w, section);
}
