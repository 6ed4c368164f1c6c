/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - names, devices and contexts, which the agent sends once and refers to later. */
#include "timeline/gpu/gpu_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "target/module.h"

#define MAX_DEVICES 256U
#define MAX_CONTEXTS 4096U

/* ---- names ---- */

static uint64_t name_key(uint32_t space, uint64_t id)
{
	return xsp_u64_mix(id) + space;
}

/* `length` bytes of a record's text, if they are there. */
static const char *text_of(const struct xsp_gpu_record *record, uint16_t at, uint16_t length)
{
	if (at > record->size || length > record->size - at)
		return NULL;
	return (const char *)record + at;
}

/* "cudaLaunchKernel_v7000" without its version: `_v` and four digits or more, as Kineto has it. */
static size_t without_version(const char *text, size_t length)
{
	size_t digits = 0;

	while (digits < length && text[length - 1 - digits] >= '0' &&
	       text[length - 1 - digits] <= '9')
		digits++;
	if (digits < 4 || length < digits + 2 || memcmp(text + length - digits - 2, "_v", 2) != 0)
		return length;
	return length - digits - 2;
}

static const char *keep_text(struct xsp_gpu *g, uint32_t space, const char *text, size_t length)
{
	length = strnlen(text, length);
	if (space != XSP_GPU_NAME_STRING)
		length = without_version(text, length);
	char *copy = xsp_arena_copy(&g->texts, text, length);
	char *demangled =
		copy != NULL && space == XSP_GPU_NAME_STRING ? xsp_demangle(copy, true) : NULL;

	if (demangled != NULL)
		copy = xsp_arena_copy(&g->texts, demangled, strlen(demangled));
	free(demangled);
	return copy;
}

int xsp_gpu_add_name(struct xsp_gpu *g, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_name n;

	xsp_gpu_record_read(record, &n, sizeof(n));
	const char *text = text_of(record, n.text_at, n.length);
	uint64_t key = name_key(n.space, n.id);
	if (text == NULL || n.space > XSP_GPU_NAME_RUNTIME) {
		g->counts.malformed++;
		return 0;
	}
	if (xsp_tally_find(&g->names, key) != NULL || g->names.count >= XSP_MAX_GPU_NAMES)
		return 0;
	const char *kept = keep_text(g, n.space, text, n.length);
	return kept == NULL || xsp_tally_row(&g->names, key, &kept) == NULL ? -ENOMEM : 0;
}

const char *xsp_gpu_name(const struct xsp_gpu *g, uint32_t space, uint64_t id)
{
	const char *const *name = xsp_tally_find(&g->names, name_key(space, id));

	return name != NULL ? *name : NULL;
}

/* ---- devices ---- */

static XSP_ORDER(by_device, struct xsp_gpu_device_info, XSP_RISING(device.id));

const struct xsp_gpu_device_info *xsp_gpu_device(const struct xsp_gpu *g, uint32_t id)
{
	const struct xsp_gpu_device_info key = {.device = {.id = id}};

	if (g->device_count == 0)
		return NULL;
	return bsearch(&key, g->devices, g->device_count, sizeof(key), by_device);
}

int xsp_gpu_add_device(struct xsp_gpu *g, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_device_info d = {.name = ""};

	xsp_gpu_record_read(record, &d.device, sizeof(d.device));
	if (xsp_gpu_device(g, d.device.id) != NULL || g->device_count >= MAX_DEVICES)
		return 0;
	const char *text = text_of(record, d.device.text_at, d.device.length);
	if (text != NULL)
		d.name = xsp_arena_copy(&g->texts, text, strnlen(text, d.device.length));
	if (d.name == NULL || XSP_APPEND(g->devices, g->device_capacity, g->device_count, d) < 0)
		return -ENOMEM;
	qsort(g->devices, g->device_count, sizeof(d), by_device);
	return 0;
}

size_t xsp_timeline_gpu_devices(const struct xsp_timeline *t,
				const struct xsp_gpu_device_info **devices)
{
	*devices = t->gpu != NULL ? t->gpu->devices : NULL;
	return t->gpu != NULL ? t->gpu->device_count : 0;
}

/* ---- contexts ---- */

static struct gpu_context *find_context(const struct xsp_gpu *g, uint32_t pid, uint32_t context)
{
	for (size_t i = 0; i < g->context_count; i++)
		if (g->contexts[i].pid == pid && g->contexts[i].context == context)
			return &g->contexts[i];
	return NULL;
}

const struct gpu_context *xsp_gpu_context(const struct xsp_gpu *g, uint32_t pid, uint32_t context)
{
	return find_context(g, pid, context);
}

int xsp_gpu_add_context(struct xsp_gpu *g, uint32_t pid, const struct xsp_gpu_record *record)
{
	struct xsp_gpu_context c;

	xsp_gpu_record_read(record, &c, sizeof(c));
	struct gpu_context *known = find_context(g, pid, c.context);
	if (known == NULL && g->context_count >= MAX_CONTEXTS)
		return 0;
	const struct gpu_context context = {pid, c.context, c.device, c.null_stream};
	if (known == NULL)
		return XSP_APPEND(g->contexts, g->context_capacity, g->context_count, context);
	*known = context;
	return 0;
}

void xsp_gpu_names_free(struct xsp_gpu *g)
{
	free(g->devices);
	free(g->contexts);
	xsp_tally_free(&g->names);
	xsp_arena_free(&g->texts);
}
