/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "catalog/wait_reasons.h"
#include "export/chrome/json.h"
#include "export/chrome/parts.h"
#include "model/rows/states.h"

/* The colours are chrome://tracing's; other viewers use their own. The caller writes the rest of
 * `args` and closes both objects. */
static void open_state(struct xsp_export *x, const struct xsp_thread_row *row, const char *name,
		       const char *color, uint64_t start_ns, uint64_t end_ns)
{
	xsp_out_printf(
		x->out,
		"{\"ph\":\"X\",\"cat\":\"thread_state\",\"name\":\"%s\",\"cname\":\"thread_state_%s\",\"pid\":%u,\"tid\":%u,\"ts\":",
		name, color, row->pid, row->tid);
	char *p = xsp_chrome_put_ts(x, xsp_out_reserve(x->out, 64), start_ns);
	p = XSP_PUT(p, ",\"dur\":");
	xsp_out_commit(x->out, xsp_chrome_put_until(x, p, start_ns, end_ns));
	xsp_out_text(x->out, ",\"args\":{");
}

static void close_state(struct xsp_export *x)
{
	xsp_out_text(x->out, "}},\n");
}

static uint32_t display_tid(const struct xsp_export *x, uint32_t tid)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(x->view.timeline, tid);

	return t != NULL && t->ns_tid != 0 ? t->ns_tid : tid;
}

/* Writes what is known of the wait: pairs that each begin with a comma. */
static void put_reason(struct xsp_export *x, const struct xsp_state_slice *s)
{
	const struct xsp_wait *w = s->wait;
	const char *call = w->syscall >= 0 ? xsp_wait_syscall((unsigned)w->syscall) : NULL;

	xsp_out_printf(x->out, "\"in\":\"%s\"", xsp_wait_class_name(w->why));
	if (call != NULL)
		xsp_out_printf(x->out, ",\"system call\":\"%s\"", call);
	else if (w->syscall >= 0)
		xsp_out_printf(x->out, ",\"system call\":%d", w->syscall);
	if (w->why == XSP_WAIT_LOCK)
		xsp_out_printf(x->out, ",\"address\":\"0x%llx\"", (unsigned long long)w->argument);
	if (w->why == XSP_WAIT_FILE || w->why == XSP_WAIT_PIPE || w->why == XSP_WAIT_NETWORK)
		xsp_out_printf(x->out, ",\"descriptor\":%llu",
			       (unsigned long long)(uint32_t)w->argument);
	if (w->why == XSP_WAIT_NETWORK && w->argument >> 32 != 0)
		xsp_out_printf(x->out, ",\"port\":%u,\"port of the peer\":%u",
			       (unsigned)(w->argument >> 32 & UINT16_MAX),
			       (unsigned)(w->argument >> 48));
	if (w->peer != 0) {
		xsp_out_text(x->out, ",\"for\":");
		xsp_out_json(x->out, xsp_timeline_name(x->view.timeline, w->peer - 1));
	}
	if (w->owner != 0)
		xsp_out_printf(x->out, ",\"held by\":%u", display_tid(x, w->owner));
	if (w->waker != 0)
		xsp_out_printf(x->out, ",\"woken by\":%u", display_tid(x, w->waker));
	if (w->flags & XSP_WAIT_INTERRUPT)
		xsp_out_text(x->out, ",\"woken by\":\"interrupt\"");
	if (w->flags & XSP_WAIT_BEFORE)
		xsp_out_text(x->out, ",\"begun before\":true");
	if (!s->finished)
		xsp_out_text(x->out, ",\"finished\":false");
}

/* Writes where it waited, under the keys that spans have; each pair begins with a comma. */
static int put_stacks(struct xsp_export *x, const struct xsp_wait *w)
{
	const struct xsp_section *python = xsp_details_find(w->details, XSP_SECTION_PYTHON, NULL);
	const struct xsp_section *native = xsp_details_find(w->details, XSP_SECTION_STACK, NULL);
	const struct xsp_span as = {.pid = w->pid, .tid = w->tid, .details = w->details};
	int rc = python != NULL ? xsp_chrome_python(x, &as, python) : 0;

	return rc == 0 && native != NULL ? xsp_chrome_stack(x, &as, native) : rc;
}

static void put_running(struct xsp_export *x, const struct xsp_state_slice *s)
{
	if (s->short_ns == 0)
		return;
	char *p = XSP_PUT(xsp_out_reserve(x->out, 64), "\"short waits (us)\":");
	xsp_out_commit(x->out, xsp_put_us(p, s->short_ns));
}

static int put_runnable(struct xsp_export *x, const struct xsp_state_slice *s)
{
	const struct xsp_wait *w = s->wait;
	const bool before = w->flags & XSP_WAIT_BEFORE && s->start_ns == w->left_ns;

	if (before)
		xsp_out_text(x->out, "\"begun before\":true");
	if (!s->finished)
		xsp_out_text(x->out, before ? ",\"finished\":false" : "\"finished\":false");
	if (w->why != XSP_WAIT_RUNNABLE || w->details == NULL)
		return 0;
	xsp_out_text(x->out, before || !s->finished ? "," : "");
	xsp_out_text(x->out, "\"in\":\"runnable\"");
	return put_stacks(x, w);
}

int xsp_chrome_state_arguments(struct xsp_export *x, const struct xsp_state_slice *s)
{
	int rc = 0;

	switch (s->state) {
	case XSP_STATE_RUNNING:
		put_running(x, s);
		break;
	case XSP_STATE_BLOCKED:
		put_reason(x, s);
		rc = put_stacks(x, s->wait);
		break;
	default:
		rc = put_runnable(x, s);
	}
	return rc;
}

static int put_state(void *ctx, struct xsp_thread_row *row, const struct xsp_state_slice *s)
{
	struct xsp_export *x = ctx;
	static const char *const colors[XSP_STATES] = {"running", "runnable", "runnable",
						       "sleeping"};
	const struct xsp_wait *w = s->wait;
	const bool blocked = s->state == XSP_STATE_BLOCKED;
	char name[XSP_STATE_TEXT];

	xsp_state_text(s, name);
	open_state(x, row, name, blocked && (w->flags & XSP_WAIT_IO) ? "iowait" : colors[s->state],
		   s->start_ns, s->end_ns);
	const int rc = xsp_chrome_state_arguments(x, s);
	close_state(x);
	return rc;
}

/* Draws an arrow from the state in which one thread runs to the state in which the other runs
 * again. */
static int put_arrow(struct xsp_export *x, const struct xsp_thread_row *row,
		     const struct xsp_wait *w)
{
	const struct xsp_timeline_thread *t = xsp_timeline_thread(x->view.timeline, w->waker);
	struct xsp_thread_row *from;

	if (w->waker == 0 || w->waker == w->tid || t == NULL || (w->flags & XSP_WAIT_OPEN))
		return 0;
	from = xsp_chrome_row(x, t->pid, t->tid, XSP_STATES_ROW);
	if (from == NULL)
		return -ENOMEM;
	const uint64_t id = ++xsp_chrome_of(x)->wakeups;
	xsp_chrome_put_flow(x, "wakeup", false, id, from->pid, from->tid, w->woken_ns);
	xsp_chrome_put_flow(x, "wakeup", true, id, row->pid, row->tid, w->back_ns);
	return 0;
}

int xsp_chrome_wait(struct xsp_export *x, const struct xsp_wait *w)
{
	struct xsp_thread_row *row = xsp_chrome_row(x, w->pid, w->tid, XSP_STATES_ROW);

	if (row == NULL)
		return -ENOMEM;
	int rc = xsp_states_wait(x->view.timeline, row, w, put_state, x);
	return rc > 0 ? put_arrow(x, row, w) : rc;
}

int xsp_chrome_last_states(struct xsp_export *x)
{
	return xsp_states_end(x->view.timeline, xsp_chrome_of(x)->rows, put_state, x);
}

static uint64_t switches_of(const struct xsp_thread_times *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < XSP_WAIT_CLASSES; i++)
		sum += t->waits[i];
	return sum;
}

void xsp_chrome_threads(struct xsp_export *x)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(x->view.timeline, &times);

	if (!xsp_timeline_has_waits(x->view.timeline))
		return;
	xsp_chrome_key(x->out, "xsptrace_threads");
	xsp_out_text(x->out, "[");
	for (size_t i = 0; i < count; i++) {
		const struct xsp_thread_times *t = &times[i];
		const struct xsp_thread_row *row =
			xsp_chrome_row(x, t->thread->pid, t->thread->tid, XSP_STATES_ROW);
		const struct xsp_run_stat pairs[] = {
			{"pid", row != NULL ? row->pid : t->thread->ns_pid},
			{"tid", row != NULL ? row->thread_tid : t->thread->ns_tid},
			{"time_ns", t->until_ns - t->since_ns},
			{"running_ns", t->running_ns},
			{"runnable_ns", t->runnable_ns},
			{"switches", switches_of(t)},
			/* last, since they may be unknown */
			{"minor_faults", t->minor_faults},
			{"major_faults", t->major_faults},
		};
		const size_t known_pairs =
			sizeof(pairs) / sizeof(pairs[0]) - (t->faults_known ? 0 : 2);
		const char *before = i ? ",\n{" : "{";
		xsp_chrome_text_pair(x->out, &before, "name", t->thread->comm);
		for (size_t k = 0; k < known_pairs; k++)
			xsp_chrome_number_pair(x->out, &before, pairs[k].key, pairs[k].value);
		xsp_out_printf(x->out, ",\"ended\":%s,\"blocked_ns\":{",
			       t->ended ? "true" : "false");
		before = "";
		for (unsigned why = 1; why < XSP_WAIT_CLASSES; why++)
			if (t->waits[why] > 0)
				xsp_chrome_number_pair(x->out, &before, xsp_wait_class_name(why),
						       t->blocked_ns[why]);
		xsp_out_text(x->out, "}}");
	}
	xsp_out_text(x->out, "],\n");
}
