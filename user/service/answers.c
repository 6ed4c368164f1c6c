/* SPDX-License-Identifier: BSD-2-Clause */
/* answers.c - what `xsptrace ctl` asks, a row a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/parse.h"
#include "base/units.h"
#include "service/private.h"

#define LISTED 500U /* snapshots */

/* WORD: a process's number, its name, or a watch's; NULL: all. */
static bool is_meant(const struct xsp_service *s, const struct xsp_target *t, const char *word)
{
	uint64_t pid;

	if (word == NULL)
		return true;
	if (xsp_parse_number(word, 1, INT32_MAX, &pid) == 0)
		return (pid_t)pid == t->is.pid;
	return strcmp(word, t->is.comm) == 0 || strcmp(word, xsp_target_watch(s, t)) == 0;
}

static const char *const states[] = {
	[XSP_TARGET_WAITS] = "waiting",	    [XSP_TARGET_STARTS] = "starting",
	[XSP_TARGET_ARMED] = "armed",	    [XSP_TARGET_ENDS] = "ending",
	[XSP_TARGET_DISARMED] = "disarmed",
};

static void print_target(const struct xsp_service *s, const struct xsp_target *t, FILE *out)
{
	const bool armed = t->state == XSP_TARGET_ARMED;

	fprintf(out, "%8d  %-15s  %-12s  %-8s", (int)t->is.pid, t->is.comm, xsp_target_watch(s, t),
		states[t->state]);
	if (armed)
		fprintf(out, "  %7.1f  %5.1f%%  %4.0f%%  %9u\n", t->steps_per_s,
			100 * t->figures.slowdown, 100 * t->processors, t->snapshots);
	else
		fprintf(out, "  %s\n", t->why);
}

static int answer_status(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	const struct xsp_service *s = ctx;
	char bytes[XSP_UNITS_SIZE];
	double processors = 0;
	bool any = false;

	(void)client;
	for (size_t i = 0; i < s->count; i++)
		processors +=
			s->targets[i].state == XSP_TARGET_ARMED ? s->targets[i].processors : 0;
	fprintf(out,
		"%zu armed of at most %llu; recording takes %.1f %% of a processor, budget %.0f %%; %llu snapshots, %s\n",
		xsp_targets_in(s, XSP_TARGET_ARMED), (unsigned long long)s->config.max_targets,
		100 * processors, 100 * s->config.budget, (unsigned long long)s->totals.kept_files,
		xsp_format_bytes(bytes, s->totals.kept_bytes));
	if (s->count > 0)
		fputs("     PID  NAME             WATCH         STATE     STEPS/S  SLOWED   COST  SNAPSHOTS\n",
		      out);
	for (size_t i = 0; i < s->count; i++)
		if (is_meant(s, &s->targets[i], word)) {
			print_target(s, &s->targets[i], out);
			any = true;
		}
	return any || word == NULL ? XSP_STATUS_OK : XSP_STATUS_NO_TARGET;
}

static int answer_list(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	const struct xsp_service *s = ctx;
	struct xsp_stored *all = NULL;
	size_t count = 0;
	const int rc = xsp_stored_list(s->folder, &all, &count);

	(void)client;
	(void)word;
	for (size_t i = 0; i < count && i < LISTED; i++) {
		char when[32] = "-", bytes[XSP_UNITS_SIZE], name[300];
		struct tm tm;
		if (localtime_r(&all[i].written.tv_sec, &tm) != NULL)
			strftime(when, sizeof(when), "%F %T", &tm);
		xsp_printable(name, sizeof(name) - 4, all[i].name, 0);
		fprintf(out, "%s  %10s  %s/%s\n", when, xsp_format_bytes(bytes, all[i].bytes),
			s->config.folder, name);
	}
	if (count > LISTED)
		fprintf(out, "and %zu older ones\n", count - LISTED);
	xsp_stored_free(all, count);
	return rc < 0 ? XSP_STATUS_FAILED : XSP_STATUS_OK;
}

static int answer_snapshot(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	struct xsp_service *s = ctx;
	const uint32_t bit = 1U << (client - s->ctl.clients);
	const char what = XSP_SUPERVISOR_SNAPSHOT;

	client->left = client->failed = 0;
	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++) {
		t->asked &= ~bit; /* an earlier client's */
		if (t->state != XSP_TARGET_ARMED || !is_meant(s, t, word) ||
		    send(t->socket, &what, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
			continue;
		t->asked |= bit;
		client->left++;
	}
	client->waits = client->left > 0;
	if (client->waits)
		return -1;
	fputs(word == NULL ? "no process is armed\n"
			   : "no armed process has that number, name or watch\n",
	      out);
	return XSP_STATUS_NO_TARGET;
}

/* How many were meant, in a sentence. */
static int say_how_many(FILE *out, size_t n, const char *what)
{
	if (n > 0)
		fprintf(out, "%zu %s %s\n", n, n == 1 ? "process is" : "processes are", what);
	else
		fputs("no process has that number, name or watch, or none that this would change\n",
		      out);
	return n > 0 ? XSP_STATUS_OK : XSP_STATUS_NO_TARGET;
}

static int answer_disarm(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	struct xsp_service *s = ctx;
	size_t n = 0;

	(void)client;
	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++) {
		if (!is_meant(s, t, word) || t->state == XSP_TARGET_DISARMED)
			continue;
		n++;
		t->disarm = t->recorder != 0;
		if (t->disarm)
			xsp_target_end(s, t, "");
		else
			t->state = XSP_TARGET_DISARMED;
	}
	return say_how_many(out, n, "disarmed, until ctl arm or its end");
}

static int answer_arm(void *ctx, struct xsp_ctl_client *client, const char *word, FILE *out)
{
	struct xsp_service *s = ctx;
	size_t n = 0;

	(void)client;
	for (struct xsp_target *t = s->targets; t < s->targets + s->count; t++) {
		if (!is_meant(s, t, word))
			continue;
		n += t->state != XSP_TARGET_ARMED;
		t->disarm = false;
		if (t->state != XSP_TARGET_DISARMED && t->state != XSP_TARGET_WAITS)
			continue;
		t->state = XSP_TARGET_WAITS;
		t->why[0] = '\0';
		t->next_ns = 0; /* now, whatever has failed before */
	}
	return say_how_many(out, n, "to be armed");
}

const struct xsp_ctl_request xsp_service_requests[] = {
	{"status", true, answer_status},     {"list", false, answer_list},
	{"snapshot", true, answer_snapshot}, {"arm", true, answer_arm},
	{"disarm", true, answer_disarm},
};
const size_t xsp_service_request_count =
	sizeof(xsp_service_requests) / sizeof(xsp_service_requests[0]);
