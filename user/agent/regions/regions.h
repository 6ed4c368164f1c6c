/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions.h - the regions of record_function.h: shared by regions.c and region_calls.c.
 *
 * The header's functions jump to those here, by a pointer that each program and library with the header has and that
 * regions.c sets. They write into the thread's ring (calls.h). Without a recording the kernel's semaphore is 0, and
 * nobody comes here.
 */
#ifndef XSP_AGENT_REGIONS_H
#define XSP_AGENT_REGIONS_H

#include "agent/calls.h"

enum region_part { REGION_ENTER, REGION_EXIT, REGION_VALUE, REGION_PARTS };

/* What the pointer leads to. The layout of the functions is the header's. */
struct region_table {
	void (*function[REGION_PARTS])(void);
	uint32_t row[REGION_PARTS]; /* in the table of functions */
};

/* ---- scopes.c -------------------------------------------------------------------- */

enum { SCOPE_REGISTER = -1, SCOPE_NONE = 0xff };
/* An argument: a register's number, or a word in memory `at` bytes behind what it points to. */
struct scope_word {
	uint8_t number;
	int8_t at; /* SCOPE_REGISTER: it is the register itself */
};
struct scope_shape {
	struct scope_word text, length; /* length.number SCOPE_NONE: it is a C string */
	bool guard; /* the object in the first register begins and ends it */
};
const struct scope_shape *scopes_shape(uint32_t part);

/* ---- region_calls.c -------------------------------------------------------------- */

extern void (*const region_functions[REGION_PARTS])(void);

#endif
