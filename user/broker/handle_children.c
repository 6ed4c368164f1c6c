/* SPDX-License-Identifier: BSD-2-Clause */
/* handle_children.c - requests that a child process carries out: injections, and stops of threads. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "base/text.h"
#include "broker/broker.h"
#include "broker/thread_stop.h"
#include "inject/inject.h"
#include "xsptrace/gpu.h"

#define INJECT_MS 10000U /* meanwhile the probes' events gather in the ring buffer */

struct injection {
	int socket;
	int rc;
	struct xsp_error err;
	struct xsp_broker_injected result;
};

static void note(void *ctx, const char *text)
{
	struct injection *i = ctx;

	xsp_join(i->result.notes, sizeof(i->result.notes), "\n", "%s", text);
}

/* The recorder sends a request or is gone: it waits no longer. */
static bool is_broken_off(void *ctx)
{
	struct pollfd fd = {.fd = ((struct injection *)ctx)->socket, .events = POLLIN};

	return poll(&fd, 1, 0) > 0;
}

static _Noreturn void inject_in_child(const struct broker *b, const struct xsp_ask_inject *asked,
				      int report)
{
	struct injection i = {.socket = b->socket};
	struct xsp_inject_result result = {0};
	struct xsp_inject_options o = {.library = b->options->agent,
				       .entry = XSP_GPU_START_SYMBOL,
				       .serve_image = b->options->serve_image,
				       .pidfd = xsp_broker_files_pidfd(b->files, asked->pid),
				       .timeout_ms = INJECT_MS,
				       .moment_ms = asked->moment_ms,
				       .stop = is_broken_off,
				       .note = note,
				       .ctx = &i};
	int kept[] = {0, 1, 2, b->socket, report, o.pidfd};

	/* The child begins with copies of all links, and a probe stays in until the last copy is closed. */
	if (xsp_close_all_but(kept, sizeof(kept) / sizeof(kept[0])) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "xsp-injector");
	i.rc = xsp_inject(asked->pid, &o, &result, &i.err);
	i.result.entry_value = result.entry_value;
	i.result.stopped_ns = (int64_t)result.stopped_ns;
	i.result.tid = result.tid;
	i.result.cleaned = result.cleaned;
	ssize_t n = write(report, &i, sizeof(i));
	_exit(n == sizeof(i) ? 0 : 1);
}

int xsp_handle_inject(struct broker *b)
{
	const pid_t pid = xsp_asked_pid(b);
	struct injection out = {.rc = -EIO};
	int report[2], rc = xsp_allow(b, pid);

	if (rc == 0 && b->options->agent == NULL)
		rc = -EACCES;
	if (rc == 0 && pipe2(report, O_CLOEXEC) != 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	pid_t child = fork();
	if (child == 0)
		inject_in_child(b, (const void *)b->in->body, report[1]);
	close(report[1]);
	if (child < 0 || read(report[0], &out, sizeof(out)) != sizeof(out))
		out.rc = xsp_error_set(&out.err, -EIO, XSP_STATUS_FAILED,
				       "the injection into process %d was broken off", (int)pid);
	close(report[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	b->err = out.err;
	xsp_answer(b, &out.result, sizeof(out.result));
	return out.rc;
}

int xsp_handle_thread_stopper(struct broker *b)
{
	const pid_t pid = xsp_asked_pid(b);
	int sockets[2], rc = xsp_allow(b, pid);

	if (rc == 0 && !b->options->stop_threads)
		rc = -EACCES;
	if (rc == 0)
		rc = xsp_message_pair(sockets);
	if (rc < 0)
		return rc;
	pid_t child = fork();
	if (child == 0) {
		close(b->socket);
		close(sockets[0]);
		xsp_thread_stopper_serve(sockets[1], pid, xsp_broker_files_pidfd(b->files, pid));
	}
	close(sockets[1]);
	rc = xsp_answer_fd(b, sockets[0]);
	return child < 0 ? -EAGAIN : rc;
}

int xsp_handle_nothing(struct broker *b)
{
	(void)b;
	return 0;
}
