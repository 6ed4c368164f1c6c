/* SPDX-License-Identifier: BSD-2-Clause */
/* window.c - turns CUPTI on, flushes it while a tracer listens, and turns it off. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "agent.h"

enum {
	FLUSH_NS = 250000000, /* how much a killed process can lose */
	/* CUPTI fills several buffers at a time, so a kernel's record may come long before its call's. This limits
	 * their distance, roughly, for whoever joins them. */
	FLUSH_RECORDS = 50000,
	SECOND_NS = 1000000000,
	SETTLE_NS = 20000000, /* for calls and kernels that are still running at the end */
};

static struct {
	struct cupti cupti;
	struct apis apis;
	struct drops drops;
	void (*loaded)(void);
	_Atomic bool active; /* the exit handler reads it on another thread */
	bool failed, in_driver, api_kinds[3], latency, ticked;
	uint64_t kinds; /* bit k: kind k is enabled */
	uint32_t driver_version, runtime_version; /* read once */
	uint64_t cost_ns, flush_ns, flush_records, second_ns;
	_Atomic bool collecting;
	_Atomic int converting; /* callbacks that are converting */
	_Alignas(64) uint8_t room[XSP_GPU_BATCH_ROOM];
} w;

/* In the order in which they are enabled: calls before what they start, so that no kernel lacks its call. */
static const struct {
	int kind;
	enum agent_want want;
} kinds[] = {
	{CUPTI_CONTEXT, WANT_ACTIVITY},
	{CUPTI_OVERHEAD, WANT_ACTIVITY},
	{CUPTI_MEMORY2, WANT_MEMORY},
	{CUPTI_CUDA_EVENT, WANT_EVENTS},
	{CUPTI_MARKER, WANT_MARKERS},
	{CUPTI_GRAPH_TRACE, WANT_GRAPHS},
	{CUPTI_SYNCHRONIZATION, WANT_ACTIVITY},
	{CUPTI_MEMCPY, WANT_ACTIVITY},
	{CUPTI_MEMCPY2, WANT_ACTIVITY},
	{CUPTI_MEMSET, WANT_ACTIVITY},
	{CUPTI_CONCURRENT_KERNEL, WANT_ACTIVITY},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

uint64_t agent_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool window_active(void)
{
	return atomic_load(&w.active);
}

void window_reset(void)
{
	atomic_store(&w.active, false);
	w.failed = false;
	w.kinds = 0;
	memset(w.api_kinds, 0, sizeof(w.api_kinds));
	atomic_store(&w.collecting, false);
	atomic_store(&w.converting, 0);
}

/* ---- records about the window itself --------------------------------------------- */

static void put_state(struct batch *b, enum xsp_gpu_what_state state)
{
	struct xsp_gpu_state s = {
		.time_ns = agent_now(),
		.state = state,
		.api_version = w.cupti.version,
		.kinds = w.kinds,
		.start_cost_ns = w.cost_ns,
		.buffer_bytes = buffers_peak(),
	};
	uint64_t batches, records;

	if (!w.in_driver && !w.driver_version)
		cupti_versions(&w.driver_version, &w.runtime_version);
	s.driver_version = w.driver_version;
	s.runtime_version = w.runtime_version;
	batch_count(&batches, &records);
	s.batches = batches;
	s.records = records;
	for (unsigned i = 0; i < sizeof(w.drops.total) / sizeof(*w.drops.total); i++)
		s.dropped += atomic_load(&w.drops.total[i]);
	batch_put(b, &s, sizeof(s), XSP_GPU_STATE);
}

static void put_error(struct batch *b, enum xsp_gpu_failure failure, int code, bool fatal,
		      const char *text)
{
	struct xsp_gpu_error e = {
		.time_ns = agent_now(),
		.failure = failure,
		.code = (uint32_t)code,
		.fatal = fatal,
	};

	batch_put_text(b, &e, sizeof(e), XSP_GPU_ERROR, &e.text_at, &e.length, text,
		       strnlen(text, AGENT_TEXT));
}

static void put_failure(struct batch *b, enum xsp_gpu_failure failure, const char *call, int code,
			bool fatal)
{
	char text[AGENT_TEXT];
	const char *message = NULL;

	if (w.cupti.get_result_string(code, &message) != CUPTI_OK || !message)
		message = "unknown error";
	snprintf(text, sizeof(text), "%s: %s", call, message);
	put_error(b, failure, code, fatal, text);
}

static void put_call_error(struct batch *b, const char *call, int code, bool fatal)
{
	put_failure(b, XSP_GPU_FAIL_CALL, call, code, fatal);
}

/* ---- callbacks: any thread of the program ---------------------------------------- */

static void request(uint8_t **buffer, size_t *size, size_t *records)
{
	*records = 0;
	if (buffers_acquire(w.cupti.version < 27, buffer, size))
		return;
	*buffer = NULL;
	*size = 0;
}

static void complete(void *cu_context, uint32_t stream, uint8_t *data, size_t size, size_t valid)
{
	int saved = errno;
	struct agent_buffer buffer;
	struct batch b;

	(void)cu_context;
	(void)stream;
	(void)size;
	if (!data || !buffers_find(data, &buffer))
		return;
	atomic_fetch_add(&w.converting, 1);
	if (atomic_load(&w.collecting) && agent_heard() && valid <= buffer.size) {
		batch_begin(&b, buffer.batch);
		convert_buffer(&b, &w.cupti, &w.apis, &w.drops, data, valid);
		batch_send(&b);
	}
	buffers_give(data);
	atomic_fetch_sub(&w.converting, 1);
	errno = saved;
}

/* ---- on -------------------------------------------------------------------------- */

static void no_callback(void *data, int domain, uint32_t cbid, const void *what)
{
	(void)data;
	(void)domain;
	(void)cbid;
	(void)what;
}

/*
 * Does another profiler hold CUPTI? Only a subscription shows that. It is given back at once, as the user's own
 * profiler could not start while we held it.
 */
static bool held(char name[CUPTI_OLD_NAME])
{
	struct cupti_subscriber_params p = {.size = sizeof(p),
					    .name = "xsptrace",
					    .old_name = name,
					    .old_size = CUPTI_OLD_NAME};
	void *subscriber = NULL;
	int status;

	memset(name, 0, CUPTI_OLD_NAME);
	if (w.cupti.subscribe_v2)
		status = w.cupti.subscribe_v2(&subscriber, (void *)no_callback, NULL, &p);
	else
		status = w.cupti.subscribe(&subscriber, (void *)no_callback, NULL);
	if (status == CUPTI_OK)
		w.cupti.unsubscribe(subscriber);
	name[CUPTI_OLD_NAME - 1] = '\0';
	return status == CUPTI_MULTIPLE_SUBSCRIBERS;
}

/* Returns the first error, if any. `some`: at least one call could be enabled. */
static int enable_api_calls(int domain, uint8_t enable, bool *some)
{
	int (*one)(uint32_t, uint8_t) = domain == CUPTI_DOMAIN_DRIVER ? w.cupti.enable_driver_api
								      : w.cupti.enable_runtime_api;
	int failed = CUPTI_OK;

	for (uint32_t cbid = 1; cbid <= w.apis.last[domain]; cbid++) {
		int status;

		if (!w.apis.wanted[domain][cbid])
			continue;
		status = one(cbid, enable);
		*some |= status == CUPTI_OK;
		if (failed == CUPTI_OK)
			failed = status;
	}
	return failed;
}

/* Enables single calls if CUPTI can; otherwise all, and drops those that are not wanted. */
static void enable_api(struct batch *b, int domain)
{
	bool driver = domain == CUPTI_DOMAIN_DRIVER, some = false;
	bool single = driver ? w.cupti.enable_driver_api : w.cupti.enable_runtime_api;
	int status;

	w.api_kinds[domain] = w.apis.all || !single;
	if (w.api_kinds[domain]) {
		status = w.cupti.enable(driver ? CUPTI_DRIVER : CUPTI_RUNTIME);
		some = status == CUPTI_OK;
	} else {
		status = enable_api_calls(domain, 1, &some);
	}
	if (status != CUPTI_OK)
		put_call_error(b, driver ? "enable driver API calls" : "enable runtime API calls",
			       status, false);
	if (some)
		w.kinds |= 1ULL << (driver ? CUPTI_DRIVER : CUPTI_RUNTIME);
}

static void disable_api(int domain)
{
	bool driver = domain == CUPTI_DOMAIN_DRIVER, some = false;
	uint64_t bit = 1ULL << (driver ? CUPTI_DRIVER : CUPTI_RUNTIME);

	if (!(w.kinds & bit))
		return;
	if (w.api_kinds[domain])
		w.cupti.disable(driver ? CUPTI_DRIVER : CUPTI_RUNTIME);
	else
		enable_api_calls(domain, 0, &some);
	w.kinds &= ~bit;
}

/* Enables what is wanted and not on yet, as a second tracer may want more. False: there will be no kernels. */
static bool enable_kinds(struct batch *b)
{
	for (unsigned i = 0; i < KINDS; i++) {
		uint64_t bit = 1ULL << kinds[i].kind;
		bool vital = kinds[i].kind == CUPTI_CONCURRENT_KERNEL;
		char call[64];
		int status;

		if (w.kinds & bit || !agent_wants(kinds[i].want))
			continue;
		status = w.cupti.enable(kinds[i].kind);
		if (status == CUPTI_OK) {
			w.kinds |= bit;
			continue;
		}
		snprintf(call, sizeof(call), "cuptiActivityEnable(%d)", kinds[i].kind);
		put_call_error(b, call, status, vital);
		if (vital)
			return false;
	}
	return true;
}

static void disable_kinds(void)
{
	for (unsigned i = KINDS; i-- > 0;)
		if (w.kinds & 1ULL << kinds[i].kind) {
			w.cupti.disable(kinds[i].kind);
			w.kinds &= ~(1ULL << kinds[i].kind);
		}
}

/* Sets clock, thread ids and callbacks, before any kind is enabled. */
static bool prepare(struct batch *b)
{
	int status = w.cupti.register_timestamp(agent_now);

	if (status != CUPTI_OK) {
		put_failure(b, XSP_GPU_FAIL_CLOCK, "cuptiActivityRegisterTimestampCallback", status,
			    true);
		return false;
	}
	status = w.cupti.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	if (status != CUPTI_OK) {
		put_call_error(b, "cuptiSetThreadIdType", status, true);
		return false;
	}
	status = w.cupti.register_callbacks(request, complete);
	if (status != CUPTI_OK) {
		put_call_error(b, "cuptiActivityRegisterCallbacks", status, true);
		return false;
	}
	w.latency = w.cupti.enable_latency && agent_wants(WANT_LATENCY) &&
		    w.cupti.enable_latency(1) == CUPTI_OK;
	return true;
}

static bool turn_on(struct batch *b)
{
	char text[AGENT_TEXT];
	int failure = cupti_load(&w.cupti, text);

	if (failure) {
		put_error(b, (enum xsp_gpu_failure)failure, 0, true, text);
		return false;
	}
	w.loaded();
	if (!agent_wants(WANT_SHARED) && held(text)) {
		put_error(b, XSP_GPU_FAIL_HELD, CUPTI_MULTIPLE_SUBSCRIBERS, true, text);
		return false;
	}
	if (!prepare(b))
		return false;
	if (!w.apis.chosen)
		apis_choose(&w.apis, &w.cupti);
	w.apis.all = agent_wants(WANT_ALL_API);
	atomic_store(&w.collecting, true);
	enable_api(b, CUPTI_DOMAIN_DRIVER);
	enable_api(b, CUPTI_DOMAIN_RUNTIME);
	return enable_kinds(b);
}

static void turn_off(bool settle)
{
	struct timespec pause = {.tv_nsec = SETTLE_NS};

	disable_kinds();
	if (settle)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	disable_api(CUPTI_DOMAIN_DRIVER);
	disable_api(CUPTI_DOMAIN_RUNTIME);
	if (w.latency)
		w.cupti.enable_latency(0);
	w.latency = false;
	w.cupti.flush_all(CUPTI_FLUSH_FORCED);
}

/* in_driver: the driver calls us in the middle of its start, and must not be asked anything */
void window_begin(bool in_driver, void (*loaded)(void))
{
	uint64_t begin = agent_now();
	struct batch b;

	atomic_store(&w.active, true);
	w.in_driver = in_driver;
	w.loaded = loaded;
	batch_window(begin);
	for (unsigned i = 0; i < sizeof(w.drops.total) / sizeof(*w.drops.total); i++) {
		atomic_store(&w.drops.pending[i], 0);
		atomic_store(&w.drops.total[i], 0);
	}
	w.cost_ns = 0;
	w.ticked = false;
	w.flush_ns = begin + FLUSH_NS;
	w.flush_records = 0;
	w.second_ns = begin;
	batch_begin(&b, w.room);
	if (!in_driver)
		put_state(&b, XSP_GPU_STARTING);
	batch_send(&b);
	w.failed = !turn_on(&b);
	w.cost_ns = agent_now() - begin;
	if (w.failed) {
		if (w.cupti.loaded)
			turn_off(false);
		atomic_store(&w.collecting, false);
		put_state(&b, XSP_GPU_FAILED);
	}
	batch_send(&b);
}

/* ---- during the window, and off ---------------------------------------------------- */

static void put_dropped(struct batch *b)
{
	size_t dropped = 0;

	if (w.cupti.get_dropped(NULL, 0, &dropped) == CUPTI_OK && dropped)
		atomic_fetch_add(&w.drops.pending[XSP_GPU_DROP_CUPTI], dropped);
	put_drops(b, &w.drops, agent_now());
}

void window_tick(void)
{
	uint64_t now = agent_now(), batches, records;
	struct batch b;

	w.in_driver = false;
	if (w.failed)
		return;
	batch_count(&batches, &records);
	if (now >= w.flush_ns || records - w.flush_records >= FLUSH_RECORDS) {
		w.cupti.flush_all(0);
		w.flush_ns = agent_now() + FLUSH_NS;
		batch_count(&batches, &w.flush_records);
	}
	if (now < w.second_ns)
		return;
	w.second_ns = now + SECOND_NS;
	if (!w.ticked)
		w.loaded(); /* again, so that it runs before the driver's own exit handlers */
	w.ticked = true;
	batch_second();
	batch_begin(&b, w.room);
	enable_kinds(&b);
	put_dropped(&b);
	devices_put(&b);
	put_state(&b, XSP_GPU_ACTIVE);
	batch_send(&b);
}

/* Waits for callbacks on other threads, so that their batches come before the last one. */
static void wait_for_callbacks(void)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < 500 && atomic_load(&w.converting); i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void window_end(bool exiting)
{
	char name[CUPTI_OLD_NAME];
	struct batch b;

	if (!w.failed) {
		turn_off(!exiting && agent_heard());
		wait_for_callbacks();
	}
	batch_begin(&b, w.room);
	if (!w.failed) {
		put_dropped(&b);
		if (!exiting && !agent_wants(WANT_SHARED) && held(name))
			put_error(&b, XSP_GPU_FAIL_TAKEN, CUPTI_MULTIPLE_SUBSCRIBERS, false, name);
	}
	put_state(&b, exiting ? XSP_GPU_EXITING : XSP_GPU_STOPPED);
	batch_send(&b);
	atomic_store(&w.collecting, false);
	atomic_store(&w.active, false);
	w.failed = false;
	if (!exiting)
		buffers_trim();
}
