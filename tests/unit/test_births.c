/* SPDX-License-Identifier: BSD-2-Clause */
/* What is reported of children that were attached to: it counts all of them, however many there
 * are. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "base/clock.h"
#include "capture_builder.h"
#include "record/recorder_private.h"

#define KEPT 65536U /* times that are kept for the median */
#define LATE_NS 5000000000ULL

static uint64_t no_rings[8192]; /* of a broker that has no rings: all zeros */

/* This many children, of which the last one is attached to late. */
static void attach_to(struct xsp_recorder *r, unsigned count)
{
	struct xsp_birth b;

	for (unsigned i = 1; i <= count; i++) {
		const uint64_t now = xsp_now_ns();
		xsp_children_born(r, (pid_t)i, 0, i == count ? now - LATE_NS : now);
		cr_assert(xsp_children_next(r, &b));
		xsp_children_attached(r, &b, 0, "");
	}
}

static void is_told(unsigned count, const char *median)
{
	struct xsp_recorder *r = calloc(1, sizeof(*r));
	struct xsp_capture_reader *reader;
	struct xsp_error err = {0};
	struct builder b;
	char begin[80];
	double most = 0;

	cr_assert_not_null(r);
	builder_begin(&b, 0);
	r->broker = (void *)no_rings;
	r->writer = b.w;
	r->options.attach.follow = true;
	cr_assert_eq(xsp_children_new(r), 0);
	attach_to(r, count);
	cr_assert_eq(xsp_children_put_infos(r), 0);
	xsp_children_free(r);
	free(r);
	builder_end(&b);
	cr_assert_eq(xsp_capture_open(b.path, &reader, &err), 0, "%s", err.text);
	const char *text = xsp_capture_info(reader, "children");
	snprintf(begin, sizeof(begin), "%u born, %u attached to ", count, count);
	cr_assert_not_null(text);
	cr_expect(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
	const char *rest = strstr(text, median);
	cr_assert_not_null(rest, "%s", text);
	cr_expect_eq(sscanf(rest + strlen(median), " after their birth, %lf ms at most", &most), 1,
		     "%s", text);
	cr_expect_geq(most, LATE_NS * 1e-6, "%s", text);
	xsp_capture_close(reader);
	unlink(b.path);
}

Test(births, all_of_them_are_told)
{
	is_told(3, "(median)");
	is_told(KEPT, "(median)");
}

Test(births, beyond_the_times_that_are_kept_they_count_as_well)
{
	is_told(KEPT + 1, "(median of the first ones)");
}
