/* SPDX-License-Identifier: BSD-2-Clause */
/* job.c - numbers and names of processes where several captures go into one output. */
#include <errno.h>

#include "export/export_private.h"
#include "export/out.h"

/* Above any process number of Linux. */
#define FIRST_PID 0x400001U

uint32_t xsp_export_pid(struct xsp_export *x, bool device, uint32_t number)
{
	const uint64_t key = (uint64_t)x->part << 33 | (uint64_t)device << 32 | number;
	uint32_t display_pid = number;

	if (x->options.job == NULL)
		return number;
	const uint32_t *known = xsp_u64map_get(&x->pids, key);
	if (known != NULL)
		return *known;
	while (xsp_u64map_get(&x->pids_used, display_pid) != NULL)
		display_pid = FIRST_PID + x->next_pid++;
	if (xsp_u64map_set(&x->pids, key, display_pid) < 0 ||
	    xsp_u64map_set(&x->pids_used, display_pid, 1) < 0)
		xsp_out_fail(x->out, -ENOMEM);
	return display_pid;
}

const struct xsp_export_named *xsp_export_name(const struct xsp_export *x, uint32_t pid)
{
	const struct xsp_export_job *job = x->options.job;

	for (size_t i = 0; job != NULL && i < job->name_count; i++)
		if (job->names[i].capture == x->part && job->names[i].pid == pid)
			return &job->names[i];
	return NULL;
}
