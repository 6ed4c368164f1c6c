/* SPDX-License-Identifier: BSD-2-Clause */
/* walk.h - from a thread to its frames of Python: shared by walk.c and python.c. */
#ifndef XSP_AGENT_WALK_H
#define XSP_AGENT_WALK_H

#include "agent/calls.h"

/* How it is read; python.c has checked it. */
extern struct walk_how {
	struct xsp_python_spec spec;
	uint64_t finalizing; /* an address; 0: none */
	uint32_t frames; /* at most */
	uint32_t main; /* the main thread */
} walk_how;

enum walk_end {
	WALK_STACK, /* there is a stack, or the first part of one */
	WALK_NONE, /* the thread runs no Python */
	WALK_UNKNOWN, /* nobody knows yet whether a page can be read */
};

struct walk {
	uint64_t unreadable; /* a page */
	uint64_t learned; /* one that can be read, as was found out since */
	uint64_t unknown; /* one of which that must be found out */
	enum walk_end end;
	uint32_t used; /* words */
	uint64_t mix; /* of the words */
	uint64_t word[XSP_RING_PYTHON_MAX / sizeof(uint64_t)]; /* as in xsptrace/ring.h */
};

/* The frames of this thread. Makes no call, and may be left in its middle for good (thunk_in_one_go). */
void walk(struct walk *w);

#endif
