/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - how much memory the recorded processes have, ten times a second, from /proc. The kernel counts that
 * anyway, so a look costs the process nothing (15 us of ours; smaps_rollup would walk its page tables).
 */
#include "record/recorder_private.h"
#include "base/clock.h"
#include "procfs/procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERIOD_NS 100000000U
/* Very many processes get fewer looks each, so that the rings need not wait. */
#define LOOKS_A_TURN 32

static uint64_t bytes_of(const char *status, const char *key)
{
	const char *value = xsp_procfs_field(status, key);

	return value != NULL ? strtoull(value, NULL, 10) * 1024 : 0;
}

int xsp_recorder_read_status(const struct recorded_process *p, char text[XSP_STATUS_SIZE])
{
	const ssize_t n = p->status < 0 ? -1 : pread(p->status, text, XSP_STATUS_SIZE - 1, 0);

	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	return 0;
}

/* False: it has none any more, or cannot be read. */
static bool read_memory(const struct recorded_process *p, struct xsp_process_memory *m)
{
	char text[XSP_STATUS_SIZE];

	if (xsp_recorder_read_status(p, text) < 0)
		return false;
	*m = (struct xsp_process_memory){
		.resident = bytes_of(text, "VmRSS"),
		.anonymous = bytes_of(text, "RssAnon"),
		.file = bytes_of(text, "RssFile"),
		.shared = bytes_of(text, "RssShmem"),
		.swapped = bytes_of(text, "VmSwap"),
		.peak = bytes_of(text, "VmHWM"),
	};
	return m->resident > 0;
}

/* A page with a breakpoint is the process's own copy of the file's. It is anonymous memory that the program has not
 * asked for, and it goes with the probes: windows of --max-overhead would look as if the program freed memory. */
static void take_probes_out(const struct recorded_process *p, struct xsp_process_memory *m)
{
	const uint64_t bytes = p->probed_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t ours = bytes < m->anonymous ? bytes : m->anonymous;

	m->anonymous -= ours;
	m->file += ours;
}

static struct xsp_process_memory_event event_of(const struct recorded_process *p, uint64_t now)
{
	return (struct xsp_process_memory_event){
		.head = {.time_ns = now,
			 .tid = (uint32_t)p->pid,
			 .tgid = (uint32_t)p->pid,
			 .probe = UINT32_MAX,
			 .kind = XSP_EVENT_MEMORY,
			 .flags = XSP_EVENT_SECTIONS,
			 .size = sizeof(struct xsp_process_memory_event)},
		.section = {.type = XSP_SECTION_PROCESS_MEMORY,
			    .size = sizeof(struct xsp_section) + sizeof(p->memory)},
		.memory = p->memory,
	};
}

bool xsp_recorder_memory_event(const struct recorded_process *p, struct xsp_process_memory_event *e)
{
	*e = event_of(p, p->measured_ns);
	return p->measured_ns != 0;
}

static int measure(struct xsp_recorder *r, struct recorded_process *p, uint64_t now)
{
	struct xsp_process_memory_event e = event_of(p, now);

	if (xsp_overhead_is_changing(r))
		return 0;
	p->measured_ns = now;
	e.memory = (struct xsp_process_memory){0};
	/* an ended process has none: reported once, or sums with others would keep it for ever */
	if (!read_memory(p, &e.memory) && p->ended_ns == 0)
		return 0;
	if (xsp_overhead_is_on(r))
		take_probes_out(p, &e.memory);
	if (memcmp(&e.memory, &p->memory, sizeof(e.memory)) == 0)
		return 0;
	p->memory = e.memory;
	return xsp_recorder_put_event(r, &e.head);
}

int xsp_recorder_measure(struct xsp_recorder *r, bool now)
{
	const uint64_t time = xsp_now_ns();
	int rc = 0, looks = 0;

	for (size_t i = 0; i < r->process_count && rc == 0; i++) {
		struct recorded_process *p = &r->processes[(r->measured + i) % r->process_count];
		if (!now && time - p->measured_ns < PERIOD_NS)
			continue;
		if (!now && ++looks > LOOKS_A_TURN) {
			r->measured = (r->measured + i) % r->process_count;
			break;
		}
		rc = measure(r, p, time);
	}
	return rc;
}
