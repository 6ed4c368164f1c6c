/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stop.c - processes that the kernel side has stopped. If the recorder is killed, a guardian continues them; a stopped
 * child would wait for ever.
 */
#include "broker/kernel/attach_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool xsp_kernel_can_stop(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf != NULL &&
		     btf__find_by_name_kind(btf, "bpf_send_signal_task", BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return found;
}

/* why: 0: for any reason. */
static size_t list_stopped(int map, uint32_t why, pid_t *pids, size_t room)
{
	uint32_t key, *before = NULL, value;
	size_t n = 0;

	while (n < room && bpf_map_get_next_key(map, before, &key) == 0) {
		if (why == 0 || (bpf_map_lookup_elem(map, &key, &value) == 0 && value == why))
			pids[n++] = (pid_t)key;
		before = &key;
	}
	return n;
}

size_t xsp_stopper_list(const struct xsp_attach *a, enum xsp_stopped_why why, pid_t *pids,
			size_t room)
{
	return a->stopper == 0
		       ? 0
		       : list_stopped(bpf_map__fd(a->bpf->maps.xsp_stopped), why, pids, room);
}

static void resume(int map, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	/* delete it first: if the process is stopped again meanwhile, it is back in the table */
	if (bpf_map_delete_elem(map, &key) == 0)
		kill(pid, SIGCONT);
}

static void resume_all(int map)
{
	pid_t pids[64];
	size_t n;

	while ((n = list_stopped(map, 0, pids, 64)) > 0)
		for (size_t i = 0; i < n; i++)
			resume(map, pids[i]);
}

/*
 * The guardian keeps only the table and a descriptor of the broker, none of the links. Links may stay for seconds after
 * the broker's death, until the other guardian (links/journal.h) has repaired what it left. So this one ends the
 * recording first: then nobody else is stopped.
 */
static void guard(struct xsp_attach *a, int map, int broker)
{
	struct pollfd ended = {.fd = 1001, .events = POLLIN};

	setsid(); /* not to be ended by Ctrl-C */
	if (dup3(map, 1000, O_CLOEXEC) < 0 || dup3(broker, 1001, O_CLOEXEC) < 0)
		_exit(1);
	syscall(SYS_close_range, 0, 999, 0);
	syscall(SYS_close_range, 1002, ~0U, 0);
	while (poll(&ended, 1, -1) < 0 && errno == EINTR)
		;
	xsp_attach_activate(a, false);
	/* a program that is running may still stop a process */
	for (int i = 0; i < 20; i++) {
		resume_all(1000);
		poll(NULL, 0, 50);
	}
	_exit(0);
}

int xsp_stopper_start(struct xsp_attach *a)
{
	if (a->stopper != 0)
		return 0;
	int broker = (int)syscall(SYS_pidfd_open, getpid(), 0), copies[2] = {-1, -1};
	pid_t guardian = broker < 0 || pipe2(copies, O_CLOEXEC) != 0 ? -1 : fork();
	if (guardian == 0)
		guard(a, bpf_map__fd(a->bpf->maps.xsp_stopped), broker);
	int rc = guardian < 0 ? -errno : 0;
	char nothing;
	xsp_close(copies[1]);
	/* The child begins with copies of the links, and a probe stays in until the last copy of its link is closed. So we wait
	 * until the child has closed its own. */
	while (rc == 0 && read(copies[0], &nothing, 1) < 0 && errno == EINTR)
		;
	xsp_close(copies[0]);
	xsp_close(broker);
	a->stopper = guardian < 0 ? 0 : guardian;
	return rc;
}

void xsp_stopper_end(struct xsp_attach *a)
{
	if (a->stopper == 0)
		return;
	resume_all(bpf_map__fd(a->bpf->maps.xsp_stopped));
	kill(a->stopper, SIGKILL);
	waitpid(a->stopper, NULL, 0);
	a->stopper = 0;
}

long xsp_attach_stopped(const struct xsp_attach *a, pid_t *pids, size_t room)
{
	return (long)xsp_stopper_list(a, XSP_STOPPED_NEW, pids, room);
}

int xsp_attach_continue(struct xsp_attach *a, pid_t pid)
{
	resume(bpf_map__fd(a->bpf->maps.xsp_stopped), pid);
	return 0;
}
