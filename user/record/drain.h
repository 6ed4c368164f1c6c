/* SPDX-License-Identifier: BSD-2-Clause */
/* drain.h - from the kernel's ring buffers into the capture file. */
#ifndef XSP_RECORD_DRAIN_H
#define XSP_RECORD_DRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "broker/attachment.h"
#include "base/error.h"
#include "capture/capture.h"
#include "record/costs.h"
#include "xsptrace/event.h"

struct xsp_drain;

/* Told of events that are about processes and threads, not spans (XSP_EVENT_TASK); they are in
 * the capture already. */
typedef void (*xsp_drain_task_fn)(void *ctx, const struct xsp_event_task *task);

/* Told of a name that is an address (XSP_EVENT_NAME_CODE, _VTABLE or _LOST): writes what lies there
 * into `text`. */
typedef void (*xsp_drain_resolve_fn)(void *ctx, const struct xsp_event_name *name, char *text,
				     size_t size);

/* Maps the rings, of `ring_bytes` each. `fds` stay the caller's. */
int xsp_drain_new(const int *fds, size_t count, size_t ring_bytes,
		  struct xsp_capture_writer *writer, xsp_drain_task_fn task,
		  xsp_drain_resolve_fn resolve, void *ctx, struct xsp_drain **out,
		  struct xsp_error *err);
void xsp_drain_free(struct xsp_drain *d);
/* Shown each batch of GPU records as it goes by. */
typedef void (*xsp_drain_gpu_fn)(void *ctx, const struct xsp_event_gpu *e);
void xsp_drain_set_gpu(struct xsp_drain *d, xsp_drain_gpu_fn fn);

/* Shown each event with sections before it is written. 0 or a negative errno. */
typedef int (*xsp_drain_sections_fn)(void *ctx, const struct xsp_event *e);
void xsp_drain_set_sections(struct xsp_drain *d, xsp_drain_sections_fn fn);

/* Given each Python stack that is new; it writes what it makes of it. 0 or a negative errno. */
typedef int (*xsp_drain_python_fn)(void *ctx, const struct xsp_event_python *e);
void xsp_drain_set_python(struct xsp_drain *d, xsp_drain_python_fn fn);

/* Has the addresses of stacks named; `f` stays the caller's. */
struct xsp_frames;
struct xsp_unwinder;
/* Samples go into the capture as it gives them back. */
void xsp_drain_set_unwinder(struct xsp_drain *d, struct xsp_unwinder *u);
void xsp_drain_set_frames(struct xsp_drain *d, struct xsp_frames *f);

/* The price of entries and exits of each probe, ns, for the running estimate. Borrowed; may be
 * set again when it grows. */
void xsp_drain_set_prices(struct xsp_drain *d, const struct xsp_probe_price *prices, size_t count);

/* What a hit costs more when its thread was not in a probe for a while, ns. */
void xsp_drain_set_cold(struct xsp_drain *d, double cold_ns);

/* What a function's hit that puts sections costs more than the calibration's own, ns. */
void xsp_drain_set_detail(struct xsp_drain *d, double detail_ns);

/* Has the price of each event added for its thread and probe; `costs` stays the caller's. */
void xsp_drain_set_costs(struct xsp_drain *d, struct xsp_costs *costs);

/*
 * Moves what is there into the capture, at most `most` events of each ring. Returns the number moved or
 * the writer's negative errno.
 */
long xsp_drain_run(struct xsp_drain *d, size_t most);
/* Throws away what is there: the calibration's events. */
void xsp_drain_discard(struct xsp_drain *d);

uint64_t xsp_drain_events(const struct xsp_drain *d);
uint64_t xsp_drain_calls(const struct xsp_drain *d); /* of them, what begins a span or is one */
/* Estimated time that the target's threads have spent in probes, ns. */
uint64_t xsp_drain_cost_ns(const struct xsp_drain *d);
/* ... of which so much is because the caches were taken for cold, and how much that could be at most. */
void xsp_drain_cold(const struct xsp_drain *d, uint64_t *sum_ns, uint64_t *most_ns);

#endif
