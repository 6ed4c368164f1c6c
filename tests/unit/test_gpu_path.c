/* SPDX-License-Identifier: BSD-2-Clause */
/* Critical paths of steps that are planted: what is on them was worked out by hand from the times
 * in each case. */
#include <criterion/criterion.h>

#include "analysis/gpu/gpu.h"
#include "capture_builder.h"

enum { STEP, OP, SYNC, BATCH, PROBES };

#define HOME 100
#define OTHER 200 /* a thread that launches as well */

struct bench {
	struct builder b;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *t;
	uint64_t steps; /* so far */
	struct xsp_gpu_analysis *g;
	struct xsp_timeline_sink sink;
};

static void start_capture(struct builder *b)
{
	static const char *const symbols[PROBES] = {"step", "aten::mm", "cudaStreamSynchronize",
						    "xsp_gpu_batch"};

	builder_begin(b, 0);
	for (uint32_t i = 0; i < PROBES; i++) {
		const struct xsp_capture_probe p = {.id = i,
						    .module = UINT32_MAX,
						    .kind = i == BATCH ? XSP_PROBE_MARK
								       : XSP_PROBE_FUNCTION,
						    .provider = i == BATCH ? "gpu" : "torch",
						    .symbol = symbols[i],
						    .name = symbols[i]};
		cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	}
}

static void open_bench(struct bench *x)
{
	struct xsp_error err = {0};
	void *state;

	x->b.now = 2000000000;
	builder_end(&x->b);
	cr_assert_eq(xsp_capture_open(x->b.path, &x->reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(x->reader, &x->t, &err), 0, "%s", err.text);
	xsp_timeline_mark_steps(x->t, "step");
	cr_assert_eq(xsp_analysis_gpu.begin(x->t, x->reader, &state), 0);
	x->g = state;
	x->sink = xsp_analysis_gpu.sink(state);
}

static void begin_bench(struct bench *x)
{
	start_capture(&x->b);
	open_bench(x);
}

static void end_bench(struct bench *x)
{
	xsp_analysis_gpu.end(x->g);
	xsp_timeline_free(x->t);
	xsp_capture_close(x->reader);
	unlink(x->b.path);
}

/* ---- what happens ---- */

static const char gemm[] = "gemm(float*)", add[] = "add(float*)",
		  reduce[] = "ncclDevKernel_AllReduce_Sum_f32";

static void tell_step(struct bench *x, enum xsp_step_news news, uint32_t tid, uint64_t from,
		      uint64_t to)
{
	const struct xsp_step step = {.news = news,
				      .pid = 100,
				      .tid = tid,
				      .number = x->steps,
				      .start_ns = from,
				      .end_ns = to,
				      .first = x->steps < XSP_STEPS_FIRST};

	x->steps += news == XSP_STEP_ENDED;
	cr_assert_eq(x->sink.step(x->sink.ctx, &step), 0);
}

static void tell_span(struct bench *x, uint32_t tid, uint32_t probe, uint64_t from, uint64_t to)
{
	const xsp_name_id step = STEP;
	const struct xsp_span s = {.start_ns = from,
				   .end_ns = to,
				   .pid = 100,
				   .tid = tid,
				   .probe = probe,
				   .name = probe,
				   .depth = probe != STEP,
				   .ancestors = &step};

	cr_assert_eq(x->sink.span(x->sink.ctx, &s), 0);
	if (probe == STEP)
		tell_step(x, XSP_STEP_ENDED, tid, from, to);
}

struct call {
	uint64_t from, to; /* 0: not known */
	uint32_t tid;
};

static void tell(struct bench *x, enum xsp_gpu_kind kind, uint32_t stream, const char *name,
		 uint64_t from, uint64_t to, struct call call, const void *record)
{
	const struct xsp_gpu_activity a = {.kind = kind,
					   .pid = 100,
					   .context = 1,
					   .stream = stream,
					   .name = name,
					   .start_ns = from,
					   .end_ns = to,
					   .arrow = call.from != 0 && kind != XSP_GPU_IS_EVENT,
					   .call_tid = call.tid,
					   .call_ns = call.from,
					   .call_end_ns = call.to,
					   .record = record};

	cr_assert_eq(x->sink.gpu(x->sink.ctx, &a), 0);
}

static void kernel(struct bench *x, uint32_t stream, const char *name, uint64_t from, uint64_t to,
		   struct call call)
{
	const struct xsp_gpu_kernel k = {.graph = 0};

	tell(x, XSP_GPU_IS_KERNEL, stream, name, from, to, call, &k);
}

static void copy(struct bench *x, uint32_t stream, uint64_t from, uint64_t to, struct call call)
{
	const struct xsp_gpu_memcpy c = {.bytes = 1000, .copy_kind = 1, .flags = 1};

	tell(x, XSP_GPU_IS_MEMCPY, stream, "", from, to, call, &c);
}

enum { EVENT = 1, WAIT_EVENT = 2, STREAM = 3, CONTEXT = 4 }; /* CUpti_ActivitySynchronizationType */

static void synchronise(struct bench *x, uint32_t what, uint32_t stream, struct call call)
{
	const struct xsp_gpu_sync s = {.what = what, .event = 9};

	tell(x, XSP_GPU_IS_SYNC, stream, "", call.from, call.to, call, &s);
}

static void record(struct bench *x, uint32_t stream, struct call call)
{
	const struct xsp_gpu_cuda_event e = {.event = 9};

	tell(x, XSP_GPU_IS_EVENT, stream, "", 0, 0, call, &e);
}

/* ---- what is on the path ---- */

static const char *name_of(const struct bench *x, const struct xsp_gpu_path_use *u)
{
	const struct xsp_gpu_name_use *names;

	if (u->name == XSP_GPU_NOWHERE)
		return "";
	if (u->kind == XSP_GPU_PATH_HOST)
		return xsp_timeline_name(x->t, u->name);
	if (u->kind == XSP_GPU_PATH_SYNC || u->kind == XSP_GPU_PATH_OFF)
		return "";
	xsp_gpu_by_name_uses(x->g->names, &names);
	return names[u->name].name;
}

static uint64_t on_path(const struct bench *x, enum xsp_gpu_path_kind kind, const char *name)
{
	const struct xsp_gpu_path_use *u = x->g->path->uses.rows;
	uint64_t sum = 0;

	for (size_t i = 0; i < x->g->path->uses.count; i++)
		if (u[i].kind == kind && (name == NULL || strcmp(name_of(x, &u[i]), name) == 0))
			sum += u[i].ns;
	return sum;
}

struct part {
	enum xsp_gpu_path_kind kind;
	const char *name; /* NULL: any */
	uint64_t ns;
};

/* These parts and no others: they add up to all steps. */
static void expect_path(struct bench *x, const struct part *parts)
{
	const struct xsp_gpu_path_counts *c = &x->g->path->counts;
	uint64_t sum = 0, kinds = 0;

	cr_assert_eq(xsp_gpu_path_end(x->g->path), 0);
	for (; parts->ns > 0; parts++) {
		const uint64_t ns = on_path(x, parts->kind, parts->name);
		cr_expect_eq(ns, parts->ns, "%d %s: %lu, not %lu", parts->kind,
			     parts->name != NULL ? parts->name : "", ns, parts->ns);
		sum += parts->ns;
	}
	for (unsigned i = 0; i < XSP_GPU_PATH_KINDS; i++)
		kinds += c->ns[i];
	cr_expect_eq(c->total_ns, sum, "steps of %lu ns", c->total_ns);
	cr_expect_eq(kinds, sum);
}

#define EXPECT(x, ...) expect_path((x), (const struct part[]){__VA_ARGS__, {0, NULL, 0}})
#define HOST(name, ns)                                                                             \
	{                                                                                          \
		XSP_GPU_PATH_HOST, name, ns                                                        \
	}
#define LAUNCH(ns)                                                                                 \
	{                                                                                          \
		XSP_GPU_PATH_LAUNCH, NULL, ns                                                      \
	}
#define COMPUTE(name, ns)                                                                          \
	{                                                                                          \
		XSP_GPU_PATH_COMPUTE, name, ns                                                     \
	}
#define COPY(ns)                                                                                   \
	{                                                                                          \
		XSP_GPU_PATH_MEMORY, NULL, ns                                                      \
	}
#define GAP(ns)                                                                                    \
	{                                                                                          \
		XSP_GPU_PATH_GAP, NULL, ns                                                         \
	}
#define WAITED(ns)                                                                                 \
	{                                                                                          \
		XSP_GPU_PATH_SYNC, NULL, ns                                                        \
	}
#define OFF(ns)                                                                                    \
	{                                                                                          \
		XSP_GPU_PATH_OFF, NULL, ns                                                         \
	}

#define BY(tid, from, to) ((struct call){from, to, tid})
#define CALL(from, to) BY(HOME, from, to)

/* ---- the cases: a step from 11000 to 12000 ---- */

Test(gpu_path, one_after_the_other)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, OP, 11050, 11130);
	tell_span(&x, HOME, SYNC, 11200, 11850);
	tell_span(&x, HOME, STEP, 11000, 12000);
	synchronise(&x, STREAM, 1, CALL(11200, 11850));
	kernel(&x, 1, gemm, 11150, 11800, CALL(11100, 11120));
	EXPECT(&x, HOST("step", 50 + 150), HOST("aten::mm", 50), LAUNCH(50), COMPUTE(gemm, 650),
	       WAITED(50));
	end_bench(&x);
}

/* Launched while the previous one was still running: it waited for that one, not for its launch. */
Test(gpu_path, one_stream)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, reduce, 11410, 11800, CALL(11130, 11135));
	kernel(&x, 1, gemm, 11150, 11400, CALL(11100, 11120));
	synchronise(&x, STREAM, 1, CALL(11200, 11850));
	EXPECT(&x, HOST("step", 100 + 150), LAUNCH(50), COMPUTE(gemm, 250), GAP(10),
	       {XSP_GPU_PATH_COMMUNICATION, reduce, 390}, WAITED(50));
	end_bench(&x);
}

/* The second stream waits for what the first one got before the event; what came after that does
 * not count. */
static void two_streams(struct bench *x, bool waits, bool recorded)
{
	begin_bench(x);
	tell_span(x, HOME, STEP, 11000, 12000);
	kernel(x, 1, gemm, 11150, 11700, CALL(11100, 11120));
	if (recorded)
		record(x, 1, CALL(11130, 11131));
	if (recorded)
		kernel(x, 1, add, 11700, 11708, CALL(11135, 11138));
	if (waits)
		synchronise(x, WAIT_EVENT, 2, CALL(11140, 11141));
	kernel(x, 2, add, 11710, 11900, CALL(11160, 11165));
	synchronise(x, STREAM, 2, CALL(11200, 11910));
}

Test(gpu_path, two_streams_and_an_event)
{
	struct bench x;

	two_streams(&x, true, true);
	EXPECT(&x, HOST("step", 100 + 90), LAUNCH(50), COMPUTE(gemm, 550), GAP(10),
	       COMPUTE(add, 190), WAITED(10));
	cr_expect_eq(x.g->path->counts.guessed, 0);
	end_bench(&x);
}

/* The same without the event: only the launch counts. */
Test(gpu_path, two_streams)
{
	struct bench x;

	two_streams(&x, false, false);
	EXPECT(&x, HOST("step", 160 + 90), LAUNCH(550), COMPUTE(add, 190), WAITED(10));
	end_bench(&x);
}

Test(gpu_path, an_event_that_was_not_recorded)
{
	struct bench x;

	two_streams(&x, true, false);
	EXPECT(&x, HOST("step", 100 + 90), LAUNCH(50), COMPUTE(gemm, 550), GAP(10),
	       COMPUTE(add, 190), WAITED(10));
	cr_expect_eq(x.g->path->counts.guessed, 1, "and it is said");
	end_bench(&x);
}

Test(gpu_path, a_thread_waits_for_an_event)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11150, 11600, CALL(11100, 11120));
	record(&x, 1, CALL(11130, 11131));
	kernel(&x, 1, add, 11600, 11645, CALL(11140, 11145));
	synchronise(&x, EVENT, XSP_GPU_NO_ID, CALL(11200, 11650));
	EXPECT(&x, HOST("step", 100 + 350), LAUNCH(50), COMPUTE(gemm, 450), WAITED(50));
	end_bench(&x);
}

/* When the host synchronises, the GPU has been done for long: nothing of it is on the path. */
Test(gpu_path, host_bound)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, OP, 11300, 11790);
	tell_span(&x, HOME, SYNC, 11800, 11810);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11150, 11200, CALL(11100, 11120));
	synchronise(&x, STREAM, 1, CALL(11800, 11810));
	EXPECT(&x, HOST("step", 300 + 10 + 190), HOST("aten::mm", 490),
	       HOST("cudaStreamSynchronize", 10));
	end_bench(&x);
}

/* A copy beside a longer kernel costs nothing; a longer copy is what is waited for. */
Test(gpu_path, hidden_copies)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11150, 11800, CALL(11100, 11110));
	copy(&x, 2, 11200, 11500, CALL(11120, 11125));
	synchronise(&x, CONTEXT, XSP_GPU_NO_ID, CALL(11210, 11830));
	EXPECT(&x, HOST("step", 100 + 170), LAUNCH(50), COMPUTE(gemm, 650), WAITED(30));
	end_bench(&x);
	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11150, 11800, CALL(11100, 11110));
	copy(&x, 2, 11200, 11900, CALL(11120, 11125));
	synchronise(&x, CONTEXT, XSP_GPU_NO_ID, CALL(11210, 11920));
	EXPECT(&x, HOST("step", 120 + 80), LAUNCH(80), COPY(700), WAITED(20));
	end_bench(&x);
}

/* Without any record of a synchronisation: the copy had ended when its call returned. */
Test(gpu_path, a_copy_that_blocks)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	copy(&x, 1, 11350, 11590, CALL(11300, 11600));
	EXPECT(&x, HOST("step", 300 + 400), LAUNCH(50), COPY(240), WAITED(10));
	end_bench(&x);
}

/* It was asynchronous, of pinned memory: short, and not waited for. */
Test(gpu_path, a_copy_beside_its_call)
{
	const struct xsp_gpu_memcpy c = {
		.bytes = 1000, .copy_kind = 1, .source_kind = 2, .destination_kind = 3, .flags = 1};
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	tell(&x, XSP_GPU_IS_MEMCPY, 1, "", 11350, 11590, CALL(11300, 11600), &c);
	kernel(&x, 1, gemm, 11600, 11700, CALL(11605, 11610));
	EXPECT(&x, HOST("step", 1000));
	end_bench(&x);
}

/* The GPU's work for the previous step, and work that nobody waits for. */
Test(gpu_path, ends_of_steps)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 10000, 11000);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 10500, 11600, CALL(10100, 10120));
	kernel(&x, 1, add, 11900, 12900, CALL(11850, 11855));
	synchronise(&x, STREAM, 1, CALL(11050, 11610));
	EXPECT(&x, HOST("step", 1000 + 390), COMPUTE(gemm, 600), WAITED(10));
	end_bench(&x);
}

/* Launched by another thread. Without --waits, and in no span there, the step's own thread
 * continues. */
Test(gpu_path, another_thread)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, OTHER, OP, 11100, 11180);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11200, 11800, BY(OTHER, 11150, 11170));
	synchronise(&x, STREAM, 1, CALL(11300, 11850));
	EXPECT(&x, HOST("aten::mm", 50), HOST("step", 100 + 150), LAUNCH(50), COMPUTE(gemm, 600),
	       WAITED(50));
	end_bench(&x);
}

/* With --waits: who woke whom. `back_ns`: when the step's thread ran again, after 11690. */
static void wake(uint64_t back_ns, uint64_t in_step, uint64_t off)
{
	const struct xsp_wait mine = {.pid = 100,
				      .tid = HOME,
				      .left_ns = 11200,
				      .woken_ns = 11690,
				      .back_ns = back_ns,
				      .why = XSP_WAIT_LOCK,
				      .waker = OTHER};
	const struct xsp_wait others = {.pid = 100,
					.tid = OTHER,
					.left_ns = 10900,
					.woken_ns = 11195,
					.back_ns = 11240,
					.why = XSP_WAIT_LOCK,
					.waker = HOME};
	struct bench x;

	begin_bench(&x);
	cr_assert_eq(x.sink.wait(x.sink.ctx, &others), 0);
	tell_span(&x, OTHER, OP, 11250, 11680);
	cr_assert_eq(x.sink.wait(x.sink.ctx, &mine), 0);
	tell_span(&x, HOME, STEP, 11000, 12000);
	EXPECT(&x, HOST("step", in_step), HOST("aten::mm", 430), HOST("", 10 + 10), OFF(off));
	end_bench(&x);
}

Test(gpu_path, woken_by_another_thread)
{
	wake(11700, 300 + 195, 10 + 45);
}

Test(gpu_path, woken_by_another_thread_and_on_a_cpu_at_once)
{
	wake(11690, 310 + 195, 45);
}

Test(gpu_path, a_launch_that_is_not_known)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 11000, 12000);
	kernel(&x, 1, gemm, 11200, 11800, CALL(0, 0));
	synchronise(&x, STREAM, 1, CALL(11300, 11850));
	EXPECT(&x, {XSP_GPU_PATH_UNKNOWN, NULL, 200}, COMPUTE(gemm, 600), WAITED(50),
	       HOST("step", 150));
	end_bench(&x);
}

/* ---- what is left out, and said ---- */

Test(gpu_path, steps_that_were_not_recorded)
{
	struct bench x;

	start_capture(&x.b);
	cr_assert_eq(xsp_capture_put_window(x.b.w, &(struct xsp_capture_window){1000, 11500}), 0);
	cr_assert_eq(xsp_capture_put_window(x.b.w, &(struct xsp_capture_window){11600, 20000}), 0);
	open_bench(&x);
	tell_span(&x, HOME, STEP, 10000, 11000);
	tell_span(&x, HOME, STEP, 11000, 12000);
	EXPECT(&x, HOST("step", 1000));
	cr_expect_eq(x.g->path->counts.unrecorded, 1);
	end_bench(&x);
}

/* The first one took more than twice the median. */
Test(gpu_path, warm_up)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 2000, 10000);
	tell_span(&x, HOME, STEP, 10000, 11000);
	tell_span(&x, HOME, STEP, 11000, 12000);
	tell_span(&x, HOME, STEP, 12000, 13000);
	tell_step(&x, XSP_STEP_WARM_UP, HOME, 2000, 10000);
	EXPECT(&x, HOST("step", 3000));
	cr_expect_eq(x.g->path->counts.warm_up, 1);
	end_bench(&x);
}

/* Steps of 1,000 ns each, with a kernel for half of that, which is reported when the next step is
 * over, and this many operators. */
static void long_run(struct bench *x, uint64_t steps, uint64_t spans)
{
	for (uint64_t i = 1; i <= steps; i++) {
		const uint64_t at = i * 100000;
		for (uint64_t k = 0; k < spans; k++)
			tell_span(x, HOME, OP, at + 100 + k * 2, at + 101 + k * 2);
		tell_span(x, HOME, STEP, at, at + 100000);
		const uint64_t last = at - 100000;
		kernel(x, 1, gemm, last + 40000, last + 90000, CALL(last + 30000, last + 31000));
		synchronise(x, STREAM, 1, CALL(last + 35000, last + 91000));
		cr_assert_leq(x->g->path->held, XSP_GPU_PATH_HELD_MOST);
	}
}

Test(gpu_path, longer_than_is_held)
{
	const uint64_t steps = 300, spans = 10000; /* three times as many */
	struct bench x;

	begin_bench(&x);
	long_run(&x, steps, spans);
	cr_assert_eq(xsp_gpu_path_end(x.g->path), 0);
	const struct xsp_gpu_path_counts *c = &x.g->path->counts;
	cr_expect_eq(c->steps, steps);
	cr_expect_eq(c->too_large + c->late, 0);
	/* all but the last one, whose kernel was not reported */
	cr_expect_eq(c->ns[XSP_GPU_PATH_COMPUTE], (steps - 1) * 50000);
	cr_expect_eq(c->ns[XSP_GPU_PATH_LAUNCH], (steps - 1) * 10000);
	cr_expect_eq(c->ns[XSP_GPU_PATH_SYNC], (steps - 1) * 1000);
	cr_expect_eq(on_path(&x, XSP_GPU_PATH_HOST, "aten::mm"), steps * spans,
		     "one ns each, all before the launch");
	end_bench(&x);
}

/* One step that is larger than what is held, between two that are not. */
Test(gpu_path, too_large)
{
	struct bench x;

	begin_bench(&x);
	tell_span(&x, HOME, STEP, 2000, 3000);
	for (uint64_t k = 0; k < XSP_GPU_PATH_HELD_MOST + 1000; k++)
		tell_span(&x, HOME, OP, 10000 + k * 2, 10001 + k * 2);
	tell_span(&x, HOME, STEP, 9000, 2500000);
	tell_span(&x, HOME, STEP, 2600000, 2601000);
	tell_span(&x, HOME, STEP, 2610000, 2611000);
	EXPECT(&x, HOST("step", 3000));
	cr_expect_eq(x.g->path->counts.too_large, 1);
	end_bench(&x);
}
