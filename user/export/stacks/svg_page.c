/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg_page.c - look and behaviour of the flame graph, as the file holds them: flame.css and
 * flame.js.
 *
 * The page also works without the script (as an image in a document): svg.c lays it out. Neither
 * text may contain "]]>".
 */
#include "export/stacks/svg_draw.h"
#include "flame.inc" /* made by flame.cmake */
