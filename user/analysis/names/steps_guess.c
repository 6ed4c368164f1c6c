/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/names/steps_guess.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names/steps.h"
#include "base/grow.h"
#include "base/text.h"

/* What is read of a capture: enough for thousands of steps, and a second at most. */
#define EVENTS_MOST 2000000U
#define OUTERMOST_MOST 262144U /* and spans in few others, see below */
/* What a program does all the while (main, a worker's function) is around its steps: where a thread has no more spans than
 * make a pattern, those in them are looked at. */
#define DEPTHS 4U

#define REPEATS_LEAST 4U /* fewer may be an accident */
#define ALIKE_LEAST                                                                                \
	0.7 /* of the pieces between spans of one name: what is called now and then is in some only */
#define WHOLE_LEAST 0.98 /* the same, without the names that are not in most of them */
#define LOOKED_AT 100U /* names of a thread for which that is looked at */
#define LENGTH_LEAST_NS 100000U /* a loop around two functions of the C library is no step */
#define COVERED_LEAST 0.5 /* of the time of the thread that was looked at */

struct outermost {
	uint32_t name; /* dense */
	uint32_t inner; /* spans inside */
	uint64_t start_ns, end_ns;
};

/* The spans of a thread at one depth. */
struct sequence {
	uint32_t pid, tid, depth;
	struct outermost *list;
	size_t count, capacity;
	uint32_t inner; /* deeper ones since the last of them */
	uint64_t busy_ns;
};

struct looking {
	struct xsp_timeline *timeline;
	struct sequence *sequences;
	size_t sequence_count, sequence_capacity;
	struct xsp_u64map sequence_of; /* thread and depth */
	/* names without the number that they end in, dense */
	xsp_name_id *names; /* one that has it */
	size_t name_count, name_capacity;
	struct xsp_u64map name_of; /* by hash */
	uint64_t events, outermost;
};

/* "batch 17" → 6, "relu6" → 5: where a number at the end, behind something that is no letter, begins. */
static size_t length_without_number(const char *name)
{
	const size_t length = strlen(name);
	size_t at = length;

	while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	return at > 0 && strchr("#-_:. ", name[at - 1]) != NULL ? at : length;
}

/* ---- reading ---- */

static int enough(struct looking *l)
{
	return ++l->events > EVENTS_MOST || l->outermost >= OUTERMOST_MOST ? -ECANCELED : 0;
}

static int on_wait(void *ctx, const struct xsp_wait *wait)
{
	(void)wait;
	return enough(ctx);
}

static int on_sample(void *ctx, const struct xsp_sample *sample)
{
	(void)sample;
	return enough(ctx);
}

static int dense_name(struct looking *l, xsp_name_id id, uint32_t *out)
{
	const char *name = xsp_timeline_name(l->timeline, id);
	const uint64_t hash = xsp_u64_mix(xsp_text_hash(name, length_without_number(name)));
	const uint32_t *known = xsp_u64map_get(&l->name_of, hash);

	*out = known != NULL ? *known : (uint32_t)l->name_count;
	if (known != NULL)
		return 0;
	if (xsp_u64map_set(&l->name_of, hash, *out) < 0)
		return -ENOMEM;
	return XSP_APPEND(l->names, l->name_capacity, l->name_count, id);
}

/* Valid until the next one is asked for. */
static struct sequence *sequence_of(struct looking *l, const struct xsp_span *span, uint32_t depth)
{
	const struct sequence first = {.pid = span->pid, .tid = span->tid, .depth = depth};
	const uint64_t key = xsp_u64_mix(xsp_steps_guess_thread(span->pid, span->tid)) + depth;

	return xsp_u64map_element(&l->sequence_of, key, &l->sequences, &l->sequence_capacity,
				  &l->sequence_count, &first);
}

static int on_span(void *ctx, const struct xsp_span *span)
{
	struct looking *l = ctx;
	struct outermost o = {.start_ns = span->start_ns, .end_ns = span->end_ns};

	if (span->row != 0)
		return enough(l);
	for (uint32_t depth = 0; depth < span->depth && depth < DEPTHS; depth++) {
		struct sequence *around = sequence_of(l, span, depth);
		if (around == NULL)
			return -ENOMEM;
		around->inner++;
	}
	struct sequence *s = span->depth < DEPTHS ? sequence_of(l, span, span->depth) : NULL;
	if (s == NULL)
		return span->depth < DEPTHS ? -ENOMEM : enough(l);
	o.inner = s->inner;
	s->inner = 0;
	s->busy_ns += span->end_ns - span->start_ns;
	l->outermost++;
	int rc = dense_name(l, span->name, &o.name);
	if (rc == 0)
		rc = XSP_APPEND(s->list, s->capacity, s->count, o);
	return rc == 0 ? enough(l) : rc;
}

/* ---- what repeats ---- */

/* A name as the end of a pattern. */
struct candidate {
	uint32_t count; /* of its spans */
	size_t first, last; /* of them; 1 + index */
	uint64_t piece; /* hash of the names between two, that most have if any does */
	uint32_t votes, alike;
	size_t length; /* spans of such a piece */
	uint64_t inner; /* ... and spans inside these */
	uint64_t gap_ns; /* behind its spans, until the next one */
	bool whole; /* is_whole() */
};

#define BASE 0x9e3779b97f4a7c15ULL

static uint64_t hash_on(uint64_t hash, uint32_t name)
{
	return hash * BASE + xsp_u64_mix(name + 1ULL);
}

/* What stands behind `from` up to `to` (1 + index of each), from hashes of all up to a place. */
static uint64_t hash_between(const uint64_t *hashes, const uint64_t *powers, size_t from, size_t to)
{
	return hashes[to] - hashes[from] * powers[to - from];
}

static bool hash_all(const struct sequence *s, uint64_t **hashes, uint64_t **powers)
{
	uint64_t *h = calloc(s->count + 1, sizeof(*h)), *p = calloc(s->count + 1, sizeof(*p));

	*hashes = h;
	*powers = p;
	if (h == NULL || p == NULL)
		return false;
	p[0] = 1;
	for (size_t i = 0; i < s->count; i++) {
		h[i + 1] = hash_on(h[i], s->list[i].name);
		p[i + 1] = p[i] * BASE;
	}
	return true;
}

/* The piece that most have: whoever has the majority is left when each other one has taken a vote away. */
static void vote(struct candidate *c, uint64_t piece, size_t length)
{
	if (c->votes == 0) {
		c->piece = piece;
		c->length = length;
		c->votes = 1;
	} else if (c->piece == piece) {
		c->votes++;
	} else {
		c->votes--;
	}
}

static void count_candidates(const struct sequence *s, const uint64_t *hashes,
			     const uint64_t *powers, struct candidate *all)
{
	for (size_t i = 1; i <= s->count; i++) {
		struct candidate *c = &all[s->list[i - 1].name];
		if (c->count++ == 0)
			c->first = i;
		else
			vote(c, hash_between(hashes, powers, c->last, i), i - c->last);
		c->last = i;
		if (i < s->count && s->list[i].start_ns > s->list[i - 1].end_ns)
			c->gap_ns += s->list[i].start_ns - s->list[i - 1].end_ns;
	}
}

/* Again, now that it is known which piece: how many are alike. */
static void count_alike(const struct sequence *s, const uint64_t *hashes, const uint64_t *powers,
			struct candidate *all, size_t *before)
{
	for (size_t i = 1; i <= s->count; i++) {
		struct candidate *c = &all[s->list[i - 1].name];
		const size_t from = before[s->list[i - 1].name];
		before[s->list[i - 1].name] = i;
		if (from == 0 || hash_between(hashes, powers, from, i) != c->piece)
			continue;
		c->alike++;
		c->inner += s->list[i - 1].inner;
	}
}

static bool repeats(const struct sequence *s, const struct candidate *c)
{
	if (c->alike < REPEATS_LEAST || (double)c->alike < ALIKE_LEAST * (double)(c->count - 1))
		return false;
	const uint64_t covered = s->list[c->last - 1].end_ns - s->list[c->first - 1].start_ns;
	const uint64_t seen = s->list[s->count - 1].end_ns - s->list[0].start_ns;
	return covered / (c->count - 1) >= LENGTH_LEAST_NS &&
	       (double)covered >= COVERED_LEAST * (double)seen &&
	       /* one call, again and again, is a step if something is seen in it */
	       (c->length > 1 || c->inner >= c->alike);
}

/* Where a piece that most are like begins; 0: nowhere (two texts of one hash). */
static size_t find_piece(const struct sequence *s, const struct candidate *c)
{
	const uint32_t name = s->list[c->first - 1].name;
	uint64_t hash = 0;

	for (size_t i = c->first, at = c->first; i < c->last; i++) {
		hash = hash_on(hash, s->list[i].name);
		if (s->list[i].name != name)
			continue;
		if (hash == c->piece)
			return at;
		hash = 0;
		at = i + 1;
	}
	return 0;
}

/*
 * What is called now and then (a figure that is logged each tenth time) is between pieces that are all alike without it, so
 * ten of them are no step. Not so the layers of a model: what is around them calls what is in them, too. `piece_of`: for each
 * name, the round in which it was in the piece.
 */
static bool is_whole(const struct sequence *s, const struct candidate *c, uint64_t *piece_of,
		     uint64_t round)
{
	const uint32_t name = s->list[c->first - 1].name;
	const size_t piece = find_piece(s, c);
	uint64_t hash = 0;
	size_t alike = 0;

	for (size_t i = piece; piece > 0 && i < piece + c->length; i++)
		piece_of[s->list[i].name] = round;
	for (size_t i = c->first; piece > 0 && i < c->last; i++) {
		if (piece_of[s->list[i].name] != round)
			continue;
		hash = hash_on(hash, s->list[i].name);
		if (s->list[i].name != name)
			continue;
		alike += hash == c->piece;
		hash = 0;
	}
	return (double)alike >= WHOLE_LEAST * (double)(c->count - 1);
}

/* The shortest one that is whole, else the longest; the one with the longest pause behind it, if there are several. */
static bool is_better(const struct candidate *c, const struct candidate *than)
{
	if (than == NULL || c->whole != than->whole)
		return than == NULL || c->whole;
	if (c->length != than->length)
		return (c->length < than->length) == c->whole;
	return c->gap_ns / c->count > than->gap_ns / than->count;
}

/* The end of the thread's longest pattern. 0, *name of them and whether it is one span; -ENOENT: there is none; -ENOMEM. */
static int find_pattern(const struct looking *l, const struct sequence *s, uint32_t *name, bool *is)
{
	struct candidate *all = calloc(l->name_count + 1, sizeof(*all));
	size_t *before = calloc(l->name_count + 1, sizeof(*before));
	uint64_t *piece_of = calloc(l->name_count + 1, sizeof(*piece_of));
	const struct candidate *best = NULL;
	uint64_t *hashes = NULL, *powers = NULL, looked_at = 0;
	int rc = -ENOMEM;

	if (all != NULL && before != NULL && piece_of != NULL && hash_all(s, &hashes, &powers)) {
		count_candidates(s, hashes, powers, all);
		count_alike(s, hashes, powers, all, before);
		for (size_t i = 0; i < l->name_count; i++) {
			if (!repeats(s, &all[i]))
				continue;
			all[i].whole = looked_at < LOOKED_AT &&
				       is_whole(s, &all[i], piece_of, ++looked_at);
			if (is_better(&all[i], best))
				best = &all[i];
		}
		rc = best != NULL ? 0 : -ENOENT;
	}
	if (rc == 0) {
		*name = (uint32_t)(best - all);
		*is = best->length == 1;
	}
	free(hashes);
	free(powers);
	free(piece_of);
	free(before);
	free(all);
	return rc;
}

/* What each sequence repeats. */
struct found {
	uint32_t name;
	bool has, is;
};

/* Is there a pattern among those around, or could there be one? */
static bool is_inner(const struct looking *l, const struct sequence *s)
{
	for (uint32_t depth = 0; depth < s->depth; depth++) {
		const uint64_t key = xsp_u64_mix(xsp_steps_guess_thread(s->pid, s->tid)) + depth;
		const uint32_t *at = xsp_u64map_get(&l->sequence_of, key);
		if (at != NULL && l->sequences[*at].count > REPEATS_LEAST)
			return true;
	}
	return false;
}

static int find_all(const struct looking *l, struct found *found, const struct sequence **busiest)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->sequence_count; i++) {
		const struct sequence *s = &l->sequences[i];
		if (s->count <= REPEATS_LEAST || is_inner(l, s))
			continue;
		rc = find_pattern(l, s, &found[i].name, &found[i].is);
		found[i].has = rc == 0;
		if (rc == 0 && (*busiest == NULL || s->busy_ns > (*busiest)->busy_ns))
			*busiest = s;
		rc = rc == -ENOENT ? 0 : rc;
	}
	return rc;
}

/* The pattern of the thread that spends most in spans and has one; and which others have the same. */
static int guess(const struct looking *l, struct xsp_steps_guess **out)
{
	struct xsp_steps_guess *g = calloc(1, sizeof(*g));
	struct found *found = calloc(l->sequence_count + 1, sizeof(*found));
	const struct sequence *busiest = NULL;
	int rc = g != NULL && found != NULL ? find_all(l, found, &busiest) : -ENOMEM;

	if (rc == 0 && busiest != NULL) {
		const struct found *f = &found[busiest - l->sequences];
		const char *name = xsp_timeline_name(l->timeline, l->names[f->name]);
		g->is = f->is;
		g->name = strndup(name, length_without_number(name));
		rc = g->name != NULL ? 0 : -ENOMEM;
		for (size_t i = 0; rc == 0 && i < l->sequence_count; i++) {
			const struct sequence *s = &l->sequences[i];
			if (found[i].has && found[i].name == f->name && found[i].is == f->is)
				rc = xsp_u64map_set(&g->depths,
						    xsp_steps_guess_thread(s->pid, s->tid),
						    s->depth);
		}
	}
	free(found);
	*out = g;
	if (rc < 0 || busiest == NULL) {
		xsp_steps_guess_free(g);
		*out = NULL;
	}
	return rc;
}

/* ---- all of it ---- */

static bool are_marked(struct xsp_timeline *t)
{
	struct xsp_steps *s = NULL;
	const bool marked = xsp_steps_new(t, &s) < 0 || xsp_steps_expected(s);

	xsp_steps_free(s);
	return marked;
}

static int look(struct looking *l, struct xsp_steps_guess **out, struct xsp_error *err)
{
	struct xsp_error why = {0};
	const struct xsp_timeline_sink sink = {
		.ctx = l, .span = on_span, .wait = on_wait, .sample = on_sample};
	int rc = xsp_timeline_run(l->timeline, &sink, 1, &why);

	if (rc < 0 && rc != -ECANCELED) {
		*err = why;
		return rc;
	}
	/* ranges' names come as the run goes */
	return are_marked(l->timeline) ? 0 : guess(l, out);
}

int xsp_steps_guess_new(struct xsp_capture_reader *r, const struct xsp_cut *cut,
			struct xsp_steps_guess **out, struct xsp_error *err)
{
	const struct xsp_capture_probe *probes;
	struct looking l = {.timeline = NULL};

	*out = NULL;
	if (xsp_capture_probes(r, &probes) == 0)
		return 0;
	int rc = xsp_timeline_new(r, &l.timeline, err);
	if (rc == 0 && cut != NULL)
		rc = xsp_timeline_cut(l.timeline, cut);
	if (rc == 0 && !are_marked(l.timeline))
		rc = look(&l, out, err);
	for (size_t i = 0; i < l.sequence_count; i++)
		free(l.sequences[i].list);
	free(l.sequences);
	free(l.names);
	xsp_u64map_free(&l.sequence_of);
	xsp_u64map_free(&l.name_of);
	xsp_timeline_free(l.timeline);
	return rc;
}

void xsp_steps_guess_free(struct xsp_steps_guess *g)
{
	if (g == NULL)
		return;
	free(g->name);
	xsp_u64map_free(&g->depths);
	free(g);
}
