/* SPDX-License-Identifier: BSD-2-Clause */
/* broken_calls.h - what happens to a system call when its thread is stopped for a moment. */
#ifndef XSP_BROKER_BROKEN_CALLS_H
#define XSP_BROKER_BROKEN_CALLS_H

#include <stdbool.h>

/* Does the kernel end this call with EINTR instead of resuming it, even without a signal (signal(7)), and may it be
 * made again? Some calls end so on sockets with a timeout only. */
bool xsp_call_breaks(unsigned syscall);
/* The socket option that limits how long this call waits, SO_RCVTIMEO or SO_SNDTIMEO; 0: none does. */
int xsp_call_timeout_option(unsigned syscall);

#endif
