/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/codes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rows/tally.h"

#define CODES_MAX (1U << 15)
#define GONE_MAX 1024 /* the latest of those that are gone */
#define CHECKED_NS 10000000ULL /* a code object checked so recently still exists */
#define CHECKS_A_TURN 64
/*
 * So many a second: a program with many of them, or with lies about them, must not delay other reads. It counts new
 * code objects, one more for each 4 KiB of a table of lines, and incomplete reads several times, unless the process has
 * ended.
 */
#define CODES_A_SECOND 10000
#define FAILED_READS 16
#define LINES_BYTES (64U << 20) /* of all tables of lines */

struct known {
	struct xsp_python_code code;
	uint64_t seen_ns; /* it lived */
	bool in_stacks; /* that were recorded */
	uint64_t until_ns; /* of one that is gone: until then its address meant it */
};

struct xsp_codes {
	XSP_TALLY(struct known) living; /* by address */
	size_t next; /* the one to check */
	struct known *gone; /* a ring; NULL: none so far */
	size_t gone_next;
	struct xsp_u64map gone_at; /* address → index in gone */
	size_t lines_bytes;
	struct xsp_allowance reads, line_reads;
	bool went;
	struct xsp_codes_totals totals;
};

bool xsp_allowance_left(struct xsp_allowance *a, uint64_t a_second)
{
	const uint64_t now = xsp_now_ns();

	if (now - a->since_ns > 1000000000ULL)
		*a = (struct xsp_allowance){a_second, now};
	return a->left > 0;
}

void xsp_allowance_take(struct xsp_allowance *a, uint64_t reads)
{
	a->left -= reads < a->left ? reads : a->left;
}

int xsp_codes_new(struct xsp_codes **out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -ENOMEM;
}

void xsp_codes_free(struct xsp_codes *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->living.count; i++)
		xsp_python_code_clear(&c->living.rows[i].code);
	for (size_t i = 0; c->gone != NULL && i < GONE_MAX; i++)
		xsp_python_code_clear(&c->gone[i].code);
	xsp_tally_free(&c->living);
	xsp_u64map_free(&c->gone_at);
	free(c->gone);
	free(c);
}

/* ---- those that are gone ---- */

static void forget_gone(struct xsp_codes *c, struct known *k)
{
	const uint32_t *at = xsp_u64map_get(&c->gone_at, k->code.address);

	if (at != NULL && &c->gone[*at] == k)
		xsp_u64map_remove(&c->gone_at, k->code.address);
	c->lines_bytes -= k->code.lines_size;
	xsp_python_code_clear(&k->code);
	*k = (struct known){0};
}

/* Keeps it for stacks that were recorded before. */
static void keep_gone(struct xsp_codes *c, const struct known *k, uint64_t now)
{
	if (c->gone == NULL)
		c->gone = calloc(GONE_MAX, sizeof(*c->gone));
	const uint32_t at = (uint32_t)(c->gone_next++ % GONE_MAX);
	if (c->gone != NULL)
		forget_gone(c, &c->gone[at]);
	if (c->gone == NULL || xsp_u64map_set(&c->gone_at, k->code.address, at) < 0) {
		struct known lost = *k;
		c->lines_bytes -= lost.code.lines_size;
		xsp_python_code_clear(&lost.code);
		return;
	}
	c->gone[at] = *k;
	c->gone[at].until_ns =
		now - k->seen_ns < XSP_CODES_LIVES_NS ? now : k->seen_ns + XSP_CODES_LIVES_NS;
}

static struct known *gone_at(const struct xsp_codes *c, uint64_t address)
{
	const uint32_t *at = xsp_u64map_get(&c->gone_at, address);

	return at != NULL ? &c->gone[*at] : NULL;
}

static void take_out(struct xsp_codes *c, uint32_t index, uint64_t now)
{
	struct known *at = &c->living.rows[index], *last = &c->living.rows[--c->living.count];
	const struct known k = *at;

	xsp_tally_forget(&c->living, k.code.address);
	if (at != last) {
		*at = *last;
		xsp_tally_alias(&c->living, at->code.address, at);
	}
	keep_gone(c, &k, now);
	c->totals.gone++;
	c->went |= k.in_stacks;
}

/* ---- those that live ---- */

static int read_new(struct xsp_codes *c, struct xsp_python *p, uint64_t address, uint64_t now,
		    struct known **out)
{
	uint64_t word;

	if (c->living.count >= CODES_MAX || !xsp_allowance_left(&c->reads, CODES_A_SECOND))
		return -EIO;
	struct known k = {.seen_ns = now};
	int rc = xsp_python_code_read(p, address, &k.code);
	if (rc != -EIO)
		xsp_allowance_take(&c->reads, 1 + k.code.lines_size / 4096);
	else if (xsp_python_read(p, p->runtime, &word, sizeof(word)) == 0)
		xsp_allowance_take(&c->reads, FAILED_READS);
	if (rc < 0)
		return rc == -ESRCH ? -EIO : rc;
	if (k.code.lines_size > LINES_BYTES - c->lines_bytes)
		rc = -EIO;
	else if ((*out = xsp_tally_row(&c->living, address, &k)) == NULL)
		rc = -ENOMEM;
	if (rc < 0) {
		xsp_python_code_clear(&k.code);
		return rc;
	}
	c->lines_bytes += k.code.lines_size;
	c->totals.read++;
	return 0;
}

/* The one that is there now; the one that was there before goes to those that are gone. */
static int read_now(struct xsp_codes *c, struct xsp_python *p, uint64_t address, uint64_t time_ns,
		    struct known **out)
{
	const uint64_t now = xsp_now_ns();
	struct known *k = xsp_tally_find(&c->living, address);

	*out = k;
	if (k != NULL && (time_ns <= k->seen_ns || now - k->seen_ns <= CHECKED_NS))
		return 0;
	int there = k != NULL ? xsp_python_code_is_there(p, &k->code) : 0;
	if (there == 1) {
		k->seen_ns = now;
		return 0;
	}
	if (k != NULL && there < 0) /* the process is gone */
		return xsp_codes_lived(k->seen_ns, time_ns) ? 0 : -EIO;
	if (k != NULL)
		take_out(c, xsp_tally_index(&c->living, k), now);
	int rc = read_new(c, p, address, now, out);
	struct known *before = k != NULL && rc == 0 ? gone_at(c, address) : NULL;
	if (before != NULL) /* in between, either may have been there: the nearer one */
		before->until_ns = before->seen_ns + (now - before->seen_ns) / 2;
	return rc;
}

int xsp_codes_at(struct xsp_codes *c, struct xsp_python *p, uint64_t address, uint64_t time_ns,
		 const struct xsp_python_code **out, bool *fresh)
{
	const struct known *gone = gone_at(c, address);
	struct known *k = NULL;
	int rc = 0;

	*fresh = false;
	if (gone == NULL || time_ns > gone->until_ns) {
		rc = read_now(c, p, address, time_ns, &k);
		gone = gone_at(c, address);
	}
	if (gone != NULL && time_ns <= gone->until_ns && rc != -ENOMEM) {
		*out = &gone->code;
		return 0;
	}
	if (rc < 0)
		return rc;
	*fresh = !k->in_stacks;
	k->in_stacks = true;
	*out = &k->code;
	return 0;
}

void xsp_codes_meet(struct xsp_codes *c, struct xsp_python *p, uint64_t address)
{
	struct known *k;

	read_now(c, p, address, UINT64_MAX, &k);
}

int xsp_codes_count_lines(struct xsp_codes *c, const struct xsp_python_code *code)
{
	if (!xsp_allowance_left(&c->line_reads, CODES_A_SECOND))
		return -EIO;
	xsp_allowance_take(&c->line_reads, code->lines_size / 4096);
	return 0;
}

void xsp_codes_check(struct xsp_codes *c, const struct xsp_python *p)
{
	const uint64_t now = xsp_now_ns();

	for (size_t n = 0; n < CHECKS_A_TURN && n < c->living.count; n++) {
		const uint32_t at = (uint32_t)(c->next++ % c->living.count);
		struct known *k = &c->living.rows[at];
		if (now - k->seen_ns < CHECKED_NS)
			continue;
		/* a process that has just ended is not readable */
		int there = xsp_python_code_is_there(p, &k->code);
		if (there == 0)
			take_out(c, at, now);
		else if (there == 1)
			k->seen_ns = now;
	}
}

bool xsp_codes_went(struct xsp_codes *c)
{
	const bool went = c->went;

	c->went = false;
	return went;
}

bool xsp_codes_knows(const struct xsp_codes *c, uint64_t address)
{
	return xsp_tally_find(&c->living, address) != NULL;
}

struct xsp_codes_totals xsp_codes_totals(const struct xsp_codes *c)
{
	return c->totals;
}
