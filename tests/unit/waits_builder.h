/* SPDX-License-Identifier: BSD-2-Clause */
/* waits_builder.h - captures with waits and samples of two functions. */
#ifndef XSP_TESTS_WAITS_BUILDER_H
#define XSP_TESTS_WAITS_BUILDER_H

#include "capture_builder.h"

#define SP 0x7ff000000000ULL
#define NO_PROBE UINT32_MAX
enum { AT_HOT, AT_COLD };

static inline void start(struct builder *b)
{
	builder_begin(b, 3);
	cr_assert_eq(xsp_capture_put_info(b->w, "waits", "10"), 0);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	address_name(b, XSP_NAME_OF_CODE, AT_HOT, "app\nhot");
	address_name(b, XSP_NAME_OF_CODE, AT_COLD, "app\ncold");
}

static inline void sample(struct builder *b, uint64_t at, uint64_t address)
{
	struct xsp_event_sample e = {
		.head = {.kind = XSP_EVENT_SAMPLE, .probe = NO_PROBE, .sp = SP - 0x4000},
		.address = address,
		.period_ns = 10,
		.syscall = -2};
	b->now = at;
	builder_put(b, &e, sizeof(e));
}

#endif
