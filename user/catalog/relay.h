/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.h - ranges that profilers pass on to each other. XSigma reports each scope to an ITT
 * collector: its begin from inside the function that opens or names it, its end from inside the one
 * that ends it. So one scope passes through two or three traced functions. Captures hold these
 * numbers.
 */
#ifndef XSP_CATALOG_RELAY_H
#define XSP_CATALOG_RELAY_H

/* How far a probe's ranges have come. A range is passed on to the next number. */
enum xsp_relay {
	XSP_RELAY_NONE = 0,
	XSP_RELAY_LABEL, /* passed on when it gets its name, if at all: XSP_EVENT_LABEL */
	XSP_RELAY_BEGIN, /* passed on when it begins */
	XSP_RELAY_COLLECTOR, /* receives it */
	XSP_RELAYS,
};

#endif
