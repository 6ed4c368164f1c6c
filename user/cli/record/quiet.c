/* SPDX-License-Identifier: BSD-2-Clause */
/* quiet.c - says when the target does nothing: a launcher's children may hold the work. */
#include <stdio.h>
#include <stdlib.h>

#include "base/rows/u64map.h"
#include "base/units.h"
#include "cli/record/private.h"
#include "procfs/procfs.h"

#define QUIET_AFTER 3.0 /* seconds */
#define IDLE 0.01 /* a CPU's share */
#define LAUNCHER 10 /* children that use so many times the target's CPU time hold the work */

static uint64_t cpu_ns(pid_t pid)
{
	uint64_t ns;

	return xsp_process_cpu_ns(pid, &ns) ? ns : 0;
}

static struct xsp_target_cpu look(const struct recording *r)
{
	struct xsp_target_cpu c = {0};
	struct xsp_u64map seen = {0}; /* recorded, or counted for another one of the recorded */

	for (size_t i = 0; i < r->o.pid_count; i++)
		xsp_u64map_set(&seen, (uint64_t)r->o.pids[i], 1);
	for (size_t i = 0; i < r->o.pid_count; i++) {
		struct xsp_descendant *found;
		size_t count;
		c.own_ns += cpu_ns(r->o.pids[i]);
		if (xsp_broker_descendants(r->broker, r->o.pids[i], &found, &count) < 0)
			continue;
		for (size_t k = 0; k < count; k++)
			if (xsp_u64map_get(&seen, (uint64_t)found[k].pid) == NULL &&
			    xsp_u64map_set(&seen, (uint64_t)found[k].pid, 1) == 0) {
				c.children_ns += cpu_ns(found[k].pid);
				c.children++;
			}
		free(found);
	}
	xsp_u64map_free(&seen);
	return c;
}

/* Says it at once where the children have done nearly all the work so far. */
void xsp_record_look_at_children(struct recording *r)
{
	char text[256], of[64] = "the target";

	r->cpu = look(r);
	if (r->o.follow || r->cpu.children == 0)
		return;
	const char *one = r->cpu.children == 1 ? "" : "ren";
	if (r->o.pid_count == 1)
		snprintf(of, sizeof(of), "process %d", (int)r->o.pids[0]);
	if (r->cpu.children_ns > LAUNCHER * r->cpu.own_ns)
		snprintf(
			text, sizeof(text),
			"%s has used %.0f %% of its family's CPU time: its %zu child%s hold%s the work, and -f records them too",
			of,
			100.0 * (double)r->cpu.own_ns /
				(double)(r->cpu.own_ns + r->cpu.children_ns),
			r->cpu.children, one, r->cpu.children == 1 ? "s" : "");
	else
		snprintf(text, sizeof(text),
			 "%zu child%s of %s %s not recorded: -f records them too", r->cpu.children,
			 one, of, r->cpu.children == 1 ? "is" : "are");
	xsp_record_note(r, text);
}

void xsp_record_look_if_quiet(struct recording *r)
{
	char text[320], own[XSP_UNITS_SIZE], of[XSP_UNITS_SIZE];

	if (r->looked || r->launch != NULL || xsp_recorder_seconds(r->recorder) < QUIET_AFTER)
		return;
	r->looked = true;
	const struct xsp_target_cpu now = look(r), *before = &r->cpu;
	const uint64_t own_ns = now.own_ns - before->own_ns;
	const uint64_t children_ns =
		now.children_ns > before->children_ns ? now.children_ns - before->children_ns : 0;
	if (now.own_ns < before->own_ns || (double)own_ns > IDLE * QUIET_AFTER * 1e9)
		return;
	xsp_format_ns(own, own_ns);
	if (!r->o.follow && children_ns > LAUNCHER * own_ns && now.children > 0)
		snprintf(
			text, sizeof(text),
			"in %.0f s the target has run for %s, and its %zu child%s for %s: Ctrl-C, and -f records those too",
			QUIET_AFTER, own, now.children, now.children == 1 ? "" : "ren",
			xsp_format_ns(of, children_ns));
	else if (!r->o.follow)
		snprintf(
			text, sizeof(text),
			"in %.0f s the target has run for %s: it waits, and xsptrace dump -p %d says for what",
			QUIET_AFTER, own, (int)r->o.pids[0]);
	else
		return;
	xsp_record_note(r, text);
}
