/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/flight/flight_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/file_io.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "capture/recent.h"
#include "record/recorder_private.h"

#define NAMES_NS 1000000000ULL /* a snapshot waits so long for names, */
#define SOURCES_NS 2000000000ULL /* and for what debug information says */
#define FRESH_S 10 /* events may come so long after what they need */
#define NICE 10 /* of the process that writes: the recording comes first */

/* Will the definition be put again when an event needs it? */
static bool forget(void *ctx, unsigned type, uint64_t key)
{
	struct xsp_recorder *r = ctx;

	if (type == XSP_RECENT_PROCESS)
		return xsp_recorder_find(r, (pid_t)key) == NULL;
	if (type == XSP_RECENT_NAME)
		return (r->pythons != NULL && xsp_pythons_forget_name(r->pythons, key)) ||
		       (r->frames != NULL && xsp_frames_forget(r->frames, key));
	if (r->pythons != NULL)
		xsp_pythons_renew(r->pythons);
	return r->pythons != NULL;
}

int xsp_flight_new(struct xsp_recorder *r)
{
	const struct xsp_flight_options *o = r->options.flight;
	struct xsp_flight *f;

	if (o == NULL)
		return 0;
	f = r->flight = calloc(1, sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	f->options = *o;
	return xsp_recent_new(&(struct xsp_recent_options){.age_ns = o->age_ns,
							   .bytes = o->bytes,
							   .forget = forget,
							   .fresh_s = FRESH_S,
							   .ctx = r},
			      &f->recent);
}

void xsp_flight_free(struct xsp_recorder *r)
{
	if (r->flight == NULL)
		return;
	xsp_recent_free(r->flight->recent);
	free(r->flight->state);
	free(r->flight);
	r->flight = NULL;
}

struct xsp_recent *xsp_flight_recent(const struct xsp_recorder *r)
{
	return r->flight != NULL ? r->flight->recent : NULL;
}

/* ---- how things stand ---- */

static int add_event(struct xsp_flight *f, const struct xsp_event *e)
{
	if (xsp_grow(&f->state, &f->room, f->size + e->size) < 0)
		return -ENOMEM;
	memcpy(f->state + f->size, e, e->size);
	f->size += e->size;
	return 0;
}

/* `open`: the waits that threads are in, too. */
static int add_threads(struct xsp_recorder *r, bool open)
{
	struct xsp_thread_now *rows = NULL;
	size_t count = 0;
	int rc = r->options.attach.waits ? xsp_broker_times(r->broker, &rows, &count) : 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		const struct xsp_event_wait *w = &rows[i].open;
		if (open && w->head.kind != 0 &&
		    w->head.time_ns - w->left_ns >= r->options.attach.wait_least_ns)
			rc = add_event(r->flight, &w->head);
		if (rc == 0)
			rc = add_event(r->flight, &rows[i].times.head);
	}
	free(rows);
	return rc;
}

static int add_memory(struct xsp_recorder *r)
{
	struct xsp_process_memory_event e;
	int rc = 0;

	for (size_t i = 0; i < r->process_count && rc == 0; i++)
		if (xsp_recorder_memory_event(&r->processes[i], &e))
			rc = add_event(r->flight, &e.head);
	return rc;
}

static int put_mark(struct xsp_recorder *r)
{
	struct xsp_flight *f = r->flight;
	const uint64_t now = xsp_now_ns();
	int rc = xsp_recorder_put_stats(r);

	f->size = 0;
	if (rc == 0)
		rc = add_threads(r, false);
	if (rc == 0)
		rc = add_memory(r);
	return rc < 0 ? rc : xsp_recent_mark(f->recent, now, f->state, f->size);
}

/* ---- writing ---- */

/* FOLDER/xsptrace.NAME.PID.TIME.REASON.xspt */
static void choose_path(struct xsp_flight *f)
{
	const time_t now = time(NULL);
	char when[32];
	struct tm local;

	for (char *p = f->reason; *p != '\0'; p++)
		if (!xsp_is_word(*p) || *p == '_')
			*p = '-';
	if (localtime_r(&now, &local) == NULL ||
	    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local) == 0)
		snprintf(when, sizeof(when), "%lld", (long long)now);
	snprintf(f->path, sizeof(f->path), "%s.%s.%s.xspt", f->options.prefix, when, f->reason);
}

static struct xsp_flight_snapshot snapshot_of(const struct xsp_flight *f, bool last)
{
	return (struct xsp_flight_snapshot){
		.path = f->path, .reason = f->reason, .why = f->why, .last = last};
}

int xsp_flight_write(struct xsp_recorder *r, int fd, const struct xsp_flight_snapshot *s,
		     struct xsp_error *err)
{
	struct xsp_flight *f = r->flight;
	struct xsp_capture_writer *w;
	uint64_t start_ns = 0;
	char text[500];
	int rc = xsp_capture_create_keyed(fd, s->path, xsp_capture_writer_key(r->writer), &w, err);

	if (rc < 0) {
		close(fd);
		return rc;
	}
	rc = xsp_recent_write(f->recent, r->writer, w, &f->now, &start_ns);
	snprintf(text, sizeof(text), "%s%s%s", s->reason, s->why[0] != '\0' ? ": " : "", s->why);
	if (rc == 0)
		rc = xsp_capture_put_info(w, "snapshot", text);
	if (rc == 0 && f->about[0] != '\0')
		rc = xsp_capture_put_info(w, "snapshot of", f->about);
	const int end = xsp_capture_finish(w, start_ns, f->now.end_ns, err);
	if (end == 0 && rc < 0)
		xsp_error_set(err, rc, XSP_STATUS_OUTPUT, "%s could not be written: %s", s->path,
			      strerror(-rc));
	return end < 0 ? end : rc;
}

/* In the copy of this process. */
static void write_and_exit(struct xsp_recorder *r)
{
	struct xsp_flight *f = r->flight;
	const struct xsp_flight_snapshot s = snapshot_of(f, false);
	int kept[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, f->options.kept};

	signal(SIGINT, SIG_IGN); /* Ctrl-C ends the recording, not this */
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	/* the broker must see when the recorder is gone */
	xsp_close_all_but(kept, sizeof(kept) / sizeof(kept[0]));
	setpriority(PRIO_PROCESS, 0, NICE);
	_exit(f->options.write(f->options.ctx, r, &s));
}

static int gather(struct xsp_recorder *r)
{
	struct xsp_flight *f = r->flight;
	int rc = xsp_recorder_put_so_far(r);

	f->size = 0;
	if (rc == 0)
		rc = add_threads(r, true);
	f->now = (struct xsp_recent_now){.state = f->state,
					 .size = f->size,
					 .start_ns = r->start_ns,
					 .end_ns = xsp_now_ns()};
	f->now.windows = xsp_overhead_window(r, &f->now.window_ns);
	return rc;
}

static int begin_writing(struct xsp_recorder *r)
{
	struct xsp_flight *f = r->flight;
	int rc = gather(r);

	if (rc < 0)
		return rc;
	choose_path(f);
	f->asked = false;
	f->snapshots++;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		write_and_exit(r);
	if (pid < 0) {
		xsp_recorder_note(r, "no snapshot (%s): there is no process to write it: %s",
				  f->reason, strerror(errno));
		return 0;
	}
	f->writer = pid;
	memcpy(f->written.reason, f->reason, sizeof(f->reason));
	memcpy(f->written.why, f->why, sizeof(f->why));
	memcpy(f->written.path, f->path, sizeof(f->path));
	return 0;
}

static void take_leave(struct xsp_recorder *r, int options)
{
	struct xsp_flight *f = r->flight;
	int status = 0;

	if (f->writer == 0 || waitpid(f->writer, &status, options) == 0)
		return;
	f->writer = 0;
	const struct xsp_flight_snapshot s = {
		.path = f->written.path, .reason = f->written.reason, .why = f->written.why};
	if (WIFSIGNALED(status))
		xsp_recorder_note(r, "%s was not written: its process was ended by signal %d",
				  s.path, WTERMSIG(status));
	if (f->options.written != NULL)
		f->options.written(f->options.ctx, &s, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Once all processes have ended, what they did last does not get older. */
static bool is_alive(const struct xsp_recorder *r)
{
	size_t n = 0;

	while (n < r->process_count && r->processes[n].ended_ns != 0)
		n++;
	return n < r->process_count;
}

static bool has_names(const struct xsp_recorder *r)
{
	const uint64_t waited = xsp_now_ns() - r->flight->asked_ns;

	return r->frames == NULL || ((xsp_frames_pending(r->frames) == 0 || waited >= NAMES_NS) &&
				     (!xsp_sources_pending(r->sources) || waited >= SOURCES_NS));
}

int xsp_flight_turn(struct xsp_recorder *r)
{
	struct xsp_flight *f = r->flight;
	const uint64_t now = xsp_now_ns();
	int rc = 0;

	if (f == NULL)
		return 0;
	take_leave(r, WNOHANG);
	if (is_alive(r) && xsp_recent_wants_mark(f->recent, now))
		rc = put_mark(r);
	if (rc == 0)
		xsp_capture_prune(r->writer);
	if (rc < 0 || !f->asked || f->writer != 0)
		return rc;
	if (r->sources != NULL)
		rc = xsp_sources_turn(r->sources, r->planner, true);
	return rc == 0 && has_names(r) ? begin_writing(r) : rc;
}

int xsp_flight_last(struct xsp_recorder *r, const char *reason, const char *why)
{
	struct xsp_flight *f = r->flight;

	if (f == NULL)
		return 0;
	take_leave(r, 0);
	if (reason == NULL || r->writer == NULL)
		return 0;
	if (!f->asked)
		f->why[0] = f->about[0] = '\0';
	snprintf(f->reason, sizeof(f->reason), "%s", reason);
	if (why != NULL)
		xsp_join(f->why, sizeof(f->why), "; ", "%s", why);
	if (reason == f->end && f->place[0] != '\0')
		xsp_join(f->why, sizeof(f->why), "; ", "%s", f->place);
	f->now = (struct xsp_recent_now){.start_ns = r->start_ns, .end_ns = r->end_ns};
	f->asked = false;
	f->snapshots++;
	choose_path(f);
	const struct xsp_flight_snapshot s = snapshot_of(f, true);
	return f->options.write(f->options.ctx, r, &s);
}

struct xsp_flight_status xsp_flight_status(const struct xsp_recorder *r)
{
	const struct xsp_recent_totals t = xsp_recent_totals(r->flight->recent);
	const uint64_t since = t.since_ns != 0 ? t.since_ns : r->start_ns;

	return (struct xsp_flight_status){.bytes = t.bytes,
					  .definition_bytes = t.record_bytes,
					  .definitions = t.records,
					  .pruned = t.pruned,
					  .dropped = t.dropped,
					  .seconds = (double)(xsp_now_ns() - since) * 1e-9,
					  .snapshots = r->flight->snapshots};
}
