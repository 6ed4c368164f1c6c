/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of --memory=malloc of several processes, whose allocators may give the same addresses. */
#include "capture_builder.h"
#include "timeline/memory.h"

#define MIB (1ULL << 20)

static void start(struct builder *b)
{
	const struct xsp_capture_probe p = {.module = UINT32_MAX,
					    .provider = "memory",
					    .symbol = "malloc",
					    .name = "malloc",
					    .exit_complete = true};

	builder_begin(b, 0);
	cr_assert_eq(xsp_capture_put_info(b->w, "heap sample", "1"), 0);
	cr_assert_eq(xsp_capture_put_probe(b->w, &p), 0);
	b->probes = 1;
}

/* bytes 0: frees it */
static void block(struct builder *b, uint32_t pid, uint64_t address, uint64_t bytes)
{
	struct {
		struct xsp_event head;
		struct xsp_section section;
		uint64_t words[XSP_MEMORY_WORDS];
	} e = {.head = {.kind = XSP_EVENT_MEMORY, .flags = XSP_EVENT_SECTIONS},
	       .words = {address, bytes}};
	const uint32_t words = bytes > 0 ? XSP_MEMORY_WORDS : 1;

	e.section = (struct xsp_section){.type = XSP_SECTION_WORDS,
					 .size = (uint16_t)(sizeof(e.section) + words * 8)};
	b->pid = b->tid = pid;
	builder_put(b, &e, sizeof(e) - (XSP_MEMORY_WORDS - words) * 8);
}

struct heaps {
	struct xsp_capture_reader *r;
	struct xsp_timeline *t;
	const struct xsp_memory_use *uses;
	size_t count;
};

static void run(struct builder *b, struct heaps *h)
{
	struct xsp_error err = {0};

	builder_end(b);
	cr_assert_eq(xsp_capture_open(b->path, &h->r, &err), 0, "%s", err.text);
	unlink(b->path);
	cr_assert_eq(xsp_timeline_new(h->r, &h->t, &err), 0);
	cr_assert_eq(xsp_timeline_run(h->t, NULL, 0, &err), 0, "%s", err.text);
	h->count = xsp_timeline_memory(h->t, &h->uses);
}

static void done(struct heaps *h)
{
	xsp_timeline_free(h->t);
	xsp_capture_close(h->r);
}

/* Two processes have different blocks at addresses that differ only by the processes' numbers. */
Test(timeline_heap, addresses_of_another_process)
{
	const uint64_t address = 0x7f1234567000;
	struct builder b;
	struct heaps h;

	start(&b);
	block(&b, 1000, address, MIB);
	for (unsigned bit = 0; bit < 64; bit++) {
		const uint64_t other = address ^ (uint64_t)(1000 ^ 1001) << bit;
		block(&b, 1001, other, 2 * MIB);
		block(&b, 1001, other, 0);
	}
	block(&b, 1001, address, 0);
	run(&b, &h);
	cr_assert_eq(h.count, 2);
	cr_expect_eq(h.uses[0].pid, 1000);
	cr_expect_eq(h.uses[0].now, MIB);
	cr_expect_eq(h.uses[1].now, 0);
	cr_expect_eq(h.uses[1].frees, 64);
	cr_expect_eq(h.uses[1].unknown_frees, 1);
	done(&h);
}

/* Each has its own figures, however many there are. */
Test(timeline_heap, of_ten_thousand_processes)
{
	const uint32_t processes = 10000;
	struct builder b;
	struct heaps h;

	start(&b);
	for (uint32_t i = 0; i < processes; i++)
		block(&b, 1000 + i, 0x10000, MIB + i);
	run(&b, &h);
	cr_assert_eq(h.count, processes);
	for (uint32_t i = 0; i < processes; i++) {
		cr_assert_eq(h.uses[i].pid, 1000 + i);
		cr_assert_eq(h.uses[i].now, MIB + i);
	}
	cr_expect_eq(xsp_timeline_allocations_lost(h.t), 0);
	done(&h);
}

/* All of it is gone, although nothing freed it. */
Test(timeline_heap, ends_with_its_program)
{
	struct builder b;
	struct heaps h;

	start(&b);
	block(&b, 1001, 0x10000, MIB);
	for (unsigned i = 0; i < 100; i++)
		block(&b, 1000, 0x10000 + i * MIB, MIB);
	block(&b, 1000, 0x10000, 0);
	task(&b, XSP_TASK_EXEC, "another");
	block(&b, 1000, 0x10000, 3 * MIB);
	run(&b, &h);
	cr_assert_eq(h.count, 2);
	cr_expect_eq(h.uses[0].now, MIB, "another process's");
	cr_expect_eq(h.uses[1].now, 3 * MIB);
	cr_expect_eq(h.uses[1].peak, 100 * MIB);
	cr_expect_eq(h.uses[1].frees, 1);
	cr_expect_eq(h.uses[1].allocations, 101);
	done(&h);
}
