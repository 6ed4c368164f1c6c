/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ranges.h - providers of named ranges as tables: which functions open, name and close a range.
 */
#ifndef XSP_PROBES_RANGES_H
#define XSP_PROBES_RANGES_H

#include "probes/probe.h"

#define XSP_RANGE_SYMBOLS 6
#define XSP_RANGE_PARTS 8

/* One part of a range. */
struct xsp_range_part {
	enum xsp_probe_action action; /* RANGE_BEGIN, RANGE_LABEL, RANGE_END; or VALUE, alone */
	/* Mangled; none ends the parts. The first symbol that the module has; for RANGE_END, every
	 * one with an address of its own (the C++ destructors D1, D2 and D0 may be one, two or
	 * three functions). */
	const char *symbols[XSP_RANGE_SYMBOLS];
	struct xsp_range_spec spec; /* RANGE_END has only XSP_RANGE_KEYED, copied from the begin */
	bool optional; /* the range is traced even without this part */
	const char *(*call_site)(struct xsp_module *m, uint64_t addr, char *text, size_t size);
	/* RANGE_END: does the function pass its object on to another one of these, before anything
	 * else can happen? Then it needs no probe. NULL: none does */
	bool (*hands_on)(struct xsp_module *m, const struct xsp_symbol *function);
};

struct xsp_range_row {
	const char *name; /* of the probe: shown if a range brings no name */
	/* symbol of a 16-bit reference counter, without which nothing is traced. NULL: needs
	 * none */
	const char *semaphore;
	/* the row does not count in modules with this function, which calls the functions of this
	 * row itself and has a row of its own */
	const char *unless;
	bool nests; /* an END closes the thread's innermost range, wherever it is called from */
	enum xsp_relay relay;
	const char *relay_by; /* `relay` counts only in modules with this function. NULL: in all */
	enum xsp_scope scope; /* XSP_SCOPE_NONE: a user's range. OWN: argument 1 of the begin */
	/* the begin comes before what names or ends it */
	struct xsp_range_part parts[XSP_RANGE_PARTS];
};

/* Operands; a word in memory at register + offset. */
#define XSP_REGISTER(n)                                                                            \
	{                                                                                          \
		.base = (n)                                                                        \
	}
#define XSP_WORD(n, at)                                                                            \
	{                                                                                          \
		.base = (n), .deref = 1, .offset = (at)                                            \
	}
#define XSP_C_STRING XSP_REGISTER(XSP_OPERAND_NONE) /* in place of a length */

/* A begin that has the name as a text; `how`: enum xsp_range_flag. The symbols follow. */
#define XSP_RANGE_BEGINS(how, name_text, name_length, ...)                                         \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_BEGIN, .symbols = {__VA_ARGS__}, .spec = {              \
			.name = XSP_RANGE_NAME_TEXT,                                               \
			.flags = (how),                                                            \
			.text = name_text,                                                         \
			.length = name_length                                                      \
		}                                                                                  \
	}
#define XSP_RANGE_ENDS(...)                                                                        \
	{                                                                                          \
		.action = XSP_ACTION_RANGE_END, .symbols = { __VA_ARGS__ }                         \
	}

/* Adds the rows of which the module has all parts (optional ones may be missing). 0 or -ENOMEM. */
int xsp_ranges_add(const struct xsp_provider *self, struct xsp_module *m,
		   const struct xsp_range_row *rows, size_t count, struct xsp_probe_list *list);

#endif
