/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inbound.c - code that leads to the first instructions of functions to which it does not belong.
 *
 * Nothing is decoded. Every byte that could be the opcode of a direct jump, a call or a lea counts
 * as one. What remains points slightly past the start of a function from outside it, which is rare.
 * Assembly does so, within its own object file. So in a large file only what is near counts. There
 * the surroundings of each requested function are searched, until that adds up to an eighth of the
 * code. Then all of it is searched once for displacements of four bytes (`heads`: one bit for each
 * byte of code). Those of one byte are so close to their target that each request searches for
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/search.h"
#include "target/module_private.h"

#define SPAN_MAX (UINT64_C(1) << 30) /* bytes of code */
#define BLOCK 16384U /* bytes that are read at once */
#define AHEAD 8 /* bytes that are read after an opcode */
#define REACH (UINT64_C(64) << 10) /* this far around a function is near it */
/* A one-byte jump to the first XSP_INBOUND_MAX bytes comes from at most this far. */
#define SHORT_REACH 256U
#define WHOLE_MAX (UINT64_C(8) << 20) /* this much code is searched whole at once */

struct search {
	struct xsp_module *m;
	struct xsp_inbound_list *into;
	void (*mark)(const uint8_t *restrict b, uint8_t *restrict marks);
	int (*look)(struct search *s, const uint8_t *b, uint64_t addr);
	uint64_t low, high; /* of the code */
	uint64_t *starts; /* of functions and FDEs, ascending, each once; then UINT64_MAX */
	size_t start_count;
	uint8_t *heads;
	size_t current; /* the start at or before the current byte */
};

static XSP_ORDER(compare_addresses, uint64_t, XSP_COMPARE(*x, *y));

static XSP_ORDER(compare_targets, struct xsp_inbound, XSP_RISING(target));

static int find_starts(struct search *s)
{
	const struct xsp_symbol *symbols;
	size_t count, n = 0;
	uint64_t addr;
	int ret = xsp_module_symbols(s->m, &symbols, &count, NULL);

	if (ret < 0)
		return ret;
	s->starts = calloc(count + s->m->eh.count + 1, sizeof(*s->starts));
	if (s->starts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		s->starts[n++] = symbols[i].addr;
	for (size_t i = 0; xsp_eh_frame_start(&s->m->eh, &s->m->elf, i, &addr) == 0; i++)
		s->starts[n++] = addr;
	qsort(s->starts, n, sizeof(*s->starts), compare_addresses);
	for (size_t i = 0; i < n; i++)
		if (s->start_count == 0 || s->starts[s->start_count - 1] != s->starts[i])
			s->starts[s->start_count++] = s->starts[i];
	s->starts[s->start_count] = UINT64_MAX;
	return 0;
}

static int mark_heads(struct search *s)
{
	s->heads = calloc((s->high - s->low) / 8 + 1, 1);
	if (s->heads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < s->start_count; i++) {
		const uint64_t addr = s->starts[i], next = s->starts[i + 1];
		if (addr < s->low || addr >= s->high)
			continue;
		uint64_t at = addr + 1 - s->low;
		uint64_t end = next - addr < XSP_INBOUND_MAX ? next : addr + XSP_INBOUND_MAX;
		end = (end < s->high ? end : s->high) - s->low;
		while (at < end) {
			const bool whole = at % 8 == 0 && end - at >= 8;
			s->heads[at / 8] |= (uint8_t)(whole ? 0xff : 1U << at % 8);
			at += whole ? 8 : 1;
		}
	}
	return 0;
}

/*
 * Marks the bytes of a block that could begin an opcode of interest. The compiler vectorises these
 * loops: before that, a check of each byte in turn took most of the time to read a large library.
 */
static void mark_opcodes(const uint8_t *restrict b, uint8_t *restrict marks)
{
	for (size_t i = 0; i < BLOCK; i++)
		marks[i] = ((b[i] & 0xfe) == 0xe8) | (b[i] == 0xeb) | ((b[i] & 0xf0) == 0x70) |
			   ((b[i] & 0xfc) == 0xe0) | (b[i] == 0x0f) | (b[i] == 0x8d);
}

/* Only opcodes with four-byte displacements whose upper two bytes are all sign: within REACH. */
static void mark_near_opcodes(const uint8_t *restrict b, uint8_t *restrict marks)
{
	for (size_t i = 0; i < BLOCK; i++)
		marks[i] = (((b[i] & 0xfe) == 0xe8) & (b[i + 3] == b[i + 4]) &
			    ((uint8_t)(b[i + 4] + 1) < 2)) |
			   (((b[i] == 0x0f) | (b[i] == 0x8d)) & (b[i + 4] == b[i + 5]) &
			    ((uint8_t)(b[i + 5] + 1) < 2));
}

/* The size of the displacement, and the number of bytes before it; 0: no opcode of interest. */
static unsigned displacement(const uint8_t *b, unsigned *at)
{
	*at = 1;
	if (b[0] == 0xeb || (b[0] & 0xf0) == 0x70 || (b[0] & 0xfc) == 0xe0)
		return 1;
	if (b[0] == 0xe8 || b[0] == 0xe9)
		return 4;
	*at = 2;
	return (b[0] == 0x0f && (b[1] & 0xf0) == 0x80) || (b[0] == 0x8d && (b[1] & 0xc7) == 0x05)
		       ? 4
		       : 0;
}

static int add(struct xsp_inbound_list *into, struct xsp_inbound one)
{
	return XSP_APPEND(into->list, into->capacity, into->count, one);
}

/* The target, and the end of the instruction; false: no opcode of interest. */
static bool leads(const uint8_t *b, uint64_t addr, uint64_t *target, uint64_t *end)
{
	unsigned at, size = displacement(b, &at);
	int32_t far;

	if (size == 0)
		return false;
	memcpy(&far, b + at, sizeof(far));
	*end = addr + at + size;
	*target = *end + (uint64_t)(int64_t)(size == 1 ? (int8_t)b[at] : far);
	return true;
}

static int look_at(struct search *s, const uint8_t *b, uint64_t addr)
{
	uint64_t target, end;

	if (!leads(b, addr, &target, &end))
		return 0;
	uint64_t offset = target - s->low;
	if (offset >= s->high - s->low || !(s->heads[offset / 8] & 1U << offset % 8))
		return 0;
	while (s->starts[s->current + 1] <= addr)
		s->current++;
	uint64_t start = s->starts[s->current];
	if (start > addr) /* code that nothing describes */
		start = addr;
	else if (target >= start && target < s->starts[s->current + 1])
		return 0;
	return add(s->into, (struct xsp_inbound){target, addr, end, start});
}

/* Searches the code from `at` to `end`, within one segment. */
static int search_code(struct search *s, uint64_t at, uint64_t end)
{
	uint8_t bytes[BLOCK + AHEAD], marks[BLOCK];
	int ret = 0;

	while (ret == 0 && at < end) {
		memset(bytes, 0, sizeof(bytes));
		long got = xsp_module_read(s->m, at, bytes, sizeof(bytes));
		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		size_t n = (size_t)got > AHEAD ? (size_t)got - AHEAD : (size_t)got;
		n = n < end - at ? n : (size_t)(end - at);
		s->mark(bytes, marks);
		for (size_t i = 0; ret == 0 && i < n; i++) {
			uint64_t eight;
			memcpy(&eight, marks + (i & ~(size_t)7), sizeof(eight));
			if (eight == 0)
				i |= 7;
			else if (marks[i])
				ret = s->look(s, bytes + i, at + i);
		}
		at += n;
	}
	return ret;
}

static int search_segment(struct search *s, const struct xsp_load *load)
{
	s->current = 0;
	return search_code(s, load->addr, load->addr + load->size);
}

static uint64_t code_size(const struct xsp_module *m)
{
	struct xsp_load load;
	uint64_t size = 0;

	for (size_t i = 0; xsp_module_load(m, i, &load) == 0; i++)
		size += load.executable ? load.size : 0;
	return size;
}

/* Searches all of the code. Files whose segments overlap are refused. */
static int search_all(struct search *s)
{
	struct xsp_load load;
	int ret = find_starts(s);

	s->low = UINT64_MAX;
	for (size_t i = 0; xsp_module_load(s->m, i, &load) == 0; i++) {
		if (!load.executable || load.size == 0)
			continue;
		s->low = load.addr < s->low ? load.addr : s->low;
		s->high = load.addr + load.size > s->high ? load.addr + load.size : s->high;
	}
	if (ret < 0 || s->low >= s->high || s->start_count == 0)
		return ret;
	if (s->high - s->low > SPAN_MAX || code_size(s->m) > s->high - s->low)
		return -E2BIG;
	ret = mark_heads(s);
	for (size_t i = 0; ret == 0 && xsp_module_load(s->m, i, &load) == 0; i++)
		if (load.executable)
			ret = search_segment(s, &load);
	return ret;
}

/* ---- near one function ---- */

/* The last start of a function or of an FDE at or before the address; the address if none is
 * known. */
static uint64_t start_before(struct xsp_module *m, uint64_t addr)
{
	const struct xsp_symbol *symbols;
	struct xsp_code_range range;
	size_t count = 0, low = 0;
	uint64_t start = addr;
	bool known = xsp_module_symbols(m, &symbols, &count, NULL) == 0;

	XSP_LOWER_BOUND(low, known ? count : 0, i, symbols[i].addr <= addr);
	if (low > 0)
		start = symbols[low - 1].addr;
	if (xsp_module_code_range(m, addr, &range) == 0 && (low == 0 || range.addr > start))
		start = range.addr;
	return start;
}

/* `low` and `high` are those of the request, `starts` is where the function begins. */
static int look_near(struct search *s, const uint8_t *b, uint64_t addr)
{
	uint64_t target, end;

	if (!leads(b, addr, &target, &end) || target <= s->low || target > s->high ||
	    start_before(s->m, target) != *s->starts)
		return 0;
	uint64_t start = start_before(s->m, addr);
	return start == *s->starts ? 0
				   : add(s->into, (struct xsp_inbound){target, addr, end, start});
}

static int search_near(struct xsp_module *m, uint64_t low, uint64_t high, uint64_t reach)
{
	uint64_t own = start_before(m, low);
	struct search s = {.m = m,
			   .into = &m->inbound.answer,
			   .mark = mark_opcodes,
			   .look = look_near,
			   .low = low,
			   .high = high,
			   .starts = &own};
	struct xsp_load load;
	int ret = 0;

	for (size_t i = 0; ret == 0 && xsp_module_load(m, i, &load) == 0; i++) {
		if (!load.executable || low < load.addr || low - load.addr >= load.size)
			continue;
		uint64_t from = low - load.addr > reach ? low - reach : load.addr;
		uint64_t left = load.addr + load.size - low;
		ret = search_code(&s, from, low + (left < reach ? left : reach));
	}
	m->inbound.searched += 2 * reach;
	return ret;
}

/* ---- all ---- */

static int prepare(struct xsp_module *m, bool large)
{
	struct search s = {.m = m,
			   .into = &m->inbound.found,
			   .mark = large ? mark_near_opcodes : mark_opcodes,
			   .look = look_at};
	uint64_t addr;

	if (m->inbound.state != 0)
		return m->inbound.state < 0 ? m->inbound.state : 0;
	(void)xsp_eh_frame_start(&m->eh, &m->elf, 0, &addr); /* counts them */
	int ret = search_all(&s);
	XSP_SORT(m->inbound.found.list, m->inbound.found.count, compare_targets);
	free(s.starts);
	free(s.heads);
	m->inbound.state = ret < 0 ? ret : 1;
	return ret;
}

static int look_up(struct xsp_module *m, uint64_t low, uint64_t high)
{
	const struct xsp_inbound_list *found = &m->inbound.found;
	size_t at = 0;
	int ret = 0;

	XSP_LOWER_BOUND(at, found->count, i, found->list[i].target <= low);
	for (; ret == 0 && at < found->count && found->list[at].target <= high; at++)
		ret = add(&m->inbound.answer, found->list[at]);
	return ret;
}

long xsp_module_inbound(struct xsp_module *m, uint64_t low, uint64_t high,
			const struct xsp_inbound **out)
{
	struct xsp_inbound_index *x = &m->inbound;
	const uint64_t size = code_size(m);
	const bool large = size > WHOLE_MAX;
	int ret;

	x->answer.count = 0;
	*out = x->answer.list;
	if (m->elf.machine != EM_X86_64)
		return 0;
	if (large && x->state == 0 && x->searched < size / 8) {
		ret = search_near(m, low, high, REACH);
	} else {
		ret = prepare(m, large);
		if (ret == 0)
			ret = look_up(m, low, high);
		if (ret == 0 && large)
			ret = search_near(m, low, high, SHORT_REACH);
	}
	if (ret < 0)
		return ret;
	XSP_SORT(x->answer.list, x->answer.count, compare_targets);
	*out = x->answer.list;
	return (long)x->answer.count;
}
