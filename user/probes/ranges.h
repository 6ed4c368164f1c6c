/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges.h - providers of named ranges as tables: which functions open, name and close a range.
 */
#ifndef XSP_PROBES_RANGES_H
#define XSP_PROBES_RANGES_H

#include "probes/probe.h"

#define XSP_RANGE_SYMBOLS 6
#define XSP_RANGE_PARTS 8

/* One thing that a range is made of. */
struct xsp_range_part {
	enum xsp_probe_action action; /* RANGE_BEGIN, RANGE_LABEL, RANGE_END; or VALUE, alone */
	/* Mangled; none: no more parts. The first one that the module has; of RANGE_END every one that has an address of
	 * its own (C++ destructors: D1, D2 and D0 may be one, two or three functions). */
	const char *symbols[XSP_RANGE_SYMBOLS];
	struct xsp_range_spec
		spec; /* of RANGE_END: only XSP_RANGE_KEYED, taken from the beginning */
	bool optional; /* the range is traced without this part as well */
	const char *(*call_site)(struct xsp_module *m, uint64_t addr, char *text, size_t size);
	/* Of RANGE_END: does the function hand its object on to another one of these, before anything
	 * else can happen? Then it needs no probe. NULL: none does */
	bool (*hands_on)(struct xsp_module *m, const struct xsp_symbol *function);
};

struct xsp_range_row {
	const char *name; /* of the probe: shown when a range brings no name */
	const char *semaphore; /* symbol of a 16-bit reference counter; without it nothing is
				* traced. NULL: needs none */
	const char *unless; /* the row counts only in modules without this function: one that
			     * calls this row's functions itself, and has a row of its own */
	bool nests; /* an END is that of the thread's innermost range, wherever it is called from */
	enum xsp_relay relay;
	const char *relay_by; /* ... only in modules with this function. NULL: in all */
	enum xsp_scope
		scope; /* XSP_SCOPE_NONE: a user's range. OWN: argument 1 of what begins it */
	struct xsp_range_part parts[XSP_RANGE_PARTS]; /* the begin before what names or ends it */
};

/*
 * Adds the rows whose parts the module has, all of them (or the optional ones not). Returns 0 or
 * a negative errno, with err set.
 */
int xsp_ranges_add(const struct xsp_provider *self, struct xsp_module *m,
		   const struct xsp_range_row *rows, size_t count, struct xsp_probe_list *list,
		   struct xsp_error *err);

#endif
