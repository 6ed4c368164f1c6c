/* SPDX-License-Identifier: BSD-2-Clause */
/* cuda_calls.c - which spans are CUDA calls, and which operator and range are around them. */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "catalog/providers.h"
#include "catalog/scope.h"

static int find_probes(struct xsp_timeline *t)
{
	for (; t->cuda_looked < t->probe_count; t->cuda_looked++) {
		const struct xsp_capture_probe *p = &t->probes[t->cuda_looked];
		const unsigned traits = xsp_provider_traits(p->provider);
		if (!(traits & XSP_PROVIDER_CUDA_CALLS))
			continue;
		const struct xsp_cuda_entry *e = xsp_cuda_find(p->symbol);
		if (e == NULL && (traits & XSP_PROVIDER_READ))
			e = xsp_cuda_any(xsp_cuda_api_of(p->symbol));
		if (e == NULL)
			continue;
		if (xsp_grow_zeroed(&t->cuda_probes, &t->cuda_room, t->probe_count) < 0)
			return -ENOMEM;
		t->cuda_probes[t->cuda_looked] = e;
	}
	return t->cuda_probes != NULL;
}

const struct xsp_cuda_entry *xsp_timeline_cuda(const struct xsp_timeline *t, uint32_t probe)
{
	return probe < t->cuda_room ? t->cuda_probes[probe] : NULL;
}

static bool word_of(const struct xsp_section *s, uint64_t *out)
{
	if (s == NULL || xsp_section_length(s) < sizeof(*out))
		return false;
	memcpy(out, xsp_section_data(s), sizeof(*out));
	return true;
}

bool xsp_cuda_succeeded(const struct xsp_details *d)
{
	uint64_t result;

	return word_of(xsp_details_find(d, XSP_SECTION_RESULT, NULL), &result) &&
	       (uint32_t)result == 0;
}

bool xsp_cuda_written(const struct xsp_details *d, uint64_t *out)
{
	const struct xsp_section *s = xsp_details_find(d, XSP_SECTION_WRITTEN, NULL);

	return s != NULL && s->value == 0 && word_of(s, out);
}

static bool is_users(const struct xsp_timeline *t, const struct open_span *s)
{
	const struct xsp_capture_probe *p = &t->probes[s->probe];
	const struct xsp_section *own = xsp_details_own_scope(s->details, p->scope);

	return p->kind == XSP_PROBE_ANNOTATION &&
	       (own == NULL || own->value == XSP_RECORD_SCOPE_USER);
}

/* An operator, or a traced function; an imported trace also has Python's. */
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
