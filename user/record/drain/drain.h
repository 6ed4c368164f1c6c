/* SPDX-License-Identifier: BSD-2-Clause */
/* drain.h - moves events from the kernel's ring buffers, and those of agents, into the capture file. */
#ifndef XSP_RECORD_DRAIN_H
#define XSP_RECORD_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "broker/attachment.h"
#include "base/error.h"
#include "capture/capture.h"
#include "record/brake/costs.h"
#include "record/drain/calls.h"
#include "xsptrace/event.h"

struct xsp_agent_rings;
struct xsp_drain;
struct xsp_frames;
struct xsp_unwinder;

/* All of it is borrowed. Functions called with `ctx` may be NULL. */
struct xsp_drain_options {
	const int *rings; /* their descriptors; only while new() runs */
	size_t ring_count, ring_bytes; /* bytes of each */
	struct xsp_agent_rings *agents; /* what they record; NULL: there are none */
	bool called_back; /* they are told of it by callbacks */
	struct xsp_capture_writer *writer;
	struct xsp_unwinder *unwinder; /* unwinds copies of stacks; NULL: there are none */
	struct xsp_frames *frames; /* names the addresses of stacks; NULL: there are none */
	struct xsp_costs
		*costs; /* gets the price of each event, by thread and probe; may be NULL */
	struct xsp_calls *calls; /* gets the events of calls; may be NULL */
	bool counts_names; /* totals.names; else 0 */
	double cold_ns; /* how much more a hit costs if its thread was not in a probe for a while */
	struct xsp_price_steps steps; /* the part of a hit that is single-stepping */
	/* Before the event is written; each 0 or a negative errno. sections: it has some. python: a new stack, for
	 * which the function writes its own records. */
	int (*sections)(void *ctx, const struct xsp_event *e);
	int (*python)(void *ctx, const struct xsp_event_python *e);
	/* A name that is an address (XSP_EVENT_NAME_CODE, _VTABLE or _LOST): writes the text at that address. */
	void (*resolve)(void *ctx, const struct xsp_event_name *name, char *text, size_t size);
	/* After it is written. task: births, ends and execs. gpu: a batch of the agent's records. */
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

/* How much more than the calibration's own a function's hit with sections costs, ns. */
void xsp_drain_set_detail(struct xsp_drain *d, double detail_ns);

/* By how much the counted price of later hits is too low, without single-stepping and of that. */
void xsp_drain_set_factors(struct xsp_drain *d, double all, double step);

/*
 * Moves pending events into the capture, at most `most` of each of the kernel's rings. Returns the number moved or the
 * writer's negative errno.
 */
long xsp_drain_run(struct xsp_drain *d, size_t most);
/* Drops pending events: the calibration's. */
void xsp_drain_discard(struct xsp_drain *d);

/* Time in hits: by their probes' prices, with what else is counted, and what samples say of it. */
struct xsp_drain_part {
	uint64_t defined_ns, counted_ns;
	uint64_t defined_then_ns, counted_then_ns; /* at the last sample */
	uint64_t samples, sampled_ns;
};

struct xsp_drain_totals {
	uint64_t events;
	uint64_t calls; /* those that begin a span or are one */
	uint64_t names; /* functions that have been called, and names of ranges without a number */
	uint64_t latest_ns; /* time of the latest hit */
	uint64_t
		cost_ns; /* estimated: what the target's threads have spent in probes and records */
	uint64_t agents_ns; /* the part in records of agents */
	uint64_t cold_ns; /* the part for cold caches */
	uint64_t cold_most_ns; /* the same if all were cold that may have been */
	struct xsp_drain_part parts[2]; /* all hits without single-stepping; that */
};
const struct xsp_drain_totals *xsp_drain_totals(const struct xsp_drain *d);

#endif
