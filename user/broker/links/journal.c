/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/links/journal.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
	memcpy(s->offsets, (const void *)(uintptr_t)attr->offsets, attr->count * 8);
	if (attr->ref_ctr_offsets != 0)
		memcpy(s->semaphores, (const void *)(uintptr_t)attr->ref_ctr_offsets,
		       attr->count * 8);
	else
		memset(s->semaphores, 0, sizeof(s->semaphores));
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

/* ---- the guardian ---- */

/* Gives the semaphores as they were. The kernel refuses another one at a site that it still knows, and raises none
 * where the breakpoint is in already. */
static void mend(const struct xsp_journal_slot *s)
{
	char path[32];
	bool any_semaphore = false;

	for (uint32_t i = 0; i < s->count && i < XSP_LINK_SITES; i++)
		any_semaphore |= s->semaphores[i] != 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->file);
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)s->program,
		.attach_type = s->attach_type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)s->offsets,
		.ref_ctr_offsets = any_semaphore ? (uintptr_t)s->semaphores : 0,
		.count = s->count,
		.multi_flags = s->multi_flags,
		.pid = s->pid,
	};
	int link = xsp_link_create_uprobe_multi(&attr);
	if (link >= 0)
		close(link);
}

#define CLOSERS 16

/* Closing a link waits for the kernel's grace periods, so several processes that share the table of descriptors close
 * them at a time. */
static void close_all(const struct xsp_journal *j)
{
	for (uint32_t k = 0; k < CLOSERS; k++) {
		if (syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0) != 0)
			continue;
		for (uint32_t fd = 3 + k; fd <= j->top; fd += CLOSERS)
			close((int)fd);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
}

static void guard(struct xsp_journal *j, int broker)
{
	struct pollfd fd = {.fd = broker, .events = POLLIN};

	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	if (__atomic_load_n(&j->over, __ATOMIC_ACQUIRE))
		_exit(0);
	for (unsigned i = 0; i < XSP_JOURNAL_SLOTS; i++)
		if (__atomic_load_n(&j->slots[i].active, __ATOMIC_ACQUIRE))
			mend(&j->slots[i]);
	close_all(j);
	_exit(0);
}

int xsp_guardian_start(struct xsp_journal **out)
{
	*out = NULL;
	struct xsp_journal *j =
		mmap(NULL, sizeof(*j), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (j == MAP_FAILED)
		return -errno;
	int broker = (int)syscall(SYS_pidfd_open, getpid(), 0);
	/* shares the table of descriptors: they stay open when the broker dies */
	long pid = broker < 0 ? -1 : syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		prctl(PR_SET_NAME, "xsp-guardian");
		guard(j, broker);
	}
	if (pid < 0) {
		int code = -errno;
		if (broker >= 0)
			close(broker);
		munmap(j, sizeof(*j));
		return code;
	}
	*out = j;
	return 0;
}

void xsp_guardian_end(struct xsp_journal *j)
{
	if (j != NULL)
		__atomic_store_n(&j->over, 1, __ATOMIC_RELEASE);
}
