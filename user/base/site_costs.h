/* SPDX-License-Identifier: BSD-2-Clause */
/* site_costs.h - the cost of a hit, by the kind of instruction that the probe is on. */
#ifndef XSP_BASE_SITE_COSTS_H
#define XSP_BASE_SITE_COSTS_H

#include <stddef.h>
#include <stdint.h>

/* How the kernel carries out the instruction under a uprobe; decides the price. */
enum xsp_site_class {
	XSP_SITE_NOP5 = 0, /* 0f 1f 44 00 00: a call on Linux >= 6.18 */
	XSP_SITE_EMULATED, /* push, nop, jcc, jmp rel, call rel; arm64 branches, ret */
	XSP_SITE_SINGLESTEP, /* out-of-line single-step */
	XSP_SITE_CLASSES,
};
const char *xsp_site_class_name(enum xsp_site_class c); /* "nop5", "emulated", "single-stepped" */

/* The price of a hit of each class in ns, from calibration or the defaults. INFINITY: no site may
 * be of this class. */
struct xsp_site_costs {
	double ns[XSP_SITE_CLASSES];
	double named_ns; /* added to an entry whose probe reads a name */
	double detail_ns; /* added to a hit whose event has sections: a short stack, counters */
	double detail_program_ns; /* of that hit, the time in the BPF program; 0: not measured */
	double cold_ns; /* added to a hit of any class when the caches hold other data */
	uint32_t nop5_called; /* the kernel has made a call of a nop5 with a probe */
	uint32_t reserved;
};
struct xsp_site_costs xsp_site_costs_default(void);

/* Hits that cost from_ns and more are single-stepped; so is all of their price beyond emulated_ns. from_ns 0: none is. */
struct xsp_price_steps {
	uint32_t from_ns, emulated_ns;
};
struct xsp_price_steps xsp_site_costs_steps(const struct xsp_site_costs *costs);
static inline uint32_t xsp_price_step(const struct xsp_price_steps *s, uint32_t ns)
{
	return s->from_ns > 0 && ns >= s->from_ns && ns > s->emulated_ns ? ns - s->emulated_ns : 0;
}

/* "nop5 250 ns, emulated 550 ns, single-stepped 19000 ns" */
void xsp_site_costs_text(const struct xsp_site_costs *costs, char *text, size_t size);

#endif
