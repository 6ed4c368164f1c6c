/* SPDX-License-Identifier: BSD-2-Clause */
/* job.c - numbers and names of processes: one number each, whatever GPUs and other captures of the output have. */
#include <errno.h>

#include "export/export_private.h"
#include "export/out.h"

/* Above any process number of Linux. */
#define FIRST_PID 0x400001U

#define DEVICE (1ULL << 32)

/* The one it has, or its own, unless somebody else has that. */
static uint32_t number_of(struct xsp_export *x, uint64_t key, uint32_t number)
{
	const uint32_t *known = xsp_u64map_get(&x->pids, key);
	uint32_t display_pid = number;

	if (known != NULL)
		return *known;
	while (xsp_u64map_get(&x->pids_used, display_pid) != NULL)
		display_pid = FIRST_PID + x->next_pid++;
	if (xsp_u64map_set(&x->pids, key, display_pid) < 0 ||
	    xsp_u64map_set(&x->pids_used, display_pid, 1) < 0)
		xsp_out_fail(x->out, -ENOMEM);
	return display_pid;
}

uint32_t xsp_export_pid(struct xsp_export *x, uint32_t number)
{
	return number_of(x, (uint64_t)x->part << 33 | number, number);
}

/* In its low half: the number that the device wants. */
static uint64_t device_key(const struct xsp_export *x, uint32_t device)
{
	return (uint64_t)x->part << 33 | DEVICE |
	       (device == XSP_EXPORT_OVERHEAD ? device : device & 0xffff);
}

uint32_t xsp_export_gpu(struct xsp_export *x, uint32_t device, uint32_t pid)
{
	const uint64_t key = device_key(x, device);
	const uint32_t *first = xsp_u64map_get(&x->gpu_users, key);

	if (first == NULL && pid != 0 && xsp_u64map_set(&x->gpu_users, key, pid) < 0)
		xsp_out_fail(x->out, -ENOMEM);
	const bool own = first == NULL || pid == 0 || *first == pid;
	return number_of(x, own ? key : xsp_u64_mix(key) + pid, (uint32_t)key);
}

uint32_t xsp_export_gpu_user(const struct xsp_export *x, uint32_t device)
{
	const uint32_t *first = xsp_u64map_get(&x->gpu_users, device_key(x, device));

	return first != NULL ? *first : 0;
}

const struct xsp_export_named *xsp_export_name(const struct xsp_export *x, uint32_t pid)
{
	const struct xsp_export_job *job = x->options.job;

	for (size_t i = 0; job != NULL && i < job->name_count; i++)
		if (job->names[i].capture == x->part && job->names[i].pid == pid)
			return &job->names[i];
	return NULL;
}

void xsp_export_numbers_free(struct xsp_export *x)
{
	xsp_u64map_free(&x->pids);
	xsp_u64map_free(&x->pids_used);
	xsp_u64map_free(&x->gpu_users);
}
