/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory does not grow with the length of the run: 20 million events, with lost exits, fibers and
 * threads that come and go, in less than 50 MB. XSP_MEMORY_EVENTS=200000000 for the long one
 * (32 bytes of disk an event, under TMPDIR or /tmp).
 */
#include <sys/resource.h>

#include "analysis/names/summary.h"
#include "capture_builder.h"

#define LIMIT_KB (50L * 1024)
#ifdef __SANITIZE_ADDRESS__
#define EVENTS 1000000 /* only for what the sanitizers find; their memory is not ours */
#else
#define EVENTS 20000000
#endif

static void a_thread(struct builder *b, uint64_t i)
{
	b->tid = 1000 + (uint32_t)(i % 50);
	task(b, XSP_TASK_FORK, "worker");
	for (uint64_t k = 0; k < 40; k++) {
		uint64_t stack = 0x7f0000000000ULL + (k % 3) * 65536;
		entry(b, 0, stack);
		entry(b, 1 + (uint32_t)(k % 4), stack - 64 - 16 * (i % 5));
		begin(b, 5, stack - 512, i % 1000);
		end(b, 5, stack - 512);
		if ((i + k) % 10 != 0)
			leave(b, 1 + (uint32_t)(k % 4), stack - 64 - 16 * (i % 5));
		leave(b, 0, stack);
	}
	entry(b, 0, 4096);
	task(b, XSP_TASK_EXIT, "");
}

static int no_span(void *ctx, const struct xsp_span *span)
{
	*(uint64_t *)ctx += span->self_ns;
	return 0;
}

Test(timeline_memory, does_not_grow_with_the_run)
{
	struct builder b;
	struct xsp_error err = {0};
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	struct xsp_summary *s;
	struct rusage ru;
	uint64_t sum = 0;
	const char *wanted = getenv("XSP_MEMORY_EVENTS");
	const uint64_t events = wanted == NULL ? EVENTS : strtoull(wanted, NULL, 10);
	builder_begin(&b, 6);
	for (uint64_t i = 0; b.now < events; i++)
		a_thread(&b, i);
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &r, &err), 0, "%s", err.text);
	unlink(b.path);
	cr_assert_eq(xsp_timeline_new(r, &t, &err), 0);
	cr_assert_eq(xsp_summary_new(t, &s), 0);
	struct xsp_timeline_sink sinks[] = {{.ctx = &sum, .span = no_span}, xsp_summary_sink(s)};
	cr_assert_eq(xsp_timeline_run(t, sinks, 2, &err), 0, "%s", err.text);
	const struct xsp_timeline_counts *c = xsp_timeline_counts(t);
	cr_expect_null(span_check_counts(c, c->spans));
	cr_expect_gt(c->spans, events / 3);
	getrusage(RUSAGE_SELF, &ru);
#ifndef __SANITIZE_ADDRESS__
	cr_expect_lt(ru.ru_maxrss, LIMIT_KB, "peak %ld KB", ru.ru_maxrss);
#endif
	fprintf(stderr, "%lu events: peak %ld KB\n", events, ru.ru_maxrss);
	xsp_summary_free(s);
	xsp_timeline_free(t);
	xsp_capture_close(r);
}
