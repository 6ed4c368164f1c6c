/* SPDX-License-Identifier: BSD-2-Clause */
/* svg_draw.h - a tree as a flame graph. */
#ifndef XSP_EXPORT_SVG_DRAW_H
#define XSP_EXPORT_SVG_DRAW_H

#include <stdint.h>

#include "export/out.h"

struct xsp_svg_frame {
	const char *name; /* raw bytes of the target's */
	uint32_t depth; /* 0: the root; at most XSP_STACKS_DEPTH + 2 */
	uint64_t total; /* its own and its children's */
	unsigned colour; /* 0xRRGGBB */
};

struct xsp_svg_page {
	const char *title, *of, *subtitle; /* lines at the top; `of`: raw bytes of the target's */
	const char *losses; /* one that must not be missed; or NULL */
	uint64_t merged; /* spans that are counted in a frame further out */
	/* The tree, parents before their children; 0 is the root, and the end of next() */
	const void *tree;
	uint32_t (*next)(const void *tree, uint32_t index);
	void (*frame)(const void *tree, uint32_t index, struct xsp_svg_frame *out);
	/* Lines below its name, each with a line break before it. */
	void (*details_of)(const void *tree, uint32_t index, struct xsp_out *out);
};

/* 0 or -ENOMEM; errors of writing are kept by `out`. */
int xsp_svg_draw(struct xsp_out *out, const struct xsp_svg_page *page);

/* hue 0 to 360, the others 0 to 1 */
unsigned xsp_svg_colour(double hue, double saturation, double light);
/* A duration with three or four digits and its unit. Returns `out`, of 32 bytes. */
const char *xsp_svg_duration(char *out, uint64_t ns);

/* Style sheet and script (svg_page.c), terminated. The script reads the frames from the document: data-s, data-t (ns),
 * data-d (depth), and <title>, whose first line is the name. */
extern const unsigned char xsp_svg_style[], xsp_svg_script[];

#endif
