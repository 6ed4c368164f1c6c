/* SPDX-License-Identifier: BSD-2-Clause */
/* dump.c - `xsptrace dump`: every thread of a process, once. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/sandbox.h"
#include "base/format/wrap.h"
#include "cli/cli.h"
#include "cli/verbs/dump_recording.h"
#include "cli/record/session.h"
#include "dump/dump.h"

#define PIDS_MAX 256
#define MEMORY (1ULL << 30)
#define SECONDS 60U /* the most that it may use of a CPU, and the longest silence */

struct dump {
	struct xsp_options o;
	unsigned width;
	int vdso;
	struct xsp_dump_options options;
	struct xsp_broker *broker;
	struct xsp_recordings *recordings;
};

/* ---- the process that reads targets ---- */

static int dump_one(const struct dump *d, struct xsp_dump_target *t, bool first)
{
	struct xsp_error err = {0};
	struct xsp_dump out;

	int rc = xsp_dump_run(t, &d->options, &out, &err);
	if (rc < 0)
		return xsp_say_error(&err);
	if (xsp_recordings_note(d->recordings, &out) < 0)
		out.open_note = "out of memory: not all of what is open is there";
	if (!first)
		fputs(d->o.json ? "," : "\n", stdout);
	FILE *wrapped = d->width > 0 ? xsp_wrap_open(stdout, d->width) : NULL;
	if (d->o.json && xsp_dump_json(stdout, &out) < 0) {
		fputs("null", stdout);
		rc = xsp_error_set(&err, -ENOMEM, XSP_STATUS_FAILED, "out of memory");
	}
	if (!d->o.json)
		xsp_dump_text(wrapped != NULL ? wrapped : stdout, &out, d->width);
	if (wrapped != NULL)
		fclose(wrapped);
	xsp_dump_clear(&out);
	return rc < 0 ? xsp_say_error(&err) : XSP_STATUS_OK;
}

/* Shows all processes; the first failure is the status. */
static int dump_all(const struct dump *d)
{
	struct xsp_dump_target *targets[PIDS_MAX] = {NULL};
	int status = XSP_STATUS_OK;
	bool first = true;

	for (size_t i = 0; i < d->o.pid_count; i++) {
		struct xsp_error err = {0};
		if (xsp_dump_open(d->broker, d->o.pids[i], d->vdso, &targets[i], &err) < 0) {
			int failed = xsp_say_error(&err);
			status = status == XSP_STATUS_OK ? failed : status;
		}
	}
	if (xsp_sandbox_compute_only(MEMORY, SECONDS) < 0) {
		xsp_say("files of other programs are not read without a sandbox, and the kernel gives none");
		return XSP_STATUS_KERNEL;
	}
	xsp_recordings_read(d->recordings);
	fputs(d->o.json ? "{\"processes\":[" : "", stdout);
	for (size_t i = 0; i < d->o.pid_count; i++) {
		int failed = targets[i] != NULL ? dump_one(d, targets[i], first) : XSP_STATUS_OK;
		first &= targets[i] == NULL || failed != XSP_STATUS_OK;
		status = status == XSP_STATUS_OK ? failed : status;
		xsp_dump_close(targets[i]);
	}
	fputs(d->o.json ? "]}\n" : "", stdout);
	return status;
}

static _Noreturn void work(const struct dump *d, const int out[2], const int errors[2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "xsp-dumper");
	dup2(out[1], STDOUT_FILENO);
	dup2(errors[1], STDERR_FILENO);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(errors[i]);
	}
	int status = dump_all(d);
	_exit(fflush(stdout) == 0 ? status : XSP_STATUS_FAILED);
}

/* ---- the process that shows what the other one says ---- */

static bool relay(int from, FILE *to)
{
	char bytes[16384];
	ssize_t n = read(from, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < n; i++) /* the process that read the target may send anything */
		if (((unsigned char)bytes[i] < ' ' && bytes[i] != '\n') || bytes[i] == 0x7f)
			bytes[i] = '?';
	if (n > 0) {
		fwrite(bytes, 1, (size_t)n, to);
		fflush(to);
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Returns when both pipes have ended. False: nothing came for too long. */
static bool relay_all(int out, int errors)
{
	struct pollfd fds[2] = {{.fd = out, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
	FILE *const to[2] = {stdout, stderr};

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int n = poll(fds, 2, (int)SECONDS * 1000);
		if (n == 0)
			return false;
		for (int i = 0; n > 0 && i < 2; i++)
			if (fds[i].revents != 0 && !relay(fds[i].fd, to[i]))
				fds[i].fd = -1;
	}
	return true;
}

static int run(const struct dump *d)
{
	int out[2], errors[2], result;

	if (pipe(out) != 0 || pipe(errors) != 0) {
		xsp_say("xsptrace cannot start its other half: %s", strerror(errno));
		return XSP_STATUS_FAILED;
	}
	pid_t child = fork();
	if (child == 0)
		work(d, out, errors);
	close(out[1]);
	close(errors[1]);
	bool ended = child > 0 && relay_all(out[0], errors[0]);
	if (child > 0 && !ended)
		kill(child, SIGKILL);
	if (child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result))
		return WEXITSTATUS(result);
	xsp_say("%s",
		ended ? "the process that reads the target's memory and files ended unexpectedly"
		      : "reading the target's memory and files took more than a minute");
	return XSP_STATUS_TARGET;
}

static int dump(struct dump *d)
{
	const int width = d->o.json ? 0 : xsp_terminal_width(STDOUT_FILENO);
	struct xsp_error err = {0};
	int64_t *lags = xsp_dump_lags(&d->options.lag_count);
	int status;

	d->width = width > 0 ? (unsigned)width : 0;
	d->vdso = xsp_dump_vdso();
	d->options.lags = lags;
	d->options.no_stop = d->o.no_stop;
	d->recordings = xsp_recordings_find(d->o.pids, d->o.pid_count);
	const struct xsp_session session = {.options = &d->o,
					    .pids = d->o.pids,
					    .pid_count = d->o.pid_count,
					    .stop_threads = !d->o.no_stop};
	if (xsp_session_start(&session, &d->broker, &err) < 0) {
		status = xsp_say_error(&err);
	} else {
		status = run(d);
		xsp_broker_free(d->broker, 1000);
	}
	if (d->vdso >= 0)
		close(d->vdso);
	xsp_recordings_free(d->recordings);
	free(lags);
	return status;
}

int xsp_cmd_dump(int argc, char **argv)
{
	struct dump d = {.broker = NULL};
	int status;

	if (!xsp_options_take(argc, argv, XSP_VERB_DUMP, &d.o, &status))
		;
	else if (d.o.pid_count > PIDS_MAX) {
		xsp_say("dump: -p wants the numbers of processes, 256 at most (xsptrace dump --help)");
		status = XSP_STATUS_USAGE;
	} else {
		status = dump(&d);
	}
	xsp_options_clear(&d.o);
	return status;
}
