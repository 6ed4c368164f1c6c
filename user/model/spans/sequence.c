/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/spans/sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/tally.h"

/* Above any real number; garbage mostly is higher. */
#define NUMBER_MAX (1ULL << 48)
#define THREAD_MAX (1U << 24)

/* ---- what the sections have ---- */

static uint64_t word(const struct xsp_section *s, size_t i)
{
	uint64_t value = UINT64_MAX;

	if (xsp_section_length(s) >= 8 * (i + 1))
		memcpy(&value, (const uint64_t *)xsp_section_data(s) + i, sizeof(value));
	return value;
}

/* Its class is known: it is a node, not something else with numbers at that place. A vtable of no file has its address
 * as name. */
static bool is_node(const struct xsp_timeline *t, const struct xsp_span *span)
{
	const char *name = xsp_timeline_name(t, span->name);
	const char *node = strstr(name, ": ");

	return node != NULL && strncmp(node + 2, "0x", 2) != 0;
}

struct xsp_sequence xsp_sequence_of(const struct xsp_timeline *t, const struct xsp_span *span)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_NODE, NULL);
	struct xsp_sequence n = {0};

	if (s != NULL && !is_node(t, span))
		return n;
	if (s != NULL) {
		uint64_t thread = word(s, 1);
		n.backward = true;
		n.number = word(s, 0);
		n.thread = thread < THREAD_MAX ? (uint32_t)thread : 0;
		n.known = n.number < NUMBER_MAX && n.thread > 0;
		return n;
	}
	s = xsp_details_find(span->details, XSP_SECTION_SEQUENCE, NULL);
	const struct xsp_section *end =
		s == NULL ? NULL : xsp_details_find(span->details, XSP_SECTION_SEQUENCE, s);
	if (end == NULL)
		return n;
	n.number = word(s, 0);
	n.thread = end->value;
	n.known = word(end, 0) > n.number && word(end, 0) < NUMBER_MAX && n.thread > 0 &&
		  n.thread < THREAD_MAX;
	return n;
}

/* ---- arrows ---- */

struct operator
{
	uint64_t number; /* plus 1; 0: empty */
	uint64_t start_ns;
	const struct xsp_thread_row *row;
};

/* The operators of a thread, each at number & mask. Numbers rise: in the end they overwrite operators of graphs that
 * never ran backward. */
struct thread {
	struct operator* ops;
	size_t mask;
};
#define RING_FIRST 1024U
#define RING_LAST (1U << 18) /* nodes of one graph */
#define OPERATORS_MAX (1U << 21) /* of all threads: 48 MiB */

struct xsp_fwdbwd {
	XSP_TALLY(struct thread) threads; /* by pid << 32 | torch's number of the thread */
	size_t operators; /* slots of all rings */
	uint64_t arrows; /* so far */
};

void xsp_fwdbwd_free(struct xsp_fwdbwd *f)
{
	if (f == NULL)
		return;
	for (size_t i = 0; i < f->threads.count; i++)
		free(f->threads.rows[i].ops);
	xsp_tally_free(&f->threads);
	free(f);
}

static uint64_t key_of(const struct xsp_span *span, const struct xsp_sequence *n)
{
	return (uint64_t)span->pid << 32 | n->thread;
}

static int make_thread(struct xsp_fwdbwd *f, uint64_t key, struct thread **out)
{
	*out = NULL;
	if (f->operators + RING_FIRST > OPERATORS_MAX)
		return 0;
	const struct thread first = {.ops = calloc(RING_FIRST, sizeof(*first.ops)),
				     .mask = RING_FIRST - 1};
	*out = first.ops != NULL ? xsp_tally_row(&f->threads, key, &first) : NULL;
	if (*out == NULL) {
		free(first.ops);
		return -ENOMEM;
	}
	f->operators += RING_FIRST;
	return 0;
}

static int grow_ring(struct xsp_fwdbwd *f, struct thread *t)
{
	size_t old = t->mask + 1;

	if (old >= RING_LAST || f->operators + old > OPERATORS_MAX)
		return 0;
	struct operator* ops = calloc(2 * old, sizeof(*ops));
	if (ops == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < old; i++)
		if (t->ops[i].number != 0)
			ops[(t->ops[i].number - 1) & (2 * old - 1)] = t->ops[i];
	free(t->ops);
	t->ops = ops;
	t->mask = 2 * old - 1;
	f->operators += old;
	return 0;
}

static int remember(struct xsp_fwdbwd *f, const struct xsp_thread_row *row,
		    const struct xsp_span *span, const struct xsp_sequence *n)
{
	struct thread *t = xsp_tally_find(&f->threads, key_of(span, n));
	int rc = t != NULL ? 0 : make_thread(f, key_of(span, n), &t);

	if (rc < 0 || t == NULL)
		return rc;
	struct operator* o = & t->ops[n->number & t->mask];
	if (o->number != 0 && o->number != n->number + 1) {
		rc = grow_ring(f, t);
		o = &t->ops[n->number & t->mask];
	}
	/* of several with one number the last to begin made the node */
	if (rc == 0 && (o->number != n->number + 1 || o->start_ns <= span->start_ns))
		*o = (struct operator){
			.number = n->number + 1, .start_ns = span->start_ns, .row = row};
	return rc;
}

/* 0: its operator was made before the recording, or is not traced. */
static int find(struct xsp_fwdbwd *f, const struct xsp_span *span, const struct xsp_sequence *n,
		struct xsp_fwdbwd_operator *from)
{
	const struct thread *t = xsp_tally_find(&f->threads, key_of(span, n));
	struct operator* o = t != NULL ? &t->ops[n->number & t->mask] : NULL;

	if (o == NULL || o->number != n->number + 1)
		return 0;
	*from = (struct xsp_fwdbwd_operator){o->row, o->start_ns, ++f->arrows};
	o->number = 0;
	return 1;
}

int xsp_fwdbwd_span(struct xsp_fwdbwd **f, const struct xsp_timeline *t,
		    const struct xsp_thread_row *row, const struct xsp_span *span,
		    struct xsp_fwdbwd_operator *from)
{
	struct xsp_sequence n = xsp_sequence_of(t, span);

	if (!n.known)
		return 0;
	if (*f == NULL)
		*f = calloc(1, sizeof(**f));
	if (*f == NULL)
		return -ENOMEM;
	return n.backward ? find(*f, span, &n, from) : remember(*f, row, span, &n);
}
