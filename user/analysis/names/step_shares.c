/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/step_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/u64map.h"

struct shares {
	struct xsp_step_share *list;
	size_t count, capacity;
};

struct thread {
	struct xsp_u64map index_of; /* key → index in both */
	struct shares now; /* in the step at hand */
	struct shares sums; /* in all that count */
	uint32_t *touched; /* indices that have calls in the step at hand */
	size_t touched_count, touched_capacity;
	struct shares first[XSP_STEPS_FIRST];
	size_t first_count, judged;
};

struct xsp_step_shares {
	struct thread *threads; /* by index */
	size_t capacity;
	struct shares step; /* of the last one that was judged */
};

int xsp_step_shares_new(struct xsp_step_shares **out)
{
	*out = calloc(1, sizeof(**out));
	return *out != NULL ? 0 : -ENOMEM;
}

static void clear(struct xsp_step_shares *s)
{
	for (size_t i = 0; i < s->capacity; i++) {
		struct thread *t = &s->threads[i];
		for (size_t n = 0; n < t->first_count; n++)
			free(t->first[n].list);
		xsp_u64map_free(&t->index_of);
		free(t->now.list);
		free(t->sums.list);
		free(t->touched);
	}
	free(s->threads);
	free(s->step.list);
	*s = (struct xsp_step_shares){.capacity = 0};
}

void xsp_step_shares_free(struct xsp_step_shares *s)
{
	if (s != NULL)
		clear(s);
	free(s);
}

/* NULL: out of memory. */
static struct thread *thread_at(struct xsp_step_shares *s, uint32_t index)
{
	return xsp_grow_zeroed(&s->threads, &s->capacity, (size_t)index + 1) < 0
		       ? NULL
		       : &s->threads[index];
}

static int index_of(struct thread *t, uint32_t key, uint32_t *out)
{
	const uint32_t *at = xsp_u64map_get(&t->index_of, key);
	const struct xsp_step_share none = {.key = key};

	*out = at != NULL ? *at : (uint32_t)t->now.count;
	if (at != NULL)
		return 0;
	if (xsp_u64map_set(&t->index_of, key, *out) < 0 ||
	    XSP_APPEND(t->now.list, t->now.capacity, t->now.count, none) < 0)
		return -ENOMEM;
	return XSP_APPEND(t->sums.list, t->sums.capacity, t->sums.count, none);
}

int xsp_step_shares_add(struct xsp_step_shares *s, const struct xsp_span *span, uint32_t thread,
			uint32_t key, uint64_t ns)
{
	struct thread *t = thread_at(s, thread);
	uint32_t at;

	if (t == NULL || index_of(t, key, &at) < 0)
		return -ENOMEM;
	struct xsp_step_share *now = &t->now.list[at];
	now->ns += xsp_span_has_duration(span) ? ns : 0;
	return now->calls++ > 0 ? 0
				: XSP_APPEND(t->touched, t->touched_capacity, t->touched_count, at);
}

static void begin_anew(struct thread *t)
{
	for (size_t i = 0; i < t->touched_count; i++)
		t->now.list[t->touched[i]].calls = t->now.list[t->touched[i]].ns = 0;
	t->touched_count = 0;
}

/* Those of the step at hand. */
static int take(const struct thread *t, struct shares *out)
{
	out->count = 0;
	if (xsp_grow(&out->list, &out->capacity, t->touched_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < t->touched_count; i++)
		out->list[out->count++] = t->now.list[t->touched[i]];
	return 0;
}

static int add_up(struct thread *t, const struct shares *more)
{
	for (size_t i = 0; i < more->count; i++) {
		uint32_t at;
		if (index_of(t, more->list[i].key, &at) < 0)
			return -ENOMEM;
		t->sums.list[at].calls += more->list[i].calls;
		t->sums.list[at].ns += more->list[i].ns;
	}
	return 0;
}

static int judge(struct xsp_step_shares *s, struct thread *t, const struct xsp_step *step,
		 struct shares *shares)
{
	int rc = 0;

	*shares = s->step;
	if (step->first && t->judged < t->first_count) {
		*shares = t->first[t->judged++];
	} else {
		rc = take(t, &s->step);
		*shares = s->step;
		begin_anew(t);
	}
	return rc == 0 && step->news == XSP_STEP_COUNTS ? add_up(t, shares) : rc;
}

int xsp_step_shares_step(struct xsp_step_shares *s, const struct xsp_step *step,
			 const struct xsp_step_share **out, size_t *count)
{
	struct shares shares = {.count = 0};
	int rc = 0;

	*out = NULL;
	*count = 0;
	if (step->news == XSP_STEP_FORGET)
		clear(s);
	if (step->news == XSP_STEP_FORGET || step->news == XSP_STEP_UNFOLLOWED)
		return 0;
	struct thread *t = thread_at(s, step->thread);
	if (t == NULL)
		return -ENOMEM;
	if (step->news == XSP_STEP_COUNTS || step->news == XSP_STEP_WARM_UP) {
		rc = judge(s, t, step, &shares);
		*out = shares.list;
		*count = shares.count;
		return rc;
	}
	if (step->news == XSP_STEP_ENDED && !step->first) /* it is judged next */
		return 0;
	if (step->news == XSP_STEP_ENDED && t->first_count < XSP_STEPS_FIRST)
		rc = take(t, &t->first[t->first_count++]);
	begin_anew(t);
	return rc;
}

uint64_t xsp_step_shares_calls(const struct xsp_step_shares *s, uint32_t key, uint64_t *ns)
{
	uint64_t calls = 0, sum_ns = 0;

	for (uint32_t i = 0; i < s->capacity; i++) {
		const struct xsp_step_share *sum = xsp_step_shares_sum(s, i, key);
		calls += sum != NULL ? sum->calls : 0;
		sum_ns += sum != NULL ? sum->ns : 0;
	}
	if (ns != NULL)
		*ns = sum_ns;
	return calls;
}

size_t xsp_step_shares_sums(const struct xsp_step_shares *s, uint32_t thread,
			    const struct xsp_step_share **sums)
{
	const struct shares none = {.count = 0};
	const struct shares *all = thread < s->capacity ? &s->threads[thread].sums : &none;

	*sums = all->list;
	return all->count;
}

const struct xsp_step_share *xsp_step_shares_sum(const struct xsp_step_shares *s, uint32_t thread,
						 uint32_t key)
{
	const uint32_t *at = xsp_u64map_get(&s->threads[thread].index_of, key);

	return at != NULL ? &s->threads[thread].sums.list[*at] : NULL;
}
