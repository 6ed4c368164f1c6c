/* SPDX-License-Identifier: BSD-2-Clause */
/* journal.h - what the service says, and to whom: the journal (sd-daemon(3)), and the manager that started it (sd_notify(3)). */
#ifndef XSP_SERVICE_JOURNAL_H
#define XSP_SERVICE_JOURNAL_H

#include <stdint.h>

enum xsp_priority { XSP_LOG_ERROR = 3, XSP_LOG_WARNING = 4, XSP_LOG_NOTICE = 5, XSP_LOG_INFO = 6 };

/* A line on standard error; where systemd reads that, with its priority in front. */
void xsp_log(enum xsp_priority priority, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "READY=1", "STATUS=...", "WATCHDOG=1". Without such a manager it does nothing. */
void xsp_notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How often the manager wants to hear of us; 0: not at all. */
uint64_t xsp_notify_watchdog_ns(void);

#endif
