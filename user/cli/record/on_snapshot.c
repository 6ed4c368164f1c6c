/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record/on_snapshot.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "planner/sandbox.h"

static void run(const char *command, const char *path)
{
	char *line = NULL;
	const pid_t pid = fork();

	if (pid != 0) {
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return;
	}
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	if (asprintf(&line, "%s \"$@\"", command) >= 0)
		execl("/bin/sh", "sh", "-c", line, "sh", path, (char *)NULL);
	_exit(127);
}

static void serve(const char *command, int requests, uid_t uid, gid_t gid)
{
	int kept[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, requests};
	char path[PATH_MAX + 1];
	ssize_t n;

	/* Ctrl-C ends the recording, whose last snapshot comes after that */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (xsp_sandbox_user(uid, gid) < 0 || xsp_close_all_but(kept, 4) < 0)
		_exit(1);
	while ((n = recv(requests, path, PATH_MAX, 0)) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		path[n] = '\0';
		run(command, path);
	}
	_exit(0);
}

int xsp_on_snapshot_start(const char *command, uid_t uid, gid_t gid)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0)
		serve(command, ends[1], uid, gid);
	const int rc = pid < 0 ? -errno : ends[0];
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	return rc;
}

int xsp_on_snapshot_run(int descriptor, const char *path)
{
	return send(descriptor, path, strlen(path), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
