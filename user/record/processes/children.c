/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * children.c - --follow: new children get links of their own. A link is for one process, so that others who map the
 * library do not pay for it.
 */
#include "record/recorder_private.h"
#include "base/clock.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>

/* A turn attaches to new children for so long; the rings must not wait. */
#define ATTACH_NS 20000000ULL

/* Resumes processes that the kernel side stopped for us, at their birth or exec. The launched one waits for its
 * launcher. */
static void resume_stopped(struct xsp_recorder *r)
{
	pid_t pids[XSP_STOPPED_ROWS];
	const long n = xsp_broker_stopped(r->broker, pids, XSP_STOPPED_ROWS);

	for (long i = 0; i < n; i++) {
		struct recorded_process *p = xsp_recorder_find(r, pids[i]);
		struct xsp_error why = {0};
		if (pids[i] == r->launched)
			continue;
		const int rc = p != NULL ? xsp_recorder_scan(r, p, &why)
					 : xsp_recorder_add_child(r, pids[i], -1, &why);
		if (rc == 0 && p != NULL) {
			xsp_children_exec_attached(r, p);
			p->exec_ns = 0;
		}
		if (rc < 0 && rc != -ESRCH && rc != -EINTR) /* it has ended; or we are to end */
			xsp_recorder_note(r, "child %d is not followed: %s", (int)pids[i],
					  why.text);
		xsp_broker_continue(r->broker, pids[i]);
	}
}

/* They were stopped before the first instruction of their moved code. */
static void note_moved(struct xsp_recorder *r)
{
	struct xsp_moved_code rows[XSP_MOVED_ROWS];
	const bool any = r->launched != 0 || r->options.attach.stop;
	const long n = any ? xsp_broker_moved(r->broker, rows, XSP_MOVED_ROWS) : 0;

	for (long i = 0; i < n; i++) {
		const struct xsp_probe *p = xsp_recorder_probe(r, rows[i].probe);
		char name[128];
		if (rows[i].functions == 0)
			continue;
		xsp_printable(name, sizeof(name), p != NULL ? p->name : "?", 100);
		xsp_recorder_count_left_out(r, rows[i].functions, name, XSP_CHANGED_CODE);
		xsp_recorder_note(
			r,
			"process %d has moved its code to anonymous memory, as for large pages, where the kernel takes no probes: %u function%s, such as %s, %s not recorded from here on (%u breakpoint%s in the copy %s taken out)",
			rows[i].pid, rows[i].functions, rows[i].functions == 1 ? "" : "s", name,
			rows[i].functions == 1 ? "is" : "are", rows[i].mended,
			rows[i].mended == 1 ? "" : "s", rows[i].mended == 1 ? "was" : "were");
	}
}

static void attach_to(struct xsp_recorder *r, const struct xsp_birth *b)
{
	struct xsp_error why = {0};
	int rc = xsp_recorder_find(r, b->pid) != NULL
			 ? 0
			 : xsp_recorder_add_child(r, b->pid, b->parent, &why);

	xsp_children_attached(r, b, rc, why.text);
}

void xsp_children_attach(struct xsp_recorder *r)
{
	const uint64_t start = xsp_now_ns();
	struct xsp_birth b;

	while (xsp_children_next(r, &b)) {
		attach_to(r, &b);
		if (xsp_now_ns() - start >= ATTACH_NS)
			return;
	}
	resume_stopped(r);
	xsp_recorder_say_file_notes(r);
	note_moved(r);
}

/* ---- existing children ---- */

static int adopt(struct xsp_recorder *r, pid_t pid)
{
	size_t fresh;

	/* until a round finds no child born in the round before */
	do {
		struct xsp_descendant *found;
		size_t count;
		int rc = xsp_broker_descendants(r->broker, pid, &found, &count);
		if (rc < 0)
			return rc;
		fresh = 0;
		for (size_t i = 0; i < count; i++) {
			struct xsp_error why = {0};
			if (xsp_recorder_find(r, found[i].pid) != NULL)
				continue;
			rc = xsp_recorder_add_child(r, found[i].pid, found[i].parent, &why);
			fresh += rc == 0;
			if (rc < 0 && rc != -ESRCH)
				xsp_recorder_note(r, "child %d is not followed: %s",
						  (int)found[i].pid, why.text);
		}
		free(found);
	} while (fresh > 0);
	return 0;
}

int xsp_recorder_add_process(struct xsp_recorder *r, pid_t pid, struct xsp_error *err)
{
	if (xsp_recorder_find(r, pid) != NULL)
		return xsp_recorder_scan_standing(r, pid, err);
	r->added++;
	int rc = xsp_recorder_add_child(r, pid, 0, err);
	if (rc == 0 && r->options.attach.follow)
		rc = adopt(r, pid);
	if (rc < 0 || r->added >= r->options.pid_count)
		xsp_recorder_say_file_notes(r);
	return rc;
}
