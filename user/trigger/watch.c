/* SPDX-License-Identifier: BSD-2-Clause */
#include "trigger/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "catalog/wait_reasons.h"
#include "target/patterns/glob.h"
#include "timeline/steps.h"
#include "timeline/waits.h"

#define LOOKED (1U << XSP_TRIGGERS_MAX) /* of a name: which triggers it matches is known */
#define SEEN 64U /* calls that fired while they were open, and are not to fire at their ends */
#define STEPS 64U /* of the running median */
#define STEPS_LEAST 10U /* before that, steps are warm-up */
#define SAMPLES 60U /* of memory, in the time of its growth */
#define BACK_BELOW 0.95 /* it fires again once memory was below so much of the limit */

struct seen {
	uint32_t tid;
	uint64_t start_ns;
};

struct state {
	uint64_t second, calls; /* of a rate */
	struct seen seen[SEEN];
	size_t next;
	bool above; /* it has fired, and is still true */
	uint64_t fired; /* at that value */
	uint64_t samples[SAMPLES], sampled_ns; /* of memory, the oldest first */
	size_t sample_count;
};

struct track {
	uint32_t pid, tid;
	uint64_t ended_ns, said_ns;
	uint64_t steps[STEPS];
	size_t count; /* so far */
	uint64_t median_ns;
};

struct xsp_watch {
	const struct xsp_trigger *triggers;
	size_t count;
	xsp_watch_fire_fn fire;
	void *ctx;
	struct state *states;
	/* the timeline's */
	struct xsp_timeline *timeline;
	uint32_t *matches; /* by name: bit n: trigger n */
	size_t match_capacity;
	XSP_TALLY(struct track) tracks;
	uint64_t now_ns;
	bool goes_on; /* at now_ns a call or a step lasts too long already */
	pthread_mutex_t lock; /* of `seen` of waits, which both threads have */
};

#define WHEN(start, end, tid) ((struct xsp_moment){start, end, tid})
#define NEVER WHEN(0, 0, 0)

static void fire(struct xsp_watch *w, size_t i, struct xsp_moment when, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void fire(struct xsp_watch *w, size_t i, struct xsp_moment when, const char *fmt, ...)
{
	char why[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	w->fire(w->ctx, i, when, why);
}

int xsp_watch_new(const struct xsp_trigger *triggers, size_t count, xsp_watch_fire_fn fn, void *ctx,
		  struct xsp_watch **out)
{
	struct xsp_watch *w = *out = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	*w = (struct xsp_watch){.triggers = triggers, .count = count, .fire = fn, .ctx = ctx};
	pthread_mutex_init(&w->lock, NULL);
	w->states = calloc(count + 1, sizeof(*w->states));
	if (w->states != NULL)
		return 0;
	xsp_watch_free(w);
	*out = NULL;
	return -ENOMEM;
}

void xsp_watch_free(struct xsp_watch *w)
{
	if (w == NULL)
		return;
	pthread_mutex_destroy(&w->lock);
	free(w->states);
	free(w->matches);
	xsp_tally_free(&w->tracks);
	free(w);
}

static bool has(const struct xsp_watch *w, unsigned kinds)
{
	return xsp_trigger_any(w->triggers, w->count, kinds);
}

/* ---- spans ---- */

bool xsp_watch_wants_timeline(const struct xsp_watch *w)
{
	return has(w, 1U << XSP_TRIGGER_SPAN | 1U << XSP_TRIGGER_RATE | 1U << XSP_TRIGGER_STEP |
			      1U << XSP_TRIGGER_SLOW_STEP | 1U << XSP_TRIGGER_WAIT);
}

void xsp_watch_begin(struct xsp_watch *w, struct xsp_timeline *t)
{
	w->timeline = t;
	if (w->match_capacity > 0) /* another timeline has other numbers */
		memset(w->matches, 0, w->match_capacity * sizeof(*w->matches));
	for (size_t i = 0; i < w->tracks.count; i++) /* what was passed over is no step */
		w->tracks.rows[i].ended_ns = 0;
}

/* The triggers that the name matches. */
static uint32_t matches_of(struct xsp_watch *w, xsp_name_id id)
{
	if (xsp_grow_zeroed(&w->matches, &w->match_capacity, (size_t)id + 1) < 0)
		return 0;
	if (w->matches[id] & LOOKED)
		return w->matches[id];
	const char *name = xsp_timeline_name(w->timeline, id);
	for (size_t i = 0; i < w->count; i++)
		if (w->triggers[i].name != NULL && xsp_glob_match(w->triggers[i].name, name))
			w->matches[id] |= 1U << i;
	return w->matches[id] |= LOOKED;
}

static bool was_seen(const struct state *s, uint32_t tid, uint64_t start_ns)
{
	for (size_t i = 0; i < SEEN; i++)
		if (s->seen[i].tid == tid && s->seen[i].start_ns == start_ns)
			return true;
	return false;
}

static void count_call(struct xsp_watch *w, size_t i, const struct xsp_span *span)
{
	struct state *s = &w->states[i];
	const uint64_t second = span->end_ns / 1000000000;
	char calls[XSP_UNITS_SIZE];

	if (second > s->second) {
		if ((double)s->calls > w->triggers[i].most)
			fire(w, i, WHEN(s->second * 1000000000, (s->second + 1) * 1000000000, 0),
			     "%s calls of %s in a second", xsp_format_count(calls, s->calls),
			     w->triggers[i].name);
		s->second = second;
		s->calls = 0;
	}
	s->calls++;
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct xsp_watch *w = ctx;
	const uint32_t matches = matches_of(w, span->name) & ~LOOKED;
	const uint64_t ns = span->end_ns - span->start_ns;
	char took[XSP_UNITS_SIZE];

	for (size_t i = 0; matches >> i != 0; i++) {
		if (!(matches >> i & 1))
			continue;
		if (w->triggers[i].kind == XSP_TRIGGER_RATE)
			count_call(w, i, span);
		else if (xsp_span_has_duration(span) && (double)ns > w->triggers[i].most &&
			 !was_seen(&w->states[i], span->tid, span->start_ns))
			fire(w, i, WHEN(span->start_ns, span->end_ns, span->tid),
			     "%.150s took %s in thread %u",
			     xsp_timeline_name(w->timeline, span->name), xsp_format_ns(took, ns),
			     span->tid);
	}
	return 0;
}

static void look_at_open(void *ctx, const struct xsp_open_spans *open)
{
	struct xsp_watch *w = ctx;
	char since[XSP_UNITS_SIZE];

	for (size_t k = 0; k < open->count; k++) {
		const uint32_t matches = matches_of(w, open->names[k]) & ~LOOKED;
		const uint64_t start =
			matches != 0 ? xsp_timeline_open_since(w->timeline, open, k) : 0;
		if (start == 0 || start >= w->now_ns)
			continue;
		for (size_t i = 0; matches >> i != 0; i++) {
			struct state *s = &w->states[i];
			if (!(matches >> i & 1) || w->triggers[i].kind != XSP_TRIGGER_SPAN ||
			    (double)(w->now_ns - start) <= w->triggers[i].most)
				continue;
			w->goes_on = true;
			if (was_seen(s, open->thread->tid, start))
				continue;
			s->seen[s->next++ % SEEN] = (struct seen){open->thread->tid, start};
			fire(w, i, WHEN(start, w->now_ns, open->thread->tid),
			     "%.150s has not returned for %s in thread %u",
			     xsp_timeline_name(w->timeline, open->names[k]),
			     xsp_format_ns(since, w->now_ns - start), open->thread->tid);
		}
	}
}

/* ---- steps ---- */

static XSP_ORDER(rising, uint64_t, XSP_COMPARE(*x, *y));

static void add_step(struct track *k, uint64_t ns)
{
	uint64_t sorted[STEPS];
	const size_t n = k->count < STEPS ? k->count + 1 : STEPS;

	k->steps[k->count++ % STEPS] = ns;
	if (k->count > STEPS && k->count % (STEPS / 8) != 0)
		return; /* the median of so many does not move much */
	memcpy(sorted, k->steps, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), rising);
	k->median_ns = sorted[n / 2];
}

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct xsp_watch *w = ctx;
	const uint64_t ns = step->end_ns - step->start_ns;
	char took[XSP_UNITS_SIZE], median[XSP_UNITS_SIZE];

	if (step->news != XSP_STEP_ENDED)
		return 0;
	struct track *k = xsp_tally_row(&w->tracks, xsp_u64_pair(step->pid, step->tid),
					&(struct track){.pid = step->pid, .tid = step->tid});
	if (k == NULL)
		return w->tracks.tally.error;
	for (size_t i = 0; i < w->count; i++) {
		const struct xsp_trigger *t = &w->triggers[i];
		if (t->kind == XSP_TRIGGER_STEP && (double)ns > t->most &&
		    k->said_ns != step->start_ns)
			fire(w, i, WHEN(step->start_ns, step->end_ns, step->tid),
			     "a step of %s in thread %u", xsp_format_ns(took, ns), step->tid);
		if (t->kind == XSP_TRIGGER_SLOW_STEP && k->count >= STEPS_LEAST &&
		    (double)ns > t->most * (double)k->median_ns)
			fire(w, i, WHEN(step->start_ns, step->end_ns, step->tid),
			     "a step of %s, %.1f times the median of %s, in thread %u",
			     xsp_format_ns(took, ns), (double)ns / (double)k->median_ns,
			     xsp_format_ns(median, k->median_ns), step->tid);
	}
	add_step(k, ns);
	k->ended_ns = step->end_ns;
	return 0;
}

/* The step that is not over yet; it fires once. */
static void look_at_step(struct xsp_watch *w, struct track *k)
{
	char since[XSP_UNITS_SIZE];

	for (size_t i = 0; i < w->count; i++) {
		const struct xsp_trigger *t = &w->triggers[i];
		if (t->kind != XSP_TRIGGER_STEP || k->ended_ns == 0 || w->now_ns <= k->ended_ns ||
		    (double)(w->now_ns - k->ended_ns) <= t->most)
			continue;
		w->goes_on = true;
		if (k->said_ns == k->ended_ns)
			continue;
		fire(w, i, WHEN(k->ended_ns, w->now_ns, k->tid),
		     "no step has ended for %s in thread %u",
		     xsp_format_ns(since, w->now_ns - k->ended_ns), k->tid);
		k->said_ns = k->ended_ns;
	}
}

bool xsp_watch_look(struct xsp_watch *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
	w->goes_on = false;
	if (has(w, 1U << XSP_TRIGGER_SPAN))
		xsp_timeline_open(w->timeline, look_at_open, w);
	for (size_t i = 0; i < w->tracks.count; i++)
		look_at_step(w, &w->tracks.rows[i]);
	return w->goes_on;
}

/* ---- waits ---- */

/* A futex is a lock if it is a mutex, or has an owner: else it is a condition, or a join. */
static bool is_wait(const struct xsp_trigger *t, unsigned why, unsigned flags, uint32_t owner)
{
	return t->kind == XSP_TRIGGER_WAIT && t->wait == why &&
	       (why != XSP_WAIT_LOCK || (flags & XSP_WAIT_MUTEX) || owner != 0);
}

/* Once for each wait, also if it is seen while it goes on and then at its end. */
static bool is_new_wait(struct xsp_watch *w, size_t i, uint32_t tid, uint64_t left_ns)
{
	struct state *s = &w->states[i];

	pthread_mutex_lock(&w->lock);
	const bool is_new = !was_seen(s, tid, left_ns);
	if (is_new)
		s->seen[s->next++ % SEEN] = (struct seen){tid, left_ns};
	pthread_mutex_unlock(&w->lock);
	return is_new;
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	struct xsp_watch *w = ctx;
	const uint64_t ns = wait->back_ns - wait->left_ns;
	char took[XSP_UNITS_SIZE];

	for (size_t i = 0; i < w->count && !(wait->flags & XSP_WAIT_SHORT); i++)
		if (is_wait(&w->triggers[i], wait->why, wait->flags, wait->owner) &&
		    (double)ns > w->triggers[i].most && is_new_wait(w, i, wait->tid, wait->left_ns))
			fire(w, i, WHEN(wait->left_ns, wait->back_ns, wait->tid),
			     "thread %u waited for %s (%s)", wait->tid, xsp_format_ns(took, ns),
			     xsp_wait_class_name(wait->why));
	return 0;
}

bool xsp_watch_wants_waits(const struct xsp_watch *w)
{
	return has(w, 1U << XSP_TRIGGER_WAIT);
}

bool xsp_watch_wait(struct xsp_watch *w, const struct xsp_event_wait *open)
{
	const uint64_t ns = open->head.time_ns - open->left_ns;
	char took[XSP_UNITS_SIZE];
	bool any = false;

	for (size_t i = 0; i < w->count; i++) {
		if (!is_wait(&w->triggers[i], open->why, open->flags, open->owner) ||
		    (double)ns <= w->triggers[i].most)
			continue;
		any = true;
		if (is_new_wait(w, i, open->head.tid, open->left_ns))
			fire(w, i, WHEN(open->left_ns, open->head.time_ns, open->head.tid),
			     "thread %u has waited for %s (%s)", open->head.tid,
			     xsp_format_ns(took, ns), xsp_wait_class_name(open->why));
	}
	return any;
}

struct xsp_timeline_sink xsp_watch_sink(struct xsp_watch *w)
{
	const bool steps = has(w, 1U << XSP_TRIGGER_STEP | 1U << XSP_TRIGGER_SLOW_STEP);

	return (struct xsp_timeline_sink){.ctx = w,
					  .span = on_span,
					  .step = steps ? on_step : NULL,
					  .wait = xsp_watch_wants_waits(w) ? on_wait : NULL};
}

/* ---- what the recorder knows ---- */

/* It fires when it becomes true. */
static void rise(struct xsp_watch *w, size_t i, const struct xsp_watch_facts *f)
{
	struct state *s = &w->states[i];
	const double now = (double)f->resident, most = w->triggers[i].most;
	char bytes[XSP_UNITS_SIZE];

	if (now > most && !s->above)
		fire(w, i, NEVER, "%s of memory", xsp_format_bytes(bytes, f->resident));
	s->above = now > most || (s->above && now > BACK_BELOW * most);
}

static void grow(struct xsp_watch *w, size_t i, const struct xsp_watch_facts *f)
{
	const struct xsp_trigger *t = &w->triggers[i];
	struct state *s = &w->states[i];
	char more[XSP_UNITS_SIZE], time[XSP_UNITS_SIZE];

	if (f->resident == 0 || (double)(f->now_ns - s->sampled_ns) < t->per_ns / SAMPLES)
		return;
	s->sampled_ns = f->now_ns;
	const bool full = s->sample_count == SAMPLES;
	if (full && (double)f->resident > (double)s->samples[0] + t->most) {
		fire(w, i, NEVER, "memory has grown by %s in %s",
		     xsp_format_bytes(more, f->resident - s->samples[0]),
		     xsp_format_ns(time, (uint64_t)t->per_ns));
		s->sample_count = 0; /* and again, if it does so from now on */
	} else if (full) {
		memmove(s->samples, s->samples + 1, (SAMPLES - 1) * sizeof(*s->samples));
		s->sample_count--;
	}
	s->samples[s->sample_count++] = f->resident;
}

/* Is it too long already? */
static bool rest(struct xsp_watch *w, size_t i, const struct xsp_watch_facts *f)
{
	struct state *s = &w->states[i];
	char time[XSP_UNITS_SIZE];

	if (f->gpu_ns == 0 || f->now_ns <= f->gpu_ns ||
	    (double)(f->now_ns - f->gpu_ns) <= w->triggers[i].most)
		return false;
	if (s->fired != f->gpu_ns)
		fire(w, i, WHEN(f->gpu_ns, f->now_ns, 0), "the GPU has been idle for %s",
		     xsp_format_ns(time, f->now_ns - f->gpu_ns));
	s->fired = f->gpu_ns;
	return true;
}

static void lose(struct xsp_watch *w, size_t i, const struct xsp_watch_facts *f)
{
	struct state *s = &w->states[i];
	char count[XSP_UNITS_SIZE];

	if ((double)f->lost <= (double)s->fired + w->triggers[i].most)
		return;
	fire(w, i, NEVER, "%s events were lost", xsp_format_count(count, f->lost - s->fired));
	s->fired = f->lost;
}

bool xsp_watch_facts(struct xsp_watch *w, const struct xsp_watch_facts *f)
{
	bool rests = false;

	for (size_t i = 0; i < w->count; i++)
		switch (w->triggers[i].kind) {
		case XSP_TRIGGER_RSS:
			rise(w, i, f);
			break;
		case XSP_TRIGGER_GROWTH:
			grow(w, i, f);
			break;
		case XSP_TRIGGER_GPU_IDLE:
			rests |= rest(w, i, f);
			break;
		case XSP_TRIGGER_LOST:
			lose(w, i, f);
			break;
		default:
			break;
		}
	return rests;
}

void xsp_watch_exit(struct xsp_watch *w, uint32_t pid, unsigned status)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->triggers[i].kind == XSP_TRIGGER_EXIT && status != 0)
			fire(w, i, NEVER, "process %u ended with status %u", pid, status);
}
