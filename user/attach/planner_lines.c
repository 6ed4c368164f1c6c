/* SPDX-License-Identifier: BSD-2-Clause */
/* planner_lines.c - asks a planner about instructions, and takes the answer when it comes. It is a process of its own for
 * each question: as a copy of the recorder it would keep the memory that this writes to meanwhile. */
#include "attach/planner_private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/elf/lines.h"

#define READING_MS                                                                                 \
	1000U /* reading a file takes so long at most, beside the CPU time that was allowed */
#define TAKE_NS 5000000ULL /* an answer may have many parts: each call takes some */

static void forget(struct xsp_planner *p)
{
	free(p->question.answer.data);
	free(p->question.path);
	memset(&p->question, 0, sizeof(p->question));
}

static int send_question(struct xsp_planner *p, int fd, const char *display_path,
			 const struct xsp_code_line *lines, size_t count, unsigned limit_ms)
{
	struct xsp_lines_ask ask = {.count = (uint32_t)count, .limit_ms = limit_ms};

	for (size_t i = 0; i < count; i++)
		ask.addr[i] = lines[i].addr;
	return xsp_planner_send(p, p->now, XSP_READ_LINES, &ask, XSP_LINES_ASK(count), fd,
				display_path);
}

int xsp_planner_ask_lines(struct xsp_planner *p, pid_t pid, int fd, const char *display_path,
			  const struct xsp_code_line *lines, size_t count, unsigned limit_ms)
{
	int rc = p->question.path != NULL ? -EBUSY : count > XSP_PLANNER_LINES ? -E2BIG : 0;

	p->now = &p->processes[LINES_READER];
	if (rc == 0)
		rc = xsp_planner_start_one(p, p->now);
	if (rc == 0)
		rc = send_question(p, fd, display_path, lines, count, limit_ms);
	close(fd);
	if (rc == -EBUSY || rc == -E2BIG)
		return rc;
	p->question.path = rc == 0 ? strdup(display_path) : NULL;
	if (p->question.path == NULL) {
		xsp_planner_stop(p, p->now);
		return rc < 0 ? rc : -ENOMEM;
	}
	p->question.answer.from = p->now;
	p->question.pid = pid;
	p->question.deadline_ns = xsp_now_ns() + (limit_ms + READING_MS) * 1000000ULL;
	return 0;
}

/* ---- the answer ---- */

/* Receives a message, if one comes. 1: it has; 0: none. */
static int receive(struct xsp_planner *p, unsigned wait_ms)
{
	struct pollfd fd = {.fd = p->now->socket, .events = POLLIN};

	if (p->now->pid == 0)
		return -EPIPE; /* it was ended because of something else */
	const int n = poll(&fd, 1, (int)wait_ms);
	if (n <= 0)
		return n == 0 || errno == EINTR ? 0 : -errno;
	int rc = xsp_message_receive(p->now->socket, p->in);
	if (rc == 0 && p->in->fd_count > 0) {
		xsp_parcel_close(p->in);
		rc = -EPROTO;
	}
	return rc == -EINTR ? 0 : rc < 0 ? rc : 1;
}

static int take(struct xsp_planner *p, unsigned wait_ms)
{
	const uint64_t now = xsp_now_ns(), until = now + TAKE_NS + wait_ms * 1000000ULL;
	struct answer *a = &p->question.answer;
	int rc = 1;

	while (rc == 1 && !a->whole && xsp_now_ns() < until) {
		rc = receive(p, wait_ms);
		if (rc == 1) {
			const int taken = xsp_planner_take(p, a, NULL);
			rc = taken < 0 ? taken : 1;
		}
	}
	if (rc >= 0 && !a->whole && now >= p->question.deadline_ns)
		return -ETIME;
	return rc < 0 ? rc : a->whole;
}

/* The end of the text's first `count` lines; NULL: it has not as many. */
static const char *after_lines(const char *at, const char *end, long count)
{
	for (; count > 0 && at != NULL; count--) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at != NULL ? at + 1 : NULL;
	}
	return at;
}

/* Only one that begins there: what comes before numbers could lead strtol() beyond the line. */
static long number(const char *at, char **rest)
{
	*rest = (char *)(uintptr_t)at;
	return *at == '-' || (*at >= '0' && *at <= '9') ? strtol(at, rest, 10) : LONG_MIN;
}

/* "LINE HELPERS COUNT PATH" with COUNT lines that follow. The next one's, or NULL: that is none. */
static const char *parse_line(const char *at, const char *end, struct xsp_code_line *l)
{
	const char *names = after_lines(at, end, 1);
	long numbers[3];

	for (size_t i = 0; names != NULL && i < 3; i++) {
		char *rest;
		numbers[i] = number(at, &rest);
		if (*rest != ' ')
			return NULL;
		at = rest + 1;
	}
	if (names == NULL || numbers[0] > INT_MAX || numbers[1] < 0 || numbers[1] > numbers[2] ||
	    numbers[2] > XSP_INLINED_MOST)
		return NULL;
	const char *next = after_lines(names, end, numbers[2]);
	l->missed = numbers[0] < 0;
	l->line = numbers[0] > 0 ? (int)numbers[0] : 0;
	l->helpers = (unsigned)numbers[1];
	if (numbers[0] > 0)
		l->path = strndup(at, (size_t)(names - at - 1));
	if (next > names)
		l->inlined = strndup(names, (size_t)(next - names));
	return next;
}

int xsp_planner_get_lines(struct xsp_planner *p, unsigned wait_ms, struct xsp_code_line *lines,
			  size_t count, int *result)
{
	const struct answer *a = &p->question.answer;

	if (p->question.path == NULL)
		return -ENOENT;
	p->now = a->from;
	p->asked_path = p->question.path;
	p->asked_pid = p->question.pid;
	const int rc = take(p, wait_ms);
	if (rc == 0)
		return 0;
	const char *at = rc == 1 ? (const char *)a->data : NULL;
	const char *end = at != NULL ? at + a->size : NULL;
	for (size_t i = 0; i < count && at != NULL && at < end; i++)
		at = parse_line(at, end, &lines[i]);
	*result = rc == 1 ? a->result : 0;
	xsp_planner_stop(p, p->now);
	forget(p);
	return rc;
}
