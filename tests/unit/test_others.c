/* SPDX-License-Identifier: BSD-2-Clause */
/* More threads than have rows of their own: all calls are there, in few rows. */
#include "capture_builder.h"

#include "timeline/others.h"

#define MORE 3000U

Test(others, threads_beyond_the_bound)
{
	struct builder b;
	struct result r;
	const struct xsp_timeline_thread *threads;
	unsigned other = 0;

	builder_begin(&b, 2);
	for (uint32_t i = 0; i < XSP_THREADS_MOST + MORE; i++) {
		b.pid = b.tid = 1000 + i;
		entry(&b, 0, 2000);
		entry(&b, 1, 1000);
		leave(&b, 1, 1000);
		leave(&b, 0, 2000);
	}
	/* two at once, and one with a row of its own */
	for (uint32_t step = 0; step < 2; step++)
		for (uint32_t i = 0; i < 3; i++) {
			b.pid = b.tid = i == 2 ? 1000 : 900000 + i;
			if (step == 0)
				entry(&b, 0, 2000 + 100 * i);
			else
				leave(&b, 0, 2000 + 100 * i);
		}
	builder_result(&b, &r);
	check_invariants(&r);
	cr_expect_eq(r.counts.spans, 2 * (XSP_THREADS_MOST + MORE) + 3);
	cr_expect_eq(r.counts.unfinished + r.counts.exit_lost + r.counts.orphan_exits, 0);
	cr_expect_eq(r.counts.other_threads, MORE + 2);
	cr_expect_eq(r.counts.other_dropped, 0);
	cr_expect_eq(xsp_timeline_threads(r.timeline, &threads), XSP_THREADS_MOST + 2);
	for (size_t i = 0; i < r.count; i++)
		other += r.spans[i].span.pid == XSP_OTHERS_PID;
	cr_expect_eq(other, 2 * MORE + 2);
	result_free(&r);
}

Test(others, more_at_once_than_rows)
{
	struct builder b;
	struct result r;

	builder_begin(&b, 1);
	for (uint32_t i = 0; i < XSP_THREADS_MOST + XSP_OTHER_ROWS_MOST + 5; i++) {
		b.pid = b.tid = 1000 + i;
		entry(&b, 0, 2000);
	}
	builder_result(&b, &r);
	cr_expect_eq(r.counts.spans, XSP_THREADS_MOST + XSP_OTHER_ROWS_MOST);
	cr_expect_eq(r.counts.other_dropped, 5);
	result_free(&r);
}
