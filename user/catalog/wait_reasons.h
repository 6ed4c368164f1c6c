/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_reasons.h - which system calls wait for what, and how that is said. */
#ifndef XSP_CATALOG_WAIT_REASONS_H
#define XSP_CATALOG_WAIT_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"

/* Of this machine's numbers. XSP_WAIT_OTHER: not in the table. */
enum xsp_wait_class xsp_wait_class_of(unsigned syscall);
/* Does the kernel end it with EINTR when the thread is stopped for a moment, signal or not, instead of going on with it
 * (signal(7)), some on sockets with a timeout only; and is it the same when it is made once more? */
bool xsp_wait_breaks(unsigned syscall);
/* Which option of a socket, SO_RCVTIMEO or SO_SNDTIMEO, limits how long it waits; 0: none. */
int xsp_wait_timeout_option(unsigned syscall);
/* "futex"; NULL: not in the table. */
const char *xsp_wait_syscall(unsigned syscall);
/* "lock", "poll"; never NULL. */
const char *xsp_wait_class_name(unsigned why);
/* As a frame of a stack: "[lock]". */
const char *xsp_wait_class_frame(unsigned why);

/* Is the function one of those in which threads wait whatever the program is: the C library's, the C++ library's? */
bool xsp_wait_is_primitive(const char *function);

/* The same of the kernel's ("schedule_[k]"): of what every wait ends in, and of what tells us. */
bool xsp_wait_is_scheduler(const char *function);

#endif
