/* SPDX-License-Identifier: BSD-2-Clause */
/* group.c - `--cgroup PATH`, `--container ID`, `--job ID`: all processes of a group, by what the kernel says in /proc/PID/cgroup. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rows/grow.h"
#include "base/text.h"
#include "catalog/job_variables.h"
#include "cli/cli.h"
#include "cli/options/private.h"
#include "procfs/cgroup.h"
#include "procfs/family.h"
#include "procfs/procfs.h"

#define LIST_MAX 65536
#define ENVIRONMENT_MAX (1U << 20)
#define CONTAINER_DIGITS 8

struct wanted {
	enum xsp_group kind;
	const char *name;
	size_t length;
	size_t room;
	struct xsp_options *o;
	pid_t above[64]; /* our parents: a shell in the job, sudo */
	size_t above_count;
};

/* Whole parts of the path: "job_42" of "/slurm/uid_0/job_42/step_0". */
static bool has_parts(const char *path, const char *parts, size_t length)
{
	for (const char *at = path; (at = strstr(at, parts)) != NULL; at++)
		if (at > path && at[-1] == '/' && (at[length] == '/' || at[length] == '\0'))
			return true;
	return false;
}

/* "/docker/ID", "docker-ID.scope", "cri-containerd-ID.scope", "libpod-ID": the id begins after something else. */
static bool has_container(const char *path, const char *id)
{
	for (const char *at = path; (at = strstr(at, id)) != NULL; at++)
		if (at > path && !isxdigit((unsigned char)at[-1]))
			return true;
	return false;
}

static bool is_in_group(const struct wanted *w, char *list)
{
	char job[32];

	snprintf(job, sizeof(job), "job_%.20s", w->name);
	for (char *save, *line = strtok_r(list, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *path = strchr(line, '/'); /* "4:cpu,cpuacct:/group" */
		if (path == NULL)
			continue;
		if (w->kind == XSP_GROUP_CGROUP ? has_parts(path, w->name, w->length)
		    : w->kind == XSP_GROUP_JOB	? has_parts(path, job, strlen(job))
						: has_container(path, w->name))
			return true;
	}
	return false;
}

/* Where Slurm makes no control groups. */
static bool has_job_variable(const struct wanted *w, pid_t pid)
{
	char *text = NULL;
	size_t length = 0;

	if (xsp_procfs_read(&xsp_open_directly, pid, "environ", ENVIRONMENT_MAX, &text, &length) <
	    0)
		return false;
	const char *value = xsp_procfs_variable(text, length, XSP_JOB_SLURM_JOB_ID);
	const bool has = value != NULL && strcmp(value, w->name) == 0;
	free(text);
	return has;
}

/* What runs a job, and is none of its work. */
static bool is_of_the_launcher(const struct wanted *w, pid_t pid)
{
	static const char *const names[] = {"slurmstepd", "srun", "xsptrace", "xsp-"};
	char *comm = NULL;

	for (size_t i = 0; i < w->above_count; i++)
		if (w->above[i] == pid)
			return true;
	const bool is = xsp_procfs_read(&xsp_open_directly, pid, "comm", 64, &comm, NULL) < 0 ||
			XSP_BEGINS_WITH_ANY(comm, names);
	free(comm);
	return is;
}

static int add_of_group(void *ctx, pid_t pid)
{
	struct wanted *w = ctx;
	char *list = NULL;
	int rc = 0;

	if (xsp_procfs_read(&xsp_open_directly, pid, "cgroup", LIST_MAX, &list, NULL) < 0)
		return 0; /* it has ended */
	if ((is_in_group(w, list) || (w->kind == XSP_GROUP_JOB && has_job_variable(w, pid))) &&
	    !is_of_the_launcher(w, pid))
		rc = XSP_APPEND(w->o->pids, w->room, w->o->pid_count, pid);
	free(list);
	return rc;
}

static void learn_parents(struct wanted *w)
{
	struct xsp_stat st;

	for (pid_t pid = getpid();
	     pid > 1 && w->above_count < sizeof(w->above) / sizeof(w->above[0]); pid = st.parent) {
		w->above[w->above_count++] = pid;
		if (xsp_procfs_stat(&xsp_open_directly, pid, &st) < 0)
			break;
	}
}

/* "/sys/fs/cgroup/a/b/" is "a/b"; in version 1 a hierarchy's name stands before it. */
static const char *cut_path(const char *path, char text[PATH_MAX])
{
	static const char root[] = XSP_CGROUPS "/";

	if (strncmp(path, root, sizeof(root) - 1) == 0) {
		path += sizeof(root) - 1;
		if (access(XSP_CGROUPS "/cgroup.controllers", F_OK) != 0)
			path += strcspn(path, "/");
	}
	snprintf(text, PATH_MAX, "%s", path + strspn(path, "/"));
	for (size_t n = strlen(text); n > 0 && text[n - 1] == '/'; n--)
		text[n - 1] = '\0';
	return text;
}

int xsp_take_group(struct xsp_parse *p)
{
	char text[PATH_MAX], shown[32];
	struct wanted w = {.kind = p->row->bits, .name = p->value, .o = p->o};
	const size_t before = p->o->pid_count;

	if (w.kind == XSP_GROUP_CGROUP)
		w.name = cut_path(p->value, text);
	w.length = strlen(w.name);
	if (w.length == 0 ||
	    (w.kind == XSP_GROUP_JOB && w.name[strspn(w.name, "0123456789")] != '\0') ||
	    (w.kind == XSP_GROUP_CONTAINER &&
	     (w.length < CONTAINER_DIGITS || w.name[strspn(w.name, "0123456789abcdef")] != '\0')))
		return xsp_wrong_value(p->err, xsp_option_shown(p->row, shown), p->value,
				       p->row->wanted);
	learn_parents(&w);
	w.room = before; /* the array grows from what is there */
	const int rc = xsp_each_process(add_of_group, &w);
	if (rc < 0)
		return xsp_error_set(p->err, rc, XSP_STATUS_FAILED, "--%s %.200s: %s", p->row->name,
				     p->value, strerror(-rc));
	if (p->o->pid_count == before)
		return xsp_error_set(
			p->err, -ESRCH, XSP_STATUS_NO_TARGET,
			"no process on this machine is in %s %.200s: cat /proc/PID/cgroup says where one is",
			p->row->name, p->value);
	return 0;
}
