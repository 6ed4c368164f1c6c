/* SPDX-License-Identifier: BSD-2-Clause */
/* ask.c - who asks for a snapshot, and why. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "record/flight/flight_private.h"

bool xsp_flight_snapshot(struct xsp_recorder *r, const char *reason, const char *why)
{
	struct xsp_flight *f = r->flight;

	if (f == NULL || !r->started || r->ended)
		return false;
	if (!f->asked) {
		snprintf(f->reason, sizeof(f->reason), "%s", reason);
		f->why[0] = f->about[0] = '\0';
		f->asked = true;
		f->asked_ns = xsp_now_ns();
	}
	if (why != NULL)
		xsp_join(f->why, sizeof(f->why), "; ", "%s", why);
	return true;
}

void xsp_flight_about(struct xsp_recorder *r, uint64_t start_ns, uint64_t end_ns, uint32_t tid)
{
	struct xsp_flight *f = r->flight;

	if (f->about[0] == '\0' && end_ns > start_ns)
		snprintf(f->about, sizeof(f->about), "%" PRIu64 " %" PRIu64 " %" PRIu32, start_ns,
			 end_ns, tid);
}

bool xsp_flight_is_busy(const struct xsp_recorder *r)
{
	return r->flight != NULL && (r->flight->asked || r->flight->writer != 0);
}

/* ---- processes ---- */

void xsp_flight_ended(struct xsp_recorder *r, pid_t pid, int signal)
{
	if (r->flight == NULL || signal == 0)
		return;
	r->flight->signalled = pid;
	r->flight->signal = signal;
}

/* Signals that a program sends itself, or is sent for what it does. */
static const char CRASHES[] = {SIGQUIT, SIGILL,	 SIGTRAP, SIGABRT, SIGBUS,
			       SIGFPE,	SIGSEGV, SIGSYS,  0};

void xsp_flight_fatal(struct xsp_recorder *r, const struct xsp_event_sample *e)
{
	struct xsp_flight *f = r->flight;
	char text[1024] = "", *function;

	if (f == NULL || f->faulted == (pid_t)e->head.tgid)
		return;
	f->faulted = (pid_t)e->head.tgid;
	f->place[0] = '\0';
	/* two lines: the file's name, the function */
	if (xsp_resolve_instruction(r->resolver, f->faulted, e->address, text, sizeof(text)) < 0 ||
	    (function = strchr(text, '\n')) == NULL)
		return;
	*function++ = '\0';
	snprintf(f->place, sizeof(f->place), "in %.200s (%.80s)", function, text);
}

static void name_signal(int signal, char text[16])
{
	const char *name = sigabbrev_np(signal);

	snprintf(text, 16, "sig%.8s", name != NULL ? name : "nal");
	for (char *p = text; *p != '\0'; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + ('a' - 'A')) : *p;
}

void xsp_flight_gone(struct xsp_recorder *r, pid_t pid)
{
	struct xsp_flight *f = r->flight;
	const bool killed = f != NULL && f->signalled == pid;
	char name[16], why[400];

	if (f == NULL)
		return;
	snprintf(f->end, sizeof(f->end), "end");
	if (!killed || f->faulted != pid)
		f->place[0] = '\0'; /* its end by exit() kills its other threads, too */
	if (!killed)
		return;
	name_signal(f->signal, name);
	snprintf(f->end, sizeof(f->end), "%s", name);
	f->signalled = 0;
	f->faulted = 0;
	/* the last process's is written when the recording is complete; others may be ended in order */
	if (r->process_count < 2 || strchr(CRASHES, f->signal) == NULL)
		return;
	snprintf(why, sizeof(why), "process %d was ended by signal %d %s", (int)pid, f->signal,
		 f->place);
	xsp_flight_snapshot(r, name, why);
}

void xsp_flight_exec(struct xsp_recorder *r, pid_t pid, const char *comm)
{
	char why[80];

	if (r->flight == NULL || r->launched != 0)
		return;
	snprintf(why, sizeof(why), "process %d became another program: %.40s", (int)pid, comm);
	xsp_flight_snapshot(r, "exec", why);
}

const char *xsp_flight_end_reason(const struct xsp_recorder *r)
{
	return r->process_count == 0 && r->flight != NULL && r->flight->end[0] != '\0'
		       ? r->flight->end
		       : NULL;
}
