/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_reasons.h - what each system call waits for, and how to say that. */
#ifndef XSP_CATALOG_WAIT_REASONS_H
#define XSP_CATALOG_WAIT_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"

/* By this machine's numbers. XSP_WAIT_OTHER: not in the table. */
enum xsp_wait_class xsp_wait_class_of(unsigned syscall);
/* "futex"; NULL: not in the table. */
const char *xsp_wait_syscall(unsigned syscall);
/* Does it only wait until a disk has what was written? */
bool xsp_wait_is_sync(int32_t syscall);
/* "lock", "poll"; never NULL. */
const char *xsp_wait_class_name(unsigned why);
/* The same as a frame of a stack: "[lock]". */
const char *xsp_wait_class_frame(unsigned why);

/* Does every program wait in this function? That is, is it one of the C or the C++ library? */
bool xsp_wait_is_primitive(const char *function);

/* Does a thread wait in this function for a lock that another one holds, where nothing else shows that? */
bool xsp_wait_is_for_lock(const char *function);

/* The same for the kernel's ("schedule_[k]"): functions that every wait ends in, and those of the
 * tracepoints. */
bool xsp_wait_is_scheduler(const char *function);

/* Linux gives those who ask for any port one from here on (ip_local_port_range's default). */
#define XSP_FREE_PORTS 32768U

#endif
