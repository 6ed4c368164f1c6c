/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/flight/supervised.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/rows/order.h"
#include "base/rows/tally.h"
#include "base/units.h"
#include "procfs/procfs.h"
#include "record/flight/flight.h"
#include "service/figures.h"
#include "timeline/steps.h"

#define FIGURES_NS 1000000000ULL
#define NAME_SIZE ((int)sizeof(((struct xsp_figures *)0)->values[0].name))
#define STEPS 512U /* of the percentiles */

/* A thread's times at the last look. */
struct times {
	uint64_t since_ns, runnable_ns, waits_ns[XSP_WAIT_CLASSES];
};

struct xsp_supervised {
	int socket;
	bool ends, wanted; /* a snapshot is */
	uint64_t sent_ns;
	XSP_TALLY(struct times) threads, last;
	struct xsp_figures now;
	/* with the lock, as they come from another thread: */
	pthread_mutex_t lock;
	const struct xsp_timeline *timeline;
	struct xsp_figures seen; /* steps and values */
	uint64_t steps[STEPS];
};

int xsp_supervised_new(uint64_t socket, struct xsp_supervised **out)
{
	struct xsp_supervised *s = NULL;

	*out = NULL;
	if (socket == 0)
		return 0;
	if (fcntl((int)socket, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	s = *out = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->socket = (int)socket;
	pthread_mutex_init(&s->lock, NULL);
	return 0;
}

void xsp_supervised_free(struct xsp_supervised *s)
{
	if (s == NULL)
		return;
	pthread_mutex_destroy(&s->lock);
	xsp_tally_free(&s->threads);
	xsp_tally_free(&s->last);
	free(s);
}

bool xsp_supervised_ends(struct xsp_supervised *s)
{
	char byte = 0;
	ssize_t n;

	while (s != NULL && !s->ends && (n = recv(s->socket, &byte, 1, MSG_DONTWAIT)) >= 0) {
		s->ends = n == 0 || byte == XSP_SUPERVISOR_END;
		s->wanted |= n > 0 && byte == XSP_SUPERVISOR_SNAPSHOT;
	}
	return s != NULL && s->ends;
}

/* ---- steps and values ---- */

static int on_step(void *ctx, const struct xsp_step *step)
{
	struct xsp_supervised *s = ctx;
	const uint64_t ns = step->end_ns - step->start_ns;

	if (step->news != XSP_STEP_ENDED)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->steps[s->seen.steps++ % STEPS] = ns;
	s->seen.steps_ns += ns;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

/* Its first and last characters, if it is long; of any alphabet. */
static void name_value(const struct xsp_supervised *s, xsp_name_id id, char name[NAME_SIZE])
{
	const char *text = xsp_timeline_name(s->timeline, id);
	char whole[4 * NAME_SIZE] = "";

	xsp_printable(whole, sizeof(whole), text, NAME_SIZE - 3);
	if (strlen(whole) >= NAME_SIZE) /* a character may have four bytes */
		xsp_printable(whole, sizeof(whole), text, NAME_SIZE / 4 - 1);
	snprintf(name, NAME_SIZE, "%.*s", NAME_SIZE - 1, whole);
}

static int on_value(void *ctx, const struct xsp_value *v)
{
	struct xsp_supervised *s = ctx;
	struct xsp_figures *f = &s->seen;
	char name[NAME_SIZE];
	unsigned i = 0;

	pthread_mutex_lock(&s->lock);
	name_value(s, v->name, name);
	while (i < f->value_count && strcmp(f->values[i].name, name) != 0)
		i++;
	if (i == f->value_count && i < XSP_FIGURE_VALUES) {
		memcpy(f->values[i].name, name, sizeof(name));
		f->value_count++;
	}
	if (i < f->value_count)
		f->values[i].value = v->value;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

bool xsp_supervised_sink(struct xsp_supervised *s, struct xsp_timeline_sink *sink)
{
	*sink = (struct xsp_timeline_sink){.ctx = s, .step = on_step, .value = on_value};
	return s != NULL;
}

void xsp_supervised_begin(struct xsp_supervised *s, const struct xsp_timeline *t)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->timeline = t;
	pthread_mutex_unlock(&s->lock);
}

void xsp_supervised_passed(struct xsp_supervised *s, uint64_t passed_ns)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->seen.passed_ns = passed_ns;
	pthread_mutex_unlock(&s->lock);
}

static XSP_ORDER(rising, uint64_t, XSP_COMPARE(*x, *y));

static void add_seen(struct xsp_supervised *s, struct xsp_figures *f)
{
	uint64_t sorted[STEPS];

	pthread_mutex_lock(&s->lock);
	const size_t n = s->seen.steps < STEPS ? (size_t)s->seen.steps : STEPS;
	memcpy(sorted, s->steps, n * sizeof(*sorted));
	f->steps = s->seen.steps;
	f->steps_ns = s->seen.steps_ns;
	f->passed_ns = s->seen.passed_ns;
	f->value_count = s->seen.value_count;
	memcpy(f->values, s->seen.values, sizeof(f->values));
	pthread_mutex_unlock(&s->lock);
	if (n == 0)
		return;
	XSP_SORT(sorted, n, rising);
	f->step_p50_ns = sorted[(n - 1) / 2];
	f->step_p99_ns = sorted[(n * 99 + 99) / 100 - 1];
}

/* ---- what the recorder knows ---- */

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0; /* the earlier figure estimated what was open */
}

static void on_thread(void *ctx, const struct xsp_event_times *t)
{
	struct xsp_supervised *s = ctx;
	const uint64_t key = xsp_u64_pair(t->head.tgid, t->head.tid);
	const struct times none = {.since_ns = t->since_ns};
	const struct times *before = xsp_tally_find(&s->last, key);
	struct times now = {.since_ns = t->since_ns, .runnable_ns = t->runnable_ns};

	memcpy(now.waits_ns, t->blocked_ns, sizeof(now.waits_ns));
	if (before == NULL || before->since_ns != t->since_ns) /* another thread has the number */
		before = &none;
	s->now.runnable_ns += more(now.runnable_ns, before->runnable_ns);
	for (unsigned i = 0; i < XSP_WAIT_CLASSES; i++)
		s->now.waits_ns[i] += more(now.waits_ns[i], before->waits_ns[i]);
	xsp_tally_row(&s->threads, key, &now); /* without memory its next look counts it again */
}

static int add_times(struct xsp_supervised *s, struct xsp_recorder *r)
{
	xsp_tally_begin_anew(&s->threads);
	int rc = xsp_recorder_thread_times(r, on_thread, s);
	const __typeof__(s->threads) swapped = s->last;

	s->last = s->threads;
	s->threads = swapped;
	return rc < 0 ? rc : s->last.tally.error;
}

static void add_facts(struct xsp_supervised *s, const struct xsp_options *o, struct xsp_recorder *r)
{
	const struct xsp_recorder_facts facts = xsp_recorder_facts(r);
	struct xsp_figures *f = &s->now;
	struct xsp_recorder_status status;
	uint64_t busy_ns = 0;

	xsp_recorder_status(r, &status);
	f->resident = facts.resident;
	f->gpu_ns = facts.gpu_busy_ns;
	f->events = status.events;
	f->lost = status.lost;
	f->overhead = status.overhead;
	f->slowdown = status.slowdown;
	for (size_t i = 0; i < o->pid_count; i++) {
		uint64_t one = 0;
		if (xsp_process_cpu_ns(o->pids[i], &one))
			busy_ns += one;
	}
	f->busy_ns = busy_ns > f->busy_ns ? busy_ns : f->busy_ns;
}

/* If the service does not read, this message is dropped: the next one has all sums. */
static void send_message(const struct xsp_supervised *s, const void *message, size_t size)
{
	(void)!send(s->socket, message, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int xsp_supervised_turn(struct xsp_supervised *s, const struct xsp_options *o,
			struct xsp_recorder *r)
{
	const uint64_t now = xsp_now_ns();
	int rc = 0;

	if (s == NULL)
		return 0;
	if (s->wanted)
		xsp_flight_snapshot(r, "ctl", "asked for by xsptrace ctl");
	s->wanted = false;
	if (now - s->sent_ns < FIGURES_NS)
		return 0;
	s->sent_ns = now;
	s->now.kind = XSP_FIGURES;
	s->now.time_ns = now;
	rc = add_times(s, r);
	add_facts(s, o, r);
	add_seen(s, &s->now);
	send_message(s, &s->now, sizeof(s->now));
	return rc;
}

void xsp_supervised_written(struct xsp_supervised *s, const char *path, const char *why, int status)
{
	struct xsp_figures_written w = {.kind = XSP_FIGURES_WRITTEN, .status = status};

	if (s == NULL)
		return;
	snprintf(w.name, sizeof(w.name), "%s", xsp_base_name(path));
	snprintf(w.why, sizeof(w.why), "%s", why);
	send_message(s, &w, sizeof(w));
}
