/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "catalog/collectives.h"
#include "catalog/providers.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"

static void put_number(struct xsp_export *x, const char *key, uint64_t value)
{
	xsp_out_commit(x->out, xsp_chrome_put_number(xsp_out_reserve(x->out, 64), key, value));
}

static void put_name(struct xsp_export *x, const char *name)
{
	xsp_out_text(x->out, ",\"Collective name\":");
	xsp_out_json(x->out, name);
}

static void put_group(struct xsp_export *x, uint32_t rank, uint32_t size)
{
	put_number(x, "Rank", rank);
	put_number(x, "Group size", size);
}

static void put_nccl(struct xsp_export *x, const struct xsp_collective *c, const uint64_t *words,
		     size_t count, uint32_t unreadable)
{
	unsigned bytes;
	const char *type;

	put_name(x, c->name);
	if (count < XSP_NCCL_WORDS || (unreadable & 7))
		return;
	put_number(x, "In msg nelems", words[XSP_NCCL_COUNT]);
	type = xsp_nccl_datatype((uint32_t)words[XSP_NCCL_DATATYPE], &bytes);
	if (type != NULL) {
		xsp_out_text(x->out, ",\"dtype\":");
		xsp_out_json(x->out, type);
	}
	if (c->peer != XSP_COLLECTIVE_NO_WORD && !(unreadable & 1U << XSP_NCCL_PEER))
		put_number(x, "peer", (uint32_t)words[XSP_NCCL_PEER]);
	xsp_out_commit(x->out, xsp_chrome_put_address(xsp_out_reserve(x->out, 64), "communicator",
						      words[XSP_NCCL_COMM]));
}

int xsp_chrome_collective_arguments(struct xsp_export *x, const struct xsp_span *span,
				    const struct xsp_section *section)
{
	const struct xsp_capture_probe *probes = NULL;
	uint64_t words[XSP_WORDS_MAX] = {0};
	size_t count = xsp_section_length(section) / 8;
	uint32_t rank, size;

	if (span->probe >= xsp_capture_probes(x->view.reader, &probes) ||
	    !(xsp_provider_traits(probes[span->probe].provider) & XSP_PROVIDER_COLLECTIVES))
		return 0;
	const struct xsp_collective_symbol c = xsp_collective_of(probes[span->probe].symbol);
	count = count < XSP_WORDS_MAX ? count : XSP_WORDS_MAX;
	memcpy(words, xsp_section_data(section), count * 8);
	if (c.role == XSP_COLLECTIVE_CALL && c.what->arguments == NULL) {
		put_nccl(x, c.what, words, count, section->value);
	} else if (c.role == XSP_COLLECTIVE_CALL) {
		put_name(x, c.what->name);
		if (xsp_c10d_group(words, count, section->value, &rank, &size))
			put_group(x, rank, size);
	} else if (c.role == XSP_COLLECTIVE_JOIN && count > XSP_NCCL_RANK) {
		put_group(x, (uint32_t)words[XSP_NCCL_RANK], (uint32_t)words[XSP_NCCL_SIZE]);
	}
	return 0;
}
