/* SPDX-License-Identifier: BSD-2-Clause */
/* svg_draw.h - a tree as a flame graph. */
#ifndef XSP_EXPORT_SVG_DRAW_H
#define XSP_EXPORT_SVG_DRAW_H

#include <stdint.h>

#include "export/out.h"

struct xsp_svg_frame {
	const char *name; /* raw bytes of the target */
	uint32_t depth; /* 0: the root; at most XSP_STACKS_DEPTH + 2 */
	uint64_t total; /* its own time and its children's */
	unsigned colour; /* 0xRRGGBB */
};

struct xsp_svg_page {
	const char *title, *of, *subtitle; /* lines at the top; `of` is raw bytes of the target */
	const char *losses; /* a line about losses, which stands out; or NULL */
	uint64_t merged; /* spans that count in a frame further out */
	/* The tree: parents before children, 0 is the root and also ends next() */
	const void *tree;
	uint32_t (*next)(const void *tree, uint32_t index);
	void (*frame)(const void *tree, uint32_t index, struct xsp_svg_frame *out);
	/* Writes lines below the name, with a line break before each. */
	void (*details_of)(const void *tree, uint32_t index, struct xsp_out *out);
};

/* 0 or -ENOMEM; `out` keeps write errors. */
int xsp_svg_draw(struct xsp_out *out, const struct xsp_svg_page *page);

/* hue from 0 to 360, the others from 0 to 1 */
unsigned xsp_svg_colour(double hue, double saturation, double light);
/* A duration with three or four digits and its unit. Returns `out`, of 32 bytes. */
const char *xsp_svg_duration(char *out, uint64_t ns);

/* Style sheet and script (svg_page.c), terminated. The script reads the frames from the document:
 * data-s, data-t (ns), data-d (depth), data-u (ns of frames in it that are not drawn), and <title>, whose first line is the name. */
extern const unsigned char xsp_svg_style[], xsp_svg_script[];

#endif
