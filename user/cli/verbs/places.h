/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places.h - for top: where each thread is now, by its Python or native stack. Another process reads them, as dump does:
 * without rights, and without stopping anybody, so that a thread that runs native code has no place.
 */
#ifndef XSP_CLI_PLACES_H
#define XSP_CLI_PLACES_H

#include "cli/options/options.h"

struct xsp_places;

/* Call it while we have rights. NULL: there will be no places. */
struct xsp_places *xsp_places_start(const struct xsp_options *o);
void xsp_places_free(struct xsp_places *p); /* NULL is allowed */
/* Asks for new ones, unless the last ones have not come yet. */
void xsp_places_ask(struct xsp_places *p);
/* Takes what has come. True: all places are new. */
bool xsp_places_read(struct xsp_places *p);
/* Of a thread (root namespace), raw bytes of the target's; NULL: not known. */
const char *xsp_places_of(const struct xsp_places *p, uint32_t tid);

#endif
