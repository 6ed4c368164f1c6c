/* SPDX-License-Identifier: BSD-2-Clause */
/* switches.h - how often this machine's threads change places. */
#ifndef XSP_CLI_SWITCHES_H
#define XSP_CLI_SWITCHES_H

#include <stdint.h>
#include <stdio.h>

struct xsp_switches {
	FILE *stat; /* /proc/stat, which may not be opened any more without rights; NULL: none */
	uint64_t count, time_ns;
};

struct xsp_switches xsp_switches_begin(void);
/* A second and processor, since the last look at them; 0: not known, or that is no longer ago. */
double xsp_switches_rate(struct xsp_switches *s, uint64_t least_ns);
void xsp_switches_end(struct xsp_switches *s);

#endif
