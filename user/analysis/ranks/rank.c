/* SPDX-License-Identifier: BSD-2-Clause */
/* rank.c - what is kept of one rank of a job, and the names of all ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "base/rows/order.h"
#include "base/rows/search.h"
#include "base/text.h"

#define LINES_MOST 65536U /* of a rank */

void xsp_ranks_free_gpu(struct rank *k)
{
	for (size_t i = 0; i < k->streams.count; i++)
		free(k->streams.rows[i].stretches.rows);
	free(k->streams.rows);
	free(k->gpu_calls.rows);
	free(k->gpu_kernels.rows);
	k->streams.rows = NULL;
	k->gpu_calls.rows = NULL;
	k->gpu_kernels.rows = NULL;
	k->streams.count = k->gpu_calls.count = k->gpu_kernels.count = 0;
}

void xsp_ranks_free_rank(struct rank *k)
{
	for (size_t i = 0; i < k->groups.count; i++)
		free(k->groups.rows[i].seq.rows);
	free(k->queued.rows);
	free(k->runs.rows);
	xsp_ranks_free_gpu(k);
	free(k->stood.rows);
	free(k->blocked.rows);
	free(k->early.rows);
	free(k->held.rows);
	free(k->groups.rows);
	xsp_tally_free(&k->sums);
	xsp_tally_free(&k->lines);
	free(k->steps.rows);
	xsp_tally_free(&k->late);
}

long xsp_ranks_name(struct xsp_ranks *j, const char *text)
{
	const size_t length = strlen(text);
	uint64_t key = xsp_text_hash(text, length);
	const char *const *known;

	/* Another text with the same hash gets the next free key. */
	while ((known = xsp_tally_find(&j->names, key)) != NULL && strcmp(*known, text) != 0)
		key++;
	if (known == NULL) {
		const char *copy = xsp_arena_copy(&j->text, text, length);
		known = copy != NULL ? xsp_tally_row(&j->names, key, &copy) : NULL;
	}
	return known != NULL ? (long)xsp_tally_index(&j->names, known) : -ENOMEM;
}

struct operator_sum *xsp_ranks_sum(struct rank *k, uint32_t name, bool make)
{
	return make ? xsp_tally_row(&k->sums, name, &(struct operator_sum){.name = name})
		    : xsp_tally_find(&k->sums, name);
}

struct line_sum *xsp_ranks_line(struct rank *k, uint32_t line, uint32_t in)
{
	return xsp_tally_find(&k->lines, xsp_u64_pair(line, in));
}

int xsp_ranks_add_line(struct rank *k, const struct line_sum *part)
{
	const struct line_sum none = {.line = part->line, .in = part->in};

	k->lines.tally.most = LINES_MOST;
	struct line_sum *sum = xsp_tally_row(&k->lines, xsp_u64_pair(part->line, part->in), &none);
	if (sum == NULL)
		return k->lines.tally.error;
	sum->ns += part->ns;
	return 0;
}

int xsp_ranks_add_instance(struct rank *k, uint32_t group, const struct instance *i)
{
	struct group *g = &k->groups.rows[group];

	return XSP_PUT(&g->seq, *i);
}

XSP_ORDER(xsp_ranks_order, int64_t, XSP_COMPARE(*x, *y))

XSP_ORDER(xsp_ranks_order_keys, struct keyed, XSP_RISING(key) ?: XSP_RISING(ns))

int64_t xsp_ranks_median(int64_t *values, size_t count)
{
	if (count == 0)
		return 0;
	XSP_SORT(values, count, xsp_ranks_order);
	const int64_t low = values[(count - 1) / 2], high = values[count / 2];
	return low + (high - low) / 2;
}

size_t xsp_ranks_merge(struct interval *all, size_t count)
{
	size_t kept = 0;

	if (count == 0)
		return 0;
	XSP_SORT(all, count, xsp_ranks_order);
	for (size_t i = 1; i < count; i++) {
		struct interval *last = &all[kept];
		if (all[i].start_ns > last->end_ns)
			all[++kept] = all[i];
		else if (all[i].end_ns > last->end_ns)
			last->end_ns = all[i].end_ns;
	}
	return kept + 1;
}

struct rank_step *xsp_ranks_step_at(const struct rank *k, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, k->steps.count, i,
			k->steps.rows[i].start_ns <= ns); /* the first step that begins later */
	return low > 0 && ns < k->steps.rows[low - 1].end_ns ? &k->steps.rows[low - 1] : NULL;
}

void xsp_ranks_title(const struct rank *k, char *out, size_t size)
{
	if (k->number >= 0)
		snprintf(out, size, "rank %ld", k->number);
	else
		snprintf(out, size, "process %u", k->display_pid);
	if (k->host[0] != '\0')
		xsp_join(out, size, " ", "(%s)", k->host);
}
