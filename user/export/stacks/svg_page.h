/* SPDX-License-Identifier: BSD-2-Clause */
/* svg_page.h - style sheet and script of the flame graph. */
#ifndef XSP_EXPORT_SVG_PAGE_H
#define XSP_EXPORT_SVG_PAGE_H

extern const char xsp_svg_style[];
/* Reads the frames from the document: data-s, data-t (ns), data-d (depth), and <title>, whose
 * first line is the name. */
extern const char xsp_svg_script[];

#endif
