/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callbacks.h - PyTorch's own callbacks: shared by callbacks.c, which adds and removes them, and callback_calls.c, which
 * they call.
 */
#ifndef XSP_AGENT_CALLBACKS_H
#define XSP_AGENT_CALLBACKS_H

#include "agent/calls.h"

/* at::RecordScope */
enum { SCOPE_OPERATOR = 0, SCOPE_NODE = 1, SCOPE_USER = 7, SCOPES = 10 };
enum { SCOPE_AT = 96 }; /* of a RecordFunction, in all versions */

/* ---- callback_calls.c -------------------------------------------------------------- */

/* What its functions need; callbacks.c fills it before they are added. */
struct callback_calls {
	const char *(*name)(const char *function); /* of PyTorch */
	uint64_t (*next)(void); /* the number that autograd gives the thread's next node */
	uint64_t (*thread)(void); /* PyTorch's own number of the thread */
	void *(*exceptions)(void); /* __cxa_get_globals; NULL: nobody throws */
	uint32_t ranges, operators, nodes; /* rows in the table of functions */
	struct xsp_record_layout layout;
	_Atomic uint32_t checked; /* calls whose names were read both ways */
	_Atomic bool strange; /* they are not made as we think */
};
extern struct callback_calls callback_calls;

/* Both return through `context`, which is a std::unique_ptr. The first for ranges of the user alone, the second for all. */
void *callback_range(void **context, const char *function);
void *callback_start(void **context, const char *function);
void callback_range_end(const char *function, void *context);
void callback_end(const char *function, void *context);

#endif
