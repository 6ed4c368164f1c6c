/* SPDX-License-Identifier: BSD-2-Clause */
/* serve.c - the broker: a table of requests. Anything else ends it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/files/file_io.h"
#include "broker/broker.h"
#include "broker/links/journal.h"

/* A recorder with a budget asks about the brake many times in this time. One that does not was stopped (Ctrl-Z), or
 * waits for a disk. */
#define SILENT_MS 2000

/* ---- the table ---- */

enum { BEFORE_LOAD = 1, LOADED = 2, DETACHED = 4, ANY = 7, RUNNING = LOADED | DETACHED };

#define NO_BODY 0, 0
#define ANY_BODY 0, XSP_MESSAGE_MAX
#define IS(type) sizeof(type), sizeof(type)
#define FROM(type) sizeof(type), XSP_MESSAGE_MAX
#define UP_TO(type, last) offsetof(type, last), sizeof(type)

static const struct {
	int (*handle)(struct broker *b);
	unsigned states;
	size_t least, most; /* bytes of the body */
} requests[XSP_BROKER_OPS] = {
#define X(kind, name, function, states, body, ...)                                                 \
	[XSP_ASK_##name] = {xsp_handle_##function, states, body},
	XSP_BROKER_REQUESTS(X)
#undef X
};

/* ---- handlers made from the table ---- */

static int answer_file(struct broker *b, int (*fill)(const struct xsp_attach *a, FILE *f))
{
	int fd = memfd_create("xsptrace", MFD_CLOEXEC);
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "we");
	int rc = f == NULL ? -errno : fill(b->attach, f);

	if (f != NULL && fclose(f) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0)
		return xsp_answer_fd(b, fd);
	xsp_close(fd);
	return rc;
}

/* `count` rows stand in b->body, or it is a negative errno. */
static int answer_rows(struct broker *b, long count, size_t size)
{
	if (count < 0)
		return (int)count;
	b->size = (uint32_t)((size_t)count * size);
	return 0;
}

#define HANDLE_OWN(function, ...)
#define HANDLE_CALL(function, ...)                                                                 \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		return xsp_attach_##function(b->attach);                                           \
	}
#define HANDLE_WORD(function, ...)                                                                 \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		return xsp_attach_##function(b->attach, xsp_asked_word(b));                        \
	}
#define HANDLE_PID(function, ...)                                                                  \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		int rc = xsp_allow(b, xsp_asked_pid(b));                                           \
                                                                                                   \
		return rc < 0 ? rc : xsp_attach_##function(b->attach, xsp_asked_pid(b));           \
	}
#define HANDLE_GONE(function, ...)                                                                 \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		return xsp_attach_##function(b->attach, xsp_asked_pid(b));                         \
	}
#define HANDLE_SPEC(function, ...)                                                                 \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		const struct xsp_ask_##function *a = (const void *)b->in->body;                    \
		int rc = xsp_allow(b, a->pid);                                                     \
                                                                                                   \
		return rc < 0 ? rc : xsp_attach_##function(b->attach, a->pid, &a->spec);           \
	}
#define HANDLE_FILE(function, type)                                                                \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		return answer_file(b, xsp_attach_##function);                                      \
	}
#define HANDLE_ROWS(function, type, room)                                                          \
	_Static_assert((room) * sizeof(type) <= XSP_MESSAGE_MAX, "all of them fit");               \
	int xsp_handle_##function(struct broker *b)                                                \
	{                                                                                          \
		return answer_rows(b, xsp_attach_##function(b->attach, (void *)b->body, room),     \
				   sizeof(type));                                                  \
	}
#define X(kind, name, function, states, body, ...) HANDLE_##kind(function, __VA_ARGS__)
XSP_BROKER_REQUESTS(X)
#undef X

/* ---- one request ---- */

/* The process was allowed when the request came. If it has ended since, its number may be another one's: closes what
 * was opened, and releases what was attached. */
static int still(struct broker *b, int result)
{
	if (result < 0 || b->permitted == 0 || xsp_broker_files_is_it(b->files, b->permitted))
		return result;
	if (b->attach != NULL)
		xsp_attach_forget_process(b->attach, b->permitted);
	return xsp_error_set(&b->err, -ESRCH, XSP_STATUS_NO_TARGET, "process %d has exited",
			     (int)b->permitted);
}

static unsigned state(const struct broker *b)
{
	return b->attach == NULL ? BEFORE_LOAD : b->detached ? DETACHED : LOADED;
}

static int reply(struct broker *b, int result)
{
	struct xsp_message head = {b->in->head.op, b->in->head.sequence, result, b->size};
	struct xsp_broker_refusal refusal = {0};

	if (result < 0) {
		refusal.status = b->err.status;
		memcpy(refusal.text, b->err.text, sizeof(refusal.text));
		xsp_answer(b, &refusal, sizeof(refusal));
		head.size = b->size;
	}
	int rc = xsp_message_send(b->socket, &head, b->body, b->fds, result < 0 ? 0 : b->fd_count);
	for (size_t i = 0; i < b->fd_count && !b->keep_fds; i++)
		close(b->fds[i]);
	return rc;
}

static void wait_for_request(struct broker *b)
{
	struct pollfd fd = {.fd = b->socket, .events = POLLIN};

	while (state(b) == LOADED && poll(&fd, 1, SILENT_MS) == 0)
		xsp_attach_pause_unasked(b->attach);
}

static int serve_one(struct broker *b)
{
	wait_for_request(b);
	int rc = xsp_message_receive(b->socket, b->in);

	if (rc == -EINTR)
		return 0;
	if (rc < 0)
		return rc;
	const struct xsp_message *m = &b->in->head;
	bool known = m->op > 0 && m->op < XSP_BROKER_OPS && requests[m->op].handle != NULL &&
		     m->size >= requests[m->op].least && m->size <= requests[m->op].most &&
		     (requests[m->op].states & state(b)) != 0 && b->in->fd_count == 0;
	if (!known) {
		xsp_parcel_close(b->in);
		return -EPROTO;
	}
	b->size = 0;
	b->fd_count = 0;
	b->keep_fds = false;
	b->permitted = 0;
	b->err = (struct xsp_error){0};
	int result = still(b, requests[m->op].handle(b));
	return m->op == XSP_ASK_NOTHING ? 0 : reply(b, result);
}

/* ---- the process ---- */

/* Signals of the terminal are for the other processes. Whoever reads xsptrace's output must not wait for us to close
 * it. */
static void stand_apart(bool verbose)
{
	const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGXFSZ};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "xsp-broker");
	prctl(PR_SET_DUMPABLE, 0);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int fd = 0; null >= 0 && fd <= (verbose ? 1 : 2); fd++)
		dup2(null, fd);
	xsp_close(null);
	/* without the capability the old score stays */
	if (score >= 0) {
		ssize_t n = write(score, "-900", 4);
		(void)n;
		close(score);
	}
}

void xsp_broker_serve(int socket, const struct xsp_broker_options *options)
{
	struct broker b = {
		.socket = socket, .options = options, .recorder = getppid(), .trivial = -1};

	stand_apart(options->attach != NULL && options->attach->verbose);
	b.in = malloc(sizeof(*b.in));
	b.body = malloc(XSP_MESSAGE_MAX);
	if (b.in == NULL || b.body == NULL ||
	    xsp_broker_files_new(options->pids, options->pid_count,
				 options->attach != NULL && options->attach->follow, &b.files) < 0)
		_exit(1);
	/* without a guardian, only the broker's own death would leave something in the targets */
	xsp_guardian_start(socket, &b.journal);
	if (options->attach != NULL)
		xsp_load_begin(&b);
	while (serve_one(&b) == 0)
		;
	if (b.loading.begun)
		xsp_load_end(&b);
	xsp_attach_free(b.attach);
	xsp_guardian_end(b.journal);
	_exit(0);
}
