/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codes.h - the code objects of an interpreter, and from when to when each was seen to live. Stacks are read some time
 * after they were recorded: by then a script may be over and its code gone, or another object may have the address.
 */
#ifndef XSP_RECORD_CODES_H
#define XSP_RECORD_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/python/python.h"

struct xsp_codes;

/* A rate: so many a second. */
struct xsp_allowance {
	uint64_t left, since_ns;
};
bool xsp_allowance_left(struct xsp_allowance *a, uint64_t a_second);
void xsp_allowance_take(struct xsp_allowance *a, uint64_t reads);

int xsp_codes_new(struct xsp_codes **out); /* 0 or -ENOMEM */
void xsp_codes_free(struct xsp_codes *c); /* NULL is allowed */

/* So long after an object was last seen to live, its address still means it, if nothing else is there. */
#define XSP_CODES_LIVES_NS 100000000ULL
/* Is it sure enough that what was last seen at `seen_ns` lived at `time_ns`? */
static inline bool xsp_codes_lived(uint64_t seen_ns, uint64_t time_ns)
{
	return time_ns <= seen_ns || time_ns - seen_ns <= XSP_CODES_LIVES_NS;
}

/* The code object that a frame executed at that time; valid until the next call. 0; -ENOENT: the frame has none; -EIO:
 * it is gone, or not readable; -ENOMEM. `*fresh`: no stack had it so far. */
int xsp_codes_at(struct xsp_codes *c, struct xsp_python *p, uint64_t address, uint64_t time_ns,
		 const struct xsp_python_code **out, bool *fresh);
/* A frame executes it now: its name may be wanted when it is gone. */
void xsp_codes_meet(struct xsp_codes *c, struct xsp_python *p, uint64_t address);
/* Counts a look-up in its table of lines. -EIO: too many. */
int xsp_codes_count_lines(struct xsp_codes *c, const struct xsp_python_code *code);
/* Checks whether some of them still exist. */
void xsp_codes_check(struct xsp_codes *c, const struct xsp_python *p);
/* Is one of those that stacks have gone since the last call? Then another one may have its address. */
bool xsp_codes_went(struct xsp_codes *c);
bool xsp_codes_knows(const struct xsp_codes *c, uint64_t address);

struct xsp_codes_totals {
	uint64_t read, gone;
};
struct xsp_codes_totals xsp_codes_totals(const struct xsp_codes *c);

#endif
