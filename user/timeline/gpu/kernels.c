/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/gpu_kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "timeline/timeline_private.h"

#define MAX_HANDLES (1U << 20)

struct xsp_kernels {
	struct xsp_u64map name_of; /* process and handle → name id; that of a host function → too */
	struct xsp_u64map last_of; /* thread → index in last */
	struct last {
		uint64_t function, start_ns; /* the driver's launch that ended last */
	} * last;
	size_t count, capacity;
};

static bool find_name(const struct xsp_timeline *t, uint32_t pid, uint64_t function,
		      xsp_name_id *out)
{
	const uint32_t *at = xsp_u64map_get(&t->kernels->name_of, xsp_pair_hash(pid, function));

	if (at == NULL)
		at = xsp_u64map_get(
			&t->range_names,
			xsp_timeline_address_hash(t, XSP_NAME_OF_FUNCTION, pid, function));
	if (at != NULL)
		*out = *at;
	return at != NULL;
}

const char *xsp_timeline_kernel(const struct xsp_timeline *t, uint32_t pid, uint64_t function)
{
	xsp_name_id name;

	if (t->kernels == NULL || !find_name(t, pid, function, &name))
		return NULL;
	return xsp_timeline_name(t, name);
}

static int learn(struct xsp_timeline *t, uint32_t pid, uint64_t handle, xsp_name_id name)
{
	struct xsp_kernels *k = t->kernels;

	if (handle == 0 || k->name_of.count >= MAX_HANDLES)
		return 0;
	return xsp_u64map_set(&k->name_of, xsp_pair_hash(pid, handle), name);
}

static int last_of(struct xsp_kernels *k, const struct xsp_span *span, struct last **out)
{
	uint64_t key = (uint64_t)span->pid << 32 | span->tid;
	*out = xsp_u64map_element(&k->last_of, key, &k->last, &k->capacity, &k->count,
				  &(struct last){0});
	return *out != NULL ? 0 : -ENOMEM;
}

/* A runtime launch names a host function, the driver launch inside it the handle of the same. */
static int learn_from_launch(struct xsp_timeline *t, const struct xsp_cuda_entry *e,
			     const struct xsp_span *span, uint64_t function)
{
	struct last *last;
	xsp_name_id name;
	int rc = last_of(t->kernels, span, &last);

	if (rc < 0)
		return rc;
	if (e->api == XSP_CUDA_DRIVER) {
		*last = (struct last){function, span->start_ns};
		return 0;
	}
	if (last->function != 0 && last->start_ns >= span->start_ns &&
	    find_name(t, span->pid, function, &name))
		rc = learn(t, span->pid, last->function, name);
	last->function = 0;
	return rc;
}

/* The handle that the call gave out. */
static bool written(const struct xsp_span *span, uint64_t *out)
{
	const struct xsp_section *s = xsp_details_find(span->details, XSP_SECTION_WRITTEN, NULL);
	const struct xsp_section *r = xsp_details_find(span->details, XSP_SECTION_RESULT, NULL);
	uint64_t result = 0;

	if (s == NULL || s->value != 0 || xsp_section_length(s) < 8 || r == NULL ||
	    xsp_section_length(r) < 8)
		return false;
	memcpy(&result, xsp_section_data(r), sizeof(result));
	memcpy(out, xsp_section_data(s), sizeof(*out));
	return (uint32_t)result == 0;
}

/* Handles of an unloaded module may come again for other kernels. */
static void forget_handles(struct xsp_kernels *k)
{
	xsp_u64map_free(&k->name_of);
	k->name_of = (struct xsp_u64map){0};
}

static int learn_from_module(struct xsp_timeline *t, const struct xsp_span *span,
			     const struct xsp_cuda_call *c)
{
	uint64_t handle;
	xsp_name_id name;

	if (!written(span, &handle))
		return 0;
	if (span->text != 0) /* cuModuleGetFunction, cuLibraryGetKernel: by name */
		return learn(t, span->pid, handle, span->text - 1);
	if (XSP_CUDA_HAS(c, XSP_CUDA_STUB) && find_name(t, span->pid, c->stub, &name))
		return learn(t, span->pid, handle, name);
	if (XSP_CUDA_HAS(c, XSP_CUDA_FUNCTION) && find_name(t, span->pid, c->function, &name))
		return learn(t, span->pid, handle, name);
	return 0;
}

/* Before the sinks: they ask for the names of what a call launched. */
static int on_call(struct xsp_timeline *t, const struct row *row, struct xsp_span *span)
{
	const struct xsp_cuda_entry *e = xsp_timeline_cuda(t, span->probe);
	const struct xsp_section *s;
	struct xsp_cuda_call c;

	(void)row;
	if (e == NULL || (e->kind != XSP_CUDA_LAUNCH && e->kind != XSP_CUDA_MODULE) ||
	    (s = xsp_details_find(span->details, XSP_SECTION_WORDS, NULL)) == NULL)
		return 0;
	if (strstr(e->name, "Unload") != NULL) {
		forget_handles(t->kernels);
		return 0;
	}
	xsp_cuda_decode(e, xsp_section_data(s), xsp_section_length(s) / 8, s->value, &c);
	if (e->kind == XSP_CUDA_MODULE)
		return learn_from_module(t, span, &c);
	if (!XSP_CUDA_HAS(&c, XSP_CUDA_FUNCTION))
		return 0;
	return learn_from_launch(t, e, span, c.function);
}

static int begin(struct xsp_timeline *t)
{
	if (t->cuda_probes == NULL)
		return 0;
	t->kernels = calloc(1, sizeof(*t->kernels));
	return t->kernels == NULL ? -ENOMEM : 1;
}

static void free_kernels(struct xsp_timeline *t)
{
	struct xsp_kernels *k = t->kernels;

	if (k == NULL)
		return;
	xsp_u64map_free(&k->name_of);
	xsp_u64map_free(&k->last_of);
	free(k->last);
	free(k);
}

const struct xsp_listener xsp_listener_kernels = {
	.name = "names of kernels",
	.begin = begin,
	.note = on_call,
	.free = free_kernels,
};
