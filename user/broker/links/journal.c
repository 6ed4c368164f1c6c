/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/links/journal.h"

#include <stddef.h>
#include <string.h>

#include "base/rows/u64map.h"
#include "broker/kernel/kernel.h"

/* -1: none is free. */
static int acquire_slot(struct xsp_journal *j)
{
	for (int i = 0; i < XSP_JOURNAL_SLOTS; i++) {
		uint32_t was_free = 0;
		if (__atomic_compare_exchange_n(&j->slots[i].in_use, &was_free, 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i;
	}
	return -1;
}

/* Where a breakpoint is left that has a semaphore, only somebody who gives the same one can take it out. */
static void remember(struct xsp_journal *j, const struct xsp_journal_slot *s)
{
	for (int i = 0; i < XSP_JOURNAL_SEMAPHORES; i++) {
		struct xsp_journal_slot *p = &j->semaphores[i];
		uint32_t was_free = 0;
		if (__atomic_load_n(&p->active, __ATOMIC_ACQUIRE) && p->pid == s->pid &&
		    p->file == s->file && p->count == s->count &&
		    memcmp(p->offsets, s->offsets, s->count * sizeof(s->offsets[0])) == 0)
			return;
		if (!__atomic_compare_exchange_n(&p->in_use, &was_free, 1, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		memcpy(&p->count, &s->count, sizeof(*p) - offsetof(struct xsp_journal_slot, count));
		__atomic_store_n(&p->active, 1, __ATOMIC_RELEASE);
		return;
	}
}

int xsp_journal_begin(struct xsp_journal *j, const struct xsp_link_create_uprobe_multi *attr,
		      int file)
{
	int slot = j != NULL && attr->count <= XSP_LINK_SITES ? acquire_slot(j) : -1;

	if (slot < 0)
		return slot;
	struct xsp_journal_slot *s = &j->slots[slot];
	s->count = attr->count;
	s->pid = attr->pid;
	s->attach_type = attr->attach_type;
	s->multi_flags = attr->multi_flags;
	s->program = (int32_t)attr->prog_fd;
	s->file = file;
	xsp_journal_keep(j, s->program);
	xsp_journal_keep(j, file);
	memcpy(s->offsets, (const void *)(uintptr_t)attr->offsets, attr->count * 8);
	if (attr->ref_ctr_offsets != 0)
		memcpy(s->semaphores, (const void *)(uintptr_t)attr->ref_ctr_offsets,
		       attr->count * 8);
	else
		memset(s->semaphores, 0, sizeof(s->semaphores));
	if (attr->ref_ctr_offsets != 0)
		remember(j, s);
	__atomic_store_n(&s->active, 1, __ATOMIC_RELEASE);
	return slot;
}

void xsp_journal_end(struct xsp_journal *j, int slot)
{
	if (j == NULL || slot < 0)
		return;
	__atomic_store_n(&j->slots[slot].active, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&j->slots[slot].in_use, 0, __ATOMIC_RELEASE);
}

/* ---- what the guardian goes through at the end ---- */

void xsp_journal_keep(struct xsp_journal *j, int fd)
{
	if (fd >= 0 && fd < XSP_JOURNAL_FDS)
		__atomic_store_n(&j->kept[fd], 1, __ATOMIC_RELEASE);
}

void xsp_journal_probed(struct xsp_journal *j, pid_t pid, const struct xsp_verified_file *file)
{
	const uint64_t key = xsp_u64_mix((uint64_t)pid << 32 | (uint32_t)file->fd);

	for (uint64_t i = 0; j != NULL && i < 64; i++) {
		struct xsp_journal_probed *p = &j->probed[(key + i) % XSP_JOURNAL_PROBED];
		uint32_t was_free = 0;
		if (__atomic_load_n(&p->used, __ATOMIC_ACQUIRE) == 2 && p->pid == pid &&
		    p->file.fd == file->fd)
			return;
		if (!__atomic_compare_exchange_n(&p->used, &was_free, 1, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		xsp_journal_keep(j, file->fd);
		p->pid = pid;
		p->file = *file;
		__atomic_store_n(&p->used, 2, __ATOMIC_RELEASE);
		return;
	}
}
