/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "planner/sandbox.h"
#include "cli/cli.h"

struct xsp_user xsp_session_user(const struct xsp_options *o)
{
	struct xsp_user u = {(uid_t)-1, (gid_t)-1};

	if (o->user_given)
		return (struct xsp_user){o->uid, o->gid};
	if (geteuid() == 0)
		xsp_sudo_user(&u.uid, &u.gid);
	if (u.uid == (uid_t)-1)
		u = (struct xsp_user){getuid(), getgid()};
	return u;
}

#define FILES_NEEDED 64U /* more for each module and ring buffer */
#define FILES_ENOUGH 1024U
#define MEMORY_NEEDED (16ULL << 20) /* beside the rings, which are mapped twice */

/* What is too low fails in many places, each with another reason that is none. */
static int check_limits(const struct xsp_session *s, const struct rlimit *files,
			struct xsp_error *err)
{
	const uint64_t need =
		MEMORY_NEEDED + (s->attach != NULL ? 2 * (uint64_t)s->attach->buffer_bytes : 0);
	struct rlimit memory;

	if (files->rlim_cur < FILES_NEEDED)
		return xsp_error_set(
			err, -EMFILE, XSP_STATUS_FAILED,
			"xsptrace may open %llu files and needs %u: raise the limit (ulimit -n)",
			(unsigned long long)files->rlim_cur, FILES_NEEDED);
	if (getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur < need)
		return xsp_error_set(
			err, -ENOMEM, XSP_STATUS_FAILED,
			"xsptrace may have %llu KiB of memory and needs %llu: raise the limit (ulimit -v)%s",
			(unsigned long long)memory.rlim_cur / 1024, (unsigned long long)need / 1024,
			s->attach != NULL ? ", or give a smaller --buffer" : "");
	return 0;
}

static int raise_limits(const struct xsp_session *s, struct xsp_error *err)
{
	struct rlimit files, more, locked = {RLIM_INFINITY, RLIM_INFINITY};

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return 0;
	more.rlim_max = files.rlim_max < FILES_NEEDED ? FILES_ENOUGH : files.rlim_max;
	more.rlim_cur = more.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &more) == 0) /* root may have more than its limit */
		files = more;
	setrlimit(RLIMIT_MEMLOCK, &locked); /* may be refused: then the perf rings are smaller */
	return check_limits(s, &files, err);
}

static int restrict_files(const struct xsp_session *s)
{
	char **folders = calloc(s->output_count + 2, sizeof(*folders));
	size_t count = 0;
	int rc = folders == NULL ? -ENOMEM : 0;

	for (size_t i = 0; rc == 0 && i < s->output_count; i++) {
		const char *slash = strrchr(s->outputs[i], '/');
		folders[count] = slash == NULL ? strdup(".")
				 : slash == s->outputs[i]
					 ? strdup("/")
					 : strndup(s->outputs[i], (size_t)(slash - s->outputs[i]));
		rc = folders[count] == NULL ? -ENOMEM : 0;
		count += rc == 0;
	}
	if (rc == 0 && s->work != NULL) {
		folders[count] = strdup(s->work);
		rc = folders[count] == NULL ? -ENOMEM : 0;
		count += rc == 0;
	}
	if (rc == 0)
		rc = xsp_sandbox_folders((const char *const *)folders, count);
	for (size_t i = 0; i < count; i++)
		free(folders[i]);
	free(folders);
	return rc;
}

int xsp_session_start(const struct xsp_session *s, struct xsp_broker **out, struct xsp_error *err)
{
	struct xsp_user u = xsp_session_user(s->options);
	struct xsp_broker_options options = {.attach = s->attach,
					     .pids = s->pids,
					     .pid_count = s->pid_count,
					     .agent = s->agent,
					     .stop_threads = s->stop_threads,
					     .uid = u.uid,
					     .gid = u.gid};

	int rc = raise_limits(s, err);
	if (rc == 0)
		rc = xsp_broker_start(&options, out, err);
	if (rc < 0)
		return rc;
	rc = xsp_sandbox_user(u.uid, u.gid);
	if (rc == 0)
		rc = xsp_sandbox_powerless();
	if (rc == 0)
		rc = restrict_files(s);
	if (rc == 0)
		return 0;
	xsp_broker_free(*out, 0);
	*out = NULL;
	return xsp_error_set(
		err, rc, XSP_STATUS_PERMISSION,
		"xsptrace cannot give up its rights (%s), and does not read other programs with them",
		strerror(-rc));
}
