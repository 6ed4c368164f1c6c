/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_counters.h - --counters: parses perf's names of counters, and opens the events that count in each thread. */
#ifndef XSP_BROKER_KERNEL_PERF_COUNTERS_H
#define XSP_BROKER_KERNEL_PERF_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "xsptrace/event.h"

struct xsp_counter {
	char name[40]; /* as given; outputs show it */
	enum xsp_counter_kind kind;
	uint32_t type; /* XSP_COUNTER_PERF: perf_event_attr.type, .config */
	uint64_t config;
	bool user_only, kernel_only; /* NAME:u, NAME:k */
};

/* A name from `perf list`, with or without :u or :k after it; or rNNN, a raw event in hexadecimal. */
int xsp_counter_parse(const char *text, struct xsp_counter *out, struct xsp_error *err);

/* Can this machine count it? 0, or a negative errno with one line in err. */
int xsp_counter_check(const struct xsp_counter *counter, struct xsp_error *err);

/* Bytes of a section with these counters. */
size_t xsp_counter_bytes(const struct xsp_counter *counters, size_t count);
/* events of one thread */
size_t xsp_counter_events(const struct xsp_counter *counters, size_t count);

/* Opens the event of one thread. A descriptor or a negative errno. */
int xsp_counter_open(const struct xsp_counter *counter, pid_t tid);

#endif
