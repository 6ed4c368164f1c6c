/* SPDX-License-Identifier: BSD-2-Clause */
/* The estimated cost of the events of a ring. The ring is a file laid out like the kernel's. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <sys/mman.h>

#include "capture_builder.h"
#include "record/drain/drain.h"

#define PAGE 4096U
#define ENTRY_NS 1000U
#define EXIT_NS 100U
#define DETAIL_NS 7U

struct hit {
	enum xsp_event_kind kind;
	unsigned flags;
	uint64_t name_hash;
	uint32_t section; /* enum xsp_section_type; 0: none */
};

/* One record of `hit` in the ring at `fd`. */
static void put_record(int fd, const struct hit *hit)
{
	struct {
		uint32_t length, page;
		union {
			struct xsp_event head;
			struct xsp_event_range range;
			uint8_t bytes[64];
		} event;
	} record = {.length = sizeof(record.event)};
	const bool enters = hit->kind != XSP_EVENT_EXIT && hit->kind != XSP_EVENT_END;
	const size_t fixed = enters ? sizeof(record.event.range) : sizeof(record.event.head);
	const struct xsp_section section = {.type = (uint16_t)hit->section, .size = 16};
	const uint64_t produced = sizeof(record);

	record.event.head.kind = (uint8_t)hit->kind;
	record.event.head.flags = (uint8_t)(hit->flags | (hit->section ? XSP_EVENT_SECTIONS : 0));
	record.event.head.size = (uint16_t)(fixed + (hit->section ? section.size : 0));
	if (enters)
		record.event.range.name_hash = hit->name_hash;
	if (hit->section)
		memcpy(record.event.bytes + fixed, &section, sizeof(section));
	cr_assert_eq(pwrite(fd, &record, sizeof(record), 2 * PAGE), sizeof(record));
	cr_assert_eq(pwrite(fd, &produced, sizeof(produced), PAGE), sizeof(produced));
}

struct ring {
	int fd;
	struct builder b;
	struct xsp_drain *d;
};

/* `sections` gets &r->fd. */
static void ring_begin(struct ring *r, int (*sections)(void *ctx, const struct xsp_event *e))
{
	struct xsp_error err = {0};

	r->fd = memfd_create("ring", 0);
	cr_assert_eq(ftruncate(r->fd, 4 * PAGE), 0);
	builder_begin(&r->b, 1);
	const struct xsp_drain_options options = {.rings = &r->fd,
						  .ring_count = 1,
						  .ring_bytes = PAGE,
						  .writer = r->b.w,
						  .sections = sections,
						  .steps = {.from_ns = 2000, .emulated_ns = 600},
						  .ctx = &r->fd};
	cr_assert_eq(xsp_drain_new(&options, &r->d, &err), 0, "%s", err.text);
}

static void ring_end(struct ring *r)
{
	xsp_drain_free(r->d);
	xsp_capture_abandon(r->b.w);
	unlink(r->b.path);
	close(r->fd);
}

static uint64_t cost_of(const struct hit *hit)
{
	const struct xsp_probe_price prices[] = {{.entry_ns = ENTRY_NS, .exit_ns = EXIT_NS}};
	struct ring r;

	ring_begin(&r, NULL);
	xsp_drain_set_prices(r.d, prices, 1);
	xsp_drain_set_detail(r.d, DETAIL_NS);
	put_record(r.fd, hit);
	cr_assert_eq(xsp_drain_run(r.d, 10), 1);
	uint64_t cost = xsp_drain_totals(r.d)->cost_ns;
	ring_end(&r);
	return cost;
}

/* The kernel side times the program for the sections of functions, but neither that for ranges nor
 * that for spans with names of their own (bpf/detail.bpf.c, time_detail). */
Test(drain, what_sections_cost_is_added_where_it_was_measured)
{
	static const struct {
		const char *what;
		struct hit hit;
		uint64_t cost;
	} rows[] = {
		{"entry", {XSP_EVENT_ENTRY, 0, 0, 0}, ENTRY_NS},
		{"exit", {XSP_EVENT_EXIT, 0, 0, 0}, EXIT_NS},
		{"entry with arguments",
		 {XSP_EVENT_ENTRY, 0, 0, XSP_SECTION_ARGS},
		 ENTRY_NS + DETAIL_NS},
		{"point with a stack",
		 {XSP_EVENT_POINT, 0, 0, XSP_SECTION_STACK},
		 ENTRY_NS + DETAIL_NS},
		{"exit with a result",
		 {XSP_EVENT_EXIT, 0, 0, XSP_SECTION_RESULT},
		 EXIT_NS + DETAIL_NS},
		{"entry of a named span", {XSP_EVENT_ENTRY, 0, 1, XSP_SECTION_NODE}, ENTRY_NS},
		{"... whose name was lost",
		 {XSP_EVENT_ENTRY, XSP_EVENT_NAME_LOST, 0, XSP_SECTION_NODE},
		 ENTRY_NS},
		{"beginning of a range", {XSP_EVENT_BEGIN, 0, 1, XSP_SECTION_SCOPE}, ENTRY_NS},
		{"end of an object's range", {XSP_EVENT_END, 0, 0, XSP_SECTION_RANGE}, EXIT_NS},
		{"birth of a thread, no hit", {XSP_EVENT_TASK, 0, 0, 0}, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(cost_of(&rows[i].hit), rows[i].cost, "%s", rows[i].what);
}

/* ---- samples in hits ---- */

static void put_sample(struct ring *r, enum xsp_sample_hit what, uint64_t ns)
{
	struct {
		uint32_t length, page;
		struct xsp_event_sample e;
	} record = {.length = sizeof(record.e),
		    .e = {.head = {.kind = XSP_EVENT_SAMPLE,
				   .size = sizeof(record.e),
				   .time_ns = ns,
				   .probe = ~0U},
			  .period_ns = 1000,
			  .hit = (uint8_t)what}};
	static const uint64_t produced = sizeof(record);
	const uint64_t nothing = 0;

	cr_assert_eq(pwrite(r->fd, &record, sizeof(record), 2 * PAGE), sizeof(record));
	cr_assert_eq(pwrite(r->fd, &nothing, sizeof(nothing), 0), sizeof(nothing));
	cr_assert_eq(pwrite(r->fd, &produced, sizeof(produced), PAGE), sizeof(produced));
	cr_assert_eq(xsp_drain_run(r->d, 10), 1);
}

/* Single-stepping is told from the rest of a hit; user code after a breakpoint is a hit's end right after one only. */
Test(drain, samples_in_hits)
{
	const struct xsp_probe_price prices[] = {{.entry_ns = ENTRY_NS, .exit_ns = 9000}};
	const struct hit exit = {XSP_EVENT_EXIT, 0, 0, 0};
	struct ring r;

	ring_begin(&r, NULL);
	xsp_drain_set_prices(r.d, prices, 1);
	xsp_drain_set_factors(r.d, 2, 3);
	put_record(r.fd, &exit);
	cr_assert_eq(xsp_drain_run(r.d, 10), 1);
	put_sample(&r, XSP_HIT_NONE, 100);
	put_sample(&r, XSP_HIT_IN, 200);
	put_sample(&r, XSP_HIT_STEP, 300);
	put_sample(&r, XSP_HIT_STEP, 400);
	put_sample(&r, XSP_HIT_LEFT, 20000);
	put_sample(&r, XSP_HIT_LEFT, 2000000);
	const struct xsp_drain_totals *t = xsp_drain_totals(r.d);
	cr_expect_eq(t->parts[0].samples, 2);
	cr_expect_eq(t->parts[0].sampled_ns, 2000);
	cr_expect_eq(t->parts[1].samples, 2);
	cr_expect_eq(t->parts[0].counted_then_ns, 600);
	cr_expect_eq(t->parts[1].counted_then_ns, 8400);
	cr_expect_eq(t->cost_ns, 2 * 600 + 3 * 8400, "%" PRIu64, t->cost_ns);
	ring_end(&r);
}

/* A writer as fast as the reader must not keep the reader busy for ever. */
static int write_one_more(void *ctx, const struct xsp_event *e)
{
	const int *fd = ctx;
	struct {
		uint32_t length, page;
		struct xsp_event head;
	} record = {.length = sizeof(record.head), .head = *e};
	uint64_t produced;

	cr_assert_eq(pread(*fd, &produced, sizeof(produced), PAGE), sizeof(produced));
	cr_assert_lt(produced, 4 * PAGE, "it reads on and on");
	cr_assert_eq(pwrite(*fd, &record, sizeof(record), (off_t)(2 * PAGE + produced % PAGE)),
		     sizeof(record));
	produced += (sizeof(record) + 7) & ~7U;
	cr_assert_eq(pwrite(*fd, &produced, sizeof(produced), PAGE), sizeof(produced));
	return 0;
}

/* What a fast reader can still react to is read at once: a whole ring. */
Test(drain, a_ringful_of_what_comes_meanwhile_is_read_at_once)
{
	const struct hit hit = {XSP_EVENT_EXIT, XSP_EVENT_SECTIONS, 0, 0};
	struct ring r;

	ring_begin(&r, write_one_more);
	put_record(r.fd, &hit);
	for (int i = 0; i < 2; i++) {
		const long n = xsp_drain_run(r.d, SIZE_MAX),
			   ringful = PAGE / (8 + sizeof(struct xsp_event));
		cr_expect(n >= ringful && n <= ringful + 1, "%ld of %ld", n, ringful);
	}
	ring_end(&r);
}
