/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * c10d.c - collectives of torch.distributed: those that the program asks a process group for (any
 * backend), those that gloo runs on a thread of its own, and waits for them. catalog/collectives.h
 * lists the functions.
 *
 * All are methods. A call returns an intrusive_ptr<Work> through a hidden slot, so the group is
 * argument 1. enqueue() returns nothing, so its group is argument 0. What is queued is passed as
 * the address of an intrusive_ptr.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/collectives.h"
#include "probes/probe.h"
#include "probes/torch/arguments.h"

#define AT_16 16
#define AT_24 24

static void capture_group(struct xsp_probe *p, uint8_t self)
{
	p->args_read |= 1U << self;
	p->detail.entry |= 1U << XSP_SECTION_WORDS;
	p->detail.words = XSP_C10D_WORDS;
	p->detail.word[XSP_C10D_GROUP] = (struct xsp_operand){.base = self};
	p->detail.word[XSP_C10D_AT_16] =
		(struct xsp_operand){.base = self, .deref = 1, .offset = AT_16};
	p->detail.word[XSP_C10D_AT_24] =
		(struct xsp_operand){.base = self, .deref = 1, .offset = AT_24};
}

static void capture_work(struct xsp_probe *p, uint8_t argument)
{
	p->args_read |= 1U << argument;
	p->detail.entry |= 1U << XSP_SECTION_WORDS;
	p->detail.word[p->detail.words++] = (struct xsp_operand){.base = argument, .deref = 1};
}

/* The tensors of a call: --shapes. 0 or -ENOMEM. */
static int capture_tensors(const struct xsp_torch_module *t, const struct xsp_symbol *s,
			   const struct xsp_collective *what, struct xsp_probe *p)
{
	char text[256];
	struct xsp_torch_op op = {.symbol = s};

	if (t->parts == 0)
		return 0;
	const int length = snprintf(text, sizeof(text), "c10d::%s(This group, %s) -> Work",
				    what->name, what->arguments);
	int rc = xsp_torch_schema_parse(text, (size_t)length, &op.schema);
	if (rc == 0)
		rc = xsp_torch_capture_arguments(t, &op, p);
	xsp_torch_schema_clear(&op.schema);
	return rc == -ENOMEM ? rc : 0;
}

static int add(const struct xsp_provider *self, const struct xsp_symbol *s,
	       const struct xsp_collective_symbol *c, const struct xsp_torch_module *t,
	       const struct xsp_selection *selection, struct xsp_probe_list *list)
{
	char *name = xsp_demangle(s->name, false);
	struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_SPAN, s, name);
	long rc = 0;

	if (xsp_selection_includes(selection, self, p.name)) {
		if (c->role == XSP_COLLECTIVE_CALL) {
			capture_group(&p, 1);
			rc = capture_tensors(t, s, c->what, &p);
		} else if (c->role == XSP_COLLECTIVE_QUEUE) {
			capture_group(&p, 0);
			capture_work(&p, 1);
		} else if (c->role == XSP_COLLECTIVE_RUN) {
			capture_work(&p, 0);
		}
		if (rc == 0)
			rc = xsp_probe_list_add(list, &p);
		if (rc < 0)
			free(p.arguments);
	}
	free(name);
	return rc < 0 ? (int)rc : 0;
}

/* Only in a module with collectives: the search for its operators takes some time. */
static int look(struct xsp_module *m, const struct xsp_selection *selection,
		struct xsp_torch_module *out, struct xsp_error *err)
{
	struct xsp_torch_ops ops;
	int rc = xsp_torch_ops_find(m, &ops, err);

	if (rc == 0)
		*out = xsp_torch_look(m, &ops, selection->details);
	xsp_torch_ops_clear(&ops);
	return rc;
}

static int find_c10d(const struct xsp_provider *self, struct xsp_module *m,
		     const struct xsp_selection *selection, struct xsp_probe_list *list,
		     struct xsp_error *err)
{
	static const unsigned shapes =
		XSP_DETAIL_SHAPES | XSP_DETAIL_OUTPUTS | XSP_DETAIL_INPUTS | XSP_DETAIL_VALUES;
	struct xsp_torch_module t = {.parts = 0};
	const struct xsp_symbol *symbols;
	bool looked = (selection->details & shapes) == 0;
	size_t count;
	int rc = xsp_module_symbols(m, &symbols, &count, err);

	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct xsp_collective_symbol c =
			strncmp(symbols[i].name, "_ZN", 3) == 0
				? xsp_collective_of(symbols[i].name)
				: (struct xsp_collective_symbol){XSP_COLLECTIVE_NONE, NULL};
		if (c.role == XSP_COLLECTIVE_NONE || symbols[i].ifunc)
			continue;
		if (!looked && c.role == XSP_COLLECTIVE_CALL) {
			looked = true;
			rc = look(m, selection, &t, err);
		}
		if (rc == 0)
			rc = add(self, &symbols[i], &c, &t, selection, list);
	}
	return rc;
}

const struct xsp_provider xsp_provider_c10d = {
	.name = "c10d",
	.help = "collectives of torch.distributed: any backend's calls, what gloo does",
	.by_default = true,
	.names_known = true,
	.find = find_c10d,
};
