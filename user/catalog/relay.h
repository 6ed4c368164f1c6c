/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.h - ranges that profilers pass on to each other. XSigma tells an ITT collector of each scope that it
 * opens, from inside the function that opens or names it, and of its end from inside the one that ends
 * it: one scope, and two or three functions that are traced. Captures carry these numbers.
 */
#ifndef XSP_CATALOG_RELAY_H
#define XSP_CATALOG_RELAY_H

/* How far along the way a probe's ranges are. One is passed on to the next number. */
enum xsp_relay {
	XSP_RELAY_NONE = 0,
	XSP_RELAY_LABEL, /* passed on, if at all, when it gets its name: XSP_EVENT_LABEL */
	XSP_RELAY_BEGIN, /* passed on when it begins */
	XSP_RELAY_COLLECTOR, /* who is told */
	XSP_RELAYS,
};

#endif
