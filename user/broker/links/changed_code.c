/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * changed_code.c - functions whose code in a process is no longer the file's. Their sites are not put in again: the
 * kernel would run the file's instruction in place of another one.
 */
#include "broker/kernel/attach_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/grow.h"

static uint64_t pair(pid_t pid, uint32_t probe)
{
	return (uint64_t)(uint32_t)pid << 32 | probe;
}

static int add(struct xsp_attach *a, struct xsp_u64map *set, pid_t pid, uint32_t probe)
{
	if (xsp_u64map_get(set, pair(pid, probe)) != NULL)
		return 0;
	if (XSP_APPEND(a->changed, a->changed_room, a->changed_count,
		       (struct xsp_changed_code){pid, probe}) < 0)
		return -ENOMEM;
	return xsp_u64map_set(set, pair(pid, probe), 1);
}

int xsp_changed_code_look(struct xsp_attach *a, const struct xsp_link *link,
			  enum xsp_verify question, struct xsp_u64map *set)
{
	uint8_t differs[XSP_LINK_SITES];

	if (link->grouped || link->count == 0)
		return 0;
	int rc = xsp_verify_sites(link->pid, &link->file, link->sites, link->count, question,
				  differs);
	/* it cannot be known here, or the process has ended */
	if (rc == -EOPNOTSUPP || rc == -ESRCH)
		return 0;
	if (rc == -ESTALE) /* the file was changed: so were all of its sites */
		memset(differs, 1, link->count);
	else if (rc < 0)
		return rc;
	for (size_t i = 0; i < link->count; i++) {
		rc = differs[i] ? add(a, set, link->pid, XSP_COOKIE_PROBE(link->sites[i].cookie))
				: 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

size_t xsp_changed_code_drop(const struct xsp_u64map *set, pid_t pid, struct xsp_attach_site *sites,
			     size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (xsp_u64map_get(set, pair(pid, XSP_COOKIE_PROBE(sites[i].cookie))) == NULL)
			sites[kept++] = sites[i];
	return kept;
}

bool xsp_changed_code_any(const struct xsp_u64map *set, const struct xsp_link *link)
{
	for (size_t i = 0; i < link->count; i++)
		if (xsp_u64map_get(set, pair(link->pid, XSP_COOKIE_PROBE(link->sites[i].cookie))))
			return true;
	return false;
}

int xsp_changed_code_set(pid_t pid, const uint32_t *probes, size_t count, struct xsp_u64map *set)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = xsp_u64map_set(set, pair(pid, probes[i]), 1);
	return rc;
}

long xsp_attach_changed_code(struct xsp_attach *a, struct xsp_changed_code *rows, size_t room)
{
	pthread_mutex_lock(&a->lock);
	size_t n = a->changed_count < room ? a->changed_count : room;
	a->changed_count -= n;
	memcpy(rows, a->changed + a->changed_count, n * sizeof(*rows));
	pthread_mutex_unlock(&a->lock);
	return (long)n;
}
