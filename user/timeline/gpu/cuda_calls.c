/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda_calls.c - which spans are calls of CUDA's API, and what of the program is around them. */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/providers.h"
#include "catalog/scope.h"

static int find_probes(struct xsp_timeline *t)
{
	if (t->cuda_probes != NULL && t->cuda_room < t->probe_count) {
		const struct xsp_cuda_entry **grown =
			reallocarray(t->cuda_probes, t->probe_count, sizeof(const void *));
		if (grown == NULL)
			return -ENOMEM;
		memset(grown + t->cuda_room, 0, (t->probe_count - t->cuda_room) * sizeof(*grown));
		t->cuda_probes = grown;
	}
	const size_t known = t->cuda_room;
	t->cuda_room = t->probe_count;
	for (size_t i = known; i < t->probe_count; i++) {
		const struct xsp_cuda_entry *e = NULL;
		const unsigned traits = xsp_provider_traits(t->probes[i].provider);
		if (traits & XSP_PROVIDER_CUDA_CALLS)
			e = xsp_cuda_find(t->probes[i].symbol);
		if (e == NULL && (traits & XSP_PROVIDER_CUDA_CALLS) && (traits & XSP_PROVIDER_READ))
			e = xsp_cuda_any(xsp_cuda_api_of(t->probes[i].symbol));
		if (e == NULL)
			continue;
		if (t->cuda_probes == NULL)
			t->cuda_probes = calloc(t->probe_count, sizeof(const void *));
		if (t->cuda_probes == NULL)
			return -ENOMEM;
		t->cuda_probes[i] = e;
	}
	return t->cuda_probes != NULL;
}

const struct xsp_cuda_entry *xsp_timeline_cuda(const struct xsp_timeline *t, uint32_t probe)
{
	return t->cuda_probes != NULL && probe < t->probe_count ? t->cuda_probes[probe] : NULL;
}

static bool is_users(const struct xsp_timeline *t, const struct open_span *s)
{
	const struct xsp_capture_probe *p = &t->probes[s->probe];
	const struct xsp_section *own = xsp_details_own_scope(s->details, p->scope);

	return p->kind == XSP_PROBE_ANNOTATION &&
	       (own == NULL || own->value == XSP_RECORD_SCOPE_USER);
}

/* An operator, or a function that was traced; of a trace that was read there are also Python's. */
static bool is_operator(const struct xsp_timeline *t, const struct open_span *s)
{
	const struct xsp_capture_probe *p = &t->probes[s->probe];

	return !(xsp_provider_traits(p->provider) & XSP_PROVIDER_READ) ||
	       strcmp(p->symbol, "python_function") != 0;
}

/* The operator and the user's range around a call. */
static int find_around(struct xsp_timeline *t, const struct row *row, struct xsp_span *span)
{
	size_t depth = span->depth;

	if (xsp_timeline_cuda(t, span->probe) == NULL)
		return 0;
	for (size_t i = depth < row->count ? depth : row->count; i > 0; i--) {
		const struct open_span *s = &row->spans[i - 1];
		if (row->names[i - 1] & XSP_NAME_LEFT_OUT)
			continue;
		if (xsp_timeline_cuda(t, s->probe) != NULL) {
			span->outer_ns = s->start_ns;
			continue;
		}
		if (span->op == 0 && !is_users(t, s) && is_operator(t, s)) {
			span->op = s->serial + 1;
			span->op_name = s->name;
		}
		if (is_users(t, s) && span->user == 0) {
			span->user = s->serial + 1;
			span->user_name = s->name;
		}
		if (span->op != 0 && span->user != 0)
			break;
	}
	return 0;
}

static void free_probes(struct xsp_timeline *t)
{
	free(t->cuda_probes);
}

const struct xsp_listener xsp_listener_cuda = {
	.name = "calls of CUDA's API",
	.begin = find_probes,
	.note = find_around,
	.free = free_probes,
};
