/* SPDX-License-Identifier: BSD-2-Clause */
/* site_costs.h - what a hit of a probe costs, by the kind of instruction that it sits on. */
#ifndef XSP_BASE_SITE_COSTS_H
#define XSP_BASE_SITE_COSTS_H

#include <stddef.h>

/* How the kernel carries out the instruction under a uprobe; decides the price. */
enum xsp_site_class {
	XSP_SITE_NOP5 = 0, /* 0f 1f 44 00 00: a call on Linux >= 6.18 */
	XSP_SITE_EMULATED, /* push, nop, jcc, jmp rel, call rel; arm64 branches, ret */
	XSP_SITE_SINGLESTEP, /* out-of-line single-step */
	XSP_SITE_CLASSES,
};
const char *xsp_site_class_name(enum xsp_site_class c); /* "nop5", "emulated", "single-stepped" */

/* Price of a hit of each class, nanoseconds; from calibration or the defaults. INFINITY: no site may
 * be of this class. */
struct xsp_site_costs {
	double ns[XSP_SITE_CLASSES];
	double named_ns; /* added to an entry whose probe reads a name */
	double detail_ns; /* added to a hit whose event has sections: a stack of few frames, counters */
	double detail_program_ns; /* of that hit, the time in its program; 0: not measured */
	double cold_ns; /* added to a hit of any class when the caches have been used otherwise */
};
struct xsp_site_costs xsp_site_costs_default(void);
/* "nop5 250 ns, emulated 550 ns, single-stepped 19000 ns" */
void xsp_site_costs_text(const struct xsp_site_costs *costs, char *text, size_t size);

#endif
