/* SPDX-License-Identifier: BSD-2-Clause */
/* engine.c - the simulated GPU: streams, worker threads, graphs, and the truth at exit. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <signal.h>
#include "engine.h"

enum { MAX_WORKERS = 16, RING = 1 << 15, BATCH_MAX = 256, MAX_CONTEXTS = 64, MAX_NAMES = 1024 };

struct xd_worker {
	pthread_mutex_t lock;
	pthread_cond_t work, room, done;
	struct xd_op *ring;
	uint64_t head, tail, done_count; /* taken, put, reported */
	pthread_t thread;
};

struct CUgraph_st {
	uint32_t id;
	size_t count, room;
	struct xd_op *ops;
};
struct CUgraphExec_st {
	struct CUgraph_st graph;
};

struct count {
	_Atomic uint64_t n, bytes;
};

static struct {
	pthread_once_t once;
	pid_t pid;
	unsigned workers;
	struct xd_worker worker[MAX_WORKERS];
	int devices;
	uint64_t kernel_ns;
	bool shared_us;
	char fail_name[64];
	uint64_t fail_at;
	_Atomic(const struct xd_hooks *) hooks;
	_Atomic uint32_t correlation, contexts, streams, graphs;
	_Atomic uint64_t nodes;
	pthread_mutex_t lock; /* for all that follows */
	CUcontext context[MAX_CONTEXTS];
	CUcontext primary[XD_MAX_DEVICES];
	CUstream null_stream[MAX_CONTEXTS];
	/* the truth */
	_Atomic uint64_t calls[3][XD_MAX_CBID], errors[3][XD_MAX_CBID];
	struct count ops[XD_OPS], copies[16];
	struct {
		const char *_Atomic name;
		_Atomic uint64_t n;
	} names[MAX_NAMES];
	_Atomic uint64_t in_graphs, graph_launches, syncs[5], event_records;
	_Atomic int64_t memory;
	_Atomic int64_t memory_peak;
} gpu = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
	unsigned depth;
	uint32_t correlation;
	CUcontext context;
	CUstream per_thread;
} self;

uint64_t xd_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t xd_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

const char *xd_name(enum xd_domain domain, uint32_t cbid)
{
	static const char *const driver[XD_MAX_CBID] = {
#define ONE(name, number) [number] = #name,
		XD_DRIVER_CBIDS(ONE)
#undef ONE
	};
	static const char *const runtime[XD_MAX_CBID] = {
#define ONE(name, function, number) [number] = #name,
		XD_RUNTIME_CBIDS(ONE)
#undef ONE
	};

	if (cbid >= XD_MAX_CBID)
		return NULL;
	return domain == XD_DRIVER ? driver[cbid] : domain == XD_RUNTIME ? runtime[cbid] : NULL;
}

void xd_set_hooks(const struct xd_hooks *hooks)
{
	atomic_store(&gpu.hooks, hooks);
}

bool xd_alive(void)
{
	return gpu.pid == getpid();
}

/* ---- calls ----------------------------------------------------------------------- */

void xd_enter(struct xd_call *call, enum xd_domain domain, uint32_t cbid)
{
	uint64_t n;

	if (!self.depth++)
		self.correlation = atomic_fetch_add(&gpu.correlation, 1) + 1;
	call->domain = domain;
	call->cbid = cbid;
	call->correlation = self.correlation;
	n = atomic_fetch_add_explicit(&gpu.calls[domain][cbid], 1, memory_order_relaxed) + 1;
	call->fail =
		gpu.fail_at && n >= gpu.fail_at && !strcmp(xd_name(domain, cbid), gpu.fail_name);
	call->start = xd_now();
}

int xd_leave(struct xd_call *call, int result)
{
	const struct xd_hooks *hooks = atomic_load_explicit(&gpu.hooks, memory_order_acquire);

	if (call->fail)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result)
		atomic_fetch_add_explicit(&gpu.errors[call->domain][call->cbid], 1,
					  memory_order_relaxed);
	self.depth--;
	if (hooks && xd_alive())
		hooks->api(call->domain, call->cbid, call->start, xd_now(), call->correlation,
			   result);
	return result;
}

/* ---- workers --------------------------------------------------------------------- */

static void count_name(const char *name)
{
	uint32_t hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (unsigned i = 0; i < MAX_NAMES; i++) {
		unsigned at = (hash + i) % MAX_NAMES;
		const char *none = NULL;

		if (!atomic_load(&gpu.names[at].name))
			atomic_compare_exchange_strong(&gpu.names[at].name, &none, name);
		if (!strcmp(atomic_load(&gpu.names[at].name), name)) {
			atomic_fetch_add(&gpu.names[at].n, 1);
			return;
		}
	}
}

static void complete(const struct xd_op *op)
{
	const struct xd_hooks *hooks = atomic_load_explicit(&gpu.hooks, memory_order_acquire);

	atomic_fetch_add(&gpu.ops[op->kind].n, 1);
	atomic_fetch_add(&gpu.ops[op->kind].bytes, op->bytes);
	if (op->graph)
		atomic_fetch_add(&gpu.in_graphs, 1);
	if (op->kind == XD_KERNEL)
		count_name(op->name);
	if (op->kind == XD_MEMCPY)
		atomic_fetch_add(&gpu.copies[op->copy_kind].n, 1);
	if (hooks && op->traced)
		hooks->op(op);
}

void xd_wait_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Takes due operations from the head of the queue; under the lock. */
static unsigned dequeue(struct xd_worker *w, struct xd_op *out, uint64_t now)
{
	unsigned n = 0;

	while (n < BATCH_MAX && w->head + n < w->tail) {
		out[n] = w->ring[(w->head + n) % RING];
		if (out[n].end > now)
			break;
		n++;
	}
	w->head += n;
	return n;
}

static void *worker_main(void *argument)
{
	struct xd_worker *w = argument;
	struct xd_op ops[BATCH_MAX];
	unsigned n;
	uint64_t end;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		while (w->head == w->tail)
			pthread_cond_wait(&w->work, &w->lock);
		n = dequeue(w, ops, xd_now());
		end = n ? 0 : w->ring[w->head % RING].end;
		pthread_cond_broadcast(&w->room);
		pthread_mutex_unlock(&w->lock);
		if (!n)
			xd_wait_until(end);
		for (unsigned i = 0; i < n; i++)
			complete(&ops[i]);
		pthread_mutex_lock(&w->lock);
		for (unsigned i = 0; i < n; i++)
			ops[i].stream->done++;
		w->done_count += n;
		if (n)
			pthread_cond_broadcast(&w->done);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void start_workers(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; i < gpu.workers; i++) {
		struct xd_worker *w = &gpu.worker[i];

		pthread_mutex_init(&w->lock, NULL);
		pthread_cond_init(&w->work, NULL);
		pthread_cond_init(&w->room, NULL);
		pthread_cond_init(&w->done, NULL);
		w->ring = malloc(RING * sizeof(*w->ring));
		if (!w->ring || pthread_create(&w->thread, NULL, worker_main, w))
			abort();
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void start(void)
{
	const char *fail = getenv("XSP_DOUBLE_FAIL");
	const char *colon = fail ? strchr(fail, ':') : NULL;

	gpu.pid = getpid();
	gpu.workers = (unsigned)xd_env("XSP_DOUBLE_WORKERS", 2);
	gpu.workers = gpu.workers < 1 ? 1 : gpu.workers > MAX_WORKERS ? MAX_WORKERS : gpu.workers;
	gpu.devices = (int)xd_env("XSP_DOUBLE_DEVICES", 1);
	gpu.devices = gpu.devices > XD_MAX_DEVICES ? XD_MAX_DEVICES : gpu.devices;
	gpu.shared_us = xd_env("XSP_DOUBLE_SHARED_US", 0) != 0;
	gpu.kernel_ns = xd_env("XSP_DOUBLE_KERNEL_NS", 2000);
	if (colon && (size_t)(colon - fail) < sizeof(gpu.fail_name)) {
		memcpy(gpu.fail_name, fail, (size_t)(colon - fail));
		gpu.fail_at = strtoull(colon + 1, NULL, 10);
	}
	atomic_store(&gpu.streams, 13);
	start_workers();
}

int xd_start(void)
{
	pthread_once(&gpu.once, start);
	return xd_alive() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int xd_devices(void)
{
	return gpu.devices;
}

/* ---- contexts and streams -------------------------------------------------------- */

CUcontext *xd_current(void)
{
	return &self.context;
}

static CUstream stream_new(CUcontext context, int priority, uint32_t id)
{
	CUstream s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->id = id;
	s->context = context;
	s->priority = priority;
	s->worker = &gpu.worker[id % gpu.workers];
	return s;
}

CUcontext xd_context_new(int device)
{
	const struct xd_hooks *hooks = atomic_load(&gpu.hooks);
	uint32_t id = atomic_fetch_add(&gpu.contexts, 1);
	CUcontext c = calloc(1, sizeof(*c));

	if (!c || id >= MAX_CONTEXTS)
		abort();
	c->id = id + 1;
	c->device = device;
	pthread_mutex_lock(&gpu.lock);
	gpu.null_stream[id] = stream_new(c, 0, 7);
	gpu.context[id] = c;
	pthread_mutex_unlock(&gpu.lock);
	if (hooks)
		hooks->context(c);
	return c;
}

CUcontext xd_context(int device)
{
	CUcontext c;

	pthread_mutex_lock(&gpu.lock);
	c = gpu.primary[device];
	pthread_mutex_unlock(&gpu.lock);
	if (c)
		return c;
	c = xd_context_new(device);
	pthread_mutex_lock(&gpu.lock);
	if (!gpu.primary[device])
		gpu.primary[device] = c;
	c = gpu.primary[device];
	pthread_mutex_unlock(&gpu.lock);
	return c;
}

void xd_contexts(void (*f)(CUcontext context))
{
	for (unsigned i = 0; i < MAX_CONTEXTS; i++) {
		CUcontext c;

		pthread_mutex_lock(&gpu.lock);
		c = gpu.context[i];
		pthread_mutex_unlock(&gpu.lock);
		if (c)
			f(c);
	}
}

CUstream xd_stream_new(CUcontext context, int priority)
{
	return stream_new(context, priority, atomic_fetch_add(&gpu.streams, 1));
}

void xd_stream_free(CUstream stream)
{
	/* operations may still refer to it; a program of a test has few */
	xd_wait_stream(stream);
}

CUstream xd_stream(CUstream handle, bool per_thread)
{
	if (!xd_alive())
		return NULL;
	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
		return handle;
	if (!self.context)
		return NULL;
	if (handle == CU_STREAM_LEGACY || (!handle && !per_thread))
		return gpu.null_stream[self.context->id - 1];
	if (!self.per_thread || self.per_thread->context != self.context)
		self.per_thread = xd_stream_new(self.context, 0);
	return self.per_thread;
}

static uint64_t duration(const struct xd_op *op)
{
	if (op->duration)
		return op->duration;
	/* copies: 25 GB/s over the bus, 1000 GB/s on the device */
	if (op->kind == XD_KERNEL)
		return gpu.shared_us ? op->dynamic_shared * 1000ULL : gpu.kernel_ns;
	return 800 + op->bytes / (op->copy_kind == XD_DTOD || op->kind == XD_MEMSET ? 1000 : 25);
}

static void put(CUstream stream, struct xd_op *op)
{
	const struct xd_hooks *hooks = atomic_load_explicit(&gpu.hooks, memory_order_acquire);
	struct xd_worker *w = stream->worker;
	uint64_t now;

	op->traced = hooks && hooks->launched(op);
	pthread_mutex_lock(&w->lock);
	while (w->tail - w->head == RING)
		pthread_cond_wait(&w->room, &w->lock);
	now = xd_now() + 500;
	op->stream = stream;
	op->start = stream->busy_until > now ? stream->busy_until + 100 : now;
	op->end = op->start + duration(op);
	stream->busy_until = op->end;
	stream->queued++;
	w->ring[w->tail++ % RING] = *op;
	pthread_cond_signal(&w->work);
	pthread_mutex_unlock(&w->lock);
}

int xd_queue(CUstream stream, struct xd_op *op)
{
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->capture)
		return xd_graph_add(stream->capture, op, NULL);
	op->correlation = self.correlation;
	put(stream, op);
	return CUDA_SUCCESS;
}

void xd_wait_stream(CUstream stream)
{
	struct xd_worker *w = stream->worker;
	uint64_t until;

	pthread_mutex_lock(&w->lock);
	until = stream->queued;
	while (stream->done < until)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

bool xd_stream_idle(CUstream stream)
{
	bool idle;

	pthread_mutex_lock(&stream->worker->lock);
	idle = stream->done == stream->queued;
	pthread_mutex_unlock(&stream->worker->lock);
	return idle;
}

/* Waits for all work that any worker has queued. */
void xd_wait_context(CUcontext context)
{
	(void)context;
	for (unsigned i = 0; i < gpu.workers; i++) {
		struct xd_worker *w = &gpu.worker[i];
		uint64_t tail;

		pthread_mutex_lock(&w->lock);
		tail = w->tail;
		while (w->done_count < tail)
			pthread_cond_wait(&w->done, &w->lock);
		pthread_mutex_unlock(&w->lock);
	}
}

/* ---- graphs ---------------------------------------------------------------------- */

CUgraph xd_graph_new(void)
{
	CUgraph g = calloc(1, sizeof(*g));

	if (g)
		g->id = atomic_fetch_add(&gpu.graphs, 1) + 1;
	return g;
}

int xd_graph_add(CUgraph graph, const struct xd_op *op, uint64_t *node)
{
	if (graph->count == graph->room) {
		size_t room = graph->room ? graph->room * 2 : 16;
		struct xd_op *ops = realloc(graph->ops, room * sizeof(*ops));

		if (!ops)
			return CUDA_ERROR_OUT_OF_MEMORY;
		graph->ops = ops;
		graph->room = room;
	}
	graph->ops[graph->count] = *op;
	graph->ops[graph->count].graph_node =
		(uint64_t)graph->id << 32 | (atomic_fetch_add(&gpu.nodes, 1) + 1);
	if (node)
		*node = graph->ops[graph->count].graph_node;
	graph->count++;
	return CUDA_SUCCESS;
}

CUgraphExec xd_graph_instantiate(CUgraph graph)
{
	CUgraphExec e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->graph = *graph;
	e->graph.id = atomic_fetch_add(&gpu.graphs, 1) + 1;
	e->graph.ops = malloc((graph->count + 1) * sizeof(*graph->ops));
	if (!e->graph.ops)
		abort();
	if (graph->count)
		memcpy(e->graph.ops, graph->ops, graph->count * sizeof(*graph->ops));
	return e;
}

int xd_graph_launch(CUgraphExec exec, CUstream stream, uint32_t correlation)
{
	const struct xd_hooks *hooks = atomic_load(&gpu.hooks);
	uint64_t begin = 0, end = 0;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	atomic_fetch_add(&gpu.graph_launches, 1);
	for (size_t i = 0; i < exec->graph.count; i++) {
		struct xd_op op = exec->graph.ops[i];

		op.correlation = correlation;
		op.graph = exec->graph.id;
		put(stream, &op);
		begin = begin ? begin : op.start;
		end = op.end;
	}
	if (hooks && exec->graph.count)
		hooks->graph(exec->graph.id, correlation, stream, begin, end);
	return CUDA_SUCCESS;
}

void xd_graph_free(CUgraph graph)
{
	free(graph->ops);
	free(graph);
}

void xd_graph_exec_free(CUgraphExec exec)
{
	free(exec->graph.ops);
	free(exec);
}

/* ---- reports to CUPTI, and the counts -------------------------------------------- */

void xd_report_sync(const struct xd_sync *sync)
{
	const struct xd_hooks *hooks = atomic_load(&gpu.hooks);

	atomic_fetch_add(&gpu.syncs[sync->kind], 1);
	if (hooks)
		hooks->sync(sync);
}

void xd_report_memory(const struct xd_memory *memory)
{
	const struct xd_hooks *hooks = atomic_load(&gpu.hooks);

	if (hooks)
		hooks->memory(memory);
}

void xd_report_event(const struct xd_event_record *event)
{
	const struct xd_hooks *hooks = atomic_load(&gpu.hooks);

	atomic_fetch_add(&gpu.event_records, 1);
	if (hooks)
		hooks->event(event);
}

void xd_count_memory(int64_t bytes)
{
	int64_t now = atomic_fetch_add(&gpu.memory, bytes) + bytes;
	int64_t peak = atomic_load(&gpu.memory_peak);

	while (now > peak && !atomic_compare_exchange_weak(&gpu.memory_peak, &peak, now))
		;
}

static void write_calls(FILE *f, const char *key, _Atomic uint64_t counts[3][XD_MAX_CBID])
{
	const char *comma = "";

	fprintf(f, "\"%s\":{", key);
	for (unsigned d = XD_DRIVER; d <= XD_RUNTIME; d++)
		for (unsigned i = 0; i < XD_MAX_CBID; i++)
			if (counts[d][i]) {
				fprintf(f, "%s\"%s\":%llu", comma, xd_name(d, i),
					(unsigned long long)counts[d][i]);
				comma = ",";
			}
	fprintf(f, "},");
}

static void write_names(FILE *f)
{
	const char *comma = "";

	fprintf(f, "\"names\":{");
	for (unsigned i = 0; i < MAX_NAMES; i++)
		if (gpu.names[i].name) {
			fprintf(f, "%s\"%s\":%llu", comma, gpu.names[i].name,
				(unsigned long long)gpu.names[i].n);
			comma = ",";
		}
	fprintf(f, "},");
}

static void write_truth(FILE *f)
{
	static const char *const kind[] = {"kernels", "memcpys", "memcpys_p2p", "memsets"};
	static const char *const sync[] = {"", "event", "wait_event", "stream", "context"};

	fprintf(f, "{");
	for (unsigned i = 0; i < XD_OPS; i++)
		fprintf(f, "\"%s\":%llu,\"%s_bytes\":%llu,", kind[i],
			(unsigned long long)gpu.ops[i].n, kind[i],
			(unsigned long long)gpu.ops[i].bytes);
	for (unsigned i = 1; i < 5; i++)
		fprintf(f, "\"sync_%s\":%llu,", sync[i], (unsigned long long)gpu.syncs[i]);
	fprintf(f, "\"htod\":%llu,\"dtoh\":%llu,\"dtod\":%llu,",
		(unsigned long long)gpu.copies[XD_HTOD].n,
		(unsigned long long)gpu.copies[XD_DTOH].n,
		(unsigned long long)gpu.copies[XD_DTOD].n);
	write_calls(f, "calls", gpu.calls);
	write_calls(f, "errors", gpu.errors);
	write_names(f);
	fprintf(f, "\"in_graphs\":%llu,\"graph_launches\":%llu,\"event_records\":%llu,",
		(unsigned long long)gpu.in_graphs, (unsigned long long)gpu.graph_launches,
		(unsigned long long)gpu.event_records);
	fprintf(f, "\"memory\":%lld,\"memory_peak\":%lld}\n", (long long)gpu.memory,
		(long long)gpu.memory_peak);
}

/* After the handlers of atexit(). */
__attribute__((destructor)) static void finish(void)
{
	const char *path = getenv("XSP_DOUBLE_TRUTH");
	FILE *f;

	if (!path || !gpu.pid || gpu.pid != getpid())
		return;
	f = fopen(path, "w");
	if (!f)
		return;
	write_truth(f);
	fclose(f);
}
