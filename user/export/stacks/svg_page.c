/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg_page.c - the look and the behaviour of the flame graph, as they stand in the file: flame.css and flame.js.
 *
 * The page works without the script too (as an image in a document): svg.c lays it out.
 * Neither text may contain "]]>".
 */
#include "export/stacks/svg_draw.h"
#include "flame.inc" /* made by flame.cmake */
