/* SPDX-License-Identifier: BSD-2-Clause */
/* missing.c - what of the agents' records is missing, as the capture and the user are told. */
#include "record/recorder_private.h"

#include "base/units.h"
#include "record/rings/rings.h"
#include "xsptrace/ring.h"

void xsp_operators_count(struct xsp_recorder *r, struct xsp_capture_stats *s)
{
	if (r->agents == NULL)
		return;
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(r->agents);
	s->lost_entries += t.lost + t.homeless;
	s->lost_exits += t.lost + t.homeless;
	s->lost_other += t.bad;
	s->lost_names += t.names;
	if (t.refused > r->gaps[XSP_GAP_SLOTS].count)
		xsp_recorder_gap(
			r, XSP_GAP_SLOTS, t.refused - r->gaps[XSP_GAP_SLOTS].count,
			"of libraries that came later lead to functions of another tool: operators called through them are not seen");
}

uint64_t xsp_operators_torn(struct xsp_recorder *r)
{
	return r->agents != NULL ? xsp_agent_rings_totals(r->agents).torn : 0;
}

int xsp_operators_put_info(struct xsp_recorder *r)
{
	char count[XSP_UNITS_SIZE];

	if (r->agents == NULL)
		return 0;
	const struct xsp_agent_rings_totals t = xsp_agent_rings_totals(r->agents);
	if (t.lost > 0)
		xsp_recorder_note(
			r,
			"%s calls of operators and regions found the agent's memory full, and were lost: xsptrace got too little of a processor (give it one, by taskset or cpuset), or there are too many for it; without --inject the brake keeps them few",
			xsp_format_count(count, t.lost));
	if (t.homeless > 0)
		xsp_recorder_note(
			r,
			"%s calls of operators were lost: the agent records %u threads at a time, and more called some",
			xsp_format_count(count, t.homeless), XSP_RINGS_COUNT);
	if (t.names > 0)
		xsp_recorder_note(
			r,
			"%s names of regions, arguments of operators, or stacks of Python were lost: there were more different ones than the agent keeps, or the process has written over its memory",
			xsp_format_count(count, t.names));
	if (t.bad > 0)
		xsp_recorder_note(
			r,
			"%s records of the agent could not be: the process has written over its memory, or means to deceive",
			xsp_format_count(count, t.bad));
	if (t.uneven > 0)
		xsp_recorder_note(
			r,
			"the processor's time stamp counter left its rate %s times: operators' times may be off",
			xsp_format_count(count, t.uneven));
	return xsp_capture_put_number(r->writer, "agent records", t.records);
}
