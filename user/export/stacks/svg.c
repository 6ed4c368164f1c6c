/* SPDX-License-Identifier: BSD-2-Clause */
/* svg.c - the flame graph, widest children first. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "base/text.h"
#include "export/export_private.h"
#include "export/out.h"
#include "export/stacks/format.h"
#include "export/stacks/svg_draw.h"
#include "model/run_stats.h"
#include "model/stacks/stacks.h"

/* ---- colours: a name has the same colour in every file ---- */

static unsigned colour(const struct xsp_stack_node *n, const char *name)
{
	uint32_t h = 2166136261U;

	for (const char *c = name; *c; c++)
		h = (h ^ (uint8_t)*c) * 16777619U;
	h ^= h >> 15;
	double a = (h & 0xFF) / 255.0, b = (h >> 8 & 0xFF) / 255.0;
	/* functions: the colours of fire */
	double hue = 14 + 38 * a, saturation = 0.92, light = 0.62 + 0.12 * b;
	if (n->annotation) { /* ranges: of the sea */
		hue = 178 + 34 * a;
		saturation = 0.55;
	}
	if (n->depth < 2) { /* all, command: of stone */
		hue = 215;
		saturation = 0.16;
		light = n->depth ? 0.80 : 0.86;
	}
	return xsp_svg_colour(hue, saturation, light);
}

/* ---- the text around the frames ---- */

static const char *command_of(struct xsp_export *x)
{
	const struct xsp_capture_process *p = NULL;

	if (xsp_capture_processes(x->view.reader, &p) == 0)
		return "";
	return p[0].cmdline && *p[0].cmdline ? p[0].cmdline : p[0].comm ? p[0].comm : "";
}

/* The meaning of a width. */
static const struct {
	const char *title, *width, *one, *many;
} labels[XSP_WEIGHTS] = {
	[XSP_WEIGHT_WALL] = {"Flame graph", "wall time in traced functions", "call", "calls"},
	[XSP_WEIGHT_CPU] = {"Flame graph", "CPU time in traced functions", "call", "calls"},
	[XSP_WEIGHT_OFF_CPU] = {"Off-CPU flame graph", "time off the CPU", "wait", "waits"},
	[XSP_WEIGHT_SAMPLES] = {"Flame graph", "time on a CPU, by samples", "sample", "samples"},
	[XSP_WEIGHT_ALL] = {"Flame graph", "all time, on and off the CPU", "call", "calls"},
};

/* Of --weight all: which time that is, and whose not. */
static void write_all(const struct xsp_export *x, const char *window, const char *total, char *line,
		      size_t size)
{
	const uint64_t idle = xsp_stacks_idle(x->state);

	snprintf(line, size,
		 "Recorded for %s · width: all time, on and off the CPU, all threads added up, %s",
		 window, total);

	if (idle > 0)
		xsp_join(line, size, ", ", "without %" PRIu64 " idle %s", idle,
			 idle == 1 ? "one" : "ones");
}

static void write_subtitle(const struct xsp_export *x, char *line, size_t size)
{
	const struct xsp_timeline_thread *threads = NULL;
	const struct xsp_timeline_counts *counts = xsp_timeline_counts(x->view.timeline);
	const size_t n = xsp_timeline_threads(x->view.timeline, &threads);
	const uint64_t all = xsp_stacks_node(x->state, 0)->total_ns;
	uint64_t start, end;
	char window[32], spans[32], total[32];

	xsp_timeline_window(x->view.timeline, &start, &end);
	if (x->view.weight == XSP_WEIGHT_ALL)
		write_all(x, xsp_svg_duration(window, end > start ? end - start : 0),
			  xsp_svg_duration(total, all), line, size);
	else if (x->view.weight == XSP_WEIGHT_SAMPLES)
		snprintf(line, size,
			 "Recorded for %s · width: time on a CPU, by samples (%s, %" PRIu64
			 " a second of each thread), all threads added up, %s",
			 xsp_svg_duration(window, end > start ? end - start : 0),
			 xsp_timeline_sample_clock(x->view.timeline),
			 xsp_timeline_sample_hz(x->view.timeline), xsp_svg_duration(total, all));
	else
		snprintf(
			line, size,
			"Recorded for %s · %s spans on %zu %s · width: %s, all threads added up, %s",
			xsp_svg_duration(window, end > start ? end - start : 0),
			xsp_format_count(spans, counts->spans), n, n == 1 ? "thread" : "threads",
			labels[x->view.weight].width, xsp_svg_duration(total, all));
}

/* ---- frames ---- */

static uint32_t next_of(const void *tree, uint32_t index)
{
	return xsp_stacks_next(((const struct xsp_export *)tree)->state, index);
}

static void frame_of(const void *tree, uint32_t index, struct xsp_svg_frame *out)
{
	const struct xsp_stacks *s = ((const struct xsp_export *)tree)->state;
	const struct xsp_stack_node *n = xsp_stacks_node(s, index);

	out->name = xsp_stacks_name(s, index);
	out->depth = n->depth;
	out->total = n->total_ns;
	out->colour = colour(n, out->name);
}

static void details_of(const void *tree, uint32_t index, struct xsp_out *out)
{
	const struct xsp_export *x = tree;
	const struct xsp_stack_node *n = xsp_stacks_node(x->state, index);
	const struct xsp_stack_node *root = xsp_stacks_node(x->state, 0);
	char self[32], total[32], calls[32];
	const double all = root->total_ns ? (double)root->total_ns : 1;

	xsp_out_printf(out, "\ntotal %s (%.2f%%)\nself %s (%.2f%%)",
		       xsp_svg_duration(total, n->total_ns), 100 * (double)n->total_ns / all,
		       xsp_svg_duration(self, n->self_ns), 100 * (double)n->self_ns / all);
	if (n->depth >= 2 && n->calls > 0)
		xsp_out_printf(out, "\n%s %s", xsp_format_count(calls, n->calls),
			       n->calls == 1 ? labels[x->view.weight].one
					     : labels[x->view.weight].many);
}

static int svg_end(struct xsp_export *x)
{
	struct xsp_svg_page page = {.title = labels[x->view.weight].title,
				    .of = command_of(x),
				    .tree = x,
				    .next = next_of,
				    .frame = frame_of,
				    .details_of = details_of};
	char subtitle[256], losses[160];
	int rc = xsp_stacks_seal(x->state, XSP_STACKS_BY_TOTAL);

	if (rc < 0)
		return rc;
	write_subtitle(x, subtitle, sizeof(subtitle));
	page.subtitle = subtitle;
	page.losses = xsp_run_losses_line(x->view.reader, x->view.timeline, losses, sizeof(losses))
			      ? losses
			      : NULL;
	page.merged = xsp_stacks_merged(x->state);
	return xsp_svg_draw(x->out, &page);
}

const struct xsp_export_format xsp_format_svg = {
	.suffix = ".svg",
	.title = "flame graph",
	.end = svg_end,
	XSP_STACK_FORMAT,
};
