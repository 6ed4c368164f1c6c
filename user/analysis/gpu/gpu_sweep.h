/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_sweep.h - what ran on devices and streams at each moment: unions of time, gaps, queues.
 *
 * Activities come seconds late and in no order, so their beginnings and ends are held, sorted, and gone through in order of
 * time, the older half whenever there are too many. What comes later than that is counted; of it, only what lies behind
 * the moment that was reached is in the figures.
 */
#ifndef XSP_ANALYSIS_GPU_SWEEP_H
#define XSP_ANALYSIS_GPU_SWEEP_H

#include "timeline/timeline.h"

/* Beginnings, ends and launches that are held: 48 bytes each, three an activity. */
#define XSP_GPU_HELD_MOST (3U << 17)
/* HTA's least gap between two kernels that is not the device's own. Its documentation calls the 30 ns; it compares them
 * with microseconds. */
#define XSP_GPU_KERNEL_WAIT_NS 30000U
/* Launches that a stream can hold before the next one blocks. */
#define XSP_GPU_QUEUE_MOST 1024U
/* Nsight Systems' rules: gaps of at least so long; use in so many windows. */
#define XSP_GPU_LONG_GAP_NS 500000000ULL
#define XSP_GPU_USE_WINDOWS 30U

#define XSP_GPU_NOWHERE UINT32_MAX

enum xsp_gpu_class {
	XSP_GPU_FOR_COMPUTE,
	XSP_GPU_FOR_COMMUNICATION,
	XSP_GPU_FOR_MEMORY,
	XSP_GPU_CLASSES,
};

/* Why a stream did nothing before an activity (HTA's definitions). */
enum xsp_gpu_idle {
	XSP_GPU_IDLE_HOST, /* its launch began only after the last one had ended */
	XSP_GPU_IDLE_KERNEL, /* not so, and shorter than XSP_GPU_KERNEL_WAIT_NS */
	XSP_GPU_IDLE_OTHER,
	XSP_GPU_IDLE_UNKNOWN, /* its launch is not known */
	XSP_GPU_IDLES,
};

/* A kernel, a copy or a set. */
struct xsp_gpu_work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns; /* when the call that launched it began; 0: not known */
	uint32_t call_tid;
	uint32_t pid, device, context, stream;
	enum xsp_gpu_class class;
	uint32_t name; /* the caller's */
	bool queued; /* its launch takes a place in the stream's queue */
};

/* Times are ns; those of devices are of the union over their streams. */
struct xsp_gpu_device_use {
	uint32_t pid, device;
	uint64_t activities;
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC */
	uint64_t in_ns
		[1 << XSP_GPU_CLASSES]; /* bit c: class c ran; [0]: idle between first and last */
	uint64_t unrecorded_ns; /* nothing ran, and not all of it was recorded: in no idle time */
	/* The agent goes on in pauses of --max-overhead, in which nobody knows what the host did. Between first and last
	 * without them, known at the end, and busy in it: what shares are of */
	uint64_t recorded_ns, recorded_busy_ns;
	uint64_t host_ns; /* of idle: the launch of what ended it had not begun; until it did */
	uint64_t total_ns[XSP_GPU_CLASSES]; /* sums of durations */
	uint64_t several_ns; /* two streams or more at work */
	uint64_t gap_ns, gap_from_ns; /* the longest time without work */
	uint64_t long_gaps, long_gap_ns; /* of XSP_GPU_LONG_GAP_NS and more */
	uint64_t window_ns
		[XSP_GPU_USE_WINDOWS]; /* busy in each, of the recording's window, while all was recorded */
	/* Communication kernels of one name that ran on several devices at a time are taken for one operation: until the
	 * last one began, and from then on. Those that met no other: alone */
	uint64_t arrival_ns, transfer_ns, alone_ns;
	uint32_t streams; /* that did something */
	/* of the sweep */
	uint64_t now_ns, done_ns;
	uint32_t done, running[XSP_GPU_CLASSES], streams_running;
};

struct xsp_gpu_stream_use {
	uint32_t device; /* index */
	uint32_t context, stream;
	uint64_t activities, first_ns, last_ns;
	uint64_t busy_ns, total_ns; /* union; sum */
	uint64_t recorded_ns, recorded_busy_ns; /* as those of devices */
	uint64_t gaps[XSP_GPU_IDLES], idle_ns[XSP_GPU_IDLES];
	uint64_t unrecorded_ns;
	uint64_t queued_most; /* launches that had begun, of activities that had not */
	uint64_t queued_sum; /* over its changes... */
	uint64_t queue_changes; /* ... how many */
	uint64_t full_ns; /* at XSP_GPU_QUEUE_MOST or more */
	/* of the sweep */
	uint64_t now_ns, done_ns;
	int64_t queued;
	uint32_t done, running;
};

/* Waits of the host for the device, by what ended last before they did. */
struct xsp_gpu_wait_use {
	uint32_t what; /* struct xsp_gpu_sync.what */
	uint32_t name; /* of the work; XSP_GPU_NOWHERE: none ended meanwhile */
	uint64_t count, total_ns, most_ns;
};

struct xsp_gpu_sweep_counts {
	uint64_t late; /* came when their beginning had been gone through */
	uint64_t late_ns; /* of their time, what is in no union */
	uint64_t
		pushed_out; /* communication kernels that ran beside too many others: in no arrival and transfer */
	uint64_t late_waits; /* came when what had ended before they did was not known any more */
};

struct xsp_gpu_host;
struct xsp_gpu_sweep;

/* `host` is told of the devices' idle time. 0 or -ENOMEM. */
int xsp_gpu_sweep_new(const struct xsp_timeline *t, struct xsp_gpu_host *host,
		      struct xsp_gpu_sweep **out);
void xsp_gpu_sweep_free(struct xsp_gpu_sweep *s);

/* 0 or -ENOMEM. *device: its index. */
int xsp_gpu_sweep_work(struct xsp_gpu_sweep *s, const struct xsp_gpu_work *work, uint32_t *device);
/* stream XSP_GPU_NO_ID: the whole device. */
int xsp_gpu_sweep_wait(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *sync);
/* Indices of its device and stream, XSP_GPU_NOWHERE without one. The same. */
int xsp_gpu_sweep_place(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *a, uint32_t *device,
			uint32_t *stream);
/* Goes through all that is held. */
int xsp_gpu_sweep_end(struct xsp_gpu_sweep *s);

/* Complete after the end, in the order in which they were met. */
size_t xsp_gpu_sweep_devices(const struct xsp_gpu_sweep *o, const struct xsp_gpu_device_use **rows);
size_t xsp_gpu_sweep_streams(const struct xsp_gpu_sweep *o, const struct xsp_gpu_stream_use **rows);
size_t xsp_gpu_sweep_waits(const struct xsp_gpu_sweep *o, const struct xsp_gpu_wait_use **rows);
const struct xsp_gpu_sweep_counts *xsp_gpu_sweep_counts(const struct xsp_gpu_sweep *s);

/* ---- figures of a device ---- */

/* Where one of the windows of use begins, in a recording of that length. */
uint64_t xsp_gpu_use_window(uint64_t length, uint64_t window);

/* Time in which one of the classes ran that `with` has, and none of those that `without` has (bits). */
uint64_t xsp_gpu_device_ns(const struct xsp_gpu_device_use *d, unsigned with, unsigned without);
static inline uint64_t xsp_gpu_device_busy_ns(const struct xsp_gpu_device_use *d)
{
	return xsp_gpu_device_ns(d, (1U << XSP_GPU_CLASSES) - 1, 0);
}

#endif
