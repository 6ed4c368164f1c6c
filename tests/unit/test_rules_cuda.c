/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of CUDA, with what the GPU did beside them: waits for it, allocations, errors, copies. */

#include "analyze_check.h"

struct batch {
	union {
		struct xsp_event_gpu event;
		uint64_t words[1024];
	} u;
	size_t used;
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
	const struct xsp_gpu_batch_head h = {
		.head = {XSP_GPU_BATCH_HEAD, sizeof(h), XSP_GPU_VERSION}, .window_ns = 5};

	*b = (struct batch){.first = first};
	put_record(b, &h, sizeof(h));
	b->records = 0;
}

static void send_batch(struct builder *c, struct batch *b)
{
	struct xsp_gpu_batch_head *h = (void *)(&b->u.event + 1);

	h->first = b->first;
	h->records = b->records;
	b->first += b->records;
	b->u.event.bytes = (uint32_t)b->used;
	b->u.event.head.kind = XSP_EVENT_GPU;
	b->u.event.head.probe = BATCH;
	builder_put(c, &b->u, sizeof(b->u.event) + b->used);
}

static void put_kernel(struct batch *g, uint64_t from, uint64_t to)
{
	const struct xsp_gpu_kernel k = {.head = {XSP_GPU_KERNEL, sizeof(k), 0},
					 .start_ns = from,
					 .end_ns = to,
					 .name = 9,
					 .stream = 7};
	put_record(g, &k, sizeof(k));
}

static void put_kernel_name(struct batch *g)
{
	struct {
		struct xsp_gpu_name n;
		char text[8];
	} n = {.n = {.head = {XSP_GPU_NAME, sizeof(n), 0},
		     .id = 9,
		     .text_at = sizeof(n.n),
		     .length = 5},
	       .text = "sgemm"};
	put_record(g, &n, sizeof(n));
}

static void put_copy(struct batch *g, uint64_t from, uint64_t ns, uint64_t bytes, uint8_t memory)
{
	const struct xsp_gpu_memcpy m = {.head = {XSP_GPU_MEMCPY, sizeof(m), 0},
					 .start_ns = from,
					 .end_ns = from + ns,
					 .bytes = bytes,
					 .stream = 7,
					 .copy_kind = 1,
					 .source_kind = memory,
					 .destination_kind = 3};
	put_record(g, &m, sizeof(m));
}

/* ---- waits ---- */

static void sync_of(struct builder *b, uint64_t at, uint64_t ns)
{
	b->now = at;
	entry(b, ITEM, SP - 0x800);
	call(b, SYNC, at + US, ns);
	b->now = at + ns + 2 * US;
	leave(b, ITEM, SP - 0x800);
}

static void waiting_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	sync_of(b, at, 250 * US);
}

static void brief_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	sync_of(b, at, 50 * US);
}

/* A kernel begins 100 us after each wait, and lasts longer than that. */
static struct xsp_report *syncing(inside_fn *inside)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	put_steps(&b, STEPS, MS, inside);
	open_batch(&g, 0);
	put_kernel_name(&g);
	for (unsigned i = 0; i < STEPS; i++)
		put_kernel(&g, START + i * MS + 111 * US, START + i * MS + 311 * US);
	send_batch(&b, &g);
	b.now = START + STEPS * MS;
	return report_of(&b, NULL);
}

/* Pitfall 4: who waits, and what for. */
Test(rules_cuda, waiting_for_the_gpu)
{
	struct xsp_report *r = syncing(waiting_inside);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_MEDIUM, 0.25);

	cr_expect_str_eq(f->finding.subject, "cudaStreamSynchronize in aten::item");
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	cr_expect_eq(number_of(value_of(f->figures, "total_ns")), STEPS * 250 * US);
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 1.50 ms");
	expect_none(r, "hot-operation");
	xsp_report_free(r);
	r = syncing(brief_inside);
	expect_clean(r);
	cr_expect(!had_no_data(r, "sync"));
	xsp_report_free(r);
}

static struct batch of_steps;

/* Of a wait of 250 us, a kernel of the first half is reported before it ends; one of the second
 * half later: below. */
static void told_early_inside(struct builder *b, uint64_t at, unsigned step)
{
	b->now = at;
	entry(b, ITEM, SP - 0x800);
	b->now = at + US;
	entry(b, SYNC, SP - 0x1000);
	if (step == 0)
		put_kernel_name(&of_steps);
	put_kernel(&of_steps, at + 21 * US, at + 101 * US);
	b->now = at + 150 * US;
	send_batch(b, &of_steps);
	b->now = at + 251 * US;
	leave(b, SYNC, SP - 0x1000);
	b->now = at + 252 * US;
	leave(b, ITEM, SP - 0x800);
	open_batch(&of_steps, of_steps.first);
}

/* CUPTI passes on what has ended whenever a buffer is full: also while a call waits for the
 * rest. */
Test(rules_cuda, gpu_records_that_come_during_a_wait)
{
	struct builder b;

	open_capture(&b, NEW);
	open_batch(&of_steps, 0);
	put_steps(&b, STEPS, MS, told_early_inside);
	for (unsigned i = 0; i < STEPS; i++)
		put_kernel(&of_steps, START + i * MS + 181 * US, START + i * MS + 281 * US);
	send_batch(&b, &of_steps);
	b.now = START + STEPS * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_MEDIUM, 0.25);
	/* 80 us of the first kernel, from 181 to 261 of the second */
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 1.60 ms");
	cr_expect_null(f->finding.uncertain, "%s", f->finding.uncertain);
	xsp_report_free(r);
}

/* `count` kernels of 100 ns each, one every 200 ns, reported 50 at a time */
static void put_kernels(struct builder *b, uint64_t from, unsigned count)
{
	struct batch g;

	open_batch(&g, 0);
	put_kernel_name(&g);
	for (unsigned i = 0; i < count; i++) {
		put_kernel(&g, from + i * 200, from + i * 200 + 100);
		if (i % 50 < 49 && i + 1 < count)
			continue;
		b->now = from + (i + 1) * 200;
		send_batch(b, &g);
		open_batch(&g, g.first);
	}
}

/* More than is held of what the GPU did, in one wait of 19 ms of 20. */
Test(rules_cuda, more_gpu_records_in_a_wait_than_are_held)
{
	struct builder b;

	open_capture(&b, NEW);
	b.now = START;
	entry(&b, SYNC, SP);
	put_kernels(&b, START + MS, 70000);
	b.now = START + 19 * MS;
	leave(&b, SYNC, SP);
	b.now = START + 20 * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_HIGH, 0.95);
	/* of 1,094 times 64, the last 1,024 are held, of which the last has 48: 65,520 of 100 ns */
	cr_expect_str_eq(value_of(f->figures, "waited_for")->text, "sgemm 6.55 ms");
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "is a lower bound: 1 calls"), "%s",
			   f->finding.uncertain);
	xsp_report_free(r);
}

/* ... and more waits than are held, when a kernel comes that ran in the first of them. */
Test(rules_cuda, more_waits_than_are_held)
{
	const uint64_t waits = 2 * 8192 + 1;
	struct builder b;

	open_capture(&b, NEW);
	for (uint64_t i = 0; i < waits; i++)
		call(&b, SYNC, START + i * 2 * US, US);
	put_kernels(&b, START, 1);
	b.now = START + waits * 2 * US;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "sync", XSP_SEVERITY_HIGH, 0.5);
	cr_assert_not_null(f->finding.uncertain);
	cr_expect_not_null(strstr(f->finding.uncertain, "is a lower bound"), "%s",
			   f->finding.uncertain);
	xsp_report_free(r);
}

/* ---- allocations, errors ---- */

static void allocating_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	call(b, MALLOC, at, 40 * US);
}

static void allocating_once(struct builder *b, uint64_t at, unsigned step)
{
	if (step == 0)
		call(b, MALLOC, at, 400 * US);
}

Test(rules_cuda, allocation_in_the_loop)
{
	struct builder b;

	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, allocating_inside);
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "allocation", XSP_SEVERITY_LOW, 0.04);
	cr_expect_eq(number_of(value_of(f->figures, "calls_per_step")), 1);
	xsp_report_free(r);
	open_capture(&b, BATCH);
	put_steps(&b, STEPS, MS, allocating_once);
	r = report_of(&b, NULL);
	expect_clean(r);
	cr_expect(!had_no_data(r, "allocation"));
	xsp_report_free(r);
}

static void fail(struct builder *b, uint64_t at, uint64_t code)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t code;
	} e = {.head = {.kind = XSP_EVENT_EXIT,
			.probe = SYNC,
			.sp = SP,
			.flags = XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS},
	       .section = {.type = XSP_SECTION_RESULT, .size = sizeof(e.section) + 8},
	       .code = code};

	b->now = at;
	entry(b, SYNC, SP);
	b->now = at + 10;
	builder_put(b, &e, sizeof(e));
}

/* 1,024 kinds are distinguished; the codes are the target's. */
Test(rules_cuda, more_kinds_of_errors_than_are_told_apart)
{
	struct builder b;

	open_capture(&b, BATCH);
	for (uint64_t i = 0; i < 1024 + 7; i++)
		fail(&b, START + i * 100, 100000 + i);
	builder_end(&b);
	char *text = summary_of(b.path);
	cr_expect_not_null(strstr(text, "an error: 1,031\n"), "%s", text);
	cr_expect_not_null(strstr(text, "and 7 calls of more kinds than are told apart\n"), "%s",
			   text);
	free(text);
	unlink(b.path);
}

/* ---- copies ---- */

static void copying_inside(struct builder *b, uint64_t at, unsigned step)
{
	(void)step;
	for (unsigned i = 0; i < 12; i++)
		call(b, COPY, at + i * 20 * US, 5 * US);
}

/* 120 copies of this many bytes each, a microsecond long, from this kind of memory (1: pageable, 2:
 * pinned). */
static struct xsp_report *copying(uint64_t bytes, uint64_t ns, uint8_t memory)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	put_steps(&b, STEPS, MS, copying_inside);
	open_batch(&g, 0);
	for (unsigned i = 0; i < 120; i++) {
		put_copy(&g, START + i * 50 * US, ns, bytes, memory);
		if (i % 40 == 39) { /* what fits into one */
			send_batch(&b, &g);
			open_batch(&g, g.first);
		}
	}
	b.now = START + STEPS * MS;
	return report_of(&b, NULL);
}

/* The agent goes on in a pause of --max-overhead: 40 of these copies, 0.8 ms, lie in the 2 ms that
 * were recorded. */
Test(rules_cuda, copies_in_a_pause)
{
	struct builder b;
	struct batch g;

	open_capture(&b, NEW);
	cr_assert_eq(
		xsp_capture_put_window(b.w, &(struct xsp_capture_window){START, START + 2 * MS}),
		0);
	put_steps(&b, 2, MS, copying_inside);
	open_batch(&g, 0);
	for (unsigned i = 0; i < 120; i++) {
		put_copy(&g, START + i * 50 * US, 20 * US, 1 << 20, 1);
		if (i % 40 == 39) {
			send_batch(&b, &g);
			open_batch(&g, g.first);
		}
	}
	b.now = START + STEPS * MS;
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "pageable-copy", XSP_SEVERITY_HIGH, 0.4);
	cr_expect_eq(number_of(value_of(f->figures, "copies")), 40);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 40.0 * (1 << 20));
	xsp_report_free(r);
}

/* The bytes of copies are the target's: 120 times 2^62 have no sum, nor is 2^64 ns a time. */
Test(rules_cuda, sums_that_are_too_much)
{
	struct builder b;
	struct batch g;

	struct xsp_report *r = copying(1ULL << 62, 20 * US, 1);
	const struct xsp_report_found *f = expect(r, "pageable-copy", XSP_SEVERITY_MEDIUM, 0.24);
	cr_expect_eq(value_of(f->figures, "bytes")->kind, XSP_CELL_ABSENT);
	const struct xsp_report_table *t =
		xsp_report_find_table(xsp_report_find_section(r, "gpu"), "copies");
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[3].kind, XSP_CELL_ABSENT, "bytes");
	cr_expect_eq(xsp_report_row_at(t, 0)[4].kind, XSP_CELL_ABSENT, "mean");
	cr_expect_eq(xsp_report_row_at(t, 0)[6].kind, XSP_CELL_ABSENT, "bandwidth");
	cr_expect_eq(value_of(xsp_report_find_section(r, "cuda"), "copied_bytes")->kind,
		     XSP_CELL_ABSENT);
	xsp_report_free(r);

	open_capture(&b, NEW);
	open_batch(&g, 0);
	put_kernel_name(&g);
	put_kernel(&g, START, START + MS);
	put_kernel(&g, START + MS, UINT64_MAX);
	send_batch(&b, &g);
	b.now = START + STEPS * MS;
	r = report_of(&b, NULL);
	t = xsp_report_find_table(xsp_report_find_section(r, "gpu"), "kernels");
	cr_assert_eq(xsp_report_row_count(t), 1);
	cr_expect_eq(xsp_report_row_at(t, 0)[2].integer, 1, "runs");
	cr_expect_eq(xsp_report_row_at(t, 0)[3].integer, MS, "total");
	xsp_report_free(r);
}

Test(rules_cuda, copies)
{
	/* 120 calls of 5 us in 10 ms */
	struct xsp_report *r = copying(4096, US, 2);
	const struct xsp_report_found *f = expect(r, "small-copies", XSP_SEVERITY_LOW, 0.06);
	cr_expect_eq(number_of(value_of(f->figures, "copies")), 120);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 120 * 4096);
	expect_none(r, "pageable-copy");
	xsp_report_free(r);
	r = copying(1 << 20, 20 * US, 1); /* 2.4 ms of 10 */
	f = expect(r, "pageable-copy", XSP_SEVERITY_MEDIUM, 0.24);
	cr_expect_eq(number_of(value_of(f->figures, "bytes")), 120.0 * (1 << 20));
	expect_near(number_of(value_of(f->figures, "bandwidth")), (1 << 20) / 20e-6, 1e3,
		    "bandwidth");
	expect_none(r, "small-copies");
	xsp_report_free(r);
	r = copying(1 << 20, 48 * US, 2); /* 48 of 50 us: the GPU is busy */
	expect_clean(r);
	xsp_report_free(r);
}
