/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.c - --waits: its beginning and its end. What lies between is the scheduler's programs' (bpf/sched.bpf.c). */
#include "attach/attach_private.h"
#include "base/clock.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

/* A program that has read the clock before the end has done its work by then. */
#define LAST_NS 2000000

/* Has the kernel walk over all tasks, or all elements of a table. */
static int walk(struct bpf_program *program, const struct bpf_map *table)
{
	union bpf_iter_link_info info = {.map = {.map_fd = 0}};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, o, .link_info = &info,
			    .link_info_len = sizeof(info));
	if (table != NULL)
		info.map.map_fd = (uint32_t)bpf_map__fd(table);
	struct bpf_link *link = bpf_program__attach_iter(program, table != NULL ? &o : NULL);
	char text[64]; /* it writes none */

	if (link == NULL)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link)), rc = fd < 0 ? -errno : 0;
	ssize_t n;
	do
		n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	if (n < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return rc;
}

int xsp_attach_programs(const struct xsp_program_link *links, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!bpf_program__autoload(links[i].program))
			continue;
		*links[i].link = bpf_program__attach(links[i].program);
		if (*links[i].link == NULL)
			return -errno;
	}
	return 0;
}

int xsp_attach_profile(struct xsp_attach *a)
{
	struct xsp_bpf *b = a->bpf;
	const struct xsp_program_link sched[] = {
		{b->progs.xsp_sched_switch, &b->links.xsp_sched_switch},
		{b->progs.xsp_sched_waking, &b->links.xsp_sched_waking},
		{b->progs.xsp_sched_wakeup, &b->links.xsp_sched_wakeup},
		{b->progs.xsp_sched_new, &b->links.xsp_sched_new},
	};

	int rc = xsp_attach_programs(sched, sizeof(sched) / sizeof(sched[0]));
	return rc < 0 ? rc : xsp_samples_open(a);
}

int xsp_waits_meet(struct xsp_attach *a)
{
	__atomic_store_n(&a->bpf->bss->xsp_waits_from_ns, xsp_now_ns(), __ATOMIC_RELEASE);
	return walk(a->bpf->progs.xsp_sched_meet, NULL);
}

int xsp_attach_waits(struct xsp_attach *a, bool on)
{
	if (!a->waits || a->bpf->bss->xsp_waits_until_ns != 0)
		return 0;
	if (on)
		return a->bpf->bss->xsp_waits_from_ns == 0 ? xsp_waits_meet(a) : 0;
	if (a->bpf->bss->xsp_waits_from_ns != 0)
		__atomic_store_n(&a->bpf->bss->xsp_waits_until_ns, xsp_now_ns(), __ATOMIC_RELEASE);
	return 0;
}

void xsp_waits_part(struct xsp_attach *a)
{
	if (!a->waits || a->bpf->bss->xsp_waits_until_ns == 0)
		return;
	nanosleep(&(struct timespec){.tv_nsec = LAST_NS}, NULL);
	walk(a->bpf->progs.xsp_sched_part, a->bpf->maps.xsp_thread_waits);
	a->waits = false;
}
