/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/step_shares.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/rows/tally.h"

struct shares {
	struct xsp_step_share *list;
	size_t count, capacity;
};

struct thread {
	XSP_TALLY(struct xsp_step_share) sums; /* over all steps that count */
	struct xsp_step_share *now; /* in the current step, with the same indices */
	size_t now_capacity;
	uint32_t *touched; /* indices that have calls in the current step */
	size_t touched_count, touched_capacity;
	struct shares first[XSP_STEPS_FIRST];
	size_t first_count, judged;
};

struct xsp_step_shares {
	struct thread *threads; /* by index */
	size_t capacity;
	struct shares step; /* of the step that was judged last */
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
		xsp_tally_free(&t->sums);
		free(t->now);
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

int xsp_step_shares_add(struct xsp_step_shares *s, const struct xsp_span *span, uint32_t thread,
			uint32_t key, uint64_t ns)
{
	struct thread *t = thread_at(s, thread);
	const struct xsp_step_share *sum =
		t == NULL ? NULL
			  : xsp_tally_row(&t->sums, key, &(struct xsp_step_share){.key = key});

	if (sum == NULL || xsp_grow_zeroed(&t->now, &t->now_capacity, t->sums.count) < 0)
		return -ENOMEM;
	const uint32_t at = xsp_tally_index(&t->sums, sum);
	struct xsp_step_share *now = &t->now[at];
	now->key = key;
	now->ns += xsp_span_has_duration(span) ? ns : 0;
	return now->calls++ > 0 ? 0
				: XSP_APPEND(t->touched, t->touched_capacity, t->touched_count, at);
}

static void begin_anew(struct thread *t)
{
	for (size_t i = 0; i < t->touched_count; i++)
		t->now[t->touched[i]] = (struct xsp_step_share){.key = 0};
	t->touched_count = 0;
}

/* The shares of the current step. */
static int take(const struct thread *t, struct shares *out)
{
	out->count = 0;
	if (xsp_grow(&out->list, &out->capacity, t->touched_count) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < t->touched_count; i++)
		out->list[out->count++] = t->now[t->touched[i]];
	return 0;
}

static int add_up(struct thread *t, const struct shares *more)
{
	for (size_t i = 0; i < more->count; i++) {
		const struct xsp_step_share *one = &more->list[i];
		struct xsp_step_share *sum = xsp_tally_row(
			&t->sums, one->key, &(struct xsp_step_share){.key = one->key});
		if (sum == NULL)
			return -ENOMEM;
		sum->calls += one->calls;
		sum->ns += one->ns;
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
	if (step->news == XSP_STEP_ENDED && !step->first) /* the next news judges it */
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
	const struct thread none = {.now = NULL};
	const struct thread *t = thread < s->capacity ? &s->threads[thread] : &none;

	*sums = t->sums.rows;
	return t->sums.count;
}

const struct xsp_step_share *xsp_step_shares_sum(const struct xsp_step_shares *s, uint32_t thread,
						 uint32_t key)
{
	return xsp_tally_find(&s->threads[thread].sums, key);
}
