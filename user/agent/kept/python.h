/* SPDX-License-Identifier: BSD-2-Clause */
/* python.h - the stacks of Python that calls are made from. */
#ifndef XSP_AGENT_PYTHON_H
#define XSP_AGENT_PYTHON_H

#include "agent/calls.h"

/* The place of this thread's stack; XSP_RING_NO_NAME: there is no room. False: it runs no Python. In a thunk. */
bool python_place(struct thread_calls *t, uint64_t *place);
/* Puts it, if it runs Python, in a record of its own before that of a function of this number. Likewise. */
void python_put(struct thread_calls *t, uint64_t function, uint64_t sp);

#endif
