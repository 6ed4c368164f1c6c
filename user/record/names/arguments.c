/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arguments.c - what a reader needs to understand the sections ARGS and OUTPUTS: each operator's schema and each tensor
 * class's name, once. It also checks the layout of tensors against what is read: the likely one first, then the others;
 * if none is right nothing more is read.
 */
#include "record/recorder_private.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"
#include "base/rows/u64map.h"
#include "catalog/providers.h"
#include "catalog/torch/abi.h"
#include "catalog/torch/records.h"
#include "record/rings/rings.h"

/* After so many non-tensors where tensors should be, and few tensors, the layout is another. A target may pass garbage,
 * but not mostly. */
#define ENOUGH 8U
#define FEW(l) ((l)->bad >= 4 * (l)->good)
/* After so many objects without a class that we can name, and none with one, nothing of it counts. */
#define NAMELESS 256U

/* A planned module with operators. */
struct layout {
	const struct xsp_planned_module *module;
	unsigned tried; /* bit n: layout n */
	unsigned good, bad, nameless;
	uint64_t since_ns; /* earlier events were read with another one */
	bool off;
};

struct xsp_recorder_arguments {
	struct xsp_u64map vtables; /* xsp_torch_vtable_hash → enum xsp_torch_impl */
	uint8_t *has_schema; /* bit by probe: the capture has its schema */
	size_t schema_bytes;
	struct layout *layouts;
	size_t layout_count, layout_room;
};

void xsp_recorder_arguments_free(struct xsp_recorder_arguments *a)
{
	if (a == NULL)
		return;
	xsp_u64map_free(&a->vtables);
	free(a->has_schema);
	free(a->layouts);
	free(a);
}

int xsp_recorder_write_unread(struct xsp_recorder *r, const struct xsp_planned_module *m)
{
	size_t read = 0, all = 0;
	char text[64];

	for (size_t i = 0; i < m->count; i++) {
		const struct xsp_probe *p = &m->probes[i].probe;
		const bool is_operator =
			(xsp_provider_traits(p->provider) & XSP_PROVIDER_OPERATORS) &&
			p->action == XSP_ACTION_SPAN;
		read += is_operator && p->arguments != NULL;
		all += is_operator;
	}
	if (read == all || read == 0)
		return 0;
	snprintf(text, sizeof(text), "%zu of %zu", all - read, all);
	if (all - read > all / 100) /* a handful have types that nobody passes */
		xsp_recorder_note(
			r, "%s: of %s operators no arguments are shown: their types are not known",
			m->display_path, text);
	return xsp_capture_put_info(r->writer, "operators without arguments", text);
}

/* ---- classes ---- */

static enum xsp_torch_impl class_of(struct xsp_recorder *r, uint32_t tgid, uint64_t vtable)
{
	struct xsp_recorder_arguments *a = r->arguments;
	uint64_t hash = xsp_torch_vtable_hash(vtable, tgid);
	const uint32_t *known = xsp_u64map_get(&a->vtables, hash);
	struct recorded_process *p = known == NULL ? xsp_recorder_find(r, (pid_t)tgid) : NULL;
	enum xsp_torch_impl impl = XSP_TORCH_IMPL_UNKNOWN;
	char text[1024] = "";

	if (known != NULL)
		return (enum xsp_torch_impl) * known;
	/* garbage must not make us read the process's maps for ever */
	if (p == NULL || vtable % 8 != 0 || a->vtables.count >= 4096)
		return impl;
	if (xsp_resolve_vtable(r->resolver, p->process, vtable, text, sizeof(text)) == 0)
		impl = xsp_torch_impl_of(text);
	if (xsp_u64map_set(&a->vtables, hash, impl) == 0 && impl != XSP_TORCH_IMPL_UNKNOWN)
		xsp_capture_put_name(r->writer, hash, text);
	return impl;
}

/* ---- layouts ---- */

static struct layout *layout_of(struct xsp_recorder *r, uint32_t probe)
{
	struct xsp_recorder_arguments *a = r->arguments;
	const struct xsp_planned_module *m;

	for (size_t i = 0; i < a->layout_count; i++)
		if (xsp_planned_has(a->layouts[i].module, probe))
			return &a->layouts[i];
	m = xsp_recorder_module(r, probe);
	if (m == NULL || XSP_APPEND(a->layouts, a->layout_room, a->layout_count,
				    (struct layout){.module = m}) < 0)
		return NULL;
	return &a->layouts[a->layout_count - 1];
}

static int layout_index(const struct xsp_tensor_layout *l)
{
	for (int i = 0; i < XSP_TORCH_LAYOUTS; i++)
		if (memcmp(l, &xsp_torch_layouts[i], sizeof(*l)) == 0)
			return i;
	return -1;
}

/* Sets another layout for every operator of the module; -1: none, and no more sections. */
static void use_layout(struct xsp_recorder *r, const struct xsp_planned_module *m, int index)
{
	for (size_t i = 0; i < m->count; i++) {
		struct xsp_planned_probe *p = &m->probes[i];
		if (p->probe.arguments == NULL)
			continue;
		if (index >= 0) {
			p->probe.arguments->spec.layout = xsp_torch_layouts[index];
			xsp_broker_arguments(r->broker, p->id, &p->probe.arguments->spec);
			continue;
		}
		p->probe.detail.entry &= (uint16_t) ~(1U << XSP_SECTION_ARGS);
		p->probe.detail.exit &= (uint16_t) ~(1U << XSP_SECTION_OUTPUTS);
		xsp_broker_detail(r->broker, p->id, &p->probe.detail);
	}
	xsp_broker_put_specs(r->broker);
	if (r->agents != NULL)
		xsp_agent_rings_read_args(r->agents);
}

static void give_up(struct xsp_recorder *r, struct layout *l)
{
	use_layout(r, l->module, -1);
	l->off = true;
	xsp_recorder_note(
		r,
		"%s: its tensors are not laid out as in any PyTorch that xsptrace knows: shapes and inputs are off for it",
		l->module->display_path);
	xsp_capture_put_info(r->writer, "tensor layout", "unknown");
}

static void try_another(struct xsp_recorder *r, struct layout *l, const struct xsp_probe *p)
{
	int now = layout_index(&p->arguments->spec.layout);

	if (now >= 0)
		l->tried |= 1U << now;
	for (int i = XSP_TORCH_LAYOUTS - 1; i >= 0; i--) {
		if (l->tried & 1U << i)
			continue;
		use_layout(r, l->module, i);
		*l = (struct layout){
			.module = l->module, .tried = l->tried, .since_ns = xsp_now_ns()};
		xsp_capture_put_number(r->writer, "tensor layout from", l->since_ns);
		return;
	}
	give_up(r, l);
}

/* ---- events ---- */

static void count_tensor(struct layout *l, enum xsp_torch_impl impl, bool good)
{
	if (impl == XSP_TORCH_IMPL_NONE)
		return;
	if (impl == XSP_TORCH_IMPL_UNKNOWN)
		l->nameless++;
	else if (good)
		l->good++;
	else
		l->bad++;
}

static void look_at_tensors(struct xsp_recorder *r, const struct xsp_event *e,
			    const struct xsp_section *s, const struct xsp_probe *p)
{
	bool flag_first = p->arguments->spec.optional_flag_first;
	struct layout *l = layout_of(r, e->probe);
	const struct xsp_args_record *record = NULL;

	while ((record = xsp_torch_next_record(s, record)) != NULL) {
		if (record->kind != XSP_ARGS_TENSOR || record->size < 2)
			continue;
		const struct xsp_args_tensor *t = (const void *)(record + 1);
		enum xsp_torch_impl impl = class_of(r, e->tgid, t->vtable);
		if (l != NULL && e->time_ns >= l->since_ns)
			count_tensor(l, impl, xsp_torch_tensor_good(record, flag_first));
	}
	if (l == NULL || l->off)
		return;
	if (l->bad >= ENOUGH && FEW(l))
		try_another(r, l, p);
	else if (l->nameless >= NAMELESS && l->good == 0)
		give_up(r, l);
}

/* Writes the operator's schema, once. */
static int write_schema(struct xsp_recorder *r, uint32_t probe, const struct xsp_probe_arguments *p)
{
	struct xsp_recorder_arguments *a = r->arguments;

	if (xsp_grow_zeroed(&a->has_schema, &a->schema_bytes, (size_t)probe / 8 + 1) < 0)
		return -ENOMEM;
	if (a->has_schema[probe / 8] & 1U << probe % 8)
		return 0;
	a->has_schema[probe / 8] |= (uint8_t)(1U << probe % 8);
	const struct xsp_capture_operator o = {.probe = probe,
					       .parts = p->parts,
					       .flavor = p->flavor,
					       .doubtful = p->doubtful,
					       .schema = p->schema};
	return xsp_capture_put_operator(r->writer, &o);
}

int xsp_recorder_sections(void *ctx, const struct xsp_event *e)
{
	struct xsp_recorder *r = ctx;
	const struct xsp_section *s = NULL;
	int rc = 0;

	if (r->host_functions != NULL && xsp_host_functions_wants(r->host_functions, e->probe)) {
		const struct recorded_process *p = xsp_recorder_find(r, (pid_t)e->tgid);
		return xsp_host_functions_see(r->host_functions, p != NULL ? p->process : NULL, e);
	}
	if (r->arguments == NULL && (r->arguments = calloc(1, sizeof(*r->arguments))) == NULL)
		return -ENOMEM;
	while (rc == 0 && (s = xsp_event_next_section(e, s)) != NULL) {
		if (s->type != XSP_SECTION_ARGS && s->type != XSP_SECTION_OUTPUTS)
			continue;
		const struct xsp_probe *p = xsp_recorder_probe(r, e->probe);
		if (p == NULL || p->arguments == NULL)
			continue;
		rc = write_schema(r, e->probe, p->arguments);
		look_at_tensors(r, e, s, p);
	}
	return rc;
}
