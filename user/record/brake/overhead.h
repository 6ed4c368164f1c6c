/* SPDX-License-Identifier: BSD-2-Clause */
/* overhead.h - shared by the files that keep the target within its budget. Private to record/brake/. */
#ifndef XSP_RECORD_OVERHEAD_H
#define XSP_RECORD_OVERHEAD_H

#include "record/brake/brake.h"
#include "record/recorder_private.h"

/* Over less time on a CPU a slowdown is not shown: the kernel updates a running thread's CPU time only at its ticks, 1
 * to 10 ms apart. */
#define SHOWN_CPU_NS 16000000ULL
/* A window lasts at least so long; a pause's changes take as long. */
#define WINDOW_NS 150000000ULL

enum phase { ON, PAUSING, OFF, RESUMING };

/* A thread; or all threads of a process, or of all processes, which are judged as one. */
struct watched {
	uint32_t tid; /* or XSP_BRAKE_WHOLE | pid; XSP_BRAKE_WHOLE: all processes */
	unsigned processors; /* that it can be idle on at once */
	pid_t pid; /* 0: any recorded process's */
	int schedstat; /* descriptor; -1: none */
	bool gone;
	struct xsp_brake_debt debt;
	uint64_t cpu_ns, queued_ns,
		read_ns; /* CPU time, time in line for it, and when we read them */
	/* the interval: since it owed nothing, or since the last change. begun_ns: less its time in line: since_ns */
	uint64_t begun_ns, since_ns, probe_ns, own_cpu_ns;
	uint64_t latest_ns; /* time of the latest hit by then: events may come late */
	uint64_t waits_ns,
		samples_ns; /* parts of probe_ns: --waits and --sample, if they are on by default */
	uint64_t times; /* how often it got a CPU */
	bool counted; /* since an earlier look */
	uint64_t met_ns, all_probe_ns, all_cpu_ns; /* since we met it */
};

struct xsp_overhead {
	double budget;
	struct xsp_costs fresh; /* since the last look */
	struct xsp_costs costs; /* of each watched one in its interval */
	XSP_TALLY(struct watched) threads; /* by tid */
	size_t next;
	size_t met_max;
	bool unmet; /* more threads exist */
	struct watched ended; /* the worst of the ended ones */
	struct xsp_attach_unseen *unseen;
	uint64_t unseen_ns; /* all of them */
	uint64_t processes_cpu_ns;
	unsigned processors;
	uint64_t look_ns, turn_ns, quiet_ns; /* the last one */
	uint64_t
		abandoned_ns; /* the last time that the broker took all out unasked, which was dealt with; 0: never */
	uint64_t look_cost_ns, latest_ns; /* of all events until then */
	double unpaid_ns; /* of those that are over their budget now */
	unsigned char *met; /* enum by probe */
	size_t met_room;
	size_t let_go_count;
	size_t left_out; /* of those, functions that were never attached to (look.c) */
	bool releasing;
	bool pays; /* everything is out until the debts are paid */
	uint32_t *leaving; /* is released meanwhile */
	size_t leaving_count;
	enum phase phase;
	bool windows; /* it paused at least once */
	bool for_good; /* paused for good */
	struct xsp_schedule schedule;
	uint64_t names; /* that have come: --sample-rate */
	uint64_t windows_ended; /* of those */
	uint64_t window_until_ns,
		next_window_ns; /* the end of the present one; when the next one begins */
	bool suspended; /* between its windows: waits and samples are out, too */
	bool only_rest; /* ... of which the probes were out already */
	uint64_t prepaid_ns; /* the length of a window that is paid in advance; 0: none was yet */
	/* windows.c */
	struct xsp_calls calls;
	bool whole; /* hot functions of providers are released instead of shorter windows */
	uint64_t judged_ns; /* what its share is of */
	uint64_t least_ns; /* the present window lasts at least until then */
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

/* So many threads for each processor are a crowd: each waits long for its turn. */
static inline bool xsp_is_crowd(const struct xsp_overhead *o, size_t threads)
{
	return threads > 4 * (size_t)o->processors;
}

/* Are there windows? Of the brake, or by a schedule. */
static inline bool xsp_has_windows(const struct xsp_overhead *o)
{
	return o->windows || xsp_is_scheduled(&o->schedule);
}

/* ---- watched.c: the threads and their figures ---- */

/* CPU time that the probes' time is compared with. */
uint64_t xsp_with_spare(const struct watched *w, uint64_t cpu_ns, uint64_t wall_ns);
uint64_t xsp_watched_cpu_ns(const struct watched *w); /* the same, since we met it */
double xsp_watched_slowdown(const struct watched *w);
void xsp_watched_free(struct xsp_overhead *o);
/* Keeps the worst of the ended ones, so that many short threads take no memory. */
void xsp_watched_drop_ended(struct xsp_overhead *o);
/* Reads threads without hits, too: the time they worked without us counts for us. */
void xsp_watched_read_quiet(struct xsp_recorder *r, uint64_t now);
/* Adds up, by thread, what has come since the last look. */
void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now);
/* "thread 12", "process 34", "the processes" */
#define WATCHED_NAME_SIZE 24
const char *xsp_watched_name(char text[WATCHED_NAME_SIZE], uint32_t tid);
/* Are more threads hit than the processors can soon run? */
bool xsp_watched_is_crowded(const struct xsp_overhead *o);
/* Does anybody owe anything? Reads what is needed for it. */
bool xsp_watched_owes(struct xsp_recorder *r, uint64_t now);
/* May this probe be released alone? */
bool xsp_watched_may_go(void *recorder, uint32_t probe);
/* By probe. NULL: no memory. */
enum met { UNMET, MET, RELEASED };
unsigned char *xsp_watched_met(struct xsp_overhead *o, uint32_t probe);
/* A new interval for those that owe nothing, or for all. */
void xsp_watched_begin(struct xsp_overhead *o, bool all, uint64_t now);
/* After a change, earlier figures do not count. */
void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now);

/* ---- windows.c: how long windows last ---- */

uint64_t xsp_window_length_ns(const struct xsp_overhead *o);
void xsp_window_begins(struct xsp_overhead *o, uint64_t now);
/* At a look: does the window end? The plan then has the share of all of it. */
bool xsp_window_is_over(struct xsp_recorder *r, const struct xsp_brake_plan *plan, uint64_t now);
/* May a provider's function be released alone, so that longer calls are seen whole? */
bool xsp_window_may_release(const struct xsp_recorder *r, uint32_t probe);

/* ---- changes.c: acts; each 0 or the writer's negative errno ---- */

/* Beyond tenfold we only know that: the CPU time without probes is then an error of two figures. */
#define DISPLAY_MAX 10.0
#define SLOWDOWN_SIZE 32
const char *xsp_format_slowdown(char text[SLOWDOWN_SIZE], double slowdown);
/* Releases the plan's probes. */
int xsp_brake_release(struct xsp_recorder *r, struct xsp_brake_plan *plan);
/* Those that waited until everything is out. */
int xsp_brake_release_leaving(struct xsp_recorder *r);
/* Ends the present window at that time. */
int xsp_brake_put_window(struct xsp_recorder *r, uint64_t end_ns);
int xsp_brake_pause(struct xsp_recorder *r, const struct xsp_brake_plan *plan);
/* ... by the schedule. */
int xsp_brake_suspend(struct xsp_recorder *r);
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
