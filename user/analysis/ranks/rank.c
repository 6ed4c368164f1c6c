/* SPDX-License-Identifier: BSD-2-Clause */
/* rank.c - one rank of a job, and the names of all: what is kept of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "base/search.h"
#include "base/text.h"

void xsp_ranks_free_gpu(struct rank *k)
{
	for (size_t i = 0; i < k->streams.count; i++)
		free(k->streams.rows[i].stretches.rows);
	XSP_FREE(&k->streams);
	XSP_FREE(&k->gpu_calls);
	XSP_FREE(&k->gpu_kernels);
}

void xsp_ranks_free_rank(struct rank *k)
{
	for (size_t i = 0; i < k->groups.count; i++)
		free(k->groups.rows[i].seq);
	free(k->queued.rows);
	free(k->runs.rows);
	xsp_ranks_free_gpu(k);
	free(k->stood.rows);
	free(k->blocked.rows);
	free(k->early.rows);
	free(k->held.rows);
	free(k->groups.rows);
	xsp_tally_free(&k->sums);
	free(k->steps);
	xsp_tally_free(&k->late);
}

long xsp_ranks_name(struct xsp_ranks *j, const char *text)
{
	const size_t length = strlen(text);
	uint64_t key = xsp_text_hash(text, length);
	const char *const *known;

	/* another text of the same hash has the next free key */
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

int xsp_ranks_add_instance(struct rank *k, uint32_t group, const struct instance *i)
{
	struct group *g = &k->groups.rows[group];

	return XSP_APPEND(g->seq, g->capacity, g->count, *i);
}

static XSP_ORDER(order_intervals, struct interval, XSP_RISING(start_ns));

void xsp_ranks_merge(struct intervals *all)
{
	size_t kept = 0;

	XSP_SORT(all->rows, all->count, order_intervals);
	for (size_t i = 1; i < all->count; i++) {
		struct interval *last = &all->rows[kept], *next = &all->rows[i];
		if (next->start_ns > last->end_ns)
			all->rows[++kept] = *next;
		else if (next->end_ns > last->end_ns)
			last->end_ns = next->end_ns;
	}
	all->count = all->count > 0 ? kept + 1 : 0;
}

struct rank_step *xsp_ranks_step_at(const struct rank *k, int64_t ns)
{
	size_t low = 0;

	XSP_LOWER_BOUND(low, k->step_count, i,
			k->steps[i].start_ns <= ns); /* the first that begins later */
	return low > 0 && ns < k->steps[low - 1].end_ns ? &k->steps[low - 1] : NULL;
}

void xsp_ranks_title(const struct rank *k, char *out, size_t size)
{
	int n = k->number >= 0 ? snprintf(out, size, "rank %ld", k->number)
			       : snprintf(out, size, "process %u", k->display_pid);

	if (k->host[0] != '\0' && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " (%s)", k->host);
}
