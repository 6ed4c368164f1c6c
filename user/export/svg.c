/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.c - the flame graph: one self-contained SVG, root on top, widest children first.
 *
 * Width is self and children's time together, so a row never sticks out of the one above.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "export/facts.h"
#include "export/formats.h"
#include "export/out.h"
#include "export/stacks.h"
#include "export/svg_page.h"

#define WIDTH 1200 /* px; the script fits it to the window */
#define PAD 12
#define ROW 18
#define HEADER 118
#define FOOTER 44
#define CHAR_WIDTH 7.23 /* of 12 px monospace, rounded up */
#define NARROWEST 0.1 /* px at WIDTH; what is narrower is counted, not drawn */
#define DRAWN_DEPTH 512 /* rows; deeper ones too */

struct picture {
	struct xsp_export *x;
	struct xsp_stacks *stacks;
	double scale; /* px per ns */
	uint32_t deepest; /* drawn */
	uint64_t narrow, deep; /* frames not drawn */
};

static int svg_begin(struct xsp_export *x)
{
	struct xsp_stacks *s;
	int rc = xsp_stacks_new(x, &s);

	x->state = s;
	return rc;
}

static int svg_span(struct xsp_export *x, const struct xsp_span *span)
{
	return xsp_stacks_add(x->state, span);
}

static int svg_wait(struct xsp_export *x, const struct xsp_wait *wait)
{
	return xsp_stacks_add_wait(x->state, wait);
}

static void svg_discard(struct xsp_export *x)
{
	xsp_stacks_free(x->state);
	x->state = NULL;
}

/* ---- words ---- */

/* 1234567 → "1,234,567"; out has 32 bytes */
static const char *grouped(char *out, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v), o = 0;

	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			out[o++] = ',';
		out[o++] = digits[i];
	}
	out[o] = '\0';
	return out;
}

/* A duration with three or four digits and its unit; out has 32 bytes. */
static const char *duration(char *out, uint64_t ns)
{
	static const struct {
		uint64_t limit;
		double unit;
		const char *name;
	} units[] = {{1000000, 1e3, "µs"}, {1000000000, 1e6, "ms"}, {UINT64_MAX, 1e9, "s"}};
	size_t i = 0;

	if (ns < 1000) {
		snprintf(out, 32, "%" PRIu64 " ns", ns);
		return out;
	}
	while (i < 2 && ns >= units[i].limit)
		i++;
	double v = (double)ns / units[i].unit;
	snprintf(out, 32, "%.*f %s", v < 10 ? 3 : v < 100 ? 2 : 1, v, units[i].name);
	return out;
}

/* The start of `text` that fits into `columns`, with an ellipsis if it is cut, escaped. Wide
 * characters count twice, as in the script. */
static void put_fitted(struct xsp_out *o, const char *text, int columns)
{
	size_t n = strlen(text), end = 0, last = 0;
	int used = 0;
	uint32_t c;

	if (columns < 3)
		return;
	while (end < n) {
		unsigned length = xsp_utf8_next(text + end, n - end, &c);
		used += c < 0x1100 ? 1 : 2;
		if (used > columns)
			break;
		end += length;
		if (used <= columns - 1)
			last = end;
	}
	char *part = strndup(text, end < n ? last : n);
	if (part == NULL) {
		xsp_out_fail(o, -ENOMEM);
		return;
	}
	xsp_out_xml(o, part);
	if (end < n)
		xsp_out_text(o, "…");
	free(part);
}

static int columns_of(const char *text)
{
	size_t n = strlen(text);
	int columns = 0;
	uint32_t c;

	for (size_t i = 0; i < n;
	     i += xsp_utf8_next(text + i, n - i, &c), columns += c < 0x1100 ? 1 : 2)
		;
	return columns;
}

/*
 * Where the shown part of a C++ name begins that has `columns` of room: outer namespaces go
 * first, but two parts stay. "at::_ops::mm::call", "…_ops::mm::call", "…mm::call", "mm::c…".
 */
static const char *short_name(const char *name, int columns)
{
	const char *part = name, *next = NULL;
	int depth = 0;

	if (columns_of(name) <= columns)
		return name;
	for (const char *c = name; *c; c++) {
		depth += *c == '<' || *c == '(' ? 1 : *c == '>' || *c == ')' ? -1 : 0;
		if (depth != 0 || c[0] != ':' || c[1] != ':')
			continue;
		if (next) {
			part = next;
			if (columns_of(part) < columns)
				return part;
		}
		next = ++c + 1;
	}
	return part;
}

static void put_short(struct xsp_out *o, const char *name, int columns)
{
	const char *part = columns < 3 ? name : short_name(name, columns);

	if (part > name && columns_of(part) < columns) {
		xsp_out_text(o, "…");
		columns--;
	}
	put_fitted(o, part, columns);
}

/* A name in one line: the script takes the title's first line for it. */
static void put_name(struct xsp_out *o, const char *name)
{
	char *line = strdup(name);

	for (char *c = line; c && *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	if (line)
		xsp_out_xml(o, line);
	else
		xsp_out_fail(o, -ENOMEM);
	free(line);
}

/* ---- colours: the same name, the same colour, in every file ---- */

static unsigned channel(double hue, double saturation, double light, double n)
{
	double k = n + hue / 30, a = saturation * (light < 1 - light ? light : 1 - light);

	while (k >= 12)
		k -= 12;
	double low = k - 3 < 9 - k ? k - 3 : 9 - k;
	low = low < -1 ? -1 : low > 1 ? 1 : low;
	return (unsigned)((light - a * low) * 255 + 0.5);
}

static unsigned colour(const struct xsp_stack_node *n, const char *name)
{
	uint32_t h = 2166136261U;

	for (const char *c = name; *c; c++)
		h = (h ^ (uint8_t)*c) * 16777619U;
	h ^= h >> 15;
	double a = (h & 0xFF) / 255.0, b = (h >> 8 & 0xFF) / 255.0;
	double hue = 14 + 38 * a, saturation = 0.92, light = 0.62 + 0.12 * b; /* functions: fire */
	if (n->annotation) { /* ranges: sea */
		hue = 178 + 34 * a;
		saturation = 0.55;
	}
	if (n->depth < 2) { /* all, command: stone */
		hue = 215;
		saturation = 0.16;
		light = n->depth ? 0.80 : 0.86;
	}
	return channel(hue, saturation, light, 0) << 16 | channel(hue, saturation, light, 8) << 8 |
	       channel(hue, saturation, light, 4);
}

/* ---- head and foot ---- */

static const char *command_of(struct xsp_export *x)
{
	const struct xsp_capture_process *p = NULL;

	if (xsp_capture_processes(x->reader, &p) == 0)
		return "";
	return p[0].cmdline && *p[0].cmdline ? p[0].cmdline : p[0].comm ? p[0].comm : "";
}

static void put_line(struct picture *p, const char *class, int y, const char *text)
{
	xsp_out_printf(p->x->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, PAD, y);
	put_fitted(p->x->out, text, (int)((WIDTH - 2 * PAD) / CHAR_WIDTH));
	xsp_out_text(p->x->out, "</text>\n");
}

/* What a width stands for. */
static const struct {
	const char *title, *width, *one, *many;
} words[XSP_WEIGHTS] = {
	[XSP_WEIGHT_WALL] = {"Flame graph", "wall time in traced functions", "call", "calls"},
	[XSP_WEIGHT_CPU] = {"Flame graph", "CPU time in traced functions", "call", "calls"},
	[XSP_WEIGHT_OFF_CPU] = {"Off-CPU flame graph", "time off the CPU", "wait", "waits"},
	[XSP_WEIGHT_SAMPLES] = {"Flame graph", "time on a CPU, by samples", "sample", "samples"},
};

static void put_facts(struct picture *p)
{
	uint64_t start, end;
	char window[32], spans[32], total[32], line[256];
	const struct xsp_timeline_thread *threads = NULL;
	const struct xsp_timeline_counts *counts = xsp_timeline_counts(p->x->timeline);
	size_t n = xsp_timeline_threads(p->x->timeline, &threads);

	xsp_timeline_window(p->x->timeline, &start, &end);
	if (p->x->options.weight == XSP_WEIGHT_SAMPLES)
		snprintf(line, sizeof(line),
			 "Recorded for %s · width: time on a CPU, by samples (%s, %" PRIu64
			 " a second of each thread), all threads added up, %s",
			 duration(window, end > start ? end - start : 0),
			 xsp_timeline_sample_clock(p->x->timeline),
			 xsp_timeline_sample_hz(p->x->timeline),
			 duration(total, xsp_stacks_node(p->stacks, 0)->total_ns));
	else
		snprintf(line, sizeof(line),
			 "Recorded for %s · %s spans on %zu %s · width: %s, "
			 "all threads added up, %s",
			 duration(window, end > start ? end - start : 0),
			 grouped(spans, counts->spans), n, n == 1 ? "thread" : "threads",
			 words[p->x->options.weight].width,
			 duration(total, xsp_stacks_node(p->stacks, 0)->total_ns));
	put_line(p, "sans quiet", 72, line);
}

static void put_head(struct picture *p, int height)
{
	struct xsp_out *o = p->x->out;
	char losses[160];

	xsp_out_printf(o,
		       "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		       "data-pad=\"%d\" data-char=\"%.2f\">\n",
		       WIDTH, height, PAD, CHAR_WIDTH);
	xsp_out_printf(o, "<title>%s of ", words[p->x->options.weight].title);
	xsp_out_xml(o, command_of(p->x));
	xsp_out_text(o, "</title>\n<style><![CDATA[\n");
	xsp_out_text(o, xsp_svg_style);
	xsp_out_text(o, "]]></style>\n");
	put_line(p, "sans title", 32, words[p->x->options.weight].title);
	put_line(p, "quiet", 54, command_of(p->x));
	put_facts(p);
	if (xsp_fact_losses_line(p->x->reader, p->x->timeline, losses, sizeof(losses)))
		put_line(p, "sans loss", 90, losses);
	xsp_out_printf(o, "<text id=\"detail\" class=\"quiet\" x=\"%d\" y=\"%d\"></text>\n", PAD,
		       HEADER - 10);
}

static void put_foot(struct picture *p, int height)
{
	char narrow[32], deep[32], merged[32], line[256];
	uint64_t more = xsp_stacks_merged(p->stacks);
	int n = 0;

	if (p->narrow)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%s frames narrower than %.1f px are not drawn. ",
			      grouped(narrow, p->narrow), NARROWEST);
	if (p->deep)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%s frames deeper than %d are not drawn. ", grouped(deep, p->deep),
			      DRAWN_DEPTH);
	if (more)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      "%s spans are counted in a frame further out. ",
			      grouped(merged, more));
	snprintf(line + n, sizeof(line) - (size_t)n, "xsptrace " XSP_VERSION);
	put_line(p, "sans quiet", height - 16, line);
}

/* ---- frames ---- */

static void put_title(struct picture *p, uint32_t index)
{
	const struct xsp_stack_node *n = xsp_stacks_node(p->stacks, index);
	const struct xsp_stack_node *root = xsp_stacks_node(p->stacks, 0);
	char self[32], total[32], calls[32];
	double all = root->total_ns ? (double)root->total_ns : 1;

	xsp_out_text(p->x->out, "<title>");
	put_name(p->x->out, xsp_stacks_name(p->stacks, index));
	xsp_out_printf(p->x->out, "\ntotal %s (%.2f%%)\nself %s (%.2f%%)",
		       duration(total, n->total_ns), 100 * (double)n->total_ns / all,
		       duration(self, n->self_ns), 100 * (double)n->self_ns / all);
	if (n->depth >= 2)
		xsp_out_printf(p->x->out, "\n%s %s", grouped(calls, n->calls),
			       n->calls == 1 ? words[p->x->options.weight].one
					     : words[p->x->options.weight].many);
	xsp_out_text(p->x->out, "</title>");
}

static void put_frame(struct picture *p, uint32_t index, uint64_t start)
{
	const struct xsp_stack_node *n = xsp_stacks_node(p->stacks, index);
	const char *name = xsp_stacks_name(p->stacks, index);
	double x = PAD + (double)start * p->scale, width = (double)n->total_ns * p->scale;
	int y = HEADER + (int)n->depth * ROW;

	xsp_out_printf(p->x->out, "<g data-s=\"%" PRIu64 "\" data-t=\"%" PRIu64 "\" data-d=\"%u\">",
		       start, n->total_ns, n->depth);
	put_title(p, index);
	xsp_out_printf(p->x->out,
		       "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>"
		       "<text x=\"%.2f\" y=\"%d\">",
		       x, y, width > 3 ? width - 0.8 : width, ROW - 1, colour(n, name), x + 4,
		       y + 13);
	put_short(p->x->out, name, (int)((width - 6) / CHAR_WIDTH));
	xsp_out_text(p->x->out, "</text></g>\n");
}

/* Is the frame drawn? Counts those that are not. */
static bool is_drawn(struct picture *p, const struct xsp_stack_node *n, bool count)
{
	bool narrow = (double)n->total_ns * p->scale<NARROWEST, deep = n->depth> DRAWN_DEPTH;

	p->narrow += count && narrow;
	p->deep += count && deep && !narrow;
	return !narrow && !deep;
}

static void measure(struct picture *p)
{
	const struct xsp_stack_node *root = xsp_stacks_node(p->stacks, 0);

	p->scale = root->total_ns ? (WIDTH - 2 * PAD) / (double)root->total_ns : 0;
	for (uint32_t i = 0; (i = xsp_stacks_next(p->stacks, i)) != 0;) {
		const struct xsp_stack_node *n = xsp_stacks_node(p->stacks, i);
		if (is_drawn(p, n, true) && n->depth > p->deepest)
			p->deepest = n->depth;
	}
}

static int put_frames(struct picture *p)
{
	/* by depth: where the next frame begins, ns */
	uint64_t *next = calloc(XSP_STACKS_DEPTH + 4, sizeof(*next));
	uint32_t i = 0;

	if (next == NULL)
		return -ENOMEM;
	xsp_out_text(p->x->out, "<g id=\"frames\">\n");
	do {
		const struct xsp_stack_node *n = xsp_stacks_node(p->stacks, i);
		uint64_t start = next[n->depth];
		next[n->depth] += n->total_ns;
		next[n->depth + 1] = start;
		if (i == 0 || is_drawn(p, n, false))
			put_frame(p, i, start);
		i = xsp_stacks_next(p->stacks, i);
	} while (i != 0);
	xsp_out_text(p->x->out, "</g>\n");
	free(next);
	return 0;
}

static int svg_end(struct xsp_export *x)
{
	struct picture p = {.x = x, .stacks = x->state};
	int rc = xsp_stacks_add_rest(p.stacks);

	if (rc == 0)
		rc = xsp_stacks_seal(p.stacks, XSP_STACKS_BY_TOTAL);
	if (rc < 0)
		return rc;
	measure(&p);
	int height = HEADER + (int)(p.deepest + 1) * ROW + FOOTER;
	put_head(&p, height);
	rc = put_frames(&p);
	put_foot(&p, height);
	xsp_out_text(x->out, "<script><![CDATA[\n");
	xsp_out_text(x->out, xsp_svg_script);
	xsp_out_text(x->out, "]]></script>\n</svg>\n");
	return rc;
}

const struct xsp_export_format xsp_format_svg = {
	.suffix = ".svg",
	.title = "flame graph",
	.begin = svg_begin,
	.span = svg_span,
	.wait = svg_wait,
	.stacks = true,
	.end = svg_end,
	.discard = svg_discard,
};
