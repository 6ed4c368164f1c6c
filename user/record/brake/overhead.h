/* SPDX-License-Identifier: BSD-2-Clause */
/* overhead.h - shared by the files that keep the target within its budget. Private to record/brake/. */
#ifndef XSP_RECORD_OVERHEAD_H
#define XSP_RECORD_OVERHEAD_H

#include "record/brake/brake.h"
#include "record/recorder_private.h"

/* A thread is judged after so much time on a CPU: the kernel updates a running thread's CPU time only at its ticks, 1
 * to 10 ms apart. */
#define JUDGED_CPU_NS 16000000ULL
/* A thread that runs little is judged after so long. */
#define JUDGED_NS 1000000000ULL
/* A window lasts at least so long; a pause's changes take as long. */
#define WINDOW_NS 150000000ULL

enum phase { ON, PAUSING, OFF, RESUMING };

/* All threads of a process together are watched as one more thread, and so are all processes. */
#define WHOLE (1U << 31) /* above all ids of threads */

struct watched {
	uint32_t tid; /* or WHOLE | pid; WHOLE: all processes */
	unsigned processors; /* that it can run on at once */
	pid_t pid; /* 0: any recorded process's */
	int schedstat; /* descriptor; -1: none */
	bool gone;
	bool judged; /* in this look */
	unsigned over; /* times in a row */
	uint64_t cpu_ns, queued_ns,
		read_ns; /* CPU time, time in line for it, and when we read them */
	uint64_t begun_ns, since_ns, probe_ns, own_cpu_ns; /* since it was last judged */
	uint64_t latest_ns; /* time of the latest hit by then: events may come late */
	uint64_t waits_ns,
		samples_ns; /* parts of probe_ns: --waits and --sample, if they are on by default */
	uint64_t times; /* how often it got a CPU */
	bool counted; /* since an earlier look */
	uint64_t met_ns, all_probe_ns, all_cpu_ns; /* since we met it */
	double debt_ns; /* time in probes beyond the budget that it has not got back */
};

struct xsp_overhead {
	double budget;
	struct xsp_costs fresh; /* since the last look */
	struct xsp_costs costs; /* of each thread and process since it was last judged */
	struct watched *threads;
	size_t count, room;
	size_t met_max;
	bool unmet; /* more threads exist */
	struct watched ended; /* the worst of the ended ones */
	struct xsp_u64map by_tid;
	struct xsp_attach_unseen *unseen;
	uint64_t unseen_ns; /* all of them */
	uint64_t processes_cpu_ns, latest_ns;
	unsigned processors;
	uint64_t look_ns, turn_ns; /* the last one */
	uint64_t look_cost_ns; /* the cost of all events until then */
	struct xsp_brake_seen {
		bool hit, late, released; /* late: not hit before something was released */
	} * seen; /* by probe */
	size_t seen_room;
	size_t let_go_count;
	bool releasing;
	uint32_t *waiting; /* to be released once everything is out; NULL: none */
	size_t waiting_count;
	bool pays; /* everything stays out until the debts are paid */
	enum phase phase;
	bool windows; /* it paused at least once */
	bool for_good; /* paused for good */
	bool prepaid;
	uint64_t recorded_ns; /* in earlier windows */
	uint64_t window_ns, pause_ns, off_until_ns; /* its beginning; the requested one */
	uint64_t pause_took_ns, resume_took_ns;
	double window_share; /* of the CPU time of the worst thread */
	double slowdown; /* the last look's worst */
};

static inline uint64_t xsp_passed(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

/* ---- watched.c: the threads and their figures ---- */

/* CPU time that the probes' time is compared with. */
uint64_t xsp_with_spare(const struct watched *w, uint64_t cpu_ns, uint64_t wall_ns);
uint64_t xsp_watched_cpu_ns(const struct watched *w); /* the same, since we met it */
/* "thread 12", "process 34", "the processes" */
#define WATCHED_NAME_SIZE 24
const char *xsp_watched_name(char text[WATCHED_NAME_SIZE], uint32_t tid);
/* The largest debt that is not paid yet. Reads what is needed for it. */
double xsp_watched_debt(struct xsp_recorder *r, uint64_t now);
/* Are there more threads with hits than the processors can soon run? */
bool xsp_watched_is_crowded(const struct xsp_overhead *o);
double xsp_watched_slowdown(const struct watched *w);
void xsp_watched_free(struct xsp_overhead *o);
/* Keeps the worst of the ended ones, so that many short threads take no memory. */
void xsp_watched_drop_ended(struct xsp_overhead *o);
/* Reads threads without hits, too: the time they worked without us counts for us. */
void xsp_watched_read_quiet(struct xsp_recorder *r, uint64_t now);
/* Adds up, by thread, what has come since the last look. */
void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now);
/* May this probe be released alone? */
bool xsp_watched_may_go(void *recorder, uint32_t probe);
/* What is known of a probe; NULL: no memory. */
struct xsp_brake_seen *xsp_watched_seen(struct xsp_overhead *o, uint32_t probe);
/* Begins anew with the judged ones. */
void xsp_watched_forget_judged(struct xsp_overhead *o, uint64_t now);
/* After a change, earlier figures do not count. */
void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now);

/* ---- changes.c: acts; each 0 or the writer's negative errno ---- */

/* Beyond tenfold we only know that: the CPU time without probes is then an error of two figures. */
#define DISPLAY_MAX 10.0
#define SLOWDOWN_SIZE 32
const char *xsp_format_slowdown(char text[SLOWDOWN_SIZE], double slowdown);
/* Releases the plan's probes. owed_ns: how much of an earlier debt is not paid. */
int xsp_brake_release(struct xsp_recorder *r, struct xsp_brake_plan *plan, double owed_ns);
/* Those that waited for everything to be out. */
int xsp_brake_release_waiting(struct xsp_recorder *r);
/* Ends the present window at that time. */
int xsp_brake_put_window(struct xsp_recorder *r, uint64_t end_ns);
int xsp_brake_pause(struct xsp_recorder *r, const struct xsp_brake_plan *plan);
/* Ends all probes, for good. */
int xsp_brake_detach_all(struct xsp_recorder *r);
/* ... as `what` cannot be done, for the reason `why`, which it says. */
int xsp_brake_give_up(struct xsp_recorder *r, const char *what, const char *why);
/* A pause: so long that it also pays for the sites' removal and return. */
int xsp_brake_begin_off(struct xsp_recorder *r, const struct xsp_attach_change *change);
/* Everything has been off since then, as we did not hold the brake. Goes on as after any window. */
int xsp_brake_was_abandoned(struct xsp_recorder *r, uint64_t since_ns, uint64_t now);
int xsp_brake_begin_window(struct xsp_recorder *r, const struct xsp_attach_change *change);

#endif
