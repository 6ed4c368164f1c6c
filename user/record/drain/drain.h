/* SPDX-License-Identifier: BSD-2-Clause */
/* drain.h - from the kernel's ring buffers into the capture file. */
#ifndef XSP_RECORD_DRAIN_H
#define XSP_RECORD_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "broker/attachment.h"
#include "base/error.h"
#include "capture/capture.h"
#include "record/brake/costs.h"
#include "xsptrace/event.h"

struct xsp_drain;
struct xsp_frames;
struct xsp_unwinder;

/* All of it is borrowed. What is called with `ctx` may be NULL. */
struct xsp_drain_options {
	const int *rings; /* their descriptors; only while new() runs */
	size_t ring_count, ring_bytes; /* bytes of each */
	struct xsp_capture_writer *writer;
	struct xsp_unwinder *unwinder; /* copies of stacks become stacks; NULL: there are none */
	struct xsp_frames *frames; /* has the addresses of stacks named; NULL: there are none */
	struct xsp_costs
		*costs; /* the price of each event is added, by thread and probe; may be NULL */
	double cold_ns; /* what a hit costs more when its thread was not in a probe for a while */
	/* Before the event is written; each 0 or a negative errno. sections: it has some. python: a stack that is new, of
	 * which the function writes what it makes of it. */
	int (*sections)(void *ctx, const struct xsp_event *e);
	int (*python)(void *ctx, const struct xsp_event_python *e);
	/* A name that is an address (XSP_EVENT_NAME_CODE, _VTABLE or _LOST): writes what lies there into `text`. */
	void (*resolve)(void *ctx, const struct xsp_event_name *name, char *text, size_t size);
	/* When it is written. task: births, ends and execs. gpu: a batch of the agent's records. */
	void (*task)(void *ctx, const struct xsp_event_task *task);
	void (*gpu)(void *ctx, const struct xsp_event_gpu *e);
	void *ctx;
};

/* Maps the rings. */
int xsp_drain_new(const struct xsp_drain_options *options, struct xsp_drain **out,
		  struct xsp_error *err);
void xsp_drain_free(struct xsp_drain *d);

/* The price of entries and exits of each probe, ns, for the running estimate. Borrowed; may be
 * set again when it grows. */
void xsp_drain_set_prices(struct xsp_drain *d, const struct xsp_probe_price *prices, size_t count);

/* What a function's hit that puts sections costs more than the calibration's own, ns. */
void xsp_drain_set_detail(struct xsp_drain *d, double detail_ns);

/*
 * Moves what is there into the capture, at most `most` events of each ring. Returns the number moved or
 * the writer's negative errno.
 */
long xsp_drain_run(struct xsp_drain *d, size_t most);
/* Throws away what is there: the calibration's events. */
void xsp_drain_discard(struct xsp_drain *d);

struct xsp_drain_totals {
	uint64_t events;
	uint64_t calls; /* of them, what begins a span or is one */
	uint64_t cost_ns; /* estimated: what the target's threads have spent in probes */
	uint64_t cold_ns; /* ... because their caches were taken for cold */
	uint64_t cold_most_ns; /* ... if all were cold that may have been */
};
const struct xsp_drain_totals *xsp_drain_totals(const struct xsp_drain *d);

#endif
