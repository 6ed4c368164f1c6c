/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checker.h - walks a function's control flow on its own and judges a placement.
 *
 * It shares nothing with user/placement: every instruction is decoded with its operands,
 * the stack pointer is followed through the code instead of .eh_frame's rules, landing
 * pads come from the exception tables, and paths are walked with their state (entered?
 * left?) instead of being cut.
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
	CHECK_CALL_AFTER, /* a call behind an exit */
	CHECK_ENTRY_MISSED, /* an exit or a way out without the entry before it */
	CHECK_ENTRY_TWICE,
	CHECK_STACK, /* the site's stack rule contradicts the code */
	CHECK_CLASS, /* the bytes at the site are not what its class says */
	CHECK_ELSEWHERE, /* other functions jump behind the entry, up to its site */
	CHECK_TOO_BIG, /* given up; counted, not judged */
	CHECK_VERDICTS,
};
extern const char *const verdict_names[CHECK_VERDICTS];

struct check_result {
	enum verdict verdict;
	uint64_t at; /* where the path breaks the rule */
	uint64_t before; /* ... of a second exit, or a call: where the first exit was */
	unsigned ways_out, cheap_ways_out; /* rets and tail jumps seen; those that a cheaper
					    * site than a single-stepped one covers */
};

/*
 * The direct jumps and calls of a file from one FDE into the middle of another, by target; in order,
 * what its code takes the address of, its jump tables among it; whom it calls; and whom some function calls last
 * of all, with nothing behind it: they never return. By their address, or that of the pointer to them.
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
