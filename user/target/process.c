/* SPDX-License-Identifier: BSD-2-Clause */
/* process.c - a live process: its identity, and whether it can be traced. */
#include "target/process.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "procfs/procfs.h"

#define CMDLINE_MAX 65536U
#define STATUS_MAX 65536U
#define ENVIRONMENT_MAX (1U << 20)
#define VARIABLE_MAX 256U

struct xsp_process {
	const struct xsp_opener *opener;
	pid_t pid, ns_pid;
	bool namespaced; /* its threads have other ids inside */
	int pidfd;
	uid_t uid;
	char comm[16];
	char *cmdline, *exe;
};

/* ---- refusals, one line each ---- */

static const char *way_out(const struct xsp_opener *o)
{
	return o->root ? "root may not either: it belongs to another container, or a security module protects it"
		       : "run xsptrace with sudo";
}

static int no_such_process(const struct xsp_opener *o, pid_t pid, struct xsp_error *err)
{
	/* with hidepid another user's process has no folder in /proc, but a signal reveals it. Root
	 * sees all folders: there EPERM means a process that has ended, which we may not signal */
	if (!o->root && kill(pid, 0) < 0 && errno == EPERM)
		return xsp_error_set(err, -EACCES, XSP_STATUS_PERMISSION,
				     "no permission to inspect process %d; %s", pid, way_out(o));
	return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET,
			     "there is no process %d (it may have ended)", pid);
}

/* It may well be there: what failed is ours. */
static int cannot_look(const struct xsp_opener *o, pid_t pid, int code, struct xsp_error *err)
{
	if (code == -ESRCH || code == -ENOENT)
		return no_such_process(o, pid, err);
	if (code == -EACCES || code == -EPERM)
		return xsp_error_set(err, -EACCES, XSP_STATUS_PERMISSION,
				     "no permission to inspect process %d; %s", pid, way_out(o));
	return xsp_error_set(err, code, XSP_STATUS_FAILED,
			     "process %d could not be looked at: %s%s", pid, strerror(-code),
			     code == -EMFILE   ? ": raise the limit (ulimit -n)"
			     : code == -ENOMEM ? ": raise the limit (ulimit -v)"
					       : "");
}

static int no_permission(const struct xsp_process *p, struct xsp_error *err)
{
	char comm[sizeof(p->comm)];

	memcpy(comm, p->comm, sizeof(comm));
	xsp_text_clean(comm);
	return xsp_error_set(err, -EACCES, XSP_STATUS_PERMISSION,
			     "no permission to inspect process %d (%s, of uid %u); %s", p->pid,
			     comm, p->uid, way_out(p->opener));
}

/* Process or thread, and which kind: from /proc/PID/stat and status. */
static int check_kind(const struct xsp_process *p, const char *status, struct xsp_error *err)
{
	struct xsp_stat st;
	pid_t tgid = xsp_procfs_last_id(status, "Tgid", p->pid);
	char comm[sizeof(p->comm)];

	memcpy(comm, p->comm, sizeof(comm));
	xsp_text_clean(comm);
	if (tgid != p->pid)
		return xsp_error_set(
			err, -EINVAL, XSP_STATUS_NO_TARGET,
			"%d is a thread (%s) of process %d; use -p %d, with -t %d for this thread alone",
			p->pid, comm, tgid, tgid, p->pid);
	int ret = xsp_procfs_stat(p->opener, p->pid, &st);
	if (ret < 0)
		return cannot_look(p->opener, p->pid, ret, err);
	if (st.flags & XSP_PF_KTHREAD)
		return xsp_error_set(err, -EINVAL, XSP_STATUS_NO_TARGET,
				     "%d (%s) is a kernel thread; xsptrace traces programs", p->pid,
				     comm);
	if (st.state == 'Z' && st.threads > 1) /* the main thread alone has ended */
		return 0;
	if (st.state == 'Z' || st.state == 'X')
		return xsp_error_set(
			err, -ESRCH, XSP_STATUS_NO_TARGET,
			"process %d (%s) has ended and is a zombie until its parent collects it",
			p->pid, comm);
	return 0;
}

/* We must be able to read the program, and it must be 64-bit. */
static int check_program(const struct xsp_process *p, struct xsp_error *err)
{
	unsigned char ident[EI_NIDENT] = {0};

	int fd = p->opener->file(p->opener, p->pid, "exe");
	if (fd == -EACCES || fd == -EPERM)
		return no_permission(p, err);
	if (fd < 0)
		return cannot_look(p->opener, p->pid, fd, err);
	ssize_t n = pread(fd, ident, sizeof(ident), 0);
	close(fd);
	if (n == (ssize_t)sizeof(ident) && memcmp(ident, ELFMAG, SELFMAG) == 0 &&
	    ident[EI_CLASS] == ELFCLASS32)
		return xsp_error_set(
			err, -ENOEXEC, XSP_STATUS_TARGET,
			"process %d runs a 32-bit program (%s); xsptrace traces 64-bit programs only",
			p->pid, p->exe != NULL ? p->exe : "?");
	return 0;
}

/* ---- reading ---- */

static int read_comm(const struct xsp_process *p, const char *name, char comm[static 16])
{
	char *text;
	size_t length;
	int ret = xsp_procfs_read(p->opener, p->pid, name, 64, &text, &length);

	if (ret < 0)
		return ret;
	if (length > 0) /* the last newline is the kernel's, others are the name's */
		length--;
	if (length > 15)
		length = 15;
	memset(comm, 0, 16);
	memcpy(comm, text, length);
	free(text);
	return 0;
}

static int read_cmdline(const struct xsp_process *p, char **out)
{
	char *text;
	size_t length;
	int ret = xsp_procfs_command(p->opener, p->pid, CMDLINE_MAX, &text, &length);

	if (ret < 0)
		return ret;
	xsp_text_clean(text);
	*out = text;
	return 0;
}

int xsp_process_refresh(struct xsp_process *p)
{
	char *cmdline = NULL, *exe = NULL, comm[16];

	int ret = read_comm(p, "comm", comm);
	if (ret == 0)
		ret = read_cmdline(p, &cmdline);
	if (ret == 0)
		ret = xsp_procfs_link(p->opener, p->pid, "exe", &exe);
	/* only now is it certain that all this was read from our process */
	if (ret == 0 && p->pidfd >= 0 && !xsp_process_alive(p))
		ret = -ESRCH;
	if (ret != 0) {
		free(cmdline);
		free(exe);
		return ret == -ENOENT ? -ESRCH : ret; /* its folder is gone, or its memory */
	}
	xsp_procfs_cut_deleted(exe);
	free(p->cmdline);
	free(p->exe);
	p->cmdline = cmdline;
	p->exe = exe;
	memcpy(p->comm, comm, sizeof(p->comm));
	return 0;
}

static int open_pidfd(struct xsp_process *p, struct xsp_error *err)
{
	p->pidfd = p->opener->pidfd(p->opener, p->pid);
	if (p->pidfd >= 0)
		return 0;
	int code = p->pidfd;
	if (code == -ESRCH || code == -EINVAL || code == -ENOENT)
		return no_such_process(p->opener, p->pid, err);
	return xsp_error_set(err, code, XSP_STATUS_KERNEL, "pidfd_open of process %d failed: %s",
			     p->pid, strerror(-code));
}

static int look_at(struct xsp_process *p, struct xsp_error *err)
{
	char *status;
	int ret = xsp_procfs_read(p->opener, p->pid, "status", STATUS_MAX, &status, NULL);

	if (ret < 0)
		return cannot_look(p->opener, p->pid, ret, err);
	const char *uid = xsp_procfs_field(status, "Uid");
	p->uid = uid != NULL ? (uid_t)strtoul(uid, NULL, 10) : (uid_t)-1;
	p->ns_pid = xsp_procfs_last_id(status, "NSpid", p->pid);
	/* more than one number: it is in a pid namespace below ours */
	const char *ids = xsp_procfs_field(status, "NSpid");
	size_t digits = ids != NULL ? strspn(ids, "0123456789") : 0;
	p->namespaced = ids != NULL && ids[digits] == '\t';
	ret = read_comm(p, "comm", p->comm);
	if (ret < 0)
		ret = cannot_look(p->opener, p->pid, ret, err);
	else
		ret = check_kind(p, status, err);
	free(status);
	if (ret == 0)
		ret = open_pidfd(p, err);
	if (ret < 0)
		return ret;
	ret = xsp_process_refresh(p);
	if (ret == -EACCES || ret == -EPERM)
		return no_permission(p, err);
	if (ret < 0)
		return cannot_look(p->opener, p->pid, ret, err);
	ret = check_program(p, err);
	if (ret == 0 && !xsp_process_alive(p))
		ret = no_such_process(p->opener, p->pid, err);
	return ret;
}

int xsp_process_open(const struct xsp_opener *o, pid_t pid, struct xsp_process **out,
		     struct xsp_error *err)
{
	*out = NULL;
	if (pid <= 0)
		return xsp_error_set(err, -ESRCH, XSP_STATUS_NO_TARGET, "%d is no process id", pid);
	struct xsp_process *p = calloc(1, sizeof(*p));
	if (p == NULL)
		return xsp_out_of_memory(err);
	p->opener = o;
	p->pid = pid;
	p->pidfd = -1;
	int ret = look_at(p, err);
	if (ret < 0) {
		xsp_process_free(p);
		return ret;
	}
	*out = p;
	return 0;
}

void xsp_process_free(struct xsp_process *p)
{
	if (p == NULL)
		return;
	xsp_close(p->pidfd);
	free(p->cmdline);
	free(p->exe);
	free(p);
}

#define GET(type, member)                                                                          \
	type xsp_process_##member(const struct xsp_process *p)                                     \
	{                                                                                          \
		return p->member;                                                                  \
	}
GET(const struct xsp_opener *, opener)
GET(pid_t, pid)
GET(pid_t, ns_pid)
GET(int, pidfd)
GET(const char *, comm)
GET(const char *, cmdline)
GET(const char *, exe)

bool xsp_process_alive(const struct xsp_process *p)
{
	struct pollfd fd = {.fd = p->pidfd, .events = POLLIN};

	return poll(&fd, 1, 0) == 0;
}

/* ---- its environment ---- */

char *xsp_process_environment(const struct xsp_process *p, const struct xsp_job_variable *variables)
{
	char *block = NULL, *lines = NULL;
	size_t size = 0, room = 0;
	FILE *out = open_memstream(&lines, &room);

	if (out == NULL)
		return NULL;
	int rc = xsp_procfs_read(p->opener, p->pid, "environ", ENVIRONMENT_MAX, &block, &size);
	if (rc == 0 && !xsp_process_alive(p)) /* it may have come from another process */
		rc = -ESRCH;
	for (const struct xsp_job_variable *v = variables; rc == 0 && v->name != NULL; v++) {
		char value[VARIABLE_MAX];
		const char *found = xsp_procfs_variable(block, size, v->name);
		for (size_t i = 0; found == NULL && i < sizeof(v->others) / sizeof(v->others[0]);
		     i++)
			found = v->others[i] != NULL
					? xsp_procfs_variable(block, size, v->others[i])
					: NULL;
		if (found == NULL || strlen(found) >= sizeof(value))
			continue;
		stpcpy(value, found);
		xsp_text_clean(value);
		fprintf(out, "%s=%s\n", v->name, value);
	}
	free(block);
	if (fclose(out) != 0) {
		free(lines);
		return NULL;
	}
	return lines;
}

/* ---- threads ---- */

/* -ENOENT, -ESRCH: the thread has ended meanwhile. */
static int read_thread(const struct xsp_process *p, pid_t tid, struct xsp_thread_info *out)
{
	char name[64], *status;

	out->tid = tid;
	out->ns_tid = tid;
	snprintf(name, sizeof(name), "task/%d/comm", tid);
	int ret = read_comm(p, name, out->comm);
	if (ret < 0 || !p->namespaced)
		return ret;
	snprintf(name, sizeof(name), "task/%d/status", tid);
	ret = xsp_procfs_read(p->opener, p->pid, name, STATUS_MAX, &status, NULL);
	if (ret < 0)
		return ret;
	out->ns_tid = xsp_procfs_last_id(status, "NSpid", tid);
	free(status);
	return 0;
}

int xsp_process_threads(const struct xsp_process *p, struct xsp_thread_info **threads,
			size_t *count)
{
	struct xsp_thread_info *list = NULL;
	pid_t *tids;
	size_t used = 0, room = 0, n;
	int ret = xsp_procfs_threads(p->opener, p->pid, &tids, &n);

	*threads = NULL;
	*count = 0;
	for (size_t i = 0; i < n && ret == 0; i++) {
		struct xsp_thread_info info;
		ret = read_thread(p, tids[i], &info);
		if (ret == 0)
			ret = XSP_APPEND(list, room, used, info);
		else if (ret != -ENOMEM)
			ret = 0;
	}
	free(tids);
	if (ret == -ENOENT || (ret == 0 && used == 0))
		ret = -ESRCH;
	if (ret < 0) {
		free(list);
		return ret;
	}
	*threads = list;
	*count = used;
	return 0;
}
