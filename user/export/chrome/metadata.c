/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/chrome/metadata.h"

#include <inttypes.h>
#include <stdio.h>

#include "catalog/job_variables.h"
#include "catalog/torch/abi.h"
#include "export/chrome/json.h"

/* ---- what was recorded, by what the capture holds of it ---- */

static unsigned parts_read(const struct xsp_capture_reader *r)
{
	const struct xsp_capture_operator *all;
	const size_t count = xsp_capture_operators(r, &all);
	unsigned parts = 0;

	for (size_t i = 0; i < count; i++)
		parts |= all[i].parts;
	return parts;
}

static bool has_modules(const struct xsp_capture_python *all, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < all[i].count; k++)
			if (all[i].frames[k].module != 0)
				return true;
	return false;
}

/* As PyTorch's profiler does: 1, or not there. */
static void put_features(struct xsp_export *x)
{
	const struct xsp_capture_python *stacks;
	const size_t count = xsp_capture_pythons(x->view.reader, &stacks);
	const unsigned parts = parts_read(x->view.reader);
	const struct {
		const char *key;
		bool on;
	} features[] = {
		{"record_shapes", parts & XSP_TORCH_PART_TENSORS},
		{"with_stack", count > 0},
		{"with_modules", has_modules(stacks, count)},
		{"profile_memory", xsp_timeline_has_allocations(x->view.timeline)},
		{"with_flops", parts & XSP_TORCH_PART_FLOPS},
	};

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		if (!features[i].on)
			continue;
		xsp_chrome_number_pair(x->out, features[i].key, 1);
		xsp_out_text(x->out, ",\n");
	}
}

/* ---- which part of which job ---- */

struct part {
	uint32_t rank, size; /* size 0: not known */
};

static bool part_of(const struct xsp_capture_process *p, struct part *out)
{
	out->size = 0;
	if (!xsp_capture_variable_number(p, XSP_JOB_RANK, &out->rank))
		return false;
	xsp_capture_variable_number(p, XSP_JOB_WORLD_SIZE, &out->size);
	return out->size == 0 || out->rank < out->size;
}

/* One trace is of one rank: with processes of several there is no such key. */
static void put_rank(struct xsp_export *x, const struct xsp_capture_process *all, size_t count)
{
	struct part first = {0}, other;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!part_of(&all[i], &other))
			continue;
		if (any && (other.rank != first.rank || other.size != first.size))
			return;
		first = other;
		any = true;
	}
	if (!any)
		return;
	xsp_chrome_key(x->out, "distributedInfo");
	xsp_out_printf(x->out, "{\"rank\":%" PRIu32, first.rank);
	if (first.size > 0)
		xsp_out_printf(x->out, ",\"world_size\":%" PRIu32, first.size);
	xsp_out_text(x->out, "},\n");
}

static void put_variables(struct xsp_export *x, const struct xsp_capture_process *p)
{
	char value[256];

	xsp_out_text(x->out, "{");
	xsp_chrome_number_pair(x->out, "pid", p->ns_pid != 0 ? p->ns_pid : p->pid);
	for (size_t i = 0; xsp_job_variables[i] != NULL; i++) {
		if (!xsp_capture_variable(p, xsp_job_variables[i], value, sizeof(value)))
			continue;
		xsp_out_text(x->out, ",");
		xsp_chrome_text_pair(x->out, xsp_job_variables[i], value);
	}
	xsp_out_text(x->out, "}");
}

static void put_job(struct xsp_export *x, const struct xsp_capture_process *all, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (all[i].environment[0] == '\0')
			continue;
		if (!any)
			xsp_chrome_key(x->out, "xsptrace_job");
		xsp_out_text(x->out, any ? ",\n" : "[");
		put_variables(x, &all[i]);
		any = true;
	}
	if (any)
		xsp_out_text(x->out, "],\n");
}

void xsp_chrome_metadata(struct xsp_export *x)
{
	const struct xsp_capture_process *all;
	const size_t count = xsp_capture_processes(x->view.reader, &all);
	char id[20];

	snprintf(id, sizeof(id), "%016" PRIx64, xsp_capture_id(x->view.reader));
	xsp_chrome_text_pair(x->out, "trace_id", id);
	xsp_out_text(x->out, ",\n");
	put_features(x);
	put_rank(x, all, count);
	put_job(x, all, count);
}
