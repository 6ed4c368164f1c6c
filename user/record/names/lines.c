/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.c - tells the agent of a process how to read stacks of Python, and waits until it does. */
#include "record/recorder_private.h"

#include <poll.h>

#include "base/clock.h"
#include "record/rings/rings.h"
#include "xsptrace/ring.h"

#define WAIT_NS 1000000000ULL
#define NAP_MS 5

void xsp_operators_wait_until(struct xsp_recorder *r, const struct recorded_process *p,
			      uint32_t what)
{
	const uint64_t end_ns = xsp_now_ns() + WAIT_NS;

	while (!(xsp_agent_rings_active(r->agents, p->pid) & what) && xsp_now_ns() < end_ns &&
	       xsp_process_alive(p->process) &&
	       !(r->options.stopped != NULL && r->options.stopped(r->options.note_ctx)))
		poll(NULL, 0, NAP_MS);
}

bool xsp_operators_read_lines(const struct xsp_recorder *r)
{
	return r->pythons != NULL && (r->options.attach.details & XSP_DETAIL_PYTHON);
}

void xsp_operators_read_python(struct xsp_recorder *r, pid_t pid,
			       const struct xsp_python_spec *spec, uint64_t finalizing)
{
	const struct recorded_process *p = xsp_recorder_find(r, pid);
	const struct xsp_ring_python how = {
		.frames = r->options.attach.python_frames, .finalizing = finalizing, .spec = *spec};

	if (p == NULL || r->agents == NULL || !xsp_operators_read_lines(r) ||
	    !xsp_agent_rings_has(r->agents, pid))
		return;
	xsp_agent_rings_read_python(r->agents, pid, &how);
	xsp_operators_wait_until(r, p, XSP_RINGS_PYTHON);
}
