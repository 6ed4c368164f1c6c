/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charge.h - every moment of a thread, once: what it ran in, waited for, or stood ready after. The account of the time
 * (model/account/) adds them up. Only captures with waits have charges, and only threads with a row of their own (others.h).
 */
#ifndef XSP_TIMELINE_CHARGE_H
#define XSP_TIMELINE_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

struct xsp_wait;

enum xsp_charge_kind {
	XSP_CHARGE_RUNNING,
	XSP_CHARGE_WAITING, /* off its CPU, until something woke it */
	XSP_CHARGE_READY, /* woken or preempted, and without a CPU */
};

struct xsp_charge {
	enum xsp_charge_kind kind;
	uint32_t pid, tid; /* root namespace */
	uint64_t from_ns,
		to_ns; /* without to_ns itself; the next charge of the thread begins there */
	uint64_t short_ns; /* RUNNING: the part in waits too short for an event of their own */
	uint64_t probe_ns; /* RUNNING: the estimated part in hits of probes */
	bool in_step; /* in a step that is a span, or of a thread whose steps are marked by ends */
	bool paused; /* probes were out (--max-overhead): no span was recorded */
	bool in_span;
	uint32_t
		span; /* xsp_name_id of the innermost; a range that only names a part of the program is none if there are samples */
	uint32_t place; /* 1 + xsp_name_id: the line of Python around it; 0: not known */
	const struct xsp_wait *wait; /* WAITING, READY; valid during the call */
};

#endif
