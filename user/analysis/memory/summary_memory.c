/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/memory/summary_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rows/tally.h"
#include "base/units.h"
#include "report/list.h"

#define PROCESSES_SHOWN 5

struct process {
	uint32_t pid;
	struct xsp_process_memory first, last;
	uint64_t peak, peak_anonymous;
	struct xsp_growth_clock clock;
	struct xsp_growth anonymous;
};

struct xsp_summary_memory {
	struct xsp_timeline *timeline;
	XSP_TALLY(struct process); /* by pid */
};

int xsp_summary_memory_new(struct xsp_timeline *t, struct xsp_summary_memory **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->timeline = t;
	return 0;
}

void xsp_summary_memory_free(struct xsp_summary_memory *m)
{
	if (m == NULL)
		return;
	xsp_tally_free(m);
	free(m);
}

/* ---- collecting ---- */

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int xsp_summary_memory_process(struct xsp_summary_memory *m, const struct xsp_process_memory_at *at)
{
	if (m == NULL || at->memory.resident == 0) /* it has ended: its last sample counts */
		return 0;
	struct process *p = xsp_tally_row(
		m, at->pid,
		&(struct process){.pid = at->pid, .first = at->memory, .last = at->memory});
	if (p == NULL)
		return -ENOMEM;
	p->peak = max(p->peak, at->memory.resident);
	p->peak_anonymous = max(p->peak_anonymous, at->memory.anonymous);
	if (at->memory.peak > p->last.peak) /* the kernel saw a peak after the last sample */
		p->peak = max(p->peak, at->memory.peak);
	p->last = at->memory;
	xsp_growth_time(&p->clock, at->time_ns);
	xsp_growth_put(&p->clock, &p->anonymous, at->memory.anonymous);
	return 0;
}

/* ---- processes ---- */

uint32_t xsp_summary_memory_pid(const struct xsp_timeline *t, const struct xsp_memory_use *use)
{
	const struct xsp_timeline_thread *thread = xsp_timeline_thread(t, use->pid);

	return thread != NULL ? thread->ns_pid : use->pid;
}

const char *xsp_summary_memory_owner(const struct xsp_timeline *t, const struct xsp_memory_use *use,
				     char out[XSP_SUMMARY_MEMORY_OWNER])
{
	const struct xsp_memory_use *uses;
	const size_t count = xsp_timeline_memory(t, &uses);
	bool several = false;

	out[0] = '\0';
	for (size_t i = 1; i < count; i++)
		several = several || uses[i].pid != uses[0].pid;
	if (several)
		snprintf(out, XSP_SUMMARY_MEMORY_OWNER, " of process %" PRIu32,
			 xsp_summary_memory_pid(t, use));
	return out;
}

/* ---- growth ---- */

/* Every recorded program grows by less: by this share of what it has, or by a megabyte. */
#define GROWN_LEAST_SHARE 0.05
#define GROWN_LEAST_BYTES (1U << 20)

/* A sample is recorded only if something has changed: since the last one nothing has. */
static struct xsp_slope slope_of(const struct xsp_summary_memory *m, const struct process *p,
				 const struct xsp_growth_steps *steps)
{
	struct xsp_growth_clock clock = p->clock;
	struct xsp_growth anonymous = p->anonymous;
	uint64_t start, end;

	xsp_timeline_window(m->timeline, &start, &end);
	xsp_growth_time(&clock, end);
	xsp_growth_put(&clock, &anonymous, p->last.anonymous);
	struct xsp_slope out = xsp_growth_slope(&clock, &anonymous, steps, NULL);
	const double grown = out.low * (double)(clock.last_ns - clock.start_ns) * 1e-9;
	out.grows = out.grows && grown >= GROWN_LEAST_BYTES &&
		    grown >= GROWN_LEAST_SHARE * (double)p->last.anonymous;
	return out;
}

/* ---- in reports ---- */

static XSP_ORDER(by_peak, struct process, XSP_FALLING(peak) ?: XSP_RISING(pid));

bool xsp_summary_memory_growing(const struct xsp_summary_memory *m,
				const struct xsp_capture_reader *r,
				const struct xsp_growth_steps *steps, size_t *i,
				struct xsp_growing_process *out)
{
	for (; m != NULL && *i < m->count; ++*i) {
		const struct process *p = &m->rows[*i];
		const struct xsp_capture_process *d = xsp_capture_process_of(r, p->pid);
		*out = (struct xsp_growing_process){.pid = d != NULL ? d->ns_pid : p->pid,
						    .name = d != NULL && d->comm != NULL ? d->comm
											 : "?",
						    .slope = slope_of(m, p, steps),
						    .first = p->first.anonymous,
						    .last = p->last.anonymous};
		if (out->slope.grows) {
			++*i;
			return true;
		}
	}
	return false;
}

static void print_process(const struct xsp_summary_memory *m, const struct process *p,
			  const struct xsp_capture_reader *r, FILE *f)
{
	const struct xsp_slope slope = slope_of(m, p, NULL);
	const struct xsp_capture_process *d = xsp_capture_process_of(r, p->pid);
	const uint64_t bytes[] = {p->first.resident,  p->peak,		 p->last.resident,
				  p->first.anonymous, p->peak_anonymous, p->last.anonymous};
	char text[6][XSP_UNITS_SIZE], name[128];

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
		xsp_format_bytes(text[i], bytes[i]);
	xsp_printable(name, sizeof(name), d != NULL && d->comm != NULL ? d->comm : "?", 0);
	fprintf(f,
		"memory of process %" PRIu32
		" (%s): %s resident at the start, %s at most, %s at the end; of it anonymous %s, %s, %s",
		d != NULL ? d->ns_pid : p->pid, name, text[0], text[1], text[2], text[3], text[4],
		text[5]);
	if (slope.grows)
		fprintf(f, ", which only grows, by %s a second (%s to %s)",
			xsp_format_bytes(text[0], (uint64_t)slope.slope),
			xsp_format_bytes(text[1], (uint64_t)slope.low),
			xsp_format_bytes(text[2], (uint64_t)slope.high));
	if (p->last.swapped > 0)
		fprintf(f, "; %s swapped out", xsp_format_bytes(text[0], p->last.swapped));
	fputc('\n', f);
}

static const struct xsp_capture_process *described(const struct xsp_capture_reader *r,
						   const struct process *p)
{
	return xsp_capture_process_of(r, p->pid);
}

#define CELL(name, value) XSP_REPORT_CELL(name, struct xsp_capture_reader, struct process, value)
#define OF(member) XSP_FIELD(struct process, member)

CELL(process_name, xsp_cell_text(described(of, row) != NULL ? described(of, row)->comm : NULL));
CELL(process_pid,
     xsp_cell_integer(described(of, row) != NULL ? described(of, row)->ns_pid : row->pid));

static const struct xsp_report_column columns[] = {
	{"name", "process", XSP_UNIT_TEXT, true, XSP_BY(process_name)},
	{"pid", "pid", XSP_UNIT_NUMBER, false, XSP_BY(process_pid)},
	{"start_bytes", "at the start", XSP_UNIT_BYTES, false, OF(first.resident)},
	{"peak_bytes", "at most", XSP_UNIT_BYTES, false, OF(peak)},
	{"end_bytes", "at the end", XSP_UNIT_BYTES, false, OF(last.resident)},
	{"anonymous_bytes", "of it anonymous", XSP_UNIT_BYTES, false, OF(last.anonymous)},
	{"swapped_bytes", "swapped out", XSP_UNIT_BYTES, false, OF(last.swapped)},
};
XSP_REPORT_SHAPE(analyze, shape, "memory", "processes", "resident memory of processes", columns);

static const struct xsp_report_column more_columns[] = {
	{"resident.start_bytes", "at the start", XSP_UNIT_BYTES, false, OF(first.resident)},
	{"resident.peak_bytes", "at most", XSP_UNIT_BYTES, false, OF(peak)},
	{"resident.end_bytes", "at the end", XSP_UNIT_BYTES, false, OF(last.resident)},
	{"anonymous.start_bytes", "anonymous", XSP_UNIT_BYTES, false, OF(first.anonymous)},
	{"anonymous.peak_bytes", "at most", XSP_UNIT_BYTES, false, OF(peak_anonymous)},
	{"anonymous.end_bytes", "at the end", XSP_UNIT_BYTES, false, OF(last.anonymous)},
};
static const struct xsp_list list = {
	XSP_LIST_COLUMNS(columns),
	XSP_LIST_MORE(more_columns),
	.full = &shape,
	.json = "processes",
	.keys = "name pid resident.start_bytes resident.peak_bytes resident.end_bytes anonymous.start_bytes anonymous.peak_bytes anonymous.end_bytes swapped_bytes",
};

void xsp_summary_memory_report(struct xsp_summary_memory *m, const struct xsp_capture_reader *r,
			       struct xsp_report *report)
{
	FILE *f = xsp_list_lines(report);

	if (m == NULL || (m->count == 0 && xsp_report_form(report) != XSP_FORM_JSON))
		return;
	xsp_tally_sort(m, by_peak);
	xsp_list_rows(xsp_report_section(report, "memory", "Memory"), &list, r, m->rows,
		      sizeof(*m->rows), m->count, 0);
	if (f == NULL)
		return;
	const size_t shown_count = xsp_list_most(
		report, xsp_report_how(report)->top > 0 ? PROCESSES_SHOWN : 0, m->count);
	for (size_t i = 0; i < shown_count; i++)
		print_process(m, &m->rows[i], r, f);
	if (shown_count < m->count)
		fprintf(f, "... and %zu more processes\n", m->count - shown_count);
}
