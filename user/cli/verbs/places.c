/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/verbs/places.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "catalog/own_code.h"
#include "catalog/wait_reasons.h"
#include "cli/record/session.h"
#include "dump/dump.h"
#include "planner/sandbox.h"

#define MEMORY (1ULL << 30)
#define SECONDS 10U /* of a CPU */
#define PLACE 120 /* bytes */
#define ANSWER (1U << 20) /* bytes; what goes beyond is lost */

struct xsp_places {
	pid_t child;
	int ask, answer; /* pipes */
	bool asked;
	char *coming, *lines; /* "TID PLACE\n", and an empty line at the end */
	size_t length;
};

/* ---- the process that reads the target ---- */

/* 0: it has no name. */
static unsigned how_much_own(const struct xsp_dump_native *f)
{
	if (f->function == NULL)
		return 0;
	if (xsp_wait_is_primitive(f->function))
		return 1;
	return f->own && xsp_is_own_function(f->function) ? 3 : 2;
}

/* The innermost frame of the user's own code, else of any. "": not known. */
static void name_place(const struct xsp_dump_thread *t, char text[PLACE])
{
	const struct xsp_dump_python *line = t->python_count > 0 ? &t->python[0] : NULL;
	const struct xsp_dump_native *function = NULL;
	unsigned most = 0;

	text[0] = '\0';
	for (size_t i = t->python_count; i-- > 0;)
		if (t->python[i].file != NULL &&
		    xsp_is_own_source(t->python[i].file, strlen(t->python[i].file)))
			line = &t->python[i];
	for (size_t i = 0; i < t->native_count; i++) {
		const unsigned own = how_much_own(&t->native[i]);
		if (own <= most)
			continue;
		function = &t->native[i];
		most = own;
	}
	if (line != NULL && line->file != NULL)
		snprintf(text, PLACE, "%s:%" PRId32 " %s", xsp_base_name(line->file), line->line,
			 line->function != NULL ? line->function : "");
	else if (function != NULL)
		snprintf(text, PLACE, "%s", function->function);
	for (char *c = text; *c != '\0'; c++)
		*c = *c == '\n' ? '?' : *c;
}

static void print_places(struct xsp_dump_target *target)
{
	const struct xsp_dump_options options = {.no_stop = true};
	struct xsp_error err = {0};
	struct xsp_dump dump;
	char text[PLACE];

	if (xsp_dump_run(target, &options, &dump, &err) < 0)
		return;
	for (size_t i = 0; i < dump.count; i++) {
		name_place(&dump.threads[i], text);
		if (text[0] != '\0')
			printf("%d %s\n", (int)dump.threads[i].tid, text);
	}
	xsp_dump_clear(&dump);
}

/* Its files and memory are read by a process that can do nothing else. */
static void read_places(struct xsp_broker *b, pid_t pid)
{
	struct xsp_dump_target *target;
	struct xsp_error err = {0};

	if (xsp_dump_open(b, pid, -1, &target, &err) < 0)
		return;
	const pid_t child = fork();
	if (child == 0) {
		if (xsp_sandbox_compute_only(MEMORY, SECONDS) == 0)
			print_places(target);
		_exit(fflush(stdout) == 0 ? 0 : 1);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	xsp_dump_close(target);
}

static _Noreturn void work(const struct xsp_options *o, int ask, int answer)
{
	const struct xsp_session session = {
		.options = o, .pids = o->pids, .pid_count = o->pid_count};
	struct xsp_broker *broker;
	struct xsp_error err = {0};
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "xsp-places");
	signal(SIGINT, SIG_IGN); /* top ends us */
	if (dup2(ask, STDIN_FILENO) < 0 || dup2(answer, STDOUT_FILENO) < 0 ||
	    xsp_session_start(&session, &broker, &err) < 0)
		_exit(1);
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		for (size_t i = 0; i < o->pid_count; i++)
			read_places(broker, o->pids[i]);
		putchar('\n');
		if (fflush(stdout) != 0)
			break;
	}
	_exit(0);
}

/* ---- top ---- */

struct xsp_places *xsp_places_start(const struct xsp_options *o)
{
	struct xsp_places *p = calloc(1, sizeof(*p));
	int ask[2], answer[2];

	if (p == NULL || pipe2(ask, O_CLOEXEC) != 0) {
		free(p);
		return NULL;
	}
	if (pipe2(answer, O_CLOEXEC) != 0) {
		close(ask[0]);
		close(ask[1]);
		free(p);
		return NULL;
	}
	fflush(stdout);
	p->child = fork();
	if (p->child == 0) {
		close(ask[1]);
		close(answer[0]);
		work(o, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	p->ask = ask[1];
	p->answer = answer[0];
	fcntl(p->answer, F_SETFL, O_NONBLOCK);
	if (p->child > 0)
		return p;
	xsp_places_free(p);
	return NULL;
}

void xsp_places_free(struct xsp_places *p)
{
	if (p == NULL)
		return;
	close(p->ask);
	close(p->answer);
	if (p->child > 0) {
		kill(p->child, SIGKILL);
		while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(p->coming);
	free(p->lines);
	free(p);
}

void xsp_places_ask(struct xsp_places *p)
{
	if (p != NULL && !p->asked && p->child > 0)
		p->asked = write(p->ask, "", 1) == 1;
}

/* What came is whole if it ends in an empty line. */
static bool is_whole(const struct xsp_places *p)
{
	return p->length > 0 && p->coming[p->length - 1] == '\n' &&
	       (p->length == 1 || p->coming[p->length - 2] == '\n');
}

bool xsp_places_read(struct xsp_places *p)
{
	char bytes[4096];
	ssize_t n;

	while (p != NULL && (n = read(p->answer, bytes, sizeof(bytes))) > 0) {
		char *longer =
			p->length < ANSWER ? realloc(p->coming, p->length + (size_t)n + 1) : NULL;
		if (longer == NULL)
			continue;
		memcpy(longer + p->length, bytes, (size_t)n);
		p->coming = longer;
		p->length += (size_t)n;
		p->coming[p->length] = '\0';
	}
	if (p == NULL || !is_whole(p))
		return false;
	free(p->lines);
	p->lines = p->coming;
	p->coming = NULL;
	p->length = 0;
	p->asked = false;
	for (char *at = p->lines; (at = strchr(at, '\n')) != NULL;)
		*at++ = '\0';
	return true;
}

/* Lines are ended by zeros now, the last one by two. */
const char *xsp_places_of(const struct xsp_places *p, uint32_t tid)
{
	for (const char *line = p != NULL ? p->lines : NULL; line != NULL && *line != '\0';
	     line += strlen(line) + 1) {
		char *end;
		if (strtoul(line, &end, 10) == tid && *end == ' ')
			return end + 1;
	}
	return NULL;
}
