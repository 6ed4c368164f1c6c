/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.h - shared by the files of the agent in the target, libxsptrace_agent.so.
 *
 * The way of a record: CUPTI asks for buffers (buffers.c), fills them, and gives them back on any thread. There its
 * records are converted to those of gpu.h (convert.c), packed into batches and passed to the probe (batch.c). A thread
 * of the agent's own watches the semaphores (sites.c), turns CUPTI on and off, and flushes it (agent.c, window.c).
 *
 * Rules for all of it, as it runs inside somebody's program: no C++, no exceptions, no output, no signals. Callbacks
 * keep errno. No thread of the program waits for another thread. No lock is held while CUPTI is called.
 */
#ifndef XSP_AGENT_H
#define XSP_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xsptrace/gpu.h>
#include "records.h"

#define AGENT_EXPORT __attribute__((visibility("default")))

/* ---- sites.c: what the kernel probes and counts ---------------------------------- */

enum agent_want {
	WANT_ACTIVITY,
	WANT_MEMORY,
	WANT_EVENTS,
	WANT_MARKERS,
	WANT_GRAPHS,
	WANT_LATENCY,
	WANT_ALL_API,
	WANT_SHARED,
	WANT_OPERATORS,
	WANT_CALLBACKS,
	WANT_REGIONS,
	WANTS,
};
bool agent_wants(enum agent_want want);
/* Is a probe there that may receive a batch? */
bool agent_heard(void);
void xsp_gpu_batch(const void *records, size_t bytes);

/* ---- cupti.c: libcupti as this process has it ------------------------------------ */

struct cupti {
	int (*get_version)(uint32_t *version);
	int (*get_result_string)(int result, const char **text);
	int (*get_callback_name)(int domain, uint32_t cbid, const char **name);
	int (*subscribe)(void **subscriber, void *callback, void *data);
	int (*subscribe_v2)(void **subscriber, void *callback, void *data,
			    struct cupti_subscriber_params *parameters); /* NULL before CUDA 13 */
	int (*unsubscribe)(void *subscriber);
	int (*set_thread_id_type)(int type);
	int (*register_timestamp)(uint64_t (*now)(void));
	int (*register_callbacks)(void (*request)(uint8_t **, size_t *, size_t *),
				  void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*enable)(int kind);
	int (*disable)(int kind);
	int (*enable_driver_api)(uint32_t cbid, uint8_t enable); /* NULL in early CUDA 12 */
	int (*enable_runtime_api)(uint32_t cbid, uint8_t enable);
	int (*enable_latency)(uint8_t enable); /* NULL where CUPTI lacks it */
	int (*flush_all)(uint32_t flag);
	int (*get_next_record)(uint8_t *buffer, size_t valid, void **record);
	int (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
	uint32_t version; /* cuptiGetVersion */
	bool loaded;
};
enum { AGENT_TEXT = 512 };
/* Loads libcupti, which then stays. 0, or enum xsp_gpu_failure and a reason in text. */
int cupti_load(struct cupti *cupti, char text[AGENT_TEXT]);
/* The versions of driver and runtime that this process has mapped; 0: it has none. */
void cupti_versions(uint32_t *driver, uint32_t *runtime);
/* Handle for dlsym of the mapped libcuda.so.1, or NULL. */
void *cupti_driver(void);

/* ---- batch.c: records → batches → the probe -------------------------------------- */

struct batch {
	uint8_t *room; /* XSP_GPU_BATCH_ROOM bytes, 8-byte aligned */
	size_t bytes;
	uint32_t records;
};
void batch_begin(struct batch *b, uint8_t *room);
/* Adds a record of fixed layout. */
void batch_put(struct batch *b, const void *record, size_t size, enum xsp_gpu_type type);
/* Adds a record that ends in text, and sets its fields *text_at and *length. */
void batch_put_text(struct batch *b, void *record, size_t size, enum xsp_gpu_type type,
		    uint16_t *text_at, uint16_t *length, const char *text, size_t text_length);
/* Passes all records to the probe. */
void batch_send(struct batch *b);
/* The id of a string, 0 for NULL. Adds the string itself once a second. */
uint64_t batch_name(struct batch *b, const char *text);
void batch_api_name(struct batch *b, const struct cupti *cupti, int domain, uint32_t cbid);
/* batch_window: a new window; batch_second: a new second. After both, names are added again. */
void batch_window(uint64_t now_ns);
void batch_second(void);
void batch_count(uint64_t *batches, uint64_t *records); /* in this window */

/* ---- apis.c: which API calls are collected --------------------------------------- */

enum { API_MAX = 2048 };
struct apis {
	bool wanted[3][API_MAX]; /* [domain][cbid] */
	uint32_t last[3]; /* highest cbid that is wanted */
	bool chosen, all;
};
void apis_choose(struct apis *apis, const struct cupti *cupti);
bool apis_wanted(const char *name, int domain);

/* ---- buffers.c ------------------------------------------------------------------- */

struct agent_buffer {
	uint8_t *data;
	uint8_t *batch; /* where its records are converted */
	size_t size;
};
/* A buffer for CUPTI. `must`: also beyond the limit. False: there is none. */
bool buffers_acquire(bool must, uint8_t **data, size_t *size);
/* Finds the buffer with this data. False: it is none of ours. */
bool buffers_find(const uint8_t *data, struct agent_buffer *out);
void buffers_give(const uint8_t *data);
/* Returns unused memory to the system. */
void buffers_trim(void);
uint64_t buffers_peak(void);
void buffers_limit(uint64_t bytes);

/* ---- convert.c ------------------------------------------------------------------- */

struct drops {
	_Atomic uint64_t pending[4], total[4]; /* by enum xsp_gpu_drop */
};
/* Converts a buffer that CUPTI gave back. */
void convert_buffer(struct batch *b, const struct cupti *cupti, const struct apis *apis,
		    struct drops *drops, uint8_t *data, size_t valid);
void put_drops(struct batch *b, struct drops *drops, uint64_t now);

/* ---- devices.c ------------------------------------------------------------------- */

/* Adds all devices of the driver; none before the driver is initialised. */
void devices_put(struct batch *b);

/* ---- window.c: from the rise of the semaphore to its fall ------------------------ */

/* agent.c calls these from one thread at a time. */
/* Calls `loaded` when CUPTI is loaded, and again when the driver has started. */
void window_begin(bool in_driver, void (*loaded)(void));
void window_tick(void); /* about 50 times a second during the window */
void window_end(bool exiting);
bool window_active(void);
/* In the child of a fork: there is no window any more. */
void window_reset(void);

/* ---- operators.c: PyTorch's operators (calls.h) ------------------------------------ */

enum operators_by { BY_NOTHING, BY_SLOTS, BY_CALLBACKS };
#ifdef __x86_64__
/* On the agent's thread, 50 times a second as long as it returns true: they, or scopes, are recorded. */
bool operators_turn(enum operators_by wanted, bool scopes);
bool operators_failed(void);
void operators_before_fork(void);
void operators_in_child(void);
#else
static inline bool operators_turn(enum operators_by wanted, bool scopes)
{
	(void)wanted, (void)scopes;
	return false;
}
static inline bool operators_failed(void)
{
	return false;
}
static inline void operators_before_fork(void)
{
}
static inline void operators_in_child(void)
{
}
#endif

/* ---- regions/: those of record_function.h, and the rings of both ------------------ */

#ifdef __x86_64__
/* As operators_turn(). */
bool regions_turn(bool wanted);
void regions_in_child(void);
void rings_turn(void);
void python_turn(void); /* do they have stacks of Python? */
#else
static inline bool regions_turn(bool wanted)
{
	(void)wanted;
	return false;
}
static inline void regions_in_child(void)
{
}
static inline void rings_turn(void)
{
}
static inline void python_turn(void)
{
}
#endif

uint64_t agent_now(void); /* CLOCK_MONOTONIC ns */

#endif
