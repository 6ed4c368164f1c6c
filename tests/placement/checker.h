/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checker.h - walks a function's control flow on its own and judges a placement.
 *
 * It shares nothing with user/placement. It decodes every instruction with its operands. It follows
 * the stack pointer through the code instead of .eh_frame's rules, and takes landing pads from the
 * exception tables. It walks paths with their state (entered? left?) instead of cutting them.
 */
#ifndef XSP_TEST_CHECKER_H
#define XSP_TEST_CHECKER_H

#include "image.h"
#include "placement/placement.h"

enum verdict {
	CHECK_OK = 0,
	CHECK_BOUNDARY, /* a site is no instruction of the function */
	CHECK_MISSED, /* a way out without an exit */
	CHECK_DOUBLE, /* two exits on a path */
	CHECK_CALL_AFTER, /* a call after an exit */
	CHECK_ENTRY_MISSED, /* an exit or a way out without the entry before it */
	CHECK_ENTRY_TWICE,
	CHECK_STACK, /* the site's stack rule contradicts the code */
	CHECK_CLASS, /* the bytes at the site are not what its class says */
	CHECK_ELSEWHERE, /* other functions jump past the entry, up to its site */
	CHECK_TOO_BIG, /* given up; counted, not judged */
	CHECK_VERDICTS,
};
extern const char *const verdict_names[CHECK_VERDICTS];

struct check_result {
	enum verdict verdict;
	uint64_t at; /* where the path breaks the rule */
	uint64_t before; /* of a second exit, or a call: where the first exit was */
	/* rets and tail jumps that were seen; those of them whose site is not single-stepped */
	unsigned ways_out, cheap_ways_out;
};

/*
 * By target: the direct jumps and calls of a file from one FDE into the middle of another. In
 * order: the addresses that its code takes, among them jump tables; the functions that it calls;
 * and those that some function calls as its last instruction, which never return. Functions are
 * given by their address, or that of the pointer to them.
 */
struct intrusions {
	struct intrusion {
		uint64_t target, from;
	} * list;
	size_t count, capacity;
	struct addresses {
		uint64_t *list;
		size_t count, capacity;
	} data, last_calls, called;
};
struct intrusions find_intrusions(const struct image *im);

struct check_result check_placement(const struct image *im, uint64_t addr,
				    const struct intrusions *in, const struct xsp_placement *p);

#endif
