/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h - evaluates triggers while a recording goes on. What a timeline says and what the recorder says may come from
 * two threads. A lock lets one of them fire at a time; they share nothing else.
 */
#ifndef XSP_TRIGGER_WATCH_H
#define XSP_TRIGGER_WATCH_H

#include "timeline/timeline.h"
#include "trigger/expression.h"

#define XSP_TRIGGERS_MAX 31U

struct xsp_watch;
/* When it was that something was wrong. end_ns 0: no moment of its own. tid 0: no thread of its own. */
struct xsp_moment {
	uint64_t start_ns, end_ns;
	uint32_t tid;
};
/* The trigger's number, and why: a line. */
typedef void (*xsp_watch_fire_fn)(void *ctx, size_t trigger, struct xsp_moment when,
				  const char *why);

/* The triggers are borrowed. 0 or -ENOMEM. */
int xsp_watch_new(const struct xsp_trigger *triggers, size_t count, xsp_watch_fire_fn fire,
		  void *ctx, struct xsp_watch **out);
void xsp_watch_free(struct xsp_watch *w); /* NULL is allowed */

/* ---- the timeline's ---- */

bool xsp_watch_wants_timeline(const struct xsp_watch *w);
/* The timeline that follows, also another one. NULL: none. */
void xsp_watch_begin(struct xsp_watch *w, struct xsp_timeline *t);
struct xsp_timeline_sink xsp_watch_sink(struct xsp_watch *w);
/* Now and then: calls and steps that last too long already. now_ns: the timeline has come so far. True: there are some; what a
 * snapshot is to show is not over. */
bool xsp_watch_look(struct xsp_watch *w, uint64_t now_ns);

/* ---- the recorder's ---- */

struct xsp_watch_facts {
	uint64_t now_ns;
	uint64_t resident; /* bytes; 0: not known */
	uint64_t lost; /* events */
	uint64_t gpu_ns; /* the end of the last GPU activity; 0: there was none */
};
/* True: the GPU is idle for too long, and not busy again. */
bool xsp_watch_facts(struct xsp_watch *w, const struct xsp_watch_facts *f);
/* Is a thread's open wait of interest? */
bool xsp_watch_wants_waits(const struct xsp_watch *w);
/* True: it lasts too long already. */
bool xsp_watch_wait(struct xsp_watch *w, const struct xsp_event_wait *open);
void xsp_watch_exit(struct xsp_watch *w, uint32_t pid, unsigned status);

#endif
