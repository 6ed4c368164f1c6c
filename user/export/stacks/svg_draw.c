/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg_draw.c - one self-contained SVG, root on top. A frame is as wide as its own time and its
 * children's, so no row sticks out of the row above.
 */
#include "export/stacks/svg_draw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/rows/grow.h"
#include "base/text.h"
#include "base/units.h"
#include "model/stacks/stacks.h"

#define WIDTH 1200 /* px; the script fits it to the window */
#define PAD 12
#define ROW 18
#define HEADER 118
#define FOOTER 44
#define CHAR_WIDTH 7.23 /* of 12 px monospace, rounded up */
#define NARROWEST 0.1 /* px at WIDTH; narrower frames are counted, not drawn */
#define DRAWN_DEPTH 512 /* rows; deeper frames are counted, not drawn */

struct picture {
	struct xsp_out *out;
	const struct xsp_svg_page *page;
	double scale; /* px per ns */
	uint32_t deepest; /* the deepest frame drawn */
	uint64_t narrow, deep; /* frames not drawn */
	uint64_t *hidden; /* by frame: ns of those in it that are not drawn */
	size_t capacity;
};

/* ---- words ---- */

const char *xsp_svg_duration(char *out, uint64_t ns)
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

/* Writes as much of `text` as fits into `columns`, escaped, with an ellipsis if it is elided. Wide
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
 * Where the part of a C++ name begins that fits into `columns`. Outer namespaces go first, so that the
 * last part stays: "at::_ops::mm::call", "…_ops::mm::call", "…mm::call", "…call".
 */
static const char *short_name(const char *name, int columns)
{
	const char *part = name;
	int depth = 0;

	if (columns_of(name) <= columns)
		return name;
	for (const char *c = name; *c; c++) {
		depth += *c == '<' || *c == '(' ? 1 : *c == '>' || *c == ')' ? -1 : 0;
		if (depth != 0 || c[0] != ':' || c[1] != ':')
			continue;
		part = ++c + 1;
		if (columns_of(part) < columns)
			return part;
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

/* Writes the name in one line: the script takes the title's first line for it. */
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

/* ---- colours ---- */

static unsigned channel(double hue, double saturation, double light, double n)
{
	double k = n + hue / 30, a = saturation * (light < 1 - light ? light : 1 - light);

	while (k >= 12)
		k -= 12;
	double low = k - 3 < 9 - k ? k - 3 : 9 - k;
	low = low < -1 ? -1 : low > 1 ? 1 : low;
	return (unsigned)((light - a * low) * 255 + 0.5);
}

unsigned xsp_svg_colour(double hue, double saturation, double light)
{
	return channel(hue, saturation, light, 0) << 16 | channel(hue, saturation, light, 8) << 8 |
	       channel(hue, saturation, light, 4);
}

/* ---- head and foot ---- */

static void put_line(struct picture *p, const char *class, int y, const char *text)
{
	xsp_out_printf(p->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, PAD, y);
	put_fitted(p->out, text, (int)((WIDTH - 2 * PAD) / CHAR_WIDTH));
	xsp_out_text(p->out, "</text>\n");
}

static void put_head(struct picture *p, int height)
{
	struct xsp_out *o = p->out;

	xsp_out_printf(
		o,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" data-pad=\"%d\" data-char=\"%.2f\">\n",
		WIDTH, height, PAD, CHAR_WIDTH);
	xsp_out_printf(o, "<title>%s of ", p->page->title);
	xsp_out_xml(o, p->page->of);
	xsp_out_text(o, "</title>\n<style><![CDATA[\n");
	xsp_out_text(o, (const char *)xsp_svg_style);
	xsp_out_text(o, "]]></style>\n");
	put_line(p, "sans title", 32, p->page->title);
	put_line(p, "quiet", 54, p->page->of);
	put_line(p, "sans quiet", 72, p->page->subtitle);
	if (p->page->losses != NULL)
		put_line(p, "sans loss", 90, p->page->losses);
	xsp_out_printf(o, "<text id=\"detail\" class=\"quiet\" x=\"%d\" y=\"%d\"></text>\n", PAD,
		       HEADER - 10);
}

static void put_foot(struct picture *p, int height)
{
	char narrow[32], deep[32], merged[32], line[256] = "";
	const uint64_t more = p->page->merged;

	if (p->narrow)
		xsp_join(line, sizeof(line), "", "%s frames narrower than %.1f px are not drawn. ",
			 xsp_format_count(narrow, p->narrow), NARROWEST);
	if (p->deep)
		xsp_join(line, sizeof(line), "", "%s frames deeper than %d are not drawn. ",
			 xsp_format_count(deep, p->deep), DRAWN_DEPTH);
	if (more)
		xsp_join(line, sizeof(line), "", "%s spans are counted in a frame further out. ",
			 xsp_format_count(merged, more));
	xsp_join(line, sizeof(line), "", "xsptrace " XSP_VERSION);
	put_line(p, "sans quiet", height - 16, line);
}

/* ---- frames ---- */

static void put_frame(struct picture *p, uint32_t index, const struct xsp_svg_frame *f,
		      uint64_t start)
{
	const double x = PAD + (double)start * p->scale, width = (double)f->total * p->scale;
	const int y = HEADER + (int)f->depth * ROW;

	xsp_out_printf(p->out, "<g data-s=\"%" PRIu64 "\" data-t=\"%" PRIu64 "\" data-d=\"%u\"",
		       start, f->total, f->depth);
	if (index < p->capacity && p->hidden[index] > 0)
		xsp_out_printf(p->out, " data-u=\"%" PRIu64 "\"", p->hidden[index]);
	xsp_out_text(p->out, "><title>");
	put_name(p->out, f->name);
	p->page->details_of(p->page->tree, index, p->out);
	xsp_out_printf(
		p->out,
		"</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/><text x=\"%.2f\" y=\"%d\">",
		x, y, width > 3 ? width - 0.8 : width, ROW - 1, f->colour, x + 4, y + 13);
	put_short(p->out, f->name, (int)((width - 6) / CHAR_WIDTH));
	xsp_out_text(p->out, "</text></g>\n");
}

/* Is the frame drawn? Counts frames that are not. */
static bool is_drawn(struct picture *p, const struct xsp_svg_frame *f, bool count)
{
	const bool narrow = (double)f->total * p->scale<NARROWEST, deep = f->depth> DRAWN_DEPTH;

	p->narrow += count && narrow;
	p->deep += count && deep && !narrow;
	return !narrow && !deep;
}

/* Adds what is not drawn to the frame around it. */
static int hide(struct picture *p, uint32_t around, uint64_t total)
{
	if (xsp_grow_zeroed(&p->hidden, &p->capacity, (size_t)around + 1) < 0)
		return -ENOMEM;
	p->hidden[around] += total;
	return 0;
}

static int measure(struct picture *p)
{
	const struct xsp_svg_page *page = p->page;
	/* by depth: the frame there that is drawn around the current one */
	uint32_t *around = calloc(XSP_STACKS_DEPTH + 4, sizeof(*around));
	uint32_t hidden_below = UINT32_MAX; /* the depth from which on nothing is drawn */
	struct xsp_svg_frame f;
	int rc = around != NULL ? 0 : -ENOMEM;

	page->frame(page->tree, 0, &f);
	p->scale = f.total ? (WIDTH - 2 * PAD) / (double)f.total : 0;
	for (uint32_t i = 0; rc == 0 && (i = page->next(page->tree, i)) != 0;) {
		page->frame(page->tree, i, &f);
		if (f.depth <= hidden_below)
			hidden_below = UINT32_MAX;
		if (is_drawn(p, &f, true)) {
			p->deepest = f.depth > p->deepest ? f.depth : p->deepest;
			around[f.depth] = i;
		} else if (f.depth < hidden_below) {
			hidden_below = f.depth;
			rc = hide(p, around[f.depth - 1], f.total);
		}
	}
	free(around);
	return rc;
}

static int put_frames(struct picture *p)
{
	const struct xsp_svg_page *page = p->page;
	/* by depth: where the next frame begins, ns */
	uint64_t *next = calloc(XSP_STACKS_DEPTH + 4, sizeof(*next));
	struct xsp_svg_frame f;
	uint32_t i = 0;

	if (next == NULL)
		return -ENOMEM;
	xsp_out_text(p->out, "<g id=\"frames\">\n");
	do {
		page->frame(page->tree, i, &f);
		const uint64_t start = next[f.depth];
		next[f.depth] += f.total;
		next[f.depth + 1] = start;
		if (i == 0 || is_drawn(p, &f, false))
			put_frame(p, i, &f, start);
		i = page->next(page->tree, i);
	} while (i != 0);
	xsp_out_text(p->out, "</g>\n");
	free(next);
	return 0;
}

int xsp_svg_draw(struct xsp_out *out, const struct xsp_svg_page *page)
{
	struct picture p = {.out = out, .page = page};

	int rc = measure(&p);
	const int height = HEADER + (int)(p.deepest + 1) * ROW + FOOTER;
	put_head(&p, height);
	if (rc == 0)
		rc = put_frames(&p);
	put_foot(&p, height);
	xsp_out_text(out, "<script><![CDATA[\n");
	xsp_out_text(out, (const char *)xsp_svg_script);
	xsp_out_text(out, "]]></script>\n</svg>\n");
	free(p.hidden);
	return rc;
}
