/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/view.h"

#include <errno.h>
#include <string.h>

#include "timeline/samples.h"
#include "timeline/waits.h"

/* Above any process number of Linux. */
#define FIRST_PID 0x400001U

#define DEVICE (1ULL << 32)

static const char *const weights[XSP_WEIGHTS] = {"usual",   "wall",    "cpu",
						 "off-cpu", "samples", "all"};

const char *xsp_weight_name(enum xsp_weight weight)
{
	return weights[weight];
}

enum xsp_weight xsp_weight_of(const char *name)
{
	enum xsp_weight w = 0;

	while (w < XSP_WEIGHTS && strcmp(name, weights[w]) != 0)
		w++;
	return w;
}

enum xsp_weight xsp_weight_chosen(enum xsp_weight weight, const struct xsp_timeline *t)
{
	if (weight != XSP_WEIGHT_USUAL)
		return weight;
	return xsp_timeline_samples_asked(t) ? XSP_WEIGHT_SAMPLES : XSP_WEIGHT_WALL;
}

bool xsp_weight_recorded(enum xsp_weight weight, const struct xsp_timeline *t)
{
	if (weight == XSP_WEIGHT_SAMPLES)
		return xsp_timeline_has_samples(t);
	return weight == XSP_WEIGHT_USUAL || weight == XSP_WEIGHT_WALL || xsp_timeline_has_waits(t);
}

/* Its number, or its own one unless that is taken. */
static uint32_t number_of(struct xsp_view *v, uint64_t key, uint32_t number)
{
	const uint32_t *known = xsp_u64map_get(&v->pids, key);
	uint32_t display_pid = number;

	if (known != NULL)
		return *known;
	while (xsp_u64map_get(&v->pids_used, display_pid) != NULL)
		display_pid = FIRST_PID + v->next_pid++;
	if (xsp_u64map_set(&v->pids, key, display_pid) < 0 ||
	    xsp_u64map_set(&v->pids_used, display_pid, 1) < 0)
		v->error = -ENOMEM;
	return display_pid;
}

uint32_t xsp_view_pid(struct xsp_view *v, uint32_t number)
{
	return number_of(v, (uint64_t)v->part << 33 | number, number);
}

/* In its low half: the number that the device wants. */
static uint64_t device_key(const struct xsp_view *v, uint32_t device)
{
	return (uint64_t)v->part << 33 | DEVICE |
	       (device == XSP_VIEW_OVERHEAD ? device : device & 0xffff);
}

uint32_t xsp_view_gpu(struct xsp_view *v, uint32_t device, uint32_t pid)
{
	const uint64_t key = device_key(v, device);
	const uint32_t *first = xsp_u64map_get(&v->gpu_users, key);

	if (first == NULL && pid != 0 && xsp_u64map_set(&v->gpu_users, key, pid) < 0)
		v->error = -ENOMEM;
	const bool own = first == NULL || pid == 0 || *first == pid;
	return number_of(v, own ? key : xsp_u64_mix(key) + pid, (uint32_t)key);
}

uint32_t xsp_view_gpu_user(const struct xsp_view *v, uint32_t device)
{
	const uint32_t *first = xsp_u64map_get(&v->gpu_users, device_key(v, device));

	return first != NULL ? *first : 0;
}

const struct xsp_view_named *xsp_view_name(const struct xsp_view *v, uint32_t pid)
{
	for (size_t i = 0; v->job != NULL && i < v->job->name_count; i++)
		if (v->job->names[i].capture == v->part && v->job->names[i].pid == pid)
			return &v->job->names[i];
	return NULL;
}

void xsp_view_clear(struct xsp_view *v)
{
	xsp_u64map_free(&v->pids);
	xsp_u64map_free(&v->pids_used);
	xsp_u64map_free(&v->gpu_users);
}
