/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_sweep.h - what ran on devices and streams at each moment: unions of time, gaps, queues.
 *
 * Activities come seconds late and in no order. So their starts, launches and ends are held and
 * sorted. When there are too many, the older half is processed in order of time. An activity that
 * comes later than that counts as late. Figures contain only the part of it after the moment
 * already reached.
 */
#ifndef XSP_ANALYSIS_GPU_SWEEP_H
#define XSP_ANALYSIS_GPU_SWEEP_H

#include "timeline/timeline.h"

/* Starts, ends and launches that are held: 48 bytes each, three for each activity. */
#define XSP_GPU_HELD_MOST (3U << 17)
/* HTA's least gap between two kernels that the device does not explain. HTA's documentation calls
 * it 30 ns; its code compares 30 with microseconds. */
#define XSP_GPU_KERNEL_WAIT_NS 30000U
/* Launches that a stream can hold before the next launch blocks. */
#define XSP_GPU_QUEUE_MOST 1024U
/* Nsight Systems' rules: the least length of a long gap; the number of windows of use. */
#define XSP_GPU_LONG_GAP_NS 500000000ULL
#define XSP_GPU_USE_WINDOWS 30U

#define XSP_GPU_NOWHERE UINT32_MAX

enum xsp_gpu_class {
	XSP_GPU_FOR_COMPUTE,
	XSP_GPU_FOR_COMMUNICATION,
	XSP_GPU_FOR_MEMORY,
	XSP_GPU_CLASSES,
};

/* Why a stream was idle before an activity (HTA's definitions). */
enum xsp_gpu_idle {
	XSP_GPU_IDLE_HOST, /* the launch began after the previous work had ended */
	XSP_GPU_IDLE_KERNEL, /* otherwise, if shorter than XSP_GPU_KERNEL_WAIT_NS */
	XSP_GPU_IDLE_OTHER,
	XSP_GPU_IDLE_UNKNOWN, /* the launch is not known */
	XSP_GPU_IDLES,
};

/* A kernel, a copy or a set. */
struct xsp_gpu_work {
	uint64_t start_ns, end_ns;
	uint64_t call_ns; /* start of the call that launched it; 0: not known */
	uint32_t call_tid;
	uint32_t pid, device, context, stream;
	enum xsp_gpu_class class;
	uint32_t name; /* chosen by the caller */
	bool queued; /* its launch takes a slot in the stream's queue */
};

/* Times are ns. A device's times are those of the union of its streams. */
struct xsp_gpu_device_use {
	uint32_t pid, device;
	uint64_t activities;
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC */
	/* Bit c: class c ran. [0]: idle between first and last. */
	uint64_t in_ns[1 << XSP_GPU_CLASSES];
	uint64_t unrecorded_ns; /* nothing ran, and part of it was not recorded: not in idle time */
	/* Shares are of these: first to last without pauses of --max-overhead, and the busy part.
	 * The agent records on in pauses, but nobody knows what the host does. Known at the end. */
	uint64_t recorded_ns, recorded_busy_ns;
	uint64_t host_ns; /* idle time before the launch of the work that ended it began */
	uint64_t total_ns[XSP_GPU_CLASSES]; /* sums of durations */
	uint64_t several_ns; /* two or more streams were busy */
	uint64_t gap_ns, gap_from_ns; /* the longest time without work */
	uint64_t long_gaps, long_gap_ns; /* of XSP_GPU_LONG_GAP_NS and more */
	/* Busy time in each window of the recording, as far as everything was recorded. */
	uint64_t window_ns[XSP_GPU_USE_WINDOWS];
	/* Communication kernels of one name that run on several devices at once count as one
	 * operation. Arrival lasts until the last of them begins; transfer follows. A kernel that
	 * meets no other is alone. */
	uint64_t arrival_ns, transfer_ns, alone_ns;
	uint32_t streams; /* streams that did something */
	/* For the sweep. */
	uint64_t now_ns, done_ns;
	uint32_t done, running[XSP_GPU_CLASSES], streams_running;
};

struct xsp_gpu_stream_use {
	uint32_t device; /* index */
	uint32_t context, stream;
	uint64_t activities, first_ns, last_ns;
	uint64_t busy_ns, total_ns; /* union of the activities; their sum */
	uint64_t recorded_ns, recorded_busy_ns; /* as for devices */
	uint64_t gaps[XSP_GPU_IDLES], idle_ns[XSP_GPU_IDLES];
	uint64_t unrecorded_ns;
	uint64_t queued_most; /* launches that had begun before their activities had */
	uint64_t queued_sum; /* queue lengths, summed over the changes... */
	uint64_t queue_changes; /* ... and the number of changes */
	uint64_t full_ns; /* time at XSP_GPU_QUEUE_MOST or more */
	/* For the sweep. */
	uint64_t now_ns, done_ns;
	int64_t queued;
	uint32_t done, running;
};

/* The host's waits for the device, by the work that ended last before the wait did. */
struct xsp_gpu_wait_use {
	uint32_t what; /* struct xsp_gpu_sync.what */
	uint32_t name; /* of the work; XSP_GPU_NOWHERE: none ended during the wait */
	uint64_t count, total_ns, most_ns;
};

struct xsp_gpu_sweep_counts {
	uint64_t late; /* activities that came after their start had been processed */
	uint64_t late_ns; /* the part of their time that is in no union */
	/* Communication kernels dropped as too many others ran: in no arrival and transfer. */
	uint64_t pushed_out;
	/* waits that came when the work before their end was no longer known */
	uint64_t late_waits;
};

struct xsp_gpu_host;
struct xsp_gpu_sweep;

/* The sweep passes the devices' idle time to `host`. 0 or -ENOMEM. */
int xsp_gpu_sweep_new(const struct xsp_timeline *t, struct xsp_gpu_host *host,
		      struct xsp_gpu_sweep **out);
void xsp_gpu_sweep_free(struct xsp_gpu_sweep *s);

/* 0 or -ENOMEM. *device: the index of its device. */
int xsp_gpu_sweep_work(struct xsp_gpu_sweep *s, const struct xsp_gpu_work *work, uint32_t *device);
/* `stream` XSP_GPU_NO_ID: a wait for the whole device. */
int xsp_gpu_sweep_wait(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *sync);
/* Indices of the activity's device and stream; XSP_GPU_NOWHERE if it has none. 0 or -ENOMEM. */
int xsp_gpu_sweep_place(struct xsp_gpu_sweep *s, const struct xsp_gpu_activity *a, uint32_t *device,
			uint32_t *stream);
/* Processes everything that is still held. */
int xsp_gpu_sweep_end(struct xsp_gpu_sweep *s);

/* Complete after the end; in the order in which they first came. */
size_t xsp_gpu_sweep_devices(const struct xsp_gpu_sweep *o, const struct xsp_gpu_device_use **rows);
size_t xsp_gpu_sweep_streams(const struct xsp_gpu_sweep *o, const struct xsp_gpu_stream_use **rows);
size_t xsp_gpu_sweep_waits(const struct xsp_gpu_sweep *o, const struct xsp_gpu_wait_use **rows);
const struct xsp_gpu_sweep_counts *xsp_gpu_sweep_counts(const struct xsp_gpu_sweep *s);

/* ---- figures of a device ---- */

/* Start of a window of use in a recording of that length. */
uint64_t xsp_gpu_use_window(uint64_t length, uint64_t window);

/* Time in which a class of `with` ran and no class of `without` did (bits). */
uint64_t xsp_gpu_device_ns(const struct xsp_gpu_device_use *d, unsigned with, unsigned without);
static inline uint64_t xsp_gpu_device_busy_ns(const struct xsp_gpu_device_use *d)
{
	return xsp_gpu_device_ns(d, (1U << XSP_GPU_CLASSES) - 1, 0);
}

#endif
