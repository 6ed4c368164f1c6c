/* SPDX-License-Identifier: BSD-2-Clause */
/* What agents record: how it becomes events in the order of their threads, and what a target may forge. The memory file
 * is made here. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/rings/convert.h"
#include "record/rings/memory.h"
#include "record/rings/rings.h"
#include "record/rings/tsc.h"
#include "timeline/details.h"

#define PID 100
#define TID 101

/* ---- the target's side ---- */

struct writer {
	int fd;
	struct xsp_rings *rings;
	struct xsp_ring_record *records;
};

static void writer_begin(struct writer *w)
{
	w->fd = memfd_create(XSP_RINGS_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cr_assert_eq(ftruncate(w->fd, (off_t)XSP_RINGS_SIZE), 0);
	cr_assert_eq(fcntl(w->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	w->rings = mmap(NULL, XSP_RINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	cr_assert_neq((void *)w->rings, MAP_FAILED);
	w->records = (void *)((uint8_t *)w->rings + XSP_RINGS_AT);
	w->rings->version = XSP_RINGS_VERSION;
	w->rings->clock = XSP_RING_MONOTONIC;
	w->rings->active = 1;
	w->rings->magic = XSP_RINGS_MAGIC;
}

static void writer_end(struct writer *w)
{
	munmap(w->rings, XSP_RINGS_SIZE);
	close(w->fd);
}

static void add_function(struct writer *w, const char *symbol)
{
	const uint32_t row = w->rings->functions;
	const uint32_t at =
		row > 0 ? w->rings->function[row - 1].text_at + w->rings->function[row - 1].length
			: 0;

	memcpy(w->rings->text + at, symbol, strlen(symbol));
	w->rings->function[row] =
		(struct xsp_ring_function){0x1000 * (row + 1), at, (uint32_t)strlen(symbol)};
	w->rings->functions++;
}

static void take_ring(struct writer *w, unsigned ring, uint32_t tid)
{
	w->rings->ring[ring].tid = tid;
	w->rings->ring[ring].state = XSP_RING_USED;
}

static void put_at(struct writer *w, unsigned ring, uint64_t number, uint64_t time, uint64_t sp,
		   uint64_t word)
{
	w->records[ring * XSP_RING_SLOTS + number % XSP_RING_SLOTS] =
		(struct xsp_ring_record){.word = word, .time = time, .sp = sp};
}

/* A record of the function "node" of `nodes`. */
static void put_node(struct writer *w, unsigned kind, unsigned flags, uint64_t time, uint64_t sp,
		     uint64_t value)
{
	const uint64_t number = w->rings->ring[0].head++;

	put_at(w, 0, number, time, sp, XSP_RING_WORD(number + 1, kind, flags, 3));
	w->records[number % XSP_RING_SLOTS].value = value;
}

static void put_text(struct writer *w, const char *text, uint64_t time)
{
	for (unsigned part = 0; part * XSP_RING_PART < strlen(text); part++) {
		char bytes[XSP_RING_PART] = "";
		uint64_t words[2];
		const size_t left = strlen(text) - part * XSP_RING_PART;
		memcpy(bytes, text + part * XSP_RING_PART,
		       left < sizeof(bytes) ? left : sizeof(bytes));
		memcpy(words, bytes, sizeof(words));
		put_node(w, XSP_EVENT_NAME, part, time, words[0], words[1]);
	}
}

static void put(struct writer *w, unsigned ring, unsigned kind, unsigned flags, unsigned function,
		uint64_t time, uint64_t sp)
{
	const uint64_t number = w->rings->ring[ring].head++;

	put_at(w, ring, number, time, sp, XSP_RING_WORD(number + 1, kind, flags, function));
}

/* ---- the reader's ---- */

struct got {
	struct xsp_event events[64];
	uint64_t hash[64]; /* of a name, or an event that has one */
	uint64_t begin_ns[64]; /* of a range that ends */
	uint64_t bits[64]; /* of values */
	uint64_t numbers
		[64]
		[2]; /* of operators and nodes: autograd's, and torch's of a thread; 0: it has none, + 1 */
	char text[64][XSP_NAME_MAX + 1]; /* of a name: 16 bytes, or all of it */
	size_t count;
};

static void look_at_numbers(struct got *g, size_t n, const struct xsp_event *e)
{
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_SEQUENCE),
				 *node = xsp_event_section(e, XSP_SECTION_NODE);
	const uint64_t *words = s || node ? xsp_section_data(s ? s : node) : NULL;

	g->numbers[n][0] = words ? words[0] + 1 : 0;
	g->numbers[n][1] = node ? words[1] + 1 : s ? s->value + 1ULL : 0;
}

static void look(struct got *g, size_t n, const struct xsp_event *e)
{
	const struct xsp_event_name *name = (const void *)e;
	const struct xsp_event_range *range = (const void *)e;
	const struct xsp_event_value *value = (const void *)e;

	if (e->kind == XSP_EVENT_NAME) {
		cr_assert(name->length <= XSP_NAME_MAX && e->size >= sizeof(*name) + name->length &&
			  e->size <= sizeof(*name) + XSP_NAME_MAX);
		g->hash[n] = name->name_hash;
		memcpy(g->text[n], name + 1, e->size - sizeof(*name));
	} else if (e->kind == XSP_EVENT_END) {
		if (e->flags & XSP_EVENT_SECTIONS)
			memcpy(&g->begin_ns[n], (const uint8_t *)e + sizeof(*e) + 8, 8);
	} else if (e->kind == XSP_EVENT_VALUE) {
		g->hash[n] = value->name_hash;
		g->bits[n] = value->bits;
	} else if (e->size >= sizeof(*range)) {
		g->hash[n] = range->name_hash;
	}
	if (e->kind == XSP_EVENT_ENTRY || e->kind == XSP_EVENT_EXIT)
		look_at_numbers(g, n, e);
}

static int take(void *ctx, const struct xsp_event *e)
{
	struct got *g = ctx;
	const size_t n = g->count++;

	if (n < sizeof(g->events) / sizeof(g->events[0]))
		g->events[n] = *e, look(g, n, e);
	return 0;
}

static bool late; /* the files that have regions are not planned yet */

#define SCOPE_BEGINS XSP_RING_SCOPE "C1"
#define SCOPE_ENDS XSP_RING_SCOPE "D1"

/* "mm" is probe 7, "t" is 8. */
static uint32_t probe_of(void *ctx, pid_t pid, uint64_t address, const char *symbol)
{
	(void)ctx;
	(void)address;
	if (pid != PID)
		return XSP_RING_NO_PROBE;
	static const struct {
		const char *symbol;
		uint32_t probe;
	} probes[] = {
		{"mm", 7},
		{"t", 8},
		{"node", 9},
		{XSP_RING_OPERATOR, 10},
		{XSP_RING_ENTER, 20},
		{XSP_RING_EXIT, 21},
		{XSP_RING_VALUE, 22},
		{SCOPE_BEGINS, 30},
		{SCOPE_ENDS, 31},
	};
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
		if (strcmp(symbol, probes[i].symbol) == 0 && !(late && probes[i].probe >= 20))
			return probes[i].probe;
	return XSP_RING_NO_PROBE;
}

static bool is_named(void *ctx, uint32_t probe)
{
	(void)ctx;
	return probe == 9 || probe == 10 || probe == 20; /* a region's, too, has one */
}

/* Both ends of a region are events of the probe that opens it. */
static uint32_t opener_of(void *ctx, uint32_t probe)
{
	(void)ctx;
	return probe == 21 || probe == 31 ? probe - 1 : probe;
}

static uint8_t scope_of(void *ctx, uint32_t probe, bool *guard)
{
	(void)ctx;
	*guard = probe >= 30;
	return probe == 30 ? XSP_EVENT_BEGIN : probe == 31 ? XSP_EVENT_END : XSP_EVENT_INVALID;
}

struct session {
	struct writer w;
	struct xsp_agent_rings *a;
	struct got got;
	uint64_t now;
};

static void begin(struct session *s, const char *const *functions, size_t count)
{
	const struct xsp_agent_rings_options o = {.probe = probe_of,
						  .is_named = is_named,
						  .opener = opener_of,
						  .numbers = true,
						  .scope = scope_of,
						  .mask = 3};
	struct xsp_ring_memory *m;
	struct xsp_error err = {0};

	writer_begin(&s->w);
	for (size_t i = 0; i < count; i++)
		add_function(&s->w, functions[i]);
	s->a = xsp_agent_rings_new(&o);
	s->got.count = 0;
	xsp_agent_rings_put_to(s->a, take, &s->got);
	cr_assert_eq(xsp_ring_memory_open(dup(s->w.fd), &m, &err), 0, "%s", err.text);
	cr_assert_eq(xsp_agent_rings_add(s->a, PID, m), 0);
	xsp_agent_rings_thread(s->a, PID, 1, TID);
	s->now = xsp_now_ns() - 1000000;
}

static const char *const two[] = {"mm", "other", "t"};
static const char *const nodes[] = {"mm", "other", "t", "node"};

static void end(struct session *s)
{
	xsp_agent_rings_free(s->a);
	writer_end(&s->w);
}

static void turn(struct session *s)
{
	xsp_agent_rings_mark(s->a, 0xf);
	cr_assert_eq(xsp_agent_rings_flush(s->a, 0xf), 0);
}

static uint64_t bad(struct session *s)
{
	return xsp_agent_rings_totals(s->a).bad;
}

/* ---- regions ---- */

static const char *const regions[] = {"mm", XSP_RING_ENTER, XSP_RING_EXIT, XSP_RING_VALUE};

static void add_name(struct writer *w, unsigned place, const char *text, uint32_t flags)
{
	const uint32_t at = place * 64;

	memcpy(w->rings->names_text + at, text, strlen(text));
	w->rings->name[place] =
		(struct xsp_ring_name){place + 1, at, flags | (uint32_t)strlen(text)};
}

static void put_named(struct writer *w, unsigned kind, unsigned function, uint64_t time,
		      uint64_t sp, uint64_t value)
{
	const uint64_t number = w->rings->ring[0].head++;

	w->records[number % XSP_RING_SLOTS] =
		(struct xsp_ring_record){.word = XSP_RING_WORD(number + 1, kind, 0, function),
					 .time = time,
					 .sp = sp,
					 .value = value};
}

Test(agent_rings, regions_and_values)
{
	struct session s;

	begin(&s, regions, 4);
	take_ring(&s.w, 0, 1);
	add_name(&s.w, 9, "step", XSP_RING_NAME_THERE);
	add_name(&s.w, 10, "loss", XSP_RING_NAME_THERE | XSP_RING_NAME_CUT);
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now, 0x7000, 9);
	put_named(&s.w, XSP_EVENT_ENTRY, 0, s.now + 1, 0x6000, 0);
	put_named(&s.w, XSP_EVENT_VALUE, 3, s.now + 2, 10, 0x3ff0000000000000);
	put_named(&s.w, XSP_EVENT_EXIT, 0, s.now + 3, 0x6000, 0);
	put_named(&s.w, XSP_EVENT_END, 2, s.now + 4, 0x7000, 0);
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now + 5, 0x7000, 9);
	turn(&s);
	cr_assert_eq(s.got.count, 8);
	const struct xsp_event *e = s.got.events;
	cr_expect(e[0].kind == XSP_EVENT_NAME && strcmp(s.got.text[0], "step") == 0 &&
		  e[0].flags == 0);
	cr_expect(e[1].kind == XSP_EVENT_BEGIN && e[1].probe == 20 && e[1].sp == 0x7000 &&
		  e[1].flags == XSP_EVENT_SP_EXACT && e[1].tid == TID &&
		  e[1].size == sizeof(struct xsp_event_range));
	cr_expect(s.got.hash[0] != 0 && s.got.hash[1] == s.got.hash[0]);
	cr_expect(e[2].kind == XSP_EVENT_ENTRY && e[2].probe == 7);
	cr_expect(e[3].kind == XSP_EVENT_NAME && strcmp(s.got.text[3], "loss") == 0 &&
		  e[3].flags == XSP_EVENT_NAME_CUT);
	cr_expect(e[4].kind == XSP_EVENT_VALUE && e[4].probe == 22 &&
		  s.got.hash[4] == s.got.hash[3] && s.got.bits[4] == 0x3ff0000000000000);
	cr_expect(e[6].kind == XSP_EVENT_END && e[6].probe == 20 && e[6].sp == 0x7000);
	cr_expect(e[7].kind == XSP_EVENT_BEGIN && s.got.hash[7] == s.got.hash[0],
		  "a name goes into the capture once");
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(s.a);
	cr_expect(t.bad == 0 && t.names == 0 && t.records == 6);
	size_t count;
	cr_expect(xsp_agent_rings_functions(s.a, PID, &count) == 1 && count == 3);
	cr_expect(xsp_agent_rings_serves(s.a, PID, 21), "the end's probe is spared, too");
	end(&s);
}

/* The agent begins before files with regions are planned. */
Test(agent_rings, regions_that_are_planned_later)
{
	struct session s;

	late = true;
	begin(&s, regions, 4);
	take_ring(&s.w, 0, 1);
	add_name(&s.w, 9, "step", XSP_RING_NAME_THERE);
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now, 0x7000, 9);
	turn(&s);
	cr_expect_eq(s.got.count, 0);
	late = false;
	xsp_agent_rings_look(s.a, PID);
	size_t count;
	cr_expect(xsp_agent_rings_functions(s.a, PID, &count) == 1 && count == 3);
	put_named(&s.w, XSP_EVENT_END, 2, s.now + 1, 0x7000, 0);
	turn(&s);
	cr_assert_eq(s.got.count, 1);
	cr_expect_eq(s.got.events[0].probe, 20);
	cr_expect_eq(bad(&s), 0);
	end(&s);
}

/* Names that are not there, or lie elsewhere; records that the function never writes. */
Test(agent_rings, forged_regions)
{
	static const struct xsp_ring_name names[] = {
		{1, 0, 0}, /* not complete */
		{1, 0, XSP_RING_NAME_THERE | (XSP_NAME_MAX + 1)},
		{1, 0, XSP_RING_NAME_THERE | 0xffff},
		{1, XSP_RING_NAMES_TEXT - 3, XSP_RING_NAME_THERE | 4},
		{1, UINT32_MAX, XSP_RING_NAME_THERE | 4},
	};
	static const uint64_t places[] = {XSP_RING_NAMES, UINT32_MAX, 1ULL << 63, XSP_RING_NO_NAME};
	struct session s;

	begin(&s, regions, 4);
	take_ring(&s.w, 0, 1);
	for (unsigned i = 0; i < 5; i++) {
		s.w.rings->name[i] = names[i];
		put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now + i, 0x7000, i);
	}
	for (unsigned i = 0; i < 4; i++)
		put_named(&s.w, XSP_EVENT_VALUE, 3, s.now + 5 + i, places[i], 0);
	turn(&s);
	cr_assert_eq(s.got.count, 9);
	for (size_t i = 0; i < 9; i++)
		cr_expect((s.got.events[i].flags & XSP_EVENT_NAME_LOST) && s.got.hash[i] == 0);
	cr_expect_eq(xsp_agent_rings_totals(s.a).names, 9);
	/* the same place may be complete a moment later */
	add_name(&s.w, 0, "late", XSP_RING_NAME_THERE);
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now + 9, 0x7000, 0);
	/* XSP_NAME_MAX bytes up to the end of the text */
	s.w.rings->name[1] = (struct xsp_ring_name){1, XSP_RING_NAMES_TEXT - XSP_NAME_MAX,
						    XSP_RING_NAME_THERE | XSP_NAME_MAX};
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now + 10, 0x7000, 1);
	turn(&s);
	cr_expect_eq(s.got.count, 13);
	cr_expect_eq(bad(&s), 0);

	put_named(&s.w, XSP_EVENT_BEGIN, 0, s.now + 11, 0x7000, 0); /* a region by an operator */
	put_named(&s.w, XSP_EVENT_ENTRY, 1, s.now + 12, 0x7000, 0); /* and the other way round */
	put_named(&s.w, XSP_EVENT_END, 1, s.now + 13, 0x7000, 0);
	put_named(&s.w, XSP_EVENT_NAME, 1, s.now + 14, 0x7000, 0);
	put_named(&s.w, XSP_EVENT_BEGIN, 4, s.now + 15, 0x7000, 0); /* no function */
	put(&s.w, 0, XSP_EVENT_BEGIN, XSP_RING_UNWOUND, 1, s.now + 16, 0x7000);
	turn(&s);
	cr_expect_eq(s.got.count, 13);
	cr_expect_eq(bad(&s), 6);
	end(&s);
}

/* Of XSigma: its object says which one ends, in any order and on any thread. */
Test(agent_rings, scopes_of_objects)
{
	static const char *const scopes[] = {"mm", SCOPE_BEGINS, SCOPE_ENDS};
	const uint64_t one = 0x7fff00001000, two_ = 0x7fff00001008, none = 0x7fff00002000;
	struct session s;

	begin(&s, scopes, 3);
	take_ring(&s.w, 0, 1);
	take_ring(&s.w, 1, 2);
	xsp_agent_rings_thread(s.a, PID, 2, TID + 1);
	add_name(&s.w, 9, "outer", XSP_RING_NAME_THERE);
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now, 0x7000, xsp_ring_guard(9, one));
	put_named(&s.w, XSP_EVENT_BEGIN, 1, s.now + 1, 0x6f00,
		  xsp_ring_guard(XSP_RING_NO_NAME, two_));
	put_named(&s.w, XSP_EVENT_END, 2, s.now + 2, 0x7000, xsp_ring_guard(XSP_RING_NO_NAME, one));
	put_named(&s.w, XSP_EVENT_END, 2, s.now + 3, 0x7000, xsp_ring_guard(0, none));
	put_named(&s.w, XSP_EVENT_END, 2, s.now + 4, 0x7000, xsp_ring_guard(0, one)); /* again */
	turn(&s);
	const struct xsp_event *e = s.got.events;
	cr_assert_eq(s.got.count, 4);
	cr_expect(e[0].kind == XSP_EVENT_NAME && strcmp(s.got.text[0], "outer") == 0);
	cr_expect(e[1].kind == XSP_EVENT_BEGIN && e[1].probe == 30 &&
		  s.got.hash[1] == s.got.hash[0]);
	cr_expect(e[2].kind == XSP_EVENT_BEGIN && (e[2].flags & XSP_EVENT_NAME_LOST));
	cr_expect(e[3].kind == XSP_EVENT_END && e[3].probe == 30 && s.got.begin_ns[3] == s.now);
	const uint64_t number = s.w.rings->ring[1].head++;
	put_at(&s.w, 1, number, s.now + 5, 0x5000, XSP_RING_WORD(number + 1, XSP_EVENT_END, 0, 2));
	s.w.records[XSP_RING_SLOTS + number].value = xsp_ring_guard(0, two_);
	turn(&s);
	cr_assert_eq(s.got.count, 5);
	cr_expect(e[4].tid == TID + 1 && s.got.begin_ns[4] == s.now + 1);
	cr_expect_eq(bad(&s), 0);
	put_named(&s.w, XSP_EVENT_END, 1, s.now + 6, 0x7000, 0); /* by what begins one */
	put_named(&s.w, XSP_EVENT_ENTRY, 2, s.now + 7, 0x7000, 0);
	turn(&s);
	cr_expect(s.got.count == 5 && bad(&s) == 2);
	end(&s);
}

/* ---- arguments ---- */

static void put_args(struct session *s, uint64_t place)
{
	const uint64_t number = s->w.rings->ring[0].head++;

	put_at(&s->w, 0, number, s->now + number, 0x7000,
	       XSP_RING_WORD(number + 1, XSP_EVENT_ENTRY, XSP_RING_ARGS, 0));
	s->w.records[number % XSP_RING_SLOTS].value = place;
}

/* What the target says is copied, within bounds, or lost: then the call is there without. */
Test(agent_rings, forged_arguments)
{
	static const struct {
		struct xsp_ring_name name;
		uint16_t type, size;
		bool good;
	} rows[] = {
		{{1, 0, XSP_RING_NAME_THERE | 72}, XSP_SECTION_ARGS, 72, true},
		{{1, XSP_RING_NAMES_TEXT - 4096, XSP_RING_NAME_THERE | 4096},
		 XSP_SECTION_ARGS,
		 4096,
		 true},
		{{1, 0, 72}, XSP_SECTION_ARGS, 72, false}, /* not complete */
		{{1, 0, XSP_RING_NAME_THERE | 72}, XSP_SECTION_ARGS, 80, false},
		{{1, 0, XSP_RING_NAME_THERE | 72}, XSP_SECTION_WORDS, 72, false},
		{{1, 0, XSP_RING_NAME_THERE | 4}, XSP_SECTION_ARGS, 4, false},
		{{1, 0, XSP_RING_NAME_THERE | 75}, XSP_SECTION_ARGS, 75, false},
		{{1, 0, XSP_RING_NAME_THERE | 4104}, XSP_SECTION_ARGS, 4104, false},
		{{1, XSP_RING_NAMES_TEXT - 64, XSP_RING_NAME_THERE | 72},
		 XSP_SECTION_ARGS,
		 72,
		 false},
		{{1, UINT32_MAX, XSP_RING_NAME_THERE | 72}, XSP_SECTION_ARGS, 72, false},
	};
	struct session s;
	uint64_t lost = 0;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct xsp_section section = {rows[i].type, rows[i].size, 6};
		if (rows[i].name.text_at <= XSP_RING_NAMES_TEXT - sizeof(section))
			memcpy(s.w.rings->names_text + rows[i].name.text_at, &section,
			       sizeof(section));
		s.w.rings->name[i] = rows[i].name;
		put_args(&s, i);
		turn(&s);
		const struct xsp_event *e = &s.got.events[i];
		cr_assert(s.got.count == i + 1 && e->kind == XSP_EVENT_ENTRY && e->probe == 7,
			  "row %zu", i);
		cr_expect_eq((e->flags & XSP_EVENT_SECTIONS) != 0, rows[i].good, "row %zu", i);
		cr_expect_eq(e->size,
			     rows[i].good ? sizeof(struct xsp_event_range) + rows[i].size
					  : sizeof(*e),
			     "row %zu", i);
		lost += !rows[i].good;
	}
	put_args(&s, XSP_RING_NAMES);
	put_args(&s, XSP_RING_NO_NAME);
	turn(&s);
	cr_expect_eq(xsp_agent_rings_totals(s.a).names, lost + 2);
	cr_expect_eq(bad(&s), 0);
	put(&s.w, 0, XSP_EVENT_EXIT, XSP_RING_ARGS, 0, s.now + 100,
	    0x7000); /* only an entry has them */
	turn(&s);
	cr_expect_eq(bad(&s), 1);
	end(&s);
}

/* ---- stacks of Python ---- */

struct got_stacks {
	struct {
		struct xsp_event_python python;
		struct xsp_python_frame frames[XSP_PYTHON_MAX];
	} stack;
	size_t stacks, calls;
	struct xsp_section section; /* of the last call; size 0: it has none */
	uint64_t id;
};

static int take_stacks(void *ctx, const struct xsp_event *e)
{
	struct got_stacks *g = ctx;

	if (e->kind == XSP_EVENT_PYTHON) {
		cr_assert(e->size <= sizeof(g->stack));
		memcpy(&g->stack, e, e->size);
		cr_assert_eq(e->size, sizeof(g->stack.python) +
					      g->stack.python.count * sizeof(g->stack.frames[0]));
		g->stacks++;
		return 0;
	}
	if (e->kind != XSP_EVENT_ENTRY && e->kind != XSP_EVENT_BEGIN)
		return 0;
	const struct xsp_section *s = xsp_event_section(e, XSP_SECTION_PYTHON);
	g->section = s != NULL ? *s : (struct xsp_section){0};
	if (s != NULL)
		memcpy(&g->id, s + 1, sizeof(g->id));
	g->calls++;
	return 0;
}

static void keep_stack(struct writer *w, unsigned place, uint32_t value, const uint64_t *words,
		       uint16_t count)
{
	const uint32_t at = place * 8192, bytes = 8U + 8U * count;
	const struct xsp_section section = {XSP_SECTION_PYTHON, (uint16_t)bytes, value};

	memcpy(w->rings->names_text + at, &section, sizeof(section));
	if (words != NULL)
		memcpy(w->rings->names_text + at + sizeof(section), words, 8UL * count);
	w->rings->name[place] = (struct xsp_ring_name){place + 1, at, XSP_RING_NAME_THERE | bytes};
}

static void put_stack(struct session *s, unsigned kind, unsigned flags, unsigned function,
		      uint64_t value)
{
	const uint64_t number = s->w.rings->ring[0].head++;

	put_at(&s->w, 0, number, s->now + number, 0x7000,
	       XSP_RING_WORD(number + 1, kind, flags, function));
	s->w.records[number % XSP_RING_SLOTS].value = value;
}

static void read_python(struct session *s, uint32_t generation)
{
	const struct xsp_ring_python how = {.frames = 64, .spec = {.generation = generation}};

	xsp_agent_rings_read_python(s->a, PID, &how);
}

Test(agent_rings, stacks_go_into_the_capture_once)
{
	static const uint64_t words[] = {
		0x1000 | XSP_RING_SELF, 0x1010, 0x7770, 0x8880, 0x2000, 0x2020};
	struct session s;
	struct got_stacks g = {0};

	begin(&s, nodes, 4);
	xsp_agent_rings_put_to(s.a, take_stacks, &g);
	take_ring(&s.w, 0, 1);
	cr_expect(s.w.rings->python.stamp == 0);
	read_python(&s, 5);
	const uint32_t stamp = s.w.rings->python.stamp;
	cr_expect(stamp != 0 && s.w.rings->python.frames == 64);
	keep_stack(&s.w, 3, 2 | XSP_PYTHON_CUT, words, 6);
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, 3ULL << 32);
	turn(&s);
	cr_assert(g.calls == 1 && g.stacks == 1);
	cr_expect(g.section.size == 16 && g.section.value == (2 | XSP_PYTHON_CUT) &&
		  g.id == g.stack.python.id);
	const struct xsp_event_python *p = &g.stack.python;
	cr_expect(p->generation == 5 && p->count == 2 && p->flags == XSP_PYTHON_CUT &&
		  p->head.tgid == PID && p->head.tid == TID);
	cr_expect(g.stack.frames[0].code == 0x1000 && g.stack.frames[0].instruction == 0x1010 &&
		  g.stack.frames[0].self == 0x7770 && g.stack.frames[0].type == 0x8880);
	cr_expect(g.stack.frames[1].code == 0x2000 && g.stack.frames[1].self == 0);
	const uint64_t id = g.id;

	/* of a node, and of a region, in a record before; for the next event only */
	put_stack(&s, XSP_EVENT_PYTHON, 0, 3, 3);
	put_stack(&s, XSP_EVENT_ENTRY, 0, 3, 0x1234);
	turn(&s);
	cr_expect(g.calls == 2 && g.stacks == 1 && g.id == id && g.section.size == 16);
	put_stack(&s, XSP_EVENT_ENTRY, 0, 3, 0x1234);
	turn(&s);
	cr_expect(g.calls == 3 && g.section.size == 0);

	read_python(&s, 6); /* code objects have gone: the same numbers are another stack */
	cr_expect(s.w.rings->python.stamp != stamp);
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, 3ULL << 32);
	turn(&s);
	cr_expect(g.calls == 4 && g.stacks == 2 && g.id != id && p->generation == 6);
	cr_expect(xsp_agent_rings_totals(s.a).names == 0 && bad(&s) == 0);
	end(&s);
}

/* What the target says is copied, within bounds, or lost: then the call is there without. */
Test(agent_rings, forged_stacks)
{
	static const struct {
		uint32_t value;
		uint16_t words;
		bool good;
	} rows[] = {
		{0 | XSP_PYTHON_TORN, 0, true},
		{128, 256, true},
		{129, 258, false},
		{2, 2, false}, /* less than it says */
		{1, 4, false}, /* more */
		{0xffff, 512, false},
		{1 | XSP_PYTHON_CALLS, 2, false}, /* no such flag */
		{0x80000001, 2, false},
	};
	static uint64_t words[520];
	struct session s;
	struct got_stacks g = {0};
	size_t calls = 0, lost = 0;

	begin(&s, two, 3);
	xsp_agent_rings_put_to(s.a, take_stacks, &g);
	take_ring(&s.w, 0, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		keep_stack(&s.w, (unsigned)i, rows[i].value, words, rows[i].words);
		put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, i << 32);
		turn(&s);
		cr_assert_eq(g.calls, ++calls, "row %zu", i);
		cr_expect_eq(g.section.size != 0, rows[i].good, "row %zu", i);
		lost += !rows[i].good;
	}
	/* with self each, as long as can be, and longer */
	for (size_t i = 0; i < 512; i += 4)
		words[i] = XSP_RING_SELF;
	for (uint16_t more = 0; more < 2; more++) {
		keep_stack(&s.w, 20U + more, 128, words, (uint16_t)(512 + more));
		put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, (20ULL + more) << 32);
		turn(&s);
		cr_expect(g.section.size == (more ? 0 : 16) && g.calls == ++calls);
	}
	/* both in one entry, of which one is lost; places that are none */
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK | XSP_RING_ARGS, 0, 1ULL << 32 | 0xffffffff);
	turn(&s);
	cr_expect(g.section.size == 16 && g.calls == ++calls);
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, (uint64_t)XSP_RING_NAMES << 32);
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK, 0, UINT64_MAX);
	put_stack(&s, XSP_EVENT_PYTHON, 0, 0, UINT64_MAX);
	put_stack(&s, XSP_EVENT_ENTRY, 0, 0, 0);
	turn(&s);
	cr_expect(g.section.size == 0 && g.calls == calls + 3);
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(s.a);
	cr_expect_eq(t.names, lost + 1 + 1 + 2);
	cr_expect(t.torn == 1 && t.bad == 0);
	put_stack(&s, XSP_EVENT_PYTHON, XSP_RING_NAMED, 0, 0);
	put_stack(&s, XSP_EVENT_EXIT, XSP_RING_STACK, 0, 0); /* only an entry has them */
	put_stack(&s, XSP_EVENT_ENTRY, XSP_RING_STACK | XSP_RING_NAMED, 0, 0);
	turn(&s);
	cr_expect_eq(bad(&s), 3);
	end(&s);
}

/* ---- honest ---- */

Test(agent_rings, records_become_events)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 5, 1);
	put(&s.w, 5, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	put(&s.w, 5, XSP_EVENT_ENTRY, 0, 1, s.now + 1, 0x6800); /* not wanted */
	put(&s.w, 5, XSP_EVENT_ENTRY, 0, 2, s.now + 2, 0x6000);
	put(&s.w, 5, XSP_EVENT_EXIT, XSP_RING_UNWOUND, 2, s.now + 3, 0x6000);
	put(&s.w, 5, XSP_EVENT_EXIT, 0, 0, s.now + 4, 0x7000);
	turn(&s);
	cr_assert_eq(s.got.count, 4);
	const struct xsp_event *e = s.got.events;
	cr_expect(e[0].kind == XSP_EVENT_ENTRY && e[0].probe == 7 && e[0].sp == 0x7000 &&
		  e[0].tid == TID && e[0].tgid == PID && e[0].time_ns == s.now &&
		  e[0].flags == XSP_EVENT_SP_EXACT && e[0].size == sizeof(*e));
	cr_expect(e[1].kind == XSP_EVENT_ENTRY && e[1].probe == 8);
	cr_expect(e[2].kind == XSP_EVENT_UNWIND && e[2].sp == 0x6008, "all below its caller");
	cr_expect(e[3].kind == XSP_EVENT_EXIT && e[3].probe == 7 && e[3].sp == 0x7000);
	cr_expect_eq(bad(&s), 0);
	cr_expect_eq(s.w.rings->ring[5].tail, 5, "their room is the writer's again");
	cr_expect(xsp_agent_rings_serves(s.a, PID, 7) && xsp_agent_rings_serves_any(s.a, 8));
	cr_expect_not(xsp_agent_rings_serves(s.a, PID, 9));
	cr_expect_not(xsp_agent_rings_serves(s.a, PID + 1, 7));
	end(&s);
}

/* A class by its vtable, one of Python by its text: the name comes once, before its first entry. */
Test(agent_rings, nodes_have_names)
{
	static const char text[] = "ANameOfMoreThanOnePart";
	struct session s;

	begin(&s, nodes, 4);
	take_ring(&s.w, 0, 1);
	for (unsigned n = 0; n < 2; n++) {
		put_node(&s.w, XSP_EVENT_ENTRY, 0, s.now, 0x7000, 0x1234);
		put_text(&s.w, text, s.now);
		put_node(&s.w, XSP_EVENT_ENTRY, XSP_RING_NAMED, s.now, 0x6000,
			 xsp_ring_hash(text, sizeof(text) - 1));
		put_node(&s.w, XSP_EVENT_EXIT, 0, s.now, 0x6000, 0);
	}
	turn(&s);
	const struct got *g = &s.got;
	cr_assert_eq(g->count, 8);
	cr_expect(g->events[0].kind == XSP_EVENT_NAME &&
		  g->events[0].flags == XSP_EVENT_NAME_VTABLE &&
		  memcmp(g->text[0], &(uint64_t[2]){0x1234}, 16) == 0);
	cr_expect(g->events[1].kind == XSP_EVENT_ENTRY && g->events[1].sp == 0x7000 &&
		  g->events[1].probe == 9);
	cr_expect(g->events[2].kind == XSP_EVENT_NAME && strcmp(g->text[2], text) == 0);
	cr_expect(g->hash[0] != 0 && g->hash[1] == g->hash[0] && g->hash[5] == g->hash[0]);
	cr_expect(g->hash[2] != 0 && g->hash[3] == g->hash[2] && g->hash[6] == g->hash[2] &&
		  g->hash[2] != g->hash[0]);
	cr_expect(g->events[4].kind == XSP_EVENT_EXIT && g->events[4].size == sizeof(*g->events));
	cr_expect_eq(bad(&s), 0);
	size_t count;
	cr_expect_eq(xsp_agent_rings_functions(s.a, PID, &count), 2, "operators");
	end(&s);
}

/* An event of the kernel side at t: all that the thread did before comes first, and nothing after it. */
Test(agent_rings, the_order_of_a_thread)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	xsp_agent_rings_mark(s.a, 0xf);
	/* after the mark, and before the event */
	put(&s.w, 0, XSP_EVENT_EXIT, 0, 0, s.now + 10, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 2, s.now + 30, 0x7000);
	cr_assert_eq(xsp_agent_rings_before(s.a, PID, TID, s.now + 20), 0);
	cr_expect_eq(s.got.count, 2);
	cr_assert_eq(xsp_agent_rings_before(s.a, PID, TID + 1, s.now + 40), 0);
	cr_expect_eq(s.got.count, 2, "of another thread");
	cr_assert_eq(xsp_agent_rings_flush(s.a, 0xf), 0);
	cr_expect_eq(s.got.count, 2,
		     "what it did after the mark may come after events that are not read yet");
	turn(&s);
	cr_expect_eq(s.got.count, 3);
	end(&s);
}

/* A thread that takes a ring after the mark, and whose events of the kernel side are read before the next one: what it did before
 * them comes first. */
Test(agent_rings, a_ring_that_is_taken_after_the_mark)
{
	struct session s;

	begin(&s, two, 3);
	xsp_agent_rings_thread(s.a, PID, PID,
			       PID); /* its own ids are those of the root namespace */
	xsp_agent_rings_mark(s.a, 0xf);
	for (unsigned i = 0; i < 2; i++) {
		take_ring(&s.w, i, 200 + i);
		s.w.rings->taken++;
		put(&s.w, i, XSP_EVENT_ENTRY, 0, 0, s.now + 10, 0x7000);
		put(&s.w, i, XSP_EVENT_EXIT, 0, 0, s.now + 30, 0x7000);
		cr_assert_eq(xsp_agent_rings_before(s.a, PID + 1, 200 + i, s.now + 20), 0);
		cr_expect_eq(s.got.count, 3 * i, "not of its process");
		cr_assert_eq(xsp_agent_rings_before(s.a, PID, 200 + i, s.now + 20), 0);
		cr_expect_eq(s.got.count, 3 * i + 1);
		cr_assert_eq(xsp_agent_rings_before(s.a, PID, 200 + i, s.now + 40), 0);
		cr_expect_eq(s.got.count, 3 * i + 2);
		s.got.count++; /* as one that is not looked at */
	}
	cr_expect(s.got.events[0].tid == 200 && s.got.events[1].kind == XSP_EVENT_EXIT);
	cr_expect_eq(bad(&s), 0);
	end(&s);
}

/* Only those streams whose rings of the kernel side have been read. */
Test(agent_rings, a_stream_waits_for_its_ring)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	xsp_agent_rings_mark(s.a, 0xf);
	xsp_agent_rings_flush(s.a, 0xf & ~(1U << (TID & 3)));
	cr_expect_eq(s.got.count, 0);
	xsp_agent_rings_mark(s.a, 0xf & ~(1U << (TID & 3)));
	xsp_agent_rings_flush(s.a, 1U << (TID & 3));
	cr_expect_eq(s.got.count, 1);
	end(&s);
}

Test(agent_rings, a_record_in_progress_is_waited_for)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	s.w.rings->ring[0].head = 1; /* reserved, and a signal handler runs */
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 2, s.now + 5, 0x6000);
	put(&s.w, 0, XSP_EVENT_EXIT, 0, 2, s.now + 6, 0x6000);
	turn(&s);
	cr_expect_eq(s.got.count, 0);
	put_at(&s.w, 0, 0, s.now, 0x7000, XSP_RING_WORD(1, XSP_EVENT_ENTRY, 0, 0));
	turn(&s);
	cr_assert_eq(s.got.count, 3);
	cr_expect_eq(bad(&s), 0);
	end(&s);
}

Test(agent_rings, a_dead_process_gives_what_it_has_written)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	turn(&s);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	s.w.rings->ring[0].head++; /* SIGKILL came here */
	s.w.rings->ring[0].lost = 3;
	s.w.rings->homeless = 2;
	cr_assert_eq(xsp_agent_rings_end(s.a, PID), 0);
	cr_expect_eq(s.got.count, 1);
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(s.a);
	cr_expect(t.bad == 0 && t.lost == 3 && t.homeless == 2);
	cr_expect_not(xsp_agent_rings_has(s.a, PID));
	end(&s);
}

Test(agent_rings, an_ended_threads_ring_is_given_back)
{
	struct session s;

	begin(&s, two, 3);
	xsp_agent_rings_thread(s.a, PID, 2, TID + 1);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	s.w.rings->ring[0].state = XSP_RING_ENDED;
	turn(&s);
	cr_expect_eq(s.got.count, 1);
	turn(&s);
	cr_expect_eq(s.w.rings->ring[0].state, XSP_RING_FREE);
	take_ring(&s.w, 0, 2);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now + 1, 0x7000);
	/* an event of the old thread takes nothing of the new one's */
	cr_assert_eq(xsp_agent_rings_before(s.a, PID, TID, s.now + 10), 0);
	cr_expect_eq(s.got.count, 1);
	turn(&s);
	cr_assert_eq(s.got.count, 2);
	cr_expect_eq(s.got.events[1].tid, TID + 1);
	end(&s);
}

/* What runs while a thread ends takes rings of its own, in any order of their places. */
Test(agent_rings, rings_of_one_thread_come_in_the_order_of_their_records)
{
	for (int dies = 0; dies < 2; dies++) {
		static const unsigned ring[] = {2, 1, 0};
		struct session s;
		begin(&s, two, 3);
		for (unsigned i = 0; i < 3; i++) {
			take_ring(&s.w, ring[i], 1);
			put(&s.w, ring[i], XSP_EVENT_ENTRY, 0, 0, s.now + 10 * i, 0x7000);
			put(&s.w, ring[i], XSP_EVENT_EXIT, 0, 0, s.now + 10 * i + 5, 0x7000);
			s.w.rings->ring[ring[i]].state = XSP_RING_ENDED;
		}
		if (dies)
			cr_assert_eq(xsp_agent_rings_end(s.a, PID), 0);
		for (unsigned i = 0; !dies && i < 4; i++)
			turn(&s);
		cr_assert_eq(s.got.count, 6);
		for (unsigned i = 0; i < 6; i++)
			cr_expect_eq(s.got.events[i].time_ns, s.now + 5 * i);
		cr_expect_eq(bad(&s), 0);
		end(&s);
	}
}

Test(agent_rings, only_while_it_records)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now - 2, 0x7000);
	s.w.rings->ring[0].lost = 5;
	xsp_agent_rings_start(s.a, s.now);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now - 1, 0x7000);
	put(&s.w, 0, XSP_EVENT_EXIT, 0, 0, s.now + 1, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now + 11, 0x7000);
	s.w.rings->ring[0].lost = 7;
	xsp_agent_rings_stop(s.a, s.now + 10);
	s.w.rings->ring[0].lost = 9;
	turn(&s);
	cr_expect_eq(s.got.count, 1);
	cr_expect_eq(bad(&s), 0);
	cr_expect_eq(xsp_agent_rings_totals(s.a).lost, 2);
	end(&s);
}

/* ---- forged ---- */

Test(agent_rings, forged_records_are_counted)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_BEGIN, 0, 0, s.now, 0x7000);
	put(&s.w, 0, 255, 0, 0, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, XSP_RING_UNWOUND, 0, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_EXIT, 0x80, 0, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 3, s.now, 0x7000); /* no such function */
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 65535, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, UINT64_MAX, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now + 60000000000, 0x7000);
	turn(&s);
	cr_expect_eq(s.got.count, 0);
	cr_expect_eq(bad(&s), 8);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now - 1, 0x7000);
	turn(&s);
	cr_expect_eq(s.got.count, 1, "and it goes on");
	cr_expect_eq(bad(&s), 9, "times rise");
	end(&s);
}

/* By their objects: in any order, and also on another thread. */
Test(agent_rings, ranges_begin_and_end)
{
	struct session s;

	begin(&s, nodes, 4);
	take_ring(&s.w, 0, 1);
	put_node(&s.w, XSP_EVENT_END, 0, s.now, 0x7000, 0x10); /* from before */
	put_text(&s.w, "one", s.now);
	put_node(&s.w, XSP_EVENT_BEGIN, XSP_RING_NAMED, s.now + 1, 0x7000, 0x10);
	put_node(&s.w, XSP_EVENT_BEGIN, 0, s.now + 2, 0x7000, 0x20);
	put_node(&s.w, XSP_EVENT_END, 0, s.now + 3, 0x7000, 0x10);
	put_node(&s.w, XSP_EVENT_END, 0, s.now + 4, 0x7000, 0x10); /* again */
	put_node(&s.w, XSP_EVENT_END, 0, s.now + 5, 0x7000, 0x20);
	put(&s.w, 0, XSP_EVENT_BEGIN, 0, 0, s.now + 6, 0x7000); /* of mm, which has none */
	turn(&s);
	const struct got *g = &s.got;
	cr_assert_eq(g->count, 5);
	cr_expect(g->events[0].kind == XSP_EVENT_NAME && strcmp(g->text[0], "one") == 0);
	cr_expect(g->events[1].kind == XSP_EVENT_BEGIN && g->hash[1] == g->hash[0] &&
		  g->events[1].probe == 9 && g->events[1].size == sizeof(struct xsp_event_range));
	cr_expect(g->events[2].kind == XSP_EVENT_BEGIN && g->hash[2] == 0);
	cr_expect(g->events[3].kind == XSP_EVENT_END &&
		  g->events[3].flags == (XSP_EVENT_SP_EXACT | XSP_EVENT_SECTIONS));
	cr_expect(g->events[4].kind == XSP_EVENT_END && g->events[4].time_ns == s.now + 5);
	cr_expect_eq(g->begin_ns[3], s.now + 1);
	cr_expect_eq(g->begin_ns[4], s.now + 2);
	cr_expect_eq(bad(&s), 1);
	/* more than are kept; two are known */
	for (uint64_t n = 0x100; n < 0x100 + 70000; n++) {
		put_node(&s.w, XSP_EVENT_BEGIN, 0, s.now + 7, 0x7000, n);
		if (n % 20000 == 0)
			turn(&s);
	}
	turn(&s);
	cr_expect_eq(bad(&s), 1 + 70000 + 2 - 65536);
	end(&s);
}

/* ---- what callbacks tell ---- */

#define OPERATOR 4
#define NODE 3
static const char *const called_back[] = {"mm", "other", "t", "node", XSP_RING_OPERATOR};

static void tell(struct session *s, unsigned kind, unsigned flags, unsigned function, uint64_t sp,
		 uint64_t value)
{
	const uint64_t number = s->w.rings->ring[0].head++;

	put_at(&s->w, 0, number, ++s->now, sp, XSP_RING_WORD(number + 1, kind, flags, function));
	s->w.records[number % XSP_RING_SLOTS].value = value;
}

static void begin_called_back(struct session *s)
{
	begin(s, called_back, 5);
	take_ring(&s->w, 0, 1);
	add_name(&s->w, 9, "aten::mm", XSP_RING_NAME_THERE);
	add_name(&s->w, 10, XSP_RING_NODE_PREFIX "MmBackward0", XSP_RING_NAME_THERE);
}

static void expect_numbers(const struct session *s, size_t n, uint64_t number, uint64_t thread)
{
	cr_expect_eq(s->got.numbers[n][0], number, "event %zu", n);
	cr_expect_eq(s->got.numbers[n][1], thread, "event %zu", n);
}

/* An operator's counter before and after it; of a node what its own range has told, though another node was in it. */
Test(agent_rings, operators_and_nodes_of_callbacks)
{
	struct session s;

	begin_called_back(&s);
	tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED, OPERATOR, 0x9000, XSP_RING_NUMBERED(9, 5 + 1));
	tell(&s, XSP_EVENT_EXIT, XSP_RING_NUMBERS, OPERATOR, 0x9000, XSP_RING_NUMBERED(2, 6 + 1));
	for (uint64_t n = 0; n < 2; n++) {
		tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED, NODE, 0x8000 - n * 0x1000, 10);
		tell(&s, XSP_EVENT_LABEL, XSP_RING_NUMBERS, NODE, 0x7f00 - n * 0x1000,
		     XSP_RING_NUMBERED(30 + n, 40 + n + 1));
	}
	tell(&s, XSP_EVENT_EXIT, XSP_RING_NUMBERS | XSP_RING_UNWOUND, NODE, 0x7000, 0);
	tell(&s, XSP_EVENT_EXIT, XSP_RING_NUMBERS, NODE, 0x8000, 0);
	turn(&s);
	const struct got *g = &s.got;
	cr_assert_eq(g->count, 8);
	cr_expect(g->events[0].kind == XSP_EVENT_NAME && strcmp(g->text[0], "aten::mm") == 0);
	cr_expect(g->events[1].kind == XSP_EVENT_ENTRY && g->events[1].probe == 10 &&
		  g->events[1].sp == 0x9000 && g->hash[1] == g->hash[0]);
	expect_numbers(&s, 1, 5 + 1, 0 + 1);
	cr_expect(g->events[2].kind == XSP_EVENT_EXIT && g->events[2].probe == 10);
	expect_numbers(&s, 2, 6 + 1, 2 + 1);
	cr_expect(g->events[3].kind == XSP_EVENT_NAME &&
		  strcmp(g->text[3], XSP_RING_NODE_PREFIX "MmBackward0") == 0);
	cr_expect(g->events[4].kind == XSP_EVENT_ENTRY && g->events[4].probe == 9 &&
		  g->hash[4] == g->hash[3]);
	expect_numbers(&s, 4, 0, 0);
	cr_expect(g->events[6].kind == XSP_EVENT_UNWIND && g->events[6].sp == 0x7008);
	cr_expect(g->events[7].kind == XSP_EVENT_EXIT && g->events[7].sp == 0x8000);
	expect_numbers(&s, 7, 40 + 1, 30 + 1);
	cr_expect_eq(bad(&s), 0);
	end(&s);
}

/* Deeper than nodes are kept: those have no numbers, and the others theirs. Numbers of no node, and names of no place. */
Test(agent_rings, forged_callbacks)
{
	struct session s;

	begin_called_back(&s);
	tell(&s, XSP_EVENT_LABEL, XSP_RING_NUMBERS, NODE, 0x100, XSP_RING_NUMBERED(1, 1));
	tell(&s, XSP_EVENT_EXIT, XSP_RING_NUMBERS, NODE, 0x100, 0);
	tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED, OPERATOR, 0x200, UINT64_MAX);
	turn(&s);
	cr_assert_eq(s.got.count, 2);
	expect_numbers(&s, 0, 0, 0);
	cr_expect_eq(s.got.hash[1], 0);
	cr_expect_eq(xsp_agent_rings_totals(s.a).names, 1);
	for (int part = 0; part < 2; part++) {
		s.got.count = 0;
		for (uint64_t n = 0; n < 100; n++) {
			const uint64_t sp = 0x100000 - (part == 0 ? n : 99 - n) * 0x100;
			tell(&s, part == 0 ? XSP_EVENT_ENTRY : XSP_EVENT_EXIT,
			     part == 0 ? XSP_RING_PLACED : XSP_RING_NUMBERS, NODE, sp,
			     part == 0 ? 10 : 0);
			if (part == 0)
				tell(&s, XSP_EVENT_LABEL, XSP_RING_NUMBERS, NODE, sp - 8,
				     XSP_RING_NUMBERED(1, n + 1));
		}
		turn(&s);
	}
	cr_assert_eq(s.got.count, 100);
	for (size_t i = 0; i < 64; i++) /* the deepest end first */
		expect_numbers(&s, i, i < 100 - 64 ? 0 : 99 - i + 1, i < 100 - 64 ? 0 : 2);
	tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED | XSP_RING_NAMED, OPERATOR, 0x200, 9);
	tell(&s, XSP_EVENT_EXIT, XSP_RING_NUMBERS << 1, OPERATOR, 0x200, 9);
	tell(&s, XSP_EVENT_LABEL, 0, NODE, 0x200, 9);
	turn(&s);
	cr_expect_eq(bad(&s), 3);
	end(&s);
}

/* The agent has found that it does not know this PyTorch after all: what it tells later is no event. */
Test(agent_rings, callbacks_given_up)
{
	struct session s;

	begin(&s, called_back, 0);
	s.w.rings->active = XSP_RINGS_CALLBACKS;
	for (size_t i = 0; i < 5; i++)
		add_function(&s.w, called_back[i]);
	take_ring(&s.w, 0, 1);
	add_name(&s.w, 9, "aten::mm", XSP_RING_NAME_THERE);
	cr_expect(!xsp_agent_rings_has_callbacks(s.a, PID));
	xsp_agent_rings_look(s.a, PID);
	cr_expect(xsp_agent_rings_has_callbacks(s.a, PID));
	cr_expect(!xsp_agent_rings_lose_callbacks(s.a, PID));
	s.w.rings->active = 0; /* between two windows */
	cr_expect(!xsp_agent_rings_lose_callbacks(s.a, PID));
	s.w.rings->active = XSP_RINGS_UNKNOWN;
	tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED, OPERATOR, 0x9000, 9);
	turn(&s);
	cr_expect_eq(s.got.count, 2);
	cr_expect(xsp_agent_rings_lose_callbacks(s.a, PID));
	cr_expect(!xsp_agent_rings_lose_callbacks(s.a, PID), "only once");
	cr_expect(!xsp_agent_rings_has_callbacks(s.a, PID));
	s.now = xsp_now_ns();
	tell(&s, XSP_EVENT_ENTRY, XSP_RING_PLACED, OPERATOR, 0x9000, 9);
	turn(&s);
	cr_expect_eq(s.got.count, 2);
	end(&s);
}

/* The entry stays, without a name, and is counted. */
Test(agent_rings, forged_names_of_nodes)
{
	static const char text[] = "FnBackward";
	const uint64_t hash = xsp_ring_hash(text, sizeof(text) - 1);
	struct session s;

	begin(&s, nodes, 4);
	take_ring(&s.w, 0, 1);
	put_node(&s.w, XSP_EVENT_ENTRY, XSP_RING_NAMED, s.now, 0x7000, hash); /* no text */
	put_text(&s.w, text, s.now);
	put_node(&s.w, XSP_EVENT_ENTRY, XSP_RING_NAMED, s.now, 0x7000, hash + 1); /* of another */
	put_node(&s.w, XSP_EVENT_NAME, 1, s.now, 0x41, 0x41); /* the first part is missing */
	put_node(&s.w, XSP_EVENT_ENTRY, XSP_RING_NAMED, s.now, 0x7000, hash);
	put_node(&s.w, XSP_EVENT_ENTRY, 0, s.now, 0x7000, 0); /* no class */
	turn(&s);
	cr_assert_eq(s.got.count, 4);
	for (size_t i = 0; i < 4; i++)
		cr_expect(s.got.events[i].kind == XSP_EVENT_ENTRY && s.got.hash[i] == 0);
	cr_expect_eq(bad(&s), 4);
	put_node(&s.w, XSP_EVENT_NAME, XSP_RING_PARTS, s.now, 0, 0); /* a part too many */
	put_node(&s.w, XSP_EVENT_EXIT, XSP_RING_NAMED, s.now, 0x7000, 0);
	turn(&s);
	cr_expect_eq(s.got.count, 4);
	cr_expect_eq(bad(&s), 6);
	/* a text that fills all parts; and more names than are looked up */
	for (unsigned part = 0; part < XSP_RING_PARTS; part++)
		put_node(&s.w, XSP_EVENT_NAME, part, s.now, 0x7878787878787878, 0x7878787878787878);
	put_node(&s.w, XSP_EVENT_ENTRY, XSP_RING_NAMED, s.now, 0x7000, hash);
	turn(&s);
	cr_expect_eq(bad(&s), 7);
	for (uint64_t n = 1; n <= 20000; n++)
		put_node(&s.w, XSP_EVENT_ENTRY, 0, s.now, 0x7000, n);
	turn(&s);
	cr_expect_eq(bad(&s), 7 + 20000 - 8192);
	end(&s);
}

Test(agent_rings, heads_that_jump)
{
	struct session s;
	static const uint64_t heads[] = {XSP_RING_SLOTS + 9, 5, UINT64_MAX - 9, (1ULL << 63) + 100};

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	turn(&s);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		s.w.rings->ring[0].head = heads[i];
		turn(&s);
		cr_assert_eq(xsp_agent_rings_before(s.a, PID, TID, UINT64_MAX - 1), 0);
		cr_expect_eq(bad(&s), i + 1);
		s.w.rings->ring[0].head = heads[i] + 1; /* nothing there: an old serial */
		turn(&s);
		s.w.rings->ring[0].head = heads[i];
		turn(&s);
	}
	cr_expect_eq(s.got.count, 1);
	end(&s);
}

Test(agent_rings, tables_that_lie)
{
	struct session s;

	begin(&s, two, 3);
	s.w.rings->functions = UINT32_MAX;
	s.w.rings->function[3] = (struct xsp_ring_function){1, XSP_RING_TEXT - 1, 2};
	s.w.rings->function[4] = (struct xsp_ring_function){1, UINT32_MAX, 2};
	s.w.rings->function[5] = (struct xsp_ring_function){1, 0, UINT32_MAX};
	s.w.rings->function[6] = (struct xsp_ring_function){1, 0, 2};
	xsp_agent_rings_look(s.a, PID);
	take_ring(&s.w, 0, 1);
	for (unsigned i = 3; i < 7; i++)
		put(&s.w, 0, XSP_EVENT_ENTRY, 0, i, s.now, 0x7000);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, XSP_RING_FUNCTIONS, s.now, 0x7000);
	turn(&s);
	cr_expect_eq(s.got.count, 1, "the last one is \"mm\" again");
	cr_expect_eq(bad(&s), 1);
	end(&s);
}

/* Of a thread that is not the process's nothing is believed. */
Test(agent_rings, threads_of_others)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 4711);
	put(&s.w, 0, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	turn(&s);
	xsp_agent_rings_thread(s.a, PID + 1, 4711, 4711);
	turn(&s);
	cr_expect_eq(s.got.count, 0);
	take_ring(&s.w, 1, 1);
	take_ring(&s.w, 2, 1); /* two rings of one thread: one after the other */
	put(&s.w, 1, XSP_EVENT_ENTRY, 0, 0, s.now, 0x7000);
	put(&s.w, 2, XSP_EVENT_ENTRY, 0, 2, s.now + 1, 0x6000);
	turn(&s);
	cr_expect_eq(s.got.count, 1);
	turn(&s);
	cr_expect_eq(s.got.count, 2);
	cr_assert_eq(xsp_agent_rings_end(s.a, PID), 0);
	cr_expect_eq(bad(&s), 1);
	end(&s);
}

Test(agent_rings, counters_that_run_backwards)
{
	struct session s;

	begin(&s, two, 3);
	take_ring(&s.w, 0, 1);
	s.w.rings->ring[0].lost = 10;
	s.w.rings->homeless = 5;
	cr_expect_eq(xsp_agent_rings_totals(s.a).lost, 10);
	s.w.rings->ring[0].lost = 2;
	s.w.rings->homeless = 0;
	xsp_agent_rings_totals(s.a);
	s.w.rings->ring[0].lost = 3;
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(s.a);
	cr_expect_eq(t.lost, 11);
	cr_expect_eq(t.homeless, 5);
	end(&s);
}

/* ---- the file ---- */

static int open_copy(int fd)
{
	struct xsp_ring_memory *m;
	struct xsp_error err = {0};
	const int rc = xsp_ring_memory_open(fd, &m, &err);

	cr_expect(rc == 0 || err.text[0] != '\0');
	xsp_ring_memory_free(m);
	return rc;
}

Test(agent_rings, what_is_no_file_of_an_agent)
{
	struct writer w;

	cr_expect_eq(open_copy(memfd_create(XSP_RINGS_NAME, MFD_ALLOW_SEALING)), -EINVAL);
	int fd = memfd_create(XSP_RINGS_NAME, MFD_ALLOW_SEALING);
	cr_assert_eq(ftruncate(fd, (off_t)XSP_RINGS_SIZE), 0);
	cr_expect_eq(open_copy(fd), -EINVAL, "it could become smaller");
	writer_begin(&w);
	cr_expect_eq(open_copy(dup(w.fd)), 0);
	w.rings->version++;
	cr_expect_eq(open_copy(dup(w.fd)), -EPROTO);
	w.rings->magic = 0;
	w.rings->version--;
	cr_expect_eq(open_copy(dup(w.fd)), -EAGAIN, "the agent fills it, and writes this last");
	w.rings->magic = 1;
	cr_expect_eq(open_copy(dup(w.fd)), -EPROTO);
	writer_end(&w);
}

Test(agent_rings, one_recording_reads_it)
{
	char path[64];
	struct session s;

	begin(&s, two, 3);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s.w.fd);
	cr_expect_eq(open_copy(open(path, O_RDWR | O_CLOEXEC)), -EBUSY);
	cr_assert_eq(xsp_agent_rings_end(s.a, PID), 0);
	cr_expect_eq(flock(s.w.fd, LOCK_UN), 0); /* this process's own descriptor shares the lock */
	cr_expect_eq(open_copy(open(path, O_RDWR | O_CLOEXEC)), 0);
	end(&s);
}

/* ---- the clock ---- */

static void add_pair(struct xsp_tsc *t, uint64_t tsc, uint64_t ns)
{
	xsp_tsc_add(t, &(struct xsp_tsc_pair){tsc, ns, 50});
}

Test(agent_rings, times_are_between_the_pairs_around_them)
{
	struct xsp_tsc t = {0};

	cr_expect_eq(xsp_tsc_ns(&t, 5), 0);
	add_pair(&t, 1000, 500000);
	add_pair(&t, 3000, 501000); /* 0.5 ns a tick */
	add_pair(&t, 4000, 501510); /* the clock is slewed */
	cr_expect_eq(xsp_tsc_ns(&t, 1000), 500000);
	cr_expect_eq(xsp_tsc_ns(&t, 2000), 500500);
	cr_expect_eq(xsp_tsc_ns(&t, 3500), 501255);
	cr_expect(xsp_tsc_ns(&t, 4100) >= 501560 && xsp_tsc_ns(&t, 4100) <= 501562);
	cr_expect_eq(xsp_tsc_ns(&t, 0), 499497, "before the first one at the rate of all");
	add_pair(&t, 3900, 600000); /* not later */
	cr_expect_eq(t.count, 3);
	cr_expect_leq(xsp_tsc_ns(&t, UINT64_MAX), (uint64_t)INT64_MAX);
}

Test(agent_rings, many_pairs)
{
	struct xsp_tsc t = {0};

	for (uint64_t i = 1; i <= 1000; i++)
		add_pair(&t, 20000000 * i, 10000000 * i);
	cr_expect_eq(xsp_tsc_ns(&t, 20000000ULL * 1000 - 7), 10000000ULL * 1000 - 4);
	cr_expect_eq(xsp_tsc_ns(&t, 20000000 * 5), 10000000ULL * 5, "older than all that are kept");
	cr_expect_eq(t.uneven, 0);
}

Test(agent_rings, a_counter_that_changes_its_rate)
{
	struct xsp_tsc t = {0};

	for (uint64_t i = 1; i <= 200; i++)
		add_pair(&t, 20000000 * i, 10000000 * i);
	cr_expect_eq(t.uneven, 0);
	for (uint64_t i = 1; i <= 200; i++)
		add_pair(&t, 20000000ULL * 200 + 20010000 * i, 10000000 * (200 + i));
	cr_expect_gt(t.uneven, 0, "500 ppm");
}

Test(agent_rings, this_machines_counter)
{
	struct xsp_tsc t = {0};

	if (!xsp_tsc_is_even())
		cr_skip_test("it has none that is even");
	for (int i = 0; i < 5; i++) {
		const struct xsp_tsc_pair pair = xsp_tsc_read();
		xsp_tsc_add(&t, &pair);
		xsp_nap_ns(3000000);
	}
	const uint64_t before = xsp_now_ns(), ns = xsp_tsc_ns(&t, xsp_tsc_read().tsc),
		       after = xsp_now_ns();
	cr_expect(ns + 100000 >= before && ns <= after + 100000, "off by %lld ns",
		  (long long)(ns - before));
}
