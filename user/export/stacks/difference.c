/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/stacks/difference.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "export/stacks/format.h"
#include "export/out.h"
#include "export/stacks/svg_draw.h"
#include "model/stacks/merged_stacks.h"

struct xsp_stack_difference {
	struct xsp_view view; /* the current capture's */
	struct xsp_stacks *side; /* stacks of the current capture */
	const char *path;
	struct xsp_out *out;
	bool svg;
	struct xsp_merged_stacks stacks;
	uint64_t steps[2], recorded_ns[2];
	bool without_steps; /* some capture has no steps */
	uint64_t largest; /* the largest difference of own time */
};

bool xsp_is_stack_difference_name(const char *path)
{
	return xsp_ends_with(path, strlen(path), ".svg") ||
	       xsp_ends_with(path, strlen(path), ".folded");
}

/* ---- one capture's stacks ---- */

int xsp_stack_difference_open(const struct xsp_export_options *options,
			      struct xsp_stack_difference **out, struct xsp_error *err)
{
	struct xsp_stack_difference *d = calloc(1, sizeof(*d));
	const struct xsp_out_options how = {.path = options->path,
					    .owner_uid = options->owner_uid,
					    .owner_gid = options->owner_gid};

	*out = NULL;
	if (d == NULL)
		return xsp_out_of_memory(err);
	d->stacks.join_numbered = true;
	d->path = options->path;
	d->view.weight = options->weight;
	d->view.by_thread = options->by_thread;
	d->svg = xsp_ends_with(options->path, strlen(options->path), ".svg");
	int rc = xsp_out_open(&how, &d->out, err);
	if (rc < 0) {
		free(d);
		return rc;
	}
	*out = d;
	return 0;
}

/* Both sides need the same weight: the first capture decides it. */
static int weigh(struct xsp_stack_difference *d, const struct xsp_timeline *t,
		 struct xsp_error *err)
{
	d->view.weight = xsp_weight_chosen(d->view.weight, t);
	if (xsp_weight_recorded(d->view.weight, t))
		return 0;
	return xsp_error_set(
		err, -EINVAL, XSP_STATUS_USAGE,
		"cannot write %s with --weight %s: not all captures have it; --weight wall does not need it",
		d->path, xsp_weight_name(d->view.weight));
}

int xsp_stack_difference_begin(struct xsp_stack_difference *d, struct xsp_capture_reader *reader,
			       struct xsp_timeline *timeline, struct xsp_timeline_sink *sink,
			       struct xsp_error *err)
{
	d->view.reader = reader;
	d->view.timeline = timeline;
	int rc = weigh(d, timeline, err);
	if (rc < 0)
		return rc;
	if (xsp_stacks_new(&d->view, &d->side) < 0)
		return xsp_out_of_memory(err);
	*sink = xsp_stacks_sink(d->side);
	return 0;
}

/* ---- both in one tree ---- */

int xsp_stack_difference_end(struct xsp_stack_difference *d, unsigned side, uint64_t steps,
			     uint64_t recorded_ns, struct xsp_error *err)
{
	struct xsp_stacks *s = d->side;
	int rc = xsp_stacks_seal(s, XSP_STACKS_BY_NAME);

	if (rc == 0)
		rc = xsp_merged_add(&d->stacks, s, side, false);
	d->steps[side] += steps;
	d->recorded_ns[side] += recorded_ns;
	d->without_steps = d->without_steps || steps == 0;
	xsp_stacks_free(s);
	d->side = NULL;
	return rc < 0 ? xsp_out_of_memory(err) : 0;
}

static uint32_t next_of(const void *tree, uint32_t index)
{
	return xsp_merged_next(&((const struct xsp_stack_difference *)tree)->stacks, index);
}

/* Scales the second side to as many units as the first one has. */
static int seal(struct xsp_stack_difference *d)
{
	const uint64_t *units = d->without_steps ? d->recorded_ns : d->steps;
	const double factors[2] = {
		1, units[0] > 0 && units[1] > 0 ? (double)units[0] / (double)units[1] : 1};
	int rc = xsp_merged_seal(&d->stacks, factors);

	for (size_t i = 0; i < d->stacks.nodes.count && rc == 0; i++) {
		const uint64_t *self = d->stacks.nodes.rows[i].self;
		const uint64_t by = self[0] > self[1] ? self[0] - self[1] : self[1] - self[0];
		d->largest = by > d->largest ? by : d->largest;
	}
	return rc;
}

/* ---- writing ---- */

/* Red: longer in the second; blue: shorter; paler: less so. The frame is wide enough for both. */
static void frame_of(const void *tree, uint32_t index, struct xsp_svg_frame *out)
{
	const struct xsp_stack_difference *d = tree;
	const struct xsp_merged_node *n = &d->stacks.nodes.rows[index];
	const double by = (double)n->self[1] - (double)n->self[0];
	const double part = d->largest > 0 ? sqrt(fabs(by) / (double)d->largest) : 0;

	*out = (struct xsp_svg_frame){
		.name = n->name,
		.depth = n->depth,
		.total = n->total[0] + n->total[1],
		.colour = part < 0.02 ? 0xE9ECEF
				      : xsp_svg_colour(by > 0 ? 4 : 214, 0.85, 0.95 - 0.35 * part)};
}

static void put_times(struct xsp_out *out, const char *what, const uint64_t ns[2])
{
	const bool more = ns[1] >= ns[0];
	char a[32], b[32], by[32];

	xsp_out_printf(out, "\n%s %s, then %s (%s%s", what, xsp_svg_duration(a, ns[0]),
		       xsp_svg_duration(b, ns[1]), more ? "+" : "-",
		       xsp_svg_duration(by, more ? ns[1] - ns[0] : ns[0] - ns[1]));
	if (ns[0] > 0)
		xsp_out_printf(out, ", %+.1f%%",
			       100 * ((double)ns[1] - (double)ns[0]) / (double)ns[0]);
	xsp_out_text(out, ")");
}

static void details_of(const void *tree, uint32_t index, struct xsp_out *out)
{
	const struct xsp_stack_difference *d = tree;
	const struct xsp_merged_node *n = &d->stacks.nodes.rows[index];

	put_times(out, "total", n->total);
	put_times(out, "self", n->self);
}

static int write_svg(struct xsp_stack_difference *d, const char *const sides[2])
{
	char subtitle[256], total[2][32], units[64], *of = NULL;
	struct xsp_svg_page page = {.title = "Differential flame graph",
				    .subtitle = subtitle,
				    .merged = d->stacks.merged,
				    .tree = d,
				    .next = next_of,
				    .frame = frame_of,
				    .details_of = details_of};

	if (asprintf(&of, "%s, then %s", sides[0], sides[1]) < 0)
		return -ENOMEM;
	page.of = of;
	if (d->without_steps)
		xsp_svg_duration(units, d->recorded_ns[0]);
	else
		snprintf(units, sizeof(units), "%" PRIu64 " steps", d->steps[0]);
	snprintf(
		subtitle, sizeof(subtitle),
		"Red: more self time in the second, blue: less · width: both together, of %s each · %s, then %s",
		units, xsp_svg_duration(total[0], d->stacks.nodes.rows[0].total[0]),
		xsp_svg_duration(total[1], d->stacks.nodes.rows[0].total[1]));
	int rc = xsp_svg_draw(d->out, &page);
	free(of);
	return rc;
}

static int write_folded(struct xsp_stack_difference *d)
{
	struct xsp_folded_line line = {.text = NULL};
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && (i = next_of(d, i)) != 0;) {
		const struct xsp_merged_node *n = &d->stacks.nodes.rows[i];
		rc = xsp_folded_frame(&line, n->depth, n->name);
		if (rc < 0 || n->self[0] + n->self[1] == 0)
			continue;
		xsp_out_write(d->out, line.text, line.ends[n->depth]);
		xsp_out_printf(d->out, "%s%" PRIu64 " %" PRIu64 "\n",
			       n->depth < 2 ? ";[merged] " : " ", n->self[0], n->self[1]);
	}
	free(line.text);
	return rc;
}

static void free_difference(struct xsp_stack_difference *d)
{
	xsp_stacks_free(d->side);
	xsp_merged_free(&d->stacks);
	xsp_view_clear(&d->view);
	free(d);
}

int xsp_stack_difference_finish(struct xsp_stack_difference *d, const char *const sides[2],
				struct xsp_error *err)
{
	int rc = seal(d);

	if (rc == 0)
		rc = d->svg ? write_svg(d, sides) : write_folded(d);
	xsp_out_fail(d->out, rc);
	rc = xsp_out_close(d->out, err);
	free_difference(d);
	return rc;
}

void xsp_stack_difference_cancel(struct xsp_stack_difference *d)
{
	if (d == NULL)
		return;
	xsp_out_cancel(d->out);
	free_difference(d);
}
