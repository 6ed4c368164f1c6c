/* SPDX-License-Identifier: BSD-2-Clause */
/* attach.c - links: uprobe_multi where the kernel has it, perf events where not. */
#include "attach/attach_private.h"
#include "attach/tracefs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- bookkeeping of links ---- */

static int keep_fd(struct xsp_attach *a, int fd)
{
	if (a->link_fd_count == a->link_fd_room) {
		size_t room = a->link_fd_room ? 2 * a->link_fd_room : 64;
		int *grown = reallocarray(a->link_fds, room, sizeof(*grown));
		if (grown == NULL) {
			close(fd);
			return -ENOMEM;
		}
		a->link_fds = grown;
		a->link_fd_room = room;
	}
	a->link_fds[a->link_fd_count++] = fd;
	return 0;
}

int xsp_attach_keep_link(struct xsp_attach *a, struct bpf_link *link)
{
	if (a->link_count == a->link_room) {
		size_t room = a->link_room ? 2 * a->link_room : 256;
		struct bpf_link **grown = reallocarray(a->links, room, sizeof(struct bpf_link *));
		if (grown == NULL) {
			bpf_link__destroy(link);
			return -ENOMEM;
		}
		a->links = grown;
		a->link_room = room;
	}
	a->links[a->link_count++] = link;
	return 0;
}

/* Links made since there were `from` of them. */
static int keep_wishes(struct xsp_attach *a, size_t from)
{
	size_t to = a->link_fd_count + a->link_count;
	size_t *grown = reallocarray(a->wishes, a->wish_count + (to - from) + 1, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	a->wishes = grown;
	while (from < to)
		a->wishes[a->wish_count++] = from++;
	return 0;
}

/* ---- one batch of sites ---- */

struct batch {
	struct xsp_attach *a;
	pid_t pid;
	const char *path;
	enum xsp_program program;
	const struct xsp_attach_site *sites;
	uint64_t *offsets, *semaphores, *cookies; /* columns, for uprobe_multi */
	bool any_semaphore;
	size_t refused;
	size_t *refused_index;
	int first_error;
	bool *done; /* sites that need no event of their own; or NULL */
};

static void refuse(struct batch *b, size_t index, int code)
{
	if (b->refused_index != NULL)
		b->refused_index[b->refused] = index;
	b->refused++;
	if (b->first_error == 0)
		b->first_error = code;
}

/* Not even with --follow for processes that are not recorded: they would collect for nobody. */
static bool is_for_agent(enum xsp_program program)
{
	return program == XSP_PROGRAM_GPU_BATCH || program == XSP_PROGRAM_GPU_WANT;
}

static bool is_return(enum xsp_program program)
{
	return program == XSP_PROGRAM_RETURN || program == XSP_PROGRAM_DETAIL_RETURN;
}

static int link_multi(struct batch *b, size_t from, size_t count)
{
	struct bpf_program *program = xsp_attach_program(b->a, b->program);
	struct xsp_link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)bpf_program__fd(program),
		.attach_type = XSP_BPF_TRACE_UPROBE_MULTI,
		.path = (uintptr_t)b->path,
		.offsets = (uintptr_t)(b->offsets + from),
		.ref_ctr_offsets = b->any_semaphore ? (uintptr_t)(b->semaphores + from) : 0,
		.cookies = (uintptr_t)(b->cookies + from),
		.count = (uint32_t)count,
		.multi_flags = is_return(b->program) ? XSP_UPROBE_MULTI_RETURN : 0,
		.pid = (uint32_t)b->pid,
	};

	return xsp_link_create_uprobe_multi(&attr);
}

/* Errors that no other choice of sites would cure. */
static bool is_hopeless(int code)
{
	return code == -EPERM || code == -EACCES || code == -ESRCH || code == -ENOENT ||
	       code == -EBADF || code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

/* One bad site makes the kernel refuse the whole link: halve until it stands alone. */
static int attach_multi(struct batch *b, size_t from, size_t count)
{
	int fd = link_multi(b, from, count);

	if (fd >= 0)
		return keep_fd(b->a, fd);
	if (is_hopeless(fd))
		return fd;
	if (count == 1) {
		refuse(b, from, fd);
		return 0;
	}
	int rc = attach_multi(b, from, count / 2);
	return rc < 0 ? rc : attach_multi(b, from + count / 2, count - count / 2);
}

static int attach_perf_events(struct batch *b, size_t count)
{
	struct bpf_program *program = xsp_attach_program(b->a, b->program);

	for (size_t i = 0; i < count; i++) {
		if (b->done != NULL && b->done[i])
			continue;
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = b->sites[i].cookie,
			    .ref_ctr_offset = b->sites[i].ref_ctr_offset,
			    .retprobe = is_return(b->program));
		struct bpf_link *link = bpf_program__attach_uprobe_opts(
			program, b->pid ? b->pid : -1, b->path, b->sites[i].offset, &opts);
		if (link != NULL) {
			int rc = xsp_attach_keep_link(b->a, link);
			if (rc < 0)
				return rc;
			continue;
		}
		if (is_hopeless(-errno))
			return -errno;
		refuse(b, i, -errno);
	}
	return 0;
}

/* Return probes have no site of their own: where they return to says nothing. */
static int attach_tracefs(struct batch *b, size_t count)
{
	struct bpf_program *program = xsp_attach_program(b->a, b->program);
	int rc = 0;

	b->done = calloc(count, sizeof(*b->done));
	if (b->done == NULL)
		return -ENOMEM;
	if (!is_return(b->program))
		rc = xsp_tracefs_attach(b->a, b->pid, b->path, program, b->sites, count, b->done);
	if (rc == 0)
		rc = attach_perf_events(b, count);
	free(b->done);
	b->done = NULL;
	return rc;
}

static int make_columns(struct batch *b, size_t count)
{
	b->offsets = calloc(3 * count, sizeof(*b->offsets));
	if (b->offsets == NULL)
		return -ENOMEM;
	b->semaphores = b->offsets + count;
	b->cookies = b->offsets + 2 * count;
	for (size_t i = 0; i < count; i++) {
		b->offsets[i] = b->sites[i].offset;
		b->semaphores[i] = b->sites[i].ref_ctr_offset;
		b->cookies[i] = b->sites[i].cookie;
		b->any_semaphore |= b->sites[i].ref_ctr_offset != 0;
	}
	return 0;
}

static int explain(int code, const struct batch *b, struct xsp_error *err)
{
	switch (code) {
	case -ESRCH:
		return xsp_error_set(err, code, XSP_STATUS_NO_TARGET, "process %d has exited",
				     (int)b->pid);
	case -EPERM:
	case -EACCES:
		return xsp_error_set(err, code, XSP_STATUS_PERMISSION,
				     "the kernel refused the uprobes on %s (%s): run with sudo",
				     b->path, strerror(-code));
	case -EMFILE:
	case -ENFILE:
		return xsp_error_set(
			err, code, XSP_STATUS_KERNEL,
			"out of file descriptors: without uprobe_multi (Linux 6.6) each site takes "
			"two; raise the limit (ulimit -n) or trace fewer functions");
	default:
		return xsp_error_set(err, code, XSP_STATUS_KERNEL,
				     "uprobes could not be attached to %s: %s", b->path,
				     strerror(-code));
	}
}

int xsp_attach_sites(struct xsp_attach *a, pid_t pid, const char *path, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused,
		     /* NOLINTNEXTLINE(readability-non-const-parameter): filled through the batch */
		     size_t *refused_index, struct xsp_error *err)
{
	struct batch b = {.a = a,
			  .pid = a->follow && !is_for_agent(program) ? 0 : pid,
			  .path = path,
			  .program = program,
			  .sites = sites,
			  .refused_index = refused_index};
	size_t before = a->link_fd_count + a->link_count; /* one of them is 0 */
	int rc = 0;

	if (refused != NULL)
		*refused = 0;
	if (count == 0 || xsp_attach_program(a, program) == NULL)
		return 0;
	if (count > UINT32_MAX / 32)
		return xsp_error_set(err, -E2BIG, XSP_STATUS_FAILED, "too many sites: %zu", count);
	if (a->method == XSP_ATTACH_UPROBE_MULTI) {
		rc = make_columns(&b, count);
		if (rc == 0)
			rc = attach_multi(&b, 0, count);
		free(b.offsets);
	} else if (a->method == XSP_ATTACH_TRACEFS) {
		rc = attach_tracefs(&b, count);
	} else {
		rc = attach_perf_events(&b, count);
	}
	if (program == XSP_PROGRAM_GPU_WANT && rc == 0)
		rc = keep_wishes(a, before);
	if (rc == 0 && b.refused == count)
		rc = b.first_error;
	if (refused != NULL)
		*refused = b.refused;
	return rc < 0 ? explain(rc, &b, err) : 0;
}

int xsp_attach_range(struct xsp_attach *a, uint32_t probe, const struct xsp_range_spec *spec)
{
	return bpf_map_update_elem(bpf_map__fd(a->bpf->maps.xsp_specs), &probe, spec, BPF_ANY)
		       ? -errno
		       : 0;
}

int xsp_attach_detail(struct xsp_attach *a, uint32_t probe, const struct xsp_detail_spec *spec)
{
	return bpf_map_update_elem(bpf_map__fd(a->bpf->maps.xsp_details), &probe, spec, BPF_ANY)
		       ? -errno
		       : 0;
}

int xsp_attach_arguments(struct xsp_attach *a, uint32_t probe, const struct xsp_args_spec *spec)
{
	return bpf_map_update_elem(bpf_map__fd(a->bpf->maps.xsp_args), &probe, spec, BPF_ANY)
		       ? -errno
		       : 0;
}

int xsp_attach_sequence(struct xsp_attach *a, pid_t pid, const struct xsp_sequence_spec *spec)
{
	uint32_t key = (uint32_t)pid;
	struct xsp_sequence_spec new = *spec;

	new.counter.generation = ++a->generation;
	return bpf_map_update_elem(bpf_map__fd(a->bpf->maps.xsp_sequences), &key, &new, BPF_ANY)
		       ? -errno
		       : 0;
}

void xsp_attach_activate(struct xsp_attach *a, bool on)
{
	__atomic_store_n(&a->bpf->bss->xsp_active, on, __ATOMIC_RELEASE);
	if (on)
		__atomic_store_n(&a->bpf->bss->xsp_gpu_active, on, __ATOMIC_RELEASE);
}

/* Taking probes out waits for the kernel's grace periods, tens of milliseconds a link: they all
 * wait at the same time. */
#define CLOSERS 32

struct closer {
	struct xsp_attach *a;
	size_t *next; /* shared: the next one to close, descriptors first */
};

static void *close_some(void *argument)
{
	struct closer *c = argument;
	struct xsp_attach *a = c->a;
	size_t i;

	while ((i = __atomic_fetch_add(c->next, 1, __ATOMIC_RELAXED)) <
	       a->link_fd_count + a->link_count) {
		if (i < a->link_fd_count && a->link_fds[i] >= 0)
			close(a->link_fds[i]);
		else if (i >= a->link_fd_count)
			bpf_link__destroy(a->links[i - a->link_fd_count]);
	}
	return NULL;
}

void xsp_attach_gpu_stop(struct xsp_attach *a)
{
	for (size_t i = 0; i < a->wish_count; i++) {
		size_t at = a->wishes[i];
		if (a->method == XSP_ATTACH_UPROBE_MULTI) {
			close(a->link_fds[at]);
			a->link_fds[at] = -1;
		} else {
			bpf_link__destroy(a->links[at]);
			a->links[at] = NULL;
		}
	}
	a->wish_count = 0;
}

void xsp_attach_detach(struct xsp_attach *a)
{
	pthread_t threads[CLOSERS];
	size_t started = 0, next = 0, all = a->link_fd_count + a->link_count;
	struct closer c = {a, &next};

	while (started < CLOSERS && started < all &&
	       pthread_create(&threads[started], NULL, close_some, &c) == 0)
		started++;
	if (a->bpf != NULL)
		xsp_bpf__detach(a->bpf);
	close_some(&c); /* all of them, if no thread could be had */
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	a->link_fd_count = 0;
	a->link_count = 0;
	a->wish_count = 0;
	xsp_tracefs_remove(a);
}

void xsp_attach_free(struct xsp_attach *a)
{
	if (a == NULL)
		return;
	xsp_attach_detach(a);
	free(a->link_fds);
	free(a->counter_tids);
	free(a->links);
	free(a->wishes);
	if (a->rings > 1)
		for (size_t i = 0; i < a->rings; i++)
			if (a->ring_fds[i] > 0)
				close(a->ring_fds[i]);
	xsp_bpf__destroy(a->bpf);
	free(a);
}

/* ---- the set of recorded processes ---- */

int xsp_attach_process(struct xsp_attach *a, pid_t pid)
{
	uint32_t key = (uint32_t)pid, one = 1;

	return bpf_map_update_elem(bpf_map__fd(a->bpf->maps.xsp_tgids), &key, &one, BPF_ANY)
		       ? -errno
		       : 0;
}

int xsp_attach_forget_process(struct xsp_attach *a, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_tgids), &key) ? -errno : 0;
}
