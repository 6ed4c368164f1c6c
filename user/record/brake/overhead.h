/* SPDX-License-Identifier: BSD-2-Clause */
/* overhead.h - shared by the files that hold the target to its budget. Private to record/brake/. */
#ifndef XSP_RECORD_OVERHEAD_H
#define XSP_RECORD_OVERHEAD_H

#include "record/brake/brake.h"
#include "record/recorder_private.h"

/* A thread is judged when it has had the CPU for so long: the kernel brings a running thread's CPU time up
 * to date at its ticks only, 1 to 10 ms apart. */
#define JUDGED_CPU_NS 16000000ULL
/* One that runs little is judged after so long. */
#define JUDGED_NS 1000000000ULL
/* A window is so long at least; taking everything out and in again takes as long. */
#define WINDOW_NS 150000000ULL

enum phase { ON, PAUSING, OFF, RESUMING };

struct watched {
	uint32_t tid;
	pid_t pid; /* 0: of whichever recorded process */
	int schedstat; /* descriptor; -1: none */
	bool gone;
	bool judged; /* in this look */
	unsigned over; /* times in a row */
	uint64_t cpu_ns, queued_ns,
		read_ns; /* CPU time, time in line for it, and when it was read */
	uint64_t since_ns, probe_ns, own_cpu_ns; /* since it was judged last */
	uint64_t waits_ns,
		samples_ns; /* parts of probe_ns: --waits and --sample, if they are on by default */
	uint64_t times; /* that it was given a CPU */
	bool counted; /* ... since an earlier look */
	uint64_t met_ns, all_probe_ns, all_cpu_ns; /* since it was met */
};

struct xsp_overhead {
	double budget;
	struct xsp_costs fresh; /* since the last look */
	struct xsp_costs costs; /* of each thread since it was judged last */
	struct watched *threads;
	size_t count, room;
	size_t met_max;
	bool unmet; /* there were more */
	struct watched ended; /* the worst of them */
	struct xsp_u64map by_tid;
	struct xsp_attach_unseen *unseen;
	uint64_t unseen_ns; /* all of them */
	uint64_t look_ns, turn_ns; /* the last one */
	size_t let_go_count;
	bool releasing;
	enum phase phase;
	bool windows; /* it was off at least once */
	bool for_good; /* ... and stays so */
	bool prepaid;
	uint64_t recorded_ns; /* in windows that are over */
	uint64_t window_ns, pause_ns, off_until_ns; /* began; asked */
	uint64_t pause_took_ns, resume_took_ns;
	double window_share; /* of the CPU time of the worst thread */
	double slowdown; /* the last look's worst */
};

static inline uint64_t xsp_passed(uint64_t now, uint64_t since)
{
	return now > since ? now - since : 0;
}

/* ---- watched.c: the threads and their figures ---- */

/* What the probes' time is held against. */
uint64_t xsp_with_spare(uint64_t cpu_ns, uint64_t wall_ns);
uint64_t xsp_watched_cpu_ns(const struct watched *w); /* the same, since it was met */
double xsp_watched_slowdown(const struct watched *w);
void xsp_watched_free(struct xsp_overhead *o);
/* The worst of those that have ended is kept, so that many short threads take no memory. */
void xsp_watched_drop_ended(struct xsp_overhead *o);
/* Also where nothing was hit: how long the threads have worked without us counts for us. */
void xsp_watched_read_quiet(struct xsp_recorder *r, uint64_t now);
/* What has come since the last look is added up by thread. */
void xsp_watched_add_figures(struct xsp_recorder *r, uint64_t now);
/* Those that were judged begin anew. */
void xsp_watched_forget_judged(struct xsp_overhead *o, uint64_t now);
/* After a change nothing that was before it counts. */
void xsp_watched_begin_anew(struct xsp_recorder *r, uint64_t now);

/* ---- changes.c: what is decided is done; each 0 or the writer's negative errno ---- */

/* Beyond tenfold nothing is known but that: the CPU time without probes is then the error of two figures. */
#define DISPLAY_MAX 10.0
#define SLOWDOWN_SIZE 32
const char *xsp_format_slowdown(char text[SLOWDOWN_SIZE], double slowdown);
/* The probes of the plan are taken out for good. */
int xsp_brake_release(struct xsp_recorder *r, const struct xsp_brake_plan *plan);
/* The window at hand ended then. */
int xsp_brake_put_window(struct xsp_recorder *r, uint64_t end_ns);
int xsp_brake_pause(struct xsp_recorder *r, const struct xsp_brake_plan *plan);
/* Everything is taken out, for good. */
int xsp_brake_detach_all(struct xsp_recorder *r);
/* ... as `what` cannot be done, for the reason `why`, which it says. */
int xsp_brake_give_up(struct xsp_recorder *r, const char *what, const char *why);
/* Between two windows: how long, so that what the sites cost on their way in and out is in it. */
int xsp_brake_begin_off(struct xsp_recorder *r, const struct xsp_attach_change *change);
/* Everything is out since then, as we did not hold the brake. It goes on as after any window. */
int xsp_brake_was_abandoned(struct xsp_recorder *r, uint64_t since_ns, uint64_t now);
int xsp_brake_begin_window(struct xsp_recorder *r, const struct xsp_attach_change *change);

#endif
