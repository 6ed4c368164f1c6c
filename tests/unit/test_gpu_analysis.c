/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GPU time by hand-made activities: unions, gaps, queues, launches, and what the host did meanwhile. The truth: numbers
 * that can be seen in the cases, or an array with one element a nanosecond (`painted`).
 */
#include <criterion/criterion.h>

#include "analysis/gpu/gpu.h"
#include "analysis/rules/rules.h"
#include "analysis/gpu/summary_gpu.h"
#include "capture_builder.h"
#include "catalog/gpu/peaks.h"
#include "export/export.h"
#include "report/list.h"

enum { OP, STEP, LAUNCH, BATCH, DRIVER, PROBES };

#define TID 100

struct bench {
	struct builder b;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *t;
	struct xsp_gpu_analysis *g;
	struct xsp_timeline_sink sink;
};

static void start_capture(struct builder *b)
{
	static const struct {
		const char *provider, *symbol;
	} probes[PROBES] = {
		[OP] = {"torch", "aten::item"},		 [STEP] = {"torch", "step"},
		[LAUNCH] = {"cuda", "cudaLaunchKernel"}, [BATCH] = {"gpu", "xsp_gpu_batch"},
		[DRIVER] = {"cuda", "cuLaunchKernel"},
	};

	builder_begin(b, 0);
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

static void open_bench(struct bench *x)
{
	struct xsp_error err = {0};
	void *state;

	x->b.now = 30000;
	builder_end(&x->b);
	cr_assert_eq(xsp_capture_open(x->b.path, &x->reader, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_timeline_new(x->reader, &x->t, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_analysis_gpu.begin(x->t, x->reader, &state), 0);
	cr_assert_not_null(state);
	x->g = state;
	x->sink = xsp_analysis_gpu.sink(state);
}

/* Between 3,000 and 8,000 not everything was recorded. */
static void open_with_windows(struct bench *x)
{
	start_capture(&x->b);
	cr_assert_eq(xsp_capture_put_window(x->b.w, &(struct xsp_capture_window){1000, 3000}), 0);
	cr_assert_eq(xsp_capture_put_window(x->b.w, &(struct xsp_capture_window){8000, 20000}), 0);
	open_bench(x);
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

/* Everything has been reported. */
static void settle(struct bench *x)
{
	cr_assert_eq(xsp_gpu_sweep_end(x->g->sweep), 0);
	x->g->ended = true;
}

/* ---- activities ---- */

static const char compute[] = "gemm(float*)", reduce[] = "ncclDevKernel_AllReduce_Sum_f32";

struct activity {
	uint32_t device, stream;
	const char *name; /* NULL: a copy */
	uint64_t start, end;
	uint64_t call, call_end; /* 0: not known */
	uint32_t graph;
	bool cut, call_cut;
};

static void tell_of(struct bench *x, uint32_t pid, const struct activity *what)
{
	const struct xsp_gpu_kernel kernel = {.graph = what->graph};
	const struct xsp_gpu_memcpy copy = {.bytes = 1000, .copy_kind = 1, .flags = 1};
	const struct xsp_gpu_activity a = {
		.kind = what->name != NULL ? XSP_GPU_IS_KERNEL : XSP_GPU_IS_MEMCPY,
		.pid = pid,
		.device = what->device,
		.context = 1,
		.stream = what->stream,
		.start_ns = what->start,
		.end_ns = what->end,
		.name = what->name != NULL ? what->name : "",
		.arrow = what->call != 0,
		.call_ns = what->call,
		.call_end_ns = what->call_end,
		.call_tid = TID,
		.record = what->name != NULL ? (const void *)&kernel : &copy,
		.cut = what->cut,
		.call_cut = what->call_cut,
	};

	cr_assert_eq(x->sink.gpu(x->sink.ctx, &a), 0);
}

static void tell(struct bench *x, const struct activity *what)
{
	tell_of(x, 100, what);
}

static const struct xsp_gpu_device_use *device(struct bench *x, uint32_t id)
{
	const struct xsp_gpu_device_use *d;
	const size_t n = xsp_gpu_sweep_devices(x->g->sweep, &d);

	for (size_t i = 0; i < n; i++)
		if (d[i].device == id)
			return &d[i];
	cr_assert_fail("no device %u", id);
	return NULL;
}

static const struct xsp_gpu_stream_use *stream(struct bench *x, uint32_t id)
{
	const struct xsp_gpu_stream_use *s;
	const size_t n = xsp_gpu_sweep_streams(x->g->sweep, &s);

	for (size_t i = 0; i < n; i++)
		if (s[i].stream == id)
			return &s[i];
	cr_assert_fail("no stream %u", id);
	return NULL;
}

/* ---- unions ---- */

#define IN(class) (1U << XSP_GPU_FOR_##class)

/* Pitfalls 1 and 2: neither the sum of all kernels nor the longest stream is the device's time. */
Test(gpu_analysis, overlapping_streams)
{
	static const struct activity all[] = {
		{0, 1, compute, 1100, 1200, 1050, 1060, 0, false, false},
		{0, 2, reduce, 1150, 1250, 1070, 1080, 0, false, false},
		{0, 3, NULL, 1240, 1300, 1090, 1095, 0, false, false},
		{0, 1, compute, 1400, 1450, 1350, 1360, 0, false, false},
	};
	struct bench x;

	begin_bench(&x);
	for (size_t i = 0; i < 4; i++)
		tell(&x, &all[i]);
	settle(&x);
	const struct xsp_gpu_device_use *d = device(&x, 0);
	cr_expect_eq(d->in_ns[IN(COMPUTE)], 50 + 50);
	cr_expect_eq(d->in_ns[IN(COMPUTE) | IN(COMMUNICATION)], 50);
	cr_expect_eq(d->in_ns[IN(COMMUNICATION)], 40);
	cr_expect_eq(d->in_ns[IN(COMMUNICATION) | IN(MEMORY)], 10);
	cr_expect_eq(d->in_ns[IN(MEMORY)], 50);
	cr_expect_eq(d->in_ns[0], 100, "idle: 1300 to 1400");
	cr_expect_eq(xsp_gpu_device_busy_ns(d), 250);
	cr_expect_eq(xsp_gpu_device_ns(d, IN(COMPUTE), 0), 150, "compute counts first");
	cr_expect_eq(xsp_gpu_device_ns(d, IN(COMMUNICATION), IN(COMPUTE)), 50);
	cr_expect_eq(xsp_gpu_device_ns(d, IN(MEMORY), IN(COMPUTE) | IN(COMMUNICATION)), 50);
	cr_expect_eq(d->host_ns, 50, "of the idle time, until the launch began at 1350");
	cr_expect_eq(d->several_ns, 50 + 10);
	cr_expect_eq(d->streams, 3);
	cr_expect_eq(stream(&x, 1)->busy_ns, 150, "the longest stream is not the device's time");
	cr_expect_eq(d->gap_ns, 100);
	cr_expect_eq(d->gap_from_ns, 1300);
	end_bench(&x);
}

/* The summary knows no device time, only the sum, and calls it nothing else: 10 us each, 5 at
 * once. */
Test(gpu_analysis, the_summary_sums_kernels)
{
	struct xsp_summary_gpu *g;
	struct xsp_report *report;
	struct bench x;
	char *text;
	size_t size;

	begin_bench(&x);
	cr_assert_eq(xsp_summary_gpu_new(x.t, &g), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const struct xsp_gpu_activity a = {.kind = XSP_GPU_IS_KERNEL,
						   .stream = i,
						   .start_ns = 10000 + i * 5000,
						   .end_ns = 20000 + i * 5000,
						   .name = compute};
		cr_assert_eq(xsp_summary_gpu_activity(g, &a), 0);
	}
	FILE *f = open_memstream(&text, &size);
	cr_assert_not_null(f);
	cr_assert_eq(
		xsp_report_new_summary(XSP_FORM_JSON, &(struct xsp_report_how){.top = 0}, &report),
		0);
	xsp_summary_gpu_report(g, x.reader, report);
	cr_assert_eq(xsp_report_write_summary(report, f), 0);
	xsp_report_free(report);
	cr_assert_eq(fclose(f), 0);
	cr_expect_not_null(strstr(text, "\"kernels_ns\": 20000"), "%s", text);
	cr_expect_null(strstr(text, "busy"), "%s", text);
	free(text);
	xsp_summary_gpu_free(g);
	end_bench(&x);
}

/* One nanosecond an element: bit 1 << stream, and 1 << (8 + class). */
#define PAINTED 20000
static void paint(uint32_t *painted, const struct activity *a)
{
	const unsigned class = a->name == NULL	   ? XSP_GPU_FOR_MEMORY
			       : a->name == reduce ? XSP_GPU_FOR_COMMUNICATION
						   : XSP_GPU_FOR_COMPUTE;

	for (uint64_t ns = a->start; ns < a->end; ns++)
		painted[ns] |= 1U << a->stream | 1U << (8 + class);
}

static void check_painted(const struct xsp_gpu_device_use *d, const uint32_t *painted)
{
	uint64_t in[1 << XSP_GPU_CLASSES] = {0}, several = 0;

	for (uint64_t ns = d->first_ns; ns < d->last_ns; ns++) {
		in[painted[ns] >> 8]++;
		several += __builtin_popcount(painted[ns] & 0xff) > 1;
	}
	for (size_t i = 0; i < 1 << XSP_GPU_CLASSES; i++)
		cr_expect_eq(d->in_ns[i], in[i], "classes %zu: %lu, painted %lu", i, d->in_ns[i],
			     in[i]);
	cr_expect_eq(d->several_ns, several);
}

static void swap(struct activity *a, struct activity *b)
{
	const struct activity c = *a;
	*a = *b;
	*b = c;
}

/* Late, in no order, some of no length. */
Test(gpu_analysis, any_order)
{
	enum { N = 400 };
	static uint32_t painted[2][PAINTED];
	struct activity all[N];
	unsigned seed = 7;
	struct bench x;
	uint64_t at[2][4];

	for (size_t i = 0; i < 8; i++)
		at[i / 4][i % 4] = 2000;
	for (size_t i = 0; i < N; i++) {
		const uint32_t d = (uint32_t)rand_r(&seed) % 2, s = (uint32_t)rand_r(&seed) % 4;
		const uint64_t from = at[d][s] + (uint64_t)(rand_r(&seed) % 300),
			       to = from + (uint64_t)(rand_r(&seed) % 150);
		const char *names[] = {compute, compute, reduce, NULL};
		all[i] = (struct activity){d,	      s,	 names[s], from,  to,
					   from - 20, from - 10, 0,	   false, false};
		at[d][s] = to;
		cr_assert_lt(to, PAINTED);
		paint(painted[d], &all[i]);
	}
	for (size_t i = N - 1; i > 0; i--)
		swap(&all[i], &all[(size_t)rand_r(&seed) % (i + 1)]);
	begin_bench(&x);
	for (size_t i = 0; i < N; i++)
		tell(&x, &all[i]);
	settle(&x);
	check_painted(device(&x, 0), painted[0]);
	check_painted(device(&x, 1), painted[1]);
	cr_expect_eq(xsp_gpu_sweep_counts(x.g->sweep)->late, 0);
	end_bench(&x);
}

/* Ten times as many as are held: memory does not grow, the figures are right, and one that comes
 * too late is reported. */
Test(gpu_analysis, more_than_is_held)
{
	const uint64_t n = 10 * XSP_GPU_HELD_MOST / 3;
	struct bench x;

	begin_bench(&x);
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t k = i ^ 0x3ff; /* each thousand from its end on */
		const uint64_t from = 2000 + k * 100;
		const struct activity a = {0,	      1,	 compute, from,	 from + 60,
					   from - 90, from - 80, 0,	  false, false};
		tell(&x, &a);
	}
	const struct activity late = {0, 2, compute, 2030, 2070, 2000, 2010, 0, false, false};
	tell(&x, &late);
	settle(&x);
	const struct xsp_gpu_device_use *d = device(&x, 0);
	const struct xsp_gpu_sweep_counts *c = xsp_gpu_sweep_counts(x.g->sweep);
	cr_expect_eq(d->activities, n);
	cr_expect_eq(xsp_gpu_device_busy_ns(d), n * 60);
	cr_expect_eq(c->late, 1);
	cr_expect_eq(c->late_ns, 40);
	end_bench(&x);
}

/* ---- gaps, queues, launches ---- */

Test(gpu_analysis, why_a_stream_is_idle)
{
	static const struct activity all[] = {
		{0, 1, compute, 10000, 10100, 9000, 9050, 0, false, false},
		/* its launch began at 10150: the host was late */
		{0, 1, compute, 10300, 10400, 10150, 10200, 0, false, false},
		/* launched long before, 20 ns later */
		{0, 1, compute, 10420, 10500, 10210, 10220, 0, false, false},
		/* launched long before, 40 us later: for another reason */
		{0, 1, compute, 50500, 50600, 10230, 10240, 0, false, false},
		{0, 1, compute, 50700, 50800, 0, 0, 0, false, false},
	};
	struct bench x;

	begin_bench(&x);
	for (size_t i = 5; i > 0; i--)
		tell(&x, &all[i - 1]);
	settle(&x);
	const struct xsp_gpu_stream_use *s = stream(&x, 1);
	cr_expect_eq(s->idle_ns[XSP_GPU_IDLE_HOST], 200);
	cr_expect_eq(s->idle_ns[XSP_GPU_IDLE_KERNEL], 20);
	cr_expect_eq(s->idle_ns[XSP_GPU_IDLE_OTHER], 40000);
	cr_expect_eq(s->idle_ns[XSP_GPU_IDLE_UNKNOWN], 100);
	cr_expect_eq(s->gaps[XSP_GPU_IDLE_HOST], 1);
	cr_expect_eq(x.g->unlaunched, 1);
	cr_expect_eq(device(&x, 0)->host_ns, 50, "10100 to 10150");
	end_bench(&x);
}

/* Pitfall 7: unrecorded time is neither busy nor idle. */
Test(gpu_analysis, time_that_was_not_recorded)
{
	static const struct activity all[] = {
		{0, 1, compute, 2000, 2100, 1900, 1910, 0, false, false},
		{0, 1, compute, 2200, 2300, 2150, 2160, 0, false, false},
		{0, 1, compute, 9000, 9100, 8900, 8910, 0, false, false},
	};
	struct bench x;

	open_with_windows(&x);
	for (size_t i = 0; i < 3; i++)
		tell(&x, &all[i]);
	settle(&x);
	const struct xsp_gpu_device_use *d = device(&x, 0);
	cr_expect_eq(d->in_ns[0], 100);
	cr_expect_eq(d->unrecorded_ns, 6700);
	cr_expect_eq(d->host_ns, 50);
	cr_expect_eq(stream(&x, 1)->idle_ns[XSP_GPU_IDLE_HOST], 100);
	cr_expect_eq(stream(&x, 1)->unrecorded_ns, 6700);
	end_bench(&x);
}

Test(gpu_analysis, queue_of_a_stream)
{
	struct bench x;

	begin_bench(&x);
	/* 2,000 launches, one each ns from 2000 on; each runs for 10 ns, from 5000 on */
	for (uint64_t i = 0; i < 2000; i++) {
		const uint64_t from = 5000 + i * 10;
		const struct activity a = {0,	     1,	       compute, from,  from + 10,
					   2000 + i, 2001 + i, 0,	false, false};
		tell(&x, &a);
	}
	settle(&x);
	const struct xsp_gpu_stream_use *s = stream(&x, 1);
	cr_expect_eq(s->queued_most, 2000);
	/* the 1,024th launch at 3023; 1,023 are left when the 977th begins, at 5000 + 976 * 10 */
	cr_expect_eq(s->full_ns, 14760 - 3023);
	cr_expect_eq(s->idle_ns[XSP_GPU_IDLE_HOST] + s->idle_ns[XSP_GPU_IDLE_OTHER], 0);
	end_bench(&x);
}

Test(gpu_analysis, launches)
{
	static const struct activity all[] = {
		{0, 1, compute, 300000, 301000, 100000, 102000, 0, false,
		 false}, /* delay 198 us; the kernel is shorter */
		{0, 1, compute, 400000, 500000, 310000, 370001, 0, false,
		 false}, /* call 60.001 us, delay 30 us */
		{0, 1, NULL, 500000, 502000, 499000, 501000, 0, false,
		 false}, /* begins in its call: delay 0 */
		{0, 1, compute, 510000, 511000, 505000, 506000, 3, false,
		 false}, /* of a graph: not counted */
		/* nobody knows how long a kernel took that is cut off */
		{0, 1, compute, 520000, 521000, 515000, 519000, 0, .cut = true},
		{0, 1, compute, 530000, 531000, 525000, 529000, 0, .call_cut = true},
	};
	const struct xsp_gpu_name_use *names;
	struct bench x;

	begin_bench(&x);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		tell(&x, &all[i]);
	settle(&x);
	const struct xsp_gpu_launch_use *k =
		xsp_gpu_by_name_launches(x.g->names, 0, XSP_GPU_IS_KERNEL);
	const struct xsp_gpu_launch_use *c =
		xsp_gpu_by_name_launches(x.g->names, 0, XSP_GPU_IS_MEMCPY);
	cr_assert_not_null(k);
	cr_assert_not_null(c);
	cr_expect_eq(k->count, 2);
	cr_expect_eq(k->delay_ns, 198000 + 29999);
	cr_expect_eq(k->long_delays, 1);
	cr_expect_eq(k->long_calls, 1);
	cr_expect_eq(k->shorter, 1);
	cr_assert_geq(xsp_gpu_by_name_uses(x.g->names, &names), 1);
	cr_expect_str_eq(names[0].name, compute);
	cr_expect_eq(names[0].launched, 2);
	cr_expect_eq(names[0].shorter, 1);
	cr_expect_eq(c->delay_ns, 0);
	cr_expect_null(xsp_gpu_by_name_launches(x.g->names, 0, XSP_GPU_IS_MEMSET));
	end_bench(&x);
}

/* ---- whose fault it is ---- */

static void tell_wait(struct bench *x, uint32_t what, uint32_t on, uint64_t from, uint64_t to)
{
	const struct xsp_gpu_sync s = {.what = what};
	const struct xsp_gpu_activity a = {.kind = XSP_GPU_IS_SYNC,
					   .pid = 100,
					   .context = 1,
					   .stream = on,
					   .start_ns = from,
					   .end_ns = to,
					   .name = "",
					   .record = &s};

	cr_assert_eq(x->sink.gpu(x->sink.ctx, &a), 0);
}

/* Pitfall 4: the cause of a wait is the work waited for. */
Test(gpu_analysis, waits_name_the_work)
{
	static const struct activity all[] = {
		{0, 1, compute, 2000, 2900, 1900, 1910, 0, false, false},
		{0, 2, reduce, 2000, 3000, 1900, 1910, 0, false, false},
	};
	const struct xsp_gpu_wait_use *w;
	struct bench x;

	begin_bench(&x);
	tell_wait(&x, 3, 1, 2500, 2910); /* the stream's */
	tell_wait(&x, 4, XSP_GPU_NO_ID, 2500, 3010); /* the context's */
	tell_wait(&x, 3, 1, 2950, 2960); /* for nothing: the stream was done */
	for (size_t i = 0; i < 2; i++)
		tell(&x, &all[i]);
	settle(&x);
	cr_assert_eq(xsp_gpu_sweep_waits(x.g->sweep, &w), 3);
	const struct xsp_gpu_name_use *names;
	xsp_gpu_by_name_uses(x.g->names, &names);
	for (size_t i = 0; i < 3; i++) {
		if (w[i].what == 4) {
			cr_expect_str_eq(names[w[i].name].name, reduce);
			cr_expect_eq(w[i].total_ns, 510);
		} else if (w[i].name == XSP_GPU_NOWHERE) {
			cr_expect_eq(w[i].total_ns, 10);
		} else {
			cr_expect_str_eq(names[w[i].name].name, compute);
			cr_expect_eq(w[i].total_ns, 410);
		}
	}
	end_bench(&x);
}

/* Its record comes after later times have been processed: that does not make it longer. */
Test(gpu_analysis, a_wait_that_is_told_late)
{
	const struct xsp_gpu_wait_use *w;
	struct bench x;

	begin_bench(&x);
	/* two moments each, as their launches are not known */
	for (uint64_t i = 0; i < XSP_GPU_HELD_MOST / 2 + 1; i++) {
		const struct activity a = {.stream = 1,
					   .name = compute,
					   .start = 2000 + i * 100,
					   .end = 2060 + i * 100};
		tell(&x, &a);
	}
	tell_wait(&x, 3, 1, 2050, 2070); /* for the first one */
	settle(&x);
	cr_assert_eq(xsp_gpu_sweep_waits(x.g->sweep, &w), 1);
	cr_expect_eq(w[0].count, 1);
	cr_expect_eq(w[0].total_ns, 20, "%lu", w[0].total_ns);
	cr_expect_eq(w[0].most_ns, 20);
	cr_expect_eq(w[0].name, XSP_GPU_NOWHERE, "what it waited for is not known any more");
	cr_expect_eq(xsp_gpu_sweep_counts(x.g->sweep)->late_waits, 1);
	end_bench(&x);
}

/* Pitfall 5: communication begins when the last device has arrived. */
Test(gpu_analysis, late_devices)
{
	static const struct activity all[] = {
		{0, 1, reduce, 2000, 2500, 1900, 1910, 0, false, false},
		{1, 1, reduce, 2400, 2510, 2300, 2310, 0, false, false}, /* the late one */
		{2, 1, reduce, 2100, 2490, 2000, 2010, 0, false, false},
		{0, 1, reduce, 3000, 3050, 2900, 2910, 0, false, false}, /* with no other */
	};
	static const uint64_t waiting[] = {400, 0, 300}, transfer[] = {100, 110, 90};
	struct bench x;

	begin_bench(&x);
	for (size_t i = 4; i > 0; i--)
		tell(&x, &all[i - 1]);
	settle(&x);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(device(&x, i)->arrival_ns, waiting[i]);
		cr_expect_eq(device(&x, i)->transfer_ns, transfer[i]);
		cr_expect_eq(device(&x, i)->alone_ns, i == 0 ? 50 : 0);
	}
	end_bench(&x);
}

/* 64 operations are followed at a time: of the 65th and 66th, the first two are no longer
 * distinguished. */
Test(gpu_analysis, more_communication_at_a_time_than_is_followed)
{
	static char names[66][40];
	struct bench x;

	begin_bench(&x);
	for (unsigned i = 0; i < 66; i++) {
		snprintf(names[i], sizeof(names[i]), "ncclDevKernel_%u", i);
		const struct activity a = {
			.stream = i, .name = names[i], .start = 2000 + i, .end = 3000 + i};
		tell(&x, &a);
	}
	settle(&x);
	cr_expect_eq(xsp_gpu_sweep_counts(x.g->sweep)->pushed_out, 2);
	cr_expect_eq(device(&x, 0)->alone_ns, 64 * 1000);
	end_bench(&x);
}

static void tell_span(struct bench *x, uint32_t probe, uint32_t parent, uint64_t from, uint64_t to)
{
	const xsp_name_id above = parent;
	const struct xsp_span s = {.start_ns = from,
				   .end_ns = to,
				   .pid = 100,
				   .tid = TID,
				   .probe = probe,
				   .name = probe,
				   .depth = parent != probe,
				   .ancestors = &above};

	cr_assert_eq(x->sink.span(x->sink.ctx, &s), 0);
}

static uint64_t idle_in(struct bench *x, bool wait, uint32_t name)
{
	const struct xsp_gpu_host_use *u;
	const size_t n = xsp_gpu_host_uses(x->g->host, &u);

	for (size_t i = 0; i < n; i++)
		if (u[i].wait == wait && (wait ? u[i].why : u[i].name) == name)
			return u[i].idle_ns;
	return 0;
}

/* The device is idle from 3000 to 4000, and the launch that ends that begins at 3900. */
Test(gpu_analysis, what_the_thread_did)
{
	static const struct activity all[] = {
		{0, 1, compute, 2000, 3000, 1900, 1950, 0, false, false},
		{0, 1, compute, 4000, 5000, 3900, 3950, 0, false, false},
	};
	struct bench x;

	begin_bench(&x);
	tell_span(&x, LAUNCH, STEP, 1900, 1950);
	const struct xsp_wait off = {.pid = 100,
				     .tid = TID,
				     .left_ns = 2900,
				     .woken_ns = 3200,
				     .back_ns = 3200,
				     .why = XSP_WAIT_DISK};
	cr_assert_eq(x.sink.wait(x.sink.ctx, &off), 0);
	tell_span(&x, OP, STEP, 2800, 3400);
	tell_span(&x, LAUNCH, STEP, 3900, 3950);
	tell_span(&x, STEP, STEP, 1500, 3980);
	for (size_t i = 2; i > 0; i--)
		tell(&x, &all[i - 1]);
	settle(&x);
	cr_expect_eq(xsp_gpu_host_sums(x.g->host)->idle_ns, 900);
	cr_expect_eq(idle_in(&x, false, OP), 400);
	cr_expect_eq(idle_in(&x, false, STEP), 500, "without its children");
	cr_expect_eq(idle_in(&x, false, LAUNCH), 0);
	cr_expect_eq(idle_in(&x, true, XSP_WAIT_DISK), 200);
	cr_expect_eq(xsp_gpu_host_sums(x.g->host)->span_ns, 900, "all of it in spans");
	end_bench(&x);
}

/* A launch is late because of what its thread did before: so the device is idle from 3000 to
 * 3900. */
Test(gpu_analysis, what_the_thread_did_before_its_first_launch)
{
	static const struct activity all[] = {
		{0, 1, compute, 2000, 3000, 1900, 1950, 0, false, false},
		{0, 1, compute, 4000, 5000, 3900, 3950, 0, false, false},
	};
	struct bench x;

	begin_bench(&x);
	const struct xsp_wait off = {.pid = 100,
				     .tid = TID,
				     .left_ns = 3300,
				     .woken_ns = 3400,
				     .back_ns = 3400,
				     .why = XSP_WAIT_DISK};
	cr_assert_eq(x.sink.wait(x.sink.ctx, &off), 0);
	tell_span(&x, OP, OP, 3050, 3850);
	tell_span(&x, LAUNCH, LAUNCH, 3900, 3950);
	for (size_t i = 2; i > 0; i--)
		tell(&x, &all[i - 1]);
	settle(&x);
	cr_expect_eq(xsp_gpu_host_sums(x.g->host)->idle_ns, 900);
	cr_expect_eq(idle_in(&x, false, OP), 800);
	cr_expect_eq(idle_in(&x, true, XSP_WAIT_DISK), 100);
	cr_expect_eq(xsp_gpu_host_sums(x.g->host)->span_ns, 800);
	cr_expect_eq(xsp_gpu_host_sums(x.g->host)->early, 0);
	end_bench(&x);
}

/* More happens before a first launch than is kept: one span every 10 ns, and a last one of 1,000
 * ns. The oldest are dropped. That is reported if a device was idle then, and only there. */
Test(gpu_analysis, more_before_the_first_launch_than_is_kept)
{
	const uint64_t n = XSP_GPU_HOST_BEFORE_MOST, last = 5000 + n * 10;

	for (unsigned idle_then = 0; idle_then < 2; idle_then++) {
		struct xsp_gpu_host *h;
		struct bench x;
		begin_bench(&x);
		h = x.g->host;
		for (uint64_t i = 0; i < n; i++)
			tell_span(&x, STEP, STEP, 5000 + i * 10, 5010 + i * 10);
		tell_span(&x, OP, OP, last, last + 1000);
		tell_span(&x, LAUNCH, LAUNCH, last + 1000, last + 1010);
		cr_assert_eq(
			xsp_gpu_host_gap(h, TID, 0, idle_then ? 5000 : last - 100, last + 1000), 0);
		cr_assert_eq(xsp_gpu_host_pass(h, UINT64_MAX), 0);
		cr_expect_eq(idle_in(&x, false, OP), 1000);
		/* half of them is left */
		cr_expect_eq(idle_in(&x, false, STEP), idle_then ? n / 2 * 10 : 100);
		cr_expect_eq(xsp_gpu_host_sums(h)->early, idle_then ? n / 2 : 0, "%lu",
			     xsp_gpu_host_sums(h)->early);
		end_bench(&x);
	}
}

/* Long ago, in many pieces: a span that is open throughout still gets all of it. */
Test(gpu_analysis, idle_time_long_ago)
{
	const uint64_t n = 2 * XSP_GPU_HOST_POINTS_MOST;
	struct xsp_gpu_host *h;
	struct bench x;

	begin_bench(&x);
	h = x.g->host;
	tell_span(&x, LAUNCH, STEP, 1000, 1001);
	for (uint64_t i = 0; i < n; i++)
		cr_assert_eq(xsp_gpu_host_gap(h, TID, 0, 2000 + i * 100, 2030 + i * 100), 0);
	tell_span(&x, OP, STEP, 2000, 2000 + n * 50);
	tell_span(&x, STEP, STEP, 1000, 2000 + n * 100);
	cr_assert_eq(xsp_gpu_host_pass(h, UINT64_MAX), 0);
	cr_expect_eq(xsp_gpu_host_sums(h)->span_ns, n * 30);
	const uint64_t half = idle_in(&x, false, OP);
	cr_expect(half > n * 15 / 100 * 99 && half < n * 15 / 100 * 101, "%lu of %lu", half,
		  n * 30);
	end_bench(&x);
}

Test(gpu_analysis, windows_of_use)
{
	struct bench x;

	begin_bench(&x); /* recorded from 1000 to 30000 */
	const struct activity a = {0, 1, compute, 1500, 16000, 1400, 1410, 0, false, false};
	tell(&x, &a);
	settle(&x);
	const struct xsp_gpu_device_use *d = device(&x, 0);
	uint64_t sum = 0;
	for (size_t i = 0; i < XSP_GPU_USE_WINDOWS; i++)
		sum += d->window_ns[i];
	cr_expect_eq(sum, 14500);
	cr_expect_geq(d->window_ns[5], 966);
	cr_expect_eq(d->window_ns[20], 0);
	end_bench(&x);
}

static const struct xsp_report_table *table_of(struct xsp_report *r, const char *key)
{
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "gpu"), key);

	cr_assert_not_null(t, "%s", key);
	return t;
}

/* In a recording from 1000 to 30000 two windows are recorded, to 3000 and from 8000 to 20000. A
 * kernel runs from 2000 to 9000. */
Test(gpu_analysis, use_is_of_the_time_that_was_recorded)
{
	/* ends of thirtieths of 29,000, rounded up: 967, 1934, 2900, ..., 6767, 7734, 8700, ..., 18367, 19334 */
	static const struct {
		size_t window;
		double busy, recorded;
	} cases[] = {
		{0, 0, 967},
		{1, 2934 - 2000, 967},
		{2, 3000 - 2934, 3000 - 2934},
		{3, 0, 0},
		{7, 8734 - 8000, 8734 - 8000},
		{8, 9000 - 8734, 9700 - 8734},
		{19, 0, 20000 - 19367},
		{29, 0, 0},
	};
	const struct activity a = {
		.stream = 1, .name = compute, .start = 2000, .end = 9000, .call = 1900};
	struct xsp_report *r;
	struct bench x;

	open_with_windows(&x);
	tell(&x, &a);
	cr_assert_eq(xsp_report_new(&r), 0);
	cr_assert_eq(xsp_analysis_gpu.report(x.g, r), 0);
	const struct xsp_report_table *t = table_of(r, "use");
	cr_assert_eq(xsp_report_row_count(t), XSP_GPU_USE_WINDOWS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct xsp_cell *c = &xsp_report_row_at(t, cases[i].window)[3];
		if (cases[i].recorded == 0)
			cr_expect_eq(c->kind, XSP_CELL_ABSENT, "window %zu: %f", cases[i].window,
				     c->real);
		else
			cr_expect_float_eq(c->real, cases[i].busy / cases[i].recorded, 1e-9,
					   "window %zu: %f", cases[i].window, c->real);
	}
	xsp_report_free(r);
	end_bench(&x);
}

/* Recorded as above, with kernels in the pause as well: 300 of 2,100 ns are busy. */
Test(gpu_analysis, shares_are_of_the_time_that_was_recorded)
{
	static const uint64_t kernels[][2] = {
		{2000, 2100}, {2200, 2300}, {3500, 7500}, {9000, 9100}};
	struct xsp_report *r;
	struct bench x;

	open_with_windows(&x);
	for (size_t i = 0; i < 4; i++) {
		const struct activity a = {.stream = 1,
					   .name = compute,
					   .start = kernels[i][0],
					   .end = kernels[i][1],
					   .call = kernels[i][0] - 10,
					   .call_end = kernels[i][0] - 5};
		tell(&x, &a);
	}
	cr_assert_eq(xsp_report_new(&r), 0);
	cr_assert_eq(xsp_analysis_gpu.report(x.g, r), 0);
	cr_expect_float_eq(xsp_report_row_at(table_of(r, "devices"), 0)[5].real, 300.0 / 2100,
			   1e-9);
	cr_expect_float_eq(xsp_report_row_at(table_of(r, "streams"), 0)[6].real, 300.0 / 2100,
			   1e-9);
	xsp_report_free(r);
	end_bench(&x);
}

/* Shapes are the target's: two operators do 2^64 + 2 and 2^64, which no sum can hold. */
Test(gpu_analysis, sums_that_are_too_much)
{
	const struct activity a = {.stream = 1, .name = compute, .start = 2000, .end = 3000};
	struct xsp_report *r;
	struct bench x;

	begin_bench(&x);
	tell(&x, &a);
	for (uint64_t i = 1; i <= 2; i++) {
		cr_assert_eq(xsp_gpu_flops_op(x.g->flops, i, OP, (1ULL << 63) + 1, 1ULL << 63), 0);
		xsp_gpu_flops_work(x.g->flops, i, 500);
	}
	cr_assert_eq(xsp_report_new(&r), 0);
	cr_assert_eq(xsp_analysis_gpu.report(x.g, r), 0);
	const struct xsp_cell *cells = xsp_report_row_at(table_of(r, "operators"), 0);
	cr_expect_eq(cells[1].integer, 2);
	cr_expect_eq(cells[2].integer, 1000);
	for (size_t i = 3; i < 8; i++)
		cr_expect_eq(cells[i].kind, XSP_CELL_ABSENT, "column %zu: %lu", i,
			     cells[i].integer);
	xsp_report_free(r);
	end_bench(&x);
}

/* ---- calls in calls ---- */

#define SP 0x7ff000000000ULL

/* A runtime call and, with `inside`, a call in it. Their records have these ids (0: none), and the
 * inner one comes first, as CUPTI reports them. */
static void put_calls(struct builder *b, struct xsp_gpu_api records[2], uint32_t inside,
		      uint32_t outer_id, uint32_t inner_id)
{
	const uint64_t outer = b->now;

	entry(b, LAUNCH, SP);
	const uint64_t inner = b->now;
	entry(b, inside, SP - 0x100);
	b->now += 10;
	leave(b, inside, SP - 0x100);
	leave(b, LAUNCH, SP);
	records[0] = (struct xsp_gpu_api){
		.head = {inside == DRIVER ? XSP_GPU_DRIVER : XSP_GPU_RUNTIME, sizeof(records[0]),
			 inner_id},
		.start_ns = inner + 1,
		.end_ns = inner + 9,
		.tid = TID,
	};
	records[1] = (struct xsp_gpu_api){
		.head = {XSP_GPU_RUNTIME, sizeof(records[1]), outer_id},
		.start_ns = outer + 1,
		.end_ns = inner + 11,
		.tid = TID,
	};
}

static void put_records(struct builder *b, const struct xsp_gpu_api *records, uint32_t count)
{
	struct {
		struct xsp_event_gpu event;
		struct xsp_gpu_batch_head head;
		struct xsp_gpu_api records[16];
	} e = {.event = {.head = {.kind = XSP_EVENT_GPU, .probe = BATCH}},
	       .head = {.head = {XSP_GPU_BATCH_HEAD, sizeof(e.head), XSP_GPU_VERSION},
			.records = count,
			.window_ns = 5}};
	const size_t size = count * sizeof(*records);

	cr_assert_leq(count, 16);
	memcpy(e.records, records, size);
	e.event.bytes = (uint32_t)(sizeof(e.head) + size);
	builder_put(b, &e, sizeof(e.event) + sizeof(e.head) + size);
}

/* How often the call is in the trace with this id. */
static size_t calls_with_id(const char *trace, const char *name, const char *id)
{
	char key[64];
	size_t n = 0;

	snprintf(key, sizeof(key), "\"name\":\"%s\"", name);
	for (const char *p = strstr(trace, key); p != NULL; p = strstr(p + 1, key)) {
		const char *end = strchr(p, '\n'), *at = strstr(p, id);
		n += at != NULL && at < end;
	}
	return n;
}

static char *exported(struct bench *x)
{
	static char text[1 << 20];
	char path[300];
	struct xsp_export *export;
	struct xsp_error err = {0};

	snprintf(path, sizeof(path), "%s.json", x->b.path);
	const struct xsp_export_options options = {
		.path = path, .owner_uid = (uid_t)-1, .owner_gid = (gid_t)-1};
	cr_assert_eq(xsp_export_open(&options, x->reader, x->t, &export, &err), 0, "%s", err.text);
	const struct xsp_timeline_sink sink = xsp_export_sink(export);
	cr_assert_eq(xsp_timeline_run(x->t, &sink, 1, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_export_finish(export, &err), 0, "%s", err.text);
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	unlink(path);
	return text;
}

/* A driver call with the id of the runtime call around it is shown without it. A call with an id of
 * its own keeps it. It does not matter which record comes first. */
Test(gpu_analysis, ids_of_calls_in_calls)
{
	for (unsigned outer_first = 0; outer_first < 2; outer_first++) {
		struct xsp_gpu_api r[6], swapped[6];
		struct bench x;
		start_capture(&x.b);
		put_calls(&x.b, r, DRIVER, 71, 71);
		put_calls(&x.b, r + 2, DRIVER, 82, 81);
		put_calls(&x.b, r + 4, LAUNCH, 92, 91);
		for (size_t i = 0; i < 6; i++)
			swapped[i] = r[i ^ 1];
		put_records(&x.b, outer_first ? swapped : r, 6);
		open_bench(&x);
		const char *trace = exported(&x);
		cr_expect_eq(calls_with_id(trace, "cudaLaunchKernel", "\"correlation\":71"), 1);
		cr_expect_eq(calls_with_id(trace, "cuLaunchKernel", "\"correlation\":71"), 0);
		cr_expect_eq(calls_with_id(trace, "cudaLaunchKernel", "\"correlation\":82"), 1);
		cr_expect_eq(calls_with_id(trace, "cuLaunchKernel", "\"correlation\":81"), 1);
		cr_expect_eq(calls_with_id(trace, "cudaLaunchKernel", "\"correlation\":91"), 1);
		cr_expect_eq(calls_with_id(trace, "cudaLaunchKernel", "\"correlation\":92"), 1);
		end_bench(&x);
	}
}

/* ---- rules: each on a capture with a fault of a known size, and on one without ---- */

struct judged {
	struct xsp_report *report;
	const struct xsp_report_found *found;
	size_t count;
	int rc;
};

static void judge(struct bench *x, const char *rule, struct judged *j)
{
	const struct xsp_analysis *const analyses[] = {&xsp_analysis_gpu, NULL};
	void *const states[] = {x->g};
	const long index = xsp_rule_index(rule, strlen(rule));

	cr_assert_geq(index, 0);
	cr_assert_eq(xsp_report_new(&j->report), 0);
	cr_assert_eq(xsp_analysis_gpu.report(x->g, j->report), 0);
	const struct xsp_rule_context c = {
		.rule = &xsp_rules[index],
		.threshold = xsp_rules[index].threshold,
		.timeline = x->t,
		.reader = x->reader,
		.report = j->report,
		.recorded_ns = xsp_timeline_recorded_ns(x->t),
		.analyses = analyses,
		.states = states,
	};
	j->rc = c.rule->find(&c);
	cr_expect(!xsp_report_failed(j->report));
	j->count = xsp_report_findings(j->report, &j->found);
}

/* `n` kernels, one every `every` ns, with these durations, ending with the launch's call of that
 * length */
static void tell_kernels(struct bench *x, uint64_t n, uint32_t on, uint64_t from, uint64_t every,
			 uint64_t ns, uint64_t call_ns)
{
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t at = from + i * every;
		const struct activity a = {
			.stream = on,
			.name = compute,
			.start = at,
			.end = at + ns,
			.call = at - call_ns,
			.call_end = at,
		};
		tell(x, &a);
	}
}

static void expect_found(struct bench *x, const char *rule, double share,
			 enum xsp_severity severity)
{
	struct judged j;

	judge(x, rule, &j);
	cr_expect_eq(j.rc, 0);
	cr_assert_eq(j.count, 1, "%s: %zu findings", rule, j.count);
	cr_expect_str_eq(j.found[0].finding.rule, rule);
	cr_expect(j.found[0].finding.share > share - 0.001 &&
			  j.found[0].finding.share < share + 0.001,
		  "%s: %f", rule, j.found[0].finding.share);
	cr_expect_eq(j.found[0].finding.severity, severity);
	cr_expect_null(j.found[0].finding.uncertain);
	xsp_report_free(j.report);
}

static void expect_nothing(struct bench *x, const char *rule, int rc)
{
	struct judged j;

	judge(x, rule, &j);
	cr_expect_eq(j.rc, rc, "%s", rule);
	cr_expect_eq(j.count, 0, "%s: %s", rule, j.count > 0 ? j.found[0].finding.title : "");
	xsp_report_free(j.report);
}

/* Short kernels, launched one by one: idle 700 of 1,000 ns, 400 of them before the next call. */
Test(gpu_analysis, idle_and_launches)
{
	struct bench x;

	begin_bench(&x);
	tell_kernels(&x, 1000, 1, 10000, 1000, 300, 400);
	expect_found(&x, "gpu-idle", 0.7, XSP_SEVERITY_HIGH);
	expect_found(&x, "launch-bound", 0.3, XSP_SEVERITY_MEDIUM);
	expect_found(&x, "short-kernels", 1, XSP_SEVERITY_HIGH);
	expect_nothing(&x, "serial-streams", 0);
	expect_nothing(&x, "memory-bound", XSP_RULE_NO_DATA);
	end_bench(&x);
}

/* Devices of two processes have the same number: the report says which is whose, and that what
 * threads did belongs to both. */
Test(gpu_analysis, devices_of_one_number)
{
	struct bench x;
	struct judged j;

	begin_bench(&x);
	for (uint32_t pid = 100; pid <= 200; pid += 100)
		for (uint64_t i = 0; i < 200; i++) {
			const struct activity a = {.stream = 1,
						   .name = compute,
						   .start = 10000 + i * 1000,
						   .end = 10000 + i * 1000 + 300,
						   .call = 10000 + i * 1000 - 400,
						   .call_end = 10000 + i * 1000};
			tell_of(&x, pid, &a);
		}
	judge(&x, "gpu-idle", &j);
	cr_assert_eq(j.count, 2);
	cr_expect_str_eq(j.found[0].finding.subject, "GPU 0 of process 100");
	cr_expect_str_eq(j.found[1].finding.subject, "GPU 0 of process 200");
	cr_expect_null(j.found[0].finding.uncertain);
	xsp_report_free(j.report);
	/* the timeline's own, before any record */
	((struct xsp_gpu_counts *)xsp_timeline_gpu(x.g->timeline))->bad[XSP_GPU_NO_TIME] = 3;
	judge(&x, "gpu-idle", &j);
	cr_assert_eq(j.count, 2);
	cr_expect_not_null(strstr(j.found[0].finding.uncertain, "times of 3 GPU records"));
	xsp_report_free(j.report);
	end_bench(&x);
}

/* Of a copy that goes beyond the range, only a part of the time is reported, but all bytes. */
Test(gpu_analysis, bandwidth_of_a_part)
{
	const struct activity whole = {.stream = 1, .start = 2000, .end = 3000};
	const struct activity cut = {.stream = 1, .start = 1000, .end = 1001, .cut = true};
	const struct xsp_gpu_name_use *u;
	struct bench x;

	begin_bench(&x);
	tell(&x, &cut);
	tell(&x, &whole);
	settle(&x);
	cr_assert_eq(xsp_gpu_by_name_uses(x.g->names, &u), 1);
	cr_expect_eq(u->bytes, 2000);
	cr_expect_eq(u->whole_bytes, 1000);
	cr_expect_eq(u->whole_ns, 1000);
	end_bench(&x);
}

/* Kernels longer than their calls: 95 % busy. And 60 % idle, but not because of launches. */
Test(gpu_analysis, long_kernels)
{
	struct bench x;

	begin_bench(&x);
	tell_kernels(&x, 1000, 1, 10000, 1000, 950, 40);
	expect_nothing(&x, "gpu-idle", 0);
	expect_nothing(&x, "launch-bound", 0);
	expect_nothing(&x, "short-kernels", 0);
	end_bench(&x);
	begin_bench(&x);
	tell_kernels(&x, 1000, 1, 10000, 1000, 400, 100);
	expect_found(&x, "gpu-idle", 0.6, XSP_SEVERITY_HIGH);
	expect_nothing(&x, "launch-bound", 0);
	end_bench(&x);
}

Test(gpu_analysis, too_few_to_say)
{
	struct bench x;

	begin_bench(&x);
	tell_kernels(&x, 50, 1, 10000, 1000, 300, 400);
	expect_nothing(&x, "gpu-idle", 0);
	expect_nothing(&x, "launch-bound", 0);
	expect_nothing(&x, "short-kernels", 0);
	end_bench(&x);
}

Test(gpu_analysis, streams)
{
	struct bench x;

	begin_bench(&x); /* by turns */
	tell_kernels(&x, 500, 1, 10000, 1000, 500, 100);
	tell_kernels(&x, 500, 2, 10500, 1000, 500, 100);
	expect_found(&x, "serial-streams", 0.5, XSP_SEVERITY_HIGH);
	end_bench(&x);
	begin_bench(&x); /* at the same time for 100 of 500 ns */
	tell_kernels(&x, 500, 1, 10000, 1000, 500, 100);
	tell_kernels(&x, 500, 2, 10400, 1000, 500, 100);
	expect_nothing(&x, "serial-streams", 0);
	end_bench(&x);
}

/* A device of 12.8 TFLOP/s and 256 GB/s: 50 FLOPs a byte. */
static void put_device(struct builder *b)
{
	struct {
		struct xsp_event_gpu event;
		struct xsp_gpu_batch_head head;
		struct xsp_gpu_device device;
	} e = {
		.event = {.head = {.kind = XSP_EVENT_GPU, .probe = BATCH},
			  .bytes = sizeof(e.head) + sizeof(e.device)},
		.head = {.head = {XSP_GPU_BATCH_HEAD, sizeof(e.head), XSP_GPU_VERSION},
			 .records = 1,
			 .window_ns = 5},
		.device = {.head = {XSP_GPU_DEVICE, sizeof(e.device), 0},
			   .compute_major = 8,
			   .multiprocessors = 100,
			   .clock_khz = 1000000,
			   .memory_clock_khz = 1000000,
			   .memory_bus_bits = 1024},
	};

	builder_put(b, &e, sizeof(e));
}

static void tell_operators(struct bench *x, uint64_t flops, uint64_t bytes)
{
	for (uint64_t i = 1; i <= 200; i++) {
		cr_assert_eq(xsp_gpu_flops_op(x->g->flops, i, OP, flops, bytes), 0);
		xsp_gpu_flops_work(x->g->flops, i, 1000);
	}
}

Test(gpu_analysis, memory_bound)
{
	static const struct {
		uint64_t flops, bytes;
		size_t found;
	} cases[] = {
		{128000, 128000, 1}, /* 1 FLOP a byte, half of what memory can */
		{128000 * 60, 128000, 0}, /* 60 FLOPs a byte */
		{12800, 12800, 0}, /* 1, but a twentieth of what memory can */
	};

	for (size_t i = 0; i < 3; i++) {
		struct xsp_error err = {0};
		struct bench x;
		start_capture(&x.b);
		put_device(&x.b);
		open_bench(&x);
		cr_assert_eq(xsp_timeline_run(x.t, &x.sink, 1, &err), 0, "%s", err.text);
		tell_kernels(&x, 200, 1, 10000, 2000, 1000, 100);
		tell_operators(&x, cases[i].flops, cases[i].bytes);
		if (cases[i].found > 0)
			expect_found(&x, "memory-bound", 1, XSP_SEVERITY_HIGH);
		else
			expect_nothing(&x, "memory-bound", 0);
		end_bench(&x);
	}
}

/* As many operators as may wait for their kernels, and one more: the oldest keeps what it had by
 * then. */
Test(gpu_analysis, operators_that_wait)
{
	const struct xsp_gpu_flops_use *uses;
	struct bench x;

	begin_bench(&x);
	for (uint64_t i = 1; i <= XSP_GPU_FLOPS_WAITING + 1; i++)
		cr_assert_eq(xsp_gpu_flops_op(x.g->flops, i, OP, 10, 5), 0);
	xsp_gpu_flops_work(x.g->flops, 1, 100); /* gone */
	xsp_gpu_flops_work(x.g->flops, 2, 100);
	xsp_gpu_flops_work(x.g->flops, 2, 11);
	cr_assert_eq(xsp_gpu_flops_end(x.g->flops), 0);
	cr_assert_eq(xsp_gpu_flops_uses(x.g->flops, &uses), 1);
	cr_expect_eq(uses[0].calls, 1);
	cr_expect_eq(uses[0].gpu_ns, 111);
	cr_expect_eq(uses[0].flops, 10);
	end_bench(&x);
}

/* NVIDIA's data sheet of the H100 SXM: 67 TFLOP/s, 3.35 TB/s. */
Test(gpu_analysis, peaks)
{
	const struct xsp_gpu_device h100 = {.compute_major = 9,
					    .multiprocessors = 132,
					    .clock_khz = 1980000,
					    .memory_clock_khz = 2619000,
					    .memory_bus_bits = 5120};
	const struct xsp_gpu_device unknown = {.compute_major = 99, .multiprocessors = 1};
	double flops, bytes;

	cr_assert(xsp_gpu_peaks(&h100, &flops, &bytes));
	cr_expect(flops > 66.5e12 && flops < 67.5e12, "%g", flops);
	cr_expect(bytes > 3.3e12 && bytes < 3.4e12, "%g", bytes);
	cr_expect_not(xsp_gpu_peaks(&unknown, &flops, &bytes));
}
