/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nccl.c - NCCL's C calls, where a library exports them (libnccl.so.2): count, type and
 * communicator of each, and the size and rank of communicators made during the recording. A call
 * returns when the work is in its stream; the time on the GPU is the kernel's.
 */
#include <errno.h>

#include "catalog/collectives.h"
#include "probes/probe.h"

/* Integer argument n: in a register, or on the stack after the return address. */
static struct xsp_operand operand(uint8_t n)
{
#if defined(__x86_64__)
	if (n != XSP_COLLECTIVE_NO_WORD && n >= XSP_OPERAND_SP)
		return (struct xsp_operand){.base = XSP_OPERAND_SP,
					    .deref = 1,
					    .offset = (uint16_t)(8 + 8 * (n - XSP_OPERAND_SP))};
#endif
	return n < XSP_OPERAND_SP ? (struct xsp_operand){.base = n}
				  : (struct xsp_operand){.base = XSP_OPERAND_NONE};
}

static void capture_argument(struct xsp_probe *p, uint8_t argument)
{
	const struct xsp_operand o = operand(argument);

	if (o.base < XSP_OPERAND_SP)
		p->args_read |= 1U << o.base;
	p->detail.word[p->detail.words++] = o;
}

static void capture_arguments(struct xsp_probe *p, const struct xsp_collective_symbol *c)
{
	if (c->role == XSP_COLLECTIVE_CALL) {
		capture_argument(p, c->what->count);
		capture_argument(p, c->what->datatype);
		capture_argument(p, c->what->comm);
		capture_argument(p, c->what->peer);
	} else if (c->role == XSP_COLLECTIVE_JOIN) {
		/* (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank): the id, 128 bytes, is
		 * on the stack */
		capture_argument(p, 0);
		capture_argument(p, 1);
		capture_argument(p, 2);
		p->detail.written = 1 + XSP_NCCL_OUT;
		p->detail.exit = 1U << XSP_SECTION_WRITTEN;
	}
	if (p->detail.words > 0)
		p->detail.entry = 1U << XSP_SECTION_WORDS;
}

static int find_nccl(const struct xsp_provider *self, struct xsp_module *m,
		     const struct xsp_selection *selection, struct xsp_probe_list *list,
		     struct xsp_error *err)
{
	static const char *const others[] = {"ncclCommInitRank", "ncclCommInitRankConfig",
					     "ncclGroupStart", "ncclGroupEnd"};
	const size_t other_count = sizeof(others) / sizeof(others[0]);
	const struct xsp_collective *call = xsp_nccl_calls;
	struct xsp_symbol s;

	(void)err;
	for (size_t i = 0; i < other_count || call->name != NULL; i++) {
		const char *name = i < other_count ? others[i] : call++->name;
		if (!xsp_probe_function(m, name, &s) ||
		    !xsp_selection_includes(selection, self, name))
			continue;
		const struct xsp_collective_symbol c = xsp_collective_of(name);
		struct xsp_probe p = xsp_probe_on(self, XSP_ACTION_SPAN, &s, NULL);
		capture_arguments(&p, &c);
		if (xsp_probe_list_add(list, &p) < 0)
			return -ENOMEM;
	}
	return 0;
}

const struct xsp_provider xsp_provider_nccl = {
	.name = "nccl",
	.help = "NCCL: collectives with their sizes, where libnccl is loaded",
	.by_default = true,
	.names_known = true,
	.find = find_nccl,
};
