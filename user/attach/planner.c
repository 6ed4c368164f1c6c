/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/planner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/hint.h"
#include "attach/protocol.h"
#include "attach/sandbox.h"

/* For each module: what is read of it is forgotten before the next. */
#define MEMORY (256ULL << 20)
#define CPU_SECONDS 600U /* of all modules together */
#define WALL_MS 60000 /* of one */
#define WAIT_MS 20
#define ANSWER_MAX (128ULL << 20) /* node has 80,000 functions, 55 MB */

enum {
	READ_MODULE =
		1, /* struct xsp_site_costs, the path as the target sees it; descriptor → PART, ..., DONE or FAILED */
	WANT_DEBUG_FILE, /* from the planner: a build id → HAVE_DEBUG_FILE */
	HAVE_DEBUG_FILE, /* result: 0 and a descriptor, or negative */
	PART, /* bytes of the answer */
	DONE, /* the last bytes */
	FAILED, /* result; struct xsp_error */
	READ_HINT, /* struct xsp_hint_ask, the path; descriptor → DONE with text */
};

struct xsp_planner {
	const struct xsp_plan *plan;
	const struct xsp_opener *opener;
	void (*in_child)(void *ctx);
	void *in_child_ctx;
	bool (*stopped)(void *ctx);
	void *stopped_ctx;
	pid_t pid; /* 0: not running */
	int socket;
	struct xsp_parcel *in;
};

/* ---- the process ---- */

struct reader {
	struct xsp_opener opener; /* first: the reader is found by it */
	int socket;
	struct xsp_plan plan;
	struct xsp_parcel *in;
};

static int send_out(int socket, uint32_t op, int result, const void *data, size_t size)
{
	struct xsp_message m = {.op = op, .result = result, .size = (uint32_t)size};

	return xsp_message_send(socket, &m, data, NULL, 0);
}

static int want_debug_file(const struct xsp_opener *o, const char *build_id)
{
	struct reader *r = (struct reader *)(uintptr_t)o;
	int rc = send_out(r->socket, WANT_DEBUG_FILE, 0, build_id, strlen(build_id));

	if (rc == 0)
		rc = xsp_message_receive(r->socket, r->in);
	if (rc < 0 || r->in->head.op != HAVE_DEBUG_FILE)
		_exit(1);
	if (r->in->head.result < 0 || r->in->fd_count != 1) {
		xsp_parcel_close(r->in);
		return -ENOENT;
	}
	r->in->fd_count = 0;
	return r->in->fds[0];
}

static int no_debug_file(const struct xsp_opener *o, const char *build_id)
{
	(void)o;
	(void)build_id;
	return -ENOENT;
}

static int send_part(void *ctx, const void *data, size_t size)
{
	const struct reader *r = ctx;

	if (send_out(r->socket, PART, 0, data, size) < 0)
		_exit(1);
	return 0;
}

static int tell_module(struct reader *r, const struct xsp_planned_module *m)
{
	struct xsp_wire w = {.send = send_part,
			     .ctx = r,
			     .part = r->in->body, /* the request has been read */
			     .room = sizeof(r->in->body)};
	int rc = xsp_wire_put(&w, m);

	if (rc == 0 && send_out(r->socket, DONE, 0, w.part, w.used) < 0)
		_exit(1);
	return rc;
}

static void tell_failure(const struct reader *r, int code, const char *shown, struct xsp_error *err)
{
	if (code == -ENOMEM) {
		*err = (struct xsp_error){0};
		xsp_error_set(err, code, XSP_STATUS_TARGET,
			      "reading %.300s takes more than %llu MiB", shown,
			      (unsigned long long)(MEMORY >> 20));
	}
	if (send_out(r->socket, FAILED, code, err, sizeof(*err)) < 0)
		_exit(1);
}

/* The path that follows `head` bytes. */
static void take_shown(const struct reader *r, size_t head, char *shown, size_t size)
{
	size_t length = r->in->head.size - head;

	if (length >= size)
		length = size - 1;
	memcpy(shown, r->in->body + head, length);
	shown[length] = '\0';
}

static void read_hint(struct reader *r)
{
	struct xsp_hint_ask ask;
	char shown[4097], text[XSP_HINT_SIZE];

	memcpy(&ask, r->in->body, sizeof(ask));
	take_shown(r, sizeof(ask), shown, sizeof(shown));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	xsp_hint_read(&r->plan, &r->opener, fd, shown, &ask, text);
	if (send_out(r->socket, DONE, 0, text, strlen(text)) < 0)
		_exit(1);
}

static void read_module(struct reader *r)
{
	struct xsp_planned_module m = {0};
	struct xsp_error err = {0};
	char shown[4097];
	const size_t costs = sizeof(r->plan.costs);

	memcpy(&r->plan.costs, r->in->body, costs);
	take_shown(r, costs, shown, sizeof(shown));
	int fd = r->in->fds[0];
	r->in->fd_count = 0;
	m.shown = shown;
	int rc = xsp_plan_read(&r->plan, &r->opener, fd, &m, &err);
	if (rc == 0)
		rc = tell_module(r, &m);
	m.shown = NULL;
	xsp_planned_module_clear(&m);
	if (rc < 0)
		tell_failure(r, rc, shown, &err);
}

static _Noreturn void serve(struct xsp_planner *p, int socket)
{
	struct reader r = {
		.opener = xsp_open_directly, .socket = socket, .plan = *p->plan, .in = p->in};

	r.opener.debug_file = xsp_opener_lacks_debug_file(NULL) ? no_debug_file : want_debug_file;
	prctl(PR_SET_NAME, "xsp-planner");
	signal(SIGINT, SIG_IGN); /* the recorder ends us */
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (p->in_child != NULL)
		p->in_child(p->in_child_ctx);
	if (xsp_sandbox_powerless() < 0 || xsp_sandbox_compute_only(MEMORY, CPU_SECONDS) < 0)
		_exit(2);
	while (xsp_message_receive(socket, r.in) == 0) {
		const bool hint = r.in->head.op == READ_HINT;
		if ((!hint && r.in->head.op != READ_MODULE) || r.in->fd_count != 1 ||
		    r.in->head.size < (hint ? sizeof(struct xsp_hint_ask) : sizeof(r.plan.costs)))
			_exit(1);
		if (hint)
			read_hint(&r);
		else
			read_module(&r);
	}
	_exit(0);
}

/* ---- asking it ---- */

int xsp_planner_new(const struct xsp_plan *plan, const struct xsp_opener *o,
		    struct xsp_planner **out)
{
	struct xsp_planner *p = *out = calloc(1, sizeof(*p));

	if (p == NULL || (p->in = malloc(sizeof(*p->in))) == NULL) {
		free(p);
		*out = NULL;
		return -ENOMEM;
	}
	p->in->fd_count = 0;
	p->plan = plan;
	p->opener = o;
	p->socket = -1;
	return 0;
}

void xsp_planner_in_child(struct xsp_planner *p, void (*fn)(void *ctx), void *ctx)
{
	p->in_child = fn;
	p->in_child_ctx = ctx;
}

void xsp_planner_on_wait(struct xsp_planner *p, bool (*stopped)(void *ctx), void *ctx)
{
	p->stopped = stopped;
	p->stopped_ctx = ctx;
}

static void stop(struct xsp_planner *p)
{
	if (p->pid > 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, NULL, 0);
	}
	if (p->socket >= 0)
		close(p->socket);
	p->pid = 0;
	p->socket = -1;
}

void xsp_planner_free(struct xsp_planner *p)
{
	if (p == NULL)
		return;
	stop(p);
	free(p->in);
	free(p);
}

int xsp_planner_start(struct xsp_planner *p)
{
	int sockets[2];
	int rc = xsp_message_pair(sockets);

	if (rc < 0)
		return rc;
	p->pid = fork();
	if (p->pid == 0) {
		close(sockets[0]);
		serve(p, sockets[1]);
	}
	rc = p->pid < 0 ? -errno : 0;
	close(sockets[1]);
	if (rc < 0) {
		p->pid = 0;
		close(sockets[0]);
		return rc;
	}
	p->socket = sockets[0];
	return 0;
}

/* 0, -EINTR when the user does not want to wait, -ETIME, -EPIPE when it has died. */
static int wait_for_message(struct xsp_planner *p, int *left_ms)
{
	struct pollfd fd = {.fd = p->socket, .events = POLLIN};

	while (*left_ms > 0) {
		int n = poll(&fd, 1, WAIT_MS);
		if (n < 0 && errno != EINTR)
			return -EPIPE;
		if (n > 0) {
			int rc = xsp_message_receive(p->socket, p->in);
			if (rc != -EINTR)
				return rc;
		}
		*left_ms -= n == 0 ? WAIT_MS : 0;
		if (p->stopped != NULL && p->stopped(p->stopped_ctx))
			return -EINTR;
	}
	return -ETIME;
}

static int give_debug_file(struct xsp_planner *p)
{
	char build_id[132] = "";
	size_t length = p->in->head.size;

	memcpy(build_id, p->in->body, length < sizeof(build_id) ? length : sizeof(build_id) - 1);
	int fd = xsp_opener_lacks_debug_file(build_id) ? -ENOENT
						       : p->opener->debug_file(p->opener, build_id);
	struct xsp_message m = {.op = HAVE_DEBUG_FILE, .result = fd < 0 ? fd : 0};
	int rc = xsp_message_send(p->socket, &m, NULL, &fd, fd < 0 ? 0 : 1);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The bytes of an answer. */
struct answer {
	uint8_t *data;
	size_t size, room;
};

static int take_part(const struct xsp_planner *p, struct answer *a)
{
	size_t size = p->in->head.size, need = a->size + size;

	if (need > ANSWER_MAX)
		return -EFBIG;
	if (need > a->room) {
		size_t room = need + need / 4;
		uint8_t *grown = realloc(a->data, room);
		if (grown == NULL)
			return -ENOMEM;
		a->data = grown;
		a->room = room;
	}
	memcpy(a->data + a->size, p->in->body, size);
	a->size += size;
	return 0;
}

static int take_failure(const struct xsp_planner *p, struct xsp_error *err)
{
	const struct xsp_error *told = (const void *)p->in->body;

	if (p->in->head.result >= 0 || p->in->head.size != sizeof(*told))
		return -EPROTO;
	return xsp_error_set(err, p->in->head.result, told->status, "%.*s",
			     (int)sizeof(told->text) - 1, told->text);
}

/* The parts of an answer up to its end. */
static int take_answer(struct xsp_planner *p, int left_ms, struct answer *a, struct xsp_error *err)
{
	int rc = 0;

	while (rc == 0) {
		rc = wait_for_message(p, &left_ms);
		if (rc < 0)
			return rc;
		switch (p->in->head.op) {
		case WANT_DEBUG_FILE:
			rc = give_debug_file(p);
			break;
		case PART:
			rc = take_part(p, a);
			break;
		case DONE:
			return take_part(p, a);
		case FAILED:
			return take_failure(p, err);
		default:
			rc = -EPROTO;
		}
	}
	return rc;
}

static int explain(int code, const char *shown, struct xsp_error *err)
{
	switch (code) {
	case -EINTR:
		return xsp_error_set(err, code, XSP_STATUS_FAILED, "interrupted");
	case -ETIME:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "reading %.300s took more than %d s", shown, WALL_MS / 1000);
	case -EFBIG:
		return xsp_error_set(err, code, XSP_STATUS_TARGET,
				     "what matches in %.300s takes more than %llu MiB: give a "
				     "narrower -e",
				     shown, (unsigned long long)(ANSWER_MAX >> 20));
	case -EPIPE:
	case -EPROTO:
		return xsp_error_set(err, -EPROTO, XSP_STATUS_TARGET,
				     "the process that reads files for xsptrace died of %.300s: "
				     "please report the file",
				     shown);
	default:
		return code;
	}
}

/* A request with a file and its path; `fd` is taken over. */
static int ask_about(struct xsp_planner *p, uint32_t op, const void *head, size_t size, int fd,
		     const char *shown)
{
	const size_t length = strlen(shown);
	struct xsp_message ask = {.op = op, .size = (uint32_t)(size + length)};
	int rc = p->pid > 0 ? 0 : xsp_planner_start(p);

	if (rc == 0 && size + length <= sizeof(p->in->body)) {
		memcpy(p->in->body, head, size);
		memcpy(p->in->body + size, shown, length);
		rc = xsp_message_send(p->socket, &ask, p->in->body, &fd, 1);
	}
	close(fd);
	return rc;
}

void xsp_planner_hint(struct xsp_planner *p, int fd, const char *shown,
		      const struct xsp_hint_ask *ask, int limit_ms, char *text)
{
	struct answer a = {0};
	int rc = ask_about(p, READ_HINT, ask, sizeof(*ask), fd, shown);

	if (rc == 0)
		rc = take_answer(p, limit_ms, &a, NULL);
	if (rc == 0 && a.size < XSP_HINT_SIZE)
		memcpy(text, a.data, a.size);
	text[rc == 0 && a.size < XSP_HINT_SIZE ? a.size : 0] = '\0';
	free(a.data);
	if (rc < 0)
		stop(p);
}

int xsp_planner_read(struct xsp_planner *p, int fd, struct xsp_planned_module *m,
		     struct xsp_error *err)
{
	struct answer a = {0};
	bool told = false;
	int rc = ask_about(p, READ_MODULE, &p->plan->costs, sizeof(p->plan->costs), fd, m->shown);

	if (rc == 0)
		rc = take_answer(p, WALL_MS, &a, err);
	told = rc < 0 && p->in->head.op == FAILED;
	if (rc == 0)
		rc = xsp_wire_get(a.data, a.size, m);
	free(a.data);
	if (rc < 0 && !told)
		stop(p); /* the next module gets a new one */
	return rc < 0 && !told ? explain(rc, m->shown, err) : rc;
}
