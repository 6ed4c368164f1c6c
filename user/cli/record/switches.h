/* SPDX-License-Identifier: BSD-2-Clause */
/* switches.h - how often this machine switches between threads. */
#ifndef XSP_CLI_SWITCHES_H
#define XSP_CLI_SWITCHES_H

#include <stdint.h>
#include <stdio.h>

struct xsp_switches {
	FILE *stat; /* /proc/stat, which we cannot open later without rights; NULL: none */
	uint64_t count, time_ns;
};

struct xsp_switches xsp_switches_begin(void);
/* Switches a second and processor since the last call. 0: not known, or that call was less than
 * least_ns ago. */
double xsp_switches_rate(struct xsp_switches *s, uint64_t least_ns);
void xsp_switches_end(struct xsp_switches *s);

#endif
