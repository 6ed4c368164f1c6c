/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libcupti.c - the activity API of a simulated CUPTI, over the engine in libcuda's double. Built
 * twice, as libcupti.so.12 and .13 (XD_CUPTI_API: the API version).
 *
 * It delivers what was enabled and nothing else, and it checks its user: a call that makes the real
 * CUPTI crash, hang or write a wrong trace counts as a violation, and the truth file names it.
 *
 * Environment:
 *   XSP_DOUBLE_TRUTH=FILE      counts go to FILE.cupti at exit; FILE.on is made when its user has enabled
 *                              all that it wants, and begins to ask for drops
 *   XSP_DOUBLE_CUPTI_API=N     API version, e.g. 24
 *   XSP_DOUBLE_KERNEL_SIZE=N   bytes of a kernel record (144, 160, … 216)
 *   XSP_DOUBLE_DROP=N          each Nth record is dropped, and counted as CUPTI counts
 *   XSP_DOUBLE_SHUFFLE=N       up to N records are held back and come out in any order
 *   XSP_DOUBLE_COLD_MS=N       the first cuptiActivityEnable takes that long
 *   XSP_DOUBLE_SUBSCRIBER=NAME another profiler has subscribed
 *   XSP_DOUBLE_CUPTI_FAIL=F:C  function F fails with code C
 *   XSP_DOUBLE_FLUSH_MS=N      a flush takes at least that long
 *   XSP_DOUBLE_SLOTS=N         buffers in use at a time (13: one per thread, here up to 8; 12: 1)
 *   XSP_DOUBLE_GARBAGE=N       after N records, one of an unknown kind
 *   XSP_DOUBLE_INCOMPLETE=1    a forced flush returns a buffer that ends in an incomplete record
 *   XSP_DOUBLE_BAD=KIND        each tenth kernel has times that cannot be true: time (none), backwards, clock
 *                              (another one), early (before its launch), at-once (with the one before it on its
 *                              stream); or overlap: it begins before that one has ended, as by programmatic launch
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include "engine.h"
#include "cupti_records.h"

#ifndef XD_CUPTI_API
#define XD_CUPTI_API 130001
#endif

typedef int CUptiResult;
enum {
	OK = 0,
	INVALID_PARAMETER = 1,
	INVALID_OPERATION = 7,
	MAX_LIMIT_REACHED = 12,
	INVALID_KIND = 21,
	MULTIPLE_SUBSCRIBERS = 39,
};
typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*complete_fn)(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			    size_t valid);
typedef uint64_t (*time_fn)(void);
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

enum { MAX_SLOTS = 16, MAX_HELD = 4096, MAX_RECORD = 256, ROOM_MAX = 1 << 16 };

struct full {
	uint8_t *buffer;
	size_t size, valid;
	struct full *next;
};
struct slot {
	pthread_mutex_t lock;
	uint8_t *buffer;
	size_t size, valid;
};

static struct {
	pthread_once_t once;
	pid_t pid;
	uint32_t api;
	size_t kernel_size;
	uint64_t drop_each, shuffle, cold_ms, flush_ms, garbage_at, incomplete;
	const char *bad;
	_Atomic uint64_t kernels, bad_kernels;
	_Atomic uint64_t last[64]; /* end of the last kernel, by stream */
	unsigned slots;
	char fail_name[64];
	CUptiResult fail_code;
	_Atomic(request_fn) request;
	_Atomic(complete_fn) complete;
	_Atomic(time_fn) time;
	_Atomic bool enabled[XD_KINDS];
	_Atomic bool cbids[3][XD_MAX_CBID];
	_Atomic int thread_ids;
	_Atomic uint64_t kinds_on, latency;
	_Atomic bool cold_done, subscribed, finished, told_on;
	struct slot slot[MAX_SLOTS];
	pthread_mutex_t lock; /* the queue of full buffers and the held records */
	pthread_cond_t some, idle;
	struct full *queue;
	unsigned delivering;
	bool thread;
	uint8_t held[MAX_HELD][MAX_RECORD];
	size_t held_size[MAX_HELD];
	unsigned held_count;
	uint64_t random;
	/* the truth */
	_Atomic uint64_t made[XD_KINDS], dropped, unread_drops, callback_ns, buffers,
		requests_refused, violations, calls_in;
	char violation[160];
	struct {
		_Atomic uint64_t dropped_by_kind[XD_KINDS];
	} lost;
} c = {.once = PTHREAD_ONCE_INIT,
       .lock = PTHREAD_MUTEX_INITIALIZER,
       .some = PTHREAD_COND_INITIALIZER,
       .idle = PTHREAD_COND_INITIALIZER,
       .random = 88172645463325252ULL};

static _Thread_local bool in_callback;

static void violate(const char *what)
{
	if (!atomic_fetch_add(&c.violations, 1))
		snprintf(c.violation, sizeof(c.violation), "%s", what);
}

static void start(void);

static CUptiResult begin(const char *function)
{
	pthread_once(&c.once, start);
	if (atomic_load(&c.finished))
		violate("a call after the process's end began");
	if (c.fail_name[0] && !strcmp(function, c.fail_name))
		return c.fail_code;
	return OK;
}
#define BEGIN()                                                                                    \
	CUptiResult fails = begin(__func__);                                                       \
	if (fails)                                                                                 \
	return fails

/* ---- buffers --------------------------------------------------------------------- */

static void deliver(uint8_t *buffer, size_t size, size_t valid)
{
	complete_fn complete = atomic_load(&c.complete);

	struct timespec before, after;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	in_callback = true;
	if (complete)
		complete(NULL, 0, buffer, size, valid);
	in_callback = false;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	atomic_fetch_add(&c.callback_ns, (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 +
						    after.tv_nsec - before.tv_nsec));
}

/* Under the lock on entry and exit. */
static bool deliver_one(void)
{
	struct full *f = c.queue;

	if (!f)
		return false;
	c.queue = f->next;
	c.delivering++;
	pthread_mutex_unlock(&c.lock);
	deliver(f->buffer, f->size, f->valid);
	free(f);
	pthread_mutex_lock(&c.lock);
	c.delivering--;
	pthread_cond_broadcast(&c.idle);
	return true;
}

static void *deliverer(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&c.lock);
	for (;;)
		if (!deliver_one())
			pthread_cond_wait(&c.some, &c.lock);
	return NULL;
}

static void queue_full(uint8_t *buffer, size_t size, size_t valid)
{
	struct full *f = malloc(sizeof(*f)), **at;

	if (!f)
		abort();
	*f = (struct full){.buffer = buffer, .size = size, .valid = valid};
	pthread_mutex_lock(&c.lock);
	for (at = &c.queue; *at; at = &(*at)->next)
		;
	*at = f;
	pthread_cond_signal(&c.some);
	pthread_mutex_unlock(&c.lock);
}

/* Under the slot's lock, which callbacks of the real CUPTI do not see either. */
static bool room(struct slot *s, size_t need)
{
	request_fn request = atomic_load(&c.request);
	size_t records = 0;
	bool before = in_callback;

	if (s->buffer && s->size - s->valid >= need)
		return true;
	if (s->buffer)
		queue_full(s->buffer, s->size, s->valid);
	s->buffer = NULL;
	s->size = s->valid = 0;
	if (!request)
		return false;
	in_callback = true;
	request(&s->buffer, &s->size, &records);
	in_callback = before;
	atomic_fetch_add(&c.buffers, 1);
	if (!s->buffer) {
		atomic_fetch_add(&c.requests_refused, 1);
		if (c.api < 27)
			violate("no buffer given before API version 27");
		return false;
	}
	if ((uintptr_t)s->buffer % 8)
		violate("a buffer that is not 8-byte aligned");
	if (s->size < need) {
		queue_full(s->buffer, s->size, 0);
		s->buffer = NULL;
		return false;
	}
	return true;
}

static void append(const void *record, size_t size)
{
	struct slot *s = &c.slot[(unsigned)syscall(SYS_gettid) % c.slots];
	uint32_t kind = *(const uint32_t *)record;
	bool fits;

	pthread_mutex_lock(&s->lock);
	fits = room(s, size);
	if (fits) {
		memcpy(s->buffer + s->valid, record, size);
		s->valid += size;
	}
	pthread_mutex_unlock(&s->lock);
	if (!fits) {
		atomic_fetch_add(&c.dropped, 1);
		atomic_fetch_add(&c.unread_drops, 1);
		atomic_fetch_add(&c.lost.dropped_by_kind[kind], 1);
	}
}

/* Keeps a record and delivers another one. */
static void shuffle(const void *record, size_t size)
{
	uint8_t out[MAX_RECORD];
	size_t out_size = 0;

	pthread_mutex_lock(&c.lock);
	if (c.held_count < c.shuffle) {
		memcpy(c.held[c.held_count], record, size);
		c.held_size[c.held_count++] = size;
	} else {
		unsigned at;

		c.random ^= c.random << 13;
		c.random ^= c.random >> 7;
		c.random ^= c.random << 17;
		at = (unsigned)(c.random % c.held_count);
		out_size = c.held_size[at];
		memcpy(out, c.held[at], out_size);
		memcpy(c.held[at], record, size);
		c.held_size[at] = size;
	}
	pthread_mutex_unlock(&c.lock);
	if (out_size)
		append(out, out_size);
}

static void release_held(void)
{
	for (;;) {
		uint8_t out[MAX_RECORD];
		size_t size;

		pthread_mutex_lock(&c.lock);
		if (!c.held_count) {
			pthread_mutex_unlock(&c.lock);
			return;
		}
		size = c.held_size[--c.held_count];
		memcpy(out, c.held[c.held_count], size);
		pthread_mutex_unlock(&c.lock);
		append(out, size);
	}
}

static void make(const void *record, size_t size)
{
	static _Atomic uint64_t serial;
	uint32_t kind = *(const uint32_t *)record;
	uint64_t n = atomic_fetch_add(&serial, 1) + 1;

	atomic_fetch_add(&c.made[kind], 1);
	if (c.garbage_at && n == c.garbage_at)
		append(&(uint64_t[2]){63, n}, 16);
	if (c.drop_each && n % c.drop_each == 0) {
		atomic_fetch_add(&c.dropped, 1);
		atomic_fetch_add(&c.unread_drops, 1);
		atomic_fetch_add(&c.lost.dropped_by_kind[kind], 1);
		return;
	}
	if (c.shuffle)
		shuffle(record, size);
	else
		append(record, size);
}

/* ---- reports of the engine ------------------------------------------------------- */

static bool on(unsigned kind)
{
	return atomic_load_explicit(&c.enabled[kind], memory_order_relaxed);
}

/* A time of the engine (CLOCK_MONOTONIC) in the clock of the user, or in CUPTI's own. */
static uint64_t convert(uint64_t ns)
{
	time_fn time = atomic_load(&c.time);
	struct timespec t;
	uint64_t now;

	if (time)
		return ns; /* checked to be CLOCK_MONOTONIC when it was registered */
	clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return now - (xd_now() - ns);
}

static uint32_t thread_id(void)
{
	return atomic_load(&c.thread_ids) ? (uint32_t)syscall(SYS_gettid)
					  : (uint32_t)(uintptr_t)pthread_self();
}

static void hear_api(enum xd_domain domain, uint32_t cbid, uint64_t begin_ns, uint64_t end_ns,
		     uint32_t correlation, int result)
{
	xd_api_record r;
	uint32_t kind = domain == XD_DRIVER ? XD_KIND_DRIVER : XD_KIND_RUNTIME;

	if (!on(kind) && !atomic_load_explicit(&c.cbids[domain][cbid], memory_order_relaxed))
		return;
	r = (xd_api_record){.kind = kind,
			    .cbid = cbid,
			    .start = convert(begin_ns),
			    .end = convert(end_ns),
			    .pid = (uint32_t)c.pid,
			    .tid = thread_id(),
			    .correlation = correlation,
			    .result = (uint32_t)result};
	make(&r, sizeof(r));
}

/* Each tenth one, if XSP_DOUBLE_BAD says so. */
static void spoil(xd_kernel_record *r)
{
	const uint64_t number = atomic_fetch_add(&c.kernels, 1);
	const unsigned stream = r->stream % 64;
	const uint64_t start = r->start, end = r->end;
	/* branches of a graph run beside each other */
	const uint64_t last = atomic_exchange(&c.last[stream], r->graph ? 0 : end);
	const bool behind = last != 0 && !r->graph && start - last < 1000; /* it was never idle */

	if (!c.bad || number % 10 != 9)
		return;
	if (!strcmp(c.bad, "time")) {
		r->start = r->end = 0;
	} else if (!strcmp(c.bad, "backwards")) {
		r->end = start - 1;
	} else if (!strcmp(c.bad, "clock")) {
		r->start += 1615207265000000000ULL;
		r->end += 1615207265000000000ULL;
	} else if (!strcmp(c.bad, "early")) {
		r->start -= 1000000000;
		r->end -= 1000000000;
	} else if (!strcmp(c.bad, "at-once") && behind) {
		r->start = last - 4000;
		r->end = last - 1000;
	} else if (!strcmp(c.bad, "overlap") && behind) {
		r->start = last - 4000;
	} else {
		return;
	}
	atomic_fetch_add(&c.bad_kernels, 1);
}

static void hear_kernel(const struct xd_op *op)
{
	bool graph_ids = !on(XD_KIND_GRAPH_TRACE);
	xd_kernel_record r = {.kind = XD_KIND_CONCURRENT_KERNEL,
			      .registers = op->registers,
			      .start = convert(op->start),
			      .end = convert(op->end),
			      .device = (uint32_t)op->stream->context->device,
			      .context = op->stream->context->id,
			      .stream = op->stream->id,
			      .static_shared = (int32_t)op->static_shared,
			      .dynamic_shared = (int32_t)op->dynamic_shared,
			      .shared_executed = 102400,
			      .correlation = op->correlation,
			      .grid_id = op->correlation,
			      .name = op->name,
			      .launch_type = op->launch_type,
			      .graph_node = graph_ids ? op->graph_node : 0,
			      .graph = graph_ids ? op->graph : 0,
			      .channel = 8 + op->stream->id % 8,
			      .channel_type = 1};

	if (op->graph && !graph_ids)
		return;
	if (!on(XD_KIND_CONCURRENT_KERNEL) && !on(XD_KIND_KERNEL))
		return;
	for (unsigned i = 0; i < 3; i++) {
		r.grid[i] = (int32_t)op->grid[i];
		r.block[i] = (int32_t)op->block[i];
	}
	if (atomic_load(&c.latency)) {
		r.queued = convert(op->start - 400);
		r.submitted = convert(op->start - 200);
	}
	spoil(&r);
	make(&r, c.kernel_size);
}

static void hear_memcpy(const struct xd_op *op)
{
	xd_memcpy_record r = {.kind = XD_KIND_MEMCPY,
			      .copy_kind = op->copy_kind,
			      .source_kind = op->from_kind,
			      .destination_kind = op->to_kind,
			      .flags = op->async,
			      .bytes = op->bytes,
			      .start = convert(op->start),
			      .end = convert(op->end),
			      .device = (uint32_t)op->stream->context->device,
			      .context = op->stream->context->id,
			      .stream = op->stream->id,
			      .correlation = op->correlation,
			      .graph_node = op->graph_node,
			      .graph = op->graph,
			      .channel = 3,
			      .channel_type = 2};

	if (on(XD_KIND_MEMCPY))
		make(&r, sizeof(r));
}

static void hear_p2p(const struct xd_op *op)
{
	xd_p2p_record r = {.kind = XD_KIND_MEMCPY2,
			   .copy_kind = op->copy_kind,
			   .source_kind = op->from_kind,
			   .destination_kind = op->to_kind,
			   .flags = op->async,
			   .bytes = op->bytes,
			   .start = convert(op->start),
			   .end = convert(op->end),
			   .device = (uint32_t)op->stream->context->device,
			   .context = op->stream->context->id,
			   .stream = op->stream->id,
			   .source_device = (uint32_t)op->from_device,
			   .source_context = op->stream->context->id,
			   .destination_device = (uint32_t)op->to_device,
			   .destination_context = op->stream->context->id,
			   .correlation = op->correlation,
			   .graph_node = op->graph_node,
			   .graph = op->graph,
			   .channel = 3,
			   .channel_type = 2};

	if (on(XD_KIND_MEMCPY2))
		make(&r, sizeof(r));
}

static void hear_memset(const struct xd_op *op)
{
	xd_memset_record r = {.kind = XD_KIND_MEMSET,
			      .value = op->value,
			      .bytes = op->bytes,
			      .start = convert(op->start),
			      .end = convert(op->end),
			      .device = (uint32_t)op->stream->context->device,
			      .context = op->stream->context->id,
			      .stream = op->stream->id,
			      .correlation = op->correlation,
			      .flags = op->async,
			      .memory_kind = XD_DEVICE,
			      .graph_node = op->graph_node,
			      .graph = op->graph,
			      .channel = 8 + op->stream->id % 8,
			      .channel_type = 1};

	if (on(XD_KIND_MEMSET))
		make(&r, sizeof(r));
}

static bool hear_launch(const struct xd_op *op)
{
	static const uint8_t kind[XD_OPS] = {XD_KIND_CONCURRENT_KERNEL, XD_KIND_MEMCPY,
					     XD_KIND_MEMCPY2, XD_KIND_MEMSET};

	return on(kind[op->kind]);
}

static void hear_op(const struct xd_op *op)
{
	static void (*const hear[XD_OPS])(const struct xd_op *) = {
		[XD_KERNEL] = hear_kernel,
		[XD_MEMCPY] = hear_memcpy,
		[XD_MEMCPY_P2P] = hear_p2p,
		[XD_MEMSET] = hear_memset,
	};

	hear[op->kind](op);
}

static void hear_sync(const struct xd_sync *s)
{
	xd_sync_record r = {.kind = XD_KIND_SYNCHRONIZATION,
			    .type = s->kind,
			    .start = convert(s->start),
			    .end = convert(s->end),
			    .correlation = s->correlation,
			    .context = s->context->id,
			    .stream = s->stream,
			    .event = s->event};

	if (on(XD_KIND_SYNCHRONIZATION))
		make(&r, sizeof(r));
}

static void hear_memory(const struct xd_memory *m)
{
	xd_memory_record r = {.kind = XD_KIND_MEMORY2,
			      .operation = m->release ? 2 : 1,
			      .memory_kind = m->kind,
			      .correlation = m->correlation,
			      .address = m->address,
			      .bytes = m->bytes,
			      .time = convert(m->time),
			      .pid = (uint32_t)c.pid,
			      .device = (uint32_t)(m->context ? m->context->device : 0),
			      .context = m->context ? m->context->id : 0,
			      .stream = m->stream,
			      .async = m->async};

	r.pool.type = m->pool ? 1 : 0;
	r.pool.address = m->pool;
	if (on(XD_KIND_MEMORY2))
		make(&r, sizeof(r));
}

static void hear_event(const struct xd_event_record *e)
{
	xd_event_record_t r = {.kind = XD_KIND_CUDA_EVENT,
			       .correlation = e->correlation,
			       .context = e->context->id,
			       .stream = e->stream,
			       .event = e->event,
			       .device = (uint32_t)e->context->device,
			       .event_sync = e->sync_id};

	if (on(XD_KIND_CUDA_EVENT))
		make(&r, sizeof(r));
}

static void hear_context(CUcontext context)
{
	xd_context_record r = {.kind = XD_KIND_CONTEXT,
			       .context = context->id,
			       .device = (uint32_t)context->device,
			       .api = 1,
			       .null_stream = 7};

	if (on(XD_KIND_CONTEXT))
		make(&r, sizeof(r));
}

static void hear_graph(uint32_t graph, uint32_t correlation, CUstream stream, uint64_t begin_ns,
		       uint64_t end_ns)
{
	xd_graph_record r = {.kind = XD_KIND_GRAPH_TRACE,
			     .correlation = correlation,
			     .start = convert(begin_ns),
			     .end = convert(end_ns),
			     .device = (uint32_t)stream->context->device,
			     .graph = graph,
			     .context = stream->context->id,
			     .stream = stream->id,
			     .end_device = (uint32_t)stream->context->device,
			     .end_context = stream->context->id};

	if (on(XD_KIND_GRAPH_TRACE))
		make(&r, sizeof(r));
}

static const struct xd_hooks hooks = {.api = hear_api,
				      .launched = hear_launch,
				      .op = hear_op,
				      .sync = hear_sync,
				      .memory = hear_memory,
				      .event = hear_event,
				      .context = hear_context,
				      .graph = hear_graph};

static void start(void)
{
	const char *fail = getenv("XSP_DOUBLE_CUPTI_FAIL");
	const char *colon = fail ? strchr(fail, ':') : NULL;

	c.pid = getpid();
	c.api = (uint32_t)xd_env("XSP_DOUBLE_CUPTI_API", XD_CUPTI_API);
	c.kernel_size = xd_env("XSP_DOUBLE_KERNEL_SIZE", c.api >= 130000 ? 216 : 208);
	c.drop_each = xd_env("XSP_DOUBLE_DROP", 0);
	c.shuffle = xd_env("XSP_DOUBLE_SHUFFLE", 0);
	c.shuffle = c.shuffle > MAX_HELD ? MAX_HELD : c.shuffle;
	c.cold_ms = xd_env("XSP_DOUBLE_COLD_MS", 0);
	c.flush_ms = xd_env("XSP_DOUBLE_FLUSH_MS", 0);
	c.garbage_at = xd_env("XSP_DOUBLE_GARBAGE", 0);
	c.incomplete = xd_env("XSP_DOUBLE_INCOMPLETE", 0);
	c.bad = getenv("XSP_DOUBLE_BAD");
	c.slots = (unsigned)xd_env("XSP_DOUBLE_SLOTS", c.api >= 130000 ? 8 : 1);
	c.slots = c.slots < 1 ? 1 : c.slots > MAX_SLOTS ? MAX_SLOTS : c.slots;
	for (unsigned i = 0; i < MAX_SLOTS; i++)
		pthread_mutex_init(&c.slot[i].lock, NULL);
	if (colon && (size_t)(colon - fail) < sizeof(c.fail_name)) {
		memcpy(c.fail_name, fail, (size_t)(colon - fail));
		c.fail_code = atoi(colon + 1);
	}
}

/* ---- the API --------------------------------------------------------------------- */

CUptiResult cuptiGetVersion(uint32_t *version);
CUptiResult cuptiGetResultString(CUptiResult result, const char **text);
CUptiResult cuptiSubscribe(void **subscriber, void *callback, void *data);
CUptiResult cuptiUnsubscribe(void *subscriber);
CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name);
CUptiResult cuptiSetThreadIdType(int type);
CUptiResult cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete);
CUptiResult cuptiActivityRegisterTimestampCallback(time_fn time);
CUptiResult cuptiActivityEnable(int kind);
CUptiResult cuptiActivityDisable(int kind);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped);
CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable);
CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiFinalize(void);

CUptiResult cuptiGetVersion(uint32_t *version)
{
	BEGIN();
	*version = c.api;
	return OK;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
	*text = result == OK			 ? "CUPTI_SUCCESS"
		: result == MULTIPLE_SUBSCRIBERS ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
		: result == 35			 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
						 : "CUPTI_ERROR_UNKNOWN";
	return OK;
}

static CUptiResult subscribe(void **subscriber, char *old_name, size_t old_size)
{
	const char *other = getenv("XSP_DOUBLE_SUBSCRIBER");

	if (!subscriber)
		return INVALID_PARAMETER;
	if ((other && *other) || atomic_exchange(&c.subscribed, true)) {
		if (old_name && old_size)
			snprintf(old_name, old_size, "CUPTI for %s", other ? other : "itself");
		return MULTIPLE_SUBSCRIBERS;
	}
	*subscriber = &c;
	return OK;
}

CUptiResult cuptiSubscribe(void **subscriber, void *callback, void *data)
{
	BEGIN();
	(void)callback;
	(void)data;
	return subscribe(subscriber, NULL, 0);
}

#if XD_CUPTI_API >= 130000
CUptiResult cuptiSubscribe_v2(void **subscriber, void *callback, void *data,
			      struct subscriber_params *p);

CUptiResult cuptiSubscribe_v2(void **subscriber, void *callback, void *data,
			      struct subscriber_params *p)
{
	BEGIN();
	(void)callback;
	(void)data;
	if (p && p->size != sizeof(*p))
		return INVALID_PARAMETER;
	return subscribe(subscriber, p ? p->old_name : NULL, p ? p->old_size : 0);
}
#endif

CUptiResult cuptiUnsubscribe(void *subscriber)
{
	BEGIN();
	if (subscriber != &c)
		return INVALID_PARAMETER;
	atomic_store(&c.subscribed, false);
	return OK;
}

CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
	BEGIN();
	*name = domain == XD_DRIVER || domain == XD_RUNTIME ? xd_name(domain, cbid) : NULL;
	return *name ? OK : INVALID_PARAMETER;
}

CUptiResult cuptiSetThreadIdType(int type)
{
	BEGIN();
	if (atomic_load(&c.kinds_on))
		violate("thread id type changed while kinds are enabled");
	atomic_store(&c.thread_ids, type);
	return OK;
}

CUptiResult cuptiActivityRegisterCallbacks(request_fn request, complete_fn complete)
{
	BEGIN();
	if (!request || !complete)
		return INVALID_PARAMETER;
	atomic_store(&c.request, request);
	atomic_store(&c.complete, complete);
	return OK;
}

CUptiResult cuptiActivityRegisterTimestampCallback(time_fn time)
{
	uint64_t before = xd_now(), value;
	BEGIN();

	if (!time)
		return INVALID_PARAMETER;
	value = time();
	if (value < before || value > xd_now())
		violate("the timestamp callback is not CLOCK_MONOTONIC");
	if (atomic_load(&c.kinds_on) && time != atomic_load(&c.time))
		violate("timestamp callback changed while kinds are enabled");
	atomic_store(&c.time, time);
	return OK;
}

/* While nothing is enabled the driver is unchanged. (With the real CUPTI only after
 * cuptiFinalize.) */
static void count_on(bool more)
{
	if (more && atomic_fetch_add(&c.kinds_on, 1) == 0)
		xd_set_hooks(&hooks);
	if (!more && atomic_fetch_sub(&c.kinds_on, 1) == 1) {
		xd_set_hooks(NULL);
		atomic_store(&c.told_on, false);
	}
}

static void warm_up(void)
{
	pthread_t thread;

	if (atomic_exchange(&c.cold_done, true))
		return;
	if (c.cold_ms)
		xd_wait_until(xd_now() + c.cold_ms * 1000000);
	if (pthread_create(&thread, NULL, deliverer, NULL) == 0)
		pthread_detach(thread);
}

CUptiResult cuptiActivityEnable(int kind)
{
	BEGIN();
	if (kind <= 0 || kind >= XD_KINDS)
		return INVALID_KIND;
	warm_up();
	if (!atomic_load(&c.request))
		violate("a kind enabled before buffer callbacks were registered");
	if (!atomic_exchange(&c.enabled[kind], true))
		count_on(true);
	if (kind == XD_KIND_CONTEXT)
		xd_contexts(hear_context);
	return OK;
}

CUptiResult cuptiActivityDisable(int kind)
{
	BEGIN();
	if (kind <= 0 || kind >= XD_KINDS)
		return INVALID_KIND;
	if (atomic_exchange(&c.enabled[kind], false))
		count_on(false);
	return OK;
}

static CUptiResult enable_api(unsigned domain, uint32_t cbid, uint8_t enable)
{
	if (cbid >= XD_MAX_CBID)
		return INVALID_PARAMETER;
	warm_up();
	if (atomic_exchange(&c.cbids[domain][cbid], enable) != enable)
		count_on(enable);
	return OK;
}

#if XD_CUPTI_API > 20
CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	BEGIN();
	return enable_api(XD_DRIVER, cbid, enable);
}

CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	BEGIN();
	return enable_api(XD_RUNTIME, cbid, enable);
}
#endif

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	BEGIN();
	atomic_store(&c.latency, enable);
	return OK;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	BEGIN();
	if (in_callback) {
		violate("a flush from inside a callback");
		return INVALID_OPERATION;
	}
	if (c.flush_ms)
		xd_wait_until(xd_now() + c.flush_ms * 1000000);
	if (flag || c.shuffle)
		release_held();
	for (unsigned i = 0; i < c.slots; i++) {
		struct slot *s = &c.slot[i];

		pthread_mutex_lock(&s->lock);
		if (flag && c.incomplete && s->buffer && s->valid && s->size - s->valid >= 216) {
			/* kind 0, and values that break a reader of a whole kernel record */
			memset(s->buffer + s->valid, 0xee, 216);
			memset(s->buffer + s->valid, 0, 4);
			s->valid += 216;
		}
		if (s->buffer && (s->valid || flag)) {
			queue_full(s->buffer, s->size, s->valid);
			s->buffer = NULL;
			s->size = s->valid = 0;
		}
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_lock(&c.lock);
	while (deliver_one())
		;
	while (c.delivering)
		pthread_cond_wait(&c.idle, &c.lock);
	pthread_mutex_unlock(&c.lock);
	return OK;
}

static size_t record_size(uint32_t kind)
{
	switch (kind) {
	case XD_KIND_MEMCPY:
		return sizeof(xd_memcpy_record);
	case XD_KIND_MEMCPY2:
		return sizeof(xd_p2p_record);
	case XD_KIND_MEMSET:
		return sizeof(xd_memset_record);
	case XD_KIND_CONCURRENT_KERNEL:
		return c.kernel_size;
	case XD_KIND_DRIVER:
	case XD_KIND_RUNTIME:
		return sizeof(xd_api_record);
	case XD_KIND_CONTEXT:
		return sizeof(xd_context_record);
	case XD_KIND_CUDA_EVENT:
		return sizeof(xd_event_record_t);
	case XD_KIND_SYNCHRONIZATION:
		return sizeof(xd_sync_record);
	case XD_KIND_MEMORY2:
		return sizeof(xd_memory_record);
	case XD_KIND_GRAPH_TRACE:
		return sizeof(xd_graph_record);
	case XD_KIND_OVERHEAD:
		return sizeof(xd_overhead_record);
	case 63: /* XSP_DOUBLE_GARBAGE */
		return 16;
	}
	return 0;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record;
	BEGIN();

	if (!buffer || !record)
		return INVALID_PARAMETER;
	at = at ? at + record_size(*(uint32_t *)(void *)at) : buffer;
	if (at >= buffer + valid)
		return MAX_LIMIT_REACHED;
	if (!record_size(*(uint32_t *)(void *)at))
		return INVALID_KIND;
	*record = at;
	return OK;
}

static void tell_on(void)
{
	const char *path = getenv("XSP_DOUBLE_TRUTH");
	char with[512];
	FILE *f;

	if (!path || !atomic_load(&c.kinds_on) || atomic_exchange(&c.told_on, true))
		return;
	snprintf(with, sizeof(with), "%s.on", path);
	f = fopen(with, "w");
	if (f)
		fclose(f);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
	BEGIN();
	tell_on();
	(void)context;
	(void)stream;
	*dropped = atomic_exchange(&c.unread_drops, 0);
	return OK;
}

CUptiResult cuptiFinalize(void)
{
	BEGIN();
	return OK;
}

/* ---- the truth ------------------------------------------------------------------- */

static void write_kinds(FILE *f, const char *key, _Atomic uint64_t counts[XD_KINDS])
{
	static const char *const name[XD_KINDS] = {
		[XD_KIND_MEMCPY] = "memcpy",	 [XD_KIND_MEMSET] = "memset",
		[XD_KIND_DRIVER] = "driver",	 [XD_KIND_RUNTIME] = "runtime",
		[XD_KIND_CONTEXT] = "context",	 [XD_KIND_CONCURRENT_KERNEL] = "kernel",
		[XD_KIND_OVERHEAD] = "overhead", [XD_KIND_MEMCPY2] = "memcpy_p2p",
		[XD_KIND_CUDA_EVENT] = "event",	 [XD_KIND_SYNCHRONIZATION] = "sync",
		[XD_KIND_MEMORY2] = "memory",	 [XD_KIND_GRAPH_TRACE] = "graph",
		[XD_KIND_MARKER] = "marker",
	};
	const char *comma = "";

	fprintf(f, "\"%s\":{", key);
	for (unsigned i = 0; i < XD_KINDS; i++)
		if (counts[i] && name[i]) {
			fprintf(f, "%s\"%s\":%llu", comma, name[i], (unsigned long long)counts[i]);
			comma = ",";
		}
	fprintf(f, "},");
}

__attribute__((destructor)) static void finish(void)
{
	const char *path = getenv("XSP_DOUBLE_TRUTH");
	char with[512];
	FILE *f;

	if (!path || !c.pid || c.pid != getpid())
		return;
	atomic_store(&c.finished, true);
	snprintf(with, sizeof(with), "%s.cupti", path);
	f = fopen(with, "w");
	if (!f)
		return;
	fprintf(f, "{");
	write_kinds(f, "made", c.made);
	write_kinds(f, "dropped_by_kind", c.lost.dropped_by_kind);
	fprintf(f,
		"\"dropped\":%llu,\"buffers\":%llu,\"refused\":%llu,\"kinds_on\":%llu,"
		"\"callback_ns\":%llu,\"bad_kernels\":%llu,\"violations\":%llu,\"violation\":\"%s\",\"api\":%u}\n",
		(unsigned long long)c.dropped, (unsigned long long)c.buffers,
		(unsigned long long)c.requests_refused, (unsigned long long)c.kinds_on,
		(unsigned long long)c.callback_ns, (unsigned long long)c.bad_kernels,
		(unsigned long long)c.violations, c.violation, c.api);
	fclose(f);
}
