/* SPDX-License-Identifier: BSD-2-Clause */
/* wait_reasons.h - which system calls wait for what, and how that is said. */
#ifndef XSP_CATALOG_WAIT_REASONS_H
#define XSP_CATALOG_WAIT_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "xsptrace/event.h"

/* Of this machine's numbers. XSP_WAIT_OTHER: not in the table. */
enum xsp_wait_class xsp_wait_class_of(unsigned syscall);
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
