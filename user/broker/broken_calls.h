/* SPDX-License-Identifier: BSD-2-Clause */
/* broken_calls.h - what becomes of a system call when its thread is stopped for a moment. */
#ifndef XSP_BROKER_BROKEN_CALLS_H
#define XSP_BROKER_BROKEN_CALLS_H

#include <stdbool.h>

/* Does the kernel end it with EINTR when the thread is stopped for a moment, signal or not, instead of going on with it
 * (signal(7)), some on sockets with a timeout only; and is it the same when it is made once more? */
bool xsp_call_breaks(unsigned syscall);
/* Which option of a socket, SO_RCVTIMEO or SO_SNDTIMEO, limits how long it waits; 0: none. */
int xsp_call_timeout_option(unsigned syscall);

#endif
