/* SPDX-License-Identifier: BSD-2-Clause */
/* agent.c - what the agents in the recorded processes report about themselves (xsptrace/gpu.h). */
#include "base/clock.h"
#include "record/recorder_private.h"

#include <string.h>

#include "xsptrace/gpu.h"

/* At the end of a recording we wait so long for an agent that has never reported (it checks 10 times a second whether
 * we want it), and for one that works. */
#define SILENT_NS 400000000ULL
#define WORKING_NS 2500000000ULL

void xsp_recorder_agent_found(struct xsp_recorder *r, struct recorded_process *p)
{
	if (!p->agent)
		xsp_recorder_note(
			r,
			"process %d has the agent: GPU activity is collected as well (the first time this takes CUPTI some seconds)",
			(int)p->pid);
	p->agent = true;
}

static const char *failure_text(uint32_t failure)
{
	static const char *const texts[] = {
		[XSP_GPU_FAIL_NO_CUPTI] = "libcupti was not found",
		[XSP_GPU_FAIL_OLD_CUPTI] = "its libcupti is too old",
		[XSP_GPU_FAIL_CALL] = "a CUPTI call failed",
		[XSP_GPU_FAIL_HELD] = "another profiler holds CUPTI",
		[XSP_GPU_FAIL_TAKEN] = "another profiler came meanwhile, records may be missing",
		[XSP_GPU_FAIL_CLOCK] = "CUPTI cannot use our clock",
		[XSP_GPU_FAIL_MEMORY] = "no memory for CUPTI's buffers",
	};

	return failure < sizeof(texts) / sizeof(texts[0]) && texts[failure] ? texts[failure]
									    : "an error";
}

static void note_error(struct xsp_recorder *r, struct recorded_process *p,
		       const struct xsp_gpu_record *record)
{
	struct xsp_gpu_error e;
	size_t length = 0;

	xsp_gpu_record_read(record, &e, sizeof(e));
	if (p->agent_failure == e.failure)
		return;
	p->agent_failure = e.failure;
	if (e.text_at <= record->size && e.length <= record->size - e.text_at)
		length = e.length < 200 ? e.length : 200;
	char text[201];
	memcpy(text, (const char *)record + (length ? e.text_at : 0), length);
	text[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] == 127)
			text[i] = '?';
	xsp_recorder_note(r, "GPU activity of process %d%s: %s%s%s", (int)p->pid,
			  e.fatal ? " is not collected" : "", failure_text(e.failure),
			  length ? ": " : "", text);
}

static void note_activity(struct xsp_recorder *r, const struct xsp_gpu_record *record)
{
	struct {
		struct xsp_gpu_record head;
		uint64_t start_ns, end_ns;
	} any;

	xsp_gpu_record_read(record, &any, sizeof(any));
	if (any.end_ns <= r->gpu_ns || any.end_ns > xsp_now_ns() || any.start_ns > any.end_ns)
		return;
	/* what overlaps counts once; what comes late and lies before it does not count */
	r->gpu_busy_ns += any.end_ns - (any.start_ns > r->gpu_ns ? any.start_ns : r->gpu_ns);
	r->gpu_ns = any.end_ns;
}

void xsp_recorder_gpu_event(void *ctx, const struct xsp_event_gpu *e)
{
	struct xsp_recorder *r = ctx;
	struct recorded_process *p = xsp_recorder_find(r, (pid_t)e->head.tgid);
	const struct xsp_gpu_record *record;
	size_t at = 0, bytes = e->head.size - sizeof(*e);

	if (p == NULL)
		return;
	if (e->bytes < bytes)
		bytes = e->bytes;
	while ((record = xsp_gpu_record_next(e + 1, bytes, &at)) != NULL) {
		struct xsp_gpu_state s;
		if (record->type == XSP_GPU_ERROR)
			note_error(r, p, record);
		if (record->type >= XSP_GPU_KERNEL && record->type <= XSP_GPU_MEMSET)
			note_activity(r, record);
		if (record->type != XSP_GPU_STATE)
			continue;
		xsp_gpu_record_read(record, &s, sizeof(s));
		p->agent_state = s.state;
	}
}

static bool is_at_work(uint32_t state)
{
	return state == XSP_GPU_STARTING || state == XSP_GPU_ACTIVE;
}

bool xsp_recorder_agents_stopped(const struct xsp_recorder *r, uint64_t waited_ns)
{
	for (size_t i = 0; i < r->process_count; i++) {
		const struct recorded_process *p = &r->processes[i];
		if (!p->agent || !xsp_process_alive(p->process))
			continue;
		if (p->agent_state == 0 && waited_ns < SILENT_NS)
			return false;
		if (is_at_work(p->agent_state) && waited_ns < WORKING_NS)
			return false;
	}
	return true;
}
