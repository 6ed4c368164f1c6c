/* SPDX-License-Identifier: BSD-2-Clause */
/* attach.c - attaches sites: by uprobe_multi links where the kernel has them, else by tracefs or perf events. */
#include "broker/kernel/attach_private.h"
#include "broker/links/tracefs.h"

#include "base/rows/grow.h"
#include "procfs/opener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the sites of one file and program ---- */

struct request {
	struct xsp_attach *a;
	pid_t pid;
	const struct xsp_verified_file *file;
	const char *display_path;
	char path[32]; /* the same file by name, for calls that take no descriptor */
	enum xsp_program program;
	const struct xsp_attach_site *sites;
	size_t refused;
	int first_error;
	bool *done; /* sites that tracefs has attached; NULL: none */
};

static void refuse(struct request *b, int code)
{
	b->refused++;
	if (b->first_error == 0)
		b->first_error = code;
}

/* Errors that other sites would meet as well. */
static bool is_hopeless(int code)
{
	return code == -EPERM || code == -EACCES || code == -ESRCH || code == -ENOENT ||
	       code == -EBADF || code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

static struct xsp_link link_of(const struct request *b, size_t from, size_t count)
{
	return (struct xsp_link){.program = b->program,
				 .returns = xsp_program_is_return(b->program),
				 .fd = -1,
				 .pid = b->pid,
				 .file = *b->file,
				 .count = count,
				 .sites = b->sites + from};
}

/* The kernel refuses a whole link for one bad site: halves the batch until that site is alone. */
static int attach_batch(struct request *b, size_t from, size_t count)
{
	const struct xsp_link link = link_of(b, from, count);
	int rc = xsp_links_add(b->a, &link);

	if (rc == 0 || is_hopeless(rc))
		return rc;
	if (count == 1) {
		refuse(b, rc);
		return 0;
	}
	rc = attach_batch(b, from, count / 2);
	return rc < 0 ? rc : attach_batch(b, from + count / 2, count - count / 2);
}

static bool same_probe(const struct xsp_attach_site *x, const struct xsp_attach_site *y)
{
	return XSP_COOKIE_PROBE(x->cookie) == XSP_COOKIE_PROBE(y->cookie);
}

/* How many sites the next link takes. It keeps a probe's sites together if they fit, so that the probe can be released
 * without its neighbours. */
static size_t batch_of(const struct xsp_attach_site *sites, size_t count)
{
	size_t n = XSP_LINK_SITES;

	if (count <= n)
		return count;
	while (n > 1 && same_probe(&sites[n - 1], &sites[n]))
		n--;
	return same_probe(&sites[n - 1], &sites[n]) ? XSP_LINK_SITES : n;
}

static int attach_multi(struct request *b, size_t count)
{
	int rc = 0;

	for (size_t from = 0, n; from < count && rc == 0; from += n) {
		n = batch_of(b->sites + from, count - from);
		rc = attach_batch(b, from, n);
	}
	return rc;
}

static int attach_perf_events(struct request *b, size_t count)
{
	struct bpf_program *program = xsp_attach_program(b->a, b->program);
	const pid_t thread = xsp_living_thread(b->pid);

	for (size_t i = 0; i < count; i++) {
		if (b->done != NULL && b->done[i])
			continue;
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = b->sites[i].cookie,
			    .ref_ctr_offset = b->sites[i].ref_ctr_offset,
			    .retprobe = xsp_program_is_return(b->program));
		struct bpf_link *link = bpf_program__attach_uprobe_opts(program, thread, b->path,
									b->sites[i].offset, &opts);
		if (link != NULL) {
			const struct xsp_link one = link_of(b, i, 1);
			int rc = xsp_links_keep_perf(b->a, link, &one);
			if (rc < 0)
				return rc;
			continue;
		}
		if (is_hopeless(-errno))
			return -errno;
		refuse(b, -errno);
	}
	return 0;
}

/* Return probes go by perf events: the address they return to does not tell their site. */
static int attach_tracefs(struct request *b, size_t count)
{
	int rc = 0;

	b->done = calloc(count, sizeof(*b->done));
	if (b->done == NULL)
		return -ENOMEM;
	const struct xsp_link all = link_of(b, 0, count);
	if (!all.returns)
		rc = xsp_tracefs_attach(b->a, b->path, &all, b->done);
	if (rc == 0)
		rc = attach_perf_events(b, count);
	free(b->done);
	b->done = NULL;
	return rc;
}

static int explain(int code, const struct request *b, struct xsp_error *err)
{
	switch (code) {
	case -ESRCH:
		return xsp_error_set(err, code, XSP_STATUS_NO_TARGET, "process %d has exited",
				     (int)b->pid);
	case -EPERM:
	case -EACCES:
		return xsp_error_set(err, code, XSP_STATUS_PERMISSION,
				     "the kernel refused the uprobes on %s (%s): run with sudo",
				     b->display_path, strerror(-code));
	case -EMFILE:
	case -ENFILE:
		return xsp_error_set(
			err, code, XSP_STATUS_KERNEL,
			"out of file descriptors: each process and 256 sites take one, and without uprobe_multi (Linux 6.6) each site two; raise the limit (ulimit -n) or trace fewer functions");
	default:
		return xsp_error_set(err, code, XSP_STATUS_KERNEL,
				     "uprobes could not be attached to %s: %s", b->path,
				     strerror(-code));
	}
}

/* Probes that were released stay out of processes and libraries that come later. */
static int drop_released(struct request *b, size_t *count, struct xsp_attach_site **copy)
{
	if (b->a->states == NULL)
		return 0;
	*copy = malloc(*count * sizeof(**copy));
	if (*copy == NULL)
		return -ENOMEM;
	memcpy(*copy, b->sites, *count * sizeof(**copy));
	*count = xsp_release_sites(b->a, *copy, *count);
	b->sites = *copy;
	return 0;
}

static int attach_sites(struct request *b, size_t count)
{
	if (b->a->method == XSP_ATTACH_TRACEFS)
		return attach_tracefs(b, count);
	if (b->a->method == XSP_ATTACH_PERF_EVENT)
		return attach_perf_events(b, count);
	return attach_multi(b, count);
}

int xsp_attach_sites(struct xsp_attach *a, pid_t pid, const struct xsp_verified_file *file,
		     const char *display_path, enum xsp_program program,
		     const struct xsp_attach_site *sites, size_t count, size_t *refused,
		     struct xsp_error *err)
{
	struct request b = {.a = a,
			    .pid = pid,
			    .file = file,
			    .display_path = display_path,
			    .program = program,
			    .sites = sites};
	struct xsp_attach_site *copy = NULL;

	snprintf(b.path, sizeof(b.path), "/proc/self/fd/%d", file->fd);
	if (refused != NULL)
		*refused = 0;
	if (count == 0 || xsp_attach_program(a, program) == NULL)
		return 0;
	if (count > UINT32_MAX / 32)
		return xsp_error_set(err, -E2BIG, XSP_STATUS_FAILED, "too many sites: %zu", count);
	pthread_mutex_lock(&a->lock);
	size_t before = a->link_count;
	int rc = drop_released(&b, &count, &copy);
	if (rc == 0 && count > 0)
		rc = attach_sites(&b, count);
	for (size_t i = before; i < a->link_count; i++)
		a->links[i].file = *file;
	pthread_mutex_unlock(&a->lock);
	if (rc == 0 && b.refused == count)
		rc = b.first_error;
	if (refused != NULL)
		*refused = b.refused;
	free(copy);
	return rc < 0 ? explain(rc, &b, err) : 0;
}

int xsp_attach_range(struct xsp_attach *a, uint32_t probe, const struct xsp_range_spec *spec)
{
	return xsp_map_put(a->bpf->maps.xsp_specs, &probe, spec);
}

int xsp_attach_detail(struct xsp_attach *a, uint32_t probe, const struct xsp_detail_spec *spec)
{
	if (spec->written && XSP_APPEND(a->writers, a->writer_room, a->writer_count, probe) < 0)
		return -ENOMEM;
	return xsp_map_put(a->bpf->maps.xsp_details, &probe, spec);
}

int xsp_attach_arguments(struct xsp_attach *a, uint32_t probe, const struct xsp_args_spec *spec)
{
	return xsp_map_put(a->bpf->maps.xsp_args, &probe, spec);
}

int xsp_attach_sequence(struct xsp_attach *a, pid_t pid, const struct xsp_sequence_spec *spec)
{
	uint32_t key = (uint32_t)pid;
	struct xsp_sequence_spec new = *spec;

	new.counter.generation = ++a->generation;
	return xsp_map_put(a->bpf->maps.xsp_sequences, &key, &new);
}

int xsp_attach_python(struct xsp_attach *a, pid_t pid, const struct xsp_python_spec *spec)
{
	uint32_t key = (uint32_t)pid;

	return xsp_map_put(a->bpf->maps.xsp_pythons, &key, spec);
}

static bool is_of_file(const struct xsp_link *link, const void *file)
{
	return link->file.fd == *(const int *)file;
}

void xsp_attach_release_file(struct xsp_attach *a, int file)
{
	xsp_release_finish(a); /* wait for links that are being closed */
	xsp_links_close(a, is_of_file, &file);
	xsp_links_wait(a);
}

static bool is_want(const struct xsp_link *link, const void *ctx)
{
	(void)ctx;
	return link->program == XSP_PROGRAM_GPU_WANT;
}

int xsp_attach_gpu_stop(struct xsp_attach *a)
{
	xsp_links_close(a, is_want, NULL);
	return 0;
}

/* ---- the set of recorded processes ---- */

static int set_process(struct xsp_attach *a, pid_t pid, uint32_t value)
{
	uint32_t key = (uint32_t)pid;

	return xsp_map_put(a->bpf->maps.xsp_tgids, &key, &value);
}

static void find_limit(struct xsp_attach *a, pid_t pid)
{
	struct xsp_cgroup group = {.cpus = 0};

	if (pid != getpid()) /* the calibration's */
		xsp_cgroup_of(pid, &a->groups, &group);
	if (group.cpus <= 0 || (a->group.cpus > 0 && a->group.cpus <= group.cpus))
		return;
	a->group = group;
	xsp_cgroup_periods(&group, &a->group_before.periods, &a->group_before.stopped);
}

long xsp_attach_cpu_limit(struct xsp_attach *a, struct xsp_cpu_limit *row, size_t room)
{
	const struct xsp_cpu_limit *before = &a->group_before;

	if (room == 0 || a->group.cpus <= 0 ||
	    xsp_cgroup_periods(&a->group, &row->periods, &row->stopped) < 0)
		return 0;
	row->cpus = a->group.cpus;
	row->periods -= row->periods < before->periods ? row->periods : before->periods;
	row->stopped -= row->stopped < before->stopped ? row->stopped : before->stopped;
	return 1;
}

int xsp_attach_process(struct xsp_attach *a, pid_t pid)
{
	int rc = set_process(a, pid, XSP_TGID_RECORDED | (a->stop ? XSP_TGID_STOP_AT_EXEC : 0));

	find_limit(a, pid);
	if (rc == 0 && a->waits && a->bpf->bss->xsp_waits_from_ns != 0)
		rc = xsp_waits_meet(a); /* others are recorded already */
	return rc;
}

int xsp_attach_stop_at_exec(struct xsp_attach *a, pid_t pid)
{
	int rc = xsp_stopper_start(a);

	return rc < 0 ? rc : set_process(a, pid, XSP_TGID_RECORDED | XSP_TGID_STOP_AT_EXEC);
}

int xsp_attach_deep_stacks(struct xsp_attach *a, pid_t pid)
{
	const uint32_t key = (uint32_t)pid;
	uint32_t flags;

	if (bpf_map_lookup_elem(bpf_map__fd(a->bpf->maps.xsp_tgids), &key, &flags) < 0)
		return -ESRCH;
	return set_process(a, pid, flags | XSP_TGID_DEEP_STACKS);
}

int xsp_attach_forget_process(struct xsp_attach *a, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	xsp_links_retire(a, pid);
	bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_pythons), &key);
	return bpf_map_delete_elem(bpf_map__fd(a->bpf->maps.xsp_tgids), &key) ? -errno : 0;
}

int xsp_attach_drop(struct xsp_attach *a, unsigned which)
{
	if (a->suspended) /* its end puts them in again */
		xsp_release_finish(a);
	if (which & XSP_DEFAULT_PYTHON)
		__atomic_store_n(&a->bpf->bss->xsp_python_off, 1, __ATOMIC_RELEASE);
	if (which & XSP_DEFAULT_SAMPLES) {
		xsp_attach_samples(a, false);
		xsp_samples_close(a);
		a->sample_hz = 0;
	}
	return which & XSP_DEFAULT_WAITS ? xsp_waits_drop(a) : 0;
}
