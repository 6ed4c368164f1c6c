/* SPDX-License-Identifier: BSD-2-Clause */
/* GPU activity joined to calls and operators: synthetic captures in every order that may come. */
#include <criterion/criterion.h>

#include "capture_builder.h"

/* Probes: an operator, a runtime launch, a driver launch, a graph launch, the agent's batches. */
enum { OP, RUNTIME, DRIVER, GRAPH, BATCH, PROBES };

#define SP 0x7ff000000000ULL

struct seen_call {
	struct xsp_gpu_call call;
	char name[32];
};

struct gpu_result {
	struct xsp_gpu_activity activities[64];
	uint64_t grid_id[64];
	char names[64][64];
	size_t count, untimed;
	struct seen_call calls[64];
	size_t call_count;
	struct xsp_gpu_counts counts;
	struct xsp_timeline *t;
};

static int on_activity(void *ctx, const struct xsp_gpu_activity *a)
{
	struct gpu_result *r = ctx;

	cr_assert_lt(r->count, 64);
	r->activities[r->count] = *a;
	if (a->kind == XSP_GPU_IS_KERNEL)
		r->grid_id[r->count] =
			(uint64_t)((const struct xsp_gpu_kernel *)a->record)->grid_id;
	snprintf(r->names[r->count++], 64, "%s", a->name);
	return 0;
}

static int on_untimed(void *ctx, const struct xsp_gpu_activity *a)
{
	struct gpu_result *r = ctx;

	cr_expect(a->bad && a->start_ns == 0 && a->end_ns == 0);
	r->untimed++;
	return 0;
}

static int on_call(void *ctx, const struct xsp_gpu_call *c)
{
	struct gpu_result *r = ctx;
	struct seen_call *s;

	cr_assert_lt(r->call_count, 64);
	s = &r->calls[r->call_count++];
	s->call = *c;
	snprintf(s->name, sizeof(s->name), "%s",
		 c->span != NULL ? xsp_timeline_name(r->t, c->span->name) : c->name);
	return 0;
}

static void start(struct builder *b)
{
	static const struct {
		const char *provider, *symbol;
	} probes[PROBES] = {
		[OP] = {"torch", "mm"},
		[RUNTIME] = {"cuda", "cudaLaunchKernel"},
		[DRIVER] = {"cuda", "cuLaunchKernel"},
		[GRAPH] = {"cuda", "cuGraphLaunch"},
		[BATCH] = {"gpu", "xsp_gpu_batch"},
	};

	builder_begin(b, 0);
	b->now = 1000000;
	for (uint32_t i = 0; i < PROBES; i++) {
		struct xsp_capture_probe p = {.id = i,
					      .module = UINT32_MAX,
					      .kind = i == BATCH ? XSP_PROBE_MARK
								 : XSP_PROBE_FUNCTION,
					      .provider = probes[i].provider,
					      .symbol = probes[i].symbol,
					      .name = probes[i].symbol};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
}

static void run(struct builder *b, struct gpu_result *r)
{
	struct xsp_capture_reader *reader;
	struct xsp_error err = {0};

	builder_end(b);
	*r = (struct gpu_result){0};
	cr_assert_eq(xsp_capture_open(b->path, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &r->t, &err), 0, "%s", err.text);
	struct xsp_timeline_sink sink = {
		.ctx = r, .call = on_call, .gpu = on_activity, .untimed = on_untimed};
	cr_assert_eq(xsp_timeline_run(r->t, &sink, 1, &err), 0, "%s", err.text);
	r->counts = *xsp_timeline_gpu(r->t);
	xsp_timeline_free(r->t);
	xsp_capture_close(reader);
	unlink(b->path);
}

/* ---- batches ---- */

struct batch {
	union {
		struct xsp_event_gpu event;
		uint64_t words[1024];
	} u;
	size_t used; /* bytes of records */
	uint32_t records;
	uint64_t first;
};

static void put_record(struct batch *b, const void *record, size_t size)
{
	memcpy((char *)(&b->u.event + 1) + b->used, record, size);
	b->used += size;
	b->records++;
}

static void open_batch(struct batch *b, uint64_t first)
{
	struct xsp_gpu_batch_head h = {.head = {XSP_GPU_BATCH_HEAD, sizeof(h), XSP_GPU_VERSION},
				       .window_ns = 5};

	*b = (struct batch){.first = first};
	put_record(b, &h, sizeof(h));
	b->records = 0;
}

static void send_batch(struct builder *c, struct batch *b)
{
	struct xsp_gpu_batch_head *h = (void *)(&b->u.event + 1);

	h->first = b->first;
	h->records = b->records;
	b->u.event.bytes = (uint32_t)b->used;
	b->u.event.head.kind = XSP_EVENT_GPU;
	b->u.event.head.probe = BATCH;
	builder_put(c, &b->u, sizeof(b->u.event) + b->used);
}

static void put_api(struct batch *b, uint16_t type, uint32_t correlation, uint64_t from,
		    uint64_t to, uint32_t tid)
{
	struct xsp_gpu_api a = {.head = {type, sizeof(a), correlation},
				.start_ns = from,
				.end_ns = to,
				.cbid = 211,
				.tid = tid};
	put_record(b, &a, sizeof(a));
}

static void put_kernel(struct batch *b, uint32_t correlation, uint64_t name, uint64_t from,
		       int64_t grid_id)
{
	struct xsp_gpu_kernel k = {.head = {XSP_GPU_KERNEL, sizeof(k), correlation},
				   .start_ns = from,
				   .end_ns = from + 100,
				   .name = name,
				   .stream = 7,
				   .grid_id = grid_id};
	put_record(b, &k, sizeof(k));
}

/* Its call takes the 50 ns from `call` on. */
static void put_timed(struct batch *b, uint16_t type, uint32_t correlation, uint64_t call,
		      uint64_t from, uint64_t to)
{
	struct xsp_gpu_kernel k = {.head = {XSP_GPU_KERNEL, sizeof(k), correlation},
				   .start_ns = from,
				   .end_ns = to,
				   .stream = 7};
	struct xsp_gpu_memcpy c = {.head = {XSP_GPU_MEMCPY, sizeof(c), correlation},
				   .start_ns = from,
				   .end_ns = to,
				   .stream = 7};

	put_api(b, XSP_GPU_RUNTIME, correlation, call, call + 50, 100);
	if (type == XSP_GPU_KERNEL)
		put_record(b, &k, sizeof(k));
	else
		put_record(b, &c, sizeof(c));
}

static void put_name(struct batch *b, uint64_t id, const char *text)
{
	struct {
		struct xsp_gpu_name n;
		char text[32];
	} n = {.n = {.head = {XSP_GPU_NAME, sizeof(n), 0},
		     .id = id,
		     .text_at = sizeof(n.n),
		     .length = (uint16_t)strlen(text)}};
	memcpy(n.text, text, strlen(text));
	put_record(b, &n, sizeof(n));
}

/* An operator with one call of each API in it; the times of the calls' inner halves. */
static void operator(struct builder *b, uint64_t *outer, uint64_t *inner)
{
	entry(b, OP, SP);
	entry(b, RUNTIME, SP - 0x100);
	*outer = b->now;
	b->now += 10;
	entry(b, DRIVER, SP - 0x200);
	*inner = b->now;
	b->now += 10;
	leave(b, DRIVER, SP - 0x200);
	b->now += 10;
	leave(b, RUNTIME, SP - 0x100);
	leave(b, OP, SP);
}

/* ---- cases ---- */

Test(timeline_gpu, call_and_kernel)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;
	uint64_t outer, inner;

	start(&b);
	operator(&b, &outer, &inner);
	open_batch(&g, 0);
	put_name(&g, 9, "_Z3addi");
	put_api(&g, XSP_GPU_DRIVER, 50, inner + 1, inner + 5, 100);
	put_api(&g, XSP_GPU_RUNTIME, 50, outer + 1, inner + 15, 100);
	put_kernel(&g, 50, 9, inner + 100, 1);
	send_batch(&b, &g);
	run(&b, &r);
	cr_assert_eq(r.count, 1);
	cr_assert_str_eq(r.names[0], "add(int)");
	cr_assert_eq(r.activities[0].external, 1, "the operator is the first span");
	cr_assert_eq(r.activities[0].arrow, 50);
	cr_assert(r.activities[0].arrow_begins);
	cr_assert_eq(r.activities[0].call_ns, outer - 1, "the arrow begins at the runtime call");
	cr_assert_eq(r.activities[0].call_end_ns, inner + 21, "and that is the call");
	cr_assert_eq(r.call_count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_assert_eq(r.calls[i].call.correlation, 50);
		cr_assert_eq(r.calls[i].call.external, 1);
	}
	cr_assert_eq(r.counts.api_matched, 2);
	cr_assert_eq(r.counts.start_least, 2, "entry is one before the time that was kept");
	cr_assert_eq(r.counts.linked, 1);
	cr_assert_eq(r.counts.lost, 0);
}

Test(timeline_gpu, everything_the_wrong_way_round)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;
	uint64_t begun;

	start(&b);
	begun = b.now + 100000; /* when the operator will have run */
	open_batch(&g, 0);
	put_kernel(&g, 50, 9, begun + 200, 1);
	send_batch(&b, &g);
	open_batch(&g, 1);
	put_api(&g, XSP_GPU_DRIVER, 50, begun + 14, begun + 18, 100);
	send_batch(&b, &g);
	open_batch(&g, 2);
	put_name(&g, 9, "late");
	send_batch(&b, &g);
	b.now = begun;
	uint64_t outer, inner;
	operator(&b, &outer, &inner);
	cr_assert_eq(inner, begun + 13);
	run(&b, &r);
	cr_assert_eq(r.count, 1);
	cr_assert_str_eq(r.names[0], "late");
	cr_assert_eq(r.activities[0].external, 1);
	cr_assert_eq(r.counts.api_matched, 1);
	cr_assert_eq(r.counts.unlinked, 0);
}

Test(timeline_gpu, a_graph_fans_out)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;

	start(&b);
	entry(&b, OP, SP);
	entry(&b, GRAPH, SP - 0x100);
	uint64_t at = b.now;
	b.now += 10;
	leave(&b, GRAPH, SP - 0x100);
	leave(&b, OP, SP);
	open_batch(&g, 0);
	put_name(&g, 9, "node");
	for (int i = 0; i < 10; i++)
		put_kernel(&g, 60, 9, at + 100 * (uint64_t)i, i);
	put_api(&g, XSP_GPU_DRIVER, 60, at + 1, at + 5, 100);
	send_batch(&b, &g);
	run(&b, &r);
	cr_assert_eq(r.count, 10);
	unsigned begins = 0, seen = 0;
	for (size_t i = 0; i < r.count; i++) {
		begins += r.activities[i].arrow_begins;
		seen |= 1U << r.grid_id[i];
		cr_assert_eq(r.activities[i].arrow, 60);
		cr_assert_eq(r.activities[i].external, 1);
	}
	cr_assert_eq(begins, 1, "one arrow begins");
	cr_assert_eq(seen, 0x3ff, "each kernel once");
}

Test(timeline_gpu, losses_are_counted)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;

	start(&b);
	open_batch(&g, 100);
	put_kernel(&g, 70, 0, 5000, 1);
	put_kernel(&g, 0, 0, 5000, 2);
	send_batch(&b, &g);
	open_batch(&g, 110); /* 102 to 109 did not come */
	struct xsp_gpu_dropped d = {.head = {XSP_GPU_DROPPED, sizeof(d), 0}, .count = 33};
	put_record(&g, &d, sizeof(d));
	send_batch(&b, &g);
	run(&b, &r);
	/* the window began at 0: nothing before 100 came either */
	cr_assert_eq(r.counts.lost, 111 - 3);
	cr_assert_eq(r.counts.dropped, 33);
	cr_assert_eq(r.counts.unlinked, 1, "the one with an id");
	cr_assert_eq(r.counts.unnamed, 2);
	cr_assert_eq(r.counts.unfinished, 1, "no word that the window has ended");
	cr_assert_eq(r.count, 2, "shown all the same");
	cr_assert_eq(r.activities[0].arrow, 0);
}

Test(timeline_gpu, threads_of_another_namespace)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;
	uint64_t outer, inner;

	start(&b);
	struct xsp_capture_thread t = {.pid = 100, .tid = 100, .ns_tid = 7, .comm = "w"};
	cr_assert_eq(xsp_capture_put_thread(b.w, &t), 0);
	operator(&b, &outer, &inner);
	open_batch(&g, 0);
	put_api(&g, XSP_GPU_DRIVER, 50, inner + 1, inner + 5, 7);
	send_batch(&b, &g);
	run(&b, &r);
	cr_assert_eq(r.counts.api_matched, 1);
}

Test(timeline_gpu, calls_without_probes)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;
	uint64_t outer, inner;

	start(&b);
	operator(&b, &outer, &inner);
	open_batch(&g, 0);
	/* a runtime call that no probe saw, around another driver call than the one in the span */
	put_api(&g, XSP_GPU_RUNTIME, 81, outer + 5000, outer + 6000, 100);
	put_kernel(&g, 81, 0, outer + 7000, 1);
	send_batch(&b, &g);
	run(&b, &r);
	cr_assert_eq(r.counts.api_matched, 0);
	cr_assert_eq(r.count, 1);
	cr_assert_eq(r.activities[0].arrow, 81);
	cr_assert_eq(r.activities[0].external, 0, "no operator was open: none is made up");
	cr_assert_eq(r.call_count, 3, "two spans without a record, a record without a span");
}

Test(timeline_gpu, garbage)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;

	start(&b);
	for (unsigned seed = 0; seed < 2000; seed++) {
		unsigned s = seed;
		open_batch(&g, (uint64_t)rand_r(&s) << 33);
		for (int i = 0; i < 20; i++) {
			uint64_t words[8];
			for (int k = 0; k < 8; k++)
				words[k] = (uint64_t)rand_r(&s) << 40 ^ (uint64_t)rand_r(&s);
			struct xsp_gpu_record head = {(uint16_t)(rand_r(&s) % 22), 64,
						      (uint32_t)rand_r(&s) % 4};
			if (rand_r(&s) % 50 == 0)
				head.size = (uint16_t)rand_r(&s);
			memcpy(words, &head, sizeof(head));
			put_record(&g, words, sizeof(words));
		}
		struct xsp_gpu_batch_head *h = (void *)(&g.u.event + 1);
		h->window_ns = seed % 3;
		send_batch(&b, &g);
	}
	builder_end(&b);
	struct xsp_capture_reader *reader;
	struct xsp_timeline *t;
	struct xsp_error err = {0};
	cr_assert_eq(xsp_capture_open(b.path, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(reader, &t, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_run(t, NULL, 0, &err), 0, "%s", err.text);
	r.counts = *xsp_timeline_gpu(t);
	cr_assert_gt(r.counts.malformed, 0);
	xsp_timeline_free(t);
	xsp_capture_close(reader);
	unlink(b.path);
}

/* Counted by kind, without times, and in no total. Clocks may disagree by 20 us; kernels of a stream
 * may overlap by programmatic launch, where the later one also ends later. */
Test(timeline_gpu, times_that_cannot_be_true)
{
	struct builder b;
	struct batch g;
	struct gpu_result r;

	start(&b);
	open_batch(&g, 0);
	put_timed(&g, XSP_GPU_KERNEL, 50, 1000000, 1100000, 1100100);
	put_timed(&g, XSP_GPU_KERNEL, 51, 1200000, 0, 0);
	put_timed(&g, XSP_GPU_KERNEL, 52, 1200000, 1200500, 1200400);
	put_timed(&g, XSP_GPU_KERNEL, 53, 1200000, 1000000000000000, 1000000000000100);
	put_timed(&g, XSP_GPU_KERNEL, 54, 1200000, 1170000, 1170100);
	put_timed(&g, XSP_GPU_KERNEL, 55, 1300000, 1290000, 1290100); /* as the clocks have it */
	put_timed(&g, XSP_GPU_KERNEL, 56, 1400000, 2000000, 2100000);
	put_timed(&g, XSP_GPU_KERNEL, 57, 1500000, 2090000, 2150000); /* programmatic launch */
	put_timed(&g, XSP_GPU_KERNEL, 58, 1600000, 2020000, 2030000);
	put_timed(&g, XSP_GPU_MEMCPY, 59, 1700000, 2140000, 2160000);
	put_timed(&g, XSP_GPU_MEMCPY, 60, 1800000, 2149000, 2180000); /* they touch */
	put_api(&g, XSP_GPU_RUNTIME, 61, 0, 0, 100);
	send_batch(&b, &g);
	run(&b, &r);
	cr_expect_eq(r.counts.bad[XSP_GPU_NO_TIME], 2, "a kernel and a call");
	cr_expect_eq(r.counts.bad[XSP_GPU_BACKWARDS], 1);
	cr_expect_eq(r.counts.bad[XSP_GPU_OTHER_CLOCK], 1);
	cr_expect_eq(r.counts.bad[XSP_GPU_BEFORE_CALL], 1);
	cr_expect_eq(r.counts.bad[XSP_GPU_AT_ONCE], 2);
	cr_expect_eq(r.counts.early, 1);
	cr_expect_eq(r.count, 5, "%zu with times", r.count);
	cr_expect_eq(r.untimed, 6);
	cr_expect_eq(r.counts.activities[XSP_GPU_IS_KERNEL], 9, "all are counted");
	cr_expect_eq(r.call_count, 11, "%zu calls", r.call_count);
}
