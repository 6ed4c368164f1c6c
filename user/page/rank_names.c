/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/rank_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int xsp_rank_names_of(const struct xsp_ranks *ranks, size_t captures, struct xsp_rank_names *out)
{
	const size_t n = xsp_ranks_count(ranks);

	out->shifts = calloc(captures + 1, sizeof(*out->shifts));
	out->names = calloc(n + 1, sizeof(*out->names));
	if (out->shifts == NULL || out->names == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct xsp_rank_info k = xsp_ranks_at(ranks, i);
		char *name = NULL;
		out->shifts[k.capture] = k.shift_ns;
		if (k.rank < 0)
			continue;
		if (asprintf(&name, k.host[0] != '\0' ? "rank %ld (%s)" : "rank %ld", k.rank,
			     k.host) < 0)
			return -ENOMEM;
		out->names[out->job.name_count++] = (struct xsp_view_named){
			.capture = k.capture, .pid = k.pid, .order = (uint32_t)i, .name = name};
	}
	out->job.captures = captures;
	out->job.shift_ns = out->shifts;
	out->job.names = out->names;
	return 0;
}

void xsp_rank_names_clear(struct xsp_rank_names *n)
{
	for (size_t i = 0; i < n->job.name_count; i++)
		free((char *)(uintptr_t)n->names[i].name);
	free(n->names);
	free(n->shifts);
	*n = (struct xsp_rank_names){.shifts = NULL};
}
