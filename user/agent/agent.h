/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent.h - between the files of the agent in the target, libxsptrace_cupti.so.
 *
 * What is collected goes this way: CUPTI asks for buffers (buffers.c), fills them, gives them back
 * on any thread; there the records are turned into those of gpu.h (convert.c), packed into batches
 * and handed to the probe (batch.c). One thread of its own looks at the semaphores (sites.c), turns
 * CUPTI on and off and flushes (agent.c, window.c).
 *
 * Rules for all of it: it runs inside somebody's program. No C++, no exceptions, no output, no
 * signals; errno is kept in callbacks; nothing on the program's threads waits for another thread;
 * no lock at all is held while CUPTI is called.
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
	WANTS,
};
bool agent_wants(enum agent_want want);
/* Somebody may be there to receive a batch. */
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
	int (*enable_latency)(uint8_t enable); /* NULL: not there */
	int (*flush_all)(uint32_t flag);
	int (*get_next_record)(uint8_t *buffer, size_t valid, void **record);
	int (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
	uint32_t version; /* cuptiGetVersion */
	bool loaded;
};
enum { AGENT_TEXT = 512 };
/* Loads it; 0, or enum xsp_gpu_failure with words in text. Once loaded it stays. */
int cupti_load(struct cupti *cupti, char text[AGENT_TEXT]);
/* The versions of driver and runtime that this process has mapped; 0: none. */
void cupti_versions(uint32_t *driver, uint32_t *runtime);
/* Handle of the mapped libcuda.so.1 for dlsym, or NULL. */
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
/* Adds a record that ends in text: `record` has its fields text_at and length at `at`. */
void batch_put_text(struct batch *b, void *record, size_t size, enum xsp_gpu_type type,
		    uint16_t *text_at, uint16_t *length, const char *text, size_t text_length);
/* Hands over what there is. */
void batch_send(struct batch *b);
/* The id of a string; tells the string if this second has not heard it. NULL: 0. */
uint64_t batch_name(struct batch *b, const char *text);
void batch_api_name(struct batch *b, const struct cupti *cupti, int domain, uint32_t cbid);
/* A new window, and a new second in it: names are told again. */
void batch_window(uint64_t now_ns);
void batch_second(void);
void batch_count(uint64_t *batches, uint64_t *records); /* in this window */

/* ---- apis.c: which API calls are collected --------------------------------------- */

enum { API_MAX = 2048 };
struct apis {
	bool wanted[3][API_MAX]; /* by domain and cbid */
	uint32_t last[3]; /* highest cbid that is wanted */
	bool chosen, all;
};
void apis_choose(struct apis *apis, const struct cupti *cupti);
bool apis_wanted(const char *name, int domain);

/* ---- buffers.c ------------------------------------------------------------------- */

struct agent_buffer {
	uint8_t *data;
	uint8_t *batch; /* room to convert it in */
	size_t size;
};
/* A buffer for CUPTI, or false. `must`: even beyond the limit. */
bool buffers_acquire(bool must, uint8_t **data, size_t *size);
/* The buffer that has this data, if it is one of ours. */
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

/* Tells all devices of the driver; nothing before the driver is initialised. */
void devices_put(struct batch *b);

/* ---- window.c: from the rise of the semaphore to its fall ------------------------ */

/* All of these are called by one thread at a time (agent.c sees to it). */
/* `loaded`: called when CUPTI is loaded, and again when the driver has come up. */
void window_begin(bool in_driver, void (*loaded)(void));
void window_tick(void); /* about 50 times a second while it lasts */
void window_end(bool exiting);
bool window_active(void);
/* In the child of a fork: nothing is left of it. */
void window_forget(void);

uint64_t agent_now(void); /* CLOCK_MONOTONIC ns */

#endif
