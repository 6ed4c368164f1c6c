/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/flight/triggers.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/array.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "record/flight/flight.h"
#include "timeline/steps.h"
#include "trigger/watch.h"

#define SHARE 0.25 /* of a processor, at most */
#define DEBT_NS 50e6 /* so much more, and it passes over what comes */
#define NAP_NS 50000000L /* between two looks of the thread */
#define SHOW_NS 200000000ULL /* what has come is shown to it */
#define FACTS_NS 250000000ULL
#define WAITS_NS 500000000ULL
#define FORGET_NS 1000000000ULL
#define LATE_NS 50000000ULL /* an event may come so much later */
#define HELD_MOST 4U /* a snapshot waits for a part of AGE until what it is to show is over, */
#define HELD_NS 7500000000ULL /* or, where there is no AGE, so long */
#define NICE 5

struct snapshot {
	char *path;
	char reason[16];
};

struct xsp_triggers {
	const struct xsp_options *o;
	struct xsp_recorder *recorder;
	struct xsp_supervised *supervised; /* NULL: none */
	struct xsp_watch *watch;
	pthread_mutex_t lock;
	/* with the lock: */
	bool fired;
	size_t first; /* the trigger */
	uint32_t those; /* bit n: trigger n, whose first reason is in `why` */
	size_t more; /* other reasons */
	struct xsp_moment when; /* the first one's */
	char why[400];

	/* the thread's */
	pthread_t thread;
	bool running;
	struct xsp_capture_reader *reader;
	struct xsp_timeline *timeline;
	uint64_t looked_ns, forgot_ns;
	double debt_ns;
	bool passes_over;
	_Atomic bool ends;
	_Atomic int error;
	_Atomic bool goes_on; /* what is too long already is not over */
	_Atomic uint64_t passed_ns; /* the time that it did not look at */
	_Atomic uint64_t shown_ns; /* all that came before is in the file */

	/* the recording's */
	uint64_t begun_ns, showed_ns, facts_ns, waits_ns;
	uint64_t due_ns; /* when a snapshot is to be asked for; 0: none is */
	uint64_t held_until_ns; /* at the latest */
	bool waits_go_on, gpu_rests; /* as goes_on */
	uint64_t last_ns; /* when one was */
	bool said_passing;
	pid_t failed;
	XSP_ARRAY(struct snapshot) snapshots;
};

static void on_fire(void *ctx, size_t trigger, struct xsp_moment when, const char *why)
{
	struct xsp_triggers *t = ctx;
	const char *text = t->o->triggers[trigger].text;

	pthread_mutex_lock(&t->lock);
	if (!t->fired) {
		t->fired = true;
		t->first = trigger;
		t->those = 0;
		t->more = 0;
		t->why[0] = '\0';
		t->when = when;
	}
	if (t->those >> trigger & 1 ||
	    strlen(t->why) + strlen(text) + strlen(why) + 8 > sizeof(t->why))
		t->more++;
	else
		xsp_join(t->why, sizeof(t->why), "; ", "%s: %s", text, why);
	t->those |= 1U << trigger;
	pthread_mutex_unlock(&t->lock);
}

/* ---- the thread ---- */

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static int nothing(void *ctx)
{
	(void)ctx;
	return 0;
}

static void begin_with(struct xsp_triggers *t, struct xsp_timeline *timeline)
{
	t->timeline = timeline;
	t->goes_on = false;
	if (t->o->part.step != NULL)
		xsp_timeline_mark_steps(timeline, t->o->part.step);
	xsp_watch_begin(t->watch, timeline);
	xsp_supervised_begin(t->supervised, timeline);
}

/* What was passed over has opened and closed spans: a new timeline knows of none. */
static int begin_anew(struct xsp_triggers *t)
{
	struct xsp_timeline *fresh;

	if (xsp_timeline_new_live(t->reader, &fresh, NULL) < 0)
		return -ENOMEM;
	xsp_timeline_free(t->timeline);
	begin_with(t, fresh);
	return 0;
}

static int look(struct xsp_triggers *t, uint64_t now)
{
	const uint64_t shown_ns = t->shown_ns; /* before what is read now */
	struct xsp_timeline_sink sinks[2] = {xsp_watch_sink(t->watch)};
	const size_t count = xsp_supervised_sink(t->supervised, &sinks[1]) ? 2 : 1;
	int rc = xsp_timeline_follow(t->timeline, sinks, count, NULL);

	if (rc == 0 && shown_ns > LATE_NS)
		t->goes_on = xsp_watch_look(t->watch, shown_ns - LATE_NS);
	if (rc == 0 && now - t->forgot_ns >= FORGET_NS) {
		rc = xsp_timeline_forget(t->timeline);
		t->forgot_ns = now;
	}
	return rc;
}

static int read_on(struct xsp_triggers *t)
{
	const uint64_t now = xsp_now_ns(), before = cpu_ns();
	const double passed = (double)(now - t->looked_ns);
	int rc = 0;

	if (t->passes_over && t->debt_ns <= 0) {
		rc = begin_anew(t);
		t->passes_over = false;
	}
	if (t->passes_over)
		xsp_supervised_passed(t->supervised, t->passed_ns += now - t->looked_ns);
	t->looked_ns = now;
	if (rc == 0)
		rc = t->passes_over ? xsp_capture_follow(t->reader, nothing, NULL, t, NULL)
				    : look(t, now);
	t->debt_ns += (double)(cpu_ns() - before) - SHARE * passed;
	if (t->debt_ns < -DEBT_NS) /* idle times do not add up */
		t->debt_ns = -DEBT_NS;
	t->passes_over = t->passes_over || t->debt_ns > DEBT_NS;
	return rc;
}

static void *watch(void *arg)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	struct xsp_triggers *t = arg;
	int rc = 0;

	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
	while (rc == 0 && !t->ends) {
		rc = read_on(t);
		nanosleep(&nap, NULL);
	}
	if (rc == 0 && !t->passes_over)
		rc = look(t, xsp_now_ns());
	t->error = rc;
	return NULL;
}

static int start_thread(struct xsp_triggers *t, struct xsp_error *err)
{
	const int fd = xsp_new_file_descriptor(xsp_recorder_file(t->recorder));
	sigset_t all, before;
	int rc = xsp_recorder_show(t->recorder);

	if (rc == 0)
		rc = xsp_capture_open_descriptor(fd, "the recording in memory", &t->reader, err);
	struct xsp_timeline *timeline = NULL;
	if (rc == 0)
		rc = xsp_timeline_new_live(t->reader, &timeline, err);
	if (rc < 0)
		return rc;
	begin_with(t, timeline);
	t->looked_ns = t->forgot_ns = xsp_now_ns();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&t->thread, NULL, watch, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->running = rc == 0;
	return rc == 0 ? 0
		       : xsp_error_set(err, -rc, XSP_STATUS_FAILED,
				       "no thread for the triggers: %s", strerror(rc));
}

int xsp_triggers_start(const struct xsp_options *o, struct xsp_recorder *r,
		       struct xsp_supervised *supervised, struct xsp_triggers **out,
		       struct xsp_error *err)
{
	*out = NULL;
	if (o->trigger_count == 0 && supervised == NULL)
		return 0;
	struct xsp_triggers *t = *out = calloc(1, sizeof(*t));
	if (t == NULL)
		return xsp_out_of_memory(err);
	t->o = o;
	t->recorder = r;
	t->supervised = supervised;
	t->begun_ns = xsp_now_ns();
	pthread_mutex_init(&t->lock, NULL);
	if (xsp_watch_new(o->triggers, o->trigger_count, on_fire, t, &t->watch) < 0)
		return xsp_out_of_memory(err);
	return supervised != NULL || xsp_watch_wants_timeline(t->watch) ? start_thread(t, err) : 0;
}

static void stop_thread(struct xsp_triggers *t)
{
	if (!t->running)
		return;
	t->ends = true;
	pthread_join(t->thread, NULL);
	t->running = false;
}

void xsp_triggers_free(struct xsp_triggers *t)
{
	if (t == NULL)
		return;
	stop_thread(t);
	xsp_watch_free(t->watch);
	xsp_timeline_free(t->timeline);
	xsp_capture_close(t->reader);
	for (size_t i = 0; i < t->snapshots.count; i++)
		free(t->snapshots.rows[i].path);
	XSP_FREE(&t->snapshots);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- in the recording's turns ---- */

static void look_at_wait(void *ctx, const struct xsp_event_wait *wait)
{
	struct xsp_triggers *t = ctx;

	t->waits_go_on |= xsp_watch_wait(t->watch, wait);
}

static void look_at_facts(struct xsp_triggers *t, uint64_t now)
{
	const struct xsp_recorder_facts f = xsp_recorder_facts(t->recorder);
	struct xsp_recorder_status s;

	t->facts_ns = now;
	xsp_recorder_status(t->recorder, &s);
	t->gpu_rests = xsp_watch_facts(t->watch, &(struct xsp_watch_facts){.now_ns = now,
									   .resident = f.resident,
									   .lost = s.lost,
									   .gpu_ns = f.gpu_ns});
	if (f.failed != t->failed)
		xsp_watch_exit(t->watch, (uint32_t)f.failed, f.failed_status);
	t->failed = f.failed;
}

static int look_at_all(struct xsp_triggers *t, uint64_t turn_ns, uint64_t now)
{
	int rc = 0;

	if (now - t->facts_ns >= FACTS_NS)
		look_at_facts(t, now);
	if (xsp_watch_wants_waits(t->watch) && now - t->waits_ns >= WAITS_NS) {
		t->waits_ns = now;
		t->waits_go_on = false;
		rc = xsp_recorder_open_waits(t->recorder, look_at_wait, t);
	}
	if (rc < 0 || !t->running || now - t->showed_ns < SHOW_NS)
		return rc;
	t->showed_ns = now;
	rc = xsp_recorder_show(t->recorder);
	t->shown_ns = turn_ns;
	return rc;
}

static void say_passing(struct xsp_triggers *t)
{
	if (t->said_passing || t->passed_ns == 0 || t->o->quiet)
		return;
	t->said_passing = true;
	xsp_say("the program makes more events than triggers can look at with a quarter of a processor: they look at a part of the time (-e, --min-duration: fewer events)");
}

/* The word of the first one that fired; NULL: none did. */
static const char *take(struct xsp_triggers *t, char why[sizeof(t->why) + 32])
{
	const char *word = NULL;

	pthread_mutex_lock(&t->lock);
	if (t->fired) {
		word = xsp_trigger_word(&t->o->triggers[t->first]);
		snprintf(why, sizeof(t->why) + 32, "%s", t->why);
		if (t->more > 0)
			xsp_join(why, sizeof(t->why) + 32, "; ", "and %zu more", t->more);
	}
	t->fired = false;
	pthread_mutex_unlock(&t->lock);
	return word;
}

static bool has_fired(struct xsp_triggers *t)
{
	pthread_mutex_lock(&t->lock);
	const bool fired = t->fired;
	pthread_mutex_unlock(&t->lock);
	return fired;
}

/* What fires again while the last snapshot still has most of what there is waits until that is over. */
static uint64_t due(const struct xsp_triggers *t, uint64_t now)
{
	const uint64_t next = t->last_ns != 0 ? t->last_ns + t->o->flight_age_ns : 0;

	return now + t->o->trigger_delay_ns > next ? now + t->o->trigger_delay_ns : next;
}

/* Is what has fired not over yet? */
static bool goes_on(struct xsp_triggers *t)
{
	bool of[XSP_TRIGGER_KINDS] = {[XSP_TRIGGER_SPAN] = t->goes_on,
				      [XSP_TRIGGER_STEP] = t->goes_on,
				      [XSP_TRIGGER_WAIT] = t->waits_go_on,
				      [XSP_TRIGGER_GPU_IDLE] = t->gpu_rests};
	bool any = false;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->o->trigger_count; i++)
		any |= t->those >> i & 1 && of[t->o->triggers[i].kind];
	pthread_mutex_unlock(&t->lock);
	return any;
}

/* What has not ended has neither a duration nor, if it waits, a place. What hangs is written at last. */
static void hold(struct xsp_triggers *t, uint64_t now)
{
	const uint64_t later = now + t->o->trigger_delay_ns;

	if (now >= t->held_until_ns || !goes_on(t))
		return;
	t->due_ns = t->due_ns > later ? t->due_ns : later;
	t->when.end_ns = now;
}

static void ask(struct xsp_triggers *t, uint64_t now)
{
	char why[sizeof(t->why) + 32];
	const char *word = take(t, why);

	t->due_ns = 0;
	t->last_ns = now;
	if (word != NULL && xsp_flight_snapshot(t->recorder, word, why))
		xsp_flight_about(t->recorder, t->when.start_ns, t->when.end_ns, t->when.tid);
}

int xsp_triggers_turn(struct xsp_triggers *t, uint64_t turn_ns, struct xsp_error *err)
{
	const uint64_t now = xsp_now_ns();
	char after[XSP_UNITS_SIZE];

	if (t == NULL)
		return 0;
	int rc = look_at_all(t, turn_ns, now);
	if (rc == 0 && t->error < 0)
		rc = t->error;
	if (rc < 0)
		return xsp_error_set(err, rc, XSP_STATUS_FAILED,
				     "triggers cannot be evaluated any longer: %s", strerror(-rc));
	say_passing(t);
	if (t->due_ns == 0 && has_fired(t)) {
		t->due_ns = due(t, now);
		t->held_until_ns = now + (t->o->flight_age_ns != 0 ? t->o->flight_age_ns / HELD_MOST
								   : HELD_NS);
	}
	if (t->due_ns != 0)
		hold(t, now);
	if (t->due_ns != 0 && now >= t->due_ns && !xsp_flight_is_busy(t->recorder))
		ask(t, now);
	const uint64_t since = t->last_ns != 0 ? t->last_ns : t->begun_ns;
	if (t->o->trigger_timeout_ns == 0 || t->due_ns != 0 ||
	    now - since < t->o->trigger_timeout_ns)
		return 0;
	if (!t->o->quiet)
		xsp_say("no trigger has fired for %s (--trigger-timeout)",
			xsp_format_ns(after, t->o->trigger_timeout_ns));
	return 1;
}

const char *xsp_triggers_end(struct xsp_triggers *t)
{
	char why[sizeof(t->why) + 32], passed[XSP_UNITS_SIZE];

	if (t == NULL)
		return NULL;
	xsp_recorder_show(t->recorder);
	stop_thread(t);
	look_at_facts(t, xsp_now_ns());
	if (t->passed_ns > 0 && !t->o->quiet)
		xsp_say("triggers have not looked at %s of the recording: there were too many events",
			xsp_format_ns(passed, t->passed_ns));
	const char *word = take(t, why);
	if (word != NULL && xsp_flight_snapshot(t->recorder, word, why))
		xsp_flight_about(t->recorder, t->when.start_ns, t->when.end_ns, t->when.tid);
	return word;
}

/* ---- snapshots ---- */

static bool is_ours(const struct xsp_triggers *t, const char *reason)
{
	for (size_t i = 0; i < t->o->trigger_count; i++)
		if (strcmp(xsp_trigger_word(&t->o->triggers[i]), reason) == 0)
			return true;
	return false;
}

static size_t of_reason(const struct xsp_triggers *t, const char *reason)
{
	size_t n = 0;

	for (size_t i = 0; i < t->snapshots.count; i++)
		n += strcmp(t->snapshots.rows[i].reason, reason) == 0;
	return n;
}

void xsp_triggers_written(struct xsp_triggers *t, const char *path, const char *reason)
{
	struct snapshot s = {.path = NULL};
	size_t most = 0, goes = 0;

	if (t == NULL || !is_ours(t, reason) || (s.path = strdup(path)) == NULL)
		return;
	snprintf(s.reason, sizeof(s.reason), "%s", reason);
	if (XSP_PUT(&t->snapshots, s) < 0 || t->snapshots.count <= t->o->max_snapshots)
		return;
	/* the oldest of the reason that has most of them */
	for (size_t i = t->snapshots.count; i > 0; i--) {
		const size_t n = of_reason(t, t->snapshots.rows[i - 1].reason);
		if (n >= most) {
			most = n;
			goes = i - 1;
		}
	}
	struct snapshot *gone = &t->snapshots.rows[goes];
	if (unlink(gone->path) == 0 && !t->o->quiet)
		xsp_say("%s is removed: there are more than %llu snapshots by triggers (--max-snapshots)",
			gone->path, (unsigned long long)t->o->max_snapshots);
	free(gone->path);
	memmove(gone, gone + 1, (--t->snapshots.count - goes) * sizeof(*gone));
}

void xsp_triggers_describe(const struct xsp_options *o, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < o->trigger_count; i++)
		xsp_join(text, size, ", ", "%s", o->triggers[i].text);
}
