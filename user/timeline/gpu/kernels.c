/* SPDX-License-Identifier: BSD-2-Clause */
/* kernels.c - names of kernels without CUPTI: what no call has named stays without a name. */
#include "timeline/timeline_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MAX_HANDLES (1U << 20)

/* The driver's last launch to end. */
struct last {
	uint64_t function, start_ns;
};

struct xsp_kernels {
	/* process and handle → name id, also for a host function's handle */
	struct xsp_u64map name_of;
	XSP_TALLY(struct last) last; /* by thread */
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

/* A runtime launch has a host function, the driver launch inside it the handle of the same
 * kernel. */
static int learn_from_launch(struct xsp_timeline *t, const struct xsp_cuda_entry *e,
			     const struct xsp_span *span, uint64_t function)
{
	struct xsp_kernels *k = t->kernels;
	struct last *last =
		xsp_tally_row(&k->last, xsp_u64_pair(span->pid, span->tid), &(struct last){0});
	xsp_name_id name;
	int rc = 0;

	if (last == NULL)
		return -ENOMEM;
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

/* Forgets the handles: other kernels may get those of an unloaded module. */
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

	if (!xsp_cuda_succeeded(span->details) || !xsp_cuda_written(span->details, &handle))
		return 0;
	if (span->text != 0) /* cuModuleGetFunction, cuLibraryGetKernel: by name */
		return learn(t, span->pid, handle, span->text - 1);
	if (XSP_CUDA_HAS(c, XSP_CUDA_STUB) && find_name(t, span->pid, c->stub, &name))
		return learn(t, span->pid, handle, name);
	if (XSP_CUDA_HAS(c, XSP_CUDA_FUNCTION) && find_name(t, span->pid, c->function, &name))
		return learn(t, span->pid, handle, name);
	return 0;
}

/* Runs before the sinks, which ask for the names of launched kernels. */
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
	xsp_tally_free(&k->last);
	free(k);
}

const struct xsp_listener xsp_listener_kernels = {
	.name = "names of kernels",
	.begin = begin,
	.note = on_call,
	.free = free_kernels,
};
