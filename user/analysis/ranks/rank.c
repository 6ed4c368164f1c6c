/* SPDX-License-Identifier: BSD-2-Clause */
/* rank.c - what is kept of one rank of a job, and the names of all ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/ranks/ranks_private.h"
#include "base/rows/search.h"
#include "base/text.h"

void xsp_ranks_free_gpu(struct rank *k)
{
	for (size_t i = 0; i < k->streams.count; i++)
		free(k->streams.at[i].stretches.at);
	free(k->streams.at);
	free(k->gpu_calls.at);
	free(k->gpu_kernels.at);
	k->streams.at = NULL;
	k->gpu_calls.at = NULL;
	k->gpu_kernels.at = NULL;
	k->streams.count = k->gpu_calls.count = k->gpu_kernels.count = 0;
}

void xsp_ranks_free_rank(struct rank *k)
{
	for (size_t i = 0; i < k->groups.count; i++)
		free(k->groups.at[i].seq.at);
	xsp_u64map_free(&k->sum_of);
	free(k->queued.at);
	free(k->runs.at);
	xsp_ranks_free_gpu(k);
	free(k->stood.at);
	free(k->blocked.at);
	free(k->early.at);
	free(k->held.at);
	free(k->groups.at);
	free(k->sums.at);
	free(k->steps.at);
	free(k->late.at);
}

long xsp_ranks_name(struct xsp_ranks *j, const char *text)
{
	const size_t length = strlen(text);
	uint64_t key = xsp_text_hash(text, length);
	const uint32_t *at;

	/* Another text with the same hash gets the next free key. */
	while ((at = xsp_u64map_get(&j->name_of, key)) != NULL && strcmp(j->names[*at], text) != 0)
		key++;
	if (at != NULL)
		return *at;
	char *copy = xsp_arena_copy(&j->text, text, length);
	if (copy == NULL || xsp_grow(&j->names, &j->name_capacity, j->name_count + 1) < 0 ||
	    xsp_u64map_set(&j->name_of, key, (uint32_t)j->name_count) < 0)
		return -ENOMEM;
	j->names[j->name_count] = copy;
	return (long)j->name_count++;
}

struct operator_sum *xsp_ranks_sum(struct rank *k, uint32_t name, bool make)
{
	if (!make) {
		const uint32_t *at = xsp_u64map_get(&k->sum_of, name);
		return at != NULL ? &k->sums.at[*at] : NULL;
	}
	return xsp_u64map_element(&k->sum_of, name, &k->sums.at, &k->sums.capacity, &k->sums.count,
				  &(struct operator_sum){.name = name});
}

int xsp_ranks_add_instance(struct rank *k, uint32_t group, const struct instance *i)
{
	struct group *g = &k->groups.at[group];

	return PUT(g->seq, *i);
}

int xsp_ranks_order(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int xsp_ranks_order_keys(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return xsp_ranks_order(&x->ns, &y->ns);
}

int64_t xsp_ranks_median(int64_t *values, size_t count)
{
	if (count == 0)
		return 0;
	qsort(values, count, sizeof(*values), xsp_ranks_order);
	const int64_t low = values[(count - 1) / 2], high = values[count / 2];
	return low + (high - low) / 2;
}

size_t xsp_ranks_merge(struct interval *all, size_t count)
{
	size_t kept = 0;

	if (count == 0)
		return 0;
	qsort(all, count, sizeof(*all), xsp_ranks_order);
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
			k->steps.at[i].start_ns <= ns); /* the first step that begins later */
	return low > 0 && ns < k->steps.at[low - 1].end_ns ? &k->steps.at[low - 1] : NULL;
}

void xsp_ranks_title(const struct rank *k, char *out, size_t size)
{
	int n = k->number >= 0 ? snprintf(out, size, "rank %ld", k->number)
			       : snprintf(out, size, "process %u", k->display_pid);

	if (k->host[0] != '\0' && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " (%s)", k->host);
}
