/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/torch/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Mangled: a parameter of std::optional<T> and c10::optional<T>. */
#define STD_OPTIONAL "St8optionalI"
#define C10_OPTIONAL "N3c108optionalI"
/* torch::autograd::Node has been an intrusive_ptr_target since the last change of the layout. */
#define NEWEST "_ZN5torch8autograd4Node17release_resourcesEv"

static unsigned wanted(unsigned details)
{
	static const struct {
		unsigned details, parts;
	} rows[] = {
		{XSP_DETAIL_SHAPES, XSP_TORCH_PART_TENSORS},
		{XSP_DETAIL_OUTPUTS, XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_OUTPUTS},
		{XSP_DETAIL_FLOPS, XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_FLOPS},
		{XSP_DETAIL_INPUTS, XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_INPUTS},
		{XSP_DETAIL_VALUES,
		 XSP_TORCH_PART_TENSORS | XSP_TORCH_PART_INPUTS | XSP_TORCH_PART_VALUES},
	};
	unsigned parts = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		parts |= details & rows[i].details ? rows[i].parts : 0;
	return parts;
}

struct xsp_torch_module xsp_torch_look(struct xsp_module *m, const struct xsp_torch_ops *ops,
				       unsigned details)
{
	struct xsp_torch_module t = {.parts = wanted(details), .flavor = XSP_TORCH_STD_OPTIONAL};
	struct xsp_symbol s;
	bool found = false;

	/* other architectures pass arguments differently */
	if (xsp_module_arch(m) != XSP_ARCH_X86_64)
		t.parts = 0;
	for (size_t i = 0; t.parts != 0 && i < ops->count && !found; i++) {
		const char *name = ops->items[i].symbol->name;
		bool old = strstr(name, C10_OPTIONAL) != NULL;
		found = old || strstr(name, STD_OPTIONAL) != NULL;
		if (old)
			t.flavor = XSP_TORCH_C10_OPTIONAL;
	}
	if (t.parts == 0 || t.flavor == XSP_TORCH_C10_OPTIONAL)
		return t;
	t.layout = xsp_module_find(m, NEWEST, &s) == 0 ? 2 : 1;
	return t;
}

/* The schema as text, without defaults; NULL: out of memory. */
static char *schema_text(const struct xsp_torch_schema *s, size_t *length)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, length);

	if (f == NULL)
		return NULL;
	fprintf(f, "%s%s%s(", s->name, s->overload[0] != '\0' ? "." : "", s->overload);
	for (size_t i = 0; i < s->count; i++) {
		const struct xsp_torch_argument *a = &s->arguments[i];
		bool star = a->keyword_only && (i == 0 || !s->arguments[i - 1].keyword_only);
		fprintf(f, "%s%s%s %s", i > 0 ? ", " : "", star ? "*, " : "", a->type, a->name);
	}
	fprintf(f, ") -> %s", s->returns);
	bool failed = ferror(f);
	if (fclose(f) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}

static struct xsp_probe_arguments *new_arguments(const struct xsp_torch_schema *s)
{
	size_t length;
	char *text = schema_text(s, &length);
	struct xsp_probe_arguments *a = text != NULL ? calloc(1, sizeof(*a) + length + 1) : NULL;

	if (a != NULL)
		memcpy(a->schema, text, length);
	free(text);
	return a;
}

static int make(const struct xsp_torch_module *t, const struct xsp_torch_op *op,
		const struct xsp_torch_call *call, struct xsp_probe *p)
{
	struct xsp_probe_arguments *a = new_arguments(&op->schema);

	if (a == NULL)
		return -ENOMEM;
	a->parts = t->parts;
	a->flavor = t->flavor;
	a->doubtful = op->doubtful;
	if (!xsp_torch_build_spec(&op->schema, call, t->parts, t->flavor, &a->spec)) {
		free(a);
		return 0;
	}
	a->kept = xsp_torch_kept(call);
	a->spec.layout = xsp_torch_layouts[t->layout];
	p->arguments = a;
	p->detail.entry |= 1U << XSP_SECTION_ARGS;
	if (a->spec.outputs > 0)
		p->detail.exit |= 1U << XSP_SECTION_OUTPUTS;
	p->args_read |= (1U << XSP_ARGS_REGISTERS) - 1;
	return 0;
}

int xsp_torch_capture_arguments(const struct xsp_torch_module *t, const struct xsp_torch_op *op,
				struct xsp_probe *p)
{
	struct xsp_torch_call call;

	if (t->parts == 0 || op->schema.name == NULL)
		return 0;
	char *demangled = xsp_demangle(op->symbol->name, true);
	int rc = demangled != NULL && xsp_torch_place(&op->schema, demangled, t->flavor, &call) == 0
			 ? make(t, op, &call, p)
			 : 0;
	free(demangled);
	return rc;
}
